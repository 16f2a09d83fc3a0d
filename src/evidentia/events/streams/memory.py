"""What a detector remembers of its streams: everything from waiting samples of the front end to alarms given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evidentia._support.errors import EvidentiaError
from evidentia.events.state import Array, Arrays
from evidentia.events.streams.triggers import LONG_AGO

_PARTS = ("inputs", "kept", "triggers", "clock")
# How the entries of warnings begin among the triggers, and which entries of what is kept are the heads'.
_WARNING = "warning/"
_EVIDENCE = {"alpha", "beta"}


@dataclass(frozen=True, eq=False)
class Memory:
    """What is remembered of B streams; every array has a row a stream. It is never changed: a step gives a new one.

    Arrays, and not tensors: a segment of one stream is so little work that wrapping a dozen of them would cost as much.

    Attributes:
        inputs: of the front end.
        kept: of network and heads, see `Engine`.
        triggers: the latest calls and alarms, see `Trigger`; under `alarm/`, and `warning/` if there are warnings.
        clock: `segment`, the number of the next segment; `begun`, how many the network has seen since it began or was
            begun anew after a gap; `invalid` and `clipped`, how many samples were so far; int64, shape `(B,)`.
    """

    inputs: Arrays
    kept: Arrays
    triggers: Arrays
    clock: Arrays

    @property
    def batch(self) -> int:
        """The number of streams."""
        return len(self.clock["segment"])

    def to_dict(self) -> Arrays:
        """All arrays by name."""
        return {f"{part}/{name}": array for part in _PARTS for name, array in getattr(self, part).items()}

    @classmethod
    def from_dict(cls, arrays: Mapping[str, Array]) -> Memory:
        """What `to_dict` was asked of."""
        parts: dict[str, Arrays] = {part: {} for part in _PARTS}
        for full, array in arrays.items():
            part, _, name = full.partition("/")
            if part not in parts:
                raise EvidentiaError(f"the state is of another kind of stream: it has no part {full!r}")
            parts[part][name] = array
        return cls(**parts)

    def select(self, rows: Sequence[int]) -> Memory:
        """Of some of the streams, in the order given, with arrays of its own."""
        return Memory.from_dict({name: array.take(rows, axis=0) for name, array in self.to_dict().items()})

    @staticmethod
    def join(memories: Sequence[Memory]) -> Memory:
        """Of all streams of several."""
        if len(memories) == 1:
            return memories[0]
        parts = [memory.to_dict() for memory in memories]
        return Memory.from_dict({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})

    def fitted(self, fresh: Memory) -> Memory:
        """With warnings or without them as a fresh memory of the same detector is; the same if both are alike in it.

        Triggers of warnings are left out, or begin anew. Of the segments kept for the heads the latest are enough for
        fewer heads; for more there must be as many as these look at.
        """
        warned, warns = (any(name.startswith(_WARNING) for name in each.triggers) for each in (self, fresh))
        if warned == warns:
            return self
        triggers = {name: array for name, array in self.triggers.items() if not name.startswith(_WARNING)}
        triggers |= {name: array for name, array in fresh.triggers.items() if name.startswith(_WARNING)}
        kept = {name: array for name, array in self.kept.items() if name not in _EVIDENCE}
        for name in _EVIDENCE & fresh.kept.keys():
            wanted = fresh.kept[name].shape[1]
            given = self.kept.get(name, fresh.kept[name][:, :0])
            if given.ndim != 3 or given.shape[1] < wanted:
                raise EvidentiaError(
                    f"the state is of a stream {'with' if warned else 'without'} warnings, and has not kept the "
                    f"{wanted} segments that are needed {'with' if warns else 'without'} them; go on with "
                    f"warnings={warned}, or begin a new stream"
                )
            kept[name] = given[:, given.shape[1] - wanted :].copy()
        return Memory(self.inputs, kept, triggers, self.clock)

    def check_like(self, fresh: Memory) -> None:
        """Require the shapes and types of a fresh memory of one stream."""
        found, wanted = self.to_dict(), fresh.to_dict()
        wrong = sorted(
            name
            for name in {*found, *wanted}
            if name not in found
            or name not in wanted
            or found[name].shape != wanted[name].shape
            or found[name].dtype != wanted[name].dtype
        )
        if wrong:
            raise EvidentiaError(
                f"the state is of another kind of stream: {', '.join(wrong)} do not fit; open a stream of the same "
                "detector with the same trigger and warnings to go on"
            )

    def check_values(self) -> None:
        """Require numbers that a stream can have come to; with others it would go on and detect nothing."""
        segment = self.clock["segment"]
        wrong = {name for name, array in self.to_dict().items() if not np.isfinite(array).all()}
        wrong |= {f"clock/{name}" for name, count in self.clock.items() if (count < 0).any()}
        if (self.clock["begun"] > segment).any():
            wrong.add("clock/begun")
        for name, last in self.triggers.items():
            if name.endswith("/last") and ((last != LONG_AGO) & ((last < 0) | (last >= segment))).any():
                wrong.add(f"triggers/{name}")
        if wrong:
            raise EvidentiaError(
                f"the state is damaged: {', '.join(sorted(wrong))} hold numbers that no stream comes to (NaN, "
                "infinite, negative, or of a later time); give what state_dict returned, or begin a new stream"
            )
