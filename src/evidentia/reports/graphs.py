"""The nodes of a graph as points in the plane, and pictures of what a graph classifier is unsure of."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from evidentia._support.checks import TensorLike, as_array, as_float_tensor, check_finite, check_unit_interval
from evidentia._support.errors import EvidentiaError, MissingExtraError
from evidentia.graphs.checks import check_labels, check_mask
from evidentia.reports.curves import plot_precision_recall, plot_roc
from evidentia.reports.histograms import plot_histograms
from evidentia.reports.style import (
    PALETTE,
    colour,
    ink,
    new_axes,
    new_figure,
    require_matplotlib,
    save_figure,
    set_title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from torch_geometric.data import Data

    from evidentia.graphs import GraphClassifier
    from evidentia.prediction import Prediction

# The uncertainties that lie in [0, 1], in the order of the thesis' figures 2.4 to 2.6.
_MAPPED = ("vacuity", "dissonance", "entropy", "aleatoric", "epistemic")

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
        ['0', '1']
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


def graph_pictures(model: GraphClassifier, data: Data, folder: str | Path, seed: int = 0) -> list[Path]:
    """Draw what a graph classifier learned and what it is unsure of.

    - `embedding.png`: the hidden layer of all nodes in the plane (t-SNE), coloured by class, by predicted class and
      by each uncertainty; training nodes are larger.
    - `uncertainties.png`: every uncertainty of test nodes labelled right, labelled wrong and out of distribution.
    - `curves.png`: how well each uncertainty finds the nodes out of distribution if there are some, else those that
      are labelled wrong. It is left out if there is nothing to find, or nothing else.

    Args:
        model: a trained classifier.
        data: the graph it was trained on, with `y` (-1 where unknown) and `train_mask`; where it has an `ood_mask`,
            that marks the nodes out of distribution. Without a `test_mask`, all nodes outside training and validation
            are tested. Tested nodes without label are left out unless they are out of distribution.
        folder: where to; it is made if need be.
        seed: fixes the places of the points.

    Returns:
        The paths of the pictures.
    """
    require_matplotlib()
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "demo", "drawing the nodes of a graph") from error
    pred = model.predict()
    y = check_labels(data, len(pred))
    train = check_mask(data, "train_mask", len(pred))
    unknown = _mask(data, "ood_mask", len(pred))
    tested = _tested(data, y, train, unknown)
    # Nodes out of distribution have none of the classes that the model knows, whatever number `y` gives them.
    known = torch.where(unknown, -1, y.long()).cpu()

    figures = {
        "embedding": _embedding(_in_the_plane(TSNE, model.embed(), seed), pred, known, train.cpu()),
        "uncertainties": _histograms(pred, known, unknown.cpu(), tested.cpu()),
        "curves": _curves(pred, known, unknown.cpu(), tested.cpu()),
    }
    paths = []
    for name, figure in figures.items():
        if figure is not None:
            paths.append(Path(folder) / f"{name}.png")
            save_figure(figure, paths[-1])
    return paths


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
    ax.legend(
        handles,
        [str(label) if label >= 0 else "none" for label in shown],
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


def _mask(data: Data, name: str, nodes: int) -> Tensor:
    """The mask of that name, or one of no node."""
    if getattr(data, name, None) is None:
        return torch.zeros(nodes, dtype=torch.bool, device=data.y.device)
    return check_mask(data, name, nodes)


def _tested(data: Data, y: Tensor, train: Tensor, unknown: Tensor) -> Tensor:
    judged = (y >= 0) | unknown
    if getattr(data, "test_mask", None) is None:
        tested = judged & ~train & ~_mask(data, "val_mask", len(y))
    else:
        tested = judged & check_mask(data, "test_mask", len(y))
    if not bool(tested.any()):
        raise EvidentiaError("there is no test node with a label, so nothing to compare the predictions with")
    return tested


def _in_the_plane(tsne: Any, hidden: Tensor, seed: int) -> npt.NDArray[Any]:
    check_finite(hidden, "the embedding")
    rows = as_array(hidden.float().reshape(len(hidden), -1))
    # Principal components start t-SNE well, but there must be two of them that are not all the same.
    spread = rows.shape[1] > 1 and float(rows.std(0).max()) > 0
    perplexity = min(30.0, max(1.0, (len(rows) - 1) / 3))
    method = tsne(init="pca" if spread else "random", random_state=seed, perplexity=perplexity)
    points: npt.NDArray[Any] = method.fit_transform(rows)
    return points


def _embedding(points: npt.NDArray[Any], pred: Prediction, known: Tensor, train: Tensor) -> Figure:
    shown = [name for name in _MAPPED if name in pred.uncertainties]
    count = 2 + len(shown)
    columns = min(4, count)
    rows = ceil(count / columns)
    figure, axes = new_figure(rows=rows, columns=columns, width=3.5 * columns, height=2.9 * rows)
    plot_embedding(points, known, train, axes[0], "class", categories=True)
    plot_embedding(points, pred.labels, train, axes[1], "predicted class", categories=True)
    for name, ax in zip(shown, axes[2:], strict=False):
        plot_embedding(points, pred[name], train, ax, name)
    for ax in axes[count:]:
        ax.remove()
    return figure


def _histograms(pred: Prediction, known: Tensor, unknown: Tensor, tested: Tensor) -> Figure:
    right = pred.labels.cpu() == known
    groups = {
        "right": tested & right,
        "wrong": tested & ~right & ~unknown,
        "out of distribution": tested & unknown,
    }
    count = len(pred.uncertainties)
    columns = min(3, count)
    rows = ceil(count / columns)
    figure, axes = new_figure(rows=rows, columns=columns, width=4.2 * columns, height=3.0 * rows)
    for (name, values), ax in zip(pred.uncertainties.items(), axes, strict=False):
        by_group = {group: values.cpu()[chosen] for group, chosen in groups.items() if bool(chosen.any())}
        plot_histograms(by_group, _words(name), ax=ax)
    for ax in axes[count:]:
        ax.remove()
    return figure


def _curves(pred: Prediction, known: Tensor, unknown: Tensor, tested: Tensor) -> Figure | None:
    sought, title = unknown[tested], "finding nodes out of distribution"
    if not bool(sought.any()):
        sought, title = (pred.labels.cpu() != known)[tested], "finding wrong labels"
    if not bool(sought.any()) or bool(sought.all()):
        return None
    scores = {_words(name): values.cpu()[tested] for name, values in pred.uncertainties.items()}
    figure, axes = new_figure(columns=2, width=9.0, height=6.6)
    plot_roc(scores, sought.long(), axes[0], title)
    plot_precision_recall(scores, sought.long(), axes[1], title)
    for ax in axes:
        # So many names would hide a curve; below the axes they do not.
        if (legend := ax.get_legend()) is not None:
            legend.set_loc("upper center")
            legend.set_bbox_to_anchor((0.5, -0.13), ax.transAxes)
    return figure


def _words(name: str) -> str:
    return name.replace("_", " ")
