"""The moving average of a network's tensors."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from evidentia import EvidentiaError
from evidentia.learning import batch_weights, convert_batch_norm
from evidentia.semisup import MLP, WeightAverage


def moved(net: nn.Module) -> None:
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(torch.randn_like(parameter))
    net(torch.randn(16, 3))


def test_parameters_and_running_statistics_are_averaged_and_counts_copied():
    net = MLP(3, 2, hidden=(4,), norm="batch")
    average = WeightAverage(net, decay=0.9)
    expected = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    for step in range(20):
        moved(net)
        average.update(net)
        decay = min(0.9, 1 - 1 / (step + 2))
        for name, tensor in net.state_dict().items():
            counts = not tensor.is_floating_point()
            expected[name] = tensor.clone() if counts else decay * expected[name] + (1 - decay) * tensor
    assert average.tensors.keys() == expected.keys()
    for name, tensor in average.tensors.items():
        torch.testing.assert_close(tensor, expected[name])


def test_the_first_updates_are_a_plain_mean():
    net = nn.Linear(2, 2)
    average, seen = WeightAverage(net, decay=0.999), [net.weight.detach().clone()]
    for _ in range(5):
        with torch.no_grad():
            net.weight += torch.randn_like(net.weight)
        average.update(net)
        seen.append(net.weight.detach().clone())
    torch.testing.assert_close(average.tensors["weight"], torch.stack(seen).mean(0))


def test_calling_it_is_calling_a_network_with_these_tensors():
    net, x = MLP(3, 2, hidden=(4,), norm="batch").eval(), torch.randn(5, 3)
    average = WeightAverage(net)
    before = net(x)
    moved(net)
    assert torch.equal(average(net, x), before)
    other = copy.deepcopy(net)
    other.load_state_dict(average.tensors)
    assert torch.equal(other(x), before)


def test_batch_weights_hold_for_it_too():
    net, x = convert_batch_norm(MLP(3, 2, hidden=(4,), norm="batch")), torch.randn(5, 3)
    average = WeightAverage(net)
    with batch_weights(net, [1.0, 1.0, 1.0, 0.0, 0.0]):
        torch.testing.assert_close(average(net, x), net(x))


def test_its_state_is_taken_up():
    net = MLP(3, 2, hidden=(4,), norm="batch")
    average = WeightAverage(net)
    moved(net)
    average.update(net)
    other = WeightAverage(net)
    other.load_state_dict(average.state_dict())
    moved(net)
    average.update(net)
    other.update(net)
    assert all(torch.equal(tensor, other.tensors[name]) for name, tensor in average.tensors.items())


def test_what_does_not_fit_is_refused_and_changes_nothing():
    net = nn.Linear(2, 2)
    average = WeightAverage(net)
    before = average.state_dict()
    with pytest.raises(EvidentiaError, match="weight missing or of other shape"):
        average.load_state_dict(WeightAverage(nn.Linear(3, 2)).state_dict())
    with pytest.raises(EvidentiaError, match="bias"):
        average.load_state_dict(WeightAverage(nn.Linear(2, 2, bias=False)).state_dict())
    with pytest.raises(EvidentiaError, match="other tensors: bias"):
        average.update(nn.Linear(2, 2, bias=False))
    assert all(torch.equal(tensor, before[name]) for name, tensor in average.state_dict().items())
    with pytest.raises(EvidentiaError, match="less than 1"):
        WeightAverage(net, decay=1.0)
    with pytest.raises(EvidentiaError, match="lazy"):
        WeightAverage(nn.LazyLinear(2))
