"""The divergence of two Dirichlets: torch as the oracle where it is accurate, 80-digit arithmetic everywhere."""

from __future__ import annotations

import itertools

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck
from torch.distributions import Dirichlet, kl_divergence

from evidentia.learning import dirichlet_kl

PARAMETERS = [
    [1.0, 1.0, 1.0],
    [2.0, 1.0, 1.0],
    [0.1, 0.1, 0.3],
    [63.0, 65.0, 64.0],
    [1e4, 1.0, 1.0],
    [1e6, 1.001e6, 3.0],
    [1e15, 1e15, 1.0],
    [1e30, 1.0, 1.0],
    [3e29, 1e30, 1e30],
    [1e30, 1e30, 1e30],
    [1.01e30, 1e30, 1e30],
    [1e-6, 1.0, 1e12],
]


def exact_kl(alpha, other):
    with mpmath.workdps(80):
        a, b = [mpmath.mpf(x) for x in alpha], [mpmath.mpf(x) for x in other]
        total, other_total = mpmath.fsum(a), mpmath.fsum(b)
        log_beta = mpmath.fsum(map(mpmath.loggamma, b)) - mpmath.loggamma(other_total)
        own_log_beta = mpmath.fsum(map(mpmath.loggamma, a)) - mpmath.loggamma(total)
        slope = mpmath.fsum((x - y) * (mpmath.digamma(x) - mpmath.digamma(total)) for x, y in zip(a, b, strict=True))
        return float(log_beta - own_log_beta + slope)


@pytest.mark.parametrize(("alpha", "other"), list(itertools.product(PARAMETERS, repeat=2)))
def test_it_is_exact_from_no_evidence_to_1e30(alpha, other, dtype):
    bound = 2e-7 if dtype == torch.float32 else 1e-9
    a, b = torch.tensor(alpha, dtype=dtype), torch.tensor(other, dtype=dtype)
    expected = exact_kl(a.tolist(), b.tolist())
    found = dirichlet_kl(a, b)
    assert found.dtype == dtype
    assert float(found) == pytest.approx(expected, rel=bound, abs=1e-12)


def test_it_agrees_with_torch():
    a, b = 0.1 + 20 * torch.rand(2, 200, 7, dtype=torch.float64)
    torch.testing.assert_close(dirichlet_kl(a, b), kl_divergence(Dirichlet(a), Dirichlet(b)), rtol=1e-9, atol=1e-11)


positive = st.floats(2**-10, 2**100, width=32)


@given(st.lists(st.tuples(positive, positive), min_size=2, max_size=6))
def test_it_is_never_negative_and_zero_for_equals_only(pairs):
    a, b = torch.tensor(pairs).T
    assert float(dirichlet_kl(a, a)) == 0.0
    found = float(dirichlet_kl(a, b))
    assert found >= 0
    assert (found > 0) == (exact_kl(a.tolist(), b.tolist()) > 1e-13)


def test_parameters_that_differ_in_their_last_bits_have_a_small_divergence():
    a = torch.tensor([5.0, 3.0, 1.0])
    b = torch.nextafter(a, a + 1)
    assert 0 < float(dirichlet_kl(a, b)) == pytest.approx(exact_kl(a.tolist(), b.tolist()), rel=1e-2)


def test_shapes_broadcast():
    a, b = 1 + torch.rand(4, 1, 3), 1 + torch.rand(5, 3)
    found = dirichlet_kl(a, b)
    assert found.shape == (4, 5)
    assert found[2, 3] == dirichlet_kl(a[2, 0], b[3])


def test_gradients():
    # Both sides of the switch to the series of ln Gamma, and means that nearly agree in the last row.
    a = torch.tensor([[0.4, 2.0, 63.0], [66.0, 1.0, 300.0], [2.0, 3.0, 4.0]], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([[1.0, 1.0, 1.0], [70.0, 1.0, 2.0], [2.01, 3.0, 4.01]], dtype=torch.float64, requires_grad=True)
    assert gradcheck(dirichlet_kl, (a, b), rtol=1e-4)
    assert gradcheck(dirichlet_kl, (a, b[0].detach().requires_grad_()), rtol=1e-4)


@pytest.mark.parametrize("alpha", PARAMETERS)
def test_the_gradient_is_exact_from_no_evidence_to_1e30(alpha):
    a = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(dirichlet_kl(a, torch.ones_like(a)), a)
    with mpmath.workdps(80):
        x = [mpmath.mpf(value) for value in alpha]
        total = mpmath.fsum(x)
        expected = [float(mpmath.psi(1, v) * (v - 1) - mpmath.psi(1, total) * (total - len(x))) for v in x]
    # PyTorch's own polygamma function is good to nine digits.
    torch.testing.assert_close(gradient, torch.tensor(expected, dtype=torch.float64), rtol=1e-8, atol=2e-9)


def test_with_much_evidence_the_gradient_by_the_logarithm_of_evidence_keeps_its_digits():
    z = torch.tensor([25.0, 20.0, 0.0], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(dirichlet_kl(z.exp(), torch.ones(3, dtype=torch.float64)), z)
    with mpmath.workdps(80):
        x = [mpmath.exp(value) for value in z.tolist()]
        total = mpmath.fsum(x)
        expected = [float(v * (mpmath.psi(1, v) * (v - 1) - mpmath.psi(1, total) * (total - 3))) for v in x]
    torch.testing.assert_close(gradient, torch.tensor(expected, dtype=torch.float64), rtol=1e-6, atol=0)


def test_it_can_be_derived_twice_and_by_torch_func():
    a, b = (0.5 + 3 * torch.rand(2, 4, 3, dtype=torch.float64)).unbind()
    assert gradgradcheck(dirichlet_kl, (a.requires_grad_(), b.requires_grad_()), rtol=1e-4)
    one_by_one = torch.func.vmap(torch.func.grad(dirichlet_kl))(a.detach(), b.detach())
    (together,) = torch.autograd.grad(dirichlet_kl(a, b).sum(), a)
    torch.testing.assert_close(one_by_one, together)
