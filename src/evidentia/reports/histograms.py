"""One uncertainty in several groups of samples, such as right, wrong and out of distribution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from evidentia._support.checks import TensorLike, as_float_tensor, check_finite
from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import whole_number
from evidentia.reports.style import add_legend, check_by_name, colour, label_axes, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_histograms(
    values_by_group: Mapping[str, TensorLike],
    name: str,
    bins: int = 30,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the distribution of one uncertainty in every group, over each other and on the same bins.

    Heights are shares of the group, so that a small group can be compared with a large one.

    Args:
        values_by_group: the values of each group by its name, any shape, at least one value each.
        name: what is measured, for the axis.
        bins: how many bins; they span [0, 1] if all values lie in it, else the range of the values.
        ax: where to draw; by default on a figure of its own.
        title: a title above the axes.

    Example:
        >>> ax = plot_histograms({"right": [0.1, 0.2, 0.15], "OOD": [0.8, 0.9]}, "vacuity")
        >>> [text.get_text() for text in ax.get_legend().get_texts()]
        ['right (3)', 'OOD (2)']
    """
    check_by_name(values_by_group)
    if not values_by_group:
        raise EvidentiaError("a histogram needs at least one group of values, got none")
    bins = whole_number(bins, "bins", 1)
    groups = {}
    for group, values in values_by_group.items():
        flat = as_float_tensor(values, f"the values of {group!r}").detach().flatten()
        if not len(flat):
            raise EvidentiaError(f"the group {group!r} holds no values; leave it out")
        check_finite(flat, f"the values of {group!r}")
        groups[group] = flat.cpu().double().numpy()
    together = np.concatenate(list(groups.values()))
    in_unit = together.min() >= 0 and together.max() <= 1
    edges = np.histogram_bin_edges(together, bins, (0.0, 1.0) if in_unit else None)

    ax = new_axes((4.8, 3.2)) if ax is None else ax
    for index, (group, values) in enumerate(groups.items()):
        share = np.histogram(values, edges)[0] / len(values)
        shade = colour(index)
        ax.stairs(share, edges, fill=True, color=shade, alpha=0.25)
        ax.stairs(share, edges, color=shade, linewidth=1.4, label=f"{group} ({len(values):,})")
    label_axes(ax, name, "share of the group", title)
    ax.set_xlim(edges[0], edges[-1])
    ax.set_ylim(bottom=0)
    add_legend(ax)
    return ax
