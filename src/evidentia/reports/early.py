"""How early and how right: F1 over delay, over all thresholds; and both, class by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evidentia._support.errors import EvidentiaError
from evidentia.evaluation import EarlyCurve, EarlyScores
from evidentia.reports.semisup_style import legend_below
from evidentia.reports.style import (
    add_legend,
    colour,
    label_axes,
    line_dashes,
    new_axes,
    new_figure,
    paper,
    plain_text,
    point_marker,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HATCHES = ("", "//", "..", "xx")


def plot_f1_delay(
    curves: Mapping[str, EarlyCurve],
    chosen: Mapping[str, EarlyScores] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the largest macro F1 that a threshold reaches with a mean delay of hits of at most so much, a line a method.

    The threshold is chosen on the clips that are drawn, which is a little better than any that was chosen before.

    Args:
        curves: of `evidentia.evaluation.early_curve`, by the name of the method.
        chosen: the scores at the threshold that is used, by the same names, to be marked beside the line.
        ax: where to draw; by default on a figure of its own.
        title: a title above the axes.

    Example:
        >>> from evidentia.evaluation import EventTruth, early_curve
        >>> truth = EventTruth.from_activity([[[0], [1], [1], [1]]], segment=0.1)
        >>> curve = early_curve([[[0.2], [0.4], [0.6], [0.9]]], truth, [0.3, 0.5, 0.7])
        >>> plot_f1_delay({"a head": curve}).get_lines()[0].get_xydata().round(1).tolist()
        [[0.1, 1.0], [0.2, 1.0], [0.3, 1.0]]
    """
    if not curves:
        raise EvidentiaError("F1 over delay needs the curve of at least one method, got none")
    ax = new_axes() if ax is None else ax
    for index, (name, curve) in enumerate(curves.items()):
        # Without a hit there is no delay.
        hit = curve.delay.isfinite()
        order = curve.delay[hit].argsort(stable=True)
        delay, best = curve.delay[hit][order], curve.macro_f1[hit][order].cummax(0).values
        shade, dashes = colour(index), line_dashes(index)
        look: dict[str, Any] = {"linestyle": dashes, "linewidth": 1.7, "drawstyle": "steps-post"}
        ax.plot(delay.numpy(), best.numpy(), color=shade, label=name, **look)
        if chosen is not None and name in chosen:
            marker, scores = point_marker(index), chosen[name]
            ax.plot(scores.delay, scores.macro_f1, marker, color=shade, markersize=8, mec=paper(), mew=1.0, zorder=4)
    label_axes(ax, "mean delay of at most, s", "macro F1", title)
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    # Lines rise to the right.
    add_legend(ax, "lower right")
    return ax


@plain_text()
def plot_classes(chosen: Mapping[str, EarlyScores], labels: Sequence[str]) -> Figure:
    """Draw F1 and mean delay of every class, a bar a method; there is none where nothing was counted.

    Args:
        chosen: the scores by the name of the method.
        labels: the classes.

    Example:
        >>> from evidentia.evaluation import EventTruth, early_scores
        >>> truth = EventTruth.from_activity([[[0], [1], [1], [1]]], segment=0.1)
        >>> figure = plot_classes({"a head": early_scores([[[0], [0], [1], [1]]], truth)}, ["dog"])
        >>> [round(float(ax.patches[0].get_width()), 2) for ax in figure.axes]
        [1.0, 0.2]
    """
    if not chosen:
        raise EvidentiaError("bars of classes need the scores of at least one method, got none")
    thickness = 0.8 / len(chosen)
    bars, below = len(labels) * max(0.3, 0.18 * len(chosen)), 0.3 + 0.06 * len(chosen)
    figure, axes = new_figure(columns=2, width=9.6, height=1.2 + bars + below)
    for ax, name in zip(axes, ("F1", "mean delay of hits, s"), strict=True):
        for index, (method, scores) in enumerate(chosen.items()):
            values = scores.f1 if name == "F1" else scores.class_delay
            # The first method and the first class stand at the top.
            places = [-row - 0.4 + thickness * (len(chosen) - index - 0.5) for row in range(len(labels))]
            look: dict[str, Any] = {
                "color": colour(index),
                "hatch": _HATCHES[index % len(_HATCHES)],
                "edgecolor": paper(),
            }
            ax.barh(places, values.nan_to_num(0).tolist(), thickness, label=method, **look)
        ax.set_yticks([-row for row in range(len(labels))], labels)
        label_axes(ax, name, "")
    # Bars may be anywhere in the axes.
    legend_below(figure, list(axes[0].containers))
    return figure
