"""The perturbation of virtual adversarial training."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from evidentia import EvidentiaError
from evidentia.semisup import AUGMENTATIONS, MLP, Consistency, LeNet
from evidentia.semisup.objectives import VAT

NONE = AUGMENTATIONS["none"]()


def divergence(net, x, change, targets):
    consistency = Consistency(x + change, targets, torch.ones(len(x)))
    with torch.no_grad():
        return VAT().per_sample(net(consistency.inputs), consistency)


def test_the_thesis_table_is_the_default():
    objective = VAT()
    assert (objective.weight, objective.epsilon, objective.xi, objective.rampup) == (0.3, 3.0, 1e-6, 0)


@pytest.mark.parametrize("norm", ["none", "batch"])
@pytest.mark.parametrize("kind", ["vectors", "images"])
def test_it_raises_the_divergence_more_than_a_random_one_of_the_same_length(norm, kind):
    images = kind == "images"
    net = LeNet((1, 28, 28), 10, norm=norm) if images else MLP(20, 4, norm=norm)
    x = torch.rand(64, 1, 28, 28) if images else torch.randn(64, 20)
    consistency = VAT(epsilon=0.5).prepare(net, x, NONE)
    change = consistency.inputs - x
    random = torch.randn_like(x)
    random *= 0.5 / random.flatten(1).norm(dim=1).view(-1, *(1,) * (x.ndim - 1))
    torch.testing.assert_close(change.flatten(1).norm(dim=1), torch.full((64,), 0.5), rtol=1e-4, atol=0)
    ours, theirs = (divergence(net, x, each, consistency.targets) for each in (change, random))
    assert ours.mean() > 3 * theirs.mean()
    assert (ours > theirs).float().mean() > 0.9


class Autocast(nn.Module):
    """Computes in half precision, with weights in single precision."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return self.net(x)


def test_it_is_found_in_half_precision_too():
    """Steps that single precision still sees are lost in the rounding of half precision."""
    net = MLP(20, 4, norm="none")
    with torch.no_grad():
        for weight in net.parameters():
            weight.mul_(2)
    x = torch.randn(256, 20)
    torch.manual_seed(0)
    full = VAT(epsilon=0.5).prepare(net, x, NONE).inputs - x
    torch.manual_seed(0)
    half = VAT(epsilon=0.5).prepare(Autocast(net), x, NONE).inputs - x
    assert nn.functional.cosine_similarity(full, half).mean() > 0.8


def test_the_direction_is_the_leading_one_of_the_divergence(dtype):
    """By the exact second derivative, which for a linear network is W^T (diag p - p p^T) W."""
    net = nn.Linear(6, 3).to(dtype)
    # Far from 0, where a step of xi is below the rounding of single precision.
    x = 30 + torch.randn(10, 6, dtype=dtype)
    with torch.no_grad():
        net.bias -= net.weight.sum(1) * 30
        probs = net(x).softmax(-1)
    found = VAT(iterations=60).direction(net, x, probs, dtype)
    for sample, direction in zip(probs, found, strict=True):
        curvature = net.weight.T @ (sample.diag() - sample.outer(sample)) @ net.weight
        leading = torch.linalg.eigh(curvature).eigenvectors[:, -1]
        assert (leading @ direction).abs() > 0.99


def test_more_iterations_find_more():
    net, x = MLP(20, 4, norm="none"), torch.randn(64, 20)
    found = []
    for iterations in (1, 8):
        torch.manual_seed(0)
        consistency = VAT(epsilon=0.1, iterations=iterations).prepare(net, x, NONE)
        found.append(divergence(net, x, consistency.inputs - x, consistency.targets).mean())
    assert found[1] > found[0]


def test_a_network_that_says_the_same_of_everything_is_given_a_random_direction():
    net, x = nn.Linear(4, 3), torch.randn(8, 4)
    nn.init.zeros_(net.weight)
    inputs = VAT(epsilon=2.0).prepare(net, x, NONE).inputs
    torch.testing.assert_close((inputs - x).norm(dim=1), torch.full((8,), 2.0))


def test_tiny_slopes_give_a_direction_too():
    net, x = nn.Linear(4, 3), torch.randn(8, 4)
    with torch.no_grad():
        net.weight *= 1e-12
    inputs = VAT(epsilon=2.0).prepare(net, x, NONE).inputs
    torch.testing.assert_close((inputs - x).norm(dim=1), torch.full((8,), 2.0))


def test_epsilon_0_changes_nothing():
    net, x = nn.Linear(4, 3), torch.randn(8, 4)
    objective = VAT(epsilon=0.0)
    consistency = objective.prepare(net, x, NONE)
    assert torch.equal(consistency.inputs, x)
    torch.testing.assert_close(objective.per_sample(net(x), consistency), torch.zeros(8), atol=1e-6, rtol=0)


class Frozen(nn.Module):
    """A body that lets no gradient through."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        with torch.no_grad():
            hidden = self.body(x).relu()
        return self.head(hidden)


class ByNumber(nn.Embedding):
    def forward(self, x):
        return super().forward(x.long()).mean(1)


@pytest.mark.parametrize("net", [Frozen(), ByNumber(5, 3)], ids=["no_grad", "whole numbers"])
def test_a_network_without_a_gradient_in_its_inputs_is_told(net):
    with pytest.raises(EvidentiaError, match=r"VAT needs the gradient of the logits in the inputs.*requires_grad_"):
        VAT().prepare(net, torch.rand(8, 4), NONE)
