"""Binomial opinions: belief in one proposition, disbelief in it, and what is left for ignorance."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import Beta
from typing_extensions import Self

from evidentia._support.checks import (
    TensorLike,
    as_float_tensor,
    check_adds_to_one,
    check_nonnegative,
    check_unit_interval,
    validation_enabled,
)
from evidentia._support.errors import EvidentiaError
from evidentia.opinions._opinion import Opinion, evidence_of
from evidentia.opinions.multinomial import MultinomialOpinion
from evidentia.opinions.priors import prior_weight_of


class BinomialOpinion(Opinion):
    r"""An opinion $\omega = (b, d, u, a)$ about one proposition, with $b + d + u = 1$.

    From evidence for it $r$ and against it $s$, with prior weight $W = 2$ and base rate $a = 1/2$ unless given:
    $b = r / (r + s + W)$, $d = s / (r + s + W)$, $u = W / (r + s + W)$. It is equivalent to
    $\mathrm{Beta}(r + aW, s + (1 - a)W)$.

    Args:
        belief: belief masses, shape `(...)`.
        disbelief: disbelief masses, shape `(...)`.
        vacuity: uncertainty masses, shape `(...)`.
        base_rate: prior probability of the proposition, broadcast to `(...)`.
        prior_weight: the non-informative prior weight `W`.
        validate: check the values; by default as the surrounding `evidentia.validation` block says.

    Example:
        >>> import evidentia as ev
        >>> w = ev.BinomialOpinion.from_evidence(positive=6.0, negative=2.0)
        >>> w
        BinomialOpinion(belief=0.6, disbelief=0.2, vacuity=0.2, base_rate=0.5)
        >>> w.projected
        tensor(0.7000)
    """

    _fields = {"belief": 0, "disbelief": 0, "vacuity": 0, "base_rate": 0}  # noqa: RUF012

    belief: Tensor
    disbelief: Tensor
    base_rate: Tensor

    def __init__(
        self,
        belief: TensorLike,
        disbelief: TensorLike,
        vacuity: TensorLike,
        base_rate: TensorLike = 0.5,
        prior_weight: float = 2.0,
        *,
        validate: bool | None = None,
    ) -> None:
        belief = as_float_tensor(belief, "belief")
        given = {"belief": belief}
        for name, value in (("disbelief", disbelief), ("vacuity", vacuity), ("base_rate", base_rate)):
            given[name] = as_float_tensor(value, name, like=belief)
        fields = dict(zip(given, _broadcast(given), strict=True))
        prior_weight = prior_weight_of(prior_weight, 2)
        if validation_enabled(validate):
            for name, field in fields.items():
                check_unit_interval(field, name)
            total = fields["belief"] + fields["disbelief"] + fields["vacuity"]
            check_adds_to_one(total, 3, "belief, disbelief and vacuity")
        self._set(**fields, prior_weight=prior_weight)

    @classmethod
    def from_evidence(
        cls,
        positive: TensorLike,
        negative: TensorLike,
        base_rate: TensorLike = 0.5,
        prior_weight: float = 2.0,
        *,
        validate: bool | None = None,
    ) -> Self:
        """The opinion that evidence for and against a proposition, each at least 0, gives rise to."""
        positive = as_float_tensor(positive, "positive evidence")
        negative = as_float_tensor(negative, "negative evidence", like=positive)
        positive, negative = _broadcast({"positive evidence": positive, "negative evidence": negative})
        rate = as_float_tensor(base_rate, "base_rate", like=positive)
        prior_weight = prior_weight_of(prior_weight, 2)
        if validation_enabled(validate):
            check_nonnegative(positive, "positive evidence")
            check_nonnegative(negative, "negative evidence")
            check_nonnegative(positive + negative, "the sum of the evidence")
            check_unit_interval(rate, "base_rate")
        strength = positive + negative + prior_weight
        return cls(
            positive / strength,
            negative / strength,
            prior_weight / strength,
            rate,
            prior_weight,
            validate=False,
        )

    @classmethod
    def from_beta(
        cls,
        alpha: TensorLike,
        beta: TensorLike,
        base_rate: TensorLike = 0.5,
        prior_weight: float = 2.0,
        *,
        validate: bool | None = None,
    ) -> Self:
        """The opinion equivalent to `Beta(alpha, beta)`; each must be at least its share of the prior."""
        alpha = as_float_tensor(alpha, "alpha")
        beta = as_float_tensor(beta, "beta", like=alpha)
        rate = as_float_tensor(base_rate, "base_rate", like=alpha)
        positive, negative = alpha - rate * prior_weight, beta - (1 - rate) * prior_weight
        if validation_enabled(validate):
            slack = 64 * torch.finfo(alpha.dtype).eps * prior_weight
            for name, evidence in (("alpha", positive), ("beta", negative)):
                if evidence.numel() and bool((evidence < -slack).any()):
                    raise EvidentiaError(
                        f"every {name} must be at least its share of the prior weight {prior_weight:g}, "
                        f"got one that is {float(-evidence.min()):.6g} below; pass a smaller prior_weight"
                    )
        return cls.from_evidence(positive.clamp(min=0), negative.clamp(min=0), rate, prior_weight, validate=validate)

    @classmethod
    def from_distribution(cls, distribution: Beta, prior_weight: float = 2.0) -> Self:
        """The opinion equivalent to a `torch.distributions.Beta`."""
        return cls.from_beta(distribution.concentration1, distribution.concentration0, prior_weight=prior_weight)

    @classmethod
    def from_multinomial(cls, opinion: MultinomialOpinion) -> Self:
        """The opinion about class 1 that an opinion over two classes holds."""
        if opinion.num_classes != 2:
            raise EvidentiaError(f"a binomial opinion needs 2 classes, got {opinion.num_classes}")
        return cls(
            opinion.belief[..., 1],
            opinion.belief[..., 0],
            opinion.vacuity,
            opinion.base_rate[..., 1],
            opinion.prior_weight,
            validate=False,
        )

    def to_multinomial(self) -> MultinomialOpinion:
        """The same opinion over two classes: 0 the proposition fails, 1 it holds."""
        return MultinomialOpinion(
            torch.stack([self.disbelief, self.belief], -1),
            self.vacuity,
            torch.stack([1 - self.base_rate, self.base_rate], -1),
            self.prior_weight,
            validate=False,
        )

    @property
    def positive_evidence(self) -> Tensor:
        """The evidence for the proposition, b W / u; infinite where a dogmatic opinion (u = 0) has belief."""
        return evidence_of(self.belief, self.vacuity, self.prior_weight)

    @property
    def negative_evidence(self) -> Tensor:
        """The evidence against the proposition, d W / u; infinite where a dogmatic opinion has disbelief."""
        return evidence_of(self.disbelief, self.vacuity, self.prior_weight)

    @property
    def alpha(self) -> Tensor:
        """The first Beta parameter, evidence for plus a W."""
        return self.positive_evidence + self.base_rate * self.prior_weight

    @property
    def beta(self) -> Tensor:
        """The second Beta parameter, evidence against plus (1 - a) W."""
        return self.negative_evidence + (1 - self.base_rate) * self.prior_weight

    @property
    def projected(self) -> Tensor:
        """The projected probability P = b + a u, which is E[p] under Beta(alpha, beta)."""
        return self.belief + self.base_rate * self.vacuity

    def distribution(self) -> Beta:
        """The equivalent `torch.distributions.Beta`; a dogmatic opinion has none."""
        if bool((self.vacuity == 0).any()):
            raise EvidentiaError("a dogmatic opinion (vacuity 0) has no Beta distribution")
        return Beta(self.alpha, self.beta)

    def _with(self, tensors: dict[str, Tensor]) -> Self:
        return type(self)(**tensors, prior_weight=self.prior_weight, validate=False)

    def __repr__(self) -> str:
        return self._describe(
            belief=self.belief, disbelief=self.disbelief, vacuity=self.vacuity, base_rate=self.base_rate
        )


def _broadcast(fields: dict[str, Tensor]) -> list[Tensor]:
    try:
        return list(torch.broadcast_tensors(*fields.values()))
    except RuntimeError as error:
        shapes = ", ".join(f"{name} {tuple(field.shape)}" for name, field in fields.items())
        raise EvidentiaError(f"the shapes do not broadcast: {shapes}") from error
