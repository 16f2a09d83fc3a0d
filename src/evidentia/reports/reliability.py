"""The reliability diagram: how often the predictions of a given confidence are right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evidentia._support.checks import TensorLike
from evidentia.evaluation import ece, reliability
from evidentia.reports.style import VERMILION, blue, ink, label_axes, new_axes, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_reliability(
    probs: TensorLike,
    labels: TensorLike,
    bins: int = 15,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw accuracy against confidence in bins, over a histogram of how many samples each bin has.

    Bars that end below the diagonal are too confident, bars that end above it not confident enough; the gap is shaded.
    The title ends with the expected calibration error.

    Args:
        probs: probabilities, shape `(N, K)` or `(N,)`, as for `evidentia.evaluation.reliability`.
        labels: class indices, or 0 and 1.
        bins: how many bins of equal width.
        ax: where to draw the diagram; by default on a figure of its own. The histogram is an inset below it.
        title: what stands before the error in the title.

    Example:
        >>> ax = plot_reliability([0.9, 0.8, 0.2, 0.3], [1, 1, 0, 1], bins=2)
        >>> [round(float(bar.get_height()), 2) for bar in ax.containers[0]]
        [0.5, 1.0]
        >>> ax.get_title()
        'ECE 0.200'
    """
    diagram = reliability(probs, labels, bins)
    error = float(ece(probs, labels, bins))
    edges, count = diagram.edges.cpu().numpy(), diagram.count.cpu().numpy()
    filled = count > 0
    accuracy, confidence = (values.cpu().numpy()[filled] for values in (diagram.accuracy, diagram.confidence))
    left, width = edges[:-1], np.diff(edges)

    ax = new_axes((4.4, 4.9)) if ax is None else ax
    line: dict[str, Any] = {"align": "edge", "edgecolor": paper(), "linewidth": 0.6}
    ax.bar(left[filled], accuracy, width[filled], color=blue(), label="accuracy", **line)
    ax.bar(
        left[filled],
        confidence - accuracy,
        width[filled],
        accuracy,
        align="edge",
        facecolor="none",  # SVG gives the hatching the opacity of the face
        edgecolor=VERMILION,
        hatch="////",
        linewidth=0.6,
        label="gap to confidence",
    )
    ax.plot([0, 1], [0, 1], "--", color=ink(), alpha=0.6, linewidth=1.0, label="perfectly calibrated")
    label_axes(ax, "", "accuracy")
    # Bars may reach any part of the axes, so the legend is above them.
    ax.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=3,
        fontsize=8,
        frameon=False,
        columnspacing=1.0,
        handlelength=1.5,
    )
    ax.set_title(f"{title}: ECE {error:.3f}" if title else f"ECE {error:.3f}", fontsize=11, pad=24)
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(0, 1.02)
    ax.tick_params(labelbottom=False)

    below = ax.inset_axes((0.0, -0.3, 1.0, 0.25), sharex=ax)
    below.bar(left, count, width, color=ink(), alpha=0.45, **line)
    label_axes(below, "confidence", "samples")
    below.locator_params(axis="y", nbins=3, integer=True)
    # The inset is as high as the axes let it be, and they make room for it: laid out once, they fit when drawn.
    ax.get_figure(root=True).draw_without_rendering()  # type: ignore[union-attr]
    return ax
