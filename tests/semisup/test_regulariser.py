"""The uncertainty regulariser in both forms, and the L1 term."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from evidentia import EvidentiaError
from evidentia.semisup import Meta
from evidentia.semisup.regulariser import (
    FORMS,
    WeightRegulariser,
    l1_gradient,
    l1_term,
    uncertainty_gradient,
    uncertainty_term,
)

unit = st.floats(0, 1)
dtypes = st.sampled_from([torch.float32, torch.float64])
every_form = pytest.mark.parametrize("form", FORMS)


@given(w=unit, u=unit, dtype=dtypes)
def test_the_corrected_form_is_a_parabola_about_one_minus_u(w, u, dtype):
    w, u = (torch.tensor(value, dtype=dtype) for value in (w, u))
    value, least = uncertainty_term(w, u), uncertainty_term(1 - u, u)
    torch.testing.assert_close(value, (w - (1 - u)) ** 2 + u * (1 - u), atol=1e-6, rtol=1e-5)
    assert value >= least - 1e-6
    assert float(uncertainty_gradient(1 - u, u)) == 0


@given(w=st.floats(0, 0.99), u=st.floats(0.01, 1))
def test_the_form_of_the_thesis_pushes_up_what_is_uncertain(w, u):
    w, u = torch.tensor(w), torch.tensor(u)
    assert float(uncertainty_gradient(w, u, "thesis")) < 0
    assert float(uncertainty_term(torch.ones(()), u, "thesis")) == 0


@every_form
@given(values=st.lists(st.tuples(st.floats(0.01, 1), unit), min_size=1, max_size=8))
def test_gradients(form, values):
    w, u = torch.tensor(values, dtype=torch.float64).unbind(1)
    w = w.clone().requires_grad_()
    regulariser = WeightRegulariser(uncertainty=0.7, l1=0.3, form=form)
    assert gradcheck(lambda given: regulariser.value(given, u), w)
    (by_autograd,) = torch.autograd.grad(regulariser.value(w, u).sum(), w)
    torch.testing.assert_close(regulariser.gradient(w.detach(), u), by_autograd)


@every_form
def test_the_sum_of_its_terms(form, dtype):
    w, u = torch.rand(5, dtype=dtype), torch.rand(5, dtype=dtype)
    regulariser = WeightRegulariser(uncertainty=2.0, l1=0.5, form=form)
    torch.testing.assert_close(regulariser.value(w, u), 2 * uncertainty_term(w, u, form) + 0.5 * l1_term(w))
    torch.testing.assert_close(regulariser.gradient(w, u), 2 * uncertainty_gradient(w, u, form) + 0.5 * l1_gradient(w))
    assert regulariser.gradient(w, u).dtype == dtype


def test_without_an_uncertainty_term_no_uncertainty_is_needed():
    w = torch.tensor([0.0, 0.5])
    only_l1 = WeightRegulariser(uncertainty=0, l1=2)
    assert only_l1.value(w).tolist() == [0, 1]
    assert only_l1.gradient(w).tolist() == [0, 2]
    for function in (WeightRegulariser().value, WeightRegulariser().gradient):
        with pytest.raises(EvidentiaError, match="needs the uncertainty"):
            function(w)


def test_refusals():
    with pytest.raises(EvidentiaError, match="one of corrected, thesis, got 'other'"):
        uncertainty_term(torch.ones(1), torch.ones(1), "other")
    with pytest.raises(EvidentiaError, match="one of corrected, thesis"):
        WeightRegulariser(form="other")
    with pytest.raises(EvidentiaError, match="l1 must be a number, at least 0"):
        WeightRegulariser(l1=-1)
    for other in (0.1, {"l3": 1}, None):
        with pytest.raises(EvidentiaError, match=r"its settings by name \(uncertainty, l1, form\), got "):
            Meta(regulariser=other)


def test_settings_by_name():
    assert Meta(regulariser={"l1": 0.5}).regulariser == WeightRegulariser(l1=0.5)
