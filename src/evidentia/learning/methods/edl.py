"""Evidential deep learning (Sensoy, Kaplan and Kandemir 2018), with a choice of risk."""

from __future__ import annotations

from torch import Tensor

from evidentia.learning.losses import LOSSES
from evidentia.learning.methods.base import METHODS, DirichletMethod


@METHODS.register("edl")
class EDL(DirichletMethod):
    """A Bayes risk under Dir(alpha), and a penalty on evidence for wrong classes.

    Args:
        num_classes: K.
        risk: "cross-entropy" (default: it also learns with very many classes), "squared-error" (as published) or
            "type-ii"; any entry of `evidentia.learning.LOSSES`.
        activation: how outputs become evidence.
        prior: what every class has before any evidence.
        kl_weight: full weight of the penalty, before division by K.
        kl_ramp: epochs over which that weight rises from 0.
    """

    def __init__(
        self,
        num_classes: int,
        risk: str = "cross-entropy",
        activation: str = "exp",
        prior: float = 1.0,
        kl_weight: float = 1.0,
        kl_ramp: float = 10.0,
    ) -> None:
        super().__init__(num_classes, activation, prior, kl_weight, kl_ramp)
        self._risk = LOSSES[risk]

    def risk(self, alpha: Tensor, y: Tensor) -> Tensor:
        """The chosen Bayes risk."""
        return self._risk(alpha, y)
