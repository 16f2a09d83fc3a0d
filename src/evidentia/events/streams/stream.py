"""Live streams: samples in, in pieces of any length, and detections out as soon as their segment is complete."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia._support.files import load_tensors, save_tensors
from evidentia.events.clips import Event, as_number
from evidentia.events.front_end.channels import in_order
from evidentia.events.front_end.chunks import Samples
from evidentia.events.streams.detections import Announcer, Detection
from evidentia.events.streams.memory import Memory
from evidentia.events.streams.place import Place, as_arrays, together
from evidentia.events.streams.runner import Runner

STATE = "detector stream"
"""What the file of a stream's state is named by."""

# Samples that a gap may miss: of more, not every one can be counted by floats, and many such gaps by integers.
_MOST_MISSING = 2**53


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
    | a table with names, as a DataFrame | series: put in the order of training, if that had names |
    | NaN, infinity | sound: silence; series: the last good number, at first the mean of training. See `invalid` |
    | beyond [-1, 1] | sound: limited to it. Counted in `clipped` |
    | silence | taken as any sound: zeros have a finite log-mel |
    | a gap, `push(None, seconds=...)` | up to `longest_gap` as NaN, but not counted; beyond it memory begins anew |
    | another rate, `push(samples, rate=...)` | an error |
    | nothing, an empty chunk | nothing |

    A gap lasts until samples come: one of 5 seconds and five of 1 are the same.

    Args:
        runner: the detector, made ready for streams.
        labels: call these classes only; all if None. Warnings, which are of no class, are given all the same.
        events: what is known to happen in the stream, of the detector's classes, by which detections get a delay.
        longest_gap: in seconds; what a gap lasts beyond it is not listened to, and the network and the heads begin anew
            after it.

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
        self._place = Place(runner.begin(), 0, np.zeros((0, *runner.inputs.sample_shape), dtype=np.float32))

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
        return _run([self], [self._next(samples, seconds)])[0]

    def __repr__(self) -> str:
        runner = self.runner
        what = f"{len(runner.labels)} classes at {runner.inputs.sample_rate:g} Hz"
        return f"DetectorStream({what}, {self.time:.3f} s heard)"

    @property
    def time(self) -> float:
        """How much of the stream has come, in seconds, gaps included."""
        inputs = self.runner.inputs
        return self._place.position(inputs.step) / inputs.sample_rate

    @property
    def invalid(self) -> int:
        """How many samples of the segments so far were NaN or infinite, of a series how many numbers; not of gaps."""
        return self._place.count("invalid")

    @property
    def clipped(self) -> int:
        """How many samples of the segments so far were beyond full scale."""
        return self._place.count("clipped")

    def state_dict(self) -> dict[str, Tensor]:
        """All that is remembered of the stream, as tensors of its own: with them another stream goes on identically."""
        identity = torch.frombuffer(bytearray(self.runner.identity), dtype=torch.uint8)
        return {**self._place.to_dict(), "detector": identity}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on where `state_dict` was asked for, in this process or another.

        Either stream may have warnings or not. Those of a stream that had none before begin anew: it may warn at once
        of what is going on. If they look back further than the state has kept, that is an error.
        """
        arrays = as_arrays(state)
        identity = arrays.pop("detector", None)
        if identity is None or identity.dtype != np.uint8 or identity.ndim != 1:
            raise EvidentiaError("this is not the state of a stream; give what state_dict returned")
        if identity.tobytes() != self.runner.identity:
            raise EvidentiaError("the state is of a stream of another detector; load that detector to go on with it")
        self._place = Place.from_dict(arrays, self.runner.begin(), self.runner.inputs)

    def save(self, path: str | Path) -> None:
        """Write the state to one file, whole or not at all."""
        save_tensors(path, STATE, self.state_dict(), {"time": self.time})

    def load(self, path: str | Path) -> None:
        """Go on where `save` was called; nothing in the file can run code."""
        self.load_state_dict(load_tensors(path, STATE)[0])

    def _check_rate(self, rate: float) -> None:
        wanted = self.runner.inputs.sample_rate
        if not math.isclose(as_number(rate), wanted, rel_tol=1e-6):
            raise EvidentiaError(
                f"the detector takes {wanted:g} samples a second, got {rate!r}; resample the stream first, or train on "
                "clips of its rate"
            )

    def _next(self, samples: Any, seconds: float | None) -> tuple[Place, int]:
        """Where the stream is with more samples waiting, and how many are missing after them, beyond `longest_gap`."""
        if samples is None:
            return self._after_gap(seconds)
        if seconds is not None:
            raise EvidentiaError("seconds is the length of a gap; give it with None in place of samples")
        runner = self.runner
        return self._place.with_more(runner.inputs.as_samples(in_order(samples, runner.columns))), 0

    def _after_gap(self, seconds: float | None) -> tuple[Place, int]:
        if seconds is None or not 0 <= as_number(seconds) < math.inf:
            raise EvidentiaError(
                f"a gap, None in place of samples, needs its length in seconds=, at least 0, got {seconds!r}"
            )
        place, inputs = self._place, self.runner.inputs
        if seconds * inputs.sample_rate > _MOST_MISSING:
            raise EvidentiaError(
                f"a gap may last up to {_MOST_MISSING / inputs.sample_rate:g} s, got {seconds:g}; are these seconds?"
            )
        # Many short gaps are as long as a long one: what is rounded off comes back with the next.
        exact = seconds * inputs.sample_rate + place.owed
        missing = max(0, round(exact))
        lasted = place.gap + missing
        # A long gap is heard as far as a short one, because while it lasts nobody knows which it is.
        heard = max(0, round(min(self.longest_gap * inputs.sample_rate, lasted)) - place.gap)
        filled = np.repeat(self._cleaned(place)[0, -1:], heard, axis=0)
        return place.with_more(filled)._replace(owed=exact - missing, gap=lasted), missing - heard

    def _anew(self, place: Place, missing: int) -> Place:
        """Where the stream is after samples of a gap that are not listened to."""
        inputs, fresh = self.runner.inputs, self.runner.begin()
        number, rest = divmod(place.position(inputs.step) + missing, inputs.step)
        before, cleaned = place.memory.select([place.row]), self._cleaned(place)
        last = {name: array for name, array in before.triggers.items() if name.endswith("/last")}
        clock = {**before.clock, "segment": np.array([number], dtype=np.int64), "begun": fresh.clock["begun"]}
        # A series goes on with its last good numbers, sound with silence.
        held = inputs.advance(cleaned, before.inputs)[1] if inputs.sample_shape else fresh.inputs
        memory = Memory(held, fresh.kept, {**fresh.triggers, **last}, clock)
        return place._replace(memory=memory, row=0, waiting=np.repeat(cleaned[0, -1:], rest, axis=0))

    def _cleaned(self, place: Place) -> Samples:
        """The unfinished segment, shape `(1, step, ...)`: what has not come is as if it were missing.

        So its last sample is what a gap is filled with.
        """
        inputs = self.runner.inputs
        block = np.full((1, inputs.step, *inputs.sample_shape), np.nan, dtype=np.float32)
        block[0, : len(place.waiting)] = place.waiting
        return inputs.clean(block, place.memory.select([place.row]).inputs).block


def push_many(
    streams: Iterable[DetectorStream], chunks: Iterable[Any], *, seconds: Sequence[float | None] | None = None
) -> list[list[Detection]]:
    """Take the next samples of many streams, whatever their ages, in batches as large as there are streams.

    It costs least if the same streams come in the same order every time: their memories then stay together.

    Args:
        streams: streams of one detector, opened with the same engine, trigger and warnings.
        chunks: the next samples of each, of any lengths; None for a gap.
        seconds: how long the gap of each is, None for those that have samples; may be left out if none has a gap.

    Returns:
        The detections of each stream.

    Example:
        >>> from evidentia.events import EventDetector, SeriesInputs, make_head, make_network
        >>> network, inputs = make_network("temporal", features=2, num_classes=1, segment=1).eval(), SeriesInputs(
        ...     rate=10.0, channels=2, segment=1
        ... )
        >>> det = EventDetector.assemble(network, ["jam"], inputs, make_head("wbc", threshold=100.0))
        >>> pump, fan = det.stream(), det.stream()
        >>> push_many([pump, fan], [torch.zeros(30, 2), None], seconds=[None, 1.5])
        [[], []]
        >>> pump.time, fan.time
        (3.0, 1.5)
    """
    streams, chunks = list(streams), list(chunks)
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
    for number, stream in enumerate(streams):
        if stream.runner is not streams[0].runner:
            raise EvidentiaError(
                "streams can share a batch only if one detector opened them with the same engine, trigger and "
                f"warnings; stream {number} differs from stream 0"
            )
    places: list[tuple[Place, int]] = []
    try:
        for stream, chunk, gap in zip(streams, chunks, gaps, strict=True):
            places.append(stream._next(chunk, gap))
    except EvidentiaError as error:
        if len(streams) == 1:
            raise
        raise EvidentiaError(f"stream {len(places)}: {error}") from error
    return _run(streams, places)


def _run(streams: Sequence[DetectorStream], given: Sequence[tuple[Place, int]]) -> list[list[Detection]]:
    """Let streams of one runner go on by all that waits, and by what is missing after it."""
    # Streams move on at the very end: whatever happens before leaves them as they were.
    places = [place for place, _ in given]
    found: list[list[Detection]] = [[] for _ in streams]
    if not streams:
        return found
    runner = streams[0].runner
    step = runner.inputs.step
    while ready := [number for number, place in enumerate(places) if len(place.waiting) >= step]:
        group = [places[number] for number in ready]
        block = np.stack([place.waiting[:step] for place in group]) if len(group) > 1 else group[0].waiting[None, :step]
        fired, memory = runner.advance(block, together(group))
        for row, (number, place) in enumerate(zip(ready, group, strict=True)):
            places[number] = Place(memory, row, place.waiting[step:], place.owed, place.gap)
        for row in fired.rows():
            found[ready[row]] += streams[ready[row]]._announcer.detections(fired, row)
    for number, (stream, (_, missing)) in enumerate(zip(streams, given, strict=True)):
        if missing:
            places[number] = stream._anew(places[number], missing)
    # Free of the chunks that they are part of, which belong to the caller.
    places = [Place(memory, row, waiting.copy(), owed, gap) for memory, row, waiting, owed, gap in places]
    for stream, place in zip(streams, places, strict=True):
        stream._place = place
    return found
