"""Live streams: samples in, in pieces of any length, and detections out as soon as their segment is complete."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia._support.files import load_tensors, save_tensors
from evidentia.events.chunks import Samples
from evidentia.events.clips import Event, as_number
from evidentia.events.detections import Announcer, Detection
from evidentia.events.memory import Memory, Tensors
from evidentia.events.runner import Runner

STATE = "detector stream"
"""What the file of a stream's state is named by."""


class _Place(NamedTuple):
    """Where a stream is. It is replaced whole, so that whatever interrupts a push finds it before or after it."""

    memory: Memory
    row: int
    waiting: Samples
    owed: float = 0.0
    """What gaps lasted beyond whole samples, as a share of one; negative where they were rounded up."""


class DetectorStream:
    """One live stream through a trained detector; `EventDetector.stream` opens it.

    Samples go through the front end, the network and the fusion head a segment at a time, always in the same
    portions: detections are the same to the bit however the stream is cut in chunks. A push that is interrupted, by
    Ctrl-C or an error, leaves the stream as it was before.

    | what comes | what is done |
    |---|---|
    | floats | taken as they are: in [-1, 1] for sound, in the units of training for a series |
    | int16, int32, int8, uint8 | sound: divided by full scale, other whole numbers are an error; series: numbers |
    | several channels, shape (n, c) | sound: averaged, up to 8; series: must be those of training |
    | NaN, infinity | sound: silence; series: the last good number, at first the mean of training. See `invalid` |
    | beyond [-1, 1] | sound: limited to it. Counted in `clipped` |
    | silence | taken as any sound: zeros have a finite log-mel |
    | a gap, `push(None, seconds=...)` | taken as NaN; one beyond `longest_gap` lets the network begin anew as well |
    | another rate, `push(samples, rate=...)` | an error |
    | nothing, an empty chunk | nothing |

    Args:
        runner: the detector, made ready for streams.
        labels: call these classes only; all if None. Warnings, which are of no class, are given all the same.
        events: what is known to happen in the stream, of the detector's classes, by which detections get a delay.
        longest_gap: in seconds.

    Attributes:
        runner: the detector, made ready for streams.
    """

    def __init__(
        self,
        runner: Runner,
        labels: Sequence[str] | None = None,
        events: Sequence[Event] | None = None,
        longest_gap: float = 1.0,
    ) -> None:
        if not 0 <= as_number(longest_gap) < math.inf:
            raise EvidentiaError(f"longest_gap must be at least 0 seconds, got {longest_gap!r}")
        self.runner = runner
        self.longest_gap = longest_gap
        outputs = runner.pipeline.heads[0].outputs(len(runner.labels))
        self._announcer = Announcer(runner.labels, outputs, runner.inputs.seconds, labels, events)
        if others := sorted({event.label for event in self._announcer.events or []} - {*runner.labels}):
            raise EvidentiaError(
                f"events must be of the detector's classes, {', '.join(runner.labels)}, got {', '.join(others)}; leave "
                "out those of others"
            )
        self._place = _Place(runner.begin(), 0, np.zeros((0, *runner.inputs.sample_shape), dtype=np.float32))

    def push(self, samples: Any, *, seconds: float | None = None, rate: float | None = None) -> list[Detection]:
        """Take the next samples of the stream.

        Args:
            samples: any number of them, shape `(n,)`, or `(n, channels)`; None for a gap.
            seconds: how long the gap is.
            rate: samples a second, to be checked against that of the detector.

        Returns:
            What is detected in the segments that they complete, in order of time.
        """
        if rate is not None:
            self._check_rate(rate)
        return push_many([self], [samples], seconds=[seconds])[0]

    @property
    def time(self) -> float:
        """How much of the stream has come, in seconds, gaps included."""
        return self._position / self.runner.inputs.sample_rate

    @property
    def invalid(self) -> int:
        """How many samples of the segments so far were NaN or infinite."""
        return self._count("invalid")

    @property
    def clipped(self) -> int:
        """How many samples of the segments so far were beyond full scale."""
        return self._count("clipped")

    def state_dict(self) -> dict[str, Tensor]:
        """All that is remembered of the stream, as tensors of its own: with them another stream goes on identically."""
        memory, row, waiting, owed = self._place
        identity = torch.frombuffer(bytearray(self.runner.identity), dtype=torch.uint8)
        own = {"waiting": torch.from_numpy(waiting.copy()), "owed": torch.tensor([owed], dtype=torch.float64)}
        return {**memory.select([row]).to_dict(), **own, "detector": identity}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on where `state_dict` was asked for, in this process or another."""
        tensors = _as_tensors(state)
        waiting, identity = tensors.pop("waiting", None), tensors.pop("detector", None)
        # States of before owe nothing.
        owed = tensors.pop("owed", torch.zeros(1))
        if waiting is None or identity is None or identity.dtype != torch.uint8 or identity.ndim != 1:
            raise EvidentiaError("this is not the state of a stream; give what state_dict returned")
        if bytes(identity.tolist()) != self.runner.identity:
            raise EvidentiaError("the state is of a stream of another detector; load that detector to go on with it")
        memory = Memory.from_dict(tensors)
        memory.check_like(self.runner.begin())
        memory.check_values()
        inputs = self.runner.inputs
        fits = waiting.ndim > 0 and waiting.shape[1:] == inputs.sample_shape and len(waiting) < inputs.step
        if not fits or waiting.dtype != torch.float32:
            raise EvidentiaError(f"the state has waiting samples of shape {tuple(waiting.shape)}, which do not fit")
        if owed.shape != (1,) or not owed.is_floating_point() or not abs(float(owed)) <= 1:
            raise EvidentiaError(f"the state owes {owed.tolist()} samples to gaps, which must be a share of one")
        self._place = _Place(memory, 0, waiting.numpy(), float(owed))

    def save(self, path: str | Path) -> None:
        """Write the state to one file, whole or not at all."""
        save_tensors(path, STATE, self.state_dict(), {"time": self.time})

    def load(self, path: str | Path) -> None:
        """Go on where `save` was called; nothing in the file can run code."""
        self.load_state_dict(load_tensors(path, STATE)[0])

    @property
    def _position(self) -> int:
        return self._count("segment") * self.runner.inputs.step + len(self._place.waiting)

    def _count(self, name: str) -> int:
        return int(self._place.memory.clock[name][self._place.row])

    def _check_rate(self, rate: float) -> None:
        wanted = self.runner.inputs.sample_rate
        if not math.isclose(as_number(rate), wanted, rel_tol=1e-6):
            raise EvidentiaError(
                f"the detector takes {wanted:g} samples a second, got {rate!r}; resample the stream first, or train on "
                "clips of its rate"
            )

    def _next(self, samples: Any, seconds: float | None) -> _Place:
        """Where the stream is with more samples waiting, or after a gap."""
        if samples is None:
            return self._after_gap(seconds)
        if seconds is not None:
            raise EvidentiaError("seconds is the length of a gap; give it with None in place of samples")
        return _after(self._place, self.runner.inputs.as_samples(samples))

    def _after_gap(self, seconds: float | None) -> _Place:
        if seconds is None or not 0 <= as_number(seconds) < math.inf:
            raise EvidentiaError(f"a gap needs its length, push(None, seconds=...), of at least 0, got {seconds!r}")
        inputs = self.runner.inputs
        # Many short gaps are as long as a long one: what is rounded off comes back with the next.
        exact = seconds * inputs.sample_rate + self._place.owed
        missing = max(0, round(exact))
        owed = exact - missing
        # A series goes on with its last good numbers, sound with silence.
        filling = np.nan if inputs.sample_shape else 0.0
        if seconds <= self.longest_gap:
            filled = np.full((missing, *inputs.sample_shape), filling, dtype=np.float32)
            return _after(self._place, filled)._replace(owed=owed)
        number, rest = divmod(self._position + missing, inputs.step)
        before, fresh = self._place.memory.select([self._place.row]), self.runner.begin()
        last = {name: tensor for name, tensor in before.triggers.items() if name.endswith("/last")}
        clock = {**before.clock, "segment": torch.tensor([number]), "begun": fresh.clock["begun"]}
        held = self._last_good(before) if inputs.sample_shape else fresh.inputs
        memory = Memory(held, fresh.kept, {**fresh.triggers, **last}, clock)
        return _Place(memory, 0, np.full((rest, *inputs.sample_shape), filling, dtype=np.float32), owed)

    def _last_good(self, memory: Memory) -> Tensors:
        """What a series remembers of its numbers, those that wait for their segment included."""
        inputs, waiting = self.runner.inputs, self._place.waiting
        block = torch.full((1, inputs.step, *inputs.sample_shape), torch.nan)
        block[0, : len(waiting)] = torch.from_numpy(waiting)
        return inputs.advance(inputs.clean(block, memory.inputs).block, memory.inputs)[1]


def push_many(
    streams: Sequence[DetectorStream], chunks: Sequence[Any], *, seconds: Sequence[float | None] | None = None
) -> list[list[Detection]]:
    """Take the next samples of many streams, whatever their ages, in batches as large as there are streams.

    It costs least if the same streams come in the same order every time: their memories then stay together.

    Args:
        streams: streams of one detector, opened with the same engine and trigger.
        chunks: the next samples of each, of any lengths; None for a gap.
        seconds: how long the gap of each is, None for those that have samples; may be left out if none has a gap.

    Returns:
        The detections of each stream.
    """
    if len(streams) != len(chunks):
        raise EvidentiaError(f"every stream needs a chunk, got {len(streams)} streams and {len(chunks)} chunks")
    gaps = [None] * len(streams) if seconds is None else list(seconds) if isinstance(seconds, Iterable) else []
    if len(gaps) != len(streams):
        raise EvidentiaError(
            f"seconds must be a list with the length of a gap, or None, for each of {len(streams)} streams, got "
            f"{len(gaps) if isinstance(seconds, Iterable) else repr(seconds)}"
        )
    if len({id(stream) for stream in streams}) < len(streams):
        raise EvidentiaError("a stream was given twice; give it once, with all its samples in one chunk")
    if any(stream.runner is not streams[0].runner for stream in streams):
        raise EvidentiaError(
            "streams can share a batch only if one detector opened them with the same engine and trigger"
        )
    if not streams:
        return []
    runner = streams[0].runner
    # Streams move on at the very end: whatever happens before leaves them as they were.
    places = [stream._next(chunk, gap) for stream, chunk, gap in zip(streams, chunks, gaps, strict=True)]
    found: list[list[Detection]] = [[] for _ in streams]
    step = runner.inputs.step
    while ready := [number for number, place in enumerate(places) if len(place.waiting) >= step]:
        group = [places[number] for number in ready]
        block = np.stack([place.waiting[:step] for place in group]) if len(group) > 1 else group[0].waiting[None, :step]
        fired, memory = runner.advance(block, _together(group))
        for row, number in enumerate(ready):
            place = places[number]
            places[number] = place._replace(memory=memory, row=row, waiting=place.waiting[step:])
        busy = fired.alarms.any(1) if fired.warnings is None else fired.alarms.any(1) | fired.warnings[:, 0]
        for row in busy.nonzero()[0].tolist():
            found[ready[row]] += streams[ready[row]]._announcer.detections(fired, row)
    # Free of the chunks that they are part of, which belong to the caller.
    places = [place._replace(waiting=place.waiting.copy()) for place in places]
    for stream, place in zip(streams, places, strict=True):
        stream._place = place
    return found


def _as_tensors(state: Any) -> Tensors:
    """Copies of the tensors of a state."""
    if not isinstance(state, Mapping):
        raise EvidentiaError(
            f"a state is a dictionary of tensors, got {type(state).__name__}; give what state_dict returned"
        )
    try:
        return {str(name): torch.as_tensor(tensor).detach().clone() for name, tensor in state.items()}
    except (TypeError, ValueError, RuntimeError) as error:
        raise EvidentiaError(
            f"a state is a dictionary of tensors, got one of others: {error}; give what state_dict returned"
        ) from error


def _after(place: _Place, new: Samples) -> _Place:
    """A place with more samples waiting."""
    return place._replace(waiting=np.concatenate([place.waiting, new]) if len(place.waiting) else new)


def _together(places: Sequence[_Place]) -> Memory:
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
