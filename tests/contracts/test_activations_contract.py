"""What every registered evidence activation must keep; a new one is held to it by being registered."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck

from evidentia.learning import ACTIVATIONS

every_activation = pytest.mark.parametrize("name", sorted(ACTIVATIONS))
OUTPUTS = [0.0, -0.0, 1e-30, -1e-30, 1.0, -1.0, 10.0, 50.0, -50.0, 1e30, -1e30]


@every_activation
def test_evidence_and_its_gradient_are_finite_whatever_the_network_says(name, dtype):
    outputs = torch.tensor(OUTPUTS, dtype=dtype, requires_grad=True)
    evidence = ACTIVATIONS[name](outputs)
    (gradient,) = torch.autograd.grad(evidence.sum(), outputs)
    assert evidence.dtype == dtype
    assert evidence.shape == outputs.shape
    assert bool(evidence.isfinite().all())
    assert bool((evidence >= 0).all())
    assert bool(gradient.isfinite().all())
    # Even the sum over a thousand classes is a number.
    assert bool((evidence.max() * 1000).isfinite())


@every_activation
def test_more_output_is_never_less_evidence(name):
    outputs = torch.linspace(-40, 40, 4001, dtype=torch.float64)
    evidence = ACTIVATIONS[name](outputs)
    assert bool((evidence.diff() >= 0).all())
    assert float(evidence[-1]) > float(evidence[0])


@every_activation
def test_a_large_output_can_be_learnt_away(name, dtype):
    outputs = torch.tensor([5.0, 11.0, 50.0, 1e6], dtype=dtype, requires_grad=True)
    (gradient,) = torch.autograd.grad(ACTIVATIONS[name](outputs).sum(), outputs)
    assert bool((gradient > 0).all())


@every_activation
def test_it_works_entry_by_entry(name):
    outputs = torch.randn(2, 3, 4)
    evidence = ACTIVATIONS[name](outputs)
    for index in [(0, 0, 0), (1, 2, 3)]:
        assert evidence[index] == ACTIVATIONS[name](outputs[index])
    assert torch.equal(evidence, ACTIVATIONS[name](outputs))


@every_activation
def test_gradients(name):
    # Away from 0 and 10, where relu and exp change from one branch to the other.
    outputs = torch.tensor([-7.3, -0.7, 0.4, 6.0, 9.7, 10.3, 17.0], dtype=torch.float64, requires_grad=True)
    assert gradcheck(ACTIVATIONS[name], (outputs,))
