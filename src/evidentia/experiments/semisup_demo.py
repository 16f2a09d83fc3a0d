"""Two moons with six labels, and a pool half of which lies far away from both: what does that do to training?

The plain objective with batch norm, in separate passes as is common, without batch norm, with our weights, and with
weights that know the truth; the same data, updates and batches. Without batch norm, faraway samples should do little
harm: that is one of the thesis' findings, and a reason to look at that row before any method. The settings were chosen
on other seeds (100 and on) than the demo shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evidentia.semisup.tasks import CONTROLS, TrainedTask, train_task
from evidentia.semisup.uncertainty import LabeledAgainstUnlabeled

OURS = "ours, by uncertainty"
METHODS = ("plain, batch norm", "plain, no batch norm", OURS, "oracle")

_TASK: dict[str, Any] = {"data": "two-moons", "objective": "pi-model", "ood": "faraway", "ratio": 0.5}
_TRAINING: dict[str, Any] = {"updates": 500, "progress": False}


@dataclass(frozen=True)
class MoonsDemo:
    """What all seeds gave.

    Attributes:
        rows: a row a method: accuracy, and mean weights in and out of distribution where weights are learnt.
        shown: the trainings of the first seed, by method, for pictures.
    """

    rows: list[tuple[str, ...]]
    shown: dict[str, TrainedTask]


def moons_demo(seeds: Sequence[int], after_each: Callable[[], None] | None = None) -> MoonsDemo:
    """Train all methods for all seeds."""
    rows: list[tuple[str, ...]] = []
    shown = {}
    for method in METHODS:
        results = []
        for seed in seeds:
            trained = train_task(**_TASK, **_TRAINING, **_settings(method), seed=seed)
            if seed == seeds[0]:
                shown[method] = trained
            results.append(trained.result)
            if after_each is not None:
                after_each()
        accuracy = [result.accuracy for result in results]
        weights = ""
        if method in (OURS, "oracle"):
            weights = " / ".join(f"{np.mean([getattr(r, name) for r in results]):.2f}" for name in ("w_in", "w_ood"))
        rows.append((method, f"{np.mean(accuracy):.3f} ± {np.std(accuracy, ddof=1):.3f}", weights))
    return MoonsDemo(rows, shown)


def moons_steps(seeds: Sequence[int]) -> int:
    """How many trainings `moons_demo` does."""
    return len(METHODS) * len(seeds)


def _settings(method: str) -> dict[str, Any]:
    if method == OURS:
        # Six labels leave room for luck, so folds are drawn several times.
        return {"robust": "uncertainty", "robust_options": {"uncertainty": LabeledAgainstUnlabeled(repeats=3)}}
    return CONTROLS[{"plain, batch norm": "separate BN", "plain, no batch norm": "no BN"}.get(method, method)]
