"""Max pooling by slices against PyTorch's own, as a layer and as a part of LeNet."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from _measure import Row, best_together
from evidentia.semisup.networks.models import LeNet
from evidentia.semisup.networks.pooling import HalvingMaxPool

_REFERENCE = "nn.MaxPool2d(2)"
# What it is there for: to be no slower anywhere.
_TARGET = 1.0


def pooling(quick: bool) -> list[Row]:
    """Forward alone, as whole pools and teachers go, and with the gradient."""
    repeats = 20 if quick else 100
    rows = []
    for shape in ((200, 6, 28, 28), (200, 16, 10, 10)):
        case = f"layer, {' x '.join(map(str, shape))}"
        rows += _rows(case, nn.MaxPool2d(2), HalvingMaxPool(), torch.randn(shape, requires_grad=True), repeats)
    ours = LeNet((1, 28, 28), num_classes=10)
    rows += _rows("LeNet, batch 200", _with_reference(ours), ours, torch.randn(200, 1, 28, 28), repeats)
    return rows


def _rows(case: str, reference: nn.Module, ours: nn.Module, x: Tensor, repeats: int) -> list[Row]:
    rows = []
    for name, run in (("forward", _forward), ("forward and backward", _both)):
        seconds = best_together(lambda run=run: run(reference, x), lambda run=run: run(ours, x), repeats=repeats)
        rows.append(Row(f"{case}, {name}", _REFERENCE, *seconds, _TARGET))
    return rows


def _forward(module: Callable[[Tensor], Tensor], x: Tensor) -> None:
    with torch.no_grad():
        module(x)


def _both(module: Callable[[Tensor], Tensor], x: Tensor) -> None:
    module(x).sum().backward()


def _with_reference(network: LeNet) -> LeNet:
    same = LeNet((1, 28, 28), num_classes=10)
    same.load_state_dict(network.state_dict())
    same.body = nn.Sequential(
        *(nn.MaxPool2d(2) if isinstance(layer, HalvingMaxPool) else layer for layer in same.body.children())
    )
    return same
