"""Speed and memory of the core, as ratios against named references in the same run.

Run: `python benchmarks/opinions.py`. One thread; CPU seconds, the best of several runs. Leaves with status 1 if a
target is missed.
"""

from __future__ import annotations

import sys
from functools import partial

import torch
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve
from torch import Tensor

from _measure import Row, best_of, peak_extra_memory, show
from evidentia import dissonance, validation
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


def direct_dissonance(belief: Tensor, chunk: int) -> Tensor:
    """The definition as one would write it: a tensor of all pairs of classes, for `chunk` samples at a time."""
    others = 1 - torch.eye(belief.shape[-1])
    parts = []
    for rows in belief.split(chunk):
        mine, other = rows.unsqueeze(-1), rows.unsqueeze(-2)
        balance = 1 - (mine - other).abs() / (mine + other).clamp(min=1e-30)
        weighted = (other * balance * others).sum(-1)
        parts.append((rows * weighted / (other * others).sum(-1).clamp(min=1e-30)).sum(-1))
    return torch.cat(parts)


def dissonance_speed(rows: list[Row]) -> None:
    """Dissonance of many samples with few classes, and of fewer with many, against the tensor of all pairs."""
    for samples, classes, chunk, time_target in ((1_000_000, 10, 1_000_000, 5), (10_000, 1_000, 10, 50)):
        belief = torch.rand(samples, classes, generator=torch.Generator().manual_seed(0))
        belief /= belief.sum(-1, keepdim=True) * 1.25
        case = f"dissonance, {samples:,} x {classes:,}"
        reference = "N x K x K tensor" if chunk == samples else f"N x K x K tensor, {chunk} samples at a time"
        with validation(False):
            agreed = torch.allclose(dissonance(belief[:1000]), direct_dissonance(belief[:1000], chunk), atol=1e-5)
            if not agreed:
                raise AssertionError("the two ways of computing dissonance disagree")
            ours = partial(dissonance, belief)
            direct = partial(direct_dissonance, belief, chunk)
            # The long one need not be repeated for its best: it is far from its target either way.
            repeats = 3 if classes < 100 else 1
            cost = best_of(direct, repeats, warm_up=classes < 100).cpu
            rows.append(Row(case, reference, cost, best_of(ours, 5).cpu, time_target))
            if classes < 100:
                extra = peak_extra_memory(direct), peak_extra_memory(ours)
                rows.append(Row(f"{case}, memory", reference, extra[0] / 1e6, extra[1] / 1e6, 10, unit="MB"))


def main() -> int:
    torch.set_num_threads(1)
    rows: list[Row] = []
    detection(rows)
    dissonance_speed(rows)
    show(rows, "evidentia against its references, one thread")
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
