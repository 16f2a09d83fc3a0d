"""One training step and the passes of the network that its hypergradient needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from evidentia.learning import (
    WeightedBatchNorm1d,
    WeightedBatchNorm2d,
    WeightedBatchNorm3d,
    batch_weights,
    frozen_statistics,
)
from evidentia.semisup.hypergradients.closed_form import LastLayerProblem, check_numbers, check_sizes
from evidentia.semisup.networks.last_layer import LastLayer
from evidentia.semisup.objectives import Consistency, Objective

Tensors: TypeAlias = Mapping[str, Tensor]
"""Parameters and buffers by name."""

Outputs: TypeAlias = tuple[Tensor, Tensor]
"""Features and logits of a batch."""

WEIGHTED = (WeightedBatchNorm1d, WeightedBatchNorm2d, WeightedBatchNorm3d)


@dataclass(frozen=True)
class InnerProblem:
    r"""One training step, as a function of the weights of its unlabeled samples.

    With means over the n labeled, B unlabeled and m clean samples of its batches, l being the cross entropy,

    $$L_T(\theta, w) = \frac{1}{n} \sum_i l(f(x_i; \theta), y_i) + \frac{c}{B} \sum_j w_j\, r_j(\theta), \qquad
      L_V(\theta) = \frac{1}{m} \sum_v l(f(x_v; \theta), y_v)$$

    which is what a trainer steps along: weights that are all 1/2 halve the unlabeled loss, as it is divided by B and
    not by their sum. The thesis ("Reweighting the unlabeled data", chapter 3) has sums in place of means.

    The network is run in the mode that it is in. In training mode its batch norms use these statistics, and in
    evaluation mode their running ones; running ones never change.

    | pass | statistics of |
    |---|---|
    | labeled and unlabeled, `concat` | both together, weights 1 and w |
    | labeled, not `concat` | the labeled batch |
    | unlabeled, not `concat` | the unlabeled batch, weights w |
    | clean samples | their own batch |
    | clean samples, `joint` | them and `consistency.inputs` together, weights 1 and w |

    Weights go into statistics where the network has weighted batch norm (`convert_batch_norm`); plain batch norm counts
    all samples alike. Those of the training passes are constants for the scope "last", and functions of w for "full".

    Attributes:
        last: the network, never stepped, never rewritten.
        objective: gives $r_j$.
        consistency: what the objective prepared for the B unlabeled samples.
        coefficient: c, the weight of the unlabeled loss.
        labeled: a batch of labeled samples and their classes.
        validation: a batch of clean samples and their classes.
        weights: w, shape `(B,)`.
        rate: $\alpha$, the size of an inner step.
        joint: whether clean samples are normalised together with the weighted unlabeled ones (joint-V): that gives the
            weights a direct way to $L_V$, where the consistency loss of faraway samples has no gradient to speak of.
            Needs weighted batch norm; a network with no batch norm, or in evaluation mode, has a direct part of 0.
        concat: whether labeled and unlabeled samples go through the network together.
    """

    last: LastLayer
    objective: Objective
    consistency: Consistency
    coefficient: float
    labeled: tuple[Tensor, Tensor]
    validation: tuple[Tensor, Tensor]
    weights: Tensor
    rate: float
    joint: bool = False
    concat: bool = True

    def __post_init__(self) -> None:
        """Require sizes that fit."""
        check_sizes(self.consistency.inputs, self.consistency, self.labeled, self.validation, self.weights)
        check_numbers(self.coefficient, self.rate)


def at_last_layer(problem: InnerProblem) -> LastLayerProblem:
    """Run the network for features, with a graph to the weights only if `joint`."""
    network = problem.last.network
    # Detached, so that a gradient of the weights goes through no more than their way.
    tensors = {**{name: each.detach() for name, each in network.named_parameters()}, **copied_buffers(network)}
    weights = problem.weights.detach()
    with frozen_statistics(network):
        with torch.no_grad():
            (labeled, _), (unlabeled, _) = training_passes(problem, tensors, weights)
        statistics = weights.clone().requires_grad_() if problem.joint else None
        with torch.set_grad_enabled(problem.joint):
            hidden, _ = validation_pass(problem, tensors, statistics)
    return LastLayerProblem(
        head=problem.last.head,
        objective=problem.objective,
        consistency=problem.consistency,
        coefficient=problem.coefficient,
        labeled=(labeled, problem.labeled[1]),
        unlabeled=unlabeled,
        validation=(hidden, problem.validation[1]),
        weights=weights,
        rate=problem.rate,
        statistics=statistics,
    )


def training_passes(problem: InnerProblem, tensors: Tensors, weights: Tensor) -> tuple[Outputs, Outputs]:
    """Features and logits of the labeled and of the unlabeled batch."""
    (x, _), inputs = problem.labeled, problem.consistency.inputs
    if problem.concat:
        hidden, logits = _pass(problem.last, tensors, [x, inputs], [weights.new_ones(len(x)), weights])
        return (hidden[: len(x)], logits[: len(x)]), (hidden[len(x) :], logits[len(x) :])
    return _pass(problem.last, tensors, [x], []), _pass(problem.last, tensors, [inputs], [weights])


def validation_pass(problem: InnerProblem, tensors: Tensors, statistics: Tensor | None) -> Outputs:
    """Features and logits of the clean batch; `statistics` are the weights that it is normalised with, for joint-V."""
    x = problem.validation[0]
    if statistics is None:
        return _pass(problem.last, tensors, [x], [])
    weights = [statistics.new_ones(len(x)), statistics]
    hidden, logits = _pass(problem.last, tensors, [x, problem.consistency.inputs], weights, required=True)
    return hidden[: len(x)], logits[: len(x)]


def _pass(
    last: LastLayer, tensors: Tensors, x: Sequence[Tensor], weights: Sequence[Tensor], *, required: bool = False
) -> Outputs:
    with _statistics(last.network, torch.cat(list(weights)) if weights else None, required):
        return last.hidden_and_logits(torch.cat(list(x)) if len(x) > 1 else x[0], tensors)


@contextmanager
def _statistics(network: nn.Module, weights: Tensor | None, required: bool) -> Iterator[None]:
    """Weighted statistics if the network's batch norms take weights, which they must if `required`."""
    plain = any(isinstance(layer, _BatchNorm) and not isinstance(layer, WEIGHTED) for layer in network.modules())
    with batch_weights(network, None if plain and not required else weights):
        yield


def copied_buffers(network: nn.Module) -> dict[str, Tensor]:
    """Copies, for layers that change their buffers in ways of their own."""
    return {name: each.clone() for name, each in network.named_buffers()}
