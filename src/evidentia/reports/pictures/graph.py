"""A graph in the plane by class and by uncertainty, and the curves of the task (thesis figures 2.4 to 2.6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from evidentia.experiments.shown import trained_graph
from evidentia.reports.curves import plot_precision_recall, plot_roc
from evidentia.reports.graphs import MAPPED, GraphView, Panel, legend_under, view_graph
from evidentia.reports.pictures.registry import PICTURES, Group, NetworkPictures
from evidentia.reports.report import Drawing
from evidentia.reports.style import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MAP, _CURVE = (3.1, 2.6), (4.4, 5.6)


@dataclass(frozen=True)
class _Seen:
    task: str
    view: GraphView


@PICTURES.register("graph")
class GraphPictures(NetworkPictures[_Seen]):
    """The first hidden layer by t-SNE, and ROC and precision-recall curves of what the table has the areas of."""

    def train(self, configuration: Mapping[str, Any], seed: int) -> _Seen:
        """Train the classifier and place its nodes in the plane."""
        found = trained_graph(configuration, seed)
        return _Seen(configuration.get("task", "misclassification"), view_graph(found.classifier, found.split, seed))

    def groups(self, trained: Mapping[str, _Seen]) -> list[Group]:
        """For every network its maps, and then its curves."""
        groups = []
        for name, seen in trained.items():
            maps = [(partial(_draw_map, panel), f"{name}: {title}") for title, panel in seen.view.maps.items()]
            text = "Every point is a node, placed by the first hidden layer (t-SNE); training nodes are larger."
            if bool(seen.view.unknown.any()):
                text += " Nodes of class none are of the classes that were never seen."
            groups.append(Group(f"Nodes in the plane: {name}", text, maps, small=True))
            if curves := _curves(name, seen):
                groups.append(Group(f"Telling by uncertainty: {name}", "", curves))
        return groups


def _draw_map(panel: Panel) -> Figure:
    figure, (ax,) = new_figure(width=_MAP[0], height=_MAP[1])
    panel(ax=ax)
    return figure


def _curves(name: str, seen: _Seen) -> list[Drawing]:
    """As the table has it: unknown nodes by high uncertainty, or right labels by low uncertainty."""
    view = seen.view
    sought, sign = (view.unknown, 1.0) if seen.task == "ood" else (view.right, -1.0)
    sought = sought[view.tested]
    if not bool(sought.any()) or bool(sought.all()):
        return []
    scores = {
        uncertainty: sign * view.pred[uncertainty].cpu()[view.tested]
        for uncertainty in MAPPED
        if uncertainty in view.pred.uncertainties
    }
    what = "nodes of unknown classes by high" if seen.task == "ood" else "nodes labelled right by low"
    kinds: dict[str, Callable[..., Axes]] = {
        "ROC curves": plot_roc,
        "Precision over recall": plot_precision_recall,
    }
    return [
        (partial(_draw_curve, plot, scores, sought.long()), f"{kind} of finding {what} uncertainty: {name}.")
        for kind, plot in kinds.items()
    ]


def _draw_curve(plot: Callable[..., Axes], scores: Mapping[str, Any], sought: Any) -> Figure:
    figure, (ax,) = new_figure(width=_CURVE[0], height=_CURVE[1])
    legend_under(plot(scores, sought, ax))
    return figure
