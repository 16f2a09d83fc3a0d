"""Pseudo-labels: what the network is sure of, it is taught."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from evidentia.semisup.augmentation import Augmentation
from evidentia.semisup.method_settings import check_real
from evidentia.semisup.objectives.base import (
    OBJECTIVES,
    Consistency,
    Labeled,
    Objective,
    logits_of,
    targets_for,
)
from evidentia.semisup.objectives.distances import cross_entropy, one_hot


@OBJECTIVES.register("pseudo-label")
@dataclass(kw_only=True, eq=False)
class PseudoLabel(Objective):
    r"""The cross entropy with the network's own class, where it is sure (Lee, ICML workshop 2013).

    $$r_j = \mathbb{1}[\max_k p_k(x_j) \ge \tau]\; H(\hat y_j, p(x_j)), \qquad \hat y_j = \arg\max_k p_k(x_j)$$

    The class comes from the very input, weakly augmented, that it is taught for.

    Args:
        weight: the coefficient of the objective.
        rampup: the number of updates over which it is reached.
        threshold: $\tau$, how probable the class has to be.

    Example:
        >>> import torch
        >>> from evidentia.semisup import AUGMENTATIONS
        >>> objective = PseudoLabel(threshold=0.9)
        >>> objective.prepare(nn.Identity(), torch.tensor([[3.0, 0.0], [1.0, 0.0]]), AUGMENTATIONS["none"]()).counts
        tensor([1., 0.])
    """

    weight: float = 1.0
    threshold: float = 0.95

    def __post_init__(self) -> None:
        """Require settings in their range."""
        super().__post_init__()
        check_real(self, "threshold", 1)

    def prepare(
        self, network: nn.Module, x: Tensor, augment: Augmentation, *, labeled: Labeled | None = None
    ) -> Consistency:
        """A weakly augmented batch and what the network takes it for."""
        inputs = augment.weak(x)
        probs = logits_of(network, inputs).softmax(-1)
        return Consistency(inputs, one_hot(probs), (probs.amax(-1) >= self.threshold).to(probs.dtype))

    def per_sample(self, logits: Tensor, consistency: Consistency) -> Tensor:
        """The cross entropy where the network was sure, else 0."""
        return consistency.counts * cross_entropy(logits, targets_for(logits, consistency))
