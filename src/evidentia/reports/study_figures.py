"""The pictures of a study: methods beside the published, curves over a numeric axis, weights, early detection, time.

Which of them a study has follows from its axes and from what its jobs gave; nothing is trained for a picture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from evidentia.experiments.study_row import TableRow
from evidentia.experiments.study_table import StudyTable
from evidentia.reports.report import Drawing
from evidentia.reports.semisup_style import in_colour, ood_colour
from evidentia.reports.style import colour, ink, label_axes, new_figure, paper, point_marker

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_F1, _DELAY = "macro_f1", "delay"
# Parts of a metric's name that are no words, and names that stand as they are.
_SPELT = {"auroc": "AUROC", "aupr": "AUPR", "auc": "AUC", "f1": "F1", "w_in": "w_in", "w_ood": "w_ood"}
_AXIS_NAMES = {"ratio": "out of distribution, % of the pool"}
_WIDTH = 5.6
# A span of so many times is drawn on a logarithmic scale.
_WIDE = 10


def study_drawings(table: StudyTable) -> list[Drawing]:
    """The pictures that a table has, each with its caption.

    Args:
        table: of a study.
    """
    numeric = next((axis for axis in reversed(_varied(table)) if _is_numeric(table, axis)), None)
    drawings = _curves(table, numeric) if numeric is not None else _dots(table)
    return [*drawings, *_weights(table), *_early(table), *_times(table)]


def _varied(table: StudyTable) -> list[str]:
    """The axes with several labels; if there is none, the last of all."""
    return [axis for axis in table.axes if len(_labels(table, axis)) > 1] or list(table.axes[-1:])


def _is_numeric(table: StudyTable, axis: str) -> bool:
    labels = _labels(table, axis)
    return len(labels) > 1 and all(_number(label) is not None for label in labels)


def _labels(table: StudyTable, axis: str) -> set[str]:
    return {runs.cell.labels[axis] for runs in table.cells}


def _dots(table: StudyTable) -> list[Drawing]:
    """For each kind of metric, and all axes but the last: every method's mean and spread, and the published."""
    drawings: list[Drawing] = []
    inner = _varied(table)[-1:]
    for panel, rows in _panels(table, table.rows, inner).items():
        kinds: dict[str, list[TableRow]] = {}
        for row in rows:
            kinds.setdefault(row.metric.partition(".")[0], []).append(row)
        for kind, group in kinds.items():
            caption = f"{_caption(table, kind, panel)}: mean and standard deviation over seeds"
            caption += ", with the published figure." if any(row.published for row in group) else "."
            drawings.append((partial(_draw_dots, group, inner, _scale(table, kind), panel), caption))
    return drawings


def _draw_dots(rows: Sequence[TableRow], axes: Sequence[str], what: str, title: str) -> Figure:
    figure, (ax,) = new_figure(width=_WIDTH, height=1.6 + 0.24 * len(rows))
    labels = [_label(row, axes) for row in rows]
    methods = list(dict.fromkeys(labels))
    for place, (row, label) in enumerate(zip(rows, labels, strict=True)):
        shade = colour(methods.index(label))
        ax.errorbar(
            row.mean, place, xerr=row.std or 0.0, fmt="o", color=shade, markersize=5.5, capsize=3, elinewidth=1.3
        )
        if row.published is not None:
            ax.plot(row.published.value, place, "D", mfc="none", mec=ink(), mew=1.3, markersize=6)
    names = [metric_words(row.metric.partition(".")[2]) for row in rows]
    ax.set_yticks(range(len(rows)), [", ".join(filter(None, pair)) or what for pair in zip(labels, names, strict=True)])
    ax.invert_yaxis()
    label_axes(ax, what, "", title or None)
    ax.margins(x=0.08)
    if any(row.published for row in rows):
        ax.plot([], [], "o", color=ink(), label="ours")
        ax.plot([], [], "D", mfc="none", mec=ink(), label="published")
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def _curves(table: StudyTable, numeric: str) -> list[Drawing]:
    """A metric over a numeric axis, a line a label of the last other axis."""
    others = [axis for axis in _varied(table) if axis != numeric]
    drawings: list[Drawing] = []
    for metric in dict.fromkeys(row.metric for row in table.rows):
        rows = [row for row in table.rows if row.metric == metric]
        for panel, group in _panels(table, rows, [*others[-1:], numeric]).items():
            over = _AXIS_NAMES.get(numeric, numeric)
            caption = (
                f"{_caption(table, metric, panel)} over {over}: mean, and a band of a standard deviation over seeds"
            )
            caption += "; hollow, the published figures." if any(row.published for row in group) else "."
            names = over, _scale(table, metric), panel
            drawings.append((partial(_draw_curves, group, others[-1:], numeric, names), caption))
    return drawings


