"""The divergence to fixed Dirichlets, in float32: the exact one is the oracle."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from evidentia import EvidentiaError
from evidentia.learning import DivergenceTo, dirichlet_kl
from evidentia.opinions.special import trigamma

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
    # The part of a class and that of the total, which cancel each other at best.
    parts = trigamma(a.double()) * (a.double() + b.double())
    total = float(trigamma(a.double().sum()) * (a.double().sum() + b.double().sum()))
    assert bool(((found - expected).abs() <= 3e-6 * (parts + total)).all())


@pytest.mark.parametrize("evidence", [1.0, 1e3, 1e5, 1e7, 1e9])
def test_much_evidence_is_drawn_back_as_strongly_as_it_should_be(evidence):
    other = torch.tensor([[1.0, 3.0, 9.0]])
    slopes = []
    for kind in (torch.float32, torch.float64):
        logits = (torch.tensor([[1.0, 2.0, 3.0]], dtype=kind) + math.log(evidence)).requires_grad_()
        slopes += torch.autograd.grad(DivergenceTo(other.to(kind))(1 + logits.exp()).sum(), logits)
    torch.testing.assert_close(slopes[0].double(), slopes[1], rtol=0, atol=1e-4 * float(slopes[1].abs().max()))


def test_no_rows_have_no_divergence():
    assert DivergenceTo(torch.ones(0, 3))(torch.ones(0, 3)).shape == (0,)


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
