"""Plain softmax classification: the baseline that everything else is compared with."""

from __future__ import annotations

from torch import Tensor

from evidentia.learning.losses import as_probabilities
from evidentia.learning.methods.base import METHODS, Method


@METHODS.register("softmax")
class Softmax(Method):
    """Cross entropy of the softmax; gives probabilities and their entropy, but no opinion.

    Args:
        num_classes: K.
    """

    def opinion(self, outputs: Tensor) -> None:
        """A softmax says nothing about evidence."""

    def probs(self, outputs: Tensor) -> Tensor:
        """The softmax of the outputs."""
        return outputs.softmax(-1)

    def loss(self, outputs: Tensor, target: Tensor, epoch: float) -> Tensor:
        """The cross entropy."""
        return -(as_probabilities(target, outputs) * outputs.log_softmax(-1)).sum(-1)
