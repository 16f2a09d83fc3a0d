"""The table in a CSV file of a series: names, numbers of which some may be missing, and times."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from evidentia._support.errors import EvidentiaError, FileFormatError

Numbers: TypeAlias = npt.NDArray[np.float64]

LONGEST_GAP = 1000
"""How many samples a gap in a column of times may miss; a series with a longer one is to be cut there."""

# Written times are rounded, and clocks waver: steps may differ from the usual one by this share of it.
_UNEVEN = 0.01


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """The columns of a CSV file."""
    return split_names(_text(Path(path)).partition("\n")[0])


def split_names(line: str) -> list[str]:
    """The names in the first line of a CSV file."""
    return [name.strip().strip('"') for name in line.split(",")]


def is_number(text: str) -> bool:
    """Whether a text is a number, infinity with it."""
    try:
        return not math.isnan(float(text))
    except ValueError:
        return False


def is_text(cell: str) -> bool:
    """Whether a cell holds neither a number nor a missing one, which is empty or NaN.

    Example:
        >>> [is_text(cell) for cell in ("1e3", "", "NaN", "n/a")]
        [False, False, False, True]
    """
    try:
        float(cell or "nan")
    except ValueError:
        return True
    return False


def read_numbers(path: Path) -> tuple[list[str], Numbers, list[int]]:
    """The columns of a CSV file, its numbers, and the line that each row of them is in.

    Empty cells, NaN and infinite numbers are missing: NaN. Empty lines are passed over.
    """
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
    rows, lines = [], []
    for line, text in enumerate(body.splitlines(), start=2):
        if text.strip():
            rows.append(_row(split_names(text), names, f"line {line} of {path}"))
            lines.append(line)
    values = np.array(rows, dtype=np.float64)
    # As float32, which clips are of, larger numbers are infinite.
    values[~(np.abs(values) <= np.finfo(np.float32).max)] = np.nan
    return names, values, lines


def even_rows(times: Numbers, lines: list[int], path: Path, column: str) -> tuple[float, npt.NDArray[np.int64]]:
    """The rate of a series, and which of its evenly spaced samples each row is: one after the other but for gaps.

    Most steps must be alike, within a hundredth of the usual one. A step of two or more of them is a gap, after which
    rows are put on the nearest sample.

    Args:
        times: in seconds, rising.
        lines: the line of each, for messages.
        path: the file, for messages.
        column: the name of the column.

    Example:
        >>> even_rows(np.array([5.0, 5.5, 6.0, 8.0, 8.5]), [2, 3, 4, 5, 6], Path("pump.csv"), "time")
        (2.0, array([0, 1, 2, 6, 7]))
    """
    if np.isnan(times).any():
        raise FileFormatError(
            f"line {lines[int(np.isnan(times).argmax())]} of {path} has no time in column {column!r}; every sample "
            "needs one, or pass rate="
        )
    if len(times) < 2:
        raise EvidentiaError(f"{path} has a single sample; pass rate=")
    steps = np.diff(times)
    usual = float(np.sort(steps)[(len(steps) - 1) // 2])
    gaps = steps > (2 - _UNEVEN) * usual
    wrong = (steps <= 0) | ((np.abs(steps - usual) > _UNEVEN * usual) & ~gaps)
    if wrong.any():
        row = int(wrong.argmax())
        raise FileFormatError(
            f"column {column!r} of {path} must rise evenly; most steps are {usual:g} s, but that from line "
            f"{lines[row]} to {lines[row + 1]} is {steps[row]:g} s; sort and resample the series, or pass rate="
        )
    # The mean over all even steps, because written times are rounded.
    rate = float((~gaps).sum()) / float(times[-1] - times[0] - steps[gaps].sum())
    ahead, moved = 0.0, np.ones(len(steps), dtype=np.int64)
    for row in np.flatnonzero(gaps).tolist():
        # What one gap was rounded by is made up for at the next.
        exact = steps[row] * rate + ahead
        moved[row] = round(exact)
        ahead = exact - moved[row]
        if moved[row] > LONGEST_GAP + 1:
            raise FileFormatError(
                f"{path} has a gap of {steps[row]:g} s from line {lines[row]} to {lines[row + 1]}, which misses more "
                f"than {LONGEST_GAP} samples; cut the series in two files there"
            )
    return rate, np.concatenate([[0], moved.cumsum()])


def _row(cells: list[str], names: list[str], where: str) -> list[float]:
    if len(cells) != len(names):
        raise FileFormatError(f"{where} has {len(cells)} cells, but the first line names {len(names)} columns")
    try:
        return [float(cell or "nan") for cell in cells]
    except ValueError as error:
        column = next(place for place, cell in enumerate(cells) if is_text(cell))
        raise FileFormatError(
            f"{where} has {cells[column][:50]!r} in column {names[column]!r}, where there must be numbers only; leave "
            "the cell empty if the number is missing, or the column out"
        ) from error


def _text(path: Path) -> str:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path} is not a text file in UTF-8 ({error})") from error
