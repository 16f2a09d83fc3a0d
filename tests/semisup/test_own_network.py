"""Networks of one's own: other endings, frozen layers, attention, other dtypes, layers that do not know their size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from evidentia import EvidentiaError
from evidentia.semisup import (
    AUGMENTATIONS,
    OBJECTIVES,
    ROBUST,
    ByUncertainty,
    ImplicitDifferentiation,
    LabeledAgainstUnlabeled,
    LearningToReweight,
    Meta,
    Robust,
    SafeDeepSSL,
    SelfDistillation,
    SemiSupervisedClassifier,
    two_moons,
)
from evidentia.semisup.networks.last_layer import Undivided
from evidentia.semisup.networks.own_network import training_copy

QUICK: dict[str, Any] = {"updates": 4, "block": 2, "unlabeled_batch": 10, "progress": False}
DATA = two_moons("faraway", 0.5, seed=1, unlabeled=20)


class Scaled(nn.Module):
    """Logits that a learnt temperature changes after the last linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.out, self.scale = nn.Linear(2, 4), nn.Linear(4, 2), nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.relu(self.body(x))) * self.scale


def without_linear() -> nn.Module:
    return nn.Sequential(nn.Unflatten(1, (2, 1)), nn.Conv1d(2, 2, 1), nn.Flatten())


FEATURELESS: dict[str, Any] = {
    "none": lambda: "none",
    "supervised": lambda: "supervised",
    "oracle": lambda: "oracle",
    "pu": lambda: ByUncertainty(uncertainty=LabeledAgainstUnlabeled(steps=3, repeats=1)),
    "confidence": lambda: ByUncertainty(uncertainty="confidence", refresh_every=2),
    "uasd": lambda: SelfDistillation(refresh_every=2),
    "l2rw": lambda: "l2rw",
    "mwn": lambda: "mwn",
    "ift": lambda: ImplicitDifferentiation(
        scope="full", clusters=None, uncertainty="confidence", refresh_every=2, every=2
    ),
}


@pytest.mark.filterwarnings("ignore:the weights of:UserWarning")
@pytest.mark.parametrize("kind", [Scaled, without_linear])
@pytest.mark.parametrize("robust", FEATURELESS)
def test_methods_without_features_train_a_network_with_any_ending(robust: str, kind: Any) -> None:
    for batch in (10, 1):
        settings = {**QUICK, "unlabeled_batch": batch}
        clf = SemiSupervisedClassifier("fixmatch", FEATURELESS[robust](), kind(), norm="none", **settings).fit(DATA)
        assert bool(clf.predict(DATA.x_test).probs.isfinite().all())


@pytest.mark.parametrize(
    ("robust", "message"),
    [
        (
            Meta(),
            "Meta needs .* for scope='last' and clusters=20 and uncertainty=KernelEvidence; take scope='full' and",
        ),
        (Meta(scope="full", clusters=None), "for uncertainty=KernelEvidence; take uncertainty='confidence', a robust"),
        (ImplicitDifferentiation(scope="full"), "ImplicitDifferentiation needs .* for clusters=20 and uncertainty="),
        (ByUncertainty(uncertainty="kernel"), "ByUncertainty needs .* take uncertainty='pu'"),
        (LearningToReweight(scope="last"), "LearningToReweight needs .* for scope='last'; take scope='full'"),
        (ROBUST["mwn"](scope="last"), "MetaWeightNet needs .* for scope='last'; take scope='full'"),
        (SafeDeepSSL(), "SafeDeepSSL needs .* for its weights; take MetaWeightNet"),
    ],
)
def test_methods_that_need_features_say_so_before_training(
    robust: Robust, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(robust), "start", lambda self, pool: pytest.fail("training began"))
    for network in (Scaled(), without_linear()):
        with pytest.raises(EvidentiaError, match=message):
            SemiSupervisedClassifier("fixmatch", robust, network, norm="none", **QUICK).fit(DATA)


def test_a_final_softmax_is_told() -> None:
    network = nn.Sequential(nn.Linear(2, 2), nn.Softmax(-1))
    with pytest.raises(EvidentiaError, match="gives probabilities, and logits are needed; leave its final softmax out"):
        SemiSupervisedClassifier("fixmatch", "none", network, norm="none", **QUICK).fit(DATA)


