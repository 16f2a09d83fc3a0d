"""Where a stream is: its memory, the samples that wait for their segment, and the gap that it is in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia.events.front_end.chunks import Samples
from evidentia.events.front_end.inputs import Inputs
from evidentia.events.state import Arrays
from evidentia.events.streams.memory import Memory

# What a state holds beyond the memory.
_OWN = ("waiting", "owed", "gap")


class Place(NamedTuple):
    """Where a stream is. It is replaced whole, so that whatever interrupts a push finds it before or after it."""

    memory: Memory
    row: int
    waiting: Samples
    owed: float = 0.0
    """What gaps lasted beyond whole samples, as a share of one; negative where they were rounded up."""
    gap: int = 0
    """How many samples the gap has lasted that the stream is in; 0 where samples came last."""

    def count(self, name: str) -> int:
        """A number of the stream's clock."""
        return int(self.memory.clock[name][self.row])

    def position(self, step: int) -> int:
        """How many samples have come, with so many a segment."""
        return self.count("segment") * step + len(self.waiting)

    def with_more(self, new: Samples) -> Place:
        """With more samples waiting; a gap is over as soon as there are any."""
        waiting = np.concatenate([self.waiting, new]) if len(self.waiting) else new
        return Place(self.memory, self.row, waiting, self.owed, 0 if len(new) else self.gap)

    def to_dict(self) -> dict[str, Tensor]:
        """All of it by name, as tensors of its own."""
        arrays = {
            **self.memory.select([self.row]).to_dict(),
            "waiting": self.waiting.copy(),
            "owed": np.array([self.owed]),
            "gap": np.array([self.gap], dtype=np.int64),
        }
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    @classmethod
    def from_dict(cls, state: Arrays, fresh: Memory, inputs: Inputs) -> Place:
        """What `to_dict` was asked of, checked to be that of a stream with such a memory and such inputs."""
        arrays = dict(state)
        if missing := [name for name in _OWN if name not in arrays]:
            raise EvidentiaError(f"the state lacks {', '.join(missing)}; give what state_dict returned")
        waiting, owed, gap = (arrays.pop(name) for name in _OWN)
        memory = Memory.from_dict(arrays).fitted(fresh)
        memory.check_like(fresh)
        memory.check_values()
        fits = waiting.ndim > 0 and waiting.shape[1:] == inputs.sample_shape and len(waiting) < inputs.step
        if not fits or waiting.dtype != np.float32:
            raise EvidentiaError(f"the state has waiting samples of shape {waiting.shape}, which do not fit")
        if owed.shape != (1,) or owed.dtype.kind != "f" or not abs(float(owed[0])) <= 1:
            raise EvidentiaError(f"the state owes {owed.tolist()} samples to gaps, which must be a share of one")
        place = cls(memory, 0, waiting, float(owed[0]))
        if gap.shape != (1,) or gap.dtype != np.int64 or not 0 <= int(gap[0]) <= place.position(inputs.step):
            raise EvidentiaError(
                f"the state is in a gap of {gap.tolist()} samples, which must be a whole number, and no more than the "
                "stream has had"
            )
        return place._replace(gap=int(gap[0]))


def together(places: Sequence[Place]) -> Memory:
    """The memory of some streams with a row each, in their order."""
    first = places[0].memory
    if first.batch == len(places) and all(p.memory is first and p.row == row for row, p in enumerate(places)):
        return first
    rows: dict[int, list[int]] = {}
    for number, place in enumerate(places):
        rows.setdefault(id(place.memory), []).append(number)
    joined = Memory.join(
        [places[numbers[0]].memory.select([places[n].row for n in numbers]) for numbers in rows.values()]
    )
    order = [number for numbers in rows.values() for number in numbers]
    return joined if order == sorted(order) else joined.select(np.argsort(order).tolist())


def as_arrays(state: Any) -> Arrays:
    """Copies of the tensors of a state, as arrays."""
    if not isinstance(state, Mapping):
        raise EvidentiaError(
            f"a state is a dictionary of tensors, got {type(state).__name__}; give what state_dict returned"
        )
    try:
        return {str(name): torch.as_tensor(tensor).detach().cpu().numpy().copy() for name, tensor in state.items()}
    except (TypeError, ValueError, RuntimeError) as error:
        raise EvidentiaError(
            f"a state is a dictionary of tensors, got one of others: {error}; give what state_dict returned"
        ) from error
