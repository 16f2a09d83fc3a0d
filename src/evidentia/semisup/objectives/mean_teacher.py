"""Mean teacher: say what an average of your earlier selves says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from evidentia._support.errors import EvidentiaError
from evidentia.learning import frozen_statistics
from evidentia.semisup.augmentation import Augmentation
from evidentia.semisup.method_settings import check_real, check_view
from evidentia.semisup.networks.averaging import WeightAverage
from evidentia.semisup.objectives.base import (
    OBJECTIVES,
    Consistency,
    Labeled,
    Objective,
    check_logits,
    ones,
    targets_for,
)
from evidentia.semisup.objectives.distances import squared_error


@OBJECTIVES.register("mean-teacher")
@dataclass(kw_only=True, eq=False)
class MeanTeacher(Objective):
    r"""The squared difference from a teacher, whose weights are a moving average (Tarvainen and Valpola, NeurIPS 2017).

    $$r_j = \frac{1}{K} \sum_k \big( p_k(\tilde x_j; \theta) - p_k(\tilde x'_j; \bar\theta) \big)^2$$

    The average is that of `evidentia.semisup.WeightAverage`: of parameters and of running statistics. In training mode
    the teacher normalises a batch by the batch's statistics, weighted as the network's are, and drops units by draws of
    its own.

    Args:
        weight: the coefficient of the objective.
        rampup: the number of updates over which it is reached.
        decay: of the moving average.
        view: the augmentation of the input that is learnt from; "weak" for two of the same kind as in the paper.

    Example:
        >>> from evidentia.semisup import AUGMENTATIONS
        >>> network, objective = nn.Linear(2, 3), MeanTeacher()
        >>> objective.start(network)
        >>> consistency = objective.prepare(network, torch.randn(5, 2), AUGMENTATIONS["none"]())
        >>> bool((objective.per_sample(network(consistency.inputs), consistency) == 0).all())
        True
    """

    weight: float = 8.0
    decay: float = 0.95
    view: Literal["weak", "strong"] = "strong"
    teacher: WeightAverage | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        """Require settings in their range."""
        super().__post_init__()
        check_real(self, "decay", 1, open_high=True)
        check_view(self, "view")

    def start(self, network: nn.Module) -> None:
        """Let the teacher start as the network is."""
        self.teacher = WeightAverage(network, self.decay)

    def prepare(
        self, network: nn.Module, x: Tensor, augment: Augmentation, *, labeled: Labeled | None = None
    ) -> Consistency:
        """One view to learn from, and what the teacher says of another."""
        teacher = self._started()
        with torch.no_grad(), frozen_statistics(network):
            targets = check_logits(teacher(network, augment.weak(x)), len(x)).softmax(-1)
        inputs = augment.weak(x) if self.view == "weak" else augment.strong(x)
        return Consistency(inputs, targets, ones(targets))

    def per_sample(self, logits: Tensor, consistency: Consistency) -> Tensor:
        """The squared difference of class probabilities."""
        return consistency.counts * squared_error(logits, targets_for(logits, consistency))

    def after_step(self, network: nn.Module) -> None:
        """Move the teacher towards the network."""
        self._started().update(network)

    def state_dict(self) -> dict[str, Tensor]:
        """The teacher's tensors."""
        return self._started().state_dict()

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up a teacher, after `start` with a network of the same kind."""
        self._started().load_state_dict(state)

    def _started(self) -> WeightAverage:
        if self.teacher is None:
            raise EvidentiaError("a mean teacher has to be given the network first; call start(network)")
        return self.teacher
