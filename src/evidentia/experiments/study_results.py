"""The table of a study as a JSON file, and read from one: what is committed, reported and compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia.experiments.published_figures import published_figure
from evidentia.experiments.study import Cell
from evidentia.experiments.study_row import CONFIDENCE, PairedTest, TableRow
from evidentia.experiments.study_table import CellRuns, StudyTable

FORMAT_VERSION = 1
_PLAIN = ("study", "title", "job", "preset", "unit", "code", "jobs", "done", "seconds", "cpu_seconds")
_LISTS = ("axes", "seeds", "commands", "environments")


class _Entry(BaseModel):
    """A part of a file: of the types that are written, or it is refused."""

    model_config = ConfigDict(strict=True, frozen=True)


class _CellEntry(_Entry):
    labels: dict[str, str]
    configuration: dict[str, Any]
    done: int
    cpu_seconds: FiniteFloat


class _RowEntry(_Entry):
    labels: dict[str, str]
    metric: str
    # JSON has texts for names, and so for seeds.
    values: Annotated[dict[Annotated[int, Field(strict=False)], FiniteFloat], Field(min_length=1)]
    noise: FiniteFloat | None = None
    published_cell: tuple[str, str, str] | None = None


class _TestEntry(_Entry):
    labels: dict[str, str]
    metric: str
    method: str
    against: str
    n: int
    difference: FiniteFloat
    p_value: FiniteFloat
    corrected: FiniteFloat


class _FailureEntry(_Entry):
    job: str
    traceback: str


class _Content(_Entry):
    evidentia_version: str
    study: str
    title: str
    job: str
    preset: str
    unit: Literal["1", "%"]
    code: str | None
    jobs: int
    done: int
    seconds: FiniteFloat
    cpu_seconds: FiniteFloat
    peak_memory_bytes: int
    axes: tuple[str, ...]
    seeds: tuple[int, ...]
    commands: tuple[str, ...]
    environments: tuple[dict[str, str], ...]
    cells: tuple[_CellEntry, ...]
    rows: tuple[_RowEntry, ...]
    further: tuple[_RowEntry, ...]
    tests: tuple[_TestEntry, ...]
    failures: tuple[_FailureEntry, ...]


def as_json(table: StudyTable) -> str:
    """Everything, with the configuration of every cell, every value, what it cost, and why jobs failed.

    Each cell, row and test has a line of its own, so that a person can read them and two files can be compared.
    """
    content: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "evidentia_version": table.version,
        **{name: getattr(table, name) for name in _PLAIN},
        "peak_memory_bytes": table.peak_memory_bytes,
        "confidence": CONFIDENCE,
        **{name: list(getattr(table, name)) for name in _LISTS},
        "cells": [
            {"labels": dict(runs.cell.labels), "configuration": dict(runs.cell.configuration)}
            | {"done": runs.done, "cpu_seconds": runs.cpu_seconds}
            for runs in table.cells
        ],
        "rows": [row_json(row) for row in table.rows],
        "further": [
            {"labels": dict(row.cell.labels), "metric": row.metric, "values": _values_json(row)}
            for row in table.further
        ],
        "tests": [{**vars(test), "labels": dict(test.labels)} for test in table.tests],
        "failures": [{"job": what, "traceback": text} for what, text in table.failures.items()],
    }
    entries = [f"  {json.dumps(name)}: {_lines(value)}" for name, value in content.items()]
    return "{\n" + ",\n".join(entries) + "\n}\n"


def row_json(row: TableRow) -> dict[str, Any]:
    """A row as plain JSON, with what follows from its values."""
    figure = row.published
    return {
        "labels": dict(row.cell.labels),
        "metric": row.metric,
        "values": _values_json(row),
        "mean": row.mean,
        "std": row.std,
        "n": row.n,
        "published": None if figure is None else figure.value,
        "published_std": None if figure is None else figure.spread,
        "published_cell": None if figure is None else [figure.table, figure.row, figure.column],
        "difference": row.difference,
        "noise": row.noise,
        "verdict": row.verdict,
        "misprint": None if figure is None else figure.misprint,
    }


def read_results(path: str | Path) -> StudyTable:
    """Read a table that was exported as JSON.

    Published figures are taken from `evidentia.experiments.published`, and means, differences and verdicts are worked
    out anew; the noise and the tests are those of the file.

    Args:
        path: of the file.

    Raises:
        EvidentiaError: if there is no such file.
        FileFormatError: if it is no table of results, or of another version.

    Example:
        >>> import tempfile
        >>> from evidentia.experiments import Study, StudyStore, plan_study, study_table
        >>> study = Study(name="none", title="None", job="graph", metrics=["accuracy"], fixed={"data": "synthetic"})
        >>> with tempfile.TemporaryDirectory() as folder, StudyStore(f"{folder}/results.sqlite") as store:
        ...     table = study_table(plan_study(study), store)
        ...     _ = Path(folder, "none.json").write_text(as_json(table))
        ...     read_results(f"{folder}/none.json") == table
        True
    """
    path = Path(path)
    if not path.is_file():
        raise EvidentiaError(f"there is no file {path}")
    try:
        text = path.read_text(encoding="utf-8")
        version = json.loads(text)["format_version"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileFormatError(f"{path} is no table of a study, as --export writes it to a .json file") from error
    if version != FORMAT_VERSION:
        raise FileFormatError(f"{path} has format version {version}, and this release reads version {FORMAT_VERSION}")
    try:
        return _table(_Content.model_validate_json(text))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise FileFormatError(f"{path} is a damaged table of a study: {where}: {first['msg']}") from error
    except EvidentiaError as error:
        raise FileFormatError(f"{path} is a damaged table of a study: {error}") from error


def _table(content: _Content) -> StudyTable:
    cells = {
        tuple(entry.labels.items()): CellRuns(Cell(entry.labels, entry.configuration), entry.done, entry.cpu_seconds)
        for entry in content.cells
    }
    for labels in cells:
        if tuple(axis for axis, _ in labels) != content.axes:
            raise EvidentiaError(f"a cell has the labels {dict(labels)}, and the axes are {', '.join(content.axes)}")
    for test in content.tests:
        if test.labels.keys() != content.tests[0].labels.keys() or not test.labels.keys() <= set(content.axes):
            raise EvidentiaError(f"a test has the labels {test.labels}, and the axes are {', '.join(content.axes)}")

    def row(entry: _RowEntry) -> TableRow:
        runs = cells.get(tuple(entry.labels.items()))
        if runs is None:
            raise EvidentiaError(f"a row has the labels {entry.labels}, and no cell has them")
        figure = None if entry.published_cell is None else published_figure(*entry.published_cell)
        return TableRow(runs.cell, entry.metric, entry.values, figure, entry.noise)

    return StudyTable(
        **{name: getattr(content, name) for name in (*_PLAIN, *_LISTS)},
        version=content.evidentia_version,
        cells=tuple(cells.values()),
        rows=tuple(map(row, content.rows)),
        further=tuple(map(row, content.further)),
        tests=tuple(PairedTest(**dict(entry)) for entry in content.tests),
        peak_memory_bytes=content.peak_memory_bytes,
        failures={entry.job: entry.traceback for entry in content.failures},
    )


def _values_json(row: TableRow) -> dict[str, float]:
    return {str(seed): value for seed, value in row.values.items()}


def _lines(value: Any) -> str:
    """A list of objects has a line for each."""
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return json.dumps(value, ensure_ascii=False)
    return "[\n    " + ",\n    ".join(json.dumps(entry, ensure_ascii=False) for entry in value) + "\n  ]"
