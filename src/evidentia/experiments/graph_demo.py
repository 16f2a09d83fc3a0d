"""A citation-like graph made on the spot: which nodes are labelled wrong, and which are of classes never seen?

A plain GCN with its softmax entropy against the dissonance of the thesis' full method and the vacuity of ours, which
builds on it; the same splits, backbone and epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evidentia.graphs.synthetic import citation_graph
from evidentia.graphs.tasks import GraphTask, run_task

METHOD, METHOD_FOR_UNKNOWN = "s-bgcn-t-k", "s-bgcn-t-kw"

_SETTINGS: dict[str, Any] = {"hidden": 16, "epochs": 200, "patience": None, "progress": False}

# A row of the table: the score, its method and its uncertainty.
_ROWS: tuple[tuple[str, GraphTask, str, str], ...] = (
    ("wrong labels: GCN, entropy", "misclassification", "gcn", "entropy"),
    (f"wrong labels: {METHOD}, dissonance", "misclassification", METHOD, "dissonance"),
    ("unknown classes: GCN, entropy", "ood", "gcn", "entropy"),
    (f"unknown classes: {METHOD_FOR_UNKNOWN}, vacuity", "ood", METHOD_FOR_UNKNOWN, "vacuity"),
)


def graph_rows(seeds: Sequence[int], after_each: Callable[[], None] | None = None) -> list[tuple[str, ...]]:
    """A row a score: AUROC, and accuracy of its network, as mean and standard deviation over seeds."""
    rows = []
    for title, task, method, uncertainty in _ROWS:
        found = []
        for seed in seeds:
            data = citation_graph(nodes=1500, classes=6, features=300, seed=seed)
            result = run_task(data, task, method, seed, **_SETTINGS)
            found.append((result.auroc[uncertainty], result.accuracy))
            if after_each is not None:
                after_each()
        mean, spread = np.mean(found, axis=0), np.std(found, axis=0, ddof=1)
        rows.append((title, *(f"{m:.3f} ± {s:.3f}" for m, s in zip(mean, spread, strict=True))))
    return rows


def graph_steps(seeds: Sequence[int]) -> int:
    """How many trainings `graph_rows` does."""
    return len(_ROWS) * len(seeds)
