"""What a study comes to: its cells, its seeds and the jobs that these make."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import whole_number
from evidentia.experiments.code_version import code_version
from evidentia.experiments.job import Job, Task
from evidentia.experiments.study import Cell, PresetName, Study


@dataclass(frozen=True)
class Plan:
    """A study, a preset and seeds.

    Attributes:
        study: what is run.
        preset: how much of it.
        seeds: of every cell.
        cells: of the preset.
        code: the version of the job's code.
        only: by axis, the labels that the cells were chosen by.

    Example:
        >>> study = Study(
        ...     name="two", title="Two", job="graph", metrics=["accuracy"], axes={"data": ["cora", "citeseer"]}
        ... )
        >>> plan = plan_study(study, seeds=3)
        >>> len(plan.cells), len(plan.jobs)
        (2, 6)
    """

    study: Study
    preset: PresetName
    seeds: tuple[int, ...]
    cells: tuple[Cell, ...]
    code: str
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def job(self, cell: Cell, seed: int) -> Job:
        """The job of a cell and a seed."""
        return Job(self.study.job_name, cell.configuration, seed, self.code)

    @cached_property
    def jobs(self) -> dict[str, Job]:
        """All jobs by their keys, all cells for the first seed first; cells that are alike share theirs."""
        jobs = (self.job(cell, seed) for seed in self.seeds for cell in self.cells)
        return {job.key: job for job in jobs}

    def task(self, job: Job, data_root: str | None = None) -> Task:
        """A job with what a worker needs to run it."""
        source = self.study.source
        return Task(job, None if source is not None else self.study.function, source, data_root)

    @property
    def command(self) -> str:
        """What runs it, to be pasted where the study's file is, if it has one; the data sets are where they are."""
        seeds = "" if len(self.seeds) == self.study.preset(self.preset).seeds else f" --seeds {len(self.seeds)}"
        name = self.study.file or self.study.name
        chosen = [shlex.quote(f"{axis}={label}") for axis, labels in self.only.items() for label in labels]
        only = "".join(f" --only {each}" for each in chosen)
        return f"evidentia study {shlex.quote(name)} --preset {self.preset}{seeds}{only}"

    def describe(self, job: Job) -> str:
        """A job in words, as its first cell has them."""
        cell = next(cell for cell in self.cells if cell.configuration == job.configuration)
        return ", ".join([*(f"{axis} {label}" for axis, label in cell.labels.items()), f"seed {job.seed}"])


def plan_study(
    study: Study,
    preset: PresetName = "quick",
    seeds: int | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
) -> Plan:
    """Say what is to be run, and see that it can be.

    Args:
        study: what is run.
        preset: "quick" or "full".
        seeds: how many, in place of the preset's.
        only: by axis, the labels of the cells to run; all where there are none.

    Raises:
        EvidentiaError: if a cell has options that its job does not know, or there is no cell with such labels.

    Example:
        >>> from evidentia.experiments import find_study
        >>> plan = plan_study(find_study("semisup-moons-p"), "full", seeds=2, only={"ood": ["faraway"]})
        >>> [dict(cell.labels) for cell in plan.cells], len(plan.jobs)
        ([{'ood': 'faraway', 'P': '1'}, {'ood': 'faraway', 'P': '5'}, {'ood': 'faraway', 'P': '10'}], 6)
    """
    number = whole_number(study.preset(preset).seeds if seeds is None else seeds, "seeds", 1)
    study.check_options(preset)
    only = only or {}
    cells = study.cells(preset)
    for axis, labels in only.items():
        known = dict.fromkeys(cell.labels[axis] for cell in cells) if axis in study.axes else {}
        if others := [label for label in labels if label not in known]:
            there = f"{axis}: {', '.join(known)}" if known else f"the axes {', '.join(study.axes) or 'none'}"
            raise EvidentiaError(f"the study {study.name} ({preset}) has no {axis}={others[0]}; it has {there}")
        cells = [cell for cell in cells if cell.labels[axis] in labels]
    code = code_version(study.function, None if study.source is None else study.source.text)
    chosen = tuple(range(study.first_seed, study.first_seed + number))
    return Plan(study, preset, chosen, tuple(cells), code, only)
