"""The table of a study of graphs from what `evidentia graph --json` wrote, where the runs were made by that command."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia.experiments.graph_configuration import graph_configuration
from evidentia.experiments.job import flat_metrics
from evidentia.experiments.study import Cell, Study
from evidentia.experiments.study_row import paired_tests
from evidentia.experiments.study_table import CellRuns, StudyTable, table_rows

_NAMED = ("data", "task", "method")
_PARTS = ("evidentia_version", "configuration", "seeds", "metrics", "wall_seconds", "cpu_seconds", "peak_memory_bytes")


@dataclass(frozen=True)
class _Record:
    path: Path
    content: Mapping[str, Any]

    @property
    def options(self) -> Mapping[str, Any]:
        options: Mapping[str, Any] = self.content["configuration"]
        return options

    @property
    def command(self) -> str:
        data, task, method = (self.options[name] for name in _NAMED)
        seeds = self.content["seeds"]
        first = f" --first-seed {seeds[0]}" if seeds[0] else ""
        return f"evidentia graph {data} --task {task} --method {method} --seeds {len(seeds)}{first}"


def records_table(study: Study, paths: Iterable[str | Path]) -> StudyTable:
    """Make the table of a study from records of single runs; nothing is run.

    Records of other tasks, graphs and methods are passed over. Several records of a cell are taken together if their
    seeds differ. A record tells the release of evidentia, but not the version of the code or the machine.

    Args:
        study: of the job `graph`.
        paths: of files that `evidentia graph --json` wrote.

    Raises:
        EvidentiaError: if a record has other settings than the study, or a seed comes twice, or there is nothing.
        FileFormatError: if a file is no record.
    """
    if study.job != "graph":
        raise EvidentiaError(f"records are for studies of the job graph; {study.name} has the job {study.job_name}")
    records = [_read(Path(path)) for path in paths]
    found = [(cell, ours) for cell in study.cells() if (ours := [record for record in records if _is_of(record, cell)])]
    if not found:
        raise EvidentiaError(f"none of {len(records)} files is a record of the study {study.name}")
    used = [record for _, ours in found for record in ours]
    by_seed = [(cell, _by_seed(cell, ours)) for cell, ours in found]
    rows, further = table_rows(study, by_seed)
    done = sum(len(runs) for _, runs in by_seed)
    return StudyTable(
        study=study.name,
        title=study.title,
        job=study.job_name,
        preset="full",
        unit=study.unit,
        axes=tuple(study.axes),
        seeds=tuple(sorted({seed for _, runs in by_seed for seed in runs})),
        commands=tuple(record.command for record in used),
        version=", ".join(sorted({record.content["evidentia_version"] for record in used})),
        code=None,
        jobs=done,
        done=done,
        cells=tuple(
            CellRuns(cell, len(runs), sum(record.content["cpu_seconds"] for record in ours) / len(runs))
            for (cell, runs), (_, ours) in zip(by_seed, found, strict=True)
        ),
        rows=rows,
        further=further,
        tests=tuple(paired_tests(study, rows)),
        seconds=sum(record.content["wall_seconds"] for record in used),
        cpu_seconds=sum(record.content["cpu_seconds"] for record in used),
        peak_memory_bytes=max(record.content["peak_memory_bytes"] for record in used),
    )


def _read(path: Path) -> _Record:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        missing = [part for part in _PARTS if part not in content]
        missing = missing or [name for name in _NAMED if name not in content["configuration"]]
        uneven = not missing and (not content["seeds"] or len(content["seeds"]) != len(content["metrics"]))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise FileFormatError(f"{path} is no record of evidentia graph --json: {error}") from error
    if missing:
        raise FileFormatError(f"{path} is no record of evidentia graph --json: it lacks {', '.join(missing)}")
    if uneven:
        raise FileFormatError(f"{path} is a damaged record of evidentia graph --json: it needs metrics for every seed")
    return _Record(path, content)


def _is_of(record: _Record, cell: Cell) -> bool:
    options, wanted = record.options, cell.configuration
    if any(options[name] != wanted[name] for name in _NAMED):
        return False
    expected = graph_configuration(**wanted)
    if missing := [name for name in expected if name not in options]:
        raise FileFormatError(f"{record.path} is no whole record: its configuration lacks {', '.join(missing)}")
    for name, given in options.items():
        if given != (needed := expected.get(name)):
            raise EvidentiaError(f"{record.path} was run with {name} {given}, and the study has {needed}")
    return True


def _by_seed(cell: Cell, records: Iterable[_Record]) -> dict[int, dict[str, float]]:
    found: dict[int, dict[str, float]] = {}
    for record in records:
        for seed, metrics in zip(record.content["seeds"], record.content["metrics"], strict=True):
            if seed in found:
                raise EvidentiaError(f"there are two records of seed {seed} for {', '.join(cell.labels.values())}")
            found[seed] = flat_metrics(metrics)
    return dict(sorted(found.items()))
