"""What training made of a pool, in one picture: what was kept, what was thrown out, and how sure it is of that."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from torch import Tensor

from evidentia._support.checks import as_array, check_finite, validation_enabled
from evidentia._support.errors import EvidentiaError
from evidentia.reports.semisup_gallery import CELL, COLUMNS, cell_height, draw_gallery, galleries
from evidentia.reports.semisup_points import draw_points, draw_scale, labeled_groups
from evidentia.reports.semisup_style import (
    NOTE_SIZE,
    dot,
    in_colour,
    kept_colour,
    legend_below,
    ood_colour,
    patch,
    shortened,
    thrown_colour,
    trust_colours,
)
from evidentia.reports.style import ink, label_axes, new_figure, paper, plain_text, require_matplotlib
from evidentia.semisup.inputs.arrays import labeled_samples, pool_samples
from evidentia.semisup.inputs.columns import column_names
from evidentia.semisup.inputs.form import InputForm
from evidentia.semisup.weights import KEPT_FROM

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from evidentia.semisup import PoolReview

_BINS = 20
_MOST_BARS = 20
_PANEL_WIDTH = 4.4
# Characters that fit in a line above everything.
_LINE = 90


@plain_text()
def pool_picture(
    review: PoolReview,
    x: Any,
    *,
    labeled: Any = None,
    by: Literal["cluster", "class"] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw which samples of a pool were kept and which thrown out, whatever the samples are.

    On the left the samples: of images two galleries, the most trusted of each predicted class and the least trusted of
    all, with the weight under each; of pairs of numbers the plane; of other samples their first two principal
    components, standardised if they were in training. On the right the distribution of the weights and, for each
    cluster or predicted class, how many were kept and thrown out. Where the truth is known, the picture tells it:
    `w_in`, `w_ood` and AUROC above the weights, the share of OOD beside each bar, and a star at images out of
    distribution.

    Args:
        review: what training made of the pool.
        x: the pool as `fit` took it: an array, a tensor, a table or a dataset of shape `(n, ...)`; images are of shape
            `(n, C, H, W)`, grey ones also `(n, H, W)`.
        labeled: labeled samples and their classes as `fit` took them, to be drawn among the points; images are shown
            without.
        by: what the bars are; by default clusters if the review has them, else predicted classes.
        title: what to write above everything, such as the name of the data.

    Raises:
        EvidentiaError: if samples and review do not fit each other.

    Example:
        >>> import torch
        >>> from evidentia.semisup import PoolReview
        >>> review = PoolReview(torch.rand(50), torch.randint(2, (50,)), torch.rand(50))
        >>> figure = pool_picture(review, torch.randn(50, 2), title="two moons")
        >>> [ax.get_title() for ax in figure.axes[1:3]]
        ['weights, mean ...', 'by predicted class']
    """
    require_matplotlib()
    labeled = None if labeled is None else labeled_samples(labeled, review.class_names, column_names(x))
    x = _as_seen(pool_samples(x))
    _check(review, x, labeled)
    by = by or ("class" if review.clusters is None else "cluster")
    groups = _groups(review, by)
    figure = _with_images(review, x, groups, by) if _are_images(x) else _with_points(review, x, labeled, groups, by)
    figure.suptitle(_headline(review, title), fontsize=12)
    return figure


def _as_seen(x: Tensor) -> Tensor:
    """With a channel if samples are grey images without one."""
    return x.unsqueeze(1) if InputForm.of(x.shape[1:], None).adds_channel else x


def _check(review: PoolReview, x: Tensor, labeled: tuple[Tensor, Tensor] | None) -> None:
    if x.ndim < 2 or not x[0].numel():
        raise EvidentiaError(f"x must be the samples of the pool, of shape (n, ...), got shape {tuple(x.shape)}")
    if len(x) != len(review):
        raise EvidentiaError(f"the review is of {len(review)} samples and x holds {len(x)}; give the pool it is of")
    parts = {"x": x}
    if labeled is not None:
        inputs, classes = _as_seen(labeled[0]), labeled[1]
        if inputs.shape[1:] != x.shape[1:] or classes.shape != inputs.shape[:1]:
            raise EvidentiaError(
                f"labeled must be inputs of shape (m, {', '.join(map(str, x.shape[1:]))}) and m classes, got shapes "
                f"{tuple(inputs.shape)} and {tuple(classes.shape)}"
            )
        parts["the labeled inputs"] = inputs
    if validation_enabled():
        for name, part in parts.items():
            check_finite(part, name)


