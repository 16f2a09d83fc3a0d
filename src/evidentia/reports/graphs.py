"""Pictures of what a graph classifier learned, and of what it is unsure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy.typing as npt
import torch
from torch import Tensor

from evidentia._support.checks import as_array, check_finite
from evidentia._support.errors import EvidentiaError
from evidentia._support.extras import from_extra
from evidentia.graphs.checks import check_labels, check_mask
from evidentia.reports.curves import plot_precision_recall, plot_roc
from evidentia.reports.embedding import plot_embedding
from evidentia.reports.histograms import plot_histograms
from evidentia.reports.style import check_picture, new_figure, require_matplotlib, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from torch_geometric.data import Data

    from evidentia.graphs import GraphClassifier
    from evidentia.prediction import Prediction

Panel: TypeAlias = Callable[..., "Axes"]
"""Draws on the `ax` that it is given."""

# The uncertainties that lie in [0, 1], in the order of the thesis' figures 2.4 to 2.6.
MAPPED = ("vacuity", "dissonance", "entropy", "aleatoric", "epistemic")


@dataclass(frozen=True)
class GraphView:
    """What there is to see of a trained graph classifier, for all nodes.

    Attributes:
        points: the hidden layer in the plane, shape `(N, 2)`.
        pred: the prediction.
        known: classes, -1 where they are unknown or none that the model knows.
        train: which nodes it was trained on.
        unknown: which nodes are out of distribution.
        tested: which nodes are tested.
    """

    points: npt.NDArray[Any]
    pred: Prediction
    known: Tensor
    train: Tensor
    unknown: Tensor
    tested: Tensor

    @property
    def right(self) -> Tensor:
        """Which nodes are labelled right."""
        return self.pred.labels.cpu() == self.known

    @property
    def maps(self) -> dict[str, Panel]:
        """What colours the points, by title: class, predicted class and each uncertainty; training nodes are larger."""
        classes = {"class": self.known, "predicted class": self.pred.labels}
        panels: dict[str, Panel] = {
            title: partial(plot_embedding, self.points, labels, self.train, title=title, categories=True)
            for title, labels in classes.items()
        }
        shown = [name for name in MAPPED if name in self.pred.uncertainties]
        return panels | {
            name: partial(plot_embedding, self.points, self.pred[name], self.train, title=name) for name in shown
        }


def view_graph(model: GraphClassifier, data: Data, seed: int = 0) -> GraphView:
    """Look at a trained classifier; the arguments are those of `graph_pictures`."""
    require_matplotlib()
    tsne = _require_tsne()
    pred = model.predict(data)
    y = check_labels(data, len(pred))
    train = check_mask(data, "train_mask", len(pred))
    unknown = _mask(data, "ood_mask", len(pred))
    tested = _tested(data, y, train, unknown)
    # Nodes out of distribution have none of the classes that the model knows, whatever number `y` gives them.
    known = torch.where(unknown, -1, y.long())
    points = _in_the_plane(tsne, model.embed(data), seed)
    return GraphView(points, pred, *(part.cpu() for part in (known, train, unknown, tested)))


def graph_pictures(model: GraphClassifier, data: Data, folder: str | Path, seed: int = 0) -> list[Path]:
    """Draw what a graph classifier learned and what it is unsure of.

    - `embedding.png`: the hidden layer of all nodes in the plane (t-SNE), coloured by class, by predicted class and
      by each uncertainty; training nodes are larger.
    - `uncertainties.png`: every uncertainty of test nodes labelled right, labelled wrong and out of distribution.
    - `curves.png`: how well each uncertainty finds the nodes out of distribution if there are some, else those that
      are labelled wrong. It is left out if there is nothing to find, or nothing else.

    Args:
        model: a trained classifier.
        data: the graph it was trained on or another, with `y` (-1 where unknown) and `train_mask`; where it has an
            `ood_mask`, that marks the nodes out of distribution. Without a `test_mask`, all nodes outside training and
            validation are tested. Tested nodes without label are left out unless they are out of distribution.
        folder: where to; it is made if need be.
        seed: fixes the places of the points.

    Returns:
        The paths of the pictures.

    Example:
        >>> import tempfile
        >>> from evidentia.graphs import GraphClassifier, citation_graph
        >>> data = citation_graph(nodes=200)
        >>> model = GraphClassifier("s-gcn", epochs=5, progress=False).fit(data)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in graph_pictures(model, data, folder)]
        ['embedding.png', 'uncertainties.png', 'curves.png']
    """
    return _save(view_graph(model, data, seed), lambda name: Path(folder) / f"{name}.png")


def graph_picture(model: GraphClassifier, data: Data, path: str | Path, seed: int = 0) -> list[Path]:
    """Draw what `graph_pictures` draws to files of one's own name: the embedding, and the other two beside it.

    Args:
        model: a trained classifier.
        data: the graph it was trained on.
        path: of the embedding, such as `run.svg`; the others are `run-uncertainties.svg` and `run-curves.svg`.
        seed: fixes the places of the points.

    Returns:
        The paths of the pictures.

    Example:
        >>> import tempfile
        >>> from evidentia.graphs import GraphClassifier, citation_graph
        >>> data = citation_graph(nodes=200)
        >>> model = GraphClassifier("s-gcn", epochs=5, progress=False).fit(data)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in graph_picture(model, data, f"{folder}/run.png")]
        ['run.png', 'run-uncertainties.png', 'run-curves.png']
    """
    path = Path(path)
    return _save(
        view_graph(model, data, seed),
        lambda name: path if name == "embedding" else path.with_name(f"{path.stem}-{name}{path.suffix}"),
    )


def check_graph_picture(path: str | Path) -> None:
    """See that `graph_picture` could draw and write, before the training that it is to show."""
    check_picture(path)
    _require_tsne()


def _save(view: GraphView, where: Callable[[str], Path]) -> list[Path]:
    figures = {"embedding": _embedding(view), "uncertainties": _histograms(view), "curves": _curves(view)}
    paths = []
    for name, figure in figures.items():
        if figure is not None:
            paths.append(where(name))
            save_figure(figure, paths[-1])
    return paths


def _require_tsne() -> Any:
    with from_extra("scikit-learn", "demo", "drawing the nodes of a graph"):
        from sklearn.manifold import TSNE
    return TSNE


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


def _embedding(view: GraphView) -> Figure:
    panels = view.maps
    columns = min(4, len(panels))
    rows = ceil(len(panels) / columns)
    figure, axes = new_figure(rows=rows, columns=columns, width=3.5 * columns, height=2.9 * rows)
    for panel, ax in zip(panels.values(), axes, strict=False):
        panel(ax=ax)
    for ax in axes[len(panels) :]:
        ax.remove()
    return figure


def _histograms(view: GraphView) -> Figure:
    groups = {
        "right": view.tested & view.right,
        "wrong": view.tested & ~view.right & ~view.unknown,
        "out of distribution": view.tested & view.unknown,
    }
    count = len(view.pred.uncertainties)
    columns = min(3, count)
    rows = ceil(count / columns)
    figure, axes = new_figure(rows=rows, columns=columns, width=4.2 * columns, height=3.0 * rows)
    for (name, values), ax in zip(view.pred.uncertainties.items(), axes, strict=False):
        by_group = {group: values.cpu()[chosen] for group, chosen in groups.items() if bool(chosen.any())}
        plot_histograms(by_group, _words(name), ax=ax)
    for ax in axes[count:]:
        ax.remove()
    return figure


def _curves(view: GraphView) -> Figure | None:
    sought, title = view.unknown[view.tested], "finding nodes out of distribution"
    if not bool(sought.any()):
        sought, title = ~view.right[view.tested], "finding wrong labels"
    if not bool(sought.any()) or bool(sought.all()):
        return None
    scores = {_words(name): values.cpu()[view.tested] for name, values in view.pred.uncertainties.items()}
    figure, axes = new_figure(columns=2, width=9.0, height=6.6)
    for ax, plot in zip(axes, (plot_roc, plot_precision_recall), strict=True):
        plot(scores, sought.long(), ax, title)
        legend_under(ax)
    return figure


def legend_under(ax: Axes) -> None:
    """Move the legend below the axes, where so many names hide no curve."""
    if (legend := ax.get_legend()) is not None:
        legend.set_loc("upper center")
        legend.set_bbox_to_anchor((0.5, -0.13), ax.transAxes)


def _words(name: str) -> str:
    return name.replace("_", " ")
