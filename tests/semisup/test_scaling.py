"""Samples of any scale: standardised on request, and warned of otherwise."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from evidentia import EvidentiaError
from evidentia.semisup import SemiSupervisedClassifier, load_pool
from evidentia.semisup.inputs.form import InputForm
from evidentia.semisup.inputs.scaling import Scale, warn_of_scale

QUICK: dict[str, Any] = {"updates": 5, "progress": False}
FACTORS = torch.tensor([1e4, 1e-4])


def moons(updates: int = 5, *, scale: Tensor | float = 1.0, shift: float = 0.0, **options: Any) -> tuple[Any, float]:
    """A classifier of two moons in another scale, and its accuracy."""
    data = load_pool("two-moons", unlabeled=500)
    x_labeled, pool, test = (x * scale + shift for x in (data.x_labeled, data.x_unlabeled, data.x_test))
    clf = SemiSupervisedClassifier("pi-model", "none", updates=updates, progress=False, **options)
    clf.fit((x_labeled, data.y_labeled), pool)
    return clf, float((clf.predict(test).labels == data.y_test).double().mean())


@pytest.mark.parametrize(("scale", "shift"), [(1e4, 0.0), (1e-4, 0.0), (FACTORS, 0.0), (1.0, 1e3)])
def test_standardised_samples_of_any_scale_are_learnt(scale: Tensor | float, shift: float) -> None:
    assert moons(200, scale=scale, shift=shift, standardise=True)[1] > 0.9


@pytest.mark.parametrize(
    ("scale", "shift", "told"),
    [
        (1e4, 0.0, r"size 8\.8e\+03.*vary by 7\.6e\+03"),
        (1e-4, 0.0, "vary by 7.6e-05"),
        (1e-3, 1.0, "size 1 .*vary by 0.00076"),
        (1.0, 100.0, r"size 1e\+02"),
    ],
)
def test_a_scale_far_from_1_is_told_once(scale: float, shift: float, told: str) -> None:
    with pytest.warns(UserWarning, match=rf"{told}.*standardise=True") as caught:
        moons(scale=scale, shift=shift)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_usual_scales_are_left_alone() -> None:
    draw = torch.Generator().manual_seed(0)
    bytes_of_images = torch.randint(0, 256, (20, 3, 12, 12), generator=draw) / 255
    # Most pixels of digits are 0, as most entries of one-hot vectors are.
    strokes = torch.rand(20, 1, 28, 28, generator=draw) * (torch.rand(20, 1, 28, 28, generator=draw) < 0.2)
    one_hot = nn.functional.one_hot(torch.arange(50)).float()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (bytes_of_images, strokes, one_hot, torch.zeros(5, 3), torch.ones(1, 4), torch.randn(20, 4)):
            warn_of_scale(x)
        for name in ("two-moons", "digits"):
            for seed in range(5):
                warn_of_scale(load_pool(name, seed=seed).x_labeled)


def test_statistics_are_of_labeled_samples_and_of_the_pool_where_they_are_all_alike() -> None:
    labeled, pool = (torch.randn(n, 3, dtype=torch.float64) * 100 + 7 for n in (20, 5000))
    labeled[:, 2] = 0.1
    pool[0] = -9999
    scale = Scale.of(labeled, pool)
    mean, deviation = (torch.cat([own[:2], pools[2:]]) for own, pools in zip(_both(labeled), _both(pool), strict=True))
    torch.testing.assert_close(scale.mean[0], mean)
    torch.testing.assert_close(scale.deviation[0], deviation)


def _both(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.mean(0), x.std(0, correction=0)


@pytest.mark.parametrize("robust", ["uncertainty", "oracle"])
def test_a_dirty_pool_does_not_set_the_scale(robust: str) -> None:
    data = load_pool("two-moons", ood="faraway", ratio=0.5, unlabeled=500)
    pool = data.x_unlabeled.clone()
    assert data.is_ood is not None
    pool[data.is_ood.nonzero()[0]] = -9999
    clf = SemiSupervisedClassifier("pi-model", robust, standardise=True, updates=200, progress=False)
    clf.fit((data.x_labeled, data.y_labeled), pool, is_ood=data.is_ood)
    assert clf.score(data.x_test, data.y_test) > 0.95


def test_images_are_standardised_by_channel_and_constants_only_centred() -> None:
    x = torch.rand(20, 3, 12, 12) * torch.tensor([1.0, 50.0, 0.0])[:, None, None] + 0.1
    found = Scale.of(x, x).applied(x)
    torch.testing.assert_close(found.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(found.std((0, 2, 3), correction=0), torch.tensor([1.0, 1.0, 0.0]))


@pytest.mark.parametrize("shape", [(3,), (12, 12), (1, 12, 12)])
def test_what_is_predicted_is_standardised_too(shape: tuple[int, ...], tmp_path: Path) -> None:
    x, y = torch.rand(20, *shape) * 1e4, torch.arange(8) % 2
    clf = SemiSupervisedClassifier("pi-model", "none", standardise=True, **QUICK, unlabeled_batch=10)
    clf.fit((x[:8], y), x, (x[8:12], y[:4]))
    seen = torch.cat(list(clf._form.batches(x, 7, clf.network_)))
    assert bool(seen.abs().max() < 5)
    with torch.no_grad():
        torch.testing.assert_close(clf.predict(x).probs, clf.network_(seen).softmax(-1))
    clf.save(tmp_path / "clf.safetensors")
    loaded = SemiSupervisedClassifier.load(tmp_path / "clf.safetensors")
    assert loaded.standardise
    assert torch.equal(loaded.predict(x).probs, clf.predict(x).probs)


def test_a_standardised_run_is_another_run(tmp_path: Path) -> None:
    file = tmp_path / "run.safetensors"
    clf, _ = moons(standardise=True, checkpoint=file)
    again, _ = moons(standardise=True, checkpoint=file)
    assert torch.equal(again.weights_, clf.weights_)
    with pytest.raises(EvidentiaError, match=r"other settings \(data, standardise\)"):
        moons(checkpoint=file)


def test_the_samples_themselves_are_left_as_they_are() -> None:
    x = torch.rand(20, 3) * 1e4
    kept = x.clone()
    form = InputForm.of((3,), None)
    clf = SemiSupervisedClassifier("pi-model", "none", standardise=True, **QUICK, unlabeled_batch=10)
    clf.fit((x[:8], torch.arange(8) % 2), x).predict(x)
    assert torch.equal(x, kept)
    assert form.scale is None


def test_channels_last_are_not_standardised_as_channels() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(432, 2))
    clf = SemiSupervisedClassifier("pi-model", "none", network, "none", norm="none", standardise=True, **QUICK)
    with pytest.raises(EvidentiaError, match="channels last"):
        clf.fit((torch.rand(4, 12, 12, 3), [0, 1, 0, 1]), torch.rand(300, 12, 12, 3))
