"""Multinomial opinions: belief over K classes and what is left for ignorance."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import Dirichlet
from typing_extensions import Self

from evidentia._support.checks import (
    TensorLike,
    as_float_tensor,
    check_adds_to_one,
    check_class_dim,
    check_nonnegative,
    check_unit_interval,
    mass_tolerance,
    validation_enabled,
)
from evidentia._support.errors import EvidentiaError
from evidentia.opinions._opinion import Opinion, broadcast_masses, evidence_of
from evidentia.opinions.priors import base_rate_of, check_base_rate, prior_weight_of


class MultinomialOpinion(Opinion):
    r"""An opinion $\omega = (b, u, a)$ over $K$ classes, with $\sum_k b_k + u = 1$ (thesis 2.3).

    Evidence $e \ge 0$ makes it with $\alpha = e + aW$, $S = \sum_k \alpha_k$, $b = e / S$, $u = W / S$, and it
    is equivalent to the distribution $\mathrm{Dir}(\alpha)$. Unless given, the base rate $a$ is uniform and
    the prior weight $W$ is $K$, so that $\alpha = e + 1$.

    Args:
        belief: belief masses, shape `(..., K)`.
        vacuity: uncertainty mass, shape `(...)`.
        base_rate: prior probabilities of the classes, shape `(..., K)` or `(K,)`; uniform by default.
        prior_weight: the non-informative prior weight `W`; `K` by default.
        validate: check the values; by default as the surrounding `evidentia.validation` block says.

    Example:
        >>> import torch, evidentia as ev
        >>> w = ev.MultinomialOpinion.from_evidence(torch.tensor([6.0, 1.0, 0.0]))
        >>> w
        MultinomialOpinion(belief=[0.6, 0.1, 0], vacuity=0.3)
        >>> w.projected
        tensor([0.7000, 0.2000, 0.1000])
        >>> w.alpha
        tensor([7., 2., 1.])
    """

    _fields = {"belief": 1, "vacuity": 0, "base_rate": 1}  # noqa: RUF012 (declared a ClassVar in Opinion)

    belief: Tensor
    base_rate: Tensor

    def __init__(
        self,
        belief: TensorLike,
        vacuity: TensorLike,
        base_rate: TensorLike | None = None,
        prior_weight: float | None = None,
        *,
        validate: bool | None = None,
    ) -> None:
        belief = as_float_tensor(belief, "belief")
        check_class_dim(belief, "belief")
        belief, vacuity = broadcast_masses(belief, as_float_tensor(vacuity, "vacuity", like=belief))
        classes = belief.shape[-1]
        base_rate = base_rate_of(base_rate, belief)
        if validation_enabled(validate):
            check_unit_interval(belief, "belief")
            check_unit_interval(vacuity, "vacuity")
            check_adds_to_one(belief.sum(-1) + vacuity, classes + 1, "belief masses and vacuity")
            check_base_rate(base_rate)
        self._set(
            belief=belief,
            vacuity=vacuity,
            base_rate=base_rate,
            prior_weight=prior_weight_of(prior_weight, classes),
        )

    @classmethod
    def from_evidence(
        cls,
        evidence: TensorLike,
        base_rate: TensorLike | None = None,
        prior_weight: float | None = None,
        *,
        validate: bool | None = None,
    ) -> Self:
        """The opinion that evidence of shape `(..., K)`, at least 0, gives rise to."""
        evidence = as_float_tensor(evidence, "evidence")
        check_class_dim(evidence, "evidence")
        weight = prior_weight_of(prior_weight, evidence.shape[-1])
        base_rate = base_rate_of(base_rate, evidence)
        if validation_enabled(validate):
            check_nonnegative(evidence, "evidence")
            check_nonnegative(evidence.sum(-1), "the sum of the evidence")
            check_base_rate(base_rate)
        strength = evidence.sum(-1) + weight
        return cls(evidence / strength.unsqueeze(-1), weight / strength, base_rate, weight, validate=False)

    @classmethod
    def from_alpha(
        cls,
        alpha: TensorLike,
        base_rate: TensorLike | None = None,
        prior_weight: float | None = None,
        *,
        validate: bool | None = None,
    ) -> Self:
        """The opinion equivalent to `Dir(alpha)`; every alpha must be at least its share `a W` of the prior."""
        alpha = as_float_tensor(alpha, "alpha")
        check_class_dim(alpha, "alpha")
        weight = prior_weight_of(prior_weight, alpha.shape[-1])
        rate = base_rate_of(base_rate, alpha)
        evidence = alpha - rate * weight
        if validation_enabled(validate):
            check_nonnegative(alpha, "alpha")
            slack = mass_tolerance(alpha.dtype, 1) * weight
            if alpha.numel() and bool((evidence < -slack).any()):
                largest = float((alpha / rate).min())
                advice = f", of at most {largest:.4g}" if largest > 0 else ", and no alpha of 0"
                raise EvidentiaError(
                    f"every alpha must be at least its base rate times prior_weight (here {weight:g}), "
                    f"got one that is {float(-evidence.min()):.6g} below; pass a smaller prior_weight{advice}"
                )
        return cls.from_evidence(evidence.clamp(min=0), base_rate, weight, validate=validate)

    @classmethod
    def from_distribution(cls, distribution: Dirichlet, prior_weight: float | None = None) -> Self:
        """The opinion equivalent to a `torch.distributions.Dirichlet`."""
        return cls.from_alpha(distribution.concentration, prior_weight=prior_weight)

    @classmethod
    def vacuous(cls, *shape: int) -> Self:
        """Opinions without any evidence; the last entry of `shape` is the number of classes."""
        return cls.from_evidence(torch.zeros(shape))

    @property
    def num_classes(self) -> int:
        """K."""
        return self.belief.shape[-1]

    @property
    def evidence(self) -> Tensor:
        """The evidence e = b W / u; infinite where a dogmatic opinion (u = 0) has belief."""
        return evidence_of(self.belief, self.vacuity.unsqueeze(-1), self.prior_weight)

    @property
    def alpha(self) -> Tensor:
        """The Dirichlet parameters e + a W."""
        return self.evidence + self.base_rate * self.prior_weight

    @property
    def projected(self) -> Tensor:
        """The projected probability P = b + a u, which is E[p] under Dir(alpha)."""
        return self.belief + self.base_rate * self.vacuity.unsqueeze(-1)

    def distribution(self) -> Dirichlet:
        """The equivalent `torch.distributions.Dirichlet`; a dogmatic opinion has none."""
        if bool((self.vacuity == 0).any()):
            raise EvidentiaError("a dogmatic opinion (vacuity 0) has no Dirichlet distribution")
        return Dirichlet(self.alpha)

    def _with(self, tensors: dict[str, Tensor]) -> Self:
        return type(self)(**tensors, prior_weight=self.prior_weight, validate=False)

    def __repr__(self) -> str:
        return self._describe(belief=self.belief, vacuity=self.vacuity)
