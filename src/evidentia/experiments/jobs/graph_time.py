"""What methods on graphs cost, over the size of the graph."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from evidentia._support.errors import EvidentiaError
from evidentia.experiments.jobs.registry import CHECKS, JOBS
from evidentia.graphs import GraphClassifier, citation_graph, kernel_prior

BASE = "gcn"
_PREDICTIONS = 5


@JOBS.register("graph-time")
def graph_time_job(configuration: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train a `method` and predict on a made graph of so many `nodes`, with settings of `GraphClassifier`.

    Times are those of the processor: `seconds.train`, `seconds.test` and `seconds.prior`, of the kernel prior alone;
    `train` and `test` are the first two as ratios to a plain GCN's, which is trained in the same job.

    Example:
        >>> found = graph_time_job({"method": "s-gcn", "nodes": 300, "epochs": 3}, seed=0)
        >>> sorted(found), sorted(found["seconds"])
        (['seconds', 'test', 'train'], ['prior', 'test', 'train'])
    """
    settings = {name: value for name, value in configuration.items() if name != "data_root"}
    method, nodes = settings.pop("method"), settings.pop("nodes")
    data = citation_graph(nodes=nodes, seed=seed)
    settings |= {"seed": seed, "progress": False}
    # What is loaded and allocated the first time is not to be counted.
    _seconds(BASE, data, {**settings, "epochs": 1})
    before = _seconds(BASE, data, settings)
    train, test = _seconds(method, data, settings)
    after = _seconds(BASE, data, settings)
    base = [(first + second) / 2 for first, second in zip(before, after, strict=True)]
    start = time.process_time()
    kernel_prior(data.edge_index, data.y, data.train_mask, int(data.y.max()) + 1)
    prior = time.process_time() - start
    return {
        "train": train / base[0],
        "test": test / base[1],
        "seconds": {"train": train, "test": test, "prior": prior},
    }


@CHECKS.register("graph-time")
def check_graph_time_job(configuration: Mapping[str, Any]) -> None:
    """Build the classifier and train nothing."""
    settings = {name: value for name, value in configuration.items() if name not in ("nodes", "data_root", "method")}
    if missing := [name for name in ("method", "nodes") if name not in configuration]:
        raise EvidentiaError(
            f"a graph-time job needs a method such as {BASE!r} and a number of nodes, and {missing[0]} is not given"
        )
    GraphClassifier(configuration["method"], **settings)


def _seconds(method: str, data: Any, settings: Mapping[str, Any]) -> tuple[float, float]:
    start = time.process_time()
    classifier = GraphClassifier(method, **settings).fit(data)
    train = time.process_time() - start
    # A plain network predicts in a millisecond, of which a clock can tell little: the fastest of several.
    tests = []
    for _ in range(_PREDICTIONS):
        start = time.process_time()
        classifier.predict()
        tests.append(time.process_time() - start)
    return train, min(tests)
