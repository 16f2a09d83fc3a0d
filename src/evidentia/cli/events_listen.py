"""`evidentia events detect`: samples of a file or of stdin through a stream, and a line for each detection."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import torch
import typer
from rich.console import Console

from evidentia._support.errors import EvidentiaError
from evidentia.events import Clip, Detection, DetectorStream, EventDetector, SoundInputs, audio_blocks
from evidentia.events.audio_files import EXTENSIONS
from evidentia.events.channels import arranged, column_order
from evidentia.events.inputs import Inputs
from evidentia.events.series import read_columns
from evidentia.events.series_table import column_names, is_number, is_text, split_names

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
    """Open a stream, take up its state, push everything, print what is detected at once, and keep the state.

    Detections in a CSV file with a column of times have their times by that clock, whatever was heard before. The state
    is kept however it ends: by Ctrl-C, SIGTERM, a reader that went away, or samples that do not fit.
    """
    detector = EventDetector.load(model)
    inputs = detector.inputs_
    stream = detector.stream(**options)
    if state is not None and state.exists():
        stream.load(state)
    size = max(1, round(chunk * inputs.sample_rate))
    begin, counts, ahead = stream.time, {"alarm": 0, "warning": 0}, 0.0
    if file == STDIN:
        pieces = _raw_samples(size) if isinstance(inputs, SoundInputs) else _lines(detector)
    elif _is_table(file, inputs):
        samples, clock = _table(file, detector)
        pieces = _in_chunks([samples], size)
        ahead = 0.0 if clock is None else clock - begin
    else:
        pieces = _in_chunks(audio_blocks(file, inputs.sample_rate), size)
    with _exit_on_sigterm():
        try:
            for piece in pieces:
                for detection in stream.push(piece, rate=rate):
                    counts[detection.level] += 1
                    told = replace(detection, time=round(detection.time + ahead, 9)) if ahead else detection
                    # Written at once, also into a pipe.
                    typer.echo(json.dumps(told.to_dict()) if as_json else line_of(told))
        except KeyboardInterrupt:
            # The usual end of a stream without one.
            if file != STDIN:
                raise
        finally:
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


def _is_table(file: str, inputs: Inputs) -> bool:
    """Whether a file holds lines of numbers; if its name does not say so, a detector of a series takes it for that."""
    ending = Path(file).suffix.lower()
    return ending == ".csv" or (ending not in EXTENSIONS and not isinstance(inputs, SoundInputs))


def _table(file: str, detector: EventDetector) -> tuple[npt.NDArray[np.float32], float | None]:
    """The samples of a CSV file in the order of the detector's channels, and the time of the first by its own clock."""
    timed = "time" in column_names(file)
    table = read_columns(file, rate=None if timed else detector.inputs_.sample_rate)
    clip = Clip(torch.from_numpy(table.samples), table.rate, name=Path(file).name, columns=table.columns)
    (clip,) = arranged([clip], detector.columns_)
    detector.inputs_.check_clip(clip)
    return clip.samples.numpy(), table.begin if timed else None


def _in_chunks(blocks: Iterable[npt.NDArray[np.float32]], size: int) -> Iterator[npt.NDArray[Any]]:
    for block in blocks:
        for first in range(0, len(block), size):
            yield block[first : first + size]


def _raw_samples(size: int) -> Iterator[npt.NDArray[Any]]:
    """Samples as soon as there are any; a sample of which only half has come waits for the other half."""
    half, source = b"", _stdin()
    while news := source.read1(_BYTES * size):
        content = half + news
        whole = len(content) - len(content) % _BYTES
        half = content[whole:]
        yield np.frombuffer(content[:whole], dtype="<i2").astype(np.int16)
    if half:
        typer.echo("the samples on stdin ended in the middle of one; are they of 16 bits?", err=True)


def _lines(detector: EventDetector) -> Iterator[npt.NDArray[Any]]:
    """A sample a line of CSV, as soon as it has come; what is no number is taken for missing.

    So is a line that does not fit, once one has: a live sensor now and then sends half a line. Names in the first line
    put the channels in the order of the detector's.
    """
    channels = detector.inputs_.features
    source, kept, number, begun, fitted = _stdin(), None, 0, False, False
    while line := source.readline():
        number += 1
        if not line.strip():
            continue
        cells = split_names(line.decode("utf-8-sig", errors="replace"))
        header, begun = not begun and any(map(is_text, cells)) and not any(map(is_number, cells)), True
        if header:
            kept = [place for place, name in enumerate(cells) if name != "time"]
            if detector.columns_:
                order = column_order([cells[place] for place in kept], detector.columns_, "stdin")
                kept = [kept[place] for place in order]
            continue
        row = [float(cell) if is_number(cell) else np.nan for cell in cells]
        row = row if kept is None else [row[place] for place in kept if place < len(row)]
        if len(row) != channels:
            told = f"line {number} on stdin has {len(row)} channels and the detector takes {channels}"
            if not fitted:
                raise EvidentiaError(told)
            typer.echo(f"{told}; its numbers are taken for missing", err=True)
            row = [np.nan] * channels
        fitted = True
        yield np.array([row], dtype=np.float32)


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end the block as an exit does, which runs what is to be done at its end."""
    # Python gives signals to its main thread only.
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _stdin() -> Any:
    source: Any = typer.get_binary_stream("stdin")
    if source.isatty():
        raise typer.BadParameter("- takes samples from stdin, which is a terminal; pipe samples into the command")
    return source


def _summary(stream: DetectorStream, begin: float, counts: dict[str, int]) -> str:
    parts = [f"{count} {level}{'' if count == 1 else 's'}" for level, count in counts.items()]
    clipped = f"; {stream.clipped} samples clipped" if stream.clipped else ""
    return f"{stream.time - begin:.1f} s heard: {', '.join(parts)}{clipped}"
