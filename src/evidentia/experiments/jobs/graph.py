"""A method and a task on a graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from evidentia._support.errors import EvidentiaError
from evidentia.experiments.jobs.registry import CHECKS, JOBS
from evidentia.graphs import GraphClassifier, citation_graph, load_graph
from evidentia.graphs.catalog import find_entry
from evidentia.graphs.tasks import run_task, usual_settings

# The built-in graph, for a try without any data.
_BUILT_IN = "synthetic"
_OF_THE_TASK = ("task", "method", "protocol")
_TASKS, _PROTOCOLS = ("misclassification", "ood"), ("clean", "public", "author")


@JOBS.register("graph")
def graph_job(configuration: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Run `evidentia.graphs.run_task`: `data`, `task`, `method`, `protocol`, and settings of `GraphClassifier`.

    Example:
        >>> found = graph_job({"data": "synthetic", "task": "ood", "method": "gcn", "epochs": 20}, seed=0)
        >>> sorted(found)
        ['accuracy', 'aupr', 'auroc']
    """
    settings = dict(configuration)
    data = job_graph(settings.pop("data", None), settings.pop("data_root", None))
    return asdict(run_task(data, seed=seed, progress=False, **settings))


@CHECKS.register("graph")
def check_graph_job(configuration: Mapping[str, Any]) -> None:
    """Build the classifier and train nothing."""
    settings = {name: value for name, value in configuration.items() if name not in ("data", "data_root")}
    data = _named(configuration.get("data"))
    if data != _BUILT_IN:
        find_entry(data)
    task, method, protocol = (
        settings.pop(name, default)
        for name, default in zip(_OF_THE_TASK, ("misclassification", "s-bgcn-t-k", "clean"), strict=True)
    )
    for name, value, known in (("task", task, _TASKS), ("protocol", protocol, _PROTOCOLS)):
        if value not in known:
            raise EvidentiaError(f"there is no {name} {value!r}; choose one of: {', '.join(known)}")
    GraphClassifier(method, **{**usual_settings("", task, method), **settings})


def _named(data: Any) -> str:
    if not isinstance(data, str):
        raise EvidentiaError(f"a graph job needs data, the name of a graph such as 'cora' or 'synthetic', got {data!r}")
    return data


# Splits are copies, so seeds can share a graph.
@lru_cache(maxsize=2)
def job_graph(name: str | None, data_root: str | None) -> Any:
    """The graph of that name, or the built-in one."""
    return citation_graph() if name == _BUILT_IN else load_graph(_named(name), data_root=data_root)
