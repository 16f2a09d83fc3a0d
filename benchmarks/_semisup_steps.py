"""What a training step with a hypergradient costs, over one of the base objective with plain batch norm.

A step is: prepare the unlabeled batch, one pass of labeled and unlabeled samples together, backward, SGD. Samples are
random and not augmented, so that nothing but the networks' work is in the denominator. The weights' update itself is in
the time. With an update every L steps, L - 1 of them are steps with weighted batch norm alone: those two are measured
and the mean over L steps is shown.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from _measure import best_together
from evidentia.learning import batch_weights, convert_batch_norm, frozen_statistics
from evidentia.semisup import AUGMENTATIONS, OBJECTIVES, LastLayer, LeNet, WideResNet
from evidentia.semisup.hypergradients.hypergradient import (
    HyperGradient,
    InnerProblem,
    LastLayerProblem,
    ift_gradient_from,
    meta_gradient,
    meta_gradient_from,
)

RATE = 0.05
CLASSES = 10


class Step(NamedTuple):
    """Seconds of a step of one kind, and of the base objective in the same run."""

    case: str
    kind: str
    every: int | None
    seconds: float
    base: float
    limit: float | None

    @property
    def ratio(self) -> float:
        """How many times the step of the base objective."""
        return self.seconds / self.base

    @property
    def met(self) -> bool:
        """Whether it costs no more than the limit; without a limit the row is for information."""
        return self.limit is None or self.ratio <= self.limit


class Training:
    """A network with its batches, to be stepped in several ways; each way has a network of its own."""

    def __init__(self, network: nn.Module, objective: str, labeled: int, unlabeled: int) -> None:
        shape = network.input_shape
        self.plain = network
        self.objective = OBJECTIVES[objective]()
        self.augment = AUGMENTATIONS["none"]()
        self.labeled = torch.randn(labeled, *shape), torch.arange(labeled) % CLASSES
        self.clean = torch.randn(labeled, *shape), torch.arange(labeled) % CLASSES
        self.unlabeled = torch.randn(unlabeled, *shape)
        self.weights = 0.2 + 0.8 * torch.rand(unlabeled)

    def base(self) -> Callable[[], None]:
        """A step of the objective with plain batch norm and no weights."""
        network = copy.deepcopy(self.plain)
        optimizer = torch.optim.SGD(network.parameters(), lr=1e-4)
        (x, y), n = self.labeled, len(self.labeled[0])

        def step() -> None:
            consistency = self.objective.prepare(network, self.unlabeled, self.augment, labeled=self.labeled)
            logits = network(torch.cat([x, consistency.inputs]))
            costs = self.objective.per_sample(logits[n:], consistency)
            loss = F.cross_entropy(logits[:n], y) + self.objective.weight * costs.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return step

    def weighted(
        self, gradient: Callable[[LastLayerProblem], HyperGradient] | None, *, own: bool = False, joint: bool = False
    ) -> Callable[[], None]:
        """A step with weights, and a hypergradient from the features of its own pass.

        Clean samples are the labeled ones of the step; if `own`, another batch of as many, which is run too. If
        `joint`, their batch statistics are differentiated by the weights.
        """
        last = LastLayer(convert_batch_norm(copy.deepcopy(self.plain)))
        network = last.network
        optimizer = torch.optim.SGD(network.parameters(), lr=1e-4)
        (x, y), n = self.labeled, len(self.labeled[0])
        ones = torch.ones(n)

        def step() -> None:
            statistics = self.weights.clone().requires_grad_() if joint else self.weights
            with batch_weights(network, self.weights):
                consistency = self.objective.prepare(network, self.unlabeled, self.augment, labeled=self.labeled)
            with batch_weights(network, torch.cat([ones, statistics])):
                hidden, logits = last.hidden_and_logits(torch.cat([x, consistency.inputs]))
            if gradient is not None:
                clean = hidden[:n], y
                if own:
                    with torch.no_grad(), frozen_statistics(network):
                        clean = last.hidden_and_logits(self.clean[0])[0], self.clean[1]
                problem = LastLayerProblem(
                    head=last.head,
                    objective=self.objective,
                    consistency=consistency,
                    coefficient=self.objective.weight,
                    labeled=(hidden[:n], y),
                    unlabeled=hidden[n:],
                    validation=clean,
                    weights=self.weights,
                    rate=RATE,
                    statistics=statistics if joint else None,
                )
                self.updated(gradient(problem).gradient)
            costs = self.objective.per_sample(logits[n:], consistency)
            loss = F.cross_entropy(logits[:n], y) + self.objective.weight * (self.weights * costs).mean()
            optimizer.zero_grad()
            # The weights of the statistics are no parameters of the training loss.
            loss.backward(inputs=list(network.parameters()))
            optimizer.step()

        return step

    def full(self, *, l2rw: bool) -> Callable[[], None]:
        """A step with plain batch norm after a hypergradient of the full network.

        If `l2rw`, as in Ren et al. (ICML 2018): weights from 0 at every step, which are the negative gradient's
        positive part, scaled.
        """
        network = copy.deepcopy(self.plain)
        last = LastLayer(network)
        optimizer = torch.optim.SGD(network.parameters(), lr=1e-4)
        (x, y), n = self.labeled, len(self.labeled[0])
        start = torch.zeros_like(self.weights) if l2rw else self.weights

        def step() -> None:
            consistency = self.objective.prepare(network, self.unlabeled, self.augment, labeled=self.labeled)
            problem = InnerProblem(
                last, self.objective, consistency, self.objective.weight, self.labeled, self.clean, start, RATE
            )
            slope = meta_gradient(problem, "full").gradient
            weights = len(slope) * F.normalize(slope.neg().clamp(min=0), p=1, dim=0) if l2rw else self.updated(slope)
            logits = network(torch.cat([x, consistency.inputs]))
            costs = self.objective.per_sample(logits[n:], consistency)
            loss = F.cross_entropy(logits[:n], y) + self.objective.weight * (weights * costs).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return step

    def updated(self, slope: Tensor) -> Tensor:
        """The weights after a step, which are not kept, so that all steps are alike."""
        return (self.weights - 0.05 * slope / slope.abs().mean().clamp(min=1e-12)).clamp(0, 1)


def training_steps(quick: bool) -> list[Step]:
    """LeNet and WRN-28-2 with two objectives."""
    lenet, wide = LeNet((1, 28, 28), CLASSES), WideResNet((3, 32, 32), CLASSES)
    steps = []
    for objective in ("vat", "pseudo-label"):
        steps += compare(f"LeNet, {objective}, 64 + 256", Training(lenet, objective, 64, 256), 5 if quick else 15)
        steps += compare(f"WRN-28-2, {objective}, 4 + 12", Training(wide, objective, 4, 12), 1 if quick else 4)
    return steps


def compare(case: str, training: Training, repeats: int) -> list[Step]:
    """Time all kinds of steps in turns."""
    ift = partial(ift_gradient_from, inner_steps=3, terms=5)
    base, weighted, meta, own, joint, implicit, full, l2rw = best_together(
        training.base(),
        training.weighted(None),
        training.weighted(meta_gradient_from),
        training.weighted(meta_gradient_from, own=True),
        training.weighted(meta_gradient_from, joint=True),
        training.weighted(ift),
        training.full(l2rw=False),
        training.full(l2rw=True),
        repeats=repeats,
    )

    def row(kind: str, every: int | None, seconds: float, limit: float | None = None) -> Step:
        mean = seconds if every is None else (seconds + (every - 1) * weighted) / every
        return Step(case, kind, every, mean, base, limit)

    return [
        row("weighted batch norm alone", None, weighted),
        row("meta, last layer", 1, meta, 1.2),
        row("meta, last layer", 5, meta, 1.15),
        row("meta, last layer, V a batch of its own", 1, own),
        row("meta, last layer, V a batch of its own", 5, own),
        row("meta, last layer, joint-V", 5, joint),
        row("ift, last layer, J = 3, P = 5", 5, implicit, 1.3),
        row("meta, full network, plain batch norm", 1, full),
        row("l2rw, full network, plain batch norm (published: 3)", 1, l2rw),
    ]


def show_steps(steps: list[Step]) -> None:
    """Print a table of steps."""
    table = Table(title="a training step over that of the base objective with plain batch norm, one thread")
    for heading in ("case", "step"):
        table.add_column(heading, overflow="fold")
    for heading in ("L", "base", "ours", "ratio", "at most"):
        table.add_column(heading, justify="right")
    table.add_column("met")
    for step in steps:
        limit = ("", "") if step.limit is None else (f"{step.limit:g}", "[green]yes[/]" if step.met else "[red]no[/]")
        numbers = (f"{step.base:.4g} s", f"{step.seconds:.4g} s", f"{step.ratio:.2f}")
        table.add_row(step.case, step.kind, str(step.every or ""), *numbers, *limit)
    Console().print(table)
