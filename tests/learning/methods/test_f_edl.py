"""The flexible Dirichlet against its definition as a mixture, and the loss against its formula."""

from __future__ import annotations

import numpy as np
import torch
from torch.distributions import Categorical, Dirichlet
from torch.nn import functional as F  # noqa: N812

from evidentia.learning import METHODS, FlexibleDirichlet

K = 3
ALPHA = torch.tensor([2.0, 1.0, 4.0], dtype=torch.float64)
ALLOCATION = torch.tensor([0.2, 0.7, 0.1], dtype=torch.float64)
TAU = torch.tensor([5.0], dtype=torch.float64)


def test_moments_are_those_of_the_mixture():
    flexible = FlexibleDirichlet(ALPHA, ALLOCATION, TAU)
    component = Categorical(ALLOCATION).sample((400_000,))
    p = Dirichlet(ALPHA + TAU * F.one_hot(component, K)).sample()
    error = p.std(0) / len(p) ** 0.5
    assert bool(((p.mean(0) - flexible.mean).abs() < 5 * error).all())
    squares = (p - flexible.mean).square()
    assert bool(((squares.mean(0) - flexible.variance).abs() < 5 * squares.std(0) / len(p) ** 0.5).all())


def test_moments_are_those_of_the_components_by_the_law_of_total_variance():
    flexible = FlexibleDirichlet(ALPHA, ALLOCATION, TAU)
    components = Dirichlet(ALPHA + TAU * torch.eye(K, dtype=torch.float64))
    mean = ALLOCATION @ components.mean
    variance = ALLOCATION @ components.variance + ALLOCATION @ (components.mean - mean).square()
    torch.testing.assert_close(flexible.mean, mean)
    torch.testing.assert_close(flexible.variance, variance)


def test_with_matching_allocation_and_tau_1_it_is_a_dirichlet():
    flexible = FlexibleDirichlet(ALPHA, ALPHA / ALPHA.sum(), torch.ones(1, dtype=torch.float64))
    torch.testing.assert_close(flexible.mean, Dirichlet(ALPHA).mean)
    torch.testing.assert_close(flexible.variance, Dirichlet(ALPHA).variance)


def test_huge_dispersion_is_finite_in_float32():
    flexible = FlexibleDirichlet(torch.ones(K), ALLOCATION.float(), torch.tensor([1e30]))
    torch.testing.assert_close(flexible.mean, ALLOCATION.float())
    torch.testing.assert_close(flexible.variance, (ALLOCATION * (1 - ALLOCATION)).float())


def test_the_loss_follows_its_formula_in_every_epoch():
    method = METHODS["f-edl"](num_classes=K)
    outputs = torch.randn(10, 2 * K + 1, dtype=torch.float64)
    labels = torch.arange(10) % K
    z = outputs.numpy()
    alpha, logits, tau = np.exp(z[:, :K]) + 1, z[:, K : 2 * K], np.log1p(np.exp(z[:, 2 * K :]))
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    s = alpha.sum(-1, keepdims=True) + tau
    mu = (alpha + tau * p) / s
    variance = mu * (1 - mu) / (s + 1) + tau**2 * p * (1 - p) / (s * (s + 1))
    y = np.eye(K)[labels]
    expected = ((y - mu) ** 2 + variance + (y - p) ** 2).sum(-1)
    for epoch in (0, 50):
        np.testing.assert_allclose(method.loss(outputs, labels, epoch), expected, rtol=1e-9)


def test_the_opinion_projects_to_the_mean_and_has_its_strength():
    method = METHODS["f-edl"](num_classes=K)
    outputs = torch.randn(10, 2 * K + 1, dtype=torch.float64)
    flexible = method.distribution(outputs)
    opinion = method.opinion(outputs)
    torch.testing.assert_close(opinion.projected, flexible.mean)
    torch.testing.assert_close(opinion.strength, flexible.strength.squeeze(-1))
    torch.testing.assert_close(opinion.vacuity, K / flexible.strength.squeeze(-1))
