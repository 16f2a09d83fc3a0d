"""The discriminator of labeled against unlabeled samples."""

from __future__ import annotations

import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from evidentia import EvidentiaError
from evidentia.evaluation import auroc
from evidentia.semisup import AUGMENTATIONS
from evidentia.semisup.data.by_name import load_pool
from evidentia.semisup.data.moons import two_moons
from evidentia.semisup.uncertainty import LabeledAgainstUnlabeled, PoolReport
from evidentia.semisup.uncertainty.discriminator import _folds
from evidentia.semisup.uncertainty.networks import Limits, Standardise

VECTORS = AUGMENTATIONS["vectors"]()


def estimated(data, augment=VECTORS, **options):
    estimator = LabeledAgainstUnlabeled(**options)
    labeled = (data.x_labeled, data.y_labeled)
    u = estimator.estimate(nn.Identity(), labeled, data.x_unlabeled, data.num_classes, augment)
    return u, estimator.report_


@given(classes=st.lists(st.integers(0, 4), min_size=2, max_size=40), count=st.integers(2, 5))
def test_folds_are_even_in_all_and_in_every_class(classes, count):
    groups = torch.tensor(classes)
    fold = _folds(groups, count)
    for part in [fold, *(fold[groups == group] for group in groups.unique())]:
        sizes = torch.bincount(part, minlength=count)
        assert int(sizes.max() - sizes.min()) <= 1


@pytest.mark.parametrize("seed", range(2))
def test_moons_faraway_with_six_labels(seed):
    data = two_moons("faraway", 0.5, seed=seed, unlabeled=500)
    u, report = estimated(data)
    assert float(auroc(u, data.is_ood)) > 0.95
    assert not report.suspicious
    assert report.ood_share == pytest.approx(0.5, abs=0.15)


def test_a_clean_pool_is_kept():
    data = two_moons(seed=0, unlabeled=500, labels_per_class=20)
    u, report = estimated(data)
    assert float(u.mean()) < 0.2
    assert report.ood_share < 0.15


@pytest.mark.parametrize(("kind", "least"), [("letters", 0.95), ("held-out", 0.75)])
def test_digits(kind, least):
    pytest.importorskip("sklearn")
    data = load_pool("digits", kind, 0.5, seed=0)
    u, _ = estimated(data, AUGMENTATIONS["images"](shift=1))
    assert float(auroc(u, data.is_ood)) > least


@pytest.mark.parametrize("kind", ["fashion", "mean"])
def test_mnist(real_data, kind):
    data = load_pool("mnist", kind, 0.5, seed=7, pool_size=2000, data_root=real_data)
    u, _ = estimated(data, AUGMENTATIONS["images"]())
    assert float(auroc(u, data.is_ood)) > 0.95


