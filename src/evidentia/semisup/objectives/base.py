"""What an objective is: the cost of an unlabeled sample, in three steps that training and reweighting share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor, nn

from evidentia._support.checks import shape_or_kind
from evidentia._support.errors import EvidentiaError
from evidentia._support.registry import Registry
from evidentia.learning import frozen_statistics
from evidentia.learning.checkpoint import check_no_state
from evidentia.semisup.augmentation import Augmentation
from evidentia.semisup.method_settings import check_real
from evidentia.semisup.networks.calls import in_full

OBJECTIVES: Registry[Callable[..., Objective]] = Registry("semi-supervised objective")

Labeled: TypeAlias = tuple[Tensor, Tensor]
"""A batch of inputs and its class indices."""


@dataclass(frozen=True)
class Consistency:
    """What the network is to be run on for the loss, and what it is to say there.

    Attributes:
        inputs: what the network is run on, shape `(B, ...)`.
        targets: what it is to say, fixed: class probabilities, shape `(B, K)`; None if only its own output matters.
        counts: how much of each sample counts, shape `(B,)`: 0 or 1 of a confidence threshold, 1 if there is none.
    """

    inputs: Tensor
    targets: Tensor | None
    counts: Tensor

    def __post_init__(self) -> None:
        """Require the same number of samples everywhere."""
        lengths = [len(part) for part in (self.inputs, self.targets, self.counts) if part is not None]
        if len(set(lengths)) > 1:
            raise EvidentiaError(
                f"inputs, targets and counts must be of the same samples, got lengths {', '.join(map(str, lengths))}"
            )


@dataclass(kw_only=True, eq=False)
class Objective(ABC):
    r"""What an unlabeled sample costs: $r_j$ of the training loss $\sum_i l_i + c \sum_j w_j r_j$ (thesis 3.2).

    A training step calls `prepare`, then the network on `inputs` of what that gave, then `per_sample`, and after the
    optimiser's step `after_step`. Only the call in the middle has a gradient, so that a reweighting method can repeat
    it with parameters of its own. Randomness comes from PyTorch's global generator alone.

    Args:
        weight: the coefficient c.
        rampup: the number of updates over which c is reached; 0 for none, as in the thesis.

    Example:
        >>> from evidentia.semisup import AUGMENTATIONS
        >>> network, objective = nn.Linear(2, 3), OBJECTIVES["pi-model"]()
        >>> objective.start(network)
        >>> consistency = objective.prepare(network, torch.randn(5, 2), AUGMENTATIONS["vectors"]())
        >>> costs = objective.per_sample(network(consistency.inputs), consistency)
        >>> costs.shape, costs.requires_grad
        (torch.Size([5]), True)
    """

    weight: float = 1.0
    rampup: int = 0

    def __post_init__(self) -> None:
        """Require settings in their range."""
        check_real(self, "weight")
        check_real(self, "rampup")

    def start(self, network: nn.Module) -> None:  # noqa: B027 (most objectives need nothing of the kind)
        """Told the network before the first step."""

    @abstractmethod
    def prepare(
        self, network: nn.Module, x: Tensor, augment: Augmentation, *, labeled: Labeled | None = None
    ) -> Consistency:
        """Choose inputs and targets for a batch of unlabeled samples.

        The network is run in the mode that it is in, with the weights of a surrounding `batch_weights`, without
        gradients for its parameters and without changing its running statistics.

        Args:
            network: gives logits of shape `(B, K)`.
            x: unlabeled samples, shape `(B, ...)`.
            augment: how samples are changed without changing their class.
            labeled: labeled samples, for objectives that mix them in.
        """

    @abstractmethod
    def per_sample(self, logits: Tensor, consistency: Consistency) -> Tensor:
        """The cost of every sample, shape `(B,)`, given what the network says about `consistency.inputs`."""

    def after_step(self, network: nn.Module) -> None:  # noqa: B027
        """Told the network after every step of the optimiser."""

    def coefficient(self, step: int) -> float:
        r"""$c\, e^{-5 (1 - \min(t / T, 1))^2}$ before update t, with the ramp-up of T updates of Laine and Aila (2017).

        Example:
            >>> objective = OBJECTIVES["vat"](weight=0.3, rampup=100)
            >>> [round(objective.coefficient(step), 3) for step in (0, 50, 100)]
            [0.002, 0.086, 0.3]
        """
        if step >= self.rampup:
            return self.weight
        return self.weight * math.exp(-5 * (1 - step / self.rampup) ** 2)

    def state_dict(self) -> dict[str, Tensor]:
        """What the objective has gathered during training, as tensors."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up what `state_dict` gave."""
        check_no_state(self, state, "objective")


