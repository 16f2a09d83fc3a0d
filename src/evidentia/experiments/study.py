"""A study: a grid of configurations, declared; what is measured, and the published table that it stands beside."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pydantic import Field, field_validator

from evidentia._support.errors import EvidentiaError
from evidentia._support.settings import Settings
from evidentia.experiments.jobs import CHECKS, JOBS, JobFunction
from evidentia.experiments.published_figures import PublishedFigure, published_figure
from evidentia.experiments.study_checks import check_study
from evidentia.experiments.study_source import StudySource

PresetName: TypeAlias = Literal["quick", "full"]


@dataclass(frozen=True)
class Cell:
    """One cell of a grid: the label of each axis, and the configuration that they make."""

    labels: Mapping[str, str]
    configuration: Mapping[str, Any]


class Preset(Settings):
    """How much of a study is run.

    Args:
        seeds: how many.
        keep: by axis, the labels that are run; all where there are none.
        fixed: options that take the place of the study's.
    """

    seeds: int = Field(ge=1)
    keep: dict[str, Sequence[str]] = Field(default_factory=dict)
    fixed: dict[str, Any] = Field(default_factory=dict)


class Beside(Settings):
    """Where the published figure of a cell and a metric stands.

    `table`, `row` and `column` are templates: `{metric}` stands for the metric, and the name of an axis for its label.

    Args:
        table: of `evidentia.experiments.published`.
        row: such as `{data}/{method}`.
        column: such as `accuracy.{ratio}`.
        names: by axis, or for `metric`, what the table calls a label, where it calls it otherwise; templates too.
        runs: how many runs are behind a published figure, if that is known.
    """

    table: str
    row: str
    column: str = "{metric}"
    names: dict[str, dict[str, str]] = Field(default_factory=dict)
    runs: int | None = Field(default=None, ge=1)

    def figure(self, cell: Cell, metric: str) -> PublishedFigure | None:
        """The published figure, or None if there is none for this cell and metric."""
        words = {**cell.labels, "metric": metric}
        words |= {
            axis: names[words[axis]].format(**words) for axis, names in self.names.items() if words[axis] in names
        }
        return published_figure(*(part.format(**words) for part in (self.table, self.row, self.column)))


class Comparison(Settings):
    """Which methods are held against which, seed by seed.

    Args:
        axis: whose labels are compared, all else being equal.
        against: the label that all others are compared with.
        metrics: by which; the study's first if none is named.
    """

    axis: str
    against: str
    metrics: Sequence[str] = ()


class Pictures(Settings):
    """Which cells are trained once more for a report, because their pictures need the networks; for the first seed.

    What is drawn of a network follows from the job, see `evidentia.reports.PICTURES`.

    Args:
        keep: by axis, the labels that are shown; all where there are none. A preset need not run them.
        fixed: options that take the place of the study's and the preset's, such as fewer updates than in the table.
    """

    keep: dict[str, Sequence[str]] = Field(default_factory=dict)
    fixed: dict[str, Any] = Field(default_factory=dict)


class Study(Settings):
    """A grid of configurations, and what is to be shown of them.

    Args:
        name: of small letters, digits and dashes.
        title: what it is about.
        job: a name of `evidentia.experiments.jobs.JOBS`, or a function of a configuration and a seed that gives
            numbers by name.
        fixed: options of every cell.
        axes: by name, the values of an option of that name, or groups of options by their labels. The grid has a cell
            for every combination.
        metrics: those to be shown, by their dotted names.
        unit: "%" for metrics in [0, 1] that are shown times 100.
        seeds: how many there are where the preset says nothing.
        first_seed: the first of them.
        beside: the published table.
        compare: which methods are tested against each other.
        presets: `quick` and `full`; one that is missing is the whole grid.
        pictures: the cells whose networks a report shows; none by default.

    Raises:
        EvidentiaError: if the parts do not fit together.

    Example:
        >>> study = Study(
        ...     name="widths", title="How wide?", job="graph", fixed={"data": "synthetic"}, metrics=["accuracy"],
        ...     axes={"hidden": [8, 16], "method": {"plain": {"method": "gcn"}, "sure": {"method": "s-gcn"}}},
        ... )
        >>> [dict(cell.labels) for cell in study.cells()][1], len(study.cells())
        ({'hidden': '8', 'method': 'sure'}, 4)
        >>> study.cells()[1].configuration
        {'data': 'synthetic', 'hidden': 8, 'method': 's-gcn'}
    """

    name: str
    title: str
    job: str | JobFunction
    metrics: tuple[str, ...] = Field(min_length=1)
    fixed: dict[str, Any] = Field(default_factory=dict)
    axes: dict[str, dict[str, dict[str, Any]]] = Field(default_factory=dict)
    unit: Literal["1", "%"] = "1"
    seeds: int = Field(default=5, ge=1)
    first_seed: int = Field(default=0, ge=0)
    beside: Beside | None = None
    compare: Comparison | None = None
    presets: dict[PresetName, Preset] = Field(default_factory=dict)
    pictures: Pictures | None = None
    source: StudySource | None = Field(default=None, exclude=True, repr=False)
    file: str | None = Field(default=None, exclude=True, repr=False)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        check_study(self)

    @field_validator("axes", mode="before")
    @classmethod
    def _label_values(cls, axes: Any) -> Any:
        """A list of values becomes a group of one option for each."""
        if not isinstance(axes, Mapping):
            return axes
        return {
            name: {value_label(value): {name: value} for value in values}
            if isinstance(values, Sequence) and not isinstance(values, str)
            else values
            for name, values in axes.items()
        }

    @property
    def function(self) -> JobFunction:
        """What one job runs."""
        return JOBS[self.job] if isinstance(self.job, str) else self.job

    @property
    def job_name(self) -> str:
        """The name under which its jobs are kept."""
        return self.job if isinstance(self.job, str) else getattr(self.job, "__name__", type(self.job).__name__)

    def preset(self, name: PresetName = "full") -> Preset:
        """How much is run under that name."""
        if name not in ("quick", "full"):
            raise EvidentiaError(f"there is no preset named {name!r}; choose one of: quick, full")
        return self.presets.get(name) or Preset(seeds=self.seeds)

    def cells(self, preset: PresetName = "full") -> list[Cell]:
        """The cells that a preset runs, the last axis changing fastest."""
        chosen = self.preset(preset)
        return self._grid(chosen.keep, chosen.fixed)

    def shown(self, preset: PresetName = "full") -> list[Cell]:
        """The cells whose networks a report shows, with the options that a preset gives them."""
        if self.pictures is None:
            return []
        return self._grid(self.pictures.keep, {**self.preset(preset).fixed, **self.pictures.fixed})

    def check_options(self, preset: PresetName = "full") -> None:
        """See that every cell of a preset could be run, without running any.

        Raises:
            EvidentiaError: naming the first cell that could not.
        """
        self._check_cells(self.cells(preset))

    def check_shown(self, preset: PresetName = "full") -> None:
        """See that every network that a report shows could be trained, without training any.

        Raises:
            EvidentiaError: naming the first cell that could not.
        """
        self._check_cells(self.shown(preset))

    def _grid(self, keep: Mapping[str, Sequence[str]], fixed: Mapping[str, Any]) -> list[Cell]:
        choices = [
            [(axis, label, options) for label, options in groups.items() if label in keep.get(axis, (label,))]
            for axis, groups in self.axes.items()
        ]
        return [
            Cell(
                {axis: label for axis, label, _ in combination},
                {**self.fixed, **fixed, **{k: v for _, _, options in combination for k, v in options.items()}},
            )
            for combination in itertools.product(*choices)
        ]

    def _check_cells(self, cells: Sequence[Cell]) -> None:
        if not isinstance(self.job, str) or self.job not in CHECKS:
            return
        where = ""
        try:
            for cell in cells:
                where = ", ".join(f"{axis} {label}" for axis, label in cell.labels.items()) or "its only cell"
                CHECKS[self.job](cell.configuration)
        except (EvidentiaError, TypeError) as error:
            raise EvidentiaError(f"the study {self.name} cannot run {where}: {error}") from error


def value_label(value: Any) -> str:
    """How a value is written in a table.

    Example:
        >>> value_label(0.25), value_label(True), value_label("gcn"), value_label(None)
        ('0.25', 'yes', 'gcn', 'none')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
