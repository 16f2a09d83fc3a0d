"""Binomial opinions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch.distributions import Beta

from evidentia import BinomialOpinion, EvidentiaError, MultinomialOpinion

AMOUNT = st.one_of(st.just(0.0), st.floats(-30, 30).map(lambda x: 10**x))
DTYPES = st.sampled_from([torch.float32, torch.float64])


@given(AMOUNT, AMOUNT, st.floats(0, 1), DTYPES)
def test_masses_and_round_trips(positive, negative, base_rate, dtype):
    eps = torch.finfo(dtype).eps
    r, s, a = (torch.tensor(x, dtype=dtype) for x in (positive, negative, base_rate))
    w = BinomialOpinion.from_evidence(r, s, a)
    masses = torch.stack([w.belief, w.disbelief, w.vacuity])
    assert torch.isfinite(masses).all()
    assert (masses >= 0).all()
    assert w.dtype == dtype
    assert float(masses.double().sum()) == pytest.approx(1, abs=8 * eps)
    # Evidence 1e38 times smaller than the sum of all is below the smallest float32.
    lost = float(w.strength) * torch.finfo(dtype).tiny
    torch.testing.assert_close(w.positive_evidence, r, rtol=8 * eps, atol=lost)
    torch.testing.assert_close(w.negative_evidence, s, rtol=8 * eps, atol=lost)
    torch.testing.assert_close(w.alpha, r + 2 * a, rtol=8 * eps, atol=lost)
    torch.testing.assert_close(w.beta, s + 2 * (1 - a), rtol=8 * eps, atol=lost)
    torch.testing.assert_close(w.projected, w.alpha / (w.alpha + w.beta), rtol=16 * eps, atol=0)
    assert BinomialOpinion(**w.numpy()).allclose(w, rtol=0, atol=0)
    assert BinomialOpinion.from_beta(w.alpha, w.beta, a).allclose(w, rtol=16 * eps, atol=16 * eps)
    if 1e-6 < base_rate < 1 - 1e-6:
        torch.testing.assert_close(w.distribution().mean, w.projected, rtol=16 * eps, atol=0)


@given(AMOUNT, AMOUNT, DTYPES)
def test_distribution_round_trip(positive, negative, dtype):
    w = BinomialOpinion.from_evidence(torch.tensor(positive, dtype=dtype), torch.tensor(negative, dtype=dtype))
    eps = torch.finfo(dtype).eps
    assert BinomialOpinion.from_distribution(w.distribution()).allclose(w, rtol=16 * eps, atol=16 * eps)


@given(AMOUNT, AMOUNT, st.floats(0, 1), DTYPES)
def test_two_classes_are_the_same_thing(positive, negative, base_rate, dtype):
    r, s, a = (torch.tensor(x, dtype=dtype) for x in (positive, negative, base_rate))
    w = BinomialOpinion.from_evidence(r, s, a)
    two = w.to_multinomial()
    assert torch.equal(two.belief, torch.stack([w.disbelief, w.belief]))
    assert torch.equal(two.projected[1], w.projected)
    assert torch.equal(two.alpha, torch.stack([w.beta, w.alpha]))
    assert BinomialOpinion.from_multinomial(two).allclose(w, rtol=0, atol=0)


def test_against_scipy():
    alpha, beta = np.random.default_rng(0).uniform(1, 50, size=(2, 30))
    w = BinomialOpinion.from_beta(alpha, beta)
    reference = scipy.stats.beta(alpha, beta)
    np.testing.assert_allclose(w.projected, reference.mean(), rtol=1e-12)
    np.testing.assert_allclose(w.distribution().variance, reference.var(), rtol=1e-10)


def test_fields_broadcast():
    w = BinomialOpinion(torch.tensor([[0.2], [0.3]]), 0.1, torch.tensor([[0.7], [0.6]]), torch.tensor([0.1, 0.5, 0.9]))
    assert w.shape == (2, 3)
    torch.testing.assert_close(w.projected[1], torch.tensor([0.36, 0.6, 0.84]))


def test_dogmatic():
    w = BinomialOpinion(1.0, 0.0, 0.0)
    assert float(w.positive_evidence) == torch.inf
    assert float(w.negative_evidence) == 0
    assert float(w.beta) == 1
    with pytest.raises(EvidentiaError, match=r"dogmatic.*no Beta"):
        w.distribution()


def test_gradients():
    def fields(r, s, a):
        w = BinomialOpinion.from_evidence(r, s, a, validate=False)
        return w.belief, w.disbelief, w.vacuity, w.projected, w.alpha, w.beta

    evidence = [torch.rand(3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    assert gradcheck(fields, evidence)


def test_gradient_of_alpha_where_there_is_no_evidence():
    r = torch.zeros((), requires_grad=True)
    BinomialOpinion.from_evidence(r, torch.tensor(3.0)).alpha.backward()
    assert float(r.grad) == pytest.approx(1)


def test_repr():
    assert repr(BinomialOpinion(0.6, 0.2, 0.2)) == (
        "BinomialOpinion(belief=0.6, disbelief=0.2, vacuity=0.2, base_rate=0.5)"
    )
    assert repr(BinomialOpinion.from_evidence([0.0, 6.0], [0.0, 2.0])) == (
        "BinomialOpinion(shape=(2,), vacuity=0.2..1, dtype=float32)"
    )


@pytest.mark.parametrize(
    ("masses", "words"),
    [
        ((0.5, 0.2, 0.2), r"belief, disbelief and vacuity must add up to 1.*0\.9"),
        ((-0.1, 0.6, 0.5), r"belief must lie in \[0, 1\].*-0\.1"),
        ((0.6, -0.1, 0.5), r"disbelief must lie in \[0, 1\].*-0\.1"),
        ((0.6, 0.5, -0.1), r"vacuity must lie in \[0, 1\].*-0\.1"),
        ((float("nan"), 0.5, 0.5), "belief must be finite.*NaN"),
        ((0.2, 0.3, 0.5, 1.5), r"base_rate must lie in \[0, 1\].*1\.5"),
        ((0.2, 0.3, 0.5, -0.5), r"base_rate must lie in \[0, 1\].*-0\.5"),
        ((0.2, 0.3, 0.5, 0.5, 0.0), "prior_weight must be a number, more than 0, got 0"),
        (([0.2, 0.2], [0.3, 0.3, 0.3], 0.5), r"do not broadcast: belief \(2,\), disbelief \(3,\)"),
        (("b", 0.5, 0.5), "belief must be a tensor.*str"),
    ],
)
def test_bad_masses(masses, words):
    with pytest.raises(EvidentiaError, match=words):
        BinomialOpinion(*masses)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((-1.0, 2.0), "positive evidence must be at least 0.*-1"),
        ((1.0, -2.0), "negative evidence must be at least 0.*-2"),
        ((float("nan"), 2.0), "positive evidence must be finite"),
        ((1.0, float("inf")), "negative evidence must be finite"),
        ((torch.tensor(3e38), 3e38), "sum of the evidence must be finite"),
        ((1.0, 2.0, 2.0), r"base_rate must lie in \[0, 1\]"),
        ((1.0, 2.0, 0.5, -2.0), "prior_weight must be a number, more than 0, got -2"),
        ((1.0, 2.0, 0.5, "two"), "prior_weight must be a number, more than 0, got 'two'"),
        (([1.0, 2.0], [1.0, 2.0, 3.0]), "do not broadcast"),
    ],
)
def test_bad_evidence(arguments, words):
    with pytest.raises(EvidentiaError, match=words):
        BinomialOpinion.from_evidence(*arguments)


def test_bad_beta():
    with pytest.raises(EvidentiaError, match=r"every alpha must be at least.*0\.5 below"):
        BinomialOpinion.from_beta(0.5, 2.0)
    with pytest.raises(EvidentiaError, match="every beta must be at least"):
        BinomialOpinion.from_distribution(Beta(torch.tensor(2.0), torch.tensor(0.5)))
    with pytest.raises(EvidentiaError, match="finite"):
        BinomialOpinion.from_beta(float("nan"), 2.0)


def test_from_multinomial_needs_two_classes():
    with pytest.raises(EvidentiaError, match="needs 2 classes, got 3"):
        BinomialOpinion.from_multinomial(MultinomialOpinion.vacuous(3))


def test_numbers_keep_their_digits_beside_float64():
    w = BinomialOpinion(torch.tensor(0.1, dtype=torch.float64), 0.7, 0.2, base_rate=0.3)
    assert w.dtype == torch.float64
    assert [float(x) for x in (w.disbelief, w.vacuity, w.base_rate)] == [0.7, 0.2, 0.3]
    e = torch.tensor(1.0, dtype=torch.float64)
    assert float(BinomialOpinion.from_evidence(e, 0.1, 0.3).base_rate) == 0.3
    assert float(BinomialOpinion.from_beta(2 * e, 2.1, 0.3).base_rate) == 0.3
    assert MultinomialOpinion(e.expand(2) * 0.4, 0.2, [0.3, 0.7]).base_rate.tolist() == [0.3, 0.7]


def test_validation_off():
    w = BinomialOpinion(0.5, 0.5, 0.5, validate=False)
    assert float(w.vacuity) == 0.5


def test_a_distribution_below_the_prior_needs_a_smaller_prior_weight():
    jeffreys = Beta(torch.tensor(0.5), torch.tensor(0.5))
    with pytest.raises(EvidentiaError, match="pass a smaller prior_weight"):
        BinomialOpinion.from_distribution(jeffreys)
    assert float(BinomialOpinion.from_distribution(jeffreys, prior_weight=1.0).vacuity) == 1
