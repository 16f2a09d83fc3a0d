"""Closed forms against Monte Carlo and SciPy; the theorems of the thesis; what the penalty ignores."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.stats
import torch
from scipy.special import digamma
from torch.distributions import Beta, Dirichlet, kl_divergence
from torch.nn import functional as F  # noqa: N812

from evidentia import EvidentiaError
from evidentia.learning import (
    LOSSES,
    cross_entropy_risk,
    dirichlet_kl,
    misleading_evidence,
    prior_network_forward,
    prior_network_reverse,
    squared_error_risk,
    type_ii_likelihood,
)

ALPHA = torch.tensor([[1.0, 1.0, 1.0], [0.5, 2.0, 4.0], [8.0, 1.0, 1.5], [20.0, 30.0, 0.7]], dtype=torch.float64)
TARGET = torch.tensor([2, 0, 0, 1])
SOFT = torch.tensor([[0.2, 0.3, 0.5], [1.0, 0, 0], [0.5, 0.5, 0], [0.1, 0.1, 0.8]], dtype=torch.float64)


def assert_mean(samples, expected):
    """The mean of samples, the first dimension, is as expected within five standard errors."""
    error = samples.std(0) / len(samples) ** 0.5
    assert bool(((samples.mean(0) - expected).abs() < 5 * error).all())


@pytest.mark.parametrize("target", [TARGET, SOFT], ids=["indices", "soft"])
def test_risks_are_expectations_under_the_dirichlet(target):
    p = Dirichlet(ALPHA).sample((200_000,))
    y = F.one_hot(target, 3) if target.ndim == 1 else target
    assert_mean((y - p).square().sum(-1), squared_error_risk(ALPHA, target))
    assert_mean(-(y * p.log()).sum(-1), cross_entropy_risk(ALPHA, target))


def test_type_ii_is_the_likelihood_of_the_label_with_the_probabilities_integrated_out():
    p = Dirichlet(ALPHA).sample((200_000,)).gather(-1, TARGET.expand(200_000, 4).unsqueeze(-1)).squeeze(-1)
    assert_mean(p, type_ii_likelihood(ALPHA, TARGET).neg().exp())


def test_risks_against_scipy():
    for alpha, target in zip(ALPHA.tolist(), TARGET.tolist(), strict=True):
        distribution = scipy.stats.dirichlet(alpha)
        error = np.eye(3)[target] - distribution.mean()
        given = torch.tensor(alpha, dtype=torch.float64), torch.tensor(target)
        assert float(squared_error_risk(*given)) == pytest.approx(error @ error + distribution.var().sum())
        assert float(cross_entropy_risk(*given)) == pytest.approx(digamma(sum(alpha)) - digamma(alpha[target]))
        assert float(type_ii_likelihood(*given)) == pytest.approx(-np.log(distribution.mean()[target]))


@pytest.mark.parametrize("evidence", [10.0, 1e4, 1e8, 1e12, 1e30])
def test_the_cross_entropy_risk_keeps_its_digits_in_float32(evidence):
    alpha = torch.tensor([evidence, 2.0, 1.0])
    with mpmath.workdps(60):
        x = [mpmath.mpf(value) for value in alpha.tolist()]
        expected = float(mpmath.digamma(mpmath.fsum(x)) - mpmath.digamma(x[0]))
    # To float32 as long as it is more than the rounding of float64.
    assert float(cross_entropy_risk(alpha, torch.tensor(0))) == pytest.approx(expected, rel=1e-6, abs=3e-14)


def test_theorem_3_two_classes_give_the_beta_loss():
    positive, negative = 1 + 20 * torch.rand(2, 50, dtype=torch.float64)
    y = torch.randint(2, (50,))
    total = torch.digamma(positive + negative)
    beta_loss = y * (total - torch.digamma(positive)) + (1 - y) * (total - torch.digamma(negative))
    torch.testing.assert_close(cross_entropy_risk(torch.stack([negative, positive], -1), y), beta_loss)
    p = Beta(positive, negative).sample((100_000,))
    assert_mean(F.binary_cross_entropy(p, y.double().expand_as(p), reduction="none"), beta_loss)


def test_theorem_4_with_more_evidence_the_beta_loss_becomes_the_binary_cross_entropy_at_the_mean():
    evidence = torch.tensor([[3.0, 1.0], [1.0, 9.0], [5.0, 5.0]], dtype=torch.float64)
    y = torch.tensor([0, 1, 1])
    gaps = []
    for scale in (1, 10, 100, 1e4, 1e8):
        alpha = evidence * scale + 1
        bce = F.binary_cross_entropy(alpha[:, 1] / alpha.sum(-1), y.double(), reduction="none")
        gap = cross_entropy_risk(alpha, y) - bce
        # By Jensen's inequality the risk is the larger; the gap is 1/(2 alpha_y) - 1/(2 S) and smaller terms.
        assert bool((gap > 0).all())
        gaps.append(gap)
    falling = torch.stack(gaps)
    assert bool((falling.diff(dim=0) < 0).all())
    assert float(falling[-1].max()) < 1e-8
    alpha = evidence * 1e4 + 1
    leading = 0.5 / alpha.gather(1, y.unsqueeze(1)).squeeze(1) - 0.5 / alpha.sum(-1)
    torch.testing.assert_close(falling[-2], leading, rtol=1e-3, atol=0)


def test_prior_networks_are_divergences_from_a_sharp_dirichlet():
    target = 1 + 50 * F.one_hot(TARGET, 3).double()
    forward = kl_divergence(Dirichlet(target), Dirichlet(ALPHA))
    reverse = kl_divergence(Dirichlet(ALPHA), Dirichlet(target))
    torch.testing.assert_close(prior_network_forward(ALPHA, TARGET, precision=50), forward)
    torch.testing.assert_close(prior_network_reverse(ALPHA, TARGET, precision=50), reverse)
    assert bool((prior_network_reverse(target, TARGET, precision=50) == 0).all())


def test_an_outlier_asks_for_the_flat_dirichlet():
    nothing = torch.zeros(4, 3, dtype=torch.float64)
    flat = torch.ones(4, 3, dtype=torch.float64)
    for loss in (prior_network_forward, prior_network_reverse):
        assert bool((loss(flat, nothing) == 0).all())
    torch.testing.assert_close(prior_network_reverse(ALPHA, nothing), dirichlet_kl(ALPHA, flat))
    torch.testing.assert_close(prior_network_forward(ALPHA, nothing), dirichlet_kl(flat, ALPHA))


@pytest.mark.parametrize("prior", [1.0, 0.1])
def test_misleading_evidence_ignores_the_right_class_only(prior):
    evidence = torch.tensor([[3.0, 2.0, 0.5]], dtype=torch.float64, requires_grad=True)
    loss = misleading_evidence(evidence, torch.tensor([0]), prior)
    other = Dirichlet(torch.tensor([[prior, 2 + prior, 0.5 + prior]], dtype=torch.float64))
    torch.testing.assert_close(loss, kl_divergence(other, Dirichlet(torch.full((1, 3), prior, dtype=torch.float64))))
    (gradient,) = torch.autograd.grad(loss.sum(), evidence)
    assert float(gradient[0, 0]) == 0
    assert bool((gradient[0, 1:] != 0).all())


def test_no_evidence_for_wrong_classes_is_no_penalty():
    evidence = torch.tensor([[1e30, 0, 0], [0, 0, 0]])
    assert misleading_evidence(evidence, torch.tensor([0, 2])).tolist() == [0, 0]


def test_a_soft_target_ignores_evidence_in_proportion():
    evidence = torch.tensor([[4.0, 4.0, 1.0]], dtype=torch.float64)
    left = torch.tensor([[3.0, 3.0, 2.0]], dtype=torch.float64)
    soft = torch.tensor([[0.5, 0.5, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(
        misleading_evidence(evidence, soft), dirichlet_kl(left, torch.ones(1, 3, dtype=torch.float64))
    )


def test_misleading_evidence_refuses_what_is_no_evidence():
    from evidentia import EvidentiaError

    with pytest.raises(EvidentiaError, match="evidence must be at least 0 everywhere, got a smallest value of -1"):
        misleading_evidence(torch.tensor([[-1.0, 2.0]]), torch.tensor([0]))


@pytest.mark.parametrize("precision", [-1.0, float("nan"), float("inf"), "100"])
@pytest.mark.parametrize("loss", [prior_network_forward, prior_network_reverse])
def test_a_precision_that_is_none_is_refused(loss, precision):
    with pytest.raises(EvidentiaError, match="precision must be a number, at least 0, got"):
        loss(ALPHA, TARGET, precision)


@pytest.mark.parametrize("prior", [0, -1.0, float("nan"), None])
def test_a_prior_that_is_none_is_refused(prior):
    with pytest.raises(EvidentiaError, match="prior must be a number, more than 0, got"):
        misleading_evidence(ALPHA, TARGET, prior)


@pytest.mark.parametrize("loss", [*LOSSES.values(), misleading_evidence])
def test_arrays_and_sparse_tensors_are_refused_in_a_sentence(loss):
    for given in (ALPHA.numpy(), ALPHA.tolist(), ALPHA.to_sparse()):
        with pytest.raises(EvidentiaError, match=r"must be a (dense )?tensor, got"):
            loss(given, TARGET)
    with pytest.raises(EvidentiaError, match="target must be a tensor, got list"):
        loss(ALPHA, TARGET.tolist())
