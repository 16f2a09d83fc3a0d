"""What `evidentia events detect` listens to: files in pieces, with the clock that they have."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import typer

from evidentia._support.errors import EvidentiaError
from evidentia.events import Clip, EventDetector, SoundInputs, audio_blocks
from evidentia.events.data.audio_files import EXTENSIONS, opened
from evidentia.events.data.series import read_columns
from evidentia.events.data.series_table import column_names, time_column
from evidentia.events.data.series_times import LONGEST_GAP
from evidentia.events.front_end.channels import arranged
from evidentia.events.front_end.inputs import Inputs

TIME = "time"


class Piece(NamedTuple):
    """Samples that come together."""

    samples: npt.NDArray[Any] | None
    """None for a gap."""
    seconds: float | None = None
    """How long the gap is."""
    end: float | None = None
    """The time after them by the clock of the input; None without one."""
    pace: float = 1.0
    """Seconds of that clock in one of the detector's, which has a rate of its own."""


@contextmanager
def told_as_options(quiet: bool = False) -> Iterator[None]:
    """Let errors of files name the options of the command, and tell warnings in a sentence, unless it is quiet."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except EvidentiaError as error:
            raise type(error)(_as_options(str(error))) from error
        finally:
            for each in [] if quiet else caught:
                typer.echo(f"warning: {_as_options(str(each.message))}", err=True)


def is_table(file: str, inputs: Inputs) -> bool:
    """Whether a file holds lines of numbers; if its name does not say so, a detector of a series takes it for that."""
    ending = Path(file).suffix.lower()
    if ending in EXTENSIONS and not isinstance(inputs, SoundInputs):
        raise EvidentiaError(
            f"{file} is a sound file, and the detector takes a series of {inputs.features} channels at "
            f"{inputs.sample_rate:g} Hz; give a CSV file of them, or train a detector on sound"
        )
    return ending not in EXTENSIONS and (ending == ".csv" or not isinstance(inputs, SoundInputs))


def table_pieces(
    file: str, detector: EventDetector, size: int, *, rate: float | None, time: str | None, end: float | None
) -> Iterator[Piece]:
    """The samples of a CSV file in the order of the detector's channels, from where its clock was heard last.

    Args:
        file: the file.
        detector: the detector.
        size: how many samples a piece has at most.
        rate: samples a second, if the column of times is not to be looked at.
        time: the name of that column, which must then be there.
        end: the time up to which the file was heard; what comes before is left out, and a gap before its beginning is
            pushed.
    """
    inputs, name = detector.inputs_, Path(file).name
    timed = rate is None and (time is not None or time_column(column_names(file), TIME) is not None)
    with told_as_options():
        given = None if timed else rate or inputs.sample_rate
        table = read_columns(file, rate=given, time=time or TIME)
        clip = Clip(torch.from_numpy(table.samples), table.rate, name=name, columns=table.columns)
        (clip,) = arranged([clip], detector.columns_)
        inputs.check_clip(clip)
    samples, pace = clip.samples.numpy(), inputs.sample_rate / table.rate
    if not timed:
        if end is not None:
            typer.echo(
                f"{name} has no column of times and is taken to follow at once on what was heard before", err=True
            )
        return (Piece(part) for part in in_chunks([samples], size))
    first, before = 0, []
    if end is not None:
        if table.begin >= end - 0.5 / table.rate:
            before = gap(round((table.begin - end) * inputs.sample_rate), inputs, table.begin, name)
        else:
            first = _heard_before(end - table.begin, table.rate, len(samples), name, end)
    return _with_times(before, [samples[first:]], size, table.begin + first / table.rate, table.rate, pace)


def sound_pieces(file: str, rate: float, size: int, end: float | None) -> Iterator[Piece]:
    """The samples of a sound file, whose clock is the place in it, from where it was heard last.

    Args:
        file: the file.
        rate: of the detector.
        size: how many samples a piece has at most.
        end: the time up to which the file was heard; what comes before is left out.
    """
    blocks, first = audio_blocks(file, rate), 0
    if end is not None:
        with opened(file) as sound:
            length = math.ceil(sound.frames * rate / sound.samplerate)
        first = _heard_before(end, rate, length, Path(file).name, end)
    return _with_times([], _without_first(blocks, first), size, first / rate, rate, 1.0)


def gap(missing: int, inputs: Inputs, end: float | None, where: str) -> list[Piece]:
    """A gap of so many samples, which is told.

    As in files, up to `LONGEST_GAP` are missing numbers; after more the network begins anew.
    """
    if missing <= 0:
        return []
    seconds = missing / inputs.sample_rate
    if missing <= LONGEST_GAP:
        typer.echo(
            f"{where}: {missing} samples ({seconds:g} s) are missing; the last good numbers stand for them", err=True
        )
        return [Piece(np.full((missing, *inputs.sample_shape), np.nan, dtype=np.float32), end=end)]
    typer.echo(f"{where}: {missing} samples ({seconds:g} s) are missing; the detector begins anew after them", err=True)
    return [Piece(None, seconds, end)]


def in_chunks(blocks: Iterable[npt.NDArray[np.float32]], size: int) -> Iterator[npt.NDArray[Any]]:
    """Samples, so many at a time."""
    for block in blocks:
        for first in range(0, len(block), size):
            yield block[first : first + size]


def _heard_before(seconds: float, rate: float, length: int, name: str, end: float) -> int:
    """How many of the first samples of a file were heard before, which is told; `end` is the time of the last."""
    first = min(length, round(seconds * rate))
    anew = "; nothing is new. If it is another recording, or its clock has begun anew, take another --state"
    typer.echo(
        f"{first} samples of {name} were heard before, up to {end:.12g} s by its clock; they are left out"
        f"{anew if first == length else ''}",
        err=True,
    )
    return first


def _without_first(blocks: Iterable[npt.NDArray[np.float32]], count: int) -> Iterator[npt.NDArray[np.float32]]:
    for block in blocks:
        yield block[count:]
        count = max(0, count - len(block))


def _with_times(
    before: list[Piece],
    blocks: Iterable[npt.NDArray[np.float32]],
    size: int,
    begin: float,
    rate: float,
    pace: float,
) -> Iterator[Piece]:
    yield from before
    come = 0
    for part in in_chunks(blocks, size):
        come += len(part)
        yield Piece(part, end=begin + come / rate, pace=pace)


def _as_options(told: str) -> str:
    named = {"rate=": "--rate", "time=": "--time", 'network_settings={"segment": 64}': "--segment 64"}
    for name, option in named.items():
        told = told.replace(name, option)
    return told
