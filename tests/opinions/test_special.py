"""The special functions against 60-digit arithmetic, from 1e-30 to 1e30."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch
from torch.autograd import gradcheck, gradgradcheck

from evidentia.opinions.special import (
    as_double,
    dirichlet_entropy,
    dirichlet_fisher_log_det,
    log_beta,
    quotient,
    scaled_digamma_gap,
    trigamma,
)

# Both sides of the switch between direct expression and series at 64, and far out.
ARGUMENTS = [1e-30, 1e-10, 1e-3, 0.3, 1.0, 2.5, 7.0, 31.7, 63.9, 64.0, 64.1, 65.0, 200.0, 1e4, 1e8, 1e15, 1e30]
PARAMETERS = [
    [1.0, 1.0],
    [0.5, 0.5, 3.0],
    [63.9, 64.1, 1.0, 2.0],
    [1e6, 1.0, 1.0],
    [1e10, 2e10],
    [1e30, 1.0, 5.0],
    [1e30] * 5,
    [1e-3, 1e3, 1e9],
]


def exact(function, *numbers):
    with mpmath.workdps(80):
        return float(function(*(mpmath.mpf(x) for x in numbers)))


def exact_gap(x):
    return x * (mpmath.digamma(x + 1) - mpmath.log(x))


def exact_log_beta(*alpha):
    return mpmath.fsum(mpmath.loggamma(a) for a in alpha) - mpmath.loggamma(mpmath.fsum(alpha))


def exact_entropy(*alpha):
    total = mpmath.fsum(alpha)
    return (
        exact_log_beta(*alpha)
        + (total - len(alpha)) * mpmath.digamma(total)
        - mpmath.fsum((a - 1) * mpmath.digamma(a) for a in alpha)
    )


def exact_fisher_log_det(*alpha):
    weights = [mpmath.psi(1, a) for a in alpha]
    of_sum = mpmath.psi(1, mpmath.fsum(alpha))
    return mpmath.fsum(map(mpmath.log, weights)) + mpmath.log(1 - of_sum * mpmath.fsum(1 / w for w in weights))


@pytest.mark.parametrize("x", ARGUMENTS)
@pytest.mark.parametrize(
    ("dtype", "bound"), [(torch.float64, 3e-13), (torch.float32, 2e-4)], ids=["float64", "float32"]
)
def test_scaled_digamma_gap(x, dtype, bound):
    given = torch.tensor(x, dtype=dtype)
    assert float(scaled_digamma_gap(given)) == pytest.approx(exact(exact_gap, float(given)), rel=bound)


def test_scaled_digamma_gap_limits(dtype):
    values = scaled_digamma_gap(torch.tensor([0.0, math.inf], dtype=dtype))
    assert values.tolist() == [0.0, 0.5]


def test_scaled_digamma_gap_rises_to_one_half():
    values = scaled_digamma_gap(torch.logspace(-30, 30, 2001, dtype=torch.float64))
    assert (values.diff() > -1e-13).all()
    assert ((values > 0) & (values <= 0.5)).all()


@pytest.mark.parametrize("alpha", PARAMETERS)
def test_dirichlet_entropy(alpha):
    # The result may be near 0, so the error is measured against the larger terms that it is made of.
    scale = max(1.0, len(alpha) * math.log(max(alpha)))
    ours = float(dirichlet_entropy(torch.tensor(alpha, dtype=torch.float64)))
    assert ours == pytest.approx(exact(exact_entropy, *alpha), rel=1e-12, abs=1e-13 * scale)


def test_dirichlet_entropy_in_float32():
    for alpha in PARAMETERS:
        given = torch.tensor(alpha)
        error = abs(float(dirichlet_entropy(given)) - exact(exact_entropy, *given.tolist()))
        assert error < 2e-5 * max(1.0, len(alpha) * math.log(max(alpha)), abs(float(dirichlet_entropy(given))))


def test_dirichlet_entropy_against_scipy():
    alpha = np.random.default_rng(0).uniform(0.2, 50, size=(40, 6))
    expected = [scipy.stats.dirichlet(row).entropy() for row in alpha]
    np.testing.assert_allclose(dirichlet_entropy(torch.from_numpy(alpha)), expected, rtol=1e-9)


@pytest.mark.parametrize("alpha", [[0.0, 1.0, 2.0], [math.inf, 1.0], [math.inf, math.inf], [0.0, 0.0]])
def test_dirichlet_entropy_of_a_collapsed_distribution(alpha, dtype):
    assert float(dirichlet_entropy(torch.tensor(alpha, dtype=dtype))) == -math.inf


def test_collapsed_rows_leave_the_others_alone():
    alpha = torch.tensor([[1.0, 0.0], [2.0, 3.0]], dtype=torch.float64)
    assert dirichlet_entropy(alpha)[1] == dirichlet_entropy(alpha[1])


@pytest.mark.parametrize("alpha", [[1.0, 1.0], [0.5, 0.5, 3.0], [200.0, 1e4], [1e-3, 1e3]])
def test_log_beta(alpha):
    ours = float(log_beta(torch.tensor(alpha, dtype=torch.float64)))
    assert ours == pytest.approx(exact(exact_log_beta, *alpha), rel=1e-11, abs=1e-11)


def test_log_beta_of_two_is_scipys_betaln():
    a, b = np.random.default_rng(0).uniform(0.1, 30, size=(2, 50))
    ours = log_beta(torch.from_numpy(np.stack([a, b], -1)))
    np.testing.assert_allclose(ours, scipy.special.betaln(a, b), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("alpha", PARAMETERS)
def test_dirichlet_fisher_log_det(alpha):
    ours = float(dirichlet_fisher_log_det(torch.tensor(alpha, dtype=torch.float64)))
    assert ours == pytest.approx(exact(exact_fisher_log_det, *alpha), rel=1e-9, abs=1e-9)


def test_trigamma_against_scipy():
    x = np.logspace(-3, 6, 50)
    np.testing.assert_allclose(trigamma(torch.from_numpy(x)), scipy.special.polygamma(1, x), rtol=1e-12)


def test_as_double():
    assert as_double(torch.ones(2)).dtype == torch.float64


@pytest.mark.parametrize(
    "function", [scaled_digamma_gap, dirichlet_entropy, log_beta, dirichlet_fisher_log_det], ids=lambda f: f.__name__
)
def test_gradients(function):
    alpha = torch.tensor([[0.4, 2.0, 63.0], [66.0, 1.0, 300.0]], dtype=torch.float64, requires_grad=True)
    assert gradcheck(function, (alpha,), rtol=1e-4)


@pytest.mark.parametrize("function", [scaled_digamma_gap, dirichlet_entropy], ids=lambda f: f.__name__)
def test_second_gradients(function):
    alpha = torch.tensor([[0.7, 2.0, 5.0]], dtype=torch.float64, requires_grad=True)
    assert gradgradcheck(function, (alpha,))


@pytest.mark.parametrize("function", [scaled_digamma_gap, dirichlet_entropy], ids=lambda f: f.__name__)
def test_gradients_stay_finite_at_the_extremes(function, dtype):
    alpha = torch.tensor([[1e-5, 1.0, 1e30], [1e30, 1e30, 1e30]], dtype=dtype, requires_grad=True)
    function(alpha).sum().backward()
    assert torch.isfinite(alpha.grad).all()


def test_a_quotient_by_zero_has_a_value_and_a_gradient():
    x = torch.tensor([1.0, 1.0, 0.0], requires_grad=True)
    y = torch.tensor([4.0, 0.0, 0.0], requires_grad=True)
    ratio = quotient(x, y, otherwise=torch.tensor([7.0, 8.0, 9.0]))
    assert ratio.tolist() == [0.25, 8.0, 9.0]
    ratio.sum().backward()
    assert x.grad.tolist() == [0.25, 0.0, 0.0]
    assert y.grad.tolist() == [-0.0625, 0.0, 0.0]
