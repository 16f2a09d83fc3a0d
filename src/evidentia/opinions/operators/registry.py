"""The registry of operators and what they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia._support.registry import Registry
from evidentia.opinions._opinion import Opinion

OPERATORS: Registry[Callable[..., Opinion]] = Registry("operator")

OpinionT = TypeVar("OpinionT", bound=Opinion)


def require(kind: type[Opinion] | tuple[type[Opinion], ...], **given: object) -> None:
    """Require arguments, named as given, that are opinions of this kind or one of these kinds."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    for name, value in given.items():
        if not isinstance(value, kinds):
            names = " or ".join(each.__name__ for each in kinds)
            raise EvidentiaError(f"{name} must be of kind {names}, got {type(value).__name__}")


def gather(opinions: tuple[OpinionT, ...], dim: int | None, *kinds: type[Opinion]) -> OpinionT:
    """Bring the opinions to be combined, of one of the `kinds`, into one batch with the combined dimension first."""
    for opinion in opinions:
        require(kinds, **{"every opinion to combine": opinion})
    if dim is None:
        if len(opinions) < 2:
            raise EvidentiaError("at least two opinions are needed, or one batch and the `dim` to combine")
        return type(opinions[0]).stack(opinions)
    if len(opinions) != 1:
        raise EvidentiaError(f"with `dim` give one batch of opinions, got {len(opinions)}")
    (batch,) = opinions
    if not -batch.ndim <= dim < batch.ndim:
        raise EvidentiaError(f"dim {dim} is not a batch dimension of opinions of shape {tuple(batch.shape)}")
    if batch.shape[dim] == 0:
        raise EvidentiaError(f"dim {dim} has no opinions to combine (shape {tuple(batch.shape)})")
    return batch._map(lambda field, event: field.movedim(dim if dim >= 0 else dim - event, 0))


def masses_from(vacuity: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    """Clamp away negative masses left by rounding and rescale, so that masses always add up to 1.

    Returns the vacuity and then the other masses; a mass with one more dimension is a vector of masses.
    """
    vacuity = vacuity.clamp(min=0)
    clamped = [mass.clamp(min=0) for mass in others]
    total = vacuity
    for mass in clamped:
        total = total + (mass.sum(-1) if mass.ndim > vacuity.ndim else mass)
    return (
        vacuity / total,
        *(mass / (total.unsqueeze(-1) if mass.ndim > vacuity.ndim else total) for mass in clamped),
    )
