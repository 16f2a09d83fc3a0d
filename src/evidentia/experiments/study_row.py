"""A row of a study's table: ours, the published figure beside it, and whether the difference lies within the noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy import stats

from evidentia.experiments.paired import holm, paired_p_value
from evidentia.experiments.published_figures import PublishedFigure, printed_decimals
from evidentia.experiments.study import Cell, Study

Verdict: TypeAlias = Literal["above", "within noise", "below"]
VERDICTS: tuple[Verdict, ...] = ("above", "within noise", "below")
CONFIDENCE = 0.95


@dataclass(frozen=True)
class TableRow:
    """One cell and one metric, in the unit of the study.

    Attributes:
        cell: of the grid.
        metric: its dotted name.
        values: by seed.
        published: the figure that the thesis prints, if there is one.
        noise: how large a difference chance alone would make; None if it cannot be told.
    """

    cell: Cell
    metric: str
    values: Mapping[int, float]
    published: PublishedFigure | None
    noise: float | None

    @property
    def n(self) -> int:
        """How many seeds there are."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """Over seeds."""
        return float(np.mean(list(self.values.values())))

    @property
    def std(self) -> float | None:
        """The standard deviation over seeds; None for one."""
        return float(np.std(list(self.values.values()), ddof=1)) if self.n > 1 else None

    @property
    def difference(self) -> float | None:
        """Ours less the published."""
        return None if self.published is None else self.mean - self.published.value

    @property
    def verdict(self) -> Verdict | None:
        """Whether ours is above or below the published by more than the noise."""
        if self.difference is None or self.noise is None:
            return None
        if abs(self.difference) <= self.noise:
            return "within noise"
        return "above" if self.difference > 0 else "below"


@dataclass(frozen=True)
class PairedTest:
    """A method against another, by the same seeds.

    Attributes:
        labels: of the axes that the two share.
        metric: by which they are compared.
        method: the one.
        against: the other.
        n: how many seeds both have.
        difference: the mean of the one less the other's.
        p_value: of the paired t-test.
        corrected: the p-value after Holm's correction for all tests of the table.
    """

    labels: Mapping[str, str]
    metric: str
    method: str
    against: str
    n: int
    difference: float
    p_value: float
    corrected: float


def study_row(study: Study, cell: Cell, metric: str, values: Mapping[int, float]) -> TableRow:
    """A row of a study.

    Args:
        study: whose unit and published table are meant.
        cell: of its grid.
        metric: its dotted name.
        values: by seed, as the jobs gave them.
    """
    scale = 100.0 if study.unit == "%" else 1.0
    scaled = {seed: scale * value for seed, value in values.items()}
    figure = None if study.beside is None else study.beside.figure(cell, metric)
    noise = None
    if study.beside is not None and figure is not None:
        rounding = _rounding(figure.table, figure.column)
        noise = noise_width(list(scaled.values()), figure.spread, study.beside.runs, rounding)
    return TableRow(cell, metric, scaled, figure, noise)


def noise_width(
    values: Sequence[float], published_spread: float | None = None, runs: int | None = None, rounding: float = 0.0
) -> float | None:
    r"""How far ours may lie from a published figure by chance: $t_{.975,\,n-1} \sqrt{s^2/n + s_p^2/n_p}$ and rounding.

    Args:
        values: ours, one a seed: n of them, with standard deviation s.
        published_spread: the published standard deviation; where there is none, ours.
        runs: how many runs are behind the published figure; where that is not known, as many as ours.
        rounding: half of the last digit that was printed.

    Returns:
        None for a single value, which has no spread.

    Example:
        >>> round(noise_width([80.0, 82.0, 84.0, 86.0], published_spread=2.0, runs=10), 3)
        4.575
    """
    n = len(values)
    if n < 2:
        return None
    variance = float(np.var(values, ddof=1))
    theirs = variance if published_spread is None else published_spread**2
    quantile = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1))
    return float(quantile * (variance / n + theirs / (runs or n)) ** 0.5 + rounding)


def paired_tests(study: Study, rows: Sequence[TableRow]) -> list[PairedTest]:
    """The methods of a study against each other, as it says which."""
    compare = study.compare
    if compare is None:
        return []
    found = []
    metrics = compare.metrics or study.metrics[:1]
    for row in rows:
        shared = {axis: label for axis, label in row.cell.labels.items() if axis != compare.axis}
        wanted = {**shared, compare.axis: compare.against}
        other = next((o for o in rows if o.metric == row.metric and o.cell.labels == wanted), None)
        if row.metric not in metrics or other is None or other is row:
            continue
        seeds = [seed for seed in row.values if seed in other.values]
        if len(seeds) < 2:
            continue
        ours, theirs = ([side.values[seed] for seed in seeds] for side in (row, other))
        difference = float(np.mean(np.subtract(ours, theirs)))
        found.append(
            (shared, row.metric, row.cell.labels[compare.axis], len(seeds), difference, paired_p_value(ours, theirs))
        )
    corrected = holm([p for *_, p in found])
    return [
        PairedTest(labels, metric, method, compare.against, n, difference, p, q)
        for (labels, metric, method, n, difference, p), q in zip(found, corrected, strict=True)
    ]


def _rounding(table: str, column: str) -> float:
    """Half of the last printed digit of a column, and a little for binary fractions."""
    return 0.5 * 10.0 ** -printed_decimals(table, column) * (1 + 1e-9)
