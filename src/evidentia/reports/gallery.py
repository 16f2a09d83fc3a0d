"""Rows of small images with captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia.reports.style import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_images(rows: Mapping[str, Tensor], captions: Mapping[str, Sequence[str]]) -> Figure:
    """Draw rows of grey-scale images, each row with a title and each image with a caption.

    Args:
        rows: images of shape `(number, height, width)` by the title of their row; as many in every row.
        captions: a caption for each image, by the title of its row.

    Example:
        >>> import torch
        >>> figure = plot_images({"zeros": torch.zeros(3, 8, 8)}, {"zeros": ["a", "b", "c"]})
        >>> len(figure.axes)
        3
    """
    counts = {len(images) for images in rows.values()}
    if len(counts) != 1 or 0 in counts:
        raise EvidentiaError(f"every row needs the same number of images, at least one; got {sorted(counts)}")
    (count,) = counts
    figure, axes = new_figure(rows=len(rows), columns=count, width=1.2 * count, height=1.7 * len(rows))
    cells = iter(axes)
    for title, images in rows.items():
        for index, (image, caption) in enumerate(zip(images, captions[title], strict=True)):
            ax = next(cells)
            ax.imshow(image.detach().cpu().numpy(), cmap="gray_r", vmin=0)
            ax.set_xticks([])
            ax.set_yticks([])
            ax.set_xlabel(caption, fontsize=7)
            if index == 0:
                ax.set_title(title, loc="left", fontsize=10, fontweight="bold")
    return figure
