"""F-EDL: evidential learning with the flexible Dirichlet (Yoon and Kim 2025)."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia.learning.activations import ACTIVATIONS
from evidentia.learning.losses import as_probabilities
from evidentia.learning.methods.base import METHODS, Method
from evidentia.opinions import MultinomialOpinion, Opinion


class FlexibleDirichlet(NamedTuple):
    r"""The mixture $\sum_k p_k \mathrm{Dir}(\alpha + \tau 1_k)$: a Dirichlet that may have a mode for each class.

    Attributes:
        alpha: the shared parameters, shape `(..., K)`.
        allocation: the mixture weights p, shape `(..., K)`.
        dispersion: tau, shape `(..., 1)`.
    """

    alpha: Tensor
    allocation: Tensor
    dispersion: Tensor

    @property
    def strength(self) -> Tensor:
        """The total alpha_0 + tau, shape `(..., 1)`."""
        return self.alpha.sum(-1, keepdim=True) + self.dispersion

    @property
    def mean(self) -> Tensor:
        r"""$(\alpha + \tau p) / (\alpha_0 + \tau)$."""
        return (self.alpha + self.dispersion * self.allocation) / self.strength

    @property
    def variance(self) -> Tensor:
        r"""$\frac{\mu (1 - \mu)}{s + 1} + \frac{\tau^2 p (1 - p)}{s (s + 1)}$ with strength $s = \alpha_0 + \tau$."""
        total, mean, p = self.strength, self.mean, self.allocation
        # tau / s first: the square of tau alone may overflow.
        share = self.dispersion / total
        return mean * (1 - mean) / (total + 1) + share * (self.dispersion / (total + 1)) * p * (1 - p)


@METHODS.register("f-edl")
class FEDL(Method):
    r"""Squared-error risk under a flexible Dirichlet, and the Brier score of its allocation.

    The network gives 2K + 1 numbers: for alpha (evidence plus 1, as everywhere in this library), for the allocation p
    (a softmax) and for the dispersion tau (a softplus). The loss is
    $\sum_k (y_k - \mu_k)^2 + \mathrm{Var}_k + (y_k - p_k)^2$. The opinion has evidence $\alpha - 1 + \tau p$, so that
    its projected probability is the mean of the flexible Dirichlet.

    Args:
        num_classes: K.
        activation: how outputs become evidence.
    """

    def __init__(self, num_classes: int, activation: str = "exp") -> None:
        super().__init__(num_classes)
        self._activate = ACTIVATIONS[activation]

    @property
    def num_outputs(self) -> int:
        """2K + 1."""
        return 2 * self.num_classes + 1

    def distribution(self, outputs: Tensor) -> FlexibleDirichlet:
        """The flexible Dirichlet that the outputs express."""
        evidence, allocation, dispersion = outputs.split([self.num_classes, self.num_classes, 1], dim=-1)
        return FlexibleDirichlet(self._activate(evidence) + 1, allocation.softmax(-1), F.softplus(dispersion))

    def opinion(self, outputs: Tensor) -> Opinion:
        """The multinomial opinion with the same mean and strength."""
        alpha, allocation, dispersion = self.distribution(outputs)
        return MultinomialOpinion.from_evidence(alpha - 1 + dispersion * allocation, validate=False)

    def loss(self, outputs: Tensor, target: Tensor, epoch: float) -> Tensor:
        """The squared-error risk and the Brier score of the allocation."""
        flexible = self.distribution(outputs)
        y = as_probabilities(target, flexible.alpha)
        risk = (y - flexible.mean) ** 2 + flexible.variance
        return (risk + (y - flexible.allocation) ** 2).sum(-1)