def test_there_is_no_last_layer_of_an_undivided_network() -> None:
    with pytest.raises(EvidentiaError, match=r"\(Scaled\) does not end in an nn.Linear"):
        _ = Undivided(Scaled()).head


def with_body(frozen: bool) -> nn.Sequential:
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4))
    if frozen:
        body.eval().requires_grad_(False)
    return nn.Sequential(body, nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 2))


@pytest.mark.parametrize(
    ("norm", "robust"), [("batch", "none"), ("weighted", Meta(scope="full", every=1)), ("frozen", "mwn")]
)
def test_layers_that_their_owner_froze_stay_frozen(norm: str, robust: Any) -> None:
    network = with_body(frozen=True)
    trained = SemiSupervisedClassifier("mean-teacher", robust, network, norm=norm, **QUICK).fit(DATA).network_
    assert isinstance(trained, nn.Sequential)
    for name, tensor in network[0].state_dict().items():
        assert torch.equal(trained[0].state_dict()[name], tensor)
    assert not torch.equal(trained[3].weight, network[3].weight)


def test_a_network_that_was_left_in_evaluation_mode_is_trained_as_any_other() -> None:
    found = [
        SemiSupervisedClassifier("pi-model", "none", network, **QUICK).fit(DATA)
        for network in (with_body(frozen=False), with_body(frozen=False).eval())
    ]
    assert torch.equal(found[0].predict(DATA.x_test).probs, found[1].predict(DATA.x_test).probs)
    assert bool(found[1].network_[0][1].running_mean.any())  # type: ignore[index]


def test_a_train_method_of_ones_own_is_called() -> None:
    class Freezing(nn.Sequential):
        def train(self, mode: bool = True) -> Freezing:
            super().train(mode)
            self[0].eval()
            return self

    copied = training_copy(Freezing(nn.BatchNorm1d(2), nn.Linear(2, 2)), (2,))
    assert [layer.training for layer in copied.modules()] == [True, False, True]


def test_frozen_layers_are_part_of_a_run(tmp_path: Path) -> None:
    network = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2))
    kept = tmp_path / "run.safetensors"
    SemiSupervisedClassifier("pi-model", "none", network, checkpoint=kept, **QUICK).fit(DATA)
    network[0].eval()
    with pytest.raises(EvidentiaError, match=r"other settings \(frozen\)"):
        SemiSupervisedClassifier("pi-model", "none", network, checkpoint=kept, **QUICK).fit(DATA)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.out = nn.Linear(1, 4), nn.Linear(4, 2)
        self.layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        z = self.layer(self.embed(x[..., None]))
        return self.out(self.attention(z, z, z, need_weights=False)[0].mean(1))


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("robust", [Meta(scope="full"), ImplicitDifferentiation(scope="full"), "l2rw", "mwn", "ds3l"])
def test_attention_is_differentiated_twice(robust: Any, frozen: bool) -> None:
    network = Attention()
    if frozen:
        network.layer.eval()
    clf = SemiSupervisedClassifier("pi-model", robust, network, norm="none", **QUICK).fit(DATA)
    assert bool(clf.predict(DATA.x_test).probs.isfinite().all())


@pytest.mark.parametrize("robust", ["none", "meta", Meta(scope="full", every=1), "l2rw", "ds3l", "uasd", "oracle"])
@pytest.mark.parametrize("objective", ["mean-teacher", "mixmatch", "vat"])
def test_a_network_in_double_gets_samples_in_double(objective: str, robust: Any, tmp_path: Path) -> None:
    network = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2)).double()
    clf = SemiSupervisedClassifier(objective, robust, network, norm="weighted", **QUICK).fit(DATA)
    probs = clf.predict(DATA.x_test).probs
    assert probs.dtype == torch.float64
    clf.save(tmp_path / "clf.safetensors")
    # A module in single precision takes the dtype of what was saved.
    loaded = SemiSupervisedClassifier.load(tmp_path / "clf.safetensors", network.float())
    assert torch.equal(loaded.predict(DATA.x_test).probs, probs)


