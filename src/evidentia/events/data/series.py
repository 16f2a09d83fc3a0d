"""Any multivariate series: CSV files of samples, and of event intervals."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia.events.clips import Clip, Event, as_event
from evidentia.events.data.annotations import parse_times
from evidentia.events.data.series_table import column_names, read_numbers, time_column, warn_of_times
from evidentia.events.data.series_times import even_rows
from evidentia.events.data.tables import decimal_of, find_delimiter, first_line, read_table

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

    Numbers may be missing: empty cells, NA, NaN and infinite numbers are NaN in the clip, and so are the samples that a
    gap in the column of times leaves out, up to 1,000 of them. A detector holds the last good numbers over them.

    Args:
        path: a CSV file with a line of column names, then a line of numbers a sample; with commas, or with semicolons
            or tabs, beside which numbers may have decimal commas.
        events: a CSV file with the columns label, onset and offset among others, or the events; in seconds on the clock
            of the column of times, or from the first sample if `rate` is given. In the clip they count from the first
            sample; one that is going on then begins with it, and one that is after the last ends with that.
        rate: samples a second; without it the file must have a column of times in seconds, which may begin at any time
            and must be evenly spaced, within half a step, but for gaps; within a quarter, where samples are missing.
        time: the name of that column, in upper or lower case, which is no channel.
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
    table = read_columns(path, rate=rate, time=time, columns=columns)
    given = _read_events(events) if isinstance(events, str | os.PathLike) else tuple(events)
    # A clock may begin at 0 as at any time; without one, events count from the first sample already.
    clock, earliest = (f"{path}, column {time!r}", -math.inf) if rate is None else (str(path), 0.0)
    found = [_placed(as_event(event, clock, earliest=earliest), table, clock) for event in given]
    return Clip(torch.from_numpy(table.samples), table.rate, tuple(found), Path(path).stem, table.columns)


class Columns(NamedTuple):
    """The channels of a CSV file, evenly spaced."""

    samples: npt.NDArray[np.float32]
    """Shape `(n, channels)`; NaN where a number is missing."""
    rate: float
    """Samples a second."""
    begin: float
    """The time of the first sample, in seconds; 0 without a column of times."""
    columns: tuple[str, ...]
    """The names of the channels."""


def read_columns(
    path: str | os.PathLike[str], *, rate: float | None = None, time: str = "time", columns: Sequence[str] | None = None
) -> Columns:
    """The samples in a CSV file; arguments are as for `read_series`."""
    file = Path(path)
    names, values, lines = read_numbers(file)
    begin, places = 0.0, np.arange(len(values))
    clock = time_column(names, time)
    if rate is None:
        if clock is None:
            raise EvidentiaError(
                f"{file} has no column {time!r} to take the rate from, only {', '.join(names)}; pass rate=, or time= "
                "with the name of the column of times"
            )
        times = values[:, names.index(clock)]
        rate, places = even_rows(times, lines, file, clock)
        begin = float(times[0])
    kept = [name for name in names if name != clock] if columns is None else list(columns)
    if unknown := [name for name in kept if name not in names]:
        raise EvidentiaError(f"{file} has no column {', '.join(unknown)}; it has {', '.join(names)}")
    if not kept:
        raise EvidentiaError(f"{file} has no channels besides the column of times")
    channels = values[:, [names.index(name) for name in kept]]
    warn_of_times(kept, channels, file)
    samples = np.full((places[-1] + 1, len(kept)), np.nan, dtype=np.float32)
    samples[places] = channels
    return Columns(samples, rate, begin, tuple(kept))


def load_series(
    path: str | os.PathLike[str], *, rate: float | None = None, time: str = "time", limit: int | None = None
) -> list[Clip]:
    r"""Clips of a CSV file, or of all in a folder: samples in `NAME.csv`, their events in `NAME.events.csv` beside it.

    A series without a file of events has none, and a file of events without a series is an error. All must have the
    same columns, in whatever order; clips have that of the first file.

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
    _check_all_belong(files, given)
    clips, header = [], column_names(files[0])
    clock = time_column(header, time)
    channels = [name for name in header if name != clock]
    for file in files[:limit]:
        columns = column_names(file)
        if set(columns) != set(header):
            raise FileFormatError(f"{file} has the columns {', '.join(columns)}; {files[0]} has {', '.join(header)}")
        events = _events_of(file)
        clips.append(read_series(file, events if events.exists() else (), rate=rate, time=time, columns=channels))
    return clips


def _events_of(file: Path) -> Path:
    return file.with_name(f"{file.stem}{_EVENTS}")


def _check_all_belong(files: Sequence[Path], given: Path) -> None:
    """Refuse files of events that no series is found for: it would be trained on as one without events."""
    own = {_events_of(file).name for file in files}
    others = sorted(file for file in files[0].parent.glob(f"*{_EVENTS}") if file.name not in own)
    if not given.is_dir():
        # Beside one file there may be those of others, but not one that differs in upper and lower case.
        others = [file for file in others if file.name.casefold() in {name.casefold() for name in own}]
    if others:
        name = others[0].name.removesuffix(_EVENTS)
        raise EvidentiaError(
            f"{others[0]} holds the events of {name}.csv, which is not there; name both alike, in upper and lower case "
            "too, or take the file of events away"
        )


def _placed(event: Event, table: Columns, clock: str) -> Event:
    """What was recorded of an event by a clock, in seconds from the first sample."""
    label, onset, offset = event
    begin, duration = table.begin, len(table.samples) / table.rate
    if offset <= begin or onset - begin >= duration:
        where = f"before the first sample, which is at {begin:.12g} s"
        if offset > begin:
            where = f"after the last sample, which ends at {begin + duration:.12g} s"
        raise EvidentiaError(
            f"{clock}: {label!r} lasts from {onset:.12g} s to {offset:.12g} s, {where}; give events in seconds by the "
            "same clock"
        )
    return Event(label, max(0.0, onset - begin), min(offset - begin, duration))


def _read_events(path: str | os.PathLike[str]) -> tuple[Event, ...]:
    delimiter = find_delimiter(first_line(path))
    (_, header), *rows = read_table(path, delimiter)
    names = [name.casefold() for name in header]
    if any(names.count(name) != 1 for name in _COLUMNS):
        raise FileFormatError(
            f"{path} must begin with a line of names with {', '.join(_COLUMNS)} among them, each once, got "
            f"{', '.join(header)[:200]}"
        )
    label, onset, offset = map(names.index, _COLUMNS)
    events = []
    for line, row in rows:
        if len(row) != len(names) or not row[label]:
            raise FileFormatError(f"line {line} of {path} must have a label, an onset and an offset, got {row}")
        # Where the clock of the samples begins is not known here; it may be below 0.
        where = f"line {line} of {path}"
        times = parse_times(row[onset], row[offset], where, decimal_of(delimiter), earliest=-math.inf)
        events.append(Event(row[label], *times))
    return tuple(events)
