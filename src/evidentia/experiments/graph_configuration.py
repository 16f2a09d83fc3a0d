"""Everything that the figures of a graph task depend on, whether it was given or is usual."""

from __future__ import annotations

import inspect
from typing import Any

from evidentia.graphs import BACKBONES, GraphClassifier
from evidentia.graphs.splits import OodClasses
from evidentia.graphs.tasks import GraphTask, Protocol, check_task, usual_settings

# Where networks are kept and what is shown changes nothing in the figures.
_NOT_OF_THE_FIGURES = ("cache", "checkpoint", "progress")
# What a backbone has a default of its own for.
_OF_THE_BACKBONE = ("hidden", "dropout")
# A classifier keeps them under the names that it was given them by.
_OWN_SETTINGS = [
    name
    for name, parameter in inspect.signature(GraphClassifier).parameters.items()
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name not in (*_OF_THE_BACKBONE, *_NOT_OF_THE_FIGURES)
]


def graph_configuration(
    data: str,
    task: GraphTask = "misclassification",
    method: str = "s-bgcn-t-k",
    protocol: Protocol = "clean",
    *,
    classes: OodClasses | None = None,
    per_class: int | None = None,
    validation: int | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The task and all settings of the classifier that `run_task` trains for it, as plain JSON; nothing is trained.

    Args:
        data: the name of the graph.
        task: of `evidentia.graphs.run_task`, as are all others.
        method: likewise.
        protocol: likewise.
        classes: likewise; they are noted for the task "ood" alone.
        per_class: likewise; None is noted where the split is the usual one.
        validation: likewise.
        options: likewise.

    Raises:
        EvidentiaError: if a setting does not fit.

    Example:
        >>> found = graph_configuration("cora", "ood", "s-gcn", epochs=50)
        >>> found["classes"], found["epochs"], found["hidden"], found["dropout"], found["learning_rate"]
        ('last', 50, 16, 0.5, 0.01)
    """
    check_task(task, protocol, classes, per_class, validation)
    settings = {**usual_settings(data, task, method), **options}
    model = GraphClassifier(
        method, **{name: value for name, value in settings.items() if name not in _NOT_OF_THE_FIGURES}
    )
    unknown = {} if task != "ood" else {"classes": _plain(classes)}
    return {
        "data": data,
        "task": task,
        "method": method,
        "protocol": protocol,
        **unknown,
        "per_class": per_class,
        "validation": validation,
        "backbone": model.backbone,
        **_network_options(model),
        **{name: getattr(model, name) for name in _OWN_SETTINGS},
        **model.settings.model_dump(mode="json", exclude={"seed", "progress"}),
    }


def _plain(classes: OodClasses | None) -> str | list[int]:
    if classes is None or isinstance(classes, str):
        return classes or "last"
    return [int(label) for label in classes]


def _network_options(model: GraphClassifier) -> dict[str, Any]:
    """Width and dropout: as given, or the backbone's own."""
    own = inspect.signature(BACKBONES[str(model.backbone)]).parameters
    return {name: model.options.get(name, own[name].default) for name in _OF_THE_BACKBONE}
