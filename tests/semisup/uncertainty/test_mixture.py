"""A pool as a mixture: its share in distribution, and the chance of every sample."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch.distributions import Normal

from evidentia.semisup.uncertainty.mixture import chance_in_distribution, share_in_distribution

scores = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30)


def drawn(mean: float, count: int, seed: int) -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    return mean + torch.randn(count, generator=rng, dtype=torch.float64)


@given(labeled=scores, pool=scores)
@example(labeled=[0.0, -1e-204], pool=[0.0, 0.0])
@example(labeled=[0.0, -2.9e-70], pool=[0.0, 0.0])
def test_chances_lie_between_0_and_1_and_never_rise_with_the_score(labeled: list[float], pool: list[float]) -> None:
    marks, s = (torch.tensor(values, dtype=torch.float64) for values in (labeled, sorted(pool)))
    chances = chance_in_distribution(s, marks)
    assert bool(((chances >= 0) & (chances <= 1)).all())
    assert bool((chances.diff() <= 1e-12).all())
    assert bool((chances[s < torch.quantile(marks, 0.5)] == 1).all())
    assert 0 <= share_in_distribution(s, marks) <= 1


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 1.0])
def test_the_share_of_a_mixture_that_can_be_told_apart(share: float) -> None:
    inside = round(20_000 * share)
    pool = torch.cat([drawn(0, inside, 1), drawn(9, 20_000 - inside, 2)])
    assert share_in_distribution(pool, drawn(0, 2000, 3)) == pytest.approx(share, rel=0.1)


def test_chances_are_those_of_bayes_for_normal_scores() -> None:
    pool = torch.cat([drawn(0, 50_000, 1), drawn(3, 50_000, 2)])
    chances = chance_in_distribution(pool, drawn(0, 5000, 3))
    inside, outside = (Normal(mean, torch.tensor(1.0)).log_prob(pool).exp() for mean in (0.0, 3.0))
    exact = inside / (inside + outside)
    # Below the labeled samples' median the chance is 1 by definition, and kernels blur the rest a little.
    right = pool > 0.5
    assert float((chances - exact)[right].abs().mean()) < 0.04


def test_what_is_unusual_of_its_kind_is_kept_where_nothing_else_is() -> None:
    pool = torch.cat([drawn(0, 5000, 1), drawn(12, 15_000, 2)])
    chances = chance_in_distribution(pool, drawn(0, 100, 3))
    assert float(chances[:5000].mean()) > 0.9
    assert float(chances[5000:].mean()) < 0.01


def test_a_clean_pool_is_kept_whole_by_nearly_all_draws_of_labels() -> None:
    pool = drawn(0, 5000, 1)
    kept = [float(chance_in_distribution(pool, drawn(0, 100, seed)).mean()) for seed in range(2, 102)]
    # One draw of twenty differs from the pool by more than is put down to chance.
    assert sum(share > 0.99 for share in kept) > 90
    assert min(kept) > 0.5


@pytest.mark.parametrize("labels", [40, 100])
def test_a_pool_that_is_a_quarter_ood_does_not_pass_for_clean(labels: int) -> None:
    pool = torch.cat([drawn(0, 3000, 1), drawn(6, 1000, 2)])
    for seed in range(3, 23):
        marks = drawn(0, labels, seed)
        assert share_in_distribution(pool, marks, doubt=3.0) < 1
        assert float(chance_in_distribution(pool, marks)[3000:].mean()) < 0.1


def test_few_labels_give_no_pool_the_benefit_of_the_doubt() -> None:
    pool = torch.cat([drawn(0, 3000, 1), drawn(6, 1000, 2)])
    marks = drawn(0, 6, 3)
    assert share_in_distribution(pool, marks, doubt=3.0) == 1
    assert float(chance_in_distribution(pool, marks)[3000:].mean()) < 0.1


def test_a_few_samples_far_from_all_labeled_ones_are_thrown_out_of_a_clean_pool() -> None:
    pool = torch.cat([drawn(0, 4950, 1), drawn(12, 50, 2)])
    chances = torch.stack([chance_in_distribution(pool, drawn(0, 100, seed)) for seed in range(2, 102)])
    assert int((chances[:, :4950].mean(1) > 0.99).sum()) > 85
    assert float(chances[:, 4950:].max()) < 0.01


@given(labeled=scores, pool=scores, doubt=st.floats(0, 5))
def test_doubt_never_lowers_the_share(labeled: list[float], pool: list[float], doubt: float) -> None:
    s, marks = (torch.tensor(values, dtype=torch.float64) for values in (pool, labeled))
    assert share_in_distribution(s, marks) <= share_in_distribution(s, marks, doubt) <= 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_neither_scale_nor_place_matter(dtype: torch.dtype) -> None:
    pool, marks = torch.cat([drawn(0, 300, 1), drawn(6, 300, 2)]).to(dtype), drawn(0, 50, 3).to(dtype)
    chances = chance_in_distribution(pool, marks)
    for scale, place in ((1e-3, 0.0), (1e3, 0.0), (1.0, 5.0)):
        moved = chance_in_distribution(scale * pool + place, scale * marks + place)
        torch.testing.assert_close(moved, chances, atol=1e-3 if dtype == torch.float64 else 2e-2, rtol=0)


def test_scores_that_are_all_alike_are_a_step() -> None:
    marks = torch.zeros(10, dtype=torch.float64)
    pool = torch.tensor([-1.0, 0.0, 0.0, 5.0, math.inf], dtype=torch.float64)
    assert chance_in_distribution(pool[:4], marks).round(decimals=2).tolist() == pytest.approx([1, 1, 1, 0], abs=0.5)
