"""The table in a CSV file of a series: names, and numbers of which some may be missing."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from evidentia._support.errors import FileFormatError
from evidentia.events.data.tables import (
    cell_number,
    decimal_of,
    find_delimiter,
    first_line,
    read_text,
    split_line,
    split_rows,
)

Numbers: TypeAlias = npt.NDArray[np.float64]

# A column that rises by the same step, within this share of it, over at least so many rows looks like times.
_EVEN = 0.01
_ROWS = 20
# Such as 2024-05-01, 01/05/2024 or 12:30.
_DATE = re.compile(r"\d[-/:]\d")


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """The columns of a CSV file."""
    line = first_line(path)
    return split_line(line, find_delimiter(line))


def is_number(text: str, decimal: str = ".") -> bool:
    """Whether a text is a number, infinity with it."""
    try:
        return not math.isnan(cell_number(text, decimal))
    except ValueError:
        return False


def is_text(cell: str, decimal: str = ".") -> bool:
    """Whether a cell holds neither a number nor a missing one, which is empty, NaN or NA.

    Example:
        >>> [is_text(cell) for cell in ("1e3", "", "NaN", "NA", "n/a", "1_0")]
        [False, False, False, False, True, True]
    """
    try:
        cell_number(cell, decimal)
    except ValueError:
        return True
    return False


def time_column(names: Sequence[str], time: str) -> str | None:
    """The column of times among others: the one of that name, else the only one but for upper and lower case.

    Example:
        >>> time_column(["Time", "flow"], "time"), time_column(["Time", "TIME"], "time")
        ('Time', None)
    """
    if time in names:
        return time
    alike = [name for name in names if name.casefold() == time.casefold()]
    return alike[0] if len(alike) == 1 else None


def read_numbers(path: Path) -> tuple[list[str], Numbers, list[int]]:
    """The columns of a CSV file, its numbers, and the line that each row of them is in.

    Empty cells, NA, NaN and infinite numbers are missing: NaN. Empty lines are passed over.
    """
    header, body, before = "", read_text(path), 0
    while body and not header.strip():
        header, _, body = body.partition("\n")
        before += 1
    delimiter = find_delimiter(header)
    names = split_line(header, delimiter)
    if not body.strip():
        raise FileFormatError(
            f"{path} has no samples; it needs a line of column names, then a line of numbers a sample"
        )
    decimal = decimal_of(delimiter)
    _check_names(names, path, decimal)
    rows, lines = [], []
    # Python takes 1_0 for a number, which a table does not.
    plain = "_" not in body
    for line, cells in split_rows(body, path, delimiter, before):
        if len(cells) != len(names):
            raise FileFormatError(
                f"line {line} of {path} has {len(cells)} cells, but the first line names {len(names)} columns"
            )
        try:
            row = list(map(float, cells)) if plain else _row(cells, decimal)
        except ValueError:
            row = _told_row(cells, names, decimal, f"line {line} of {path}")
        rows.append(row)
        lines.append(line)
    values = np.array(rows, dtype=np.float64)
    # As float32, which clips are of, larger numbers are infinite.
    values[~(np.abs(values) <= np.finfo(np.float32).max)] = np.nan
    return names, values, lines


def warn_of_times(names: Sequence[str], values: Numbers, path: Path) -> None:
    """Warn of channels that rise by equal steps: they look like times or counts, of which nothing can be learned."""
    if len(values) < _ROWS:
        return
    steps = np.diff(values, axis=0)
    mean = steps.mean(0)
    # NaN, where numbers are missing, is not at most anything.
    even = (mean > 0) & (np.abs(steps - mean).max(0) <= _EVEN * mean)
    if found := [name for name, rises in zip(names, even.tolist(), strict=True) if rises]:
        warnings.warn(
            f"{path} has {', '.join(found)} among its channels, which rises by equal steps as times or a count of rows "
            "do; name it as the column of times (time=) or leave it out",
            stacklevel=4,
        )


def _check_names(names: list[str], path: Path, decimal: str) -> None:
    if nameless := [place for place, name in enumerate(names, start=1) if not name]:
        if nameless == [len(names)]:
            advice = "the first line ends with a separator; remove it there and in all other lines"
        elif nameless == [1]:
            advice = "name an index, or leave it out, as pandas does with to_csv(index=False)"
        else:
            advice = "name it, or leave it out"
        raise FileFormatError(f"{path} must name every column, but column {nameless[0]} has no name: {advice}")
    if len(set(names)) != len(names) or not names:
        raise FileFormatError(f"{path} must name every column, each differently, got {', '.join(names)[:200]}")
    if all(is_number(name, decimal) for name in names):
        raise FileFormatError(f"{path} must begin with a line of column names, got numbers: {', '.join(names)[:200]}")


def _row(cells: list[str], decimal: str) -> list[float]:
    return [cell_number(cell, decimal) for cell in cells]


def _told_row(cells: list[str], names: list[str], decimal: str, where: str) -> list[float]:
    """A row in which a number is missing, has a decimal comma, or is none, which is told."""
    try:
        return _row(cells, decimal)
    except ValueError as error:
        column = next(place for place, cell in enumerate(cells) if is_text(cell, decimal))
        advice = "leave the cell empty if the number is missing, or the column out"
        if _DATE.search(cells[column]):
            advice = (
                "times must be a number of seconds, such as by pandas, with t = pd.to_datetime(column): "
                "(t - t[0]).dt.total_seconds(); other dates are to be left out"
            )
        raise FileFormatError(
            f"{where} has {cells[column][:50]!r} in column {names[column]!r}, where there must be numbers only; "
            f"{advice}"
        ) from error
