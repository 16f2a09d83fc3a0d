"""A pool of vectors as points in the plane, coloured by weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from evidentia._support.checks import as_array
from evidentia.reports.semisup_style import NOTE_SIZE, shortened, trust_colours, usual_range
from evidentia.reports.style import MARKERS, ink, label_axes, paper, point_marker

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

    from evidentia.semisup import PoolReview

# More points than this hide each other, and an SVG of them grows without end.
MOST_POINTS = 4000
# Of the rarer of kept and thrown out so many are drawn at least, because they are what one looks for.
_AT_LEAST = 1000
_FITTED = 1000


@dataclass(frozen=True)
class Plane:
    """How samples become points: a shift and two directions, and what to write at the axes.

    Args:
        middle: shape `(D,)`.
        directions: shape `(D, 2)`.
        axes: names of the two axes.
    """

    middle: Tensor
    directions: Tensor
    axes: tuple[str, str]

    def points(self, x: Tensor) -> npt.NDArray[Any]:
        """The places of samples of any shape, shape `(n, 2)`."""
        flat = x.detach().cpu().flatten(1).double()
        return as_array((flat - self.middle) @ self.directions)


def find_plane(x: Tensor) -> Plane:
    """The plane itself for samples of two numbers, else that of the first two principal components.

    Samples of one number are placed by it, and the other place is left at 0.

    The components are those of at most 1,000 samples, evenly taken from all, which is enough for a picture. Numbers far
    beyond all others count as the largest of these, or a single sample would be the first component.
    """
    size = x[0].numel()
    if size <= 2:
        names = ("first input", "second input") if size == 2 else ("input", "weight")
        return Plane(torch.zeros(size).double(), torch.eye(size, 2).double(), names)
    few = x[torch.linspace(0, len(x) - 1, min(len(x), _FITTED)).long()].detach().cpu().flatten(1).double()
    few = torch.from_numpy(as_array(few).clip(*usual_range(as_array(few))))
    middle = few.mean(0)
    _, spread, directions = torch.linalg.svd(few - middle, full_matrices=False)
    # A single sample has one component only.
    missing = max(0, 2 - len(directions))
    directions = torch.cat([directions[:2], torch.zeros(missing, size).double()]).T
    # The sign of a component is arbitrary: its largest part is made positive, so that a picture repeats.
    largest = directions.gather(0, directions.abs().argmax(0, keepdim=True))
    variance = spread.square() / spread.square().sum().clamp(min=torch.finfo(torch.float64).tiny)
    shares = [*variance[:2].tolist(), 0.0, 0.0]
    axes = [
        f"{which} principal component ({share:.0%} of the variance)"
        for which, share in zip(("first", "second"), shares, strict=False)
    ]
    return Plane(middle, torch.where(largest < 0, -directions, directions), (axes[0], axes[1]))


def chosen_points(review: PoolReview) -> npt.NDArray[Any]:
    """The rows to draw: all, or at most `MOST_POINTS`, the same ones each time.

    Kept and thrown out are drawn in their proportion, except that the rarer of them is not thinned below 1,000.
    """
    kept = as_array(review.kept)
    if len(kept) <= MOST_POINTS:
        return np.arange(len(kept))
    rng = np.random.default_rng(0)
    groups = sorted((rng.permutation(np.flatnonzero(mask)) for mask in (kept, ~kept)), key=len)
    rarer, others = groups
    share = round(MOST_POINTS * len(rarer) / len(kept))
    rarer = rarer[: max(share, _AT_LEAST)]
    return np.sort(np.concatenate([rarer, others[: MOST_POINTS - len(rarer)]]))


def draw_points(ax: Axes, review: PoolReview, x: Tensor, labeled: tuple[Tensor, Tensor] | None) -> PathCollection:
    """Draw kept samples as dots and those thrown out as crosses, coloured by weight, and labeled samples larger.

    Samples of one number are drawn over it, at the height of their weight; labeled ones count in full.

    Args:
        ax: where to.
        review: of the pool.
        x: the pool, shape `(n, ...)`.
        labeled: labeled samples and their classes.

    Returns:
        Some of the points, for `draw_scale`.
    """
    x, labeled = _in_scale(review, x, labeled)
    plane, rows = find_plane(x), chosen_points(review)
    points = plane.points(x[torch.from_numpy(rows)])
    weights, kept = as_array(review.weights.float())[rows], as_array(review.kept)[rows]
    points, far = _within(points)
    if x[0].numel() == 1:
        points[:, 1] = weights
    look: dict[str, Any] = {"cmap": trust_colours(), "vmin": 0.0, "vmax": 1.0}
    for mask, marker in ((kept, "o"), (~kept, "x")):
        # A few among many are drawn larger, or they would not be found.
        size = float(np.clip(7_500 / max(int(mask.sum()), 1), 9.0, 40.0))
        outline = 0.0 if marker == "o" else 0.9 if size < 20 else 1.5
        drawn = ax.scatter(
            points[mask, 0],
            points[mask, 1],
            c=weights[mask],
            marker=marker,
            s=size,
            linewidths=outline,
            alpha=0.8,
            **look,
        )
    if labeled is not None:
        places = plane.points(labeled[0])
        if x[0].numel() == 1:
            places[:, 1] = 1.0
        for marker, labels, _ in labeled_groups(review, labeled[1]):
            mask = as_array(torch.isin(labeled[1], torch.tensor(labels)))
            edge: dict[str, Any] = {"facecolor": paper(), "edgecolor": ink(), "linewidth": 1.4}
            ax.scatter(places[mask, 0], places[mask, 1], s=70, marker=marker, zorder=4, **edge)
    notes = []
    if len(rows) < len(review):
        parts = f"{int(kept.sum()):,} kept, {int((~kept).sum()):,} thrown out"
        notes.append(f"{len(rows):,} of {len(review):,} samples drawn: {parts}")
    if far:
        notes.append(f"{far:,} far beyond the others, drawn at the edge")
    label_axes(ax, *plane.axes, "\n".join(notes) or None)
    if x[0].numel() == 1:
        ax.set_ylim(-0.03, 1.03)
    return drawn


def _in_scale(
    review: PoolReview, x: Tensor, labeled: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, tuple[Tensor, Tensor] | None]:
    """Samples of more than two numbers in the scale of training, lest the largest unit be the first component."""
    if review.scale is None or x[0].numel() <= 2:
        return x, labeled
    return review.scale.applied(x), None if labeled is None else (review.scale.applied(labeled[0]), labeled[1])


def labeled_groups(review: PoolReview, classes: Tensor) -> list[tuple[str, list[int], str]]:
    """The marker of each labeled class, and what to call it; one for all where there are more classes than markers.

    Example:
        >>> from evidentia.semisup import PoolReview
        >>> review = PoolReview(torch.ones(2), torch.tensor([0, 1]), torch.ones(2), class_names=("cat", "dog"))
        >>> labeled_groups(review, torch.tensor([0, 1, 1]))
        [('o', [0], 'labeled cat'), ('s', [1], 'labeled dog')]
    """
    labels = torch.unique(classes).tolist()
    if len(labels) > MARKERS:
        return [(point_marker(0), labels, f"labeled ({len(labels)} classes)")]
    known = review.class_names
    names = [known[label] if label < len(known) else str(label) for label in labels]
    # Names that are cut are to differ all the same.
    short = [shortened(name) for name in names]
    names = short if len(set(short)) == len(set(names)) else names
    return [
        (point_marker(n), [label], f"labeled {name}") for n, (label, name) in enumerate(zip(labels, names, strict=True))
    ]


def _within(points: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], int]:
    """The points, those far beyond all others moved to just outside of these, and how many they are."""
    low, high = usual_range(points)
    margin = 0.05 * (high - low)
    inside = points.clip(low - margin, high + margin)
    return inside, int((inside != points).any(1).sum())


def draw_scale(ax: Axes, drawn: PathCollection) -> None:
    """Say beside the points which colour is which weight."""
    bar = ax.figure.colorbar(drawn, ax=ax, shrink=0.6, aspect=30, pad=0.01, ticks=[0, 0.25, 0.5, 0.75, 1])
    bar.set_label("weight", fontsize=9)
    if bar.solids is not None:
        bar.solids.set_alpha(1)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=NOTE_SIZE)