def test_no_sample_is_scored_by_a_network_that_learnt_from_it():
    seen: list[set[float]] = []

    class Recorder(nn.Module):
        """Remembers the samples of its training by their one entry, and is asked about others only."""

        def __init__(self, shape):
            super().__init__()
            self.linear, self.known, self.asked = nn.Linear(1, 1), set(), set()
            seen.append((self.known, self.asked))

        def forward(self, x):
            (self.known if self.training else self.asked).update(x.flatten().tolist())
            return self.linear(x)

    labeled, pool = torch.arange(10.0)[:, None], torch.arange(30.0, 60)[:, None]
    estimator = LabeledAgainstUnlabeled(network=Recorder, steps=40, repeats=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.estimate(nn.Identity(), (labeled, torch.arange(10) % 2), pool, 2, AUGMENTATIONS["none"]())
    assert len(seen) == 4
    for known, asked in seen:
        assert known.isdisjoint(asked)
        assert len(asked) == 20
    # In each repeat, everything is scored once.
    assert all(len(first[1] | second[1]) == 40 for first, second in (seen[:2], seen[2:]))


def test_a_labeled_set_that_is_no_random_draw_is_told():
    labeled, pool = torch.randn(40, 3), torch.randn(200, 3) + 9
    estimator = LabeledAgainstUnlabeled()
    with pytest.warns(UserWarning, match="no random draw"):
        estimator.estimate(nn.Identity(), (labeled, torch.arange(40) % 2), pool, 2, VECTORS)
    assert estimator.report_.suspicious
    assert estimator.report_.separation > 0.95
    assert not PoolReport(unlike=0.75, ood_share=0.74, separation=0.87).suspicious


def test_vectors_of_any_unit_and_constant_entries():
    data = two_moons("faraway", 0.5, unlabeled=300, labels_per_class=10)
    stretch = torch.tensor([1e4, 1e-4])

    def changed(x):
        return torch.cat([x * stretch + 7, torch.full((len(x), 1), 5.0)], 1)

    estimator = LabeledAgainstUnlabeled()
    labeled, pool = (changed(data.x_labeled), data.y_labeled), changed(data.x_unlabeled)
    u = estimator.estimate(nn.Identity(), labeled, pool, 2, AUGMENTATIONS["none"]())
    assert float(auroc(u, data.is_ood)) > 0.95


def test_standardised_samples_have_mean_0_and_deviation_1(dtype):
    x = 3 + 5 * torch.randn(50, 2, 6, 6, dtype=dtype)
    y = Standardise(x, Limits.of(x))(x)
    torch.testing.assert_close(y.mean((0, 2, 3)), torch.zeros(2, dtype=dtype), atol=1e-5, rtol=0)
    torch.testing.assert_close(y.std((0, 2, 3), correction=0), torch.ones(2, dtype=dtype))


def test_progress_and_repeats():
    told: list[tuple[int, int]] = []
    data = two_moons(unlabeled=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimated(data, steps=2, folds=3, progress=lambda done, total: told.append((done, total)))
    # Six labels: seven repeats of three folds.
    assert told == [(step, 42) for step in range(1, 43)]


def test_two_outputs_serve_as_one():
    data = two_moons(unlabeled=20, labels_per_class=20)
    u, _ = estimated(data, steps=2, network=lambda shape: nn.Linear(2, 2))
    assert u.shape == (20,)
    with pytest.raises(EvidentiaError, match="outputs of shape"):
        estimated(data, steps=2, network=lambda shape: nn.Linear(2, 3))


@pytest.mark.parametrize(
    "options", [{"folds": 1}, {"steps": 0}, {"batch_size": 0.5}, {"repeats": 0}, {"learning_rate": 0}, {"view": "both"}]
)
def test_bad_settings_are_refused(options):
    with pytest.raises(EvidentiaError, match=next(iter(options))):
        LabeledAgainstUnlabeled(**options)


def test_too_few_samples_and_a_network_that_diverges_are_told():
    few = two_moons(labels_per_class=1, unlabeled=20)
    with pytest.raises(EvidentiaError, match="4 in all, got 2"):
        estimated(few)
    data = two_moons(unlabeled=20)
    with pytest.raises(EvidentiaError, match="diverged"):
        estimated(data, steps=3, learning_rate=1e30)
    with pytest.raises(EvidentiaError, match="in the pool"):
        LabeledAgainstUnlabeled().estimate(
            nn.Identity(), (data.x_labeled, data.y_labeled), data.x_unlabeled[:1], 2, VECTORS
        )


@pytest.mark.parametrize("far", [(-9999.0, -9999.0), (0.0, -9999.0), (0.0, -30.0), (1e30, 0.0)])
def test_a_sample_far_beyond_all_labeled_ones_is_unlike_them_and_hides_no_other(far: tuple[float, float]) -> None:
    data = load_pool("two-moons", ood="faraway", ratio=0.5, unlabeled=500)
    pool, outside = data.x_unlabeled.clone(), data.is_ood
    assert outside is not None
    row = int(outside.nonzero()[0])
    pool[row] = torch.tensor(far)
    torch.manual_seed(0)
    augment = AUGMENTATIONS["vectors"]()
    u = LabeledAgainstUnlabeled().estimate(nn.Identity(), (data.x_labeled, data.y_labeled), pool, 2, augment)
    assert float(u[row]) == 1
    assert float(auroc(u, outside)) > 0.95


def test_classes_that_are_commoner_in_the_pool_than_among_the_labels_are_told():
    centres = torch.tensor([[0.0, 0.0], [6.0, 0.0]])
    classes = torch.arange(40) % 2
    common = torch.where(torch.rand(1000) < 0.85, 0, 1)
    labeled, pool = centres[classes] + torch.randn(40, 2), centres[common] + torch.randn(1000, 2)
    estimator = LabeledAgainstUnlabeled()
    with pytest.warns(UserWarning, match="most labeled samples of class 0 would be thrown out.*method 'meta'"):
        estimator.estimate(nn.Identity(), (labeled, classes), pool, 2, VECTORS)
    assert estimator.report_.misjudged == [0]

    loaded = LabeledAgainstUnlabeled()
    with pytest.warns(UserWarning, match="most labeled samples of class 0"):
        loaded.load_state_dict(estimator.state_dict())
    assert loaded.report_.misjudged == [0]
    assert loaded.report_.own_unlike == pytest.approx(estimator.report_.own_unlike)


@pytest.mark.parametrize("ood", ["faraway", "boundary"])
def test_pools_whose_classes_are_those_of_the_labels_are_not_suspected(ood):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, report = estimated(two_moons(ood, 0.5, unlabeled=500, labels_per_class=20))
    assert report.misjudged == []


def test_a_few_labels_of_a_class_say_nothing_of_it():
    x, y = torch.randn(24, 2), torch.tensor([0] * 4 + [1] * 20)
    x[:4] += 6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = LabeledAgainstUnlabeled()
        estimator.estimate(nn.Identity(), (x, y), torch.cat([torch.randn(100, 2) + 6, torch.randn(900, 2)]), 2, VECTORS)
    assert estimator.report_.own_unlike[0] == 0
