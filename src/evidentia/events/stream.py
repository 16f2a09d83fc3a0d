"""Live streams: samples in, in pieces of any length, and detections out as soon as their segment is complete."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia._support.files import load_tensors, save_tensors
from evidentia.events.chunks import Samples
from evidentia.events.clips import Event
from evidentia.events.detections import Announcer, Detection
from evidentia.events.memory import Memory
from evidentia.events.runner import Runner

_KIND = "detector stream"


class DetectorStream:
    """One live stream through a trained detector; `EventDetector.stream` opens it.

    Samples go through the front end, the network and the fusion head a segment at a time, always in the same
    portions: detections are the same to the bit however the stream is cut in chunks.

    | what comes | what is done |
    |---|---|
    | floats | taken as they are: in [-1, 1] for sound, in the units of training for a series |
    | int16, int32, int8, uint8 | sound: divided by full scale, other whole numbers are an error; series: numbers |
    | several channels, shape (n, c) | sound: averaged, up to 8; series: must be those of training |
    | NaN, infinity | sound: silence; series: the channel's last good number. Counted in `invalid` |
    | beyond [-1, 1] | sound: limited to it. Counted in `clipped` |
    | silence | taken as any sound: zeros have a finite log-mel |
    | a gap, `push(None, seconds=...)` | filled as NaN up to `longest_gap`; after a longer one memory begins anew |
    | another rate, `push(samples, rate=...)` | an error |
    | nothing, an empty chunk | nothing |

    Args:
        runner: the detector, made ready for streams.
        labels: call these classes only; all if None. Warnings, which are of no class, are given all the same.
        events: what is known to happen in the stream, by which detections get a delay.
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
        if not 0 <= longest_gap < math.inf:
            raise EvidentiaError(f"longest_gap must be at least 0 seconds, got {longest_gap}")
        self.runner = runner
        self.longest_gap = longest_gap
        outputs = runner.pipeline.heads[0].outputs(len(runner.labels))
        self._announcer = Announcer(runner.labels, outputs, runner.inputs.seconds, labels, events)
        self._memory, self._row = runner.begin(), 0
        self._waiting: Samples = np.zeros((0, *runner.inputs.sample_shape), dtype=np.float32)

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
        if samples is None:
            return self._gap(seconds)
        if seconds is not None:
            raise EvidentiaError("seconds is the length of a gap; give it with None in place of samples")
        return push_many([self], [samples])[0]

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
        tensors = self._memory.select([self._row]).map(torch.clone).to_dict()
        identity = torch.frombuffer(bytearray(self.runner.identity), dtype=torch.uint8)
        return {**tensors, "waiting": torch.from_numpy(self._waiting.copy()), "detector": identity}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on where `state_dict` was asked for, in this process or another."""
        tensors = {name: torch.as_tensor(tensor).clone() for name, tensor in state.items()}
        waiting, identity = tensors.pop("waiting", None), tensors.pop("detector", None)
        if waiting is None or identity is None:
            raise EvidentiaError("this is not the state of a stream; give what state_dict returned")
        if bytes(identity.tolist()) != self.runner.identity:
            raise EvidentiaError("the state is of a stream of another detector; load that detector to go on with it")
        memory = Memory.from_dict(tensors)
        memory.check_like(self.runner.begin())
        inputs = self.runner.inputs
        if waiting.shape[1:] != inputs.sample_shape or len(waiting) >= inputs.step or waiting.dtype != torch.float32:
            raise EvidentiaError(f"the state has waiting samples of shape {tuple(waiting.shape)}, which do not fit")
        self._memory, self._row, self._waiting = memory, 0, waiting.numpy()

    def save(self, path: str | Path) -> None:
        """Write the state to one file, whole or not at all."""
        save_tensors(path, _KIND, self.state_dict(), {"time": self.time})

    def load(self, path: str | Path) -> None:
        """Go on where `save` was called; nothing in the file can run code."""
        self.load_state_dict(load_tensors(path, _KIND)[0])

    @property
    def _position(self) -> int:
        return self._count("segment") * self.runner.inputs.step + len(self._waiting)

    def _count(self, name: str) -> int:
        return int(self._memory.clock[name][self._row])

    def _check_rate(self, rate: float) -> None:
        wanted = self.runner.inputs.sample_rate
        if not math.isclose(rate, wanted, rel_tol=1e-6):
            raise EvidentiaError(
                f"the detector takes {wanted:g} samples a second, got {rate:g}; resample the stream first, or train on "
                "clips of its rate"
            )

    def _gap(self, seconds: float | None) -> list[Detection]:
        if seconds is None or not 0 <= seconds < math.inf:
            raise EvidentiaError(f"a gap needs its length, push(None, seconds=...), of at least 0, got {seconds}")
        inputs = self.runner.inputs
        missing = round(seconds * inputs.sample_rate)
        # A series goes on with its last good numbers, sound with silence.
        filling = np.nan if inputs.sample_shape else 0.0
        if seconds <= self.longest_gap:
            return self.push(np.full((missing, *inputs.sample_shape), filling, dtype=np.float32))
        number, rest = divmod(self._position + missing, inputs.step)
        before, fresh = self._memory.select([self._row]), self.runner.begin().to_dict()
        kept = {name: tensor for name, tensor in before.to_dict().items() if name.endswith("trigger/last")}
        kept |= {f"clock/{name}": before.clock[name] for name in ("invalid", "clipped")}
        self._memory, self._row = Memory.from_dict(fresh | kept | {"clock/segment": torch.tensor([number])}), 0
        self._waiting = np.zeros((rest, *inputs.sample_shape), dtype=np.float32)
        return []


def push_many(streams: Sequence[DetectorStream], chunks: Sequence[Any]) -> list[list[Detection]]:
    """Take the next samples of many streams, whatever their ages, in batches as large as there are streams.

    It costs least if the same streams come in the same order every time: their memories then stay together.

    Args:
        streams: streams of one detector, opened with the same engine and trigger.
        chunks: the next samples of each, of any lengths.

    Returns:
        The detections of each stream.
    """
    if len(streams) != len(chunks):
        raise EvidentiaError(f"every stream needs a chunk, got {len(streams)} streams and {len(chunks)} chunks")
    if len({id(stream) for stream in streams}) < len(streams):
        raise EvidentiaError("a stream was given twice; give it once, with all its samples in one chunk")
    if any(stream.runner is not streams[0].runner for stream in streams):
        raise EvidentiaError(
            "streams can share a batch only if one detector opened them with the same engine and trigger"
        )
    if not streams:
        return []
    runner = streams[0].runner
    # All chunks are read before any stream moves on, so that a bad one leaves all of them as they were.
    news = [runner.inputs.as_samples(chunk) for chunk in chunks]
    for stream, new in zip(streams, news, strict=True):
        stream._waiting = np.concatenate([stream._waiting, new]) if len(stream._waiting) else new
    found: list[list[Detection]] = [[] for _ in streams]
    step = runner.inputs.step
    while ready := [number for number, stream in enumerate(streams) if len(stream._waiting) >= step]:
        group = [streams[number] for number in ready]
        fired, memory = runner.advance(np.stack([stream._waiting[:step] for stream in group]), _together(group))
        for row, stream in enumerate(group):
            stream._memory, stream._row, stream._waiting = memory, row, stream._waiting[step:]
        busy = fired.alarms.any(1) if fired.warnings is None else fired.alarms.any(1) | fired.warnings[:, 0]
        for row in busy.nonzero()[0].tolist():
            found[ready[row]] += group[row]._announcer.detections(fired, row)
    for stream in streams:
        # Free of the chunk that they are part of, which belongs to the caller.
        stream._waiting = stream._waiting.copy()
    return found


def _together(streams: Sequence[DetectorStream]) -> Memory:
    """The memory of some streams with a row each, in their order."""
    first = streams[0]._memory
    if first.batch == len(streams) and all(s._memory is first and s._row == row for row, s in enumerate(streams)):
        return first
    rows: dict[int, list[int]] = {}
    memories: dict[int, Memory] = {}
    for number, stream in enumerate(streams):
        rows.setdefault(id(stream._memory), []).append(number)
        memories[id(stream._memory)] = stream._memory
    joined = Memory.join([memories[key].select([streams[n]._row for n in numbers]) for key, numbers in rows.items()])
    order = [number for numbers in rows.values() for number in numbers]
    if order == sorted(order):
        return joined
    return joined.select(np.argsort(order).tolist())
