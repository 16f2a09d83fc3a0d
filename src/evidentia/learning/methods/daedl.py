"""DAEDL: density-aware evidential deep learning (Yoon and Kim 2024)."""

from __future__ import annotations

from torch import Tensor

from evidentia.learning.density import GaussianDensity
from evidentia.learning.methods.base import METHODS
from evidentia.learning.methods.edl import EDL


@METHODS.register("daedl")
class DAEDL(EDL):
    r"""Evidential learning whose logits are scaled by how familiar the features are.

    After training, the density of the training features is estimated; at prediction the outputs are multiplied by
    $s(x) \in [0, 1]$, how familiar the features of x are. Far from all training features nothing is left of the
    logits, and the evidence for every class is the same.

    Two things differ from the paper. Evidence stands on top of a prior, as everywhere in this library, so
    $\alpha = \exp(s z) + 1$ where the paper has $\exp(s z)$. And familiarity is measured by a cross-fitted density
    instead of the range of the training set's own densities, which with few samples takes all new ones for strange.

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
        """Scale the outputs by the familiarity of the features they come from."""
        familiarity = self.density.familiarity(features).to(outputs)
        return outputs * familiarity.reshape(-1, *[1] * (outputs.ndim - 1))