def _are_images(x: Tensor) -> bool:
    return x.ndim == 4 and min(x.shape[2:]) > 1


def _groups(review: PoolReview, by: str) -> list[dict[str, Any]]:
    if by == "cluster":
        return review.by_cluster()
    if by != "class":
        raise EvidentiaError(f"bars are by 'cluster' or by 'class', got {by!r}")
    return review.by_class()


def _with_images(review: PoolReview, x: Tensor, groups: list[dict[str, Any]], by: str) -> Figure:
    shown = galleries(review)
    rows, lines = max(len(gallery.rows) for gallery in shown), max(gallery.lines for gallery in shown)
    width = 1.14 * CELL * COLUMNS
    beside = 0.9 if shown[0].names else 0.2
    figure, _ = new_figure(
        rows=0,
        width=2 * width + beside + 0.5 + _PANEL_WIDTH,
        height=max(CELL * rows * cell_height(x, lines) + 1.5, 6.0),
    )
    grid = figure.add_gridspec(2, 3, width_ratios=(width, width, _PANEL_WIDTH - 0.6), height_ratios=_heights(groups))
    for column, gallery in enumerate(shown):
        draw_gallery(figure.add_subplot(grid[:, column]), gallery, review, x, rows, lines)
    _panels(figure, grid, 2, review, groups, by)
    legend_below(figure, _verdicts() + _truths(review, star=True))
    return figure


def _with_points(
    review: PoolReview, x: Tensor, labeled: tuple[Tensor, Tensor] | None, groups: list[dict[str, Any]], by: str
) -> Figure:
    figure, _ = new_figure(rows=0, width=6.4 + _PANEL_WIDTH, height=6.6)
    grid = figure.add_gridspec(2, 2, width_ratios=(6.4, _PANEL_WIDTH), height_ratios=_heights(groups))
    ax = figure.add_subplot(grid[:, 0])
    drawn = draw_points(ax, review, x, labeled)
    _panels(figure, grid, 1, review, groups, by)
    draw_scale(ax, drawn)
    groups_of_labels = [] if labeled is None else labeled_groups(review, labeled[1])
    marks = [dot(name, marker, paper(), ink(), size=8.0) for marker, _, name in groups_of_labels]
    legend_below(figure, [*_point_verdicts(), *marks, *_truths(review)])
    return figure


def _panels(figure: Figure, grid: Any, column: int, review: PoolReview, groups: list[dict[str, Any]], by: str) -> None:
    _draw_weights(figure.add_subplot(grid[0, column]), review)
    _draw_groups(figure.add_subplot(grid[1, column]), groups, by)


def _heights(groups: list[dict[str, Any]]) -> tuple[float, float]:
    return 1.0, float(np.clip(min(len(groups), _MOST_BARS) / 8, 0.4, 1.8))


