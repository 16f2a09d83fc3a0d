"""Selective prediction: the definition by brute force over tie orders, and its laws."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from evidentia import EvidentiaError
from evidentia.evaluation import aurc, excess_aurc, risk_coverage, selective_risk

ZERO_ONE = st.sampled_from([0.0, 1.0])


@st.composite
def problems(draw, losses=ZERO_ONE, max_size=40):
    size = draw(st.integers(1, max_size))
    values = draw(st.sampled_from([st.integers(0, 3).map(float), st.floats(-1e30, 1e30)]))
    return (
        draw(hnp.arrays(np.float64, size, elements=values)),
        draw(hnp.arrays(np.float64, size, elements=losses)),
    )


@given(problems(max_size=5))
def test_risk_is_the_mean_over_all_orders_within_ties(problem):
    uncertainty, errors = problem
    size = len(errors)
    orders = [order for order in map(list, permutations(range(size))) if np.all(np.diff(uncertainty[order]) >= 0)]
    risks = [np.cumsum(errors[order]) / np.arange(1, size + 1) for order in orders]
    curve = risk_coverage(uncertainty, errors)
    np.testing.assert_allclose(curve.risk, np.mean(risks, axis=0), atol=1e-12)
    np.testing.assert_array_equal(curve.coverage, np.arange(1, size + 1) / size)
    np.testing.assert_array_equal(curve.thresholds, np.sort(uncertainty))


@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_samples_does_not_matter(problem, random):
    uncertainty, errors = problem
    order = list(range(len(errors)))
    random.shuffle(order)
    here, there = risk_coverage(uncertainty, errors), risk_coverage(uncertainty[order], errors[order])
    for ours, theirs in zip(here, there, strict=True):
        assert torch.equal(ours, theirs)


@given(problems())
def test_full_coverage_has_the_plain_error_rate(problem):
    uncertainty, errors = problem
    assert float(selective_risk(uncertainty, errors, 1.0)) == pytest.approx(errors.mean(), abs=1e-15)


@given(problems(losses=st.floats(-10, 10)))
def test_no_order_beats_that_by_the_error_itself(problem):
    uncertainty, errors = problem
    assert float(excess_aurc(uncertainty, errors)) >= 0
    assert float(aurc(uncertainty, errors)) >= float(aurc(errors, errors)) - 1e-12


@given(hnp.arrays(np.int64, st.integers(1, 60), elements=st.integers(0, 1)))
def test_perfect_order_has_no_excess(errors):
    # Right samples first, all uncertainties distinct, so that the two curves arise in different ways.
    uncertainty = errors + np.arange(len(errors)) / 1000
    assert float(excess_aurc(uncertainty, errors)) == pytest.approx(0, abs=1e-15)


def test_a_wrong_order_has_excess():
    assert float(excess_aurc([0.9, 0.1], [0, 1])) > 0


@given(hnp.arrays(np.int64, st.integers(1, 60), elements=st.integers(0, 1)))
def test_constant_uncertainty_is_random_rejection(errors):
    curve = risk_coverage(np.zeros(len(errors)), errors)
    np.testing.assert_allclose(curve.risk, errors.mean(), atol=1e-15)
    assert float(aurc(np.zeros(len(errors)), errors)) == pytest.approx(errors.mean())


def test_known_areas():
    assert float(aurc([1, 2, 3, 4], [0, 0, 0, 1])) == 1 / 16
    assert float(aurc([4, 3, 2, 1], [0, 0, 0, 1])) == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)


def test_coverage_counts_samples_without_rounding_up_by_accident():
    # 0.07 * 100 is 7.000000000000001 in floating point: the eighth sample must stay out.
    errors = [0] * 7 + [1] * 93
    assert float(selective_risk(range(100), errors, 0.07)) == 0
    assert float(selective_risk(range(100), errors, 0.071)) == 1 / 8


def test_infinite_uncertainty_comes_last():
    assert risk_coverage([float("inf"), -float("inf")], [1, 0]).risk.tolist() == [0, 0.5]


@pytest.mark.parametrize("function", [risk_coverage, aurc, excess_aurc])
@pytest.mark.parametrize(
    ("uncertainty", "errors", "message"),
    [
        ([float("nan"), 1.0], [0, 1], "uncertainty must not be NaN, got 1 NaN among 2 entries"),
        ([0.0, 1.0], [0, float("inf")], "errors must be finite, got infinite values"),
        ([0.0, 1.0], [0, 1, 1], "uncertainty and errors must have the same length, got 2 and 3"),
        ([], [], "uncertainty must hold at least one sample"),
        ([[0.0, 1.0]], [0, 1], r"uncertainty must be a vector .*got shape \(1, 2\)"),
        ([0.0, 1.0], [[0, 1]], "uncertainty and errors must both be vectors"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(function, uncertainty, errors, message):
    with pytest.raises(EvidentiaError, match=message):
        function(uncertainty, errors)


@pytest.mark.parametrize("coverage", [0, 1.5, -1, float("nan")])
def test_an_impossible_coverage_is_refused(coverage):
    with pytest.raises(EvidentiaError, match="coverage must be a number, more than 0 and at most 1, got"):
        selective_risk([0.0, 1.0], [0, 1], coverage)
