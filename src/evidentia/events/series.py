"""Any multivariate series: CSV files of samples, and of event intervals."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia.events.annotations import parse_times, read_table
from evidentia.events.clips import Clip, Event

_COLUMNS = ("label", "onset", "offset")
_EVENTS = ".events.csv"


def read_series(
    path: str | os.PathLike[str],
    events: str | os.PathLike[str] | Sequence[Event] = (),
    *,
    rate: float | None = None,
    time: str = "time",
    columns: Sequence[str] | None = None,
) -> Clip:
    r"""A clip of a multivariate series, one column of a CSV file a channel.

    Args:
        path: a CSV file with a line of column names, then a line of numbers a sample.
        events: a CSV file with the columns label, onset and offset, in seconds from the first sample; or the events.
        rate: samples a second; without it the file must have a column of times in seconds, evenly spaced.
        time: the name of that column, which is no channel.
        columns: the channels to keep, in this order; all if None.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table, marks = pathlib.Path(folder) / "pump.csv", pathlib.Path(folder) / "events.csv"
        ...     _ = table.write_text("time,flow,heat\n0.0,1,20\n0.5,1,21\n1.0,0,25\n1.5,0,26\n")
        ...     _ = marks.write_text("label,onset,offset\nblocked,0.9,2.0\n")
        ...     read_series(table, marks)
        Clip('pump': 2 s at 2 Hz, 2 channels, 1 events)
    """
    file = Path(path)
    names, values = _numbers(file)
    if rate is None:
        if time not in names:
            raise EvidentiaError(
                f"{file} has no column {time!r} to take the rate from, only {', '.join(names)}; pass rate=, or time= "
                "with the name of the column of times"
            )
        rate = _rate(values[:, names.index(time)], file, time)
    kept = [name for name in names if name != time] if columns is None else list(columns)
    if unknown := [name for name in kept if name not in names]:
        raise EvidentiaError(f"{file} has no column {', '.join(unknown)}; it has {', '.join(names)}")
    if not kept:
        raise EvidentiaError(f"{file} has no channels besides the column of times")
    found = _read_events(events) if isinstance(events, str | os.PathLike) else tuple(events)
    channels = torch.from_numpy(values[:, [names.index(name) for name in kept]])
    return Clip(channels, rate, found, file.stem)


def load_series(
    path: str | os.PathLike[str], *, rate: float | None = None, time: str = "time", limit: int | None = None
) -> list[Clip]:
    r"""Clips of a CSV file, or of all in a folder: samples in `NAME.csv`, their events in `NAME.events.csv` beside it.

    A series without a file of events has none. All must have the same columns.

    Args:
        path: the file of samples, or the folder.
        rate: samples a second, for files without a column of times.
        time: the name of that column.
        limit: at most so many clips, in the order of their names.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = (pathlib.Path(folder) / "monday.csv").write_text("time,flow\n0.0,1\n0.5,1\n")
        ...     _ = (pathlib.Path(folder) / "sunday.csv").write_text("time,flow\n0.0,1\n0.5,0\n")
        ...     _ = (pathlib.Path(folder) / "sunday.events.csv").write_text("label,onset,offset\nblocked,0.5,1.0\n")
        ...     load_series(folder)
        [Clip('monday': 1 s at 2 Hz, 0 events), Clip('sunday': 1 s at 2 Hz, 1 events)]
    """
    given = Path(path)
    files = (
        sorted(file for file in given.glob("*.csv") if not file.name.endswith(_EVENTS)) if given.is_dir() else [given]
    )
    if not files:
        raise FileNotFoundError(f"{given} holds no CSV file of samples")
    clips, header = [], None
    for file in files[:limit]:
        columns = column_names(file)
        if columns != (header := header or columns):
            raise FileFormatError(f"{file} has the columns {', '.join(columns)}; {files[0]} has {', '.join(header)}")
        events = file.with_name(f"{file.stem}{_EVENTS}")
        clips.append(read_series(file, events if events.exists() else (), rate=rate, time=time))
    return clips


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """The columns of a CSV file."""
    return split_names(_text(Path(path)).partition("\n")[0])


def split_names(line: str) -> list[str]:
    """The names in the first line of a CSV file."""
    return [name.strip().strip('"') for name in line.split(",")]


def _text(path: Path) -> str:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path} is not a text file in UTF-8 ({error})") from error


def _numbers(path: Path) -> tuple[list[str], npt.NDArray[np.float64]]:
    header, _, body = _text(path).partition("\n")
    names = split_names(header)
    if not body.strip():
        raise FileFormatError(
            f"{path} has no samples; it needs a line of column names, then a line of numbers a sample"
        )
    if len(set(names)) != len(names) or not all(names):
        raise FileFormatError(f"{path} must name every column, each differently, got {', '.join(names)[:200]}")
    if all(is_number(name) for name in names):
        raise FileFormatError(f"{path} must begin with a line of column names, got numbers: {', '.join(names)[:200]}")
    try:
        values: npt.NDArray[np.float64] = np.loadtxt(io.StringIO(body), delimiter=",", ndmin=2, comments=None)
    except ValueError as error:
        raise FileFormatError(f"{path} must hold numbers only below its column names: {error}") from error
    if values.shape[1] != len(names):
        raise FileFormatError(f"{path} names {len(names)} columns and has {values.shape[1]}")
    if not np.isfinite(values).all():
        row, column = (int(place[0]) for place in np.nonzero(~np.isfinite(values)))
        raise FileFormatError(
            f"line {row + 2} of {path} has no finite number in column {names[column]!r}; fill gaps before training"
        )
    return names, values


def _rate(times: npt.NDArray[np.float64], path: Path, column: str) -> float:
    steps = np.diff(times)
    if len(steps) == 0:
        raise EvidentiaError(f"{path} has a single sample; pass rate=")
    step = float(np.median(steps))
    if step <= 0 or float(np.abs(steps - step).max()) > 0.01 * step:
        row = int(np.abs(steps - step).argmax())
        raise FileFormatError(
            f"column {column!r} of {path} must rise evenly; most steps are {step:g} s, but that from line {row + 2} to "
            f"{row + 3} is {steps[row]:g} s; resample the series, or pass rate="
        )
    # The mean over all steps, because written times are rounded.
    return len(steps) / float(times[-1] - times[0])


def _read_events(path: str | os.PathLike[str]) -> tuple[Event, ...]:
    rows = read_table(path, ",")
    if tuple(rows[0][1]) != _COLUMNS:
        raise FileFormatError(f"{path} must begin with the columns {', '.join(_COLUMNS)}, got {', '.join(rows[0][1])}")
    events = []
    for line, row in rows[1:]:
        if len(row) != 3 or not row[0]:
            raise FileFormatError(f"line {line} of {path} must have a label, an onset and an offset, got {row}")
        events.append(Event(row[0], *parse_times(row[1], row[2], f"line {line} of {path}")))
    return tuple(events)


def is_number(text: str) -> bool:
    """Whether a text is a number, infinity with it."""
    try:
        return not math.isnan(float(text))
    except ValueError:
        return False
