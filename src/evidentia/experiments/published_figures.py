"""The figures that the thesis prints, to stand beside ours.

Each table is a CSV file in `published_tables`. The header names the columns with their units; a cell is a number as
printed, with its standard deviation where there is one (`84.4±0.3`), and empty where the thesis has none. `_notes.csv`
says which cells are misprints and what else is known of some.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from importlib.resources import files

from evidentia._support.errors import EvidentiaError

_FOLDER = files("evidentia.experiments") / "published_tables"


@dataclass(frozen=True)
class PublishedFigure:
    """A number of a table of the thesis.

    Attributes:
        table: the table's name here, such as `graph-ood`.
        row: which data and method, such as `cora/s-bgcn-t-k`.
        column: which quantity, such as `auroc.vacuity`.
        value: the number as printed; where it had to be read otherwise, `note` says so.
        unit: `%`, `s`, `ms`, `Hz`, `count`, or `1` for a number without a unit.
        spread: the standard deviation, if printed.
        misprint: whether the number is known to be wrong, or contradicts a more prominent one; `note` says how.
        note: what else is known of it; mostly empty.
    """

    table: str
    row: str
    column: str
    value: float
    unit: str
    spread: float | None = None
    misprint: bool = False
    note: str = ""


def published(table: str | None = None) -> tuple[PublishedFigure, ...]:
    """All figures that the thesis prints, or those of one table.

    Args:
        table: the name of a table; None for all.

    Raises:
        EvidentiaError: if there is no table of that name.

    Example:
        >>> figures = published("semisup-moons-p")
        >>> figures[0].row, figures[0].column, figures[0].value, figures[0].spread
        ('faraway/ift/p-1', 'accuracy.50', 55.0, 2.1)
        >>> [figure.note for figure in published("graph-ablation-ood") if figure.misprint]
        ['printed as -66.2, with a stray minus sign']
    """
    tables = _tables()
    if table is None:
        return tuple(figure for cells in tables.values() for figure in cells.values())
    return tuple(_cells(table).values())


def published_figure(table: str, row: str, column: str) -> PublishedFigure | None:
    """The figure of one cell, or None if the thesis has none there.

    Args:
        table: the name of a table.
        row: which data and method.
        column: which quantity.

    Raises:
        EvidentiaError: if there is no table of that name.

    Example:
        >>> published_figure("graph-ood", "cora/s-bgcn-t-k", "auroc.vacuity").value
        87.6
        >>> published_figure("graph-ood", "cora/gcn", "auroc.vacuity") is None
        True
    """
    return _cells(table).get((row, column))


@lru_cache(maxsize=256)
def printed_decimals(table: str, column: str) -> int:
    """How many decimals a column is printed with, as its most exact figure has it: 0 for whole numbers.

    Example:
        >>> printed_decimals("graph-ood", "auroc.vacuity"), printed_decimals("semisup-runtime", "ratio")
        (1, 0)
    """
    header, *lines = _lines(table, skip=0)
    place = [name.partition(" [")[0] for name in header].index(column)
    printed = [cells[place].partition("±")[0] for cells in lines if cells[place]]
    return max(0, *(-int(Decimal(text).as_tuple().exponent) for text in printed))


def _cells(table: str) -> dict[tuple[str, str], PublishedFigure]:
    tables = _tables()
    if table not in tables:
        raise EvidentiaError(f"there is no published table named {table!r}; choose one of: {', '.join(tables)}")
    return tables[table]


@lru_cache(maxsize=1)
def _tables() -> dict[str, dict[tuple[str, str], PublishedFigure]]:
    notes = {(table, row, column): (misprint == "yes", note) for table, row, column, misprint, note in _lines("_notes")}
    names = sorted(path.name.removesuffix(".csv") for path in _FOLDER.iterdir() if path.name.endswith(".csv"))
    return {name: dict(_read(name, notes)) for name in names if not name.startswith("_")}


def _read(
    table: str, notes: dict[tuple[str, str, str], tuple[bool, str]]
) -> Iterator[tuple[tuple[str, str], PublishedFigure]]:
    header, *lines = _lines(table, skip=0)
    columns = [name.removesuffix("]").split(" [") for name in header[1:]]
    for row, *cells in lines:
        for (column, unit), cell in zip(columns, cells, strict=True):
            if cell:
                value, _, spread = cell.partition("±")
                misprint, note = notes.get((table, row, column), (False, ""))
                yield (
                    (row, column),
                    PublishedFigure(
                        *(table, row, column, float(value), unit),
                        spread=float(spread) if spread else None,
                        misprint=misprint,
                        note=note,
                    ),
                )


def _lines(name: str, skip: int = 1) -> list[list[str]]:
    return list(csv.reader((_FOLDER / f"{name}.csv").read_text(encoding="utf-8").splitlines()))[skip:]
