"""`evidentia events detect`: samples of a file or of stdin through a stream, and a line for each detection."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import typer

from evidentia._support.errors import EvidentiaError
from evidentia.cli.console import plain_console
from evidentia.cli.events_sources import Piece, is_table, sound_pieces, table_pieces
from evidentia.cli.events_state import StateFile, exit_on_signals
from evidentia.cli.events_stdin import SeriesLines, raw_samples
from evidentia.events import Detection, DetectorStream, EventDetector, SoundInputs

STDIN = "-"
# Samples in a chunk that is as long as all there is.
_ENDLESS = 2**40


def run_detect(
    model: Path,
    file: str,
    options: dict[str, Any],
    *,
    rate: float | None = None,
    time: str | None = None,
    chunk: float = 0.064,
    state: Path | None = None,
    as_json: bool = False,
) -> None:
    """Open a stream, take up its state, push everything, print what is detected at once, and keep the state.

    Detections in CSV with a column of times have their times by that clock, whatever was heard before, and those in a
    sound file by the place in it. The state is written every few seconds, and however it ends: by Ctrl-C, SIGTERM,
    SIGHUP, a reader that went away, or samples that do not fit. It is that of before any chunk of which not all
    detections were told, so that they are told then. With it goes the time up to which the clock was heard: what comes
    again is passed over, and a pause is a gap.
    """
    if file != STDIN and Path(file).is_dir():
        raise EvidentiaError(
            f"detect listens to one file at a time, and {file} is a folder; give a file in it. To score a detector on "
            "a folder of recordings there is `evidentia events evaluate`"
        )
    # A segment is too little work to share, and threads that wait for each other hold up every other program.
    torch.set_num_threads(1)
    kept = StateFile(state)
    detector = EventDetector.load(model)
    stream = detector.stream(**options)
    end = kept.load(stream)
    begin, counts = _Heard.of(stream), {"alarm": 0, "warning": 0}
    pieces = _pieces(file, detector, rate=rate, time=time, chunk=chunk, end=end)
    kept.keep(stream)
    with exit_on_signals(), kept.written():
        try:
            for samples, seconds, after, pace in pieces:
                found = stream.push(samples, seconds=seconds, rate=rate if file == STDIN else None)
                if after is not None:
                    if kept.ahead is None and begin.seconds > 0:
                        typer.echo(f"{state} has no clock: the input is taken to follow at once on it", err=True)
                    kept.ahead = after - stream.time
                for detection in found:
                    counts[detection.level] += 1
                    told = detection
                    if after is not None:
                        told = replace(detection, time=round(after + (detection.time - stream.time) * pace, 9))
                    # Written at once, also into a pipe.
                    typer.echo(json.dumps(told.to_dict()) if as_json else line_of(told))
                kept.keep(stream)
        except KeyboardInterrupt:
            # The usual end of a stream without one.
            if file != STDIN:
                raise
    plain_console(stderr=True).print(_summary(stream, begin, counts), style="dim", highlight=False, soft_wrap=True)


def line_of(detection: Detection) -> str:
    """A detection for people.

    Example:
        >>> from evidentia import BinomialOpinion
        >>> line_of(Detection("siren", 3.264, 50, "alarm", BinomialOpinion(0.8, 0.05, 0.15)))
        '     3.264 s  alarm    siren  belief 0.80, disbelief 0.05, vacuity 0.15'
    """
    opinion = detection.opinion
    masses = ", ".join(f"{name} {float(getattr(opinion, name)):.2f}" for name in ("belief", "disbelief", "vacuity"))
    name = detection.label if detection.level == "alarm" else "something is beginning"
    return f"{detection.time:10.3f} s  {detection.level:<7}  {name}  {masses}"


def _pieces(
    file: str, detector: EventDetector, *, rate: float | None, time: str | None, chunk: float, end: float | None
) -> Iterable[Piece]:
    """What comes from a file or from stdin; a CSV file is read, and any file looked at, before the first piece."""
    inputs = detector.inputs_
    size = max(1, round(min(chunk * inputs.sample_rate, _ENDLESS)))
    if file == STDIN:
        if isinstance(inputs, SoundInputs):
            return raw_samples(size, inputs.rate)
        return SeriesLines(detector, time, end)
    if is_table(file, inputs):
        return table_pieces(file, detector, size, rate=rate, time=time, end=end)
    return sound_pieces(file, inputs.sample_rate, size, end)


@dataclass(frozen=True)
class _Heard:
    """What a stream had counted before, so that a command tells of its own input alone."""

    seconds: float
    invalid: int
    clipped: int

    @classmethod
    def of(cls, stream: DetectorStream) -> _Heard:
        return cls(stream.time, stream.invalid, stream.clipped)


def _summary(stream: DetectorStream, begin: _Heard, counts: dict[str, int]) -> str:
    now = _Heard.of(stream)
    parts = [f"{count} {level}{'' if count == 1 else 's'}" for level, count in counts.items()]
    missing, loud = now.invalid - begin.invalid, now.clipped - begin.clipped
    invalid = f"; {missing} number{'' if missing == 1 else 's'} missing or invalid" if missing else ""
    clipped = f"; {loud} sample{'' if loud == 1 else 's'} clipped" if loud else ""
    return f"{now.seconds - begin.seconds:.1f} s heard: {', '.join(parts)}{invalid}{clipped}"
