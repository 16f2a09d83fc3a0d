"""Methods in words: equal for equal ones, different for different ones, and back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
    Augmentation,
    ByUncertainty,
    KernelEvidence,
    Meta,
    SemiSupervisedClassifier,
    WeightRegulariser,
    two_moons,
)
from evidentia.semisup.augmentation import Change
from evidentia.semisup.words import from_words, words

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
