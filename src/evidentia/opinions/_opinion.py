"""What all opinions have in common: they are immutable values over tensors with any batch dimensions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from typing_extensions import Self

from evidentia._support.checks import as_array
from evidentia._support.errors import EvidentiaError

OpinionT = TypeVar("OpinionT", bound="Opinion")


class Opinion(ABC):
    """A subjective-logic opinion, or a batch of them.

    Opinions behave like tensors over their batch dimensions: they can be indexed, reshaped, moved and
    iterated over. Fields cannot be assigned: every operation returns a new opinion.
    """

    # Name of each tensor field, and how many trailing dimensions of it belong to one single opinion.
    _fields: ClassVar[dict[str, int]]
    # Name of everything else that two opinions must share to stand in one batch.
    _settings: ClassVar[tuple[str, ...]] = ("prior_weight",)

    vacuity: Tensor
    prior_weight: float

    @property
    @abstractmethod
    def projected(self) -> Tensor:
        """The projected probability, for binomial and multinomial opinions the mean of the equivalent distribution."""

    @abstractmethod
    def _with(self, tensors: dict[str, Tensor]) -> Self:
        """A copy with other tensors and everything else kept; nothing is checked."""

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; build a new one instead of setting {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; {name!r} cannot be deleted")

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _map(self, change: Callable[[Tensor, int], Tensor]) -> Self:
        return self._with({name: change(getattr(self, name), event) for name, event in self._fields.items()})

    @property
    def shape(self) -> torch.Size:
        """The batch shape: empty for a single opinion."""
        return self.vacuity.shape

    @property
    def ndim(self) -> int:
        """The number of batch dimensions."""
        return self.vacuity.ndim

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of all tensors."""
        return self.vacuity.dtype

    @property
    def device(self) -> torch.device:
        """The device of all tensors."""
        return self.vacuity.device

    @property
    def strength(self) -> Tensor:
        """The strength S = W / u of all evidence and the prior; infinite for dogmatic opinions (u = 0)."""
        return self.prior_weight / self.vacuity

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("a single opinion has no length; only a batch has one")
        return self.shape[0]

    def __iter__(self) -> Iterator[Self]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Self:
        """Index the batch dimensions as one would index a tensor of the batch shape."""
        if self.ndim == 0:
            raise EvidentiaError("a single opinion cannot be indexed; only a batch can")
        index = index if isinstance(index, tuple) else (index,)
        if not any(part is Ellipsis for part in index):
            index = (*index, ...)
        # The ellipsis covers the batch dimensions that the index leaves out, so the event dimensions follow it.

        def pick(field: Tensor, event: int) -> Tensor:
            return field[index + (slice(None),) * event]

        return self._map(pick)

    def reshape(self, *shape: int) -> Self:
        """Reshape the batch dimensions."""
        return self._map(lambda field, event: field.reshape((*shape, *field.shape[field.ndim - event :])))

    def expand(self, *shape: int) -> Self:
        """Broadcast the batch dimensions to `shape` without copying."""
        return self._map(lambda field, event: field.expand((*shape, *field.shape[field.ndim - event :])))

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move to a device or dtype, as `torch.Tensor.to` does."""
        return self._map(lambda field, _: field.to(*args, **kwargs))

    def detach(self) -> Self:
        """Cut off from the autograd graph."""
        return self._map(lambda field, _: field.detach())

    def numpy(self) -> dict[str, npt.NDArray[np.floating[Any]]]:
        """All fields as NumPy arrays, by name."""
        return {name: as_array(getattr(self, name)) for name in self._fields}

    def allclose(self, other: Self, rtol: float = 1e-5, atol: float = 1e-6) -> bool:
        """Whether two batches of opinions are equal up to rounding."""
        return (
            type(self) is type(other)
            and all(getattr(self, name) == getattr(other, name) for name in self._settings)
            and all(
                mine.shape == theirs.shape and torch.allclose(mine, theirs, rtol=rtol, atol=atol)
                for mine, theirs in ((getattr(self, name), getattr(other, name)) for name in self._fields)
            )
        )

    @classmethod
    def stack(cls, opinions: Sequence[Self]) -> Self:
        """Stack opinions of broadcastable batch shapes along a new first batch dimension."""
        first = _require_alike(opinions)
        shape = broadcast_batch(*opinions)
        expanded = [opinion.expand(*shape) for opinion in opinions]
        return first._with(
            {name: torch.stack([getattr(opinion, name) for opinion in expanded]) for name in cls._fields}
        )

    @classmethod
    def cat(cls, opinions: Sequence[Self]) -> Self:
        """Join batches of opinions along their first batch dimension."""
        first = _require_alike(opinions)
        return first._with({name: torch.cat([getattr(opinion, name) for opinion in opinions]) for name in cls._fields})

    def _describe(self, **numbers: Tensor) -> str:
        """A readable repr: the numbers of a single opinion, a summary of a batch."""
        name = type(self).__name__
        if self.ndim == 0:
            return f"{name}({', '.join(f'{key}={shown(value)}' for key, value in numbers.items())})"
        where = "" if self.device.type == "cpu" else f", device={self.device}"
        parts = [f"shape={tuple(self.shape)}"]
        if self.vacuity.numel():
            low, high = self.vacuity.min(), self.vacuity.max()
            parts.append(f"vacuity={shown(low)}..{shown(high)}")
        return f"{name}({', '.join(parts)}, dtype={str(self.dtype).removeprefix('torch.')}{where})"


def _require_alike(opinions: Sequence[OpinionT]) -> OpinionT:
    if not opinions:
        raise EvidentiaError("at least one opinion is needed, got none")
    first = opinions[0]
    for opinion in opinions[1:]:
        if type(opinion) is not type(first):
            raise EvidentiaError(
                f"opinions must be of one kind, got {type(first).__name__} and {type(opinion).__name__}"
            )
        for name, event in first._fields.items():
            mine, other = getattr(first, name).shape, getattr(opinion, name).shape
            if event and mine[-event:] != other[-event:]:
                raise EvidentiaError(
                    f"opinions must be over the same classes, got {name} of {mine[-1]} and {other[-1]} entries"
                )
        for name in first._settings:
            if getattr(opinion, name) != getattr(first, name):
                raise EvidentiaError(
                    f"opinions must have the same {name.replace('_', ' ')}, "
                    f"got {getattr(first, name)} and {getattr(opinion, name)}"
                )
    return first


def broadcast_batch(*opinions: Opinion) -> torch.Size:
    """The batch shape that all the opinions broadcast to."""
    shapes = [opinion.shape for opinion in opinions]
    try:
        return torch.Size(torch.broadcast_shapes(*shapes))
    except RuntimeError as error:
        listed = ", ".join(str(tuple(shape)) for shape in shapes)
        raise EvidentiaError(f"opinions need batch shapes that broadcast, got {listed}") from error


def broadcast_masses(belief: Tensor, vacuity: Tensor) -> tuple[Tensor, Tensor]:
    """Belief of shape `(..., K)` and vacuity of shape `(...)`, expanded to the same batch shape."""
    try:
        shape = torch.broadcast_shapes(belief.shape[:-1], vacuity.shape)
    except RuntimeError as error:
        raise EvidentiaError(
            f"belief of shape {tuple(belief.shape)} needs a vacuity of shape {tuple(belief.shape[:-1])}, "
            f"got {tuple(vacuity.shape)}"
        ) from error
    return belief.expand(*shape, belief.shape[-1]), vacuity.expand(shape)


def evidence_of(mass: Tensor, vacuity: Tensor, prior_weight: float) -> Tensor:
    """The evidence b W / u behind a mass; where u = 0, infinite for any mass and 0 for none.

    Gradients there are 0 rather than NaN.
    """
    some = vacuity > 0
    finite = mass * (prior_weight / torch.where(some, vacuity, torch.ones_like(vacuity)))
    dogmatic = torch.where(mass > 0, torch.full_like(finite, torch.inf), torch.zeros_like(finite))
    return torch.where(some, finite, dogmatic)


def shown(value: Tensor) -> str:
    """A number, or the first of a vector of them, as an opinion is printed."""
    # PyTorch warns of numbers that leave the autograd graph unseen.
    value = value.detach()
    if value.ndim == 0:
        return f"{float(value):.4g}"
    entries = [f"{float(entry):.4g}" for entry in value[:8]]
    return f"[{', '.join(entries)}{', ...' if len(value) > 8 else ''}]"
