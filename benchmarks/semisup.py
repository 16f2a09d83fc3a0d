"""What robust semi-supervised training costs, as ratios to the plain way in the same run.

Run: `python benchmarks/semisup.py [--quick] [--only norm|pooling|steps]`. One thread; CPU seconds, the best of several
runs taken in turns. Leaves with status 1 if a target is missed. Three tables: weighted batch norm against
`nn.BatchNorm`, forward and backward; max pooling by slices against PyTorch's (`_semisup_pooling`); and training steps
with a hypergradient against those of the base objective with plain batch norm (`_semisup_steps`).
"""

from __future__ import annotations

import argparse
import copy
import os
import sys
from contextlib import nullcontext
from functools import partial
from typing import NamedTuple

# BLAS and OpenMP read these when they are loaded.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from _measure import best_together
from _measure import show as show_ratios
from _semisup_pooling import pooling
from _semisup_steps import show_steps, training_steps
from evidentia.learning import batch_weights, convert_batch_norm

LIMIT = 1.1
LAYERS = [
    (100, 6, 28, 28),
    (356, 6, 28, 28),
    (100, 16, 10, 10),
    (356, 16, 10, 10),
    (100, 32, 32, 32),
    (100, 64, 16, 16),
    (100, 128, 8, 8),
]
SMALL_LAYERS = [(100, 120), (356, 84)]


class Cost(NamedTuple):
    """Seconds of a case with native batch norm, with weights, and with weights that have a gradient."""

    case: str
    native: float
    weighted: float
    learned: float | None
    limit: float | None

    @property
    def met(self) -> bool:
        """Whether fixed weights cost no more than the limit; without a limit the row is for information."""
        return self.limit is None or self.weighted <= self.limit * self.native


def lenet() -> nn.Sequential:
    """LeNet with batch norm after each layer, for images of 28 x 28."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.BatchNorm1d(120), nn.ReLU(),
        nn.Linear(120, 84), nn.BatchNorm1d(84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


class WideBlock(nn.Module):
    """A residual block of a wide ResNet: norm, activation, convolution, twice."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.BatchNorm2d(inputs), nn.BatchNorm2d(outputs)])
        self.first = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.shortcut = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The block's output."""
        active = torch.relu(self.norms[0](x))
        return self.shortcut(active) + self.second(torch.relu(self.norms[1](self.first(active))))


def wide_resnet() -> nn.Sequential:
    """WRN-28-2, for images of 32 x 32."""
    widths = [16] + [32] * 4 + [64] * 4 + [128] * 4
    strides = [1] * 4 + [2] + [1] * 3 + [2] + [1] * 3
    blocks = [WideBlock(*each) for each in zip(widths, widths[1:], strides, strict=False)]
    head = [nn.BatchNorm2d(128), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)]
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), *blocks, *head)


def compare(case: str, plain: nn.Module, x: Tensor, limit: float | None, repeats: int, learned: bool = True) -> Cost:
    """Time passes of a network as it is and converted.

    `batch_weights` checks and scales the weights once for all layers. That is in the time of a network, and of a layer
    with learned weights, but not in that of a single layer with fixed ones.
    """
    fixed, learning = (convert_batch_norm(copy.deepcopy(plain)) for _ in range(2))
    weight = torch.rand(len(x), generator=torch.Generator().manual_seed(0))
    learned_weight = weight.clone().requires_grad_()
    direction = torch.randn_like(plain(x))

    def step(model: nn.Module, weight: Tensor | None = None) -> None:
        model.zero_grad()
        x.grad = None
        with nullcontext() if weight is None else batch_weights(model, weight):
            model(x).backward(direction)

    single = isinstance(plain, nn.BatchNorm1d | nn.BatchNorm2d)
    calls = [partial(step, plain), partial(step, fixed, None if single else weight)]
    if learned:
        calls.append(partial(step, learning, learned_weight))
    with batch_weights(fixed, weight if single else None):
        seconds = best_together(*calls, repeats=repeats)
    return Cost(case, seconds[0], seconds[1], seconds[2] if learned else None, limit)


def batch_norm(quick: bool) -> list[Cost]:
    """Single layers and whole networks."""
    costs = []
    for shape in [*LAYERS, *SMALL_LAYERS]:
        x = torch.randn(shape, requires_grad=True)
        layer = nn.BatchNorm1d(shape[1]) if len(shape) == 2 else nn.BatchNorm2d(shape[1])
        # Layers of some microseconds are all overhead; what they add is in the network's row.
        limit = None if shape in SMALL_LAYERS else LIMIT
        case = f"layer, {' x '.join(map(str, shape))}"
        costs.append(compare(case, layer, x, limit, 20 if x.numel() > 1e6 else 200))
        if len(shape) == 4 and shape[1] % 16 == 0:
            last = x.detach().contiguous(memory_format=torch.channels_last).requires_grad_()
            costs.append(compare(f"{case}, channels last", layer, last, None, 20 if x.numel() > 1e6 else 200))
    repeats = 20 if quick else 60
    costs += [compare(f"LeNet, batch {n}", lenet(), torch.randn(n, 1, 28, 28), LIMIT, repeats) for n in (100, 356)]
    repeats = 2 if quick else 6
    costs.append(compare("WRN-28-2, batch 100", wide_resnet(), torch.randn(100, 3, 32, 32), LIMIT, repeats, not quick))
    return costs


def show(costs: list[Cost]) -> None:
    """Print a table of costs."""
    table = Table(title="weighted batch norm over nn.BatchNorm, forward and backward, one thread")
    table.add_column("case", overflow="fold")
    for heading in ("native", "weighted", "ratio", "learned weights", "ratio", "at most"):
        table.add_column(heading, justify="right")
    table.add_column("met")
    for cost in costs:
        learned = ("", "") if cost.learned is None else (f"{cost.learned:.4g} s", f"{cost.learned / cost.native:.2f}")
        limit = ("", "") if cost.limit is None else (f"{cost.limit:g}", "[green]yes[/]" if cost.met else "[red]no[/]")
        numbers = (f"{cost.native:.4g} s", f"{cost.weighted:.4g} s", f"{cost.weighted / cost.native:.2f}")
        table.add_row(cost.case, *numbers, *learned, *limit)
    Console().print(table)


def main() -> int:
    """Measure, print, and say by the status whether all targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats of the whole networks")
    parser.add_argument("--only", choices=["norm", "pooling", "steps"], help="one of the tables")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    met = True
    if arguments.only in (None, "norm"):
        costs = batch_norm(arguments.quick)
        show(costs)
        met = all(cost.met for cost in costs)
    if arguments.only in (None, "pooling"):
        rows = pooling(arguments.quick)
        show_ratios(rows, "max pooling of 2 x 2 pixels, one thread")
        met = met and all(row.met for row in rows)
    if arguments.only in (None, "steps"):
        steps = training_steps(arguments.quick)
        show_steps(steps)
        met = met and all(step.met for step in steps)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
