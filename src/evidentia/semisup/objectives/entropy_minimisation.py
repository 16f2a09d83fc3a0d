"""Entropy minimisation: be sure, whatever of."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from evidentia.semisup.augmentation import Augmentation
from evidentia.semisup.objectives.base import OBJECTIVES, Consistency, Labeled, Objective, check_logits, ones
from evidentia.semisup.objectives.distances import entropy


@OBJECTIVES.register("entropy")
@dataclass(kw_only=True, eq=False)
class EntropyMinimisation(Objective):
    r"""The entropy of what the network says (Grandvalet and Bengio, NeurIPS 2004).

    $$r_j = -\sum_k p_k(x_j) \ln p_k(x_j)$$

    Args:
        weight: the coefficient of the objective.
        rampup: the number of updates over which it is reached.

    Example:
        >>> import torch
        >>> from evidentia.semisup import AUGMENTATIONS
        >>> x = torch.tensor([[0.0, 0.0], [9.0, 0.0]])
        >>> objective = EntropyMinimisation()
        >>> objective.per_sample(x, objective.prepare(nn.Identity(), x, AUGMENTATIONS["none"]()))
        tensor([0.6931, 0.0012])
    """

    def prepare(
        self, network: nn.Module, x: Tensor, augment: Augmentation, *, labeled: Labeled | None = None
    ) -> Consistency:
        """A weakly augmented batch; the network is not run."""
        inputs = augment.weak(x)
        return Consistency(inputs, None, ones(inputs))

    def per_sample(self, logits: Tensor, consistency: Consistency) -> Tensor:
        """The entropy of every sample's class probabilities."""
        return consistency.counts * entropy(check_logits(logits, len(consistency.inputs)))
