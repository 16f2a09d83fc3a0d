"""A citation-like graph made on the spot: which nodes are labelled wrong, and which are of classes never seen?

A plain GCN with its softmax entropy against the thesis' full method, with the dissonance and the propagated vacuity of
its opinions; the same splits, backbone and epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evidentia.graphs.synthetic import citation_graph
from evidentia.graphs.tasks import GraphTask, run_task

METHOD = "s-bgcn-t-k"

_SETTINGS: dict[str, Any] = {"hidden": 16, "epochs": 200, "patience": None, "progress": False}

# A row of the table: the score, its method, its uncertainty and what is asked of the evidence.
_ROWS: tuple[tuple[str, GraphTask, str, str, str], ...] = (
    ("wrong labels: GCN, entropy", "misclassification", "gcn", "entropy", "none"),
    (f"wrong labels: {METHOD}, dissonance", "misclassification", METHOD, "dissonance", "none"),
    ("unknown classes: GCN, entropy", "ood", "gcn", "entropy", "none"),
    (f"unknown classes: {METHOD}, vacuity", "ood", METHOD, "vacuity", "strength"),
)


def graph_rows(seeds: Sequence[int], after_each: Callable[[], None] | None = None) -> list[tuple[str, ...]]:
    """A row a score: AUROC, and accuracy of its network, as mean and standard deviation over seeds."""
    rows = []
    for title, task, method, uncertainty, propagation in _ROWS:
        found = []
        for seed in seeds:
            data = citation_graph(nodes=1500, classes=6, features=300, seed=seed)
            result = run_task(data, task, method, seed, propagation=propagation, **_SETTINGS)
            found.append((result.auroc[uncertainty], result.accuracy))
            if after_each is not None:
                after_each()
        mean, spread = np.mean(found, axis=0), np.std(found, axis=0, ddof=1)
        rows.append((title, *(f"{m:.3f} ± {s:.3f}" for m, s in zip(mean, spread, strict=True))))
    return rows


def graph_steps(seeds: Sequence[int]) -> int:
    """How many trainings `graph_rows` does."""
    return len(_ROWS) * len(seeds)