def _draw_weights(ax: Axes, review: PoolReview) -> None:
    edges = np.linspace(0, 1, _BINS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    weights = as_array(review.weights.double())
    figures = review.summary()
    title = f"weights, mean {figures['mean_weight']:.2f}"
    if review.is_ood is None:
        counts = np.histogram(weights, edges)[0]
        ax.bar(middles, counts, 1 / _BINS, color=trust_colours()(middles), edgecolor=paper(), linewidth=0.6)
        unit = "samples"
    else:
        ood = as_array(review.is_ood)
        for mask, shade, hatch in ((~ood, in_colour(), None), (ood, ood_colour(), "////")):
            if mask.any():
                shares = 100 * np.histogram(weights[mask], edges)[0] / mask.sum()
                ax.stairs(shares, edges, fill=True, color=shade, alpha=0.35, hatch=hatch, edgecolor=shade, linewidth=0)
                # Without its empty bins, where the outline would lie on the axis.
                ax.stairs(np.where(shares > 0, shares, np.nan), edges, color=shade, linewidth=1.5)
        unit = "% of the group"
        scores = {"w_in": figures["w_in"], "w_ood": figures["w_ood"], "AUROC": figures["auroc"]}
        title = ",  ".join(f"{name} {value:.2f}" for name, value in scores.items() if value is not None)
    ax.axvline(KEPT_FROM, color=ink(), alpha=0.6, linestyle="--", linewidth=1.0)
    label_axes(ax, f"weight (kept from {KEPT_FROM:g})", unit, title)
    ax.locator_params(axis="y", nbins=5, integer=True)
    ax.set_xlim(0, 1)
    ax.set_ylim(bottom=0)


def _draw_groups(ax: Axes, groups: list[dict[str, Any]], by: str) -> None:
    title = "most trusted cluster first" if by == "cluster" else "by predicted class"
    shown = groups
    if len(groups) > _MOST_BARS:
        worst = sorted(groups, key=lambda group: -group["thrown_out"])[:_MOST_BARS]
        shown = [group for group in groups if group in worst]
        title = f"{_MOST_BARS} of {len(groups)} {'clusters' if by == 'cluster' else 'classes'}, most thrown out"
    places = list(range(len(shown)))
    kept, thrown = (np.array([group[part] for group in shown]) for part in ("kept", "thrown_out"))
    ax.barh(places, kept, 0.72, color=kept_colour(), label="kept")
    ax.barh(places, thrown, 0.72, left=kept, color=thrown_colour(), label="thrown out")
    largest = max(int((kept + thrown).max()), 1)
    some_ood = any(group.get("ood_share") for group in shown)
    for place, group in zip(places, shown, strict=True):
        if some_ood and group["ood_share"] is not None:
            note = f"{group['ood_share']:.0%} OOD"
            ax.text(group["size"] + 0.015 * largest, place, note, va="center", fontsize=7, color=ink(), alpha=0.75)
    label_axes(ax, "samples", "cluster (most common class)" if by == "cluster" else "", title)
    ax.grid(False, axis="y")
    ax.set_yticks(places, [_group_name(group, by) for group in shown], fontsize=NOTE_SIZE)
    ax.tick_params(axis="y", length=0)
    ax.set_xlim(0, largest * (1.25 if some_ood else 1.04))
    ax.locator_params(axis="x", nbins=6)
    # A single bar is not to fill the panel.
    middle, half = (len(shown) - 1) / 2, max(len(shown), 2) / 2 + 0.1
    ax.set_ylim(middle + half, middle - half)


def _group_name(group: dict[str, Any], by: str) -> str:
    name = shortened(group["class"], 16)
    return f"{group['cluster']} ({name})" if by == "cluster" else name


def _headline(review: PoolReview, title: str | None) -> str:
    figures = review.summary()
    line = f"{figures['kept']:,} of {figures['samples']:,} samples kept, {figures['thrown_out']:,} thrown out"
    if not review.used:
        line = f"none of the {figures['samples']:,} samples were used in training"
    if title:
        line = f"{title}: {line}" if len(title) + len(line) < _LINE else f"{fill(title, _LINE)}\n{line}"
    if review.is_ood is None or not review.used:
        return line
    inside, outside = figures["samples"] - figures["ood"], figures["ood"]
    mistakes = [f"{figures['ood_kept']:,} of {outside:,} OOD kept"] if outside else []
    mistakes += [f"{figures['in_thrown_out']:,} of {inside:,} in distribution thrown out"] if inside else []
    return f"{line}\nmistakes: {', '.join(mistakes)}"


def _verdicts() -> list[Any]:
    return [patch("kept", kept_colour()), patch("thrown out", thrown_colour())]


def _point_verdicts() -> list[Any]:
    return [dot("kept", "o", kept_colour()), dot("thrown out", "x", thrown_colour())]


def _truths(review: PoolReview, star: bool = False) -> list[Any]:
    if review.is_ood is None:
        return []
    marks = [patch("in distribution", in_colour())] if not bool(review.is_ood.all()) else []
    if bool(review.is_ood.any()):
        marks.append(patch(f"{'* ' if star else ''}out of distribution (OOD)", ood_colour(), "////"))
    return marks