class Autocast(nn.Module):
    """Computes in half precision, with weights in single precision."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Tanh()), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            logits: Tensor = self.head(self.body(x))
        return logits


@pytest.mark.parametrize("scope", ["last", "full"])
@pytest.mark.parametrize("robust", ["meta", "ift", "l2rw", "mwn", "ds3l"])
def test_a_network_that_computes_in_half_precision_is_weighed_in_single(robust: str, scope: str) -> None:
    clf = SemiSupervisedClassifier("vat", ROBUST[robust](scope=scope), Autocast(), **QUICK).fit(DATA)
    probs = clf.predict(DATA.x_test).probs
    assert probs.dtype == clf.review().confidence.dtype == torch.float32
    torch.testing.assert_close(probs.sum(1), torch.ones(len(probs)))


@pytest.mark.parametrize("objective", ["mean-teacher", "fixmatch", "mixmatch", "entropy"])
def test_targets_of_a_network_that_computes_in_half_precision_are_in_single(objective: str) -> None:
    method, network = OBJECTIVES[objective](), Autocast()
    method.start(network)
    consistency = method.prepare(network, DATA.x_unlabeled, AUGMENTATIONS["vectors"]())
    costs = method.per_sample(network(consistency.inputs), consistency)
    assert {part.dtype for part in (consistency.targets, consistency.counts, costs) if part is not None} == {
        torch.float32
    }


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
@pytest.mark.parametrize(
    ("robust", "told"),
    [
        ("l2rw", r"compiled network \(OptimizedModule\) cannot be differentiated twice.*give.*network._orig_mod"),
        ("meta", "a network that ends in an nn.Linear and is not compiled, network._orig_mod"),
    ],
)
def test_methods_that_a_compiled_network_is_not_for(robust: str, told: str) -> None:
    network = torch.compile(nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2)), backend="aot_eager")
    with pytest.raises(EvidentiaError, match=told):
        SemiSupervisedClassifier("pi-model", robust, network, norm="none", **QUICK).fit(DATA)


def test_double_as_the_default_of_new_tensors(tmp_path: Path) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        robust = ByUncertainty(uncertainty=LabeledAgainstUnlabeled(steps=3, repeats=1))
        clf = SemiSupervisedClassifier("vat", robust, **QUICK).fit(DATA)
        clf.save(tmp_path / "clf.safetensors")
    finally:
        torch.set_default_dtype(torch.float32)
    probs = SemiSupervisedClassifier.load(tmp_path / "clf.safetensors").predict(DATA.x_test).probs
    assert torch.equal(probs, clf.predict(DATA.x_test).probs)
    assert probs.dtype == torch.float64


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
@pytest.mark.parametrize("norm", ["batch", "weighted"])
def test_lazy_layers_get_their_size_and_follow_the_seed(norm: str, tmp_path: Path) -> None:
    network = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.ReLU(), nn.LazyLinear(2))
    first, again = (SemiSupervisedClassifier("vat", "meta", network, norm=norm, **QUICK).fit(DATA) for _ in range(2))
    assert torch.equal(first.predict(DATA.x_test).probs, again.predict(DATA.x_test).probs)
    assert isinstance(network[1], nn.LazyBatchNorm1d)
    first.save(tmp_path / "clf.safetensors")
    loaded = SemiSupervisedClassifier.load(tmp_path / "clf.safetensors", network)
    assert torch.equal(loaded.predict(DATA.x_test).probs, first.predict(DATA.x_test).probs)


def test_a_parallel_network_is_told() -> None:
    with pytest.raises(EvidentiaError, match=r"wrapped in nn.DataParallel.* give the network inside, network\.module"):
        SemiSupervisedClassifier("vat", "none", nn.DataParallel(nn.Linear(2, 2)), norm="none", **QUICK).fit(DATA)


@pytest.mark.parametrize("shape", [(1, 2), (2,)])
def test_an_expanded_buffer_is_trained_saved_and_loaded(shape: tuple[int, ...], tmp_path: Path) -> None:
    class Shifted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("shift", torch.tensor(0.5).expand(shape))
            self.body, self.out = nn.Linear(2, 4), nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.out(torch.relu(self.body(x + self.shift)))

    network = Shifted()
    clf = SemiSupervisedClassifier("mean-teacher", "none", network, norm="none", **QUICK).fit(DATA)
    clf.save(tmp_path / "clf.safetensors")
    loaded = SemiSupervisedClassifier.load(tmp_path / "clf.safetensors", network=Shifted())
    assert torch.equal(loaded.predict(DATA.x_test).probs, clf.predict(DATA.x_test).probs)
    assert network.shift.stride() == (0,) * len(shape)
