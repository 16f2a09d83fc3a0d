"""The Pi-model: say the same of two views of a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from evidentia.semisup.augmentation import Augmentation
from evidentia.semisup.method_settings import check_view
from evidentia.semisup.objectives.base import (
    OBJECTIVES,
    Consistency,
    Labeled,
    Objective,
    logits_of,
    ones,
    targets_for,
)
from evidentia.semisup.objectives.distances import squared_error


@OBJECTIVES.register("pi-model")
@dataclass(kw_only=True, eq=False)
class PiModel(Objective):
    r"""The squared difference of two predictions (Laine and Aila, ICLR 2017; Sajjadi et al., NeurIPS 2016).

    $$r_j = \frac{1}{K} \sum_k \big( p_k(\tilde x_j) - p_k(\tilde x'_j) \big)^2$$

    for two augmentations $\tilde x$ and $\tilde x'$ of a sample and two draws of dropout; what is said of the second,
    weak one is fixed.

    Args:
        weight: the coefficient of the objective.
        rampup: the number of updates over which it is reached.
        view: the augmentation of the input that is learnt from; "weak" for two of the same kind as in the papers.

    Example:
        >>> import torch
        >>> from evidentia.semisup import Augmentation
        >>> doubled = Augmentation(weak=lambda x: x, strong=lambda x: 2 * x)
        >>> objective, x = PiModel(), torch.tensor([[1.0, 0.0]])
        >>> consistency = objective.prepare(nn.Identity(), x, doubled)
        >>> consistency.inputs, consistency.targets
        (tensor([[2., 0.]]), tensor([[0.7311, 0.2689]]))
    """

    weight: float = 20.0
    view: Literal["weak", "strong"] = "strong"

    def __post_init__(self) -> None:
        """Require settings in their range."""
        super().__post_init__()
        check_view(self, "view")

    def prepare(
        self, network: nn.Module, x: Tensor, augment: Augmentation, *, labeled: Labeled | None = None
    ) -> Consistency:
        """One view to learn from, and what the network says of another."""
        targets = logits_of(network, augment.weak(x)).softmax(-1)
        inputs = augment.weak(x) if self.view == "weak" else augment.strong(x)
        return Consistency(inputs, targets, ones(targets))

    def per_sample(self, logits: Tensor, consistency: Consistency) -> Tensor:
        """The squared difference of class probabilities."""
        return consistency.counts * squared_error(logits, targets_for(logits, consistency))
