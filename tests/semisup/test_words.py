"""Methods in words: equal for equal ones, different for different ones, and back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from evidentia import EvidentiaError
from evidentia.semisup import (
    AUGMENTATIONS,
    OBJECTIVES,
    ROBUST,
    Augmentation,
    ByUncertainty,
    Consistency,
    KernelEvidence,
    LabeledAgainstUnlabeled,
    Meta,
    Objective,
    PoolUncertainty,
    PoolView,
    Robust,
    SemiSupervisedClassifier,
    WeightRegulariser,
    as_augmentation,
    image_augmentation,
    two_moons,
)
from evidentia.semisup.augmentation import Change
from evidentia.semisup.training.words import brief, from_words, words

QUICK: dict[str, Any] = {"updates": 2, "block": 1, "unlabeled_batch": 10, "progress": False}
DATA = two_moons(unlabeled=20)


def scaled_by(factor: Any) -> Change:
    return lambda x: x * factor


def moved(x: Tensor, by: float = 0.0, *, names: Any = ()) -> Tensor:
    return x + by if names in {"one", "two", "three"} else x - by


class Turned:
    def __init__(self, sign: float) -> None:
        self.sign = sign

    def __call__(self, x: Tensor) -> Tensor:
        return self.sign * x

    def method(self, x: Tensor) -> Tensor:
        return self(x)


def module(value: float) -> nn.Module:
    return nn.Linear(2, 2, bias=False).apply(lambda layer: nn.init.constant_(layer.weight, value))


PAIRS: dict[str, tuple[Callable[[], Change], Callable[[], Change]]] = {
    "code": (lambda: lambda x: x + 1, lambda: lambda x: x - 1),
    "constants": (lambda: lambda x: x * 0.1, lambda: lambda x: x * 0.2),
    "names": (lambda: lambda x: x.sin(), lambda: lambda x: x.cos()),
    "inner functions": (
        lambda: lambda x: torch.stack(sorted(x, key=lambda row: row[0])),
        lambda: lambda x: torch.stack(sorted(x, key=lambda row: row[1])),
    ),
    "closures": (lambda: scaled_by(2.0), lambda: scaled_by(3.0)),
    "closures over lists": (lambda: scaled_by([1, 2]), lambda: scaled_by([1, 3])),
    "closures over tensors": (lambda: scaled_by(torch.ones(2)), lambda: scaled_by(torch.zeros(2))),
    "closures over functions": (lambda: scaled_by(lambda: 1), lambda: scaled_by(lambda: 2)),
    "settings of objects": (lambda: Turned(1.0), lambda: Turned(-1.0)),
    "settings of methods": (lambda: Turned(1.0).method, lambda: Turned(-1.0).method),
    "functions of partials": (lambda: partial(moved, by=1), lambda: partial(scaled_by, 1)),
    "values of partials": (lambda: partial(moved, by=1), lambda: partial(moved, by=2)),
    "weights of modules": (lambda: module(1.0), lambda: module(2.0)),
}


@pytest.mark.parametrize("what", PAIRS)
def test_other_functions_are_known_by(what: str) -> None:
    first, other = PAIRS[what]
    assert words(Augmentation(first())) == words(Augmentation(first()))
    assert words(Augmentation(first())) != words(Augmentation(other()))
    assert words(Augmentation(first())) != words(Augmentation(first(), other()))


def test_a_number_of_numpy_is_the_number_that_it_is() -> None:
    ours, theirs = (OBJECTIVES["vat"](epsilon=kind(0.3)) for kind in (float, np.float64))
    assert words(theirs) == words(ours)
    assert words(from_words(words(theirs))) == words(ours)
    assert brief(theirs) == brief(ours)


def test_a_function_may_call_itself() -> None:
    def halved(x: Tensor) -> Tensor:
        return halved(x / 2) if bool((x > 1).any()) else x

    assert words(Augmentation(halved)) == words(Augmentation(halved))


def test_own_augmentations_are_known_as_they_always_were() -> None:
    for name, make in AUGMENTATIONS.items():
        shown = words(make())
        assert shown.endswith(")"), name
        assert " at 0x" not in shown


def test_a_run_does_not_go_on_with_another_function(tmp_path: Path) -> None:
    kept = tmp_path / "run.safetensors"

    def run(factor: float) -> Tensor:
        changes = (lambda x: x, scaled_by(factor))
        clf = SemiSupervisedClassifier("pi-model", "none", augmentation=changes, checkpoint=kept, **QUICK)
        return clf.fit(DATA).weights_

    assert torch.equal(run(2.0), run(2.0))
    with pytest.raises(EvidentiaError, match=r"other settings \(augmentation\)"):
        run(3.0)


METHODS = [
    *(make() for registry in (OBJECTIVES, ROBUST) for make in registry.values()),
    Meta(scope="full", clusters=None, regulariser=WeightRegulariser(l1=1e-7, form="thesis"), uncertainty="confidence"),
    ByUncertainty(uncertainty=KernelEvidence(bandwidth=0.5), apply="loss"),
    OBJECTIVES["vat"](weight=0.1, rampup=100),
    AUGMENTATIONS["images"](flip=True),
    AUGMENTATIONS["vectors"](),
]


@pytest.mark.parametrize("method", METHODS, ids=[type(method).__name__ for method in METHODS])
def test_methods_come_back_from_words(method: object) -> None:
    restored = from_words(words(method))
    assert type(restored) is type(method)
    assert words(restored) == words(method)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        "-" * 100_000 + "1",
        "",
        "VAT(",
        "print('x')",
        "__import__('os')",
        "VAT(weight=print('x'))",
        "VAT(weight=-1)",
        "OwnObjective(weight=1)",
    ],
)
def test_what_is_not_ours_does_not_come_back(text: str) -> None:
    assert from_words(text) is None


class Mine(Objective):
    """An objective as a user writes one: no dataclass, settings in attributes."""

    def __init__(self, k: Any) -> None:
        self.k = k
        self.calls_ = 0

    def prepare(self, network: nn.Module, x: Tensor, augment: Augmentation, **_: Any) -> Consistency:
        self.calls_ += 1
        return Consistency(x, None, x.new_ones(len(x)))

    def per_sample(self, logits: Tensor, consistency: Consistency) -> Tensor:
        return self.k * logits.softmax(-1).amax(-1)


class Changed(Mine):
    def per_sample(self, logits: Tensor, consistency: Consistency) -> Tensor:
        return super().per_sample(logits, consistency) + 1


def renamed(kind: type, name: str) -> Any:
    kind.__name__ = kind.__qualname__ = name
    return kind


def same_name_other_code() -> tuple[type, type]:
    class First(Mine):
        @property
        def scale(self) -> int:
            return 1

    class Second(Mine):
        @property
        def scale(self) -> int:
            return 2

    return renamed(First, "Same"), renamed(Second, "Same")


class MyUncertainty(PoolUncertainty):
    def __init__(self, level: float) -> None:
        self.level = level

    def uncertainty_of(self, pool: PoolView) -> Tensor:
        return torch.full((len(pool.unlabeled),), self.level)


class MyRobust(Robust):
    def __init__(self, level: float) -> None:
        self.level = level


@dataclass(kw_only=True, eq=False)
class Gathering(MyRobust):
    """What it gathers is not in its repr, as in ours."""

    level: float = 0.5
    gathered: list[float] = field(default_factory=list, repr=False)


def narrow(shape: tuple[int, ...]) -> nn.Module:
    return nn.Linear(*shape, 1)


def wide(shape: tuple[int, ...]) -> nn.Module:
    return nn.Sequential(nn.Linear(*shape, 9), nn.ReLU(), nn.Linear(9, 1))


wide.__name__ = wide.__qualname__ = "narrow"


NOISES = Augmentation(lambda x: x, lambda x: -x)


def closing(held: object) -> Augmentation:
    return Augmentation(lambda x: (held, x)[1])


def level_of(level: float) -> Callable[[PoolView], Any]:
    return lambda pool: [level] * len(pool.unlabeled)


class OwnNetwork(nn.Module):
    def __init__(self, slope: float) -> None:
        super().__init__()
        self.last, self.slope = nn.Linear(2, 2), slope
        nn.init.ones_(self.last.weight)

    def forward(self, x: Tensor) -> Tensor:
        self.kept = self.slope * x
        return self.last(self.kept)


OWN: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
    "attributes": (lambda: Mine(1.0), lambda: Mine(-50.0)),
    "attributes that are arrays": (lambda: Mine(np.zeros(2000)), lambda: Mine(np.r_[np.zeros(1000), 1, np.zeros(999)])),
    "attributes that are tensors": (lambda: Mine(torch.zeros(2)), lambda: Mine(torch.ones(2))),
    "attributes that are paths": (lambda: Mine(Path("a")), lambda: Mine(Path("b"))),
    "attributes of attributes": (lambda: Mine(Turned(1.0)), lambda: Mine(Turned(-1.0))),
    "functions in attributes": (lambda: Mine(lambda x: x), lambda: Mine(lambda x: -x)),
    "code of methods": (lambda: same_name_other_code()[0](1.0), lambda: same_name_other_code()[1](1.0)),
    "inheritance": (lambda: Mine(1.0), lambda: Changed(1.0)),
    "own robust methods": (lambda: MyRobust(0.1), lambda: MyRobust(0.2)),
    "own estimators inside ours": (
        lambda: ByUncertainty(uncertainty=MyUncertainty(0.1)),
        lambda: ByUncertainty(uncertainty=MyUncertainty(0.2)),
    ),
    "functions inside ours": (
        lambda: ByUncertainty(uncertainty=LabeledAgainstUnlabeled(network=narrow)),
        lambda: ByUncertainty(uncertainty=LabeledAgainstUnlabeled(network=wide)),
    ),
    "functions of a pool": (
        lambda: ByUncertainty(uncertainty=level_of(0.1)),
        lambda: ByUncertainty(uncertainty=level_of(0.2)),
    ),
    "functions of ours in closures": (lambda: closing(as_augmentation), lambda: closing(image_augmentation)),
    "methods of an object in closures": (lambda: closing(NOISES.weak), lambda: closing(NOISES.strong)),
    "functions inside ours in closures": (
        lambda: closing(Augmentation(lambda x: x)),
        lambda: closing(Augmentation(lambda x: -x)),
    ),
    "layers of one's own": (lambda: OwnNetwork(0.1), lambda: OwnNetwork(0.2)),
}


@pytest.mark.parametrize("what", OWN)
def test_methods_of_ones_own_are_known_by(what: str) -> None:
    first, other = OWN[what]
    assert words(first()) == words(first())
    assert words(first()) != words(other())
    assert from_words(words(first())) is None


def test_what_is_learnt_or_only_watches_is_not_counted() -> None:
    used = Mine(1.0)
    used.calls_ = 7
    assert words(used) == words(Mine(1.0))
    assert words(Gathering(gathered=[1.0])) == words(Gathering())
    assert words(Gathering(level=0.1)) != words(Gathering())
    network, shown = OwnNetwork(0.1), OwnNetwork(0.1)
    shown(torch.ones(3, 2))
    assert words(network) == words(shown.eval())
    watched = LabeledAgainstUnlabeled(progress=lambda done, total: None)
    assert words(ByUncertainty(uncertainty=watched)) == words(ByUncertainty(uncertainty=LabeledAgainstUnlabeled()))


def test_sets_and_loops_do_not_matter() -> None:
    assert words(Mine({"a", "b", "c"})) == words(Mine({"c", "b", "a"}))
    assert words(Mine({"a"})) != words(Mine({"b"}))
    loop: list[Any] = [1]
    loop.append(loop)
    mine = Mine(loop)
    mine.itself = mine  # type: ignore[attr-defined]
    assert words(mine) == words(mine)


SCRIPT = """
from dataclasses import dataclass, field
from evidentia.semisup.objectives import VAT
from evidentia.semisup.training.words import words

