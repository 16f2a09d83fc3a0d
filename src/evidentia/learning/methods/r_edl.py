"""R-EDL and Re-EDL: evidential learning with its settings relaxed (Chen, Gao and Xu 2024)."""

from __future__ import annotations

from torch import Tensor

from evidentia.learning.methods.base import METHODS, DirichletMethod


@METHODS.register("r-edl")
class REDL(DirichletMethod):
    r"""Squared error of the projected probability, with the prior as a free parameter.

    $\sum_k (y_k - P_k)^2$ with $\alpha = e + \lambda$, $u = \lambda K / S$: no variance term, and a prior that need
    not be 1 a class. The penalty on misleading evidence is kept, towards $\mathrm{Dir}(\lambda 1)$.

    Args:
        num_classes: K.
        prior: lambda.
        activation: how outputs become evidence.
        kl_weight: full weight of the penalty, before division by K.
        kl_ramp: epochs over which that weight rises from 0.
    """

    def __init__(
        self,
        num_classes: int,
        prior: float = 0.1,
        activation: str = "softplus",
        kl_weight: float = 1.0,
        kl_ramp: float = 10.0,
    ) -> None:
        super().__init__(num_classes, activation, prior, kl_weight, kl_ramp)

    def risk(self, alpha: Tensor, y: Tensor) -> Tensor:
        """The squared error of the mean alone."""
        return ((y - alpha / alpha.sum(-1, keepdim=True)) ** 2).sum(-1)


@METHODS.register("re-edl")
class ReEDL(REDL):
    r"""R-EDL without the penalty on misleading evidence: $\sum_k (y_k - P_k)^2$ and nothing else.

    Args:
        num_classes: K.
        prior: lambda.
        activation: how outputs become evidence.
    """

    def __init__(self, num_classes: int, prior: float = 0.8, activation: str = "softplus") -> None:
        super().__init__(num_classes, prior, activation, kl_weight=0.0)
