"""Kernel evidence of labeled features."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from evidentia import EvidentiaError, MultinomialOpinion
from evidentia.semisup import AUGMENTATIONS
from evidentia.semisup.uncertainty import KernelEvidence, kernel
from evidentia.semisup.uncertainty.kernel import kernel_evidence, median_bandwidth

NONE = AUGMENTATIONS["none"]()
dtypes = st.sampled_from([torch.float32, torch.float64])
seeds = st.integers(0, 2**32 - 1)


def points(seed: int, dtype: torch.dtype, count: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, 3, generator=generator, dtype=torch.float64).to(dtype), torch.arange(count) % 2


def uncertainty(x, labeled, classes, **options):
    # A network whose last hidden layer is the input.
    net = nn.Linear(3, 2).to(x.dtype)
    return KernelEvidence(**options).estimate(net, (labeled, classes), x, 2, NONE)


@given(seed=seeds, dtype=dtypes)
def test_the_formula_written_out(seed, dtype):
    labeled, classes = points(seed, dtype)
    x = points(seed + 1, dtype, 5)[0]
    expected = torch.zeros(5, 2, dtype=torch.float64)
    for j, i in ((j, i) for j in range(5) for i in range(8)):
        squared = sum((float(a) - float(b)) ** 2 for a, b in zip(x[j], labeled[i], strict=True))
        expected[j, classes[i]] += math.exp(-squared / (2 * 0.7**2))
    torch.testing.assert_close(kernel_evidence(x, labeled, classes, 2, 0.7), expected, atol=1e-9, rtol=1e-6)
    u = uncertainty(x, labeled, classes, bandwidth=0.7)
    torch.testing.assert_close(u.double(), MultinomialOpinion.from_evidence(expected).vacuity, atol=1e-6, rtol=1e-6)


@given(seed=seeds, dtype=dtypes, far=st.floats(50, 1e30))
def test_a_copy_of_a_labeled_sample_is_surer_than_anything_far_away_where_there_is_no_evidence(seed, dtype, far):
    labeled, classes = points(seed, dtype)
    near, away = (uncertainty(x, labeled, classes) for x in (labeled, labeled + far))
    assert bool((near <= 2 / 3 + 1e-6).all())
    assert bool((away > 0.999).all())


@given(seed=seeds, dtype=dtypes, steps=st.lists(st.floats(0, 20), min_size=2, max_size=6))
def test_it_rises_with_the_distance_from_one_labeled_sample(seed, dtype, steps):
    sample = points(seed, dtype, 1)[0]
    x = sample + torch.tensor(sorted(steps), dtype=dtype)[:, None]
    assert bool((uncertainty(x, sample, torch.tensor([0]), bandwidth=1.0).diff() >= 0).all())


@given(seed=seeds, scale=st.floats(1e-3, 1e3))
def test_the_unit_of_the_features_does_not_matter(seed, scale):
    labeled, classes = points(seed, torch.float64)
    x = points(seed + 1, torch.float64)[0]
    torch.testing.assert_close(uncertainty(x, labeled, classes), uncertainty(scale * x, scale * labeled, classes))


def test_the_bandwidth_is_the_median_distance_within_classes_and_of_all_pairs_without_such():
    labeled = torch.tensor([[0.0], [1.0], [3.0], [100.0]])
    assert median_bandwidth(labeled, torch.tensor([0, 0, 0, 1])) == 2
    assert median_bandwidth(labeled[:3], torch.tensor([0, 1, 2])) == 2
    assert median_bandwidth(labeled[:1], torch.tensor([0])) == 1
    # Copies have no scale, and no more than their own place is vouched for.
    assert 0 < median_bandwidth(torch.ones(3, 1), torch.zeros(3, dtype=torch.int64)) < 1e-6


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, math.inf, math.nan])
def test_bad_bandwidths_are_refused(bandwidth):
    with pytest.raises(EvidentiaError, match="bandwidth"):
        KernelEvidence(bandwidth=bandwidth)


def test_many_labeled_samples_are_compared_in_bounded_memory(monkeypatch):
    largest = []

    def watched(first, second):
        largest.append(len(first) * len(second))
        return torch.cdist(first, second)

    generator = torch.Generator().manual_seed(0)
    labeled, classes = torch.randn(6000, 2, generator=generator), torch.arange(6000) % 3
    monkeypatch.setattr(kernel, "_distances", watched)
    sigma = median_bandwidth(labeled, classes)
    # Distances of a normal pair in the plane are of a Rayleigh distribution.
    assert sigma == pytest.approx(math.sqrt(2 * math.log(4)), rel=0.02)
    # Two of each class: a choice of single rows would hardly hold a pair, and these are far closer than others.
    pairs = torch.arange(3000.0).repeat(2)[:, None]
    assert median_bandwidth(pairs + torch.arange(6000.0)[:, None] / 1e9, torch.arange(3000).repeat(2)) < 1
    monkeypatch.setattr(kernel, "_PAIRS", 60_000)
    few = kernel_evidence(labeled[:50], labeled, classes, 3)
    assert max(largest[-5:]) == 60_000
    assert max(largest) <= 4096**2
    monkeypatch.undo()
    torch.testing.assert_close(few, kernel_evidence(labeled[:50], labeled, classes, 3, sigma))
