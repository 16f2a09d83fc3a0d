"""Text tables: CSV files with commas, semicolons or tabs, read by the `csv` module whatever they hold."""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path

from evidentia._support.errors import FileFormatError

_LARGEST = 512 * 2**20
_QUOTED = re.compile(r'"[^"]*"')


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a file in UTF-8, with or without a byte order mark; one that is too large for a table is refused."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    if file.stat().st_size > _LARGEST:
        raise FileFormatError(f"{file} is larger than {_LARGEST // 2**20} MB; cut it in several files")
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{file} is not a text file in UTF-8 ({error})") from error


def first_line(path: str | os.PathLike[str]) -> str:
    """The first line of a text file that is not empty, without reading those after it."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    try:
        with file.open(encoding="utf-8-sig") as source:
            while (line := source.readline(_LARGEST)) and not line.strip():
                pass
            return line
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{file} is not a text file in UTF-8 ({error})") from error


def read_table(
    path: str | os.PathLike[str], delimiter: str, needed: str = "it must begin with a line of column names"
) -> list[tuple[int, list[str]]]:
    """The rows of a text table with the number of their line, a header with them; empty lines are left out.

    Args:
        path: the file.
        delimiter: what is between the cells of a line.
        needed: what to say of a file without any.
    """
    found = [(line, [cell.strip() for cell in row]) for line, row in split_rows(read_text(path), path, delimiter)]
    if not found:
        raise FileFormatError(f"{path} is empty; {needed}")
    return found


def split_rows(
    text: str, path: str | os.PathLike[str], delimiter: str, before: int = 0
) -> Iterator[tuple[int, list[str]]]:
    """The rows of a text one by one, with the number of their line, cells as they are; empty lines are left out.

    Args:
        text: the text.
        path: the file that it is from, for messages.
        delimiter: what is between the cells of a line.
        before: how many lines of the file come before the text.
    """
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                yield before + reader.line_num, row
    except csv.Error as error:
        raise FileFormatError(
            f"{path} is not a table that can be read: line {before + reader.line_num}: {error}"
        ) from error


def split_line(line: str, delimiter: str) -> list[str]:
    r"""The cells of one line, without the spaces around them; none if it is no line of a table.

    Example:
        >>> split_line('time, "flow, l/s"\n', ","), split_line('1,"2', ",")
        (['time', 'flow, l/s'], [])
    """
    try:
        rows = csv.reader([line], delimiter=delimiter, skipinitialspace=True, strict=True)
        return [cell.strip() for row in rows for cell in row]
    except csv.Error:
        return []


def find_delimiter(line: str) -> str:
    r"""What is between the cells of a line: tabs or semicolons if there are any outside quotes, else commas.

    Where it is a semicolon, commas are decimal points, as in the tables of many countries.

    Example:
        >>> [find_delimiter(line) for line in ("time,flow", "0,5;1,25", 'time,"a;b"', "time\tflow, l/s")]
        [',', ';', ',', '\t']
    """
    bare = _QUOTED.sub("", line)
    return next((mark for mark in "\t;" if mark in bare), ",")


def cell_number(cell: str, decimal: str = ".") -> float:
    """The number in a cell; NaN if it is missing, which is an empty cell, NaN or NA.

    Args:
        cell: the text.
        decimal: what is before the decimals, a point or a comma.

    Raises:
        ValueError: if it holds another text. Python's own `1_0` is one.

    Example:
        >>> cell_number("1e3"), cell_number("0,5", ","), cell_number(""), cell_number("NA")
        (1000.0, 0.5, nan, nan)
    """
    text = cell.strip()
    if not text or text.upper() == "NA":
        return math.nan
    if "_" in text:
        raise ValueError(f"could not convert string to float: {text!r}")
    return float(text.replace(decimal, "."))


def decimal_of(delimiter: str) -> str:
    """What is before the decimals in a table with this between its cells; a point serves beside a comma as well."""
    return "." if delimiter == "," else ","
