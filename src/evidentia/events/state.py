"""What a live stream leaves behind between two chunks: tensors with names, one row a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias, TypeVar

import numpy.typing as npt
from torch import Tensor

from evidentia._support.errors import EvidentiaError

State = TypeVar("State", bound="StreamState")
Array: TypeAlias = npt.NDArray[Any]
Arrays: TypeAlias = dict[str, Array]


@dataclass(frozen=True, eq=False)
class StreamState:
    """Base of all states: fields are tensors, or mappings of names to tensors, whose first dimension is the stream.

    A state is never changed: every step gives a new one.
    """

    def to_dict(self) -> dict[str, Tensor]:
        """All tensors by name, for a file; those of a mapping are named `field.key`."""
        tensors: dict[str, Tensor] = {}
        for name, value in self._values():
            if isinstance(value, Tensor):
                tensors[name] = value
            else:
                tensors |= {f"{name}.{key}": tensor for key, tensor in value.items()}
        return tensors

    @classmethod
    def from_dict(cls: type[State], tensors: Mapping[str, Tensor]) -> State:
        """The state that `to_dict` was asked of."""
        found: dict[str, Any] = {part.name: {} for part in fields(cls) if part.name in cls._mappings()}
        for full, tensor in tensors.items():
            name, _, key = full.partition(".")
            if key:
                found.setdefault(name, {})[key] = tensor
            else:
                found[name] = tensor
        wanted = {part.name for part in fields(cls)}
        if found.keys() != wanted:
            raise EvidentiaError(
                f"a {cls.__name__} has the parts {', '.join(sorted(wanted))}, got {', '.join(sorted(found)) or 'none'}"
                "; give what its to_dict returned"
            )
        return cls(**found)

    @property
    def batch(self) -> int:
        """The number of streams."""
        return int(getattr(self, fields(self)[0].name).shape[0])

    def map(self: State, change: Callable[[Tensor], Tensor]) -> State:
        """The state with every tensor changed by a function, such as one that moves it to another device."""
        return type(self).from_dict({name: change(tensor) for name, tensor in self.to_dict().items()})

    def compact(self: State) -> State:
        """The same values, free of the larger tensors they were cut from."""
        return self.map(lambda t: t.clone() if t.untyped_storage().nbytes() > 2 * t.nbytes else t)

    @classmethod
    def _mappings(cls) -> tuple[str, ...]:
        """Names of the fields that are mappings."""
        return ()

    def _values(self) -> Iterable[tuple[str, Any]]:
        return ((part.name, getattr(self, part.name)) for part in fields(self))


@dataclass(frozen=True, eq=False)
class FrontEndState(StreamState):
    """What the front end remembers of a stream.

    Attributes:
        tail: the samples that later frames still need, shape `(B, n)`: all but a hop of the last window, and those of
            a hop not complete yet.
        frames: how many frames each stream has given, shape `(B,)`, int64.
    """

    tail: Tensor
    frames: Tensor


@dataclass(frozen=True, eq=False)
class NetworkState(StreamState):
    """What a streaming network remembers of a stream.

    Attributes:
        pending: frames of a segment that is not complete yet, shape `(B, p, F)` with p less than a segment.
        segments: how many segments each stream has completed, shape `(B,)`, int64.
        caches: what each layer keeps of the past, by the layer's name, shapes `(B, ...)`.
    """

    pending: Tensor
    segments: Tensor
    caches: Mapping[str, Tensor] = field(default_factory=dict)

    @classmethod
    def _mappings(cls) -> tuple[str, ...]:
        return ("caches",)
