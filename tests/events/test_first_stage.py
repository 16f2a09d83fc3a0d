"""The first stage for training: the plain layers, one after the other, are the oracle."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia.events import make_network
from evidentia.events.networks.first_stage import first_stage


def plain(x: Tensor, conv: nn.Conv2d, norm: nn.BatchNorm2d, pool: tuple[int, int]) -> Tensor:
    return F.avg_pool2d(norm(conv(x)).relu(), pool)


@pytest.mark.parametrize(
    ("stride", "pool", "bands"), [(2, (2, 2), 128), (1, (2, 2), 16), (2, (1, 2), 15), (3, (4, 1), 20), (1, (1, 4), 8)]
)
@pytest.mark.parametrize("momentum", [0.1, None])
def test_outputs_gradients_and_statistics_are_those_of_the_layers(
    stride: int, pool: tuple[int, int], bands: int, momentum: float | None
) -> None:
    torch.manual_seed(0)
    conv = nn.Conv2d(1, 3, 3, stride=(1, stride), padding=(0, 1), bias=False).double()
    norm = nn.BatchNorm2d(3, momentum=momentum).double()
    nn.init.uniform_(norm.weight)
    nn.init.normal_(norm.bias)
    x = (2 * torch.randn(5, 1, 10, bands, dtype=torch.float64) + 1).requires_grad_()
    results = []
    for stage in (plain, first_stage):
        its_norm = copy.deepcopy(norm)
        for _ in range(2):
            outputs = stage(x, conv, its_norm, pool)
        inputs = [x, conv.weight, its_norm.weight, its_norm.bias]
        results.append([outputs, *torch.autograd.grad(outputs.sin().sum(), inputs), *its_norm.buffers()])
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected)


def test_float32_is_as_exact_on_inputs_that_hardly_differ_from_their_neighbours() -> None:
    torch.manual_seed(0)
    conv, norm = nn.Conv2d(1, 16, 3, stride=(1, 2), padding=(0, 1), bias=False), nn.BatchNorm2d(16)
    # Frames like those of a stationary sound; differences between neighbours are what a convolution may look at.
    x = torch.randn(4, 1, 1, 128).cumsum(3) / 10 + torch.randn(4, 1, 102, 128) / 100
    with torch.no_grad():
        conv.weight -= conv.weight.mean((2, 3), keepdim=True)
    expected = plain(x.double(), copy.deepcopy(conv).double(), copy.deepcopy(norm).double(), (2, 2))
    torch.testing.assert_close(first_stage(x, conv, norm, (2, 2)).double(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["crnn", "crnn-offline"])
@pytest.mark.parametrize("bands", [128, 130])
def test_networks_train_as_with_plain_layers(name: str, bands: int, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    network = make_network(name, bands, 2, dropout=0.0).double()
    x = torch.randn(3, 16, bands, dtype=torch.float64)
    found = torch.autograd.grad(network(x).sin().sum(), list(network.parameters()))
    monkeypatch.setattr("evidentia.events.networks.crnn.first_stage", plain)
    expected = torch.autograd.grad(network(x).sin().sum(), list(network.parameters()))
    torch.testing.assert_close(found, expected)
