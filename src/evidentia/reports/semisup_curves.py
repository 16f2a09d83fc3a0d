"""Weights and losses over training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from evidentia._support.errors import EvidentiaError
from evidentia.reports.semisup_style import in_colour, ood_colour
from evidentia.reports.style import colour, ink, label_axes, line_dashes, new_figure, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Panels of `weight_curves` with the lines of each: key of the history, and what to call it.
_PANELS: dict[str, dict[str, str]] = {
    "mean weight": {"w_in": "w_in", "w_ood": "w_ood", "weight": "whole pool"},
    "loss": {"loss": "total", "labeled_loss": "labeled", "unlabeled_loss": "unlabeled"},
    "validation accuracy": {"validation_accuracy": "validation accuracy"},
}
# From so many points on, a marker at each would hide the line.
_MARKED = 30


def weight_curves(history: Sequence[Mapping[str, Any]], *, title: str | None = None) -> Figure:
    """Draw how the weights of the pool moved during training, and the losses beside them (as in thesis chapter 3).

    `w_in` and `w_ood` are the mean weights of samples in and out of distribution, where it is known which are which.

    Args:
        history: one entry each time something was noted: `update`, and any of `weight` (mean over the pool), `w_in`,
            `w_ood`, `loss`, `labeled_loss`, `unlabeled_loss` and `validation_accuracy`. What an entry lacks, or has as
            None or NaN, is left out of that line. Other keys are not drawn.
        title: a title above everything.

    Raises:
        EvidentiaError: if there is nothing to draw.

    Example:
        >>> history = [{"update": 0, "w_in": 1.0, "w_ood": 1.0}, {"update": 100, "w_in": 0.9, "w_ood": 0.2}]
        >>> ax = weight_curves(history).axes[0]
        >>> [text.get_text() for text in ax.get_legend().get_texts()]
        ['w_in', 'w_ood']
    """
    require_matplotlib()
    if not history:
        raise EvidentiaError("the history is empty, so there are no curves to draw; train for at least one update")
    for number, entry in enumerate(history):
        if _number(entry.get("update")) is None:
            raise EvidentiaError(
                f"every entry of the history needs the number of its 'update'; entry {number} has none"
            )
    panels = {}
    for panel, names in _PANELS.items():
        lines = {key: line for key in names if (line := _line(history, key))[0]}
        if lines:
            panels[panel] = lines
    if not panels:
        known = ", ".join(key for names in _PANELS.values() for key in names)
        raise EvidentiaError(f"the history has nothing to draw; it may hold: {known}")
    figure, axes = new_figure(columns=len(panels), width=max(4.6 * len(panels), 5.2), height=3.5)
    for ax, (panel, lines) in zip(axes, panels.items(), strict=True):
        _draw_panel(ax, panel, lines)
    if title is not None:
        figure.suptitle(title, fontsize=12)
    return figure


def _draw_panel(ax: Axes, panel: str, lines: Mapping[str, tuple[list[float], list[float]]]) -> None:
    names = _PANELS[panel]
    known = {"w_in": in_colour(), "w_ood": ood_colour(), "weight": ink()}
    for index, (key, (updates, values)) in enumerate(lines.items()):
        # By its place among all lines, so that a loss keeps its look where others are missing.
        place = list(names).index(key)
        share = 100 if panel == "validation accuracy" else 1
        ax.plot(
            updates,
            [share * value for value in values],
            color=known.get(key, colour(place)),
            linestyle=line_dashes(place),
            linewidth=1.8 if key != "weight" else 1.3,
            marker="o" if len(updates) < _MARKED else "",
            markersize=3.5,
            label=names[key],
            zorder=3 - 0.1 * index,
        )
    label_axes(ax, "update", panel + (", %" if panel == "validation accuracy" else ""))
    if panel == "mean weight":
        ax.set_ylim(-0.03, 1.03)
    elif panel == "loss":
        values = [value for _, line in lines.values() for value in line]
        _scale_loss(ax, values)
    else:
        _keep_below_100(ax)
    if panel != "validation accuracy":
        # Above the axes, since lines may be anywhere in them.
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, frameon=False, fontsize=9, borderpad=0.2)


def _scale_loss(ax: Axes, values: Sequence[float]) -> None:
    """Logarithmic if losses span orders of magnitude, since else the end of training is a flat line."""
    if min(values) > 0 and max(values) / min(values) > 100:
        ax.set_yscale("log")
        # By itself the scale writes powers as mathematics, which a report shows as it is spelt.
        ax.yaxis.set_major_formatter("{x:g}")
    elif min(values) >= 0:
        ax.set_ylim(bottom=0)


def _keep_below_100(ax: Axes) -> None:
    low, high = ax.get_ylim()
    ax.set_ylim(max(low, -1.0), min(high, 101.0))


def _line(history: Sequence[Mapping[str, Any]], key: str) -> tuple[list[float], list[float]]:
    """Updates and values where there is a value, in the order of the updates."""
    found = [(_number(entry["update"]), _number(entry.get(key))) for entry in history]
    points = sorted((update, value) for update, value in found if update is not None and value is not None)
    return [update for update, _ in points], [value for _, value in points]


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if isfinite(number) else None