@dataclass(kw_only=True, eq=False)
class Mine(VAT):
    names: set = field(default_factory=lambda: {"one", "two", "three", "four"})
    groups: list = field(default_factory=lambda: [({"nine", "eight"},), {"at": frozenset({"eleven", "ten"})}])
    table = {"names": {"five", "six", "seven"}, "function": lambda x: x}

    def start(self, network):
        super().start(network)
        return "x" in {"five", "six", "seven"}

print(words(Mine()))
"""


def test_methods_of_ones_own_are_known_in_another_process() -> None:
    # Sets and addresses are in another order, and elsewhere, in every process.
    shown = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert shown[0] == shown[1]
    assert "names={'four', 'one', 'three', 'two'}" in shown[0]
    assert "groups=[({'eight', 'nine'},), {'at': {'eleven', 'ten'}}]" in shown[0]


@pytest.mark.parametrize("what", ["objective", "robust"])
def test_a_run_does_not_go_on_with_another_method_of_ones_own(what: str, tmp_path: Path) -> None:
    kept = tmp_path / "run.safetensors"

    def run(value: float) -> SemiSupervisedClassifier:
        own: dict[str, Any] = {"objective": Mine(1.0), "robust": "none"}
        own |= (
            {"objective": Mine(value)}
            if what == "objective"
            else {"robust": ByUncertainty(uncertainty=level_of(value))}
        )
        return SemiSupervisedClassifier(**own, checkpoint=kept, **QUICK)

    clf = run(0.5)
    weights = clf.fit(DATA).weights_
    assert torch.equal(run(0.5).fit(DATA).weights_, weights)
    # The same objects, which training has changed, are of the same run.
    assert torch.equal(clf.fit(DATA).weights_, weights)
    with pytest.raises(EvidentiaError, match=rf"other settings \({what}\)"):
        run(0.9).fit(DATA)


def test_a_method_of_ones_own_never_comes_back_as_ours(tmp_path: Path) -> None:
    objective = renamed(type("Renamed", (Mine,), {}), "VAT")(1.0)
    estimator = renamed(type("Renamed", (MyUncertainty,), {}), "Confidence")(0.5)
    clf = SemiSupervisedClassifier(objective, ByUncertainty(uncertainty=estimator), **QUICK).fit(DATA)
    clf.save(tmp_path / "clf.safetensors")
    loaded = SemiSupervisedClassifier.load(tmp_path / "clf.safetensors")
    for name, start in (("objective", "VAT(weight="), ("robust", "ByUncertainty(apply=None")):
        assert not hasattr(loaded, name)
        assert loaded.trained_by_[name].startswith(start)


def test_ours_comes_back_if_one_of_the_same_name_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    own = renamed(type("Renamed", (Mine,), {}), "VAT")
    monkeypatch.setitem(OBJECTIVES._entries, "my-vat", own)
    assert type(from_words("VAT(weight=0.1)")) is OBJECTIVES["vat"]
