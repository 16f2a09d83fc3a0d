"""DAEDL: density-aware evidential deep learning (Yoon and Kim 2024)."""

from __future__ import annotations

from torch import Tensor

from evidentia.learning.density import GaussianDensity
from evidentia.learning.methods.base import METHODS
from evidentia.learning.methods.edl import EDL


@METHODS.register("daedl")
class DAEDL(EDL):
    r"""Evidential learning whose logits count for as much as the features are familiar.

    After training, the density of the training features is estimated. At prediction the outputs z become
    $s z - t$ with $s(x) \in [0, 1]$, how familiar the features of x are, and $t(x) \ge 0$, how far they are beyond the
    strangest training sample: first the logits fade, and then the evidence for every class.

    Three things differ from the paper, which has $\alpha = \exp(s z)$. Evidence stands on top of a prior, as everywhere
    in this library. It goes on falling past the strangest training sample, so that vacuity can reach 1. And familiarity
    is measured by a cross-fitted density instead of the range of the training set's own densities, which with few
    samples takes all new ones for strange.

    Args:
        num_classes: K.
        risk: the Bayes risk; "squared-error" as published.
        kl_weight: full weight of the penalty, before division by K.
        kl_ramp: epochs over which that weight rises from 0; the paper has no ramp.
    """

    needs_features = True

    def __init__(
        self, num_classes: int, risk: str = "squared-error", kl_weight: float = 0.05, kl_ramp: float = 0.0
    ) -> None:
        super().__init__(num_classes, risk, "exp", kl_weight=kl_weight, kl_ramp=kl_ramp)
        self.density = GaussianDensity()

    def calibrate(self, features: Tensor, target: Tensor | None) -> None:
        """Estimate the density of the training features."""
        self.density.fit(features, target)

    def adjust(self, outputs: Tensor, features: Tensor) -> Tensor:
        """Let the outputs count for as much as the features they come from are familiar."""
        one_each = (-1, *[1] * (outputs.ndim - 1))
        familiarity = self.density.familiarity(features).to(outputs).reshape(one_each)
        return familiarity * outputs - self.density.strangeness(features).to(outputs).reshape(one_each)
