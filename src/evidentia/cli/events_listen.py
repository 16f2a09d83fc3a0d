"""`evidentia events detect`: samples of a file or of stdin through a stream, and a line for each detection."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import typer
from rich.console import Console

from evidentia._support.errors import EvidentiaError
from evidentia.events import Detection, DetectorStream, EventDetector, SoundInputs, read_audio

STDIN = "-"
_BYTES = 2


def run_detect(
    model: Path,
    file: str,
    options: dict[str, Any],
    *,
    rate: float | None = None,
    chunk: float = 0.064,
    state: Path | None = None,
    as_json: bool = False,
) -> None:
    """Open a stream, take up its state, push everything, print what is detected at once, and keep the state."""
    detector = EventDetector.load(model)
    if not isinstance(detector.inputs_, SoundInputs):
        raise EvidentiaError(
            f"{model} is a detector of a series with {detector.inputs_.features} channels, and the command takes "
            "sound; use EventDetector.load(...).stream() in Python"
        )
    stream = detector.stream(**options)
    if state is not None and state.exists():
        stream.load(state)
    size = max(1, round(chunk * detector.inputs_.rate))
    pieces = _from_stdin(size) if file == STDIN else _from_file(file, detector.inputs_.rate, size)
    begin, counts = stream.time, {"alarm": 0, "warning": 0}
    for piece in pieces:
        for detection in stream.push(piece, rate=rate):
            counts[detection.level] += 1
            # Written at once, also into a pipe.
            typer.echo(json.dumps(detection.to_dict()) if as_json else line_of(detection))
    if state is not None:
        stream.save(state)
    Console(stderr=True).print(_summary(stream, begin, counts), style="dim", highlight=False, soft_wrap=True)


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


def _from_file(file: str, rate: int, size: int) -> Iterator[npt.NDArray[np.float32]]:
    samples = read_audio(file, rate)[0].numpy()
    for first in range(0, len(samples), size):
        yield samples[first : first + size]


def _from_stdin(size: int) -> Iterator[npt.NDArray[np.int16]]:
    """Samples as soon as there are any; a sample of which only half has come waits for the other half."""
    source: Any = typer.get_binary_stream("stdin")
    if source.isatty():
        raise typer.BadParameter("- takes raw samples from stdin, which is a terminal; pipe samples into the command")
    half = b""
    while True:
        try:
            news = source.read1(_BYTES * size)
        except KeyboardInterrupt:  # how a stream without an end is stopped
            break
        if not news:
            break
        content = half + news
        whole = len(content) - len(content) % _BYTES
        half = content[whole:]
        yield np.frombuffer(content[:whole], dtype="<i2").astype(np.int16)
    if half:
        typer.echo("the samples on stdin ended in the middle of one; are they of 16 bits?", err=True)


def _summary(stream: DetectorStream, begin: float, counts: dict[str, int]) -> str:
    parts = [f"{count} {level}{'' if count == 1 else 's'}" for level, count in counts.items()]
    clipped = f"; {stream.clipped} samples clipped" if stream.clipped else ""
    return f"{stream.time - begin:.1f} s heard: {', '.join(parts)}{clipped}"
