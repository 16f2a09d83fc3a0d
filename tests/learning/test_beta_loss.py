"""The Beta loss: its integral, theorems 3 and 4, and its gradients."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate
from torch.nn import functional as F  # noqa: N812

import evidentia as ev
from evidentia.learning import beta_risk, cross_entropy_risk

F64 = torch.float64
parameter = st.floats(1.0, 50.0)


@given(parameter, parameter, st.floats(0, 1))
def test_it_is_the_integral_of_the_binary_cross_entropy(alpha, beta, y):
    density = torch.distributions.Beta(torch.tensor(alpha, dtype=F64), torch.tensor(beta, dtype=F64))

    def integrand(p: float) -> float:
        x = torch.tensor(p, dtype=F64)
        return float((-y * x.log() - (1 - y) * torch.log1p(-x)) * density.log_prob(x).exp())

    expected, _ = integrate.quad(integrand, 0, 1, limit=200)
    value = beta_risk(torch.tensor(alpha, dtype=F64), torch.tensor(beta, dtype=F64), torch.tensor(y))
    assert float(value) == pytest.approx(expected, rel=1e-5, abs=1e-8)


@given(st.floats(1.0, 1e6), st.floats(1.0, 1e6), st.sampled_from([0, 1]))
def test_theorem_4_with_one_label_it_is_the_evidential_loss_of_two_classes(alpha, beta, y):
    pair = torch.tensor([[beta, alpha]], dtype=F64)
    value = beta_risk(pair[:, 1], pair[:, 0], torch.tensor([y]))
    torch.testing.assert_close(value, cross_entropy_risk(pair, torch.tensor([y])), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("y", [0.0, 0.3, 1.0])
def test_theorem_3_with_much_evidence_it_is_the_binary_cross_entropy_at_the_mean(y):
    mean = torch.tensor([0.1, 0.5, 0.9], dtype=F64)
    target = torch.full_like(mean, y)
    gaps = []
    for strength in (1e2, 1e4, 1e6):
        risk = beta_risk(mean * strength, (1 - mean) * strength, target)
        gaps.append((risk - F.binary_cross_entropy(mean, target, reduction="none")).abs().max())
    assert gaps[0] > 50 * gaps[1] > 2500 * gaps[2]
    assert gaps[2] < 1e-5


def test_dtype_broadcasting_and_extremes(dtype):
    alpha = torch.tensor([1.0, 1 + 1e-30, 1e30], dtype=dtype).reshape(3, 1).expand(3, 2)
    risk = beta_risk(alpha, torch.ones(3, 2, dtype=dtype), torch.tensor([1, 0]))
    assert risk.dtype == dtype
    assert risk.isfinite().all()
    assert (risk >= 0).all()


def test_gradients():
    alpha = torch.tensor([1.5, 3.0, 40.0], dtype=F64, requires_grad=True)
    beta = torch.tensor([2.5, 1.1, 9.0], dtype=F64, requires_grad=True)
    target = torch.tensor([1.0, 0.0, 0.5], dtype=F64)
    assert torch.autograd.gradcheck(lambda a, b: beta_risk(a, b, target), (alpha, beta))


@pytest.mark.parametrize(
    ("alpha", "beta", "target", "message"),
    [
        (torch.ones(2), torch.ones(3), torch.ones(2), "one shape"),
        (torch.ones(2), torch.ones(2), torch.ones(3), "broadcast"),
        (torch.ones(2), torch.ones(2), torch.full((2,), 2.0), r"\[0, 1\]"),
        (torch.zeros(2), torch.ones(2), torch.ones(2), "positive"),
        (torch.ones(2), torch.full((2,), torch.nan), torch.ones(2), "finite"),
    ],
)
def test_bad_input_is_refused(alpha, beta, target, message):
    with pytest.raises(ev.EvidentiaError, match=message):
        beta_risk(alpha, beta, target)
