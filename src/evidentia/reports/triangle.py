"""Jøsang's opinion triangle: binomial opinions between belief, disbelief and uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia.opinions import BinomialOpinion
from evidentia.reports.style import ORANGE, VERMILION, blue, ink, new_axes, paper, set_title, triangle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# With more opinions than this, projectors would hide the points.
_MAX_PROJECTORS = 8
# Base rates closer together than this get one label between them.
_LABEL_WIDTH = 0.18


def plot_opinion_triangle(
    opinion: BinomialOpinion,
    ax: Axes | None = None,
    labels: Sequence[str] | None = None,
    projector: bool | None = None,
    title: str | None = None,
) -> Axes:
    r"""Draw binomial opinions in the triangle of disbelief (left), belief (right) and uncertainty (top).

    An opinion lies at $x = b + u / 2$, at height $u$. The base rate $a$ is marked on the base line and joined to the
    top by the *director*; the *projector*, parallel to it, leads from the opinion to its projected probability
    $P = b + a u$ on the base line, which is a scale from 0 to 1.

    Args:
        opinion: one opinion, or a batch of any shape: a point each.
        ax: where to draw; by default on a figure of its own.
        labels: a text beside each point.
        projector: draw base rates, directors and projectors; by default only for up to 8 opinions.
        title: a title above the triangle.

    Example:
        >>> import evidentia as ev
        >>> ax = plot_opinion_triangle(ev.BinomialOpinion(0.0, 0.0, 1.0))
        >>> x, y = ax.collections[0].get_offsets()[0]
        >>> round(float(x), 3), round(float(y), 3)
        (0.5, 0.866)
    """
    if not isinstance(opinion, BinomialOpinion):
        raise EvidentiaError(f"the opinion triangle shows a BinomialOpinion, got {type(opinion).__name__}")
    flat = opinion.detach().to("cpu", torch.float64).reshape(-1)
    if labels is not None and len(labels) != len(flat):
        raise EvidentiaError(f"labels needs a text for each of the {len(flat)} opinions, got {len(labels)}")
    ax = new_axes((4.4, 3.9)) if ax is None else ax
    *_, (_, height) = triangle(ax)
    for corner, name in ((0.0, "disbelief"), (1.0, "belief")):
        ax.text(corner, -0.03, name, ha="center", va="top", fontsize=10, color=ink())
    ax.text(0.5, height + 0.035, "uncertainty", ha="center", va="bottom", fontsize=10, color=ink())
    ax.set_ylim(-0.22, 0.98)

    few = len(flat) <= _MAX_PROJECTORS
    x, y = flat.belief + flat.vacuity / 2, flat.vacuity * height
    if few if projector is None else projector:
        _draw_projectors(ax, flat, x, y, height)
    size, opacity = (46, 1.0) if few else (16, 0.6)
    ax.scatter(x.numpy(), y.numpy(), s=size, color=blue(), alpha=opacity, edgecolors=paper(), linewidths=0.6, zorder=5)
    if labels is not None:
        _draw_labels(ax, labels, flat, x, y)
    set_title(ax, title)
    return ax


def _draw_projectors(ax: Axes, opinion: BinomialOpinion, x: Tensor, y: Tensor, height: float) -> None:
    labelled = -1.0
    for rate in opinion.base_rate.unique().tolist():
        ax.plot([rate, 0.5], [0, height], "--", color=ink(), alpha=0.45, linewidth=0.9, zorder=2, label="director")
        ax.plot([rate, rate], [0, -0.02], color=ink(), linewidth=1.0, zorder=3)
        if rate - labelled > _LABEL_WIDTH:
            ax.text(rate, -0.09, f"a = {rate:.2f}", ha="center", va="top", fontsize=9, color=ink())
            labelled = rate
    for left, bottom, foot in zip(x.tolist(), y.tolist(), opinion.projected.tolist(), strict=True):
        ax.plot([left, foot], [bottom, 0], color=ORANGE, linewidth=1.3, zorder=4, label="projector")
        ax.plot([foot], [0], "o", color=ORANGE, markersize=4, zorder=4, clip_on=False)
    if len(opinion) == 1:
        foot = float(opinion.projected)
        ax.text(foot, -0.15, f"P = {foot:.2f}", ha="center", va="top", fontsize=9, color=VERMILION)


def _draw_labels(ax: Axes, labels: Sequence[str], opinion: BinomialOpinion, x: Tensor, y: Tensor) -> None:
    from matplotlib.patheffects import withStroke

    for text, left, bottom, disbelief, vacuity in zip(
        labels, x.tolist(), y.tolist(), opinion.disbelief.tolist(), opinion.vacuity.tolist(), strict=True
    ):
        # Inside the triangle, so to the left where the right edge is close; at the very top there is room outside.
        on_the_left = disbelief < 0.3 and vacuity < 0.85
        ax.annotate(
            text,
            (left, bottom),
            (-8 if on_the_left else 8, 0),
            textcoords="offset points",
            ha="right" if on_the_left else "left",
            va="center",
            fontsize=9,
            color=ink(),
            zorder=6,
            path_effects=[withStroke(linewidth=2.5, foreground=paper())],
        )
