"""What a live stream leaves behind between two chunks: tensors with names, one row a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias, TypeVar

import numpy.typing as npt
import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError

State = TypeVar("State", bound="StreamState")
Array: TypeAlias = npt.NDArray[Any]
Arrays: TypeAlias = dict[str, Array]


@dataclass(frozen=True, eq=False)
class StreamState:
    """Base of all states: fields are tensors, or mappings of names to tensors, whose first dimension is the stream.

    A state is never changed: every step gives a new one. Streams can be taken out of a batch (`select`) and put
    together into one (`join`), whatever their ages, as long as they hold the same number of waiting inputs.
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

    def select(self: State, streams: Sequence[int] | Tensor) -> State:
        """The state of some streams of the batch, in the order given."""
        rows = torch.as_tensor(streams, dtype=torch.int64)
        return self.map(lambda tensor: tensor.index_select(0, rows.to(tensor.device)))

    @classmethod
    def join(cls: type[State], states: Iterable[State]) -> State:
        """One state of all streams of several."""
        parts = [state.to_dict() for state in states]
        if not parts:
            raise EvidentiaError("there are no states to join; start a new stream instead")
        shapes = [{name: tensor.shape[1:] for name, tensor in part.items()} for part in parts]
        for other in shapes[1:]:
            if other != shapes[0]:
                differing = sorted(name for name in {*shapes[0], *other} if shapes[0].get(name) != other.get(name))
                raise EvidentiaError(
                    f"streams can share a batch only if their states have equal shapes, but {', '.join(differing)} "
                    "differ; bring all of them to the end of a segment first, and use one network for all"
                )
        return cls.from_dict({name: torch.cat([part[name] for part in parts]) for name in parts[0]})

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
