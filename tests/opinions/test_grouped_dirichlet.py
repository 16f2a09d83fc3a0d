"""The grouped Dirichlet distribution against quadrature, sampling and published values."""

from __future__ import annotations

import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.distributions import Dirichlet

from evidentia import EvidentiaError
from evidentia.opinions import GroupedDirichlet

F64 = torch.float64


def example() -> GroupedDirichlet:
    """The example in the comments of the hyper-evidential network code (HENN, ICLR 2024)."""
    alpha = torch.tensor([2, 6, 2, 9, 1, 5], dtype=F64) + 1
    return GroupedDirichlet(alpha, torch.tensor([12, 34, 0], dtype=F64), [[0, 1], [2, 4], [3, 5]])


def test_published_entropy():
    assert float(example().entropy()) == pytest.approx(-8.402538, abs=1e-6)
    # A group without evidence of its own changes nothing.
    alpha, evidence = example().alpha, torch.tensor([12, 34], dtype=F64)
    assert float(GroupedDirichlet(alpha, evidence, [[0, 1], [2, 4]]).entropy()) == pytest.approx(-8.402538, abs=1e-6)


def test_entropy_by_its_definition():
    d = example()
    log_density = (
        ((d.alpha - 1) * d.expected_log_prob()).sum()
        + (d.group_evidence * d.expected_log_total()).sum()
        - d._log_normaliser()
    )
    assert float(d.entropy()) == pytest.approx(-float(log_density), rel=1e-12)


@pytest.mark.parametrize("groups", [[(0, 1)], [(0, 2)], [(1, 2)]])
def test_density_integrates_to_one(groups):
    d = GroupedDirichlet(torch.tensor([1.5, 2.0, 3.0], dtype=F64), torch.tensor([2.5], dtype=F64), groups)
    # The midpoint rule on p0 = x, p1 = (1 - x) y, whose area element is 1 - x.
    side = (torch.arange(1000, dtype=F64) + 0.5) / 1000
    x, y = torch.meshgrid(side, side, indexing="ij")
    points = torch.stack([x, (1 - x) * y, (1 - x) * (1 - y)], -1)
    assert float((d.log_prob(points).exp() * (1 - x)).mean()) == pytest.approx(1, abs=1e-4)


def test_moments_of_samples():
    d = example()
    samples = d.sample((200_000,))
    error = 5 / math.sqrt(len(samples))
    assert torch.allclose(samples.sum(-1), torch.ones(1, dtype=F64))
    assert (samples >= 0).all()
    assert ((samples.mean(0) - d.mean).abs() <= error * samples.std(0)).all()
    logs = samples.log()
    assert ((logs.mean(0) - d.expected_log_prob()).abs() <= error * logs.std(0)).all()
    totals = d._group_sum(samples).log()
    assert ((totals.mean(0) - d.expected_log_total()).abs() <= error * totals.std(0)).all()
    surprise = -d.log_prob(samples)
    assert abs(float(surprise.mean() - d.entropy())) <= error * float(surprise.std())


def test_gradient_of_samples_is_that_of_their_mean():
    alpha = torch.tensor([2.0, 3.0, 4.0], dtype=F64, requires_grad=True)
    evidence = torch.tensor([6.0], dtype=F64, requires_grad=True)
    d = GroupedDirichlet(alpha, evidence, [(0, 1)])
    expected = torch.autograd.grad(d.mean[0], (alpha, evidence), retain_graph=True)
    sampled = torch.autograd.grad(d.rsample((50_000,))[:, 0].mean(), (alpha, evidence))
    for ours, exact in zip(sampled, expected, strict=True):
        torch.testing.assert_close(ours, exact, atol=2e-3, rtol=0)


def test_without_group_evidence_it_is_a_dirichlet():
    alpha = torch.rand(4, 5, dtype=F64) + 0.5
    reference = Dirichlet(alpha)
    points = reference.sample()
    for d in (
        GroupedDirichlet(alpha, torch.zeros(4, 2, dtype=F64), [(0, 3), (1, 2)]),
        GroupedDirichlet(alpha, torch.zeros(4, 0, dtype=F64), []),
    ):
        torch.testing.assert_close(d.mean, reference.mean)
        torch.testing.assert_close(d.log_prob(points), reference.log_prob(points))
        torch.testing.assert_close(d.entropy(), reference.entropy())
        expected = torch.digamma(alpha) - torch.digamma(alpha.sum(-1, keepdim=True))
        torch.testing.assert_close(d.expected_log_prob(), expected)


def test_no_digits_are_lost_with_much_evidence():
    # All of the simplex is one group and one class: entropies of two Betas, and one Jacobian term.
    alpha, evidence = torch.tensor([1e12, 2e12, 1e12], dtype=F64), torch.tensor([3e12], dtype=F64)
    d = GroupedDirichlet(alpha, evidence, [(0, 1)])

    def normal_entropy(a, b):  # a Beta with this much evidence is a normal distribution
        variance = a * b / ((a + b) ** 2 * (a + b + 1))
        return 0.5 * math.log(2 * math.pi * math.e * variance)

    expected = normal_entropy(6e12, 1e12) + normal_entropy(1e12, 2e12) + math.log(6 / 7)
    assert float(d.entropy()) == pytest.approx(expected, abs=1e-9)


def test_batches_broadcast():
    d = GroupedDirichlet(torch.ones(3, 1, 4), torch.ones(2, 1), [(0, 1)])
    assert d.batch_shape == (3, 2)
    assert d.event_shape == (4,)
    assert d.sample((5,)).shape == (5, 3, 2, 4)
    assert d.mean.shape == (3, 2, 4)
    assert d.entropy().shape == d.log_prob(d.sample()).shape == (3, 2)


def test_gradients():
    alpha = (torch.rand(2, 4, dtype=F64) + 0.5).requires_grad_()
    evidence = (torch.rand(2, 2, dtype=F64) + 0.5).requires_grad_()
    point = Dirichlet(torch.ones(4, dtype=F64)).sample()

    def values(alpha, evidence):
        d = GroupedDirichlet(alpha, evidence, [(0, 2), (1, 3)], validate_args=False)
        return d.mean, d.entropy(), d.expected_log_prob(), d.expected_log_total(), d.log_prob(point)

    assert gradcheck(values, (alpha, evidence))


@pytest.mark.parametrize(
    ("groups", "evidence", "words"),
    [
        ([(0, 1), (1, 2)], [1.0, 1.0], "do not overlap"),
        ([(0, 4)], [1.0], r"classes 0\.\.2"),
        ([()], [1.0], "needs one or more of the classes"),
        ([(0, 1)], [1.0, 1.0], r"each of the 1 groups, got shape \(2,\)"),
    ],
)
def test_bad_groups(groups, evidence, words):
    with pytest.raises(EvidentiaError, match=words):
        GroupedDirichlet(torch.ones(3), torch.tensor(evidence), groups)


def test_values_are_checked_whatever_pytorchs_default(monkeypatch):
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", False)
    test_bad_parameters()


def test_bad_parameters():
    with pytest.raises(ValueError, match="alpha"):
        GroupedDirichlet(torch.tensor([1.0, -1.0, 1.0]), torch.tensor([1.0]), [(0, 1)])
    with pytest.raises(ValueError, match="group_evidence"):
        GroupedDirichlet(torch.ones(3), torch.tensor([-1.0]), [(0, 1)])
    with pytest.raises(ValueError, match="support"):
        GroupedDirichlet(torch.ones(3), torch.tensor([1.0]), [(0, 1)]).log_prob(torch.tensor([0.5, 0.1, 0.1]))
