"""The GRU for training and for single steps: PyTorch's own is the oracle, for outputs and for every gradient."""

import pytest
import torch
from torch import nn

from evidentia.events.networks.gru import run_gru


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_outputs_and_gradients_are_those_of_pytorch(layers: int, bidirectional: bool) -> None:
    torch.manual_seed(0)
    gru = nn.GRU(3, 5, layers, batch_first=True, bidirectional=bidirectional).double()
    x = torch.randn(4, 7, 3, dtype=torch.float64, requires_grad=True)
    first = torch.randn(layers * (1 + bidirectional), 4, 5, dtype=torch.float64, requires_grad=True)
    results = []
    for outputs, last in (gru(x, first), run_gru(gru, x, first)):
        loss = outputs.sin().sum() + last.cos().sum()
        results.append([outputs, last, *torch.autograd.grad(loss, [x, first, *gru.parameters()])])
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected)


def test_gradients_are_differences() -> None:
    torch.manual_seed(1)
    gru = nn.GRU(2, 3, batch_first=True).double()
    x = torch.randn(2, 4, 2, dtype=torch.float64, requires_grad=True)
    first = torch.randn(1, 2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *inputs: run_gru(gru, *inputs), (x, first))


def test_under_autocast_it_is_the_gru_itself() -> None:
    gru, x, first = nn.GRU(3, 5, batch_first=True), torch.randn(2, 4, 3), torch.zeros(1, 2, 5)
    with torch.autocast("cpu", torch.bfloat16):
        found, expected = run_gru(gru, x, first), gru(x, first)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)


@pytest.mark.parametrize("layers", [1, 3])
def test_a_single_step_is_that_of_the_gru(layers: int, dtype: torch.dtype) -> None:
    gru = nn.GRU(4, 6, num_layers=layers, batch_first=True).to(dtype).eval()
    x, first = torch.randn(2, 1, 4, dtype=dtype), torch.randn(layers, 2, 6, dtype=dtype)
    for ours, theirs in zip(run_gru(gru, x, first), gru(x, first), strict=True):
        torch.testing.assert_close(ours, theirs)