def _draw_curves(rows: Sequence[TableRow], axes: Sequence[str], numeric: str, names: tuple[str, str, str]) -> Figure:
    lines: dict[str, list[TableRow]] = {}
    for row in rows:
        lines.setdefault(_label(row, axes), []).append(row)
    figure, (ax,) = new_figure(width=_WIDTH, height=3.4 + 0.1 * len(lines))
    for index, (label, line) in enumerate(lines.items()):
        line.sort(key=lambda row: float(row.cell.labels[numeric]))
        places = [float(row.cell.labels[numeric]) for row in line]
        means, spreads = [row.mean for row in line], [row.std or 0.0 for row in line]
        shade, marker = colour(index), point_marker(index)
        ax.plot(places, means, f"{marker}-", color=shade, linewidth=1.7, markersize=5, label=label or None)
        low = [mean - spread for mean, spread in zip(means, spreads, strict=True)]
        high = [mean + spread for mean, spread in zip(means, spreads, strict=True)]
        ax.fill_between(places, low, high, color=shade, alpha=0.16, linewidth=0)
        known = [(place, row.published.value) for place, row in zip(places, line, strict=True) if row.published]
        if known:
            ax.plot(*zip(*known, strict=True), marker, mfc="none", mec=shade, mew=1.3, markersize=7)
    x, y, title = names
    label_axes(ax, x, y, title or None)
    places = sorted({float(row.cell.labels[numeric]) for row in rows})
    means = [row.mean for row in rows]
    if places[0] > 0 and places[-1] / places[0] > _WIDE:
        ax.set_xscale("log")
    if min(means) > 0 and max(means) / min(means) > _WIDE:
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
    ax.set_xticks(places, [f"{place:g}" for place in places])
    ax.minorticks_off()
    if any(lines):
        figure.legend(loc="outside lower center", fontsize=9, frameon=False, ncols=3)
    return figure


def _weights(table: StudyTable) -> list[Drawing]:
    """The mean weights of the pool's samples in and out of distribution, where some method weighs them at all."""
    found = [row for row in table.further if row.metric in ("w_in", "w_ood")]
    if all(row.mean == 1 for row in found):
        return []
    inner = _varied(table)[-1:]
    return [
        (partial(_draw_weights, rows, inner, panel), f"Mean weights of the pool{_of(panel)}: {_KEPT}")
        for panel, rows in _panels(table, found, inner).items()
    ]


_KEPT = "samples of the classes (w_in) should be kept, those of none (w_ood) thrown out."


def _draw_weights(rows: Sequence[TableRow], axes: Sequence[str], title: str) -> Figure:
    labels = list(dict.fromkeys(_label(row, axes) for row in rows))
    figure, (ax,) = new_figure(width=_WIDTH, height=1.6 + 0.4 * len(labels))
    looks = {"w_in": (in_colour(), -0.19), "w_ood": (ood_colour(), 0.19)}
    for row in rows:
        shade, shift = looks[row.metric]
        place = labels.index(_label(row, axes)) + shift
        hatch = "" if row.metric == "w_in" else "///"
        ax.barh(place, row.mean, 0.34, xerr=row.std or 0.0, color=shade, ecolor=ink(), hatch=hatch, edgecolor=paper())
    for name, (shade, _) in looks.items():
        ax.barh(0, 0, 0, color=shade, hatch="" if name == "w_in" else "///", edgecolor=paper(), label=name)
    ax.set_yticks(range(len(labels)), labels)
    ax.set_xlim(0, 1.05)
    ax.invert_yaxis()
    label_axes(ax, "mean weight", "", title or None)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def _early(table: StudyTable) -> list[Drawing]:
    """F1 over the delay, where both were measured."""
    rows = [row for row in table.rows if row.metric in (_F1, _DELAY)]
    if {row.metric for row in rows} != {_F1, _DELAY}:
        return []
    inner = _varied(table)[-1:]
    return [
        (
            partial(_draw_early, group, inner, panel),
            f"F1 over delay{_of(panel)}: early and right is up and to the left"
            f"{'; hollow, the published.' if any(row.published for row in group) else '.'}",
        )
        for panel, group in _panels(table, rows, inner).items()
    ]


