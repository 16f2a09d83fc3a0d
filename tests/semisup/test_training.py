"""The training loop: networks of every make, what is logged, what is resumed, and what stays as it was."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from evidentia import EvidentiaError
from evidentia.semisup import (
    OBJECTIVES,
    Augmentation,
    ByUncertainty,
    Consistency,
    ImplicitDifferentiation,
    LabeledAgainstUnlabeled,
    Meta,
    Objective,
    Robust,
    SemiSupervisedClassifier,
    two_moons,
)
from evidentia.semisup.training.loop import Training

QUICK: dict[str, Any] = {"updates": 4, "block": 2, "unlabeled_batch": 10, "progress": False}
DATA = two_moons("faraway", 0.5, seed=1, unlabeled=20)
LABELED = (DATA.x_labeled, DATA.y_labeled)


class WithBuffer(nn.Module):
    """A buffer that `state_dict` leaves out."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(2, 4), nn.Linear(4, 2)
        self.register_buffer("centre", torch.full((2,), 0.5), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.relu(self.first(x - self.centre)))


class Tied(nn.Module):
    """A layer under two names, and a parameter that two layers share."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.other, self.last = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)
        self.again, self.other.weight = self.first, self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.relu(self.other(torch.relu(self.again(self.first(x))))))


@pytest.mark.parametrize("kind", [WithBuffer, Tied])
def test_networks_with_tensors_that_a_state_leaves_out_or_names_twice(kind: type[nn.Module], tmp_path: Path) -> None:
    kept, file = tmp_path / "run.safetensors", tmp_path / "clf.safetensors"
    network = kind()
    first, again = (
        SemiSupervisedClassifier("mean-teacher", "none", network, norm="none", checkpoint=kept, **QUICK).fit(DATA)
        for _ in range(2)
    )
    first.save(file)
    loaded = SemiSupervisedClassifier.load(file, network)
    for other in (again, loaded):
        assert torch.equal(other.predict(DATA.x_test).probs, first.predict(DATA.x_test).probs)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_weights_are_logged_of_what_there_is(share: float, tmp_path: Path) -> None:
    is_ood = torch.arange(40) < 40 * share
    files = {"log": tmp_path / "log.jsonl", "checkpoint": tmp_path / "run.safetensors"}
    clf = SemiSupervisedClassifier("pi-model", "meta", **files, **QUICK)
    clf.fit(LABELED, DATA.x_unlabeled, is_ood=is_ood).save(tmp_path / "clf.safetensors")
    lines = [json.loads(line, parse_constant=pytest.fail) for line in files["log"].read_text().splitlines()]
    assert lines == clf.history_
    assert ("w_ood" in lines[-1], "w_in" in lines[-1]) == (share > 0, share == 0.5)


@pytest.mark.parametrize("kind", [Meta, ImplicitDifferentiation])
def test_weights_of_samples_that_were_rarely_visited_are_told(kind: Any) -> None:
    with pytest.warns(UserWarning, match="of 40 samples were part of fewer than 5 steps"):
        SemiSupervisedClassifier("pi-model", kind(clusters=None), **QUICK).fit(DATA)


def test_weights_that_are_shared_or_were_visited_are_not_told() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("meta", "l2rw", "mwn", "none"):
            SemiSupervisedClassifier("pi-model", name, **QUICK).fit(DATA)
        often: dict[str, Any] = {**QUICK, "updates": 5, "unlabeled_batch": 40}
        SemiSupervisedClassifier("pi-model", Meta(clusters=None, every=1), **often).fit(DATA)


class InPlace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(x.sub_(1.0))


@pytest.mark.parametrize("what", ["augmentation", "network"])
def test_the_users_samples_stay_as_they_are(what: str) -> None:
    given = [tensor.clone() for tensor in (DATA.x_labeled, DATA.x_unlabeled, DATA.x_labeled, DATA.x_test)]
    options: dict[str, Any] = (
        {"augmentation": (lambda x: x.add_(1.0), lambda x: x.add_(2.0))}
        if what == "augmentation"
        else {"network": InPlace(), "norm": "none", "passes": "separate"}
    )
    clf = SemiSupervisedClassifier("pi-model", "meta", **options, **QUICK)
    clf.fit((given[0], DATA.y_labeled), given[1], (given[2], DATA.y_labeled)).predict(given[3])
    for tensor, before in zip(given, (DATA.x_labeled, DATA.x_unlabeled, DATA.x_labeled, DATA.x_test), strict=True):
        assert torch.equal(tensor, before)


def test_a_classifier_takes_up_its_own_run(tmp_path: Path) -> None:
    robust = ByUncertainty(uncertainty=LabeledAgainstUnlabeled(steps=5))
    clf = SemiSupervisedClassifier("pi-model", robust, checkpoint=tmp_path / "run.safetensors", **QUICK)
    weights = clf.fit(DATA).weights_
    assert torch.equal(clf.fit(DATA).weights_, weights)


@pytest.fixture
def killed_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., SemiSupervisedClassifier]:
    """A run of six updates that is killed in the sixth and goes on from its checkpoint."""
    update = Training._update

    def killed_at_5(training: Training) -> tuple[float, float]:
        if training.update == 5:
            raise KeyboardInterrupt
        return update(training)

    def run(build: Callable[..., SemiSupervisedClassifier], *data: Any) -> SemiSupervisedClassifier:
        with monkeypatch.context() as patch:
            patch.setattr(Training, "_update", killed_at_5)
            with pytest.raises(KeyboardInterrupt):
                build(checkpoint=tmp_path / "run.safetensors").fit(*data)
        return build(checkpoint=tmp_path / "run.safetensors").fit(*data)

    return run


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd"])
def test_runs_of_every_optimiser_go_on_after_a_kill(
    optimizer: str, killed_and_resumed: Callable[..., SemiSupervisedClassifier]
) -> None:
    def build(**options: Any) -> SemiSupervisedClassifier:
        settings: dict[str, Any] = {**QUICK, "updates": 6, "weight_decay": 0.1, "average": None}
        return SemiSupervisedClassifier("pi-model", "none", optimizer=optimizer, **settings, **options)

    whole, resumed = build().fit(DATA), killed_and_resumed(build, DATA)
    assert resumed.history_ == whole.history_
    assert torch.equal(resumed.predict(DATA.x_test).probs, whole.predict(DATA.x_test).probs)


@pytest.mark.parametrize("objective", ["fixmatch", "mean-teacher"])
def test_runs_of_networks_that_lie_channels_last_go_on_after_a_kill(
    objective: str, killed_and_resumed: Callable[..., SemiSupervisedClassifier]
) -> None:
    draw = torch.Generator().manual_seed(1)
    labeled = (torch.rand(8, 3, 16, 16, generator=draw), torch.arange(8) % 2)
    unlabeled = torch.rand(20, 3, 16, 16, generator=draw)

    def build(**options: Any) -> SemiSupervisedClassifier:
        return SemiSupervisedClassifier(objective, "none", "wrn-10-1", **{**QUICK, "updates": 6, **options})

    whole, resumed = build().fit(labeled, unlabeled), killed_and_resumed(build, labeled, unlabeled)
    assert resumed.history_ == whole.history_
    for name, tensor in whole.network_.state_dict().items():
        assert torch.equal(resumed.network_.state_dict()[name], tensor), name


def test_gradient_descent_has_momentum() -> None:
    weights = []
    for optimizer in ("sgd", "adam"):
        network = nn.Linear(2, 2)
        with torch.no_grad():
            network.weight.zero_()
            network.bias.zero_()
        settings: dict[str, Any] = {"updates": 2, "schedule": "constant", "average": None, "learning_rate": 0.1}
        settings |= {
            "norm": "none",
            "optimizer": optimizer,
            "labeled_batch": 99,
            "augmentation": "none",
            "progress": False,
        }
        clf = SemiSupervisedClassifier("pseudo-label", "supervised", network, **settings).fit(DATA)
        weights.append(clf.network_.weight)
    # By hand: two steps on all labeled samples.
    expected, velocity = torch.zeros(2, 2, requires_grad=True), torch.zeros(2, 2)
    bias, pace = torch.zeros(2, requires_grad=True), torch.zeros(2)
    for _ in range(2):
        loss = nn.functional.cross_entropy(DATA.x_labeled @ expected.t() + bias, DATA.y_labeled)
        slopes = torch.autograd.grad(loss, [expected, bias])
        velocity, pace = 0.9 * velocity + slopes[0], 0.9 * pace + slopes[1]
        with torch.no_grad():
            expected -= 0.1 * (slopes[0] + 0.9 * velocity)
            bias -= 0.1 * (slopes[1] + 0.9 * pace)
    torch.testing.assert_close(weights[0], expected)
    assert not torch.allclose(weights[0], weights[1])


def test_the_truth_is_part_of_a_run_that_is_told_it(tmp_path: Path) -> None:
    is_ood = torch.arange(40) < 20
    for robust in ("oracle", "none"):
        kept = tmp_path / f"{robust}.safetensors"
        SemiSupervisedClassifier("pi-model", robust, checkpoint=kept, **QUICK).fit(
            LABELED, DATA.x_unlabeled, is_ood=is_ood
        )
        other = SemiSupervisedClassifier("pi-model", robust, checkpoint=kept, **QUICK)
        if robust == "oracle":
            with pytest.raises(EvidentiaError, match=r"other settings \(data\)"):
                other.fit(LABELED, DATA.x_unlabeled, is_ood=~is_ood)
        else:
            other.fit(LABELED, DATA.x_unlabeled, is_ood=~is_ood)


def test_layers_without_weights_are_part_of_a_run(tmp_path: Path) -> None:
    network = nn.Sequential(nn.Linear(2, 4), nn.Dropout(0.1), nn.Linear(4, 2))
    options: dict[str, Any] = {"norm": "none", "checkpoint": tmp_path / "run.safetensors", **QUICK}
    SemiSupervisedClassifier("pi-model", "none", network, **options).fit(DATA)
    network[1] = nn.Dropout(0.9)
    with pytest.raises(EvidentiaError, match=r"other settings \(network\)"):
        SemiSupervisedClassifier("pi-model", "none", network, **options).fit(DATA)


class Costing(Objective):
    """Costs that a function makes of the entropies of a batch."""

    def __init__(self, change: Callable[[Tensor], Any], views: int = 1) -> None:
        self.change, self.views = change, views

    def prepare(self, network: nn.Module, x: Tensor, augment: Augmentation, **_: Any) -> Any:
        x = torch.cat([x] * self.views)
        return Consistency(x, None, x.new_ones(len(x))) if self.views else x

    def per_sample(self, logits: Tensor, consistency: Consistency) -> Any:
        return self.change(torch.distributions.Categorical(logits=logits).entropy())


COSTS: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "a column": (lambda costs: costs[:, None], r"torch.float32 of shape \(10, 1\)"),
    "a row": (lambda costs: costs[None], r"shape \(1, 10\)"),
    "a scalar": (lambda costs: costs.mean(), r"shape \(\)"),
    "one a class": (lambda costs: costs[:, None].expand(10, 2), r"shape \(10, 2\)"),
    "too few": (lambda costs: costs[1:], r"shape \(9,\)"),
    "a list": (lambda costs: costs.tolist(), "got list"),
    "no costs": (lambda costs: None, "got NoneType"),
    "whole numbers": (lambda costs: costs.long(), "torch.int64"),
}


@pytest.mark.parametrize("robust", ["none", "meta", "mwn"])
@pytest.mark.parametrize("what", COSTS)
def test_costs_that_are_not_one_a_sample_are_told(what: str, robust: str) -> None:
    change, given = COSTS[what]
    with pytest.raises(EvidentiaError, match=rf"per_sample of Costing must give one cost a sample, .*\(10,\).*{given}"):
        SemiSupervisedClassifier(Costing(change), robust, **QUICK).fit(DATA)


def test_inputs_that_are_not_one_a_sample_are_told() -> None:
    with pytest.raises(EvidentiaError, match=r"prepare of Costing must give one input a sample, 10 .*got 20"):
        SemiSupervisedClassifier(Costing(torch.clone, views=2), "none", **QUICK).fit(DATA)

    class Bare(Costing):
        def prepare(self, network: nn.Module, x: Tensor, augment: Augmentation, **_: Any) -> Any:
            return x, None

    class Doubled(Costing):
        def prepare(self, network: nn.Module, x: Tensor, augment: Augmentation, **_: Any) -> Consistency:
            return Consistency(x.double(), x, torch.ones(len(x)))

    with pytest.raises(EvidentiaError, match=r"the samples' dtype torch.float32, got torch.float64; .*\.to\(x"):
        SemiSupervisedClassifier(Doubled(torch.clone), "none", **QUICK).fit(DATA)

    with pytest.raises(EvidentiaError, match="prepare of Bare must give a Consistency, got tuple"):
        SemiSupervisedClassifier(Bare(torch.clone), "none", **QUICK).fit(DATA)


@pytest.mark.parametrize("robust", ["none", "meta", "l2rw"])
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_costs_that_are_not_finite_are_the_objectives(value: float, robust: str) -> None:
    def spoilt(costs: Tensor) -> Tensor:
        return torch.where(torch.arange(len(costs)) < 3, costs * value, costs)

    with pytest.raises(
        EvidentiaError, match=r"Costing gave costs .* not finite for 3 of 10 samples in update 0"
    ) as told:
        SemiSupervisedClassifier(Costing(spoilt), robust, **QUICK).fit(DATA)
    assert "learning rate" not in str(told.value)


def test_a_part_of_the_loss_that_is_too_large_is_the_objectives() -> None:
    objective = OBJECTIVES["entropy"](weight=1e39)
    with pytest.raises(
        EvidentiaError, match="unlabeled part of the loss, by EntropyMinimisation, became inf in update 0"
    ):
        SemiSupervisedClassifier(objective, "none", **QUICK).fit(DATA)


@pytest.mark.parametrize("robust", ["none", "supervised"])
def test_a_network_that_is_not_finite_from_the_start_is_told_so(robust: str) -> None:
    network = nn.Linear(2, 2)
    nn.init.constant_(network.weight, torch.nan)
    with pytest.raises(EvidentiaError, match="the loss is nan before any step was made: the network gives logits"):
        SemiSupervisedClassifier("pi-model", robust, network, norm="none", **QUICK).fit(DATA)


def test_weights_that_are_not_one_a_sample_are_told() -> None:
    class Column(Robust):
        def weigh(self, pool: Any, update: Any) -> Tensor:
            return update.weights[:, None]

    with pytest.raises(EvidentiaError, match=r"weigh of Column must give one weight a sample, .*got shape \(10, 1\)"):
        SemiSupervisedClassifier("pi-model", Column(), **QUICK).fit(DATA)


def test_weights_that_are_not_finite_are_the_robust_methods() -> None:
    class Divided(Robust):
        def weigh(self, pool: Any, update: Any) -> Tensor:
            return update.weights / 0

    with pytest.raises(EvidentiaError, match="weigh of Divided gave weights that are not finite for 10 of 10 samples"):
        SemiSupervisedClassifier("pi-model", Divided(), **QUICK).fit(DATA)
