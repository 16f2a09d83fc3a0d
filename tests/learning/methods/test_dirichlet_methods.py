"""Each Dirichlet method's loss against its published formula, written out in another way."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import digamma, gammaln, polygamma
from scipy.stats import dirichlet
from torch.nn import functional as F  # noqa: N812

import evidentia as ev
from evidentia import EvidentiaError
from evidentia.learning import METHODS, OUTLIER

K = 4
OUTPUTS = 2 * torch.randn(12, K, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(12) % K
Y = np.eye(K)[LABELS]


def softplus(z):
    return np.log1p(np.exp(z))


def kl(alpha, beta):
    """KL of two Dirichlets by SciPy's gamma functions, row by row."""
    total, other = alpha.sum(-1), beta.sum(-1)
    return (
        gammaln(total)
        - gammaln(alpha).sum(-1)
        - gammaln(other)
        + gammaln(beta).sum(-1)
        + ((alpha - beta) * (digamma(alpha) - digamma(total)[:, None])).sum(-1)
    )


def mean_and_variance(alpha):
    rows = [dirichlet(row) for row in alpha]
    return np.stack([row.mean() for row in rows]), np.stack([row.var() for row in rows])


def penalty(evidence, prior=1.0):
    return kl(evidence * (1 - Y) + prior, np.full_like(evidence, prior))


def loss(name, epoch, **options):
    return METHODS[name](num_classes=K, **options).loss(OUTPUTS, LABELS, epoch).numpy()


@pytest.mark.parametrize(("epoch", "share"), [(0, 0), (4, 0.4), (10, 1), (30, 1)])
def test_edl(epoch, share):
    evidence = np.exp(OUTPUTS.numpy())
    alpha = evidence + 1
    mean, variance = mean_and_variance(alpha)
    risks = {
        "squared-error": ((Y - mean) ** 2 + variance).sum(-1),
        "cross-entropy": (Y * (digamma(alpha.sum(-1, keepdims=True)) - digamma(alpha))).sum(-1),
        "type-ii": -np.log((Y * mean).sum(-1)),
    }
    for risk, expected in risks.items():
        np.testing.assert_allclose(loss("edl", epoch, risk=risk), expected + share / K * penalty(evidence), rtol=1e-9)
    default = risks["cross-entropy"] + share / K * penalty(evidence)
    np.testing.assert_allclose(loss("edl", epoch), default, rtol=1e-9)


def test_the_unscaled_weight_of_the_first_papers_is_a_kl_weight_of_k():
    evidence = np.exp(OUTPUTS.numpy())
    mean, variance = mean_and_variance(evidence + 1)
    published = ((Y - mean) ** 2 + variance).sum(-1) + penalty(evidence)
    np.testing.assert_allclose(loss("edl", 10, risk="squared-error", kl_weight=K), published, rtol=1e-9)


@pytest.mark.parametrize("fisher_weight", [0.0, 0.05, 1.0])
def test_i_edl(fisher_weight):
    evidence = softplus(OUTPUTS.numpy())
    alpha = evidence + 1
    mean, variance = mean_and_variance(alpha)
    information = np.stack([np.diag(polygamma(1, a)) - polygamma(1, a.sum()) for a in alpha])
    expected = (
        (polygamma(1, alpha) * ((Y - mean) ** 2 + variance)).sum(-1)
        - fisher_weight * np.log(np.linalg.det(information))
        + penalty(evidence) / K
    )
    np.testing.assert_allclose(loss("i-edl", 10, fisher_weight=fisher_weight), expected, rtol=1e-8)


@pytest.mark.parametrize("prior", [0.1, 1.0, 2.5])
def test_r_edl(prior):
    evidence = softplus(OUTPUTS.numpy())
    projected = (evidence + prior) / (evidence.sum(-1, keepdims=True) + prior * K)
    error = ((Y - projected) ** 2).sum(-1)
    expected = error + 0.5 / K * penalty(evidence, prior)
    np.testing.assert_allclose(loss("r-edl", 5, prior=prior), expected, rtol=1e-9)
    np.testing.assert_allclose(loss("re-edl", 5, prior=prior), error, rtol=1e-9)


def test_r_edl_and_re_edl_have_the_published_priors():
    assert METHODS["r-edl"](num_classes=K).prior == 0.1
    assert METHODS["re-edl"](num_classes=K).prior == 0.8


@pytest.mark.parametrize("prior", [0.1, 0.8])
def test_the_vacuity_of_r_edl_is_lambda_k_over_s(prior):
    method = METHODS["r-edl"](num_classes=K, prior=prior)
    evidence = F.softplus(OUTPUTS)
    strength = evidence.sum(-1) + prior * K
    opinion = method.opinion(OUTPUTS)
    torch.testing.assert_close(opinion.vacuity, prior * K / strength)
    torch.testing.assert_close(opinion.belief, evidence / strength.unsqueeze(-1))
    torch.testing.assert_close(opinion.projected, (evidence + prior) / strength.unsqueeze(-1))


