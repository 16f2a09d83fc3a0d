"""What a detector remembers of its streams: everything from waiting samples of the front end to alarms given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia.events.fusion import FusionState

Tensors = dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class Watch:
    """What is remembered for one level of detections.

    Attributes:
        fusion: the latest segments of the fusion head.
        trigger: the latest calls and alarms, see `Trigger`.
    """

    fusion: FusionState
    trigger: Tensors

    def to_dict(self) -> Tensors:
        """All tensors by name."""
        return {**{f"fusion/{k}": v for k, v in self.fusion.tensors().items()}, **_under("trigger", self.trigger)}

    @classmethod
    def from_dict(cls, tensors: Tensors) -> Watch:
        """What `to_dict` was asked of."""
        return cls(FusionState.from_tensors(_within("fusion", tensors)), _within("trigger", tensors))


@dataclass(frozen=True, eq=False)
class Memory:
    """What is remembered of B streams; every tensor has a row a stream. It is never changed: a step gives a new one.

    Attributes:
        inputs: of the front end.
        network: the caches of the network's layers.
        alarm: of the detector's head.
        warning: of the head that warns, if there is one.
        clock: `segment`, the number of the next segment; `begun`, how many the network has seen since it began or was
            begun anew after a gap; `invalid` and `clipped`, how many samples were so far; int64, shape `(B,)`.
    """

    inputs: Tensors
    network: Tensors
    alarm: Watch
    warning: Watch | None
    clock: Tensors

    @property
    def batch(self) -> int:
        """The number of streams."""
        return len(self.clock["segment"])

    def to_dict(self) -> Tensors:
        """All tensors by name."""
        tensors = {**_under("inputs", self.inputs), **_under("network", self.network), **_under("clock", self.clock)}
        tensors |= _under("alarm", self.alarm.to_dict())
        return tensors if self.warning is None else {**tensors, **_under("warning", self.warning.to_dict())}

    @classmethod
    def from_dict(cls, tensors: Mapping[str, Tensor]) -> Memory:
        """What `to_dict` was asked of."""
        parts = {name: _within(name, tensors) for name in ("inputs", "network", "clock", "alarm", "warning")}
        warning = Watch.from_dict(parts["warning"]) if parts["warning"] else None
        return cls(parts["inputs"], parts["network"], Watch.from_dict(parts["alarm"]), warning, parts["clock"])

    def map(self, change: Callable[[Tensor], Tensor]) -> Memory:
        """With every tensor changed."""
        return Memory.from_dict({name: change(tensor) for name, tensor in self.to_dict().items()})

    def select(self, rows: Sequence[int]) -> Memory:
        """Of some of the streams, in the order given."""
        places = torch.tensor(rows)
        return self.map(lambda tensor: tensor.index_select(0, places))

    @staticmethod
    def join(memories: Sequence[Memory]) -> Memory:
        """Of all streams of several."""
        if len(memories) == 1:
            return memories[0]
        parts = [memory.to_dict() for memory in memories]
        return Memory.from_dict({name: torch.cat([part[name] for part in parts]) for name in parts[0]})

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


def _under(part: str, tensors: Mapping[str, Tensor]) -> Tensors:
    return {f"{part}/{name}": tensor for name, tensor in tensors.items()}


def _within(part: str, tensors: Mapping[str, Tensor]) -> Tensors:
    start = f"{part}/"
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}
