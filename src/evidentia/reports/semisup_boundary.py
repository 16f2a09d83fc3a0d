"""Where a classifier of points in the plane draws the line, with the pool that it learned from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from evidentia._support.checks import as_array, check_unit_interval, shape_or_kind
from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import whole_number
from evidentia.reports.semisup_style import NOTE_SIZE, dot, legend_below, ood_colour, shortened
from evidentia.reports.style import (
    colour,
    ink,
    new_figure,
    paper,
    plain_text,
    point_marker,
    require_matplotlib,
    set_title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from evidentia.semisup import SemiSupervisedData

Predict = Callable[[Tensor], Tensor]

_POOL = "#8C8C8C"
_MOST_POINTS = 4000
_BATCH = 10_000
_MARGIN, _WIDE_MARGIN = 0.12, 0.6
_COLUMNS = 3
_TINT = 0.45


@dataclass(frozen=True)
class _Frame:
    """The part of the plane that is shown: its corners, and the places of a grid in it."""

    low: npt.NDArray[Any]
    high: npt.NDArray[Any]
    x: npt.NDArray[Any]
    y: npt.NDArray[Any]

    def holds(self, points: npt.NDArray[Any]) -> npt.NDArray[Any]:
        first, second = ((points[:, k] >= self.low[k]) & (points[:, k] <= self.high[k]) for k in (0, 1))
        both: npt.NDArray[Any] = np.logical_and(first, second)
        return both


def decision_boundary(
    predict: Predict,
    data: SemiSupervisedData,
    *,
    title: str | None = None,
    whole_pool: bool = False,
    resolution: int = 200,
) -> Figure:
    """Draw what a classifier of points in the plane predicts where; arguments are those of `decision_boundaries`.

    Example:
        >>> from evidentia.semisup import two_moons
        >>> data = two_moons("faraway", ratio=0.5)
        >>> def upper_or_lower(points):
        ...     p = torch.sigmoid(10 * (0.25 - points[:, 1]))
        ...     return torch.stack([1 - p, p], dim=1)
        >>> decision_boundary(upper_or_lower, data).axes[0].get_xlabel()
        '2,000 of 4,000 pool samples lie outside the frame'
    """
    return decision_boundaries({title or "": predict}, data, whole_pool=whole_pool, resolution=resolution)


@plain_text()
def decision_boundaries(
    predicts: Mapping[str, Predict],
    data: SemiSupervisedData,
    *,
    whole_pool: bool = False,
    resolution: int = 200,
) -> Figure:
    """Draw what several classifiers of points in the plane predict where, beside each other on one frame.

    The ground is the probability of class 1 or, of more than two classes, the most probable one. The frame is that of
    the samples known to be in distribution, since a pool may hold points that are far away and would press the rest
    into a corner; how many of the pool lie outside is written below. The accuracy on the test stands in the title.

    Args:
        predicts: functions from points, floating of shape `(n, 2)`, to probabilities of shape `(n, K)`, by title.
        data: with samples of two numbers each.
        whole_pool: whether the frame holds all of the pool.
        resolution: how many places of a row of the grid are asked for.

    Raises:
        EvidentiaError: if samples are not of two numbers, or a function gives something other than probabilities.

    Example:
        >>> import torch
        >>> from evidentia.semisup import two_moons
        >>> def above(points):
        ...     return torch.stack([points[:, 1] > 0.25, points[:, 1] <= 0.25], -1).float()
        >>> figure = decision_boundaries({"above or below": above}, two_moons("faraway", 0.5), resolution=20)
        >>> figure.axes[0].get_title()
        'above or below: 84.4% right on the test'
    """
    require_matplotlib()
    if data.sample_shape != (2,):
        raise EvidentiaError(
            f"a decision boundary is drawn in the plane, so samples must be of shape (2,), got {data.sample_shape}; "
            "pool_picture draws others"
        )
    if not predicts:
        raise EvidentiaError("at least one classifier is needed to draw a boundary, got none")
    whole_number(resolution, "resolution", 2)
    frame = _frame(data, whole_pool, resolution)
    columns = 2 if len(predicts) == 4 else min(len(predicts), _COLUMNS)
    rows = ceil(len(predicts) / columns)
    wide = 3.7 if columns > 1 else 5.2
    high = wide * float(np.clip((frame.high - frame.low)[1] / (frame.high - frame.low)[0], 0.4, 1.5))
    figure, axes = new_figure(
        rows=rows, columns=columns, width=columns * (wide + 0.5) + 1.1, height=rows * (high + 0.85) + 0.5
    )
    for ax, (title, predict) in zip(axes, predicts.items(), strict=False):
        ground = _draw_ground(ax, _ask(predict, _grid(frame, data), data, title), frame, data)
        _draw_samples(ax, data, frame)
        set_title(ax, _title(title, predict, data))
    for ax in axes[len(predicts) :]:
        ax.remove()
    if data.num_classes == 2:
        bar = figure.colorbar(ground, ax=axes[: len(predicts)], shrink=0.7, aspect=30, ticks=[0, 0.25, 0.5, 0.75, 1])
        bar.set_label(f"probability of {_name(data, 1)}", fontsize=9)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=NOTE_SIZE)
    legend_below(figure, _legend(data, frame))
    return figure


def _frame(data: SemiSupervisedData, whole_pool: bool, resolution: int) -> _Frame:
    known = [data.x_labeled, data.x_validation, data.x_test]
    margin = _MARGIN
    if whole_pool:
        known.append(data.x_unlabeled)
    elif not len(data.x_test):
        if data.is_ood is None:
            # A few labels are not the whole of the classes: more room about them.
            margin = _WIDE_MARGIN
        else:
            known.append(data.x_unlabeled[~data.is_ood])
    points = as_array(torch.cat(known).double())
    low, high = points.min(0), points.max(0)
    room = margin * np.maximum(high - low, 1e-3 * max(float(np.abs(points).max()), 1e-3))
    low, high = low - room, high + room
    return _Frame(low, high, *(np.linspace(low[axis], high[axis], resolution) for axis in (0, 1)))


def _grid(frame: _Frame, data: SemiSupervisedData) -> Tensor:
    places = np.stack(np.meshgrid(frame.x, frame.y), axis=-1).reshape(-1, 2)
    return torch.from_numpy(places).to(data.x_labeled)


@torch.no_grad()
def _ask(predict: Predict, points: Tensor, data: SemiSupervisedData, title: str) -> npt.NDArray[Any]:
    """The probabilities at some points, shape `(n, K)`."""
    found = []
    whose = f"the probabilities of {title!r}" if title else "the probabilities"
    for part in points.split(_BATCH):
        probs = predict(part)
        if not isinstance(probs, Tensor) or probs.shape != (len(part), data.num_classes):
            raise EvidentiaError(
                f"{whose} must be a tensor of shape ({len(part)}, {data.num_classes}) for {len(part)} points and "
                f"{data.num_classes} classes, got {shape_or_kind(probs)}"
            )
        # Rounding may leave a probability a little above 1.
        probs = torch.where((probs > 1) & (probs < 1 + 1e-5), 1.0, probs.double().cpu())
        check_unit_interval(probs, whose)
        found.append(as_array(probs))
    return np.concatenate(found)


def _draw_ground(ax: Axes, probs: npt.NDArray[Any], frame: _Frame, data: SemiSupervisedData) -> Any:
    from matplotlib.colors import LinearSegmentedColormap, ListedColormap, to_rgb

    shape = (len(frame.y), len(frame.x))
    ground: Any
    if data.num_classes == 2:
        shades = LinearSegmentedColormap.from_list("two", [_tinted(colour(0)), to_rgb(paper()), _tinted(colour(1))])
        surface = probs[:, 1].reshape(shape)
        ground = ax.contourf(frame.x, frame.y, surface, levels=np.linspace(0, 1, 21), cmap=shades, vmin=0, vmax=1)
    else:
        areas = ListedColormap([_tinted(colour(label)) for label in range(data.num_classes)])
        best = probs.argmax(1).reshape(shape)
        look: dict[str, Any] = {"cmap": areas, "vmin": -0.5, "vmax": data.num_classes - 0.5, "shading": "nearest"}
        ground = ax.pcolormesh(frame.x, frame.y, best, rasterized=True, **look)
    for label in range(1 if data.num_classes == 2 else 0, data.num_classes):
        lead = probs[:, label] - np.delete(probs, label, axis=1).max(1)
        # Where a class wins everywhere or nowhere there is no line to be drawn.
        if lead.min() < 0 < lead.max():
            ax.contour(frame.x, frame.y, lead.reshape(shape), levels=[0.0], colors=[ink()], linewidths=1.3, zorder=3)
    return ground


def _draw_samples(ax: Axes, data: SemiSupervisedData, frame: _Frame) -> None:
    pool = as_array(data.x_unlabeled)
    ood = np.zeros(len(pool), bool) if data.is_ood is None else as_array(data.is_ood)
    inside = frame.holds(pool)
    shown = np.flatnonzero(inside)
    if len(shown) > _MOST_POINTS:
        shown = np.sort(np.random.default_rng(0).permutation(shown)[:_MOST_POINTS])
    looks: list[tuple[npt.NDArray[Any], dict[str, Any]]] = [
        (~ood, {"marker": "o", "s": 6, "color": _POOL, "alpha": 0.55, "linewidths": 0}),
        (ood, {"marker": "x", "s": 11, "color": ood_colour(), "alpha": 0.65, "linewidths": 0.8}),
    ]
    for mask, look in looks:
        if (rows := shown[mask[shown]]).size:
            ax.scatter(pool[rows, 0], pool[rows, 1], zorder=2, **look)
    for label in range(data.num_classes):
        points = as_array(data.x_labeled[data.y_labeled == label])
        look = {"facecolor": colour(label), "edgecolor": ink(), "linewidth": 1.3}
        ax.scatter(points[:, 0], points[:, 1], s=75, marker=point_marker(label), zorder=4, **look)
    ax.set_xlim(frame.low[0], frame.high[0])
    ax.set_ylim(frame.low[1], frame.high[1])
    ax.set_aspect("equal")
    ax.tick_params(labelsize=NOTE_SIZE)
    ax.spines[:].set_alpha(0.3)
    if outside := int((~inside).sum()):
        note = f"{outside:,} of {len(pool):,} pool samples lie outside the frame"
        ax.set_xlabel(note, fontsize=NOTE_SIZE, loc="right", color=ink(), alpha=0.8)


def _title(title: str, predict: Predict, data: SemiSupervisedData) -> str | None:
    if not len(data.x_test):
        return title or None
    right = _ask(predict, data.x_test, data, title).argmax(1) == as_array(data.y_test)
    accuracy = f"{right.mean():.1%} right on the test"
    return f"{title}: {accuracy}" if title else accuracy


def _legend(data: SemiSupervisedData, frame: _Frame) -> list[Any]:
    marks = [
        dot(f"labeled {_name(data, label)}", point_marker(label), colour(label), ink(), size=8.0)
        for label in range(min(data.num_classes, 8))
    ]
    if data.is_ood is None:
        return [*marks, dot("pool", "o", _POOL, size=4.0)]
    marks.append(dot("pool, in distribution", "o", _POOL, size=4.0))
    if frame.holds(as_array(data.x_unlabeled[data.is_ood])).any():
        marks.append(dot("pool, out of distribution", "x", ood_colour(), size=5.0))
    return marks


def _name(data: SemiSupervisedData, label: int) -> str:
    return shortened(data.class_names[label]) if data.class_names else f"class {label}"


def _tinted(shade: str) -> tuple[float, float, float]:
    """The colour as thin paint on the paper, so that samples stand out from it."""
    from matplotlib.colors import to_rgb

    red, green, blue = (_TINT * np.array(to_rgb(shade)) + (1 - _TINT) * np.array(to_rgb(paper()))).tolist()
    return red, green, blue
