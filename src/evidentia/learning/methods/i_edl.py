"""I-EDL: Fisher-information-based evidential deep learning (Deng et al. 2023)."""

from __future__ import annotations

from torch import Tensor

from evidentia._support.scalars import real_number
from evidentia.learning.methods.base import METHODS, DirichletMethod
from evidentia.opinions.special import as_double, dirichlet_fisher_log_det, trigamma


@METHODS.register("i-edl")
class IEDL(DirichletMethod):
    r"""Squared error and variance of each class weighted by its Fisher information $\psi'(\alpha_k)$.

    $\sum_k \psi'(\alpha_k) \big[(y_k - \mathbb{E}[p_k])^2 + \mathrm{Var}(p_k)\big] - \lambda \ln\det I(\alpha)$
    plus the penalty on misleading evidence: classes with little evidence may be far from the one-hot label, and the
    determinant keeps the evidence from growing without need.

    Args:
        num_classes: K.
        fisher_weight: lambda.
        activation: how outputs become evidence.
        prior: what every class has before any evidence.
        kl_weight: full weight of the penalty, before division by K.
        kl_ramp: epochs over which that weight rises from 0.
    """

    def __init__(
        self,
        num_classes: int,
        fisher_weight: float = 0.05,
        activation: str = "softplus",
        prior: float = 1.0,
        kl_weight: float = 1.0,
        kl_ramp: float = 10.0,
    ) -> None:
        super().__init__(num_classes, activation, prior, kl_weight, kl_ramp)
        self.fisher_weight = real_number(fisher_weight, "fisher_weight", 0)

    def risk(self, alpha: Tensor, y: Tensor) -> Tensor:
        """The Fisher-weighted squared-error risk minus the log determinant."""
        exact = as_double(alpha)
        strength = exact.sum(-1, keepdim=True)
        mean = exact / strength
        error = (y - mean) ** 2 + mean * (1 - mean) / (strength + 1)
        risk = (trigamma(exact) * error).sum(-1) - self.fisher_weight * dirichlet_fisher_log_det(exact)
        return risk.to(alpha.dtype)