def logits_of(network: nn.Module, x: Tensor) -> Tensor:
    """What a network says, without gradients, with running statistics and samples left as they are.

    Example:
        >>> logits_of(nn.Linear(2, 3), torch.randn(5, 2)).requires_grad
        False
    """
    with torch.no_grad(), frozen_statistics(network):
        # A copy: a network may work in place.
        return check_logits(network(x.clone()), len(x))


def check_logits(logits: Tensor, samples: int) -> Tensor:
    """Require one row of at least two class scores for each sample, and give it in full precision."""
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != samples or logits.shape[1] < 2:
        raise EvidentiaError(
            f"the network must give logits of shape ({samples}, K) with K >= 2 for a batch of {samples} samples, "
            f"got {shape_or_kind(logits)}"
        )
    return in_full(logits)


def prepared_by(
    objective: Objective, network: nn.Module, x: Tensor, augment: Augmentation, labeled: Labeled | None = None
) -> Consistency:
    """What `prepare` of an objective gives, required to be of one input a sample."""
    consistency = objective.prepare(network, x, augment, labeled=labeled)
    name = type(objective).__name__
    if not isinstance(consistency, Consistency):
        raise EvidentiaError(f"prepare of {name} must give a Consistency, got {type(consistency).__name__}")
    if len(consistency.inputs) != len(x):
        raise EvidentiaError(
            f"prepare of {name} must give one input a sample, {len(x)} for a batch of {len(x)}, got "
            f"{len(consistency.inputs)}; further views of a sample go into its targets"
        )
    if consistency.inputs.dtype != x.dtype:
        raise EvidentiaError(
            f"prepare of {name} must give inputs of the samples' dtype {x.dtype}, got {consistency.inputs.dtype}; end "
            "it with .to(x)"
        )
    return consistency


def costs_of(objective: Objective, logits: Tensor, consistency: Consistency) -> Tensor:
    """What `per_sample` of an objective gives, required to be one cost a sample.

    Other shapes would be taken with the weights all the same, and weigh nothing: `(B, 1)` times `(B,)` is `(B, B)`.

    Example:
        >>> consistency = Consistency(torch.ones(5, 2), None, torch.ones(5))
        >>> costs_of(OBJECTIVES["entropy"](), torch.zeros(5, 2), consistency).shape
        torch.Size([5])
    """
    costs = objective.per_sample(logits, consistency)
    samples = len(logits)
    if not isinstance(costs, Tensor) or costs.shape != (samples,) or not costs.is_floating_point():
        given = f"{costs.dtype} of shape {tuple(costs.shape)}" if isinstance(costs, Tensor) else type(costs).__name__
        raise EvidentiaError(
            f"per_sample of {type(objective).__name__} must give one cost a sample, floating numbers of shape "
            f"({samples},), got {given}; sum over classes, and leave the mean over samples to training"
        )
    return costs


def targets_for(logits: Tensor, consistency: Consistency) -> Tensor:
    """The targets, required to be there and of the same shape as the logits."""
    check_logits(logits, len(consistency.inputs))
    if consistency.targets is None or consistency.targets.shape != logits.shape:
        given = "none" if consistency.targets is None else f"those of shape {tuple(consistency.targets.shape)}"
        raise EvidentiaError(
            f"targets of shape {tuple(logits.shape)} are needed, got {given}; use what `prepare` of this objective gave"
        )
    return consistency.targets


def ones(x: Tensor) -> Tensor:
    """Every sample counts."""
    return x.new_ones(len(x))