def _draw_early(rows: Sequence[TableRow], axes: Sequence[str], title: str) -> Figure:
    methods: dict[str, dict[str, TableRow]] = {}
    for row in rows:
        methods.setdefault(_label(row, axes), {})[row.metric] = row
    pairs = {label: (found[_DELAY], found[_F1]) for label, found in methods.items() if len(found) == 2}
    figure, (ax,) = new_figure(width=_WIDTH, height=4.0)
    places = [_number(delay.cell.labels[axes[-1]]) for delay, _ in pairs.values()] if axes else [None]
    if len(places) > 1 and None not in places:
        path = [pair for _, pair in sorted(zip(places, pairs.values(), strict=True), key=lambda entry: entry[0] or 0.0)]
        ax.plot([delay.mean for delay, _ in path], [f1.mean for _, f1 in path], "-", color=ink(), alpha=0.5)
    for index, (label, (delay, f1)) in enumerate(pairs.items()):
        shade, marker = colour(index), point_marker(index)
        ax.errorbar(
            *(delay.mean, f1.mean), xerr=delay.std or 0.0, yerr=f1.std or 0.0,
            fmt=marker, color=shade, capsize=3, elinewidth=1.0, markersize=6, label=label,
        )  # fmt: skip
        if delay.published is not None and f1.published is not None:
            ax.plot(delay.published.value, f1.published.value, marker, mfc="none", mec=shade, mew=1.3, markersize=7)
    label_axes(ax, "delay, s", "F1", title or None)
    figure.legend(loc="outside lower center", fontsize=9, frameon=False, ncols=3)
    return figure


def _times(table: StudyTable) -> list[Drawing]:
    """How long a job of each cell took."""
    known = [runs for runs in table.cells if runs.cpu_seconds > 0]
    if not known:
        return []
    names = [", ".join(runs.cell.labels.values()) or table.study for runs in known]
    seconds = [runs.cpu_seconds for runs in known]
    return [(partial(_draw_times, names, seconds), "Time of the processor for one job of each cell, in the mean.")]


def _draw_times(names: Sequence[str], seconds: Sequence[float]) -> Figure:
    figure, (ax,) = new_figure(width=_WIDTH, height=1.1 + 0.24 * len(names))
    ax.barh(range(len(names)), seconds, 0.65, color=colour(0))
    for place, value in enumerate(seconds):
        ax.annotate(f"{value:.3g}", (value, place), (3, 0), textcoords="offset points", va="center", fontsize=8)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.margins(x=0.12)
    label_axes(ax, "processor, s a job", "")
    return figure


def _panels(table: StudyTable, rows: Sequence[TableRow], within: Sequence[str]) -> dict[str, list[TableRow]]:
    """Rows by the labels of all axes but those within a panel."""
    outer = [axis for axis in _varied(table) if axis not in within]
    panels: dict[str, list[TableRow]] = {}
    for row in rows:
        panels.setdefault(_label(row, outer), []).append(row)
    return panels


def _label(row: TableRow, axes: Sequence[str]) -> str:
    return ", ".join(worded(axis, row.cell.labels[axis]) for axis in axes)


def worded(axis: str, label: str) -> str:
    """A label in words: a number alone does not say of what.

    Example:
        >>> worded("ratio", "50"), worded("method", "gcn")
        ('ratio 50', 'gcn')
    """
    return label if _number(label) is None else f"{axis} {label}"


def metric_words(name: str) -> str:
    """The name of a metric as it is written in a sentence.

    Example:
        >>> metric_words("macro_f1"), metric_words("auroc.vacuity"), metric_words("w_in")
        ('macro F1', 'AUROC, vacuity', 'w_in')
    """
    parts = [
        _SPELT.get(part) or " ".join(_SPELT.get(word, word) for word in part.split("_")) for part in name.split(".")
    ]
    return ", ".join(filter(None, parts))


def _scale(table: StudyTable, metric: str) -> str:
    return f"{metric_words(metric)}, %" if table.unit == "%" else metric_words(metric)


def _caption(table: StudyTable, metric: str, panel: str) -> str:
    """The beginning of a caption: a sentence begins with a capital, unless with a name that has none."""
    words = metric_words(metric)
    first = words.partition(" ")[0].rstrip(",")
    words = words[0].upper() + words[1:] if first.isalpha() and first.islower() else words
    return f"{words}{' in %' if table.unit == '%' else ''}{_of(panel)}"


def _of(panel: str) -> str:
    return f" for {panel}" if panel else ""


def _number(label: str) -> float | None:
    """The finite number that a label is, if it is one."""
    try:
        number = float(label)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
