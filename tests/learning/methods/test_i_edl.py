"""The log determinant of the Dirichlet's Fisher information, which I-EDL rewards."""

from __future__ import annotations

import mpmath
import pytest
import torch
from torch.autograd import gradcheck

from evidentia.learning import METHODS
from evidentia.opinions.special import dirichlet_fisher_log_det


def test_it_is_the_log_determinant_of_the_matrix():
    alpha = 0.2 + 30 * torch.rand(40, 6, dtype=torch.float64)
    information = torch.diag_embed(torch.polygamma(1, alpha)) - torch.polygamma(1, alpha.sum(-1))[:, None, None]
    torch.testing.assert_close(dirichlet_fisher_log_det(alpha), torch.logdet(information), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("alpha", [[1.0, 1.0], [1e9, 3.0, 1.0], [1e15, 1e15, 1e15], [1e30, 1.0, 1.0], [0.1, 1e30]])
def test_it_keeps_its_digits(alpha, dtype):
    given = torch.tensor(alpha, dtype=dtype)
    with mpmath.workdps(80):
        x = [mpmath.mpf(value) for value in given.tolist()]
        weights = [mpmath.psi(1, value) for value in x]
        rest = 1 - mpmath.psi(1, mpmath.fsum(x)) * mpmath.fsum(1 / weight for weight in weights)
        expected = float(mpmath.fsum(map(mpmath.log, weights)) + mpmath.log(rest))
    bound = 1e-5 if dtype == torch.float32 else 1e-12
    assert float(dirichlet_fisher_log_det(given)) == pytest.approx(expected, rel=bound)


def test_gradients():
    alpha = torch.tensor([[0.4, 2.0, 63.0], [66.0, 1.0, 300.0]], dtype=torch.float64, requires_grad=True)
    assert gradcheck(dirichlet_fisher_log_det, (alpha,), rtol=1e-4)


def test_the_reward_keeps_evidence_from_growing_without_need():
    outputs = torch.tensor([[8.0, 8.0, 8.0]], dtype=torch.float64, requires_grad=True)
    gradients = []
    for weight in (0.0, 0.1):
        loss = METHODS["i-edl"](num_classes=3, fisher_weight=weight, kl_weight=0).loss(outputs, torch.tensor([0]), 0)
        gradients.append(torch.autograd.grad(loss.sum(), outputs)[0])
    assert bool((gradients[1] > gradients[0]).all())


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_it_learns_in_half_precision(half):
    outputs = torch.tensor([[1.0, 2.0, 0.5]], dtype=half, requires_grad=True)
    loss = METHODS["i-edl"](num_classes=3).loss(outputs, torch.tensor([1]), epoch=20.0)
    loss.sum().backward()
    assert loss.dtype == half
    assert torch.isfinite(outputs.grad).all()
