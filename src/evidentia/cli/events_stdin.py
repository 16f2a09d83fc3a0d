"""Samples that come in on stdin: raw sound, or lines of CSV."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import typer

from evidentia._support.columns import column_order
from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia.cli.events_sources import TIME, Piece, gap
from evidentia.events import EventDetector
from evidentia.events.data.series_table import is_number, is_text, time_column
from evidentia.events.data.tables import cell_number, decimal_of, find_delimiter, split_line
from evidentia.events.streams.clock import Clock

_BYTES = 2
# So many samples are read at once at most: memory is set aside for all that are asked for, and a pipe holds no more.
_AT_ONCE = 65_536
_FILES = {b"RIFF": "wav", b"fLaC": "flac", b"OggS": "ogg"}
# A channel without a number in so many lines is told: its sensor may be gone, or the column may hold something else.
_SILENT = 100
# So many lines tell at which rate they come, and by what factor it may differ, as rounded times and lost lines make it.
_LINES = 20
_FACTOR = 1.6
# So many lines without a time are waited for one when a stream goes on; then its sensor has none to tell.
_TIMELESS = 100


def raw_samples(size: int, rate: float) -> Iterator[Piece]:
    """Samples as soon as there are any; a sample of which only half has come waits for the other half.

    Args:
        size: how many at most at a time; never more than 65,536.
        rate: of the detector, for messages.
    """
    rest, source, known = b"", _stdin(), False
    while news := source.read1(_BYTES * min(size, _AT_ONCE)):
        content = rest + news
        if not known:
            known = len(content) >= max(map(len, _FILES))
            _check_raw(content, rate)
        whole = len(content) - len(content) % _BYTES if known else 0
        rest = content[whole:]
        if whole:
            yield Piece(np.frombuffer(content[:whole], dtype="<i2").astype(np.int16))
    whole = len(rest) - len(rest) % _BYTES
    if whole:
        yield Piece(np.frombuffer(rest[:whole], dtype="<i2").astype(np.int16))
    if len(rest) > whole:
        typer.echo("the samples on stdin ended in the middle of one; are they of 16 bits?", err=True)


def _check_raw(content: bytes, rate: float) -> None:
    if kind := _FILES.get(content[:4]):
        raise EvidentiaError(
            f"stdin has a {kind} file, and raw samples are needed; give the file by its name, or send samples, such as "
            f"by: ffmpeg -i FILE -f s16le -ac 1 -ar {rate:g} - | evidentia events detect MODEL -"
        )


class SeriesLines:
    """A sample a line of CSV, as soon as it has come; what is no number is taken for missing.

    So is a line that does not fit, once one has: a live sensor now and then sends half a line. Names in the first line,
    not all of them numbers, put the channels in the order of the detector's, and one of them may be of a column of
    times, in seconds as in files. A time may be missing, so that the line is in its turn; any other text is an error,
    lest the clock be lost.

    Args:
        detector: the detector.
        time: the name of the column of times, which must then be there.
        end: the time up to which the stream was heard before; lines before it are passed over, and up to 100 before the
            first time, as nothing tells whether they were heard.
    """

    def __init__(self, detector: EventDetector, time: str | None, end: float | None) -> None:
        self._detector = detector
        self._time = time
        self._clock = Clock(detector.inputs_.sample_rate, end)
        self._resuming = end is not None
        self._passed, self._timeless = 0, 0
        # The time of the last line that was passed over.
        self._before: float | None = None
        self._delimiter, self._decimal = ",", "."
        self._kept: list[int] | None = None
        self._columns, self._timed = 0, -1
        self._times: list[float] = []

    def __iter__(self) -> Iterator[Piece]:
        channels = self._detector.inputs_.features
        source, number, begun, fitted = _stdin(), 0, False, False
        silent, warned = np.zeros(channels, dtype=np.int64), False
        while line := source.readline():
            number += 1
            if not line.strip():
                continue
            text = line.decode("utf-8-sig", errors="replace")
            if not begun:
                self._delimiter = find_delimiter(text)
                self._decimal = decimal_of(self._delimiter)
            cells = split_line(text, self._delimiter)
            header, begun = not begun and self._is_header(cells), True
            if header:
                self._take_names(cells)
                continue
            if self._kept is None and self._time is not None:
                raise EvidentiaError(
                    f"line {number} on stdin has no names, so there is no column {self._time!r}; send the line of "
                    "names first, such as by tail -n +1 -f FILE, or leave out --time"
                )
            if self._resuming and self._timed < 0:
                self._resuming = False
                typer.echo(
                    "stdin has no column of times and is taken to follow at once on what was heard before", err=True
                )
            row = self._numbers(cells)
            if len(row) != channels:
                row = self._unfit(number, row, fitted)
            fitted = True
            silent = np.where(np.isnan(row), silent + 1, 0)
            if not warned and (silent >= _SILENT).any():
                warned = True
                self._tell_silent(np.flatnonzero(silent >= _SILENT).tolist(), number)
            time = self._time_of(cells, number)
            self._check_rate(time)
            yield from self._placed(np.array([row], dtype=np.float32), time, number)
        if self._passed:
            typer.echo(f"{self._passed} lines on stdin were heard before and were passed over", err=True)
        if self._timeless:
            typer.echo(f"{self._timeless} lines on stdin without a time were passed over", err=True)

    def _is_header(self, cells: list[str]) -> bool:
        """Whether a first line is one of names, of which some may be numbers, as those of data frames are.

        A line of data may hold a text too, such as a time stamp or what a sensor sends when it fails.
        """
        texts = [cell for cell in cells if is_text(cell, self._decimal)]
        numbers = [cell for cell in cells if is_number(cell, self._decimal)]
        known = {*self._detector.columns_, time_column(cells, self._time or TIME)}
        if not numbers or any(text in known for text in texts):
            return bool(texts)
        return bool(texts) and all(cell.isdigit() for cell in numbers) and not any(text[0].isdigit() for text in texts)

    def _take_names(self, names: list[str]) -> None:
        clock = time_column(names, self._time or TIME)
        if clock is None and self._time is not None:
            raise EvidentiaError(f"stdin has no column {self._time!r}, only {', '.join(names)}; --time must name one")
        kept = [place for place, name in enumerate(names) if name != clock]
        if columns := self._detector.columns_:
            order = column_order([names[place] for place in kept], columns, "stdin", "channels")
            kept = [kept[place] for place in order]
        self._kept, self._columns = kept, len(names)
        self._timed = -1 if clock is None else names.index(clock)

    def _numbers(self, cells: list[str]) -> list[float]:
        row = [cell_number(cell, self._decimal) if is_number(cell, self._decimal) else np.nan for cell in cells]
        return row if self._kept is None else [row[place] for place in self._kept if place < len(row)]

    def _time_of(self, cells: list[str], number: int) -> float | None:
        """The time in a line; None where it is missing, or the line does not fit and may have lost any of its cells."""
        if self._timed < 0 or len(cells) != self._columns:
            return None
        cell = cells[self._timed]
        if is_text(cell, self._decimal) or np.isinf(time := cell_number(cell, self._decimal)):
            raise FileFormatError(
                f"line {number} on stdin has {cell[:50]!r} in its column of times, where there must be a number of "
                "seconds; send seconds, leave the cell empty if the time is missing, or the column out"
            )
        return None if np.isnan(time) else time

    def _check_rate(self, time: float | None) -> None:
        """Tell once of lines that come much faster or slower than the samples of the detector."""
        if time is None or len(self._times) > _LINES:
            return
        self._times.append(time)
        rate = self._detector.inputs_.sample_rate
        step = float(np.median(np.diff(self._times))) if len(self._times) > _LINES else 1 / rate
        if step > 0 and not 1 / _FACTOR < step * rate < _FACTOR:
            typer.echo(
                f"lines on stdin come at about {1 / step:g} Hz by their times, and the detector takes {rate:g} Hz; "
                "resample them, or are the times not in seconds?",
                err=True,
            )

    def _unfit(self, number: int, row: list[float], fitted: bool) -> list[float]:
        channels = self._detector.inputs_.features
        told = f"line {number} on stdin has {len(row)} channels and the detector takes {channels}"
        if not fitted:
            if self._kept is None:
                columns = ", ".join(self._detector.columns_)
                told += (
                    f"{f' ({columns})' if columns else ''}; no line of names came before it, by which columns are "
                    "known: send it first, such as by tail -n +1 -f FILE"
                )
            raise EvidentiaError(told)
        typer.echo(f"{told}; its numbers are taken for missing", err=True)
        return [np.nan] * channels

    def _placed(self, row: Any, time: float | None, number: int) -> Iterator[Piece]:
        """A line in its turn, after a gap if its time is later, and not at all if it was heard before."""
        clock, where = self._clock, f"line {number} on stdin"
        if time is None and self._resuming:
            if self._before is None and self._waits(where):
                return
            # After a line that was heard before it comes in its turn.
            time = None if self._before is None else self._before + 1 / clock.rate
        # The lines that were heard lie a whole step before the end of the stream, more or less.
        ahead = 0 if time is None else clock.ahead(time, 0.5) if self._resuming else clock.ahead(time)
        if ahead < 0 and time is not None:
            if self._resuming or ahead == -1:
                if not self._passed:
                    anew = ". If the clock has begun anew, take another --state" if self._resuming else ""
                    typer.echo(
                        f"{where} is at {time:.12g} s, and the stream was heard up to {clock.end:.12g} s; lines from "
                        f"before are passed over{anew}",
                        err=True,
                    )
                self._passed += 1
                self._before = time
                return
            typer.echo(
                f"{where} is at {time:.12g} s, after {clock.end:.12g} s; its clock is taken to have been set", err=True
            )
            clock.end = time
        self._resuming = False
        if ahead > 0:
            clock.skip(ahead)
            yield from gap(ahead, self._detector.inputs_, clock.end, where)
        # Without a column of times the clock of what was heard before goes on by itself, outside.
        if self._timed >= 0:
            clock.step(time)
        yield Piece(row, end=clock.end if self._timed >= 0 else None)

    def _waits(self, where: str) -> bool:
        """Whether a line without a time is passed over, for nothing before it tells whether it was heard."""
        if self._timeless == _TIMELESS:
            typer.echo(f"{where} has no time either; it is taken to follow at once on what was heard before", err=True)
            return False
        if not self._timeless:
            typer.echo(
                f"{where} has no time, by which to tell whether it was heard before; it and up to {_TIMELESS - 1} more "
                "are passed over until one has",
                err=True,
            )
        self._timeless += 1
        return True

    def _tell_silent(self, places: list[int], number: int) -> None:
        names = self._detector.columns_ or tuple(map(str, range(1, self._detector.inputs_.features + 1)))
        typer.echo(
            f"channel {', '.join(names[place] for place in places)} has had no number in the last {_SILENT} lines, "
            f"up to line {number} on stdin; is its sensor gone?",
            err=True,
        )


def _stdin() -> Any:
    if sys.stdin is None:
        raise typer.BadParameter("- takes samples from stdin, which is closed; pipe samples into the command")
    source: Any = typer.get_binary_stream("stdin")
    if source.isatty():
        raise typer.BadParameter("- takes samples from stdin, which is a terminal; pipe samples into the command")
    return source
