"""The table of a study: its rows, the tests between its methods, and where they come from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from evidentia._version import __version__
from evidentia.experiments.plan import Plan
from evidentia.experiments.store import StoredResult, StudyStore
from evidentia.experiments.study import Cell, Study
from evidentia.experiments.study_row import PairedTest, TableRow, paired_tests, study_row

CODE = "code"
"""The name, among those of an environment, of the code that a result comes from, where that is not the plan's."""


@dataclass(frozen=True)
class CellRuns:
    """A cell that was run.

    Attributes:
        cell: its labels and its configuration.
        done: how many jobs of it have a result.
        cpu_seconds: time of the processor of one of them, in the mean.
    """

    cell: Cell
    done: int
    cpu_seconds: float


@dataclass(frozen=True)
class StudyTable:
    """The rows of a study, the tests between its methods, and all that is to be known of where they come from.

    Attributes:
        study: its name.
        title: what it is about.
        job: the kind of its jobs.
        preset: how much of it was to be run.
        unit: of its rows.
        axes: their names.
        seeds: those of the plan.
        commands: what gives these results.
        version: of evidentia.
        code: the version of the job's code, or versions, where results were taken up; None where it was not noted.
        jobs: how many there are.
        done: how many of them have a result.
        cells: those with a result.
        rows: one a cell and metric for which there is a value.
        further: rows of what jobs gave beyond the metrics of the study, as they gave it.
        tests: methods against each other.
        environments: what it was run on.
        seconds: wall time of all jobs.
        cpu_seconds: time of the processor of all jobs.
        peak_memory_bytes: the most that a job's process had.
        failures: tracebacks, by what the job was.
    """

    study: str
    title: str
    job: str
    preset: str
    unit: Literal["1", "%"]
    axes: tuple[str, ...]
    seeds: tuple[int, ...]
    commands: tuple[str, ...]
    version: str
    code: str | None
    jobs: int
    done: int
    cells: tuple[CellRuns, ...]
    rows: tuple[TableRow, ...]
    further: tuple[TableRow, ...] = ()
    tests: tuple[PairedTest, ...] = ()
    environments: tuple[Mapping[str, str], ...] = ()
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0
    failures: Mapping[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> int:
        """How many jobs have no result."""
        return self.jobs - self.done

    @property
    def has_published(self) -> bool:
        """Whether there is a published figure beside any row."""
        return any(row.published is not None for row in self.rows)


def study_table(plan: Plan, store: StudyStore) -> StudyTable:
    """Make the table of a plan from what the store has.

    Args:
        plan: what was run.
        store: where the results are.

    Example:
        >>> import tempfile
        >>> from evidentia.experiments import find_study, plan_study
        >>> plan = plan_study(find_study("semisup-moons-p"), seeds=1)
        >>> with tempfile.TemporaryDirectory() as folder, StudyStore(f"{folder}/results.sqlite") as store:
        ...     table = study_table(plan, store)
        >>> table.jobs, table.missing  # nothing was run yet
        (6, 6)
    """
    study, results = plan.study, store.results(plan.jobs)
    found = [(cell, _by_seed(plan, results, cell)) for cell in plan.cells]
    costs = list(results.values())
    # A table that was taken up may itself have been put together.
    codes = [code for cost in costs for code in cost.environment.get(CODE, plan.code).split(", ")]
    machines = [{name: text for name, text in cost.environment.items() if name != CODE} for cost in costs]
    rows, further = table_rows(
        study, ((cell, {seed: result.metrics for seed, result in runs.items()}) for cell, runs in found)
    )
    return StudyTable(
        study=study.name,
        title=study.title,
        job=study.job_name,
        preset=plan.preset,
        unit=study.unit,
        axes=tuple(study.axes),
        seeds=plan.seeds,
        commands=(plan.command,),
        version=__version__,
        code=", ".join(dict.fromkeys(codes)) or plan.code,
        jobs=len(plan.jobs),
        done=len(results),
        cells=tuple(
            CellRuns(cell, len(runs), float(np.mean([result.cpu_seconds for result in runs.values()])))
            for cell, runs in found
            if runs
        ),
        rows=rows,
        further=further,
        tests=tuple(paired_tests(study, rows)),
        environments=tuple(json.loads(text) for text in sorted({json.dumps(machine) for machine in machines})),
        seconds=sum(cost.seconds for cost in costs),
        cpu_seconds=sum(cost.cpu_seconds for cost in costs),
        peak_memory_bytes=max((cost.peak_memory_bytes for cost in costs), default=0),
        failures={plan.describe(plan.jobs[key]): text for key, text in store.failures(plan.jobs).items()},
    )


def table_rows(
    study: Study, runs: Iterable[tuple[Cell, Mapping[int, Mapping[str, float]]]]
) -> tuple[tuple[TableRow, ...], tuple[TableRow, ...]]:
    """The rows of a study's metrics, and those of what else its jobs gave.

    Args:
        study: what was run.
        runs: the cells, with the metrics of each seed.
    """
    rows, further = [], []
    for cell, by_seed in runs:
        given = dict.fromkeys(name for metrics in by_seed.values() for name in metrics)
        values = {name: {seed: metrics[name] for seed, metrics in by_seed.items() if name in metrics} for name in given}
        rows += [study_row(study, cell, name, values[name]) for name in study.metrics if name in values]
        further += [TableRow(cell, name, values[name], None, None) for name in given if name not in study.metrics]
    return tuple(rows), tuple(further)


def _by_seed(plan: Plan, results: Mapping[str, StoredResult], cell: Cell) -> dict[int, StoredResult]:
    keys = {seed: plan.job(cell, seed).key for seed in plan.seeds}
    return {seed: results[key] for seed, key in keys.items() if key in results}
