"""Points in the plane, coloured by a class or by an uncertainty."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from evidentia._support.checks import TensorLike, as_array, as_float_tensor, check_finite, check_unit_interval
from evidentia._support.errors import EvidentiaError
from evidentia.reports.style import PALETTE, colour, ink, new_axes, paper, set_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Past the end of the palette colours come again, each time with another marker: 48 classes can be told apart.
_MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
_NO_CLASS = "#9A9A9A"
_LEGEND_ROWS = 12


def plot_embedding(
    points: TensorLike,
    values: TensorLike,
    train_mask: TensorLike | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    categories: bool = False,
) -> Axes:
    """Draw points in the plane, coloured by a class or by an uncertainty.

    Classes get the colours of the palette, by their number; from the seventh on the colours come again with another
    marker. Uncertainties get a colour bar from the smallest to the largest of them.

    Args:
        points: shape `(N, 2)`.
        values: shape `(N,)`: uncertainties in [0, 1], or classes from 0 on, with -1 for none.
        train_mask: shape `(N,)`, True for training nodes, which are drawn larger and with an outline.
        ax: where to draw; by default on a figure of its own.
        title: a title above the axes.
        categories: whether the values are classes.

    Example:
        >>> ax = plot_embedding([[0, 0], [1, 0], [1, 1]], [0, 1, 1], [True, False, False], categories=True)
        >>> [text.get_text() for text in ax.get_legend().get_texts()]
        ['0', '1', 'trained on']
    """
    places = as_array(_checked(points, "points", (2,)))
    given = _checked(values, "values")
    if len(given) != len(places):
        raise EvidentiaError(f"every point needs a value, got {len(places)} points and {len(given)} values")
    trained = np.zeros(len(places), bool)
    if train_mask is not None:
        trained = as_array(_checked(train_mask, "train_mask")).astype(bool)
    if len(trained) != len(places):
        raise EvidentiaError(f"every point needs an entry of train_mask, got {len(places)} points and {len(trained)}")

    if categories:
        if bool((given != given.round()).any()) or bool((given < -1).any()):
            raise EvidentiaError("classes must be whole numbers from 0 on, or -1 for none")
        ax = new_axes() if ax is None else ax
        _draw_classes(ax, places, as_array(given).astype(int), trained)
    else:
        check_unit_interval(given, "values")
        ax = new_axes() if ax is None else ax
        _draw_uncertainty(ax, places, as_array(given), trained)
    ax.set_xticks([])
    ax.set_yticks([])
    set_title(ax, title)
    return ax


def _checked(values: TensorLike, name: str, further: tuple[int, ...] = ()) -> Tensor:
    tensor = as_float_tensor(values, name).detach().cpu().double()
    if tensor.ndim != 1 + len(further) or tuple(tensor.shape[1:]) != further or not len(tensor):
        shape = ", ".join(["N", *map(str, further)]) if further else "N,"
        raise EvidentiaError(f"{name} must have shape ({shape}) with at least one entry, got {tuple(tensor.shape)}")
    check_finite(tensor, name)
    return tensor


def _draw_classes(ax: Axes, places: npt.NDArray[Any], classes: npt.NDArray[Any], trained: npt.NDArray[Any]) -> None:
    from matplotlib.lines import Line2D

    # Classes that share a marker are drawn together, in the order of the nodes, so that none hides the others.
    turn = np.where(classes < 0, -1, classes // len(PALETTE))
    shades = np.array([_shade(label) for label in classes])
    for group in np.unique(turn):
        _scatter(ax, places, trained, shades, turn == group, _marker(int(group)))
    shown = sorted(set(classes.tolist()), key=lambda label: (label < 0, label))
    handles = [
        Line2D([], [], linestyle="", marker=_marker(label // len(PALETTE)), color=_shade(label), markersize=5.5)
        for label in shown
    ]
    names = [str(label) if label >= 0 else "none" for label in shown]
    if trained.any():
        look: dict[str, Any] = {"color": paper(), "markeredgecolor": ink(), "markeredgewidth": 0.8, "markersize": 6.5}
        handles.append(Line2D([], [], linestyle="", marker="o", **look))
        names.append("trained on")
    ax.legend(
        handles,
        names,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.02),
        ncols=ceil(len(handles) / _LEGEND_ROWS),
        frameon=False,
        fontsize=8,
        handletextpad=0.1,
        columnspacing=0.8,
    )


def _draw_uncertainty(ax: Axes, places: npt.NDArray[Any], values: npt.NDArray[Any], trained: npt.NDArray[Any]) -> None:
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    low, high = float(values.min()), float(values.max())
    scale = ScalarMappable(Normalize(*((low, high) if low < high else (0.0, 1.0))), colormaps["viridis"])
    _scatter(ax, places, trained, scale.to_rgba(values), np.ones(len(places), bool))
    # Axes of its own would drift away from the points where a panel above has a wide legend.
    bar = ax.figure.colorbar(scale, cax=ax.inset_axes((1.02, 0.0, 0.035, 1.0)))
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8)


def _scatter(
    ax: Axes,
    places: npt.NDArray[Any],
    trained: npt.NDArray[Any],
    shades: npt.NDArray[Any],
    chosen: npt.NDArray[Any],
    marker: str = "o",
) -> None:
    size = float(np.clip(12_000 / len(places), 5.0, 16.0))
    x, y = places.T
    for nodes, area, alpha, outline in ((~trained, size, 0.8, 0.0), (trained, 3 * size, 1.0, 0.8)):
        if (shown := chosen & nodes).any():
            look = {"s": area, "c": shades[shown], "alpha": alpha, "linewidths": outline, "edgecolors": ink()}
            ax.scatter(x[shown], y[shown], marker=marker, zorder=2 + outline, **look)


def _shade(label: int) -> str:
    return colour(label) if label >= 0 else _NO_CLASS


def _marker(turn: int) -> str:
    return _MARKERS[turn % len(_MARKERS)] if turn >= 0 else "o"
