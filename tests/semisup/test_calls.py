"""A network called with other tensors: shared ones are replaced everywhere, and its own are there again after."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call

from evidentia.semisup.networks.calls import call_with


class Shared(nn.Module):
    """A layer under two names, and a weight that two layers share."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.other = nn.Linear(2, 2), nn.Linear(2, 2)
        self.again, self.other.weight = self.first, self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.other(self.again(self.first(x)))


def test_shared_tensors_are_replaced_everywhere_and_put_back() -> None:
    network, x = Shared(), torch.randn(3, 2)
    own, said = dict(network.named_parameters()), network(x)
    tensors = {name: torch.randn_like(tensor) for name, tensor in own.items()}
    weight, bias, last = tensors["first.weight"], tensors["first.bias"], tensors["other.bias"]
    expected = ((x @ weight.T + bias) @ weight.T + bias) @ weight.T + last
    assert torch.allclose(call_with(network, tensors, x), expected, atol=1e-5)
    assert all(tensor is own[name] for name, tensor in network.named_parameters())
    assert torch.equal(network(x), said)


def test_without_shared_tensors_it_is_torchs_own_call() -> None:
    network, x = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).eval(), torch.randn(4, 2)
    tensors = {"0.weight": torch.randn(3, 2), "1.running_mean": torch.randn(3)}
    assert torch.equal(call_with(network, tensors, x), functional_call(network, tensors, (x,)))
    assert torch.equal(call_with(network, {}, x), network(x))
