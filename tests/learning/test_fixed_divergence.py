"""The divergence to fixed Dirichlets, in float32: the exact one is the oracle."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from evidentia import EvidentiaError
from evidentia.learning import DivergenceTo, dirichlet_kl

rows = st.lists(st.tuples(st.floats(2**-6, 2**60, width=32), st.floats(2**-6, 2**10, width=32)), min_size=2, max_size=6)


@given(rows)
def test_it_keeps_six_digits_of_its_largest_part(pairs):
    a, b = torch.tensor(pairs).T.unsqueeze(1)
    expected = dirichlet_kl(a.double(), b.double())
    largest = (b * (a.sum() / a).log().abs().clamp(min=1) + a.log().abs() + b).sum()
    found = DivergenceTo(b)(a)
    assert found >= 0
    assert float((found - expected).abs()) <= 2e-6 * float(largest + b.sum() * a.sum().log().abs())


@given(rows)
def test_its_gradient_keeps_six_digits_of_its_largest_part(pairs):
    a, b = torch.tensor(pairs).T.unsqueeze(1)
    single, double = a.clone().requires_grad_(), a.double().requires_grad_()
    (found,) = torch.autograd.grad(DivergenceTo(b)(single).sum(), single)
    (expected,) = torch.autograd.grad(dirichlet_kl(double, b.double()).sum(), double)
    largest = 1 + (b / a) * (1 + 1 / a)
    assert bool(((found - expected).abs() <= 3e-6 * largest).all())


def test_it_is_the_exact_divergence_in_float64():
    other = 1 + torch.rand(4, 3, dtype=torch.float64)
    alpha = (1 + 5 * torch.rand(4, 3, dtype=torch.float64)).requires_grad_()
    assert gradcheck(DivergenceTo(other), (alpha,))
    assert torch.equal(DivergenceTo(other)(alpha), dirichlet_kl(alpha, other))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_dtype_stays(dtype):
    assert DivergenceTo(torch.ones(4, 3))(torch.full((4, 3), 2, dtype=dtype)).dtype == dtype


def test_another_shape_is_refused():
    with pytest.raises(EvidentiaError, match="shape"):
        DivergenceTo(torch.ones(4, 3))(torch.ones(2, 3))
