"""What would fail in training is told in a sentence before it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from evidentia import EvidentiaError
from evidentia.semisup import MLP, VAT, Meta, SemiSupervisedClassifier, two_moons
from evidentia.semisup.tasks import check_task
from evidentia.semisup.training.checks import batches_of_one_told

QUICK: dict[str, Any] = {"updates": 2, "block": 1, "progress": False}
DATA = two_moons(unlabeled=30, validation=10)
LABELED = (DATA.x_labeled, DATA.y_labeled)


class Pair(nn.Linear):
    def forward(self, x: Tensor) -> Any:
        return super().forward(x), x


class Spectrum(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.spectrum, self.out = nn.Parameter(torch.ones(2, dtype=torch.complex64)), nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out((x * self.spectrum).real)


def frozen() -> nn.Module:
    return nn.Linear(2, 2).requires_grad_(False)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (Pair(2, 2), r"must give a tensor of logits, got tuple for inputs of shape \(2, 2\)"),
        (nn.Linear(5, 2), r"failed when it was shown inputs of shape \(2, 2\) and torch.float32: .*shape \(2,\)"),
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.Linear(2, 2)), "failed when it was shown"),
        (nn.Linear(2, 2).half(), r"\(Linear\) is of torch.float16.*give it in torch.float32"),
        (Spectrum(), r"\(Spectrum\) has complex parameters \(spectrum\).*join these by torch.view_as_complex"),
        (nn.Linear(2, 5), r"logits of shape \(n, 2\) for 2 classes, got shape \(2, 5\)"),
        (frozen(), r"all parameters of the network \(Linear\) are frozen"),
    ],
)
def test_a_network_that_cannot_be_trained(network: nn.Module, message: str) -> None:
    with pytest.raises(EvidentiaError, match=message):
        SemiSupervisedClassifier("pi-model", "none", network, norm="none", **QUICK).fit(LABELED, DATA.x_unlabeled)


@pytest.mark.parametrize(("setting", "given"), [("objective", VAT), ("robust", Meta), ("network", MLP)])
def test_a_class_in_place_of_a_method_or_a_network(setting: str, given: type) -> None:
    told = rf"{setting} was given the class {given.__name__}; write {setting}={given.__name__}\(\), with its settings"
    for build in (SemiSupervisedClassifier, partial(check_task, "two-moons")):
        with pytest.raises(EvidentiaError, match=told):
            build(**{setting: given})


@pytest.mark.parametrize("device", ["gpu", "cuda:99", "cpu:x", "meta"])
def test_a_device_that_is_not_there(device: str) -> None:
    with pytest.raises(EvidentiaError, match=rf"cannot be put on the device '{device}' \(.*; give one that this"):
        SemiSupervisedClassifier("pi-model", "none", device=device, **QUICK).fit(LABELED, DATA.x_unlabeled)


def test_options_that_fit_does_not_have() -> None:
    with pytest.raises(EvidentiaError, match="fit has no option 'nclasses'; it takes num_classes and class_names"):
        SemiSupervisedClassifier("pi-model", "none", **QUICK).fit(LABELED, DATA.x_unlabeled, nclasses=3)


@pytest.mark.parametrize("setting", ["checkpoint", "log", "tensorboard"])
def test_files_that_cannot_be_written(setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evidentia.semisup.estimator.build_network", lambda *_: pytest.fail("work has begun"))
    file = tmp_path / "file"
    file.touch()
    place, message = (file, "cannot be written") if setting == "tensorboard" else (tmp_path, "is a folder")
    with pytest.raises(EvidentiaError, match=message):
        SemiSupervisedClassifier("pi-model", "none", **{setting: place}, **QUICK).fit(LABELED, DATA.x_unlabeled)


@pytest.mark.parametrize(
    ("robust", "settings", "samples", "sizes"),
    [
        ("none", {}, 1, "6 labeled, 1 unlabeled and 6 clean"),
        ("none", {"unlabeled_batch": 1}, 30, "6 labeled, 1 unlabeled"),
        ("none", {"unlabeled_batch": 1, "passes": "separate"}, 30, "6 labeled, 1 unlabeled"),
        ("none", {"labeled_batch": 1, "passes": "separate"}, 30, "1 labeled, 30 unlabeled"),
        ("supervised", {"labeled_batch": 1}, 30, "1 labeled, 30 unlabeled"),
    ],
)
def test_batch_norm_of_one_sample(robust: str, settings: dict[str, Any], samples: int, sizes: str) -> None:
    with pytest.raises(EvidentiaError, match=f"cannot normalise a single sample, and training has batches of {sizes}"):
        SemiSupervisedClassifier("pi-model", robust, **settings, **QUICK).fit(LABELED, DATA.x_unlabeled[:samples])


def test_batch_norm_of_one_validation_sample() -> None:
    clean = (DATA.x_validation[:1], DATA.y_validation[:1])
    for settings in ({"passes": "separate"}, {"norm": "weighted"}):
        with pytest.raises(EvidentiaError, match="6 labeled, 30 unlabeled and 1 clean"):
            SemiSupervisedClassifier("pi-model", "meta", **settings, **QUICK).fit(LABELED, DATA.x_unlabeled, clean)


def test_batches_of_one_are_told_before_the_pool_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    clf = SemiSupervisedClassifier("pi-model", "uncertainty", unlabeled_batch=1, **QUICK)
    monkeypatch.setattr(clf.robust, "start", lambda pool: pytest.fail("the pool was looked at"))
    with pytest.raises(EvidentiaError, match="cannot normalise a single sample"):
        clf.fit(LABELED, DATA.x_unlabeled)


def test_batches_of_one_that_can_be_normalised_train_as_if_they_had_not_been_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def found() -> Tensor:
        clf = SemiSupervisedClassifier("mean-teacher", "meta", norm="weighted", unlabeled_batch=1, **QUICK)
        return clf.fit(LABELED, DATA.x_unlabeled).predict(DATA.x_test).probs

    tried = found()
    monkeypatch.setattr("evidentia.semisup.training.loop.Training._rehearse", lambda self: None)
    assert torch.equal(tried, found())


def test_other_errors_pass() -> None:
    with pytest.raises(ValueError, match="of another kind"), batches_of_one_told(1, 1, 1):
        raise ValueError("of another kind")
