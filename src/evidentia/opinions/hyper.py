"""Hyper opinions: belief on sets of classes, for evidence that cannot tell the classes of a set apart."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index

import torch
from torch import Tensor
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
from evidentia._support.scalars import whole_number
from evidentia.opinions._opinion import Opinion, broadcast_masses, evidence_of, shown
from evidentia.opinions.grouped_dirichlet import GroupedDirichlet
from evidentia.opinions.multinomial import MultinomialOpinion
from evidentia.opinions.priors import base_rate_of, check_base_rate, prior_weight_of
from evidentia.opinions.special import quotient

ClassSet = tuple[int, ...]


class HyperOpinion(Opinion):
    r"""An opinion with belief on sets of classes (the reduced powerset, given sparsely) and vacuity $u$.

    $\sum_j b(x_j) + u = 1$ over the listed sets $x_j$. Belief on a set of several classes is *vague*: it says
    "one of these" and no more. The projected probability shares it out by relative base rates,
    $P_k = \sum_j a(k \mid x_j)\, b(x_j) + a_k u$ with $a(k \mid x) = a_k / \sum_{i \in x} a_i$ for $k \in x$.

    Args:
        belief: belief mass of each listed set, shape `(..., number of sets)`.
        vacuity: uncertainty mass, shape `(...)`.
        sets: the sets, each a collection of class indices: not empty, not all classes, none twice.
        num_classes: K.
        base_rate: prior probabilities of the classes, shape `(..., K)` or `(K,)`; uniform by default.
        prior_weight: the non-informative prior weight `W`; `K` by default.
        validate: check the values; by default as the surrounding `evidentia.validation` block says.

    Example:
        >>> import evidentia as ev
        >>> h = ev.HyperOpinion([0.3, 0.4], vacuity=0.3, sets=[{0}, {1, 2}], num_classes=3)
        >>> h
        HyperOpinion({0}: 0.3, {1, 2}: 0.4, vacuity=0.3)
        >>> h.projected
        tensor([0.4000, 0.3000, 0.3000])
    """

    _fields = {"belief": 1, "vacuity": 0, "base_rate": 1}  # noqa: RUF012 (declared a ClassVar in Opinion)
    _settings = ("prior_weight", "num_classes", "sets")

    belief: Tensor
    base_rate: Tensor
    sets: tuple[ClassSet, ...]

    def __init__(
        self,
        belief: TensorLike,
        vacuity: TensorLike,
        sets: Iterable[Iterable[int]],
        num_classes: int,
        base_rate: TensorLike | None = None,
        prior_weight: float | None = None,
        *,
        validate: bool | None = None,
    ) -> None:
        belief = as_float_tensor(belief, "belief")
        sets = class_sets(sets, num_classes)
        _check_set_dim(belief, sets, "belief")
        belief, vacuity = broadcast_masses(belief, as_float_tensor(vacuity, "vacuity", like=belief))
        base_rate = base_rate_of(base_rate, belief[..., :1].expand(*belief.shape[:-1], num_classes))
        if validation_enabled(validate):
            check_unit_interval(belief, "belief")
            check_unit_interval(vacuity, "vacuity")
            check_adds_to_one(belief.sum(-1) + vacuity, len(sets) + 1, "belief masses and vacuity")
            check_base_rate(base_rate)
        self._set(
            belief=belief,
            vacuity=vacuity,
            base_rate=base_rate,
            sets=sets,
            prior_weight=prior_weight_of(prior_weight, num_classes),
        )

    @classmethod
    def from_evidence(
        cls,
        evidence: TensorLike,
        sets: Iterable[Iterable[int]],
        num_classes: int,
        base_rate: TensorLike | None = None,
        prior_weight: float | None = None,
        *,
        validate: bool | None = None,
    ) -> Self:
        """The opinion that evidence for each listed set, shape `(..., number of sets)`, gives rise to."""
        evidence = as_float_tensor(evidence, "evidence")
        sets = class_sets(sets, num_classes)
        _check_set_dim(evidence, sets, "evidence")
        if validation_enabled(validate):
            check_nonnegative(evidence, "evidence")
            check_nonnegative(evidence.sum(-1), "the sum of the evidence")
        weight = prior_weight_of(prior_weight, num_classes)
        strength = evidence.sum(-1) + weight
        return cls(
            evidence / strength.unsqueeze(-1),
            weight / strength,
            sets,
            num_classes,
            base_rate,
            weight,
            validate=validate,
        )

    @classmethod
    def from_multinomial(cls, opinion: MultinomialOpinion) -> Self:
        """The same opinion, with its belief on sets of one class each."""
        return cls(
            opinion.belief,
            opinion.vacuity,
            [(k,) for k in range(opinion.num_classes)],
            opinion.num_classes,
            opinion.base_rate,
            opinion.prior_weight,
            validate=False,
        )

    @property
    def num_classes(self) -> int:
        """K."""
        return self.base_rate.shape[-1]

    @property
    def membership(self) -> Tensor:
        """Which class belongs to which set: 0 or 1, shape `(number of sets, K)`."""
        member = torch.zeros(len(self.sets), self.num_classes, dtype=self.dtype)
        for row, members in zip(member, self.sets, strict=True):
            row[list(members)] = 1
        return member.to(self.device)

    @property
    def is_composite(self) -> Tensor:
        """Which sets hold more than one class, shape `(number of sets,)`."""
        return torch.tensor([len(members) > 1 for members in self.sets], device=self.device)

    @property
    def relative_base_rate(self) -> Tensor:
        """a(k | x) for each set and class, shape `(..., number of sets, K)`; uniform in a set of base rate 0."""
        member = self.membership
        share = member * self.base_rate.unsqueeze(-2)
        uniform = member / member.sum(-1, keepdim=True)
        return quotient(share, share.sum(-1, keepdim=True), otherwise=uniform)

    @property
    def evidence(self) -> Tensor:
        """The evidence for each set, b W / u; infinite where a dogmatic opinion (u = 0) has belief."""
        return evidence_of(self.belief, self.vacuity.unsqueeze(-1), self.prior_weight)

    @property
    def projected(self) -> Tensor:
        """The projected probability of each class, shape `(..., K)`."""
        return self._shared_belief() + self.base_rate * self.vacuity.unsqueeze(-1)

    def to_multinomial(self) -> MultinomialOpinion:
        """Project to a multinomial opinion: vague belief is shared out, vacuity and probabilities stay."""
        return MultinomialOpinion(
            self._shared_belief(), self.vacuity, self.base_rate, self.prior_weight, validate=False
        )

    def grouped_dirichlet(self) -> GroupedDirichlet:
        """The grouped Dirichlet distribution of the evidence; the composite sets must not overlap.

        Its mean gives each set as much as the projected probability does. Within a set it shares vague evidence out by
        what single classes have, evidence and prior, and the projection by base rates alone.

        Example:
            >>> h = HyperOpinion.from_evidence([5.0, 4.0], sets=[(0,), (0, 1)], num_classes=3)
            >>> h.projected, h.grouped_dirichlet().mean
            (tensor([0.6667, 0.2500, 0.0833]), tensor([0.7857, 0.1310, 0.0833]))
        """
        groups = [members for members in self.sets if len(members) > 1]
        evidence = self.evidence
        singles = torch.zeros_like(self.base_rate)
        for column, members in enumerate(self.sets):
            if len(members) == 1:
                singles = singles.index_add(-1, torch.tensor(members, device=self.device), evidence[..., [column]])
        return GroupedDirichlet(singles + self.base_rate * self.prior_weight, evidence[..., self.is_composite], groups)

    def _shared_belief(self) -> Tensor:
        return (self.belief.unsqueeze(-1) * self.relative_base_rate).sum(-2)

    def _with(self, tensors: dict[str, Tensor]) -> Self:
        return type(self)(
            **tensors,
            sets=self.sets,
            num_classes=self.num_classes,
            prior_weight=self.prior_weight,
            validate=False,
        )

    def __repr__(self) -> str:
        names = ["{" + ", ".join(map(str, members)) + "}" for members in self.sets]
        if self.ndim == 0:
            masses = ", ".join(f"{name}: {shown(mass)}" for name, mass in zip(names, self.belief, strict=True))
            return f"HyperOpinion({masses}, vacuity={shown(self.vacuity)})"
        return self._describe()


def class_sets(sets: Iterable[Iterable[int]], num_classes: int) -> tuple[ClassSet, ...]:
    """Check a list of class sets and bring it into canonical form: sorted tuples of class indices."""
    num_classes = whole_number(num_classes, "num_classes", 2)
    canonical: list[ClassSet] = []
    for given in sets:
        try:
            members = tuple(sorted({index(k) for k in given}))
        except TypeError as error:
            raise EvidentiaError(f"each set must be a collection of class indices, got {given!r}") from error
        if not members or len(members) >= num_classes:
            raise EvidentiaError(
                f"a set needs at least one class and not all {num_classes} (that is vacuity), got {members}"
            )
        if members[0] < 0 or members[-1] >= num_classes:
            raise EvidentiaError(f"classes must lie in 0..{num_classes - 1}, got the set {members}")
        canonical.append(members)
    if not canonical:
        raise EvidentiaError("at least one set of classes is needed, got none")
    if len(set(canonical)) < len(canonical):
        raise EvidentiaError(f"every set may be listed once only, got {canonical}")
    return tuple(canonical)


def _check_set_dim(tensor: Tensor, sets: tuple[ClassSet, ...], name: str) -> None:
    if tensor.ndim == 0 or tensor.shape[-1] != len(sets):
        raise EvidentiaError(
            f"{name} needs a last dimension with one entry for each of the {len(sets)} sets, "
            f"got shape {tuple(tensor.shape)}"
        )
