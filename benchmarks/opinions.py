"""Speed and memory of the core, as ratios against named references in the same run.

Run: `python benchmarks/opinions.py`. One thread; CPU seconds, the best of several runs. Leaves with status 1 if a
target is missed.
"""

from __future__ import annotations

import sys

import torch
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve
from torch import Tensor

from _measure import Row, best_of, show
from evidentia.evaluation import detection_scores


def detection(rows: list[Row]) -> None:
    """All detection scores of a million samples against `roc_auc_score`, `average_precision_score`, `roc_curve`."""
    count = 1_000_000
    generator = torch.Generator().manual_seed(0)
    labels = (torch.rand(count, generator=generator) < 0.3).long()
    scores = torch.randn(count, generator=generator) + labels
    cases = {
        "float32": scores,
        "float64": scores.double(),
        "float32, tied": (scores * 12).round(),
    }

    for name, values in cases.items():

        def ours(values: Tensor = values) -> None:
            detection_scores(values, labels)

        def reference(values: Tensor = values) -> None:
            given, truth = values.numpy(), labels.numpy()
            roc_auc_score(truth, given)
            average_precision_score(truth, given)
            roc_curve(truth, given)

        rows.append(
            Row(
                case=f"detection, 1M {name}",
                reference="scikit-learn (3 calls)",
                reference_cost=best_of(reference, 5).cpu,
                our_cost=best_of(ours, 10).cpu,
                target=4,
            )
        )


def main() -> int:
    torch.set_num_threads(1)
    rows: list[Row] = []
    detection(rows)
    show(rows, "evidentia against its references, one thread")
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
