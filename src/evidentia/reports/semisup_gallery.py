"""Galleries of the images of a pool: the most trusted of each predicted class, and the least trusted of all."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from evidentia._support.checks import as_array
from evidentia.reports.semisup_style import NOTE_SIZE, kept_colour, shortened, thrown_colour, usual_range
from evidentia.reports.style import set_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from evidentia.semisup import PoolReview

COLUMNS = 6
# Inches that a cell is wide, so that a caption of 0.00* fits under it.
CELL = 0.62
_MOST_ROWS, _FEWEST_ROWS = 10, 6
_GAP = 0.14
_LINE = 0.24
_SHORT = 3


@dataclass(frozen=True)
class Gallery:
    """Which samples to show, in rows of `COLUMNS`.

    Args:
        title: what they are.
        rows: the samples of each row.
        names: a name beside each row, or nothing.
        captions: under each sample, row by row.
    """

    title: str
    rows: list[list[int]]
    names: list[str]
    captions: list[list[str]]

    @property
    def lines(self) -> int:
        """The largest number of lines of a caption."""
        return max(caption.count("\n") for row in self.captions for caption in row) + 1


def galleries(review: PoolReview) -> tuple[Gallery, Gallery]:
    """The most trusted samples of each predicted class, and the least trusted of all, in about as many rows.

    A class has several rows if there are few classes, one if there are up to 10, and else fewer images: 3, 2 or 1.
    If there are too many classes even for that, those that are predicted most often are shown. Where clusters share
    their weights, the least trusted samples would all be of one cluster, so that a row is given to each instead.
    """
    most = _most_trusted(review)
    return most, _least_trusted(review, max(len(most.rows), _FEWEST_ROWS))


def cell_height(images: Tensor, lines: int) -> float:
    """The height of a cell with its caption, where its width is 1."""
    return _sides(images)[1] + _GAP + _LINE * lines


def draw_gallery(ax: Axes, gallery: Gallery, review: PoolReview, images: Tensor, rows: int, lines: int) -> None:
    """Draw the images in a frame each that says whether it was kept.

    Args:
        ax: where to.
        gallery: what to draw.
        review: of the pool.
        images: of the whole pool, shape `(n, C, H, W)`.
        rows: how many rows to leave room for, so that galleries beside each other are alike.
        lines: how many lines to leave for a caption, for the same reason.
    """
    from matplotlib.patches import Rectangle

    wide, high = _sides(images)
    pitch = cell_height(images, lines)
    shown = torch.tensor([sample for row in gallery.rows for sample in row])
    pictures = iter(_pictures(images[shown], brightness(images)))
    for line, (row, captions) in enumerate(zip(gallery.rows, gallery.captions, strict=True)):
        for column, (sample, caption) in enumerate(zip(row, captions, strict=True)):
            left, top = column * (wide + _GAP), line * pitch
            # The vertical scale runs downwards, as that of images does.
            place = (left, left + wide, top + high, top)
            ax.imshow(next(pictures), cmap="gray_r", vmin=0, vmax=1, extent=place, interpolation="nearest")
            shade = kept_colour() if bool(review.kept[sample]) else thrown_colour()
            ax.add_patch(Rectangle((left, top), wide, high, fill=False, edgecolor=shade, linewidth=1.4))
            ax.text(left + wide / 2, top + high + 0.06, caption, ha="center", va="top", fontsize=7, linespacing=1.05)
    ax.set_xlim(-0.05, COLUMNS * (wide + _GAP) - _GAP + 0.05)
    ax.set_ylim(rows * pitch - _GAP, -0.05)
    ax.set_xticks([])
    ax.set_yticks([line * pitch + high / 2 for line in range(len(gallery.names))], gallery.names, fontsize=9)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_aspect("equal", anchor="N")
    set_title(ax, gallery.title)
    if images.shape[1] not in (1, 3):
        ax.set_xlabel(f"grey is the mean of {images.shape[1]} channels", fontsize=NOTE_SIZE)


def _most_trusted(review: PoolReview) -> Gallery:
    order = review.most_trusted(len(review))
    sizes = torch.bincount(review.labels, minlength=review.num_classes)
    present = sizes.nonzero().flatten().tolist()
    by_class = {label: order[review.labels[order] == label].tolist() for label in present}
    title = "most trusted, by predicted class"
    if len(present) <= _MOST_ROWS:
        return _rows_of_classes(review, by_class, title)
    most = _MOST_ROWS * COLUMNS
    each = next((count for count in (3, 2) if count * len(present) <= most), 1)
    if len(present) > most:
        often = set(torch.argsort(sizes, descending=True, stable=True)[:most].tolist())
        by_class = {label: samples for label, samples in by_class.items() if label in often}
        title = f"most trusted of {most} of {len(present)} classes"
    rows = _in_rows([sample for samples in by_class.values() for sample in samples[:each]])
    captions = [[_caption(review, sample, named=True) for sample in row] for row in rows]
    return Gallery(title, rows, [], captions)


def _least_trusted(review: PoolReview, lines: int) -> Gallery:
    order = review.least_trusted(len(review))
    title, names = "least trusted, with the predicted class", []
    rows = _in_rows(order[: COLUMNS * lines].tolist())
    if review.clusters is not None and _are_shared(review.weights, review.clusters):
        worst = [row["cluster"] for row in reversed(review.by_cluster())][:lines]
        inside = {cluster: order[review.clusters[order] == cluster].tolist() for cluster in worst}
        each = COLUMNS * (lines // len(worst))
        by_cluster = {cluster: _in_rows(samples[:each]) for cluster, samples in inside.items()}
        rows = [row for some in by_cluster.values() for row in some]
        names = [f"#{cluster}" * (line == 0) for cluster, some in by_cluster.items() for line in range(len(some))]
        title = "least trusted clusters, with the predicted class"
    captions = [[_caption(review, sample, named=True) for sample in row] for row in rows]
    return Gallery(title, rows, names, captions)


def _are_shared(weights: Tensor, clusters: Tensor) -> bool:
    pairs = torch.stack([clusters.double(), weights.double()])
    return int(torch.unique(pairs, dim=1).shape[1]) == len(torch.unique(clusters))


def _rows_of_classes(review: PoolReview, by_class: dict[int, list[int]], title: str) -> Gallery:
    each = COLUMNS * max(1, _FEWEST_ROWS // len(by_class))
    rows, names = [], []
    for label, samples in by_class.items():
        lines = _in_rows(samples[:each])
        rows += lines
        names += [shortened(review.class_name(label))] + [""] * (len(lines) - 1)
    captions = [[_caption(review, sample, named=False) for sample in row] for row in rows]
    return Gallery(title, rows, names, captions)


def _in_rows(samples: list[int]) -> list[list[int]]:
    return [samples[line * COLUMNS : (line + 1) * COLUMNS] for line in range(ceil(len(samples) / COLUMNS))]


def _caption(review: PoolReview, sample: int, named: bool) -> str:
    star = "*" if review.is_ood is not None and bool(review.is_ood[sample]) else ""
    weight = f"{float(review.weights[sample]):.2f}{star}"
    if not named:
        return weight
    name = review.class_name(int(review.labels[sample]))
    # Names of all classes are of one length or another, but all captions must have as many lines.
    short = all(len(review.class_name(label)) <= _SHORT for label in range(review.num_classes))
    return f"{name}: {weight}" if short else f"{shortened(name, 10)}\n{weight}"


def _sides(images: Tensor) -> tuple[float, float]:
    """Width and height of an image where the longer is 1."""
    height, width = images.shape[2:]
    longer = max(height, width)
    return width / longer, height / longer


def brightness(images: Tensor) -> tuple[float, float]:
    """What is drawn as 0 and as 1: these, or the range of the pool, but for images far beyond all others.

    Example:
        >>> pool = torch.rand(100, 1, 8, 8)
        >>> pool[0] = -9999
        >>> brightness(pool), brightness(255 * pool)[1] > 200
        ((0.0, 1.0), True)
    """
    values = _seen(images.detach()).flatten(1)
    extremes = as_array(torch.cat([values.amin(1), values.amax(1)]).double())
    low, high = (float(edge[0]) for edge in usual_range(extremes[:, None]))
    return (low, high) if low < 0 or high > 1 else (0.0, 1.0)


def _seen(images: Tensor) -> Tensor:
    """Colours, or a single channel of grey."""
    return images if images.shape[1] == 3 else images.mean(1, keepdim=True)


def _pictures(images: Tensor, scale: tuple[float, float]) -> npt.NDArray[Any]:
    """Of shape `(n, H, W)` or `(n, H, W, 3)` in [0, 1], all images by one scale."""
    low, high = scale
    values = (as_array(_seen(images.detach().double())) - low) / max(high - low, np.finfo(float).tiny)
    values = values.clip(0, 1)
    return values.transpose(0, 2, 3, 1) if values.shape[1] == 3 else values[:, 0]
