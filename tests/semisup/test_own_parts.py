"""What users bring themselves: networks, augmentations, uncertainties and files that do not do as ours do."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from evidentia import EvidentiaError
from evidentia._support.files import load_tensors, save_tensors
from evidentia.semisup import (
    OBJECTIVES,
    Augmentation,
    ByUncertainty,
    ImplicitDifferentiation,
    Meta,
    SemiSupervisedClassifier,
    SemiSupervisedData,
    load_pool,
)
from evidentia.semisup.robust import SafeDeepSSL
from evidentia.semisup.uncertainty import LabeledAgainstUnlabeled

QUICK: dict[str, Any] = {"updates": 6, "block": 2, "unlabeled_batch": 20, "progress": False}


class InPlace(nn.Module):
    """Centres samples, in the tensor that it is given or in a copy."""

    def __init__(self, in_place: bool) -> None:
        super().__init__()
        self.in_place, self.layers = in_place, nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x: Tensor) -> Tensor:
        shifted: Tensor = self.layers(x.sub_(1.0) if self.in_place else x - 1.0)
        return shifted


@pytest.fixture(scope="module")
def data() -> SemiSupervisedData:
    return load_pool("two-moons", ood="faraway", ratio=0.5, unlabeled=100)


@pytest.mark.parametrize("robust", ["none", "l2rw", Meta(scope="full"), Meta()], ids=str)
@pytest.mark.parametrize("objective", sorted(OBJECTIVES))
def test_a_network_that_works_in_place_learns_what_another_does(
    data: SemiSupervisedData, objective: str, robust: Any
) -> None:
    found = []
    for in_place in (False, True):
        torch.manual_seed(0)
        network = InPlace(in_place)
        clf = SemiSupervisedClassifier(
            objective, robust, network, augmentation="none", norm="none", passes="separate", **QUICK
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(clf.fit(data).predict(data.x_test).probs)
    assert torch.equal(*found)


@pytest.mark.parametrize("objective", sorted(OBJECTIVES))
def test_an_augmentation_that_works_in_place_leaves_the_samples(objective: str) -> None:
    noisy = Augmentation(lambda x: x.add_(1.0), lambda x: x.mul_(3.0))
    x = torch.full((4, 2), 5.0)
    labeled = (torch.full((2, 2), 7.0), torch.tensor([0, 1]))
    method, network = OBJECTIVES[objective](), nn.Linear(2, 2)
    method.start(network)
    consistency = method.prepare(network, x, noisy, labeled=labeled)
    assert bool((x == 5).all())
    assert bool((labeled[0] == 7).all())
    if objective == "fixmatch":
        assert bool((consistency.inputs == 15).all())


@pytest.mark.parametrize("draw", [np.random.standard_normal, random.random])
def test_draws_of_other_libraries_follow_from_the_seed_and_leave_theirs_alone(
    data: SemiSupervisedData, draw: Any
) -> None:
    def fitted() -> Tensor:
        change = Augmentation(lambda x: x + 0.1 * draw())
        clf = SemiSupervisedClassifier("pi-model", "none", augmentation=change, **QUICK).fit(data)
        return clf.predict(data.x_test).probs

    first, drawn = fitted(), draw()
    assert torch.equal(fitted(), first)
    assert draw() != drawn


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda x: x.double(),
            r"must keep the batch's dtype torch\.float32, got torch\.float64; end it with \.to\(x\)",
        ),
        (lambda x: x / 0.0, "the weak augmentation made samples with NaN or infinity"),
    ],
)
def test_an_augmentation_that_fails_is_named_before_the_look_at_the_pool(
    data: SemiSupervisedData, change: Any, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LabeledAgainstUnlabeled, "uncertainty_of", lambda *_: pytest.fail("looked at the pool"))
    with pytest.raises(EvidentiaError, match=told):
        SemiSupervisedClassifier("pi-model", augmentation=(change, change), **QUICK).fit(data)


def test_a_network_with_two_outputs_in_training_is_told_before_the_look_at_the_pool(
    data: SemiSupervisedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Auxiliary(nn.Linear):
        def forward(self, x: Tensor) -> Any:
            logits = super().forward(x)
            return (logits, logits) if self.training else logits

    monkeypatch.setattr(LabeledAgainstUnlabeled, "uncertainty_of", lambda *_: pytest.fail("looked at the pool"))
    with pytest.raises(EvidentiaError, match="got tuple"):
        SemiSupervisedClassifier("entropy", network=Auxiliary(2, 2), norm="none", **QUICK).fit(data)


def test_sequences_are_changed_by_noise() -> None:
    x = torch.randn(60, 5, 2)
    clf = SemiSupervisedClassifier("pi-model", "none", norm="none", **QUICK).fit((x[:8], torch.arange(8) % 2), x)
    assert clf.history_[-1]["unlabeled_loss"] > 0


def test_a_function_of_the_pool_may_call_the_network(data: SemiSupervisedData) -> None:
    def probs(function: Any) -> Tensor:
        robust = ByUncertainty(uncertainty=function, apply="loss", refresh_every=2)
        return SemiSupervisedClassifier("pi-model", robust, norm="frozen", **QUICK).fit(data).predict(data.x_test).probs

    def nothing(view: Any) -> Tensor:
        return torch.zeros(len(view.unlabeled))

    def asks(view: Any) -> Tensor:
        assert not view.network.training
        with torch.no_grad():
            view.network(view.unlabeled)
        return nothing(view)

    assert torch.equal(probs(asks), probs(nothing))


@pytest.mark.parametrize("robust", ["none", "supervised", "oracle", ByUncertainty(uncertainty="confidence")], ids=str)
def test_labels_that_a_method_does_not_learn_by_change_nothing(data: SemiSupervisedData, robust: Any) -> None:
    found = []
    for validation in (None, (data.x_test[:10], data.y_test[:10])):
        clf = SemiSupervisedClassifier("pi-model", robust, **QUICK)
        clf.fit((data.x_labeled, data.y_labeled), data.x_unlabeled, validation, is_ood=data.is_ood)
        found.append(clf.predict(data.x_test).probs)
    assert torch.equal(*found)


class Counting(nn.Linear):
    """Adds up what it has seen in a buffer that its state leaves out."""

    seen: Tensor

    def __init__(self) -> None:
        super().__init__(2, 2)
        self.register_buffer("seen", torch.zeros(2), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.seen = self.seen + x.detach().mean(0)
        return super().forward(x - 0.01 * self.seen)


def test_buffers_that_a_state_leaves_out_are_saved_and_taken_up(data: SemiSupervisedData, tmp_path: Path) -> None:
    torch.manual_seed(0)
    network, file, kept = Counting(), tmp_path / "clf.safetensors", tmp_path / "run.safetensors"

    def build(**options: Any) -> SemiSupervisedClassifier:
        return SemiSupervisedClassifier("pi-model", "none", network, norm="none", average=None, **QUICK, **options)

    whole = build().fit(data)
    whole.save(file)
    expected = whole.predict(data.x_test).probs
    assert torch.equal(SemiSupervisedClassifier.load(file, Counting()).predict(data.x_test).probs, expected)
    stopped = build(checkpoint=kept)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evidentia.semisup.training.loop.check_statistics", _stops_after(2))
        with pytest.raises(KeyboardInterrupt):
            stopped.fit(data)
    assert torch.equal(build(checkpoint=kept).fit(data).predict(data.x_test).probs, expected)


class TwoDtypes(nn.Module):
    """Weights of one dtype, a buffer of another."""

    mean: Tensor

    def __init__(self, weights: torch.dtype, buffer: torch.dtype) -> None:
        super().__init__()
        self.register_buffer("mean", torch.full((2,), 1 / 3, dtype=buffer))
        self.layers = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2)).to(weights)

    def forward(self, x: Tensor) -> Tensor:
        centred: Tensor = self.layers((x.to(self.mean) - self.mean).to(x))
        return centred


@pytest.mark.parametrize(
    "dtypes",
    [(torch.float32, torch.float64), (torch.float64, torch.float32), (torch.float32, torch.bfloat16)],
    ids=str,
)
def test_every_tensor_of_a_network_keeps_its_dtype(data: SemiSupervisedData, dtypes: Any, tmp_path: Path) -> None:
    file, kept = tmp_path / "clf.safetensors", tmp_path / "run.safetensors"
    build = lambda **options: SemiSupervisedClassifier(  # noqa: E731
        "pi-model", "none", TwoDtypes(*dtypes), norm="none", **QUICK, **options
    )
    clf = build(checkpoint=kept).fit(data)
    clf.save(file)
    loaded = SemiSupervisedClassifier.load(file, TwoDtypes(*dtypes))
    for name, tensor in clf.network_.state_dict().items():
        found = loaded.network_.state_dict()[name]
        assert found.dtype == tensor.dtype
        assert torch.equal(found, tensor), name
    assert torch.equal(loaded.predict(data.x_test).probs, clf.predict(data.x_test).probs)


class WithExtraState(nn.Linear):
    def get_extra_state(self) -> dict[str, int]:
        return {"version": 1}

    def set_extra_state(self, state: Any) -> None:
        pass


def test_a_state_that_is_no_tensor_is_told_where_it_would_have_to_be_kept(
    data: SemiSupervisedData, tmp_path: Path
) -> None:
    build = lambda **options: SemiSupervisedClassifier(  # noqa: E731
        "pi-model", "none", WithExtraState(2, 2), norm="none", **QUICK, **options
    )
    clf = build().fit(data)
    with pytest.raises(EvidentiaError, match=r"WithExtraState keeps something that is no tensor .* _extra_state"):
        clf.save(tmp_path / "clf.safetensors")
    with pytest.raises(EvidentiaError, match="can be neither saved nor resumed"):
        build(checkpoint=tmp_path / "run.safetensors").fit(data)


def test_a_network_that_keeps_a_result_with_its_gradient_is_told(data: SemiSupervisedData) -> None:
    class Keeping(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            self.kept = super().forward(x)
            return self.kept

    network = Keeping(2, 2)
    network(data.x_labeled)
    build = lambda: SemiSupervisedClassifier("pi-model", "none", network, norm="none", **QUICK)  # noqa: E731
    with pytest.raises(EvidentiaError, match=r"cannot be copied to be trained .* once more under torch\.no_grad\(\)"):
        build().fit(data)
    with torch.no_grad():
        network(data.x_labeled)
    build().fit(data)


def test_checkpoint_and_log_are_not_one_file(data: SemiSupervisedData, tmp_path: Path) -> None:
    with pytest.raises(EvidentiaError, match=r"checkpoint and log are the same file, .*; give each its own"):
        SemiSupervisedClassifier(checkpoint=tmp_path / "run", log=tmp_path / "." / "run", **QUICK).fit(data)


def _stops_after(blocks: int) -> Any:
    seen = []

    def check(*_: Any) -> None:
        seen.append(1)
        if len(seen) > blocks:
            raise KeyboardInterrupt

    return check


def test_a_batch_norm_without_running_statistics_serves_ds3l(data: SemiSupervisedData) -> None:
    norm = nn.BatchNorm1d(4, track_running_stats=False)
    network = nn.Sequential(nn.Linear(2, 4), norm, nn.ReLU(), nn.Linear(4, 2))
    clf = SemiSupervisedClassifier("pi-model", SafeDeepSSL(), network, **QUICK).fit(data)
    assert bool(clf.weights_.isfinite().all())


@pytest.mark.parametrize("around", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("kind", ["arrays", "tensors"])
def test_training_needs_no_gradients_around_it(data: SemiSupervisedData, around: Any, kind: str) -> None:
    given = (data.x_labeled, data.y_labeled, data.x_unlabeled)
    expected = SemiSupervisedClassifier("pi-model", "meta", **QUICK).fit(given[:2], given[2])
    with around():
        x, y, pool = (part.clone() if kind == "tensors" else part.numpy() for part in given)
        clf = SemiSupervisedClassifier("pi-model", "meta", **QUICK).fit((x, y), pool)
    assert torch.equal(clf.predict(data.x_test).probs, expected.predict(data.x_test).probs)


def test_torch_script_is_told(data: SemiSupervisedData) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = torch.jit.trace(nn.Linear(2, 2), torch.zeros(1, 2))
    with pytest.raises(EvidentiaError, match=r"TorchScript .* give the nn\.Module"):
        SemiSupervisedClassifier("pi-model", "none", network, norm="none", **QUICK).fit(data)


@pytest.mark.filterwarnings("ignore:the weights of")
@pytest.mark.parametrize("kind", [Meta, ImplicitDifferentiation])
def test_an_objective_without_a_slope_has_no_hypergradient(data: SemiSupervisedData, kind: Any) -> None:
    class Fixed(type(OBJECTIVES["entropy"]())):  # type: ignore[misc]
        def per_sample(self, logits: Tensor, consistency: Any) -> Tensor:
            return torch.ones(len(logits))

    clf = SemiSupervisedClassifier(Fixed(), kind(clusters=None), norm="none", **QUICK).fit(data)
    assert bool(clf.weights_.isfinite().all())


@pytest.mark.parametrize(
    "change",
    [
        {"update": "x"},
        {"update": -2},
        {"update": 4.0},
        {"update": 99},
        {"history": []},
        {"update": None},
    ],
    ids=str,
)
def test_a_run_that_is_not_whole_is_told(data: SemiSupervisedData, change: dict[str, Any], tmp_path: Path) -> None:
    kept = tmp_path / "run.safetensors"
    build = lambda: SemiSupervisedClassifier("pi-model", "none", checkpoint=kept, **QUICK)  # noqa: E731
    build().fit(data)
    tensors, content = load_tensors(kept, "semi-supervised training")
    save_tensors(kept, "semi-supervised training", tensors, {**content, **change})
    with pytest.raises(EvidentiaError, match=r"does not hold a whole run .*remove it to start anew"):
        build().fit(data)
    save_tensors(kept, "semi-supervised training", dict(list(tensors.items())[1:]), content)
    with pytest.raises(EvidentiaError, match="does not hold a whole run"):
        build().fit(data)


def test_a_scale_of_another_shape_is_told(data: SemiSupervisedData, tmp_path: Path) -> None:
    file = tmp_path / "clf.safetensors"
    SemiSupervisedClassifier("pi-model", "none", standardise=True, **QUICK).fit(data).save(file)
    tensors, content = load_tensors(file, "semi-supervised classifier")
    save_tensors(file, "semi-supervised classifier", {**tensors, "scale/mean": torch.zeros(1, 5)}, content)
    with pytest.raises(EvidentiaError, match="does not hold a whole semi-supervised classifier"):
        SemiSupervisedClassifier.load(file)


def test_lists_of_numbers_are_inputs_and_no_pairs(data: SemiSupervisedData) -> None:
    class Lists(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return len(data.x_unlabeled)

        def __getitem__(self, row: int) -> list[float]:
            return [float(number) for number in data.x_unlabeled[row]]

    labeled = (data.x_labeled, data.y_labeled)
    found = [
        SemiSupervisedClassifier("pi-model", "none", **QUICK).fit(labeled, pool).predict(pool).probs
        for pool in (Lists(), data.x_unlabeled)
    ]
    assert torch.equal(*found)
