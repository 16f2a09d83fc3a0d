"""Dropout with 16 bits a value does what dropout does."""

from __future__ import annotations

import pytest
import torch

from evidentia.learning.dropout import Dropout, dropout


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.75])
def test_the_share_of_dropped_values_and_the_mean_are_right(rate: float) -> None:
    torch.manual_seed(0)
    count = 400_001  # not a multiple of four
    dropped = dropout(torch.ones(count, dtype=torch.float64), rate)
    spread = (rate * (1 - rate) / count) ** 0.5
    assert abs(float((dropped == 0).double().mean()) - rate) < 5 * spread
    assert abs(float(dropped.mean()) - 1) < 5 * spread / (1 - rate)
    assert dropped.unique().numel() == 2


def test_neighbouring_values_are_dropped_independently() -> None:
    torch.manual_seed(0)
    kept = (dropout(torch.ones(400_000), 0.5) > 0).double().reshape(-1, 4)
    correlation = torch.corrcoef(kept.T) - torch.eye(4)
    assert correlation.abs().max() < 5 / 100_000**0.5


def test_gradients_flow_through_what_is_kept_only() -> None:
    torch.manual_seed(0)
    values = torch.rand(5, 7, requires_grad=True)
    result = dropout(values, 0.5)
    result.sum().backward()
    assert values.grad is not None
    assert torch.equal(values.grad, torch.where(result > 0, 2.0, 0.0))


def test_rates_of_none_and_all() -> None:
    values = torch.rand(3, 3)
    assert torch.equal(dropout(values, 0.0), values)
    assert torch.equal(dropout(values, 1.0), torch.zeros(3, 3))


def test_the_seed_decides() -> None:
    results = []
    for _ in range(2):
        torch.manual_seed(3)
        results.append(dropout(torch.ones(100), 0.3))
    assert torch.equal(*results)


def test_any_order_in_memory_is_kept() -> None:
    for values in (
        torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last),
        torch.ones(6, 4).T,
        torch.ones(9)[::2],
    ):
        dropped = dropout(values, 0.5)
        assert dropped.stride() == torch.empty_like(values).stride()
        assert set(dropped.unique().tolist()) == {0.0, 2.0}


def test_the_layer_drops_in_training_alone() -> None:
    layer = Dropout(0.5)
    assert (layer(torch.ones(1000)) == 0).any()
    assert torch.equal(layer.eval()(torch.ones(1000)), torch.ones(1000))