def test_the_loss_of_daedl_has_no_ramp():
    evidence = np.exp(OUTPUTS.numpy())
    mean, variance = mean_and_variance(evidence + 1)
    expected = ((Y - mean) ** 2 + variance).sum(-1) + 0.05 / K * penalty(evidence)
    np.testing.assert_allclose(loss("daedl", 0), expected, rtol=1e-9)
    np.testing.assert_allclose(loss("daedl", 0), loss("daedl", 50))


def test_daedl_leaves_familiar_outputs_alone_and_nothing_of_unfamiliar_ones():
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(200, 3, generator=generator, dtype=torch.float64)
    method = METHODS["daedl"](num_classes=K)
    method.calibrate(features, torch.arange(200) % K)
    asked = torch.tensor([[0.0, 0, 0], [1.5, -1, 1], [50, 50, 50]], dtype=torch.float64)
    s = method.density.familiarity(asked)
    assert s[0] == 1
    assert 0 < s[1] < 1
    assert s[2] == 0
    adjusted = method.adjust(OUTPUTS[:3], asked)
    assert torch.equal(adjusted[0], OUTPUTS[0])
    torch.testing.assert_close(adjusted[1], s[1] * OUTPUTS[1])
    assert bool((adjusted[2] == -method.density.strangeness(asked)[2]).all())
    assert float(method.opinion(adjusted[2]).vacuity) > 0.999


def test_daedl_adjusts_every_label_of_a_multi_label_task():
    method = METHODS["daedl"](num_classes=2)
    method.calibrate(torch.randn(50, 3), None)
    outputs = torch.randn(2, 5, 2)
    adjusted = method.adjust(outputs, torch.tensor([[0.0, 0, 0], [90, 90, 90]]))
    assert torch.equal(adjusted[0], outputs[0])
    assert bool((adjusted[1] == adjusted[1, 0, 0]).all())


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("precision", [10.0, 100.0])
def test_prior_networks(direction, precision):
    method = METHODS["prior-network"](num_classes=K, direction=direction, precision=precision)
    labels = LABELS.clone()
    labels[5] = OUTLIER
    target = 1 + precision * Y
    target[5] = 1
    alpha = np.exp(OUTPUTS.numpy()) + 1
    expected = kl(target, alpha) if direction == "forward" else kl(alpha, target)
    found = method.loss(OUTPUTS, labels, 20)
    np.testing.assert_allclose(found, expected / precision, rtol=1e-8)
    as_probabilities = F.one_hot(LABELS, K).double()
    as_probabilities[5] = 0
    torch.testing.assert_close(method.loss(OUTPUTS, as_probabilities, 20), found)


def test_a_prior_network_learns_that_outliers_belong_nowhere():
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(3).repeat(60)
    centres = torch.tensor([[4.0, 0], [0, 4], [-4, -4]])
    x = torch.cat([centres[y] + torch.randn(180, 2, generator=generator), 15 * torch.randn(90, 2, generator=generator)])
    labels = torch.cat([y, torch.full((90,), OUTLIER)])
    model = ev.EvidentialClassifier(torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.ReLU()), 3, "prior-network")
    model.fit(x, labels, epochs=60, learning_rate=0.02, progress=False)
    inside, outside = model.predict(centres), model.predict(15 * torch.randn(200, 2, generator=generator))
    assert inside.labels.tolist() == [0, 1, 2]
    assert float(inside["vacuity"].max()) < 0.1
    assert float(outside["vacuity"].median()) > 0.5


def test_wrong_settings_are_refused_in_a_sentence():
    with pytest.raises(EvidentiaError, match="direction must be 'reverse' or 'forward', got 'sideways'"):
        METHODS["prior-network"](num_classes=K, direction="sideways")
    with pytest.raises(EvidentiaError, match="precision must be a number, more than 0, got 0"):
        METHODS["prior-network"](num_classes=K, precision=0)
    with pytest.raises(EvidentiaError, match="prior must be a number, more than 0, got 0"):
        METHODS["r-edl"](num_classes=K, prior=0)
    with pytest.raises(EvidentiaError, match="there is no loss named 'hinge'; choose one of: cross-entropy"):
        METHODS["edl"](num_classes=K, risk="hinge")


def test_outliers_are_only_for_methods_that_learn_from_them():
    with pytest.raises(EvidentiaError, match=r"class indices must lie in 0\.\.3, got values from -1 to 2"):
        METHODS["edl"](num_classes=K).loss(OUTPUTS[:2], torch.tensor([OUTLIER, 2]), 0)
    with pytest.raises(EvidentiaError, match="target probabilities must add up to 1, got a sum of 0"):
        METHODS["edl"](num_classes=K).loss(OUTPUTS[:2], torch.zeros(2, K), 0)


def test_settings_are_shown():
    shown = str(METHODS["r-edl"](num_classes=K, prior=0.5))
    assert shown == "REDL(num_classes=4, activation=softplus, prior=0.5, kl_weight=1.0)"
