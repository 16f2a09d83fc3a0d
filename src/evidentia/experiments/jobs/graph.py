"""A method and a task on a graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from evidentia._support.errors import EvidentiaError
from evidentia.experiments.graph_configuration import graph_configuration
from evidentia.experiments.jobs.registry import CHECKS, JOBS
from evidentia.graphs import citation_graph, load_graph
from evidentia.graphs.catalog import find_entry
from evidentia.graphs.tasks import run_task

# The built-in graph, for a try without any data.
_BUILT_IN = "synthetic"


@JOBS.register("graph")
def graph_job(configuration: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Run `evidentia.graphs.run_task`, with its arguments by name, and `data` the name of a graph.

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
    settings = {name: value for name, value in configuration.items() if name != "data_root"}
    graph_configuration(graph_name(settings.pop("data", None)), **settings)


def graph_name(data: Any) -> str:
    """The usual name of a graph: it has others too.

    Raises:
        EvidentiaError: if there is no such graph.
    """
    if not isinstance(data, str):
        raise EvidentiaError(f"a graph job needs data, the name of a graph such as 'cora' or 'synthetic', got {data!r}")
    if data == _BUILT_IN:
        return data
    try:
        return find_entry(data).name
    except EvidentiaError as error:
        raise EvidentiaError(f"{error}; or {_BUILT_IN}, which is built in") from None


# Splits are copies, so seeds can share a graph.
@lru_cache(maxsize=2)
def job_graph(name: str | None, data_root: str | None) -> Any:
    """The graph of that name, or the built-in one."""
    return citation_graph() if name == _BUILT_IN else load_graph(graph_name(name), data_root=data_root)
