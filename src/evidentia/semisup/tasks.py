"""One training on a dirty pool, scored: the method that is asked for, and the controls that it is to be measured by."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from evidentia.semisup.choices import Norm, Order
from evidentia.semisup.estimator import SemiSupervisedClassifier
from evidentia.semisup.objectives import Objective
from evidentia.semisup.pool import SemiSupervisedData
from evidentia.semisup.presets import Preset
from evidentia.semisup.robust import Robust
from evidentia.semisup.task_parts import TaskData, ValidationUse, task_classifier
from evidentia.semisup.training.stopwatch import Stopwatch

ALL_LABELS = "supervised, all"
COMPUTE_MATCHED = "compute-matched"
_PLAIN: dict[str, Any] = {"robust": "none", "robust_options": {}, "validation_use": "none"}

CONTROLS: dict[str, dict[str, Any]] = {
    "supervised": {"robust": "supervised", "robust_options": {}, "validation_use": "none"},
    "no BN": {**_PLAIN, "norm": "none", "passes": None},
    "concatenated BN": {**_PLAIN, "norm": "batch", "passes": "concat"},
    "separate BN": {**_PLAIN, "norm": "batch", "passes": "separate"},
    "frozen BN": {**_PLAIN, "norm": "frozen", "passes": "separate"},
    "oracle": {"robust": "oracle", "robust_options": {}, "validation_use": "none"},
    ALL_LABELS: {"robust": "supervised", "robust_options": {}, "validation_use": "labeled"},
    COMPUTE_MATCHED: _PLAIN,
}
"""What a robust method is measured by, as settings of `run_task` that take the place of the method's own.

"supervised" leaves the pool out and "oracle" knows the truth, both with the method's batch norm. The four in between
are the plain objective, with every treatment of batch norm. None of them uses validation labels but "supervised, all",
which trains on them. "compute-matched" is the plain objective with as many updates as the method has time for
(`matched_updates`).
"""


@dataclass(frozen=True)
class TaskResult:
    """What one seed gave.

    Attributes:
        accuracy: share of right labels in the test.
        w_in: mean weight of the pool's samples in distribution; None if the pool is left out.
        w_ood: mean weight of those out of distribution; None also if there are none.
        ood_auroc: how well 1 - w tells them apart, as area under the ROC curve.
        labels: how many labels were used, those for validation included.
        updates: steps of the optimiser.
        seconds: wall time of training, with that of earlier sittings if it was broken off.
    """

    accuracy: float
    w_in: float | None
    w_ood: float | None
    ood_auroc: float | None
    labels: int
    updates: int
    seconds: float

    def metrics(self) -> dict[str, float]:
        """What is known of these, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class TrainedTask:
    """A training with everything that it left: the classifier, the data and how well it went."""

    classifier: SemiSupervisedClassifier
    data: SemiSupervisedData
    result: TaskResult


def run_task(data: str | SemiSupervisedData, *args: Any, **settings: Any) -> TaskResult:
    """Train on a dirty pool and score it; arguments are those of `train_task`.

    Example:
        >>> result = run_task("two-moons", "pi-model", "oracle", ood="faraway", ratio=0.5, updates=50, progress=False)
        >>> result.labels, result.w_in, result.w_ood, result.ood_auroc
        (6, 1.0, 0.0, 1.0)
    """
    return train_task(data, *args, **settings).result


def train_task(
    data: str | SemiSupervisedData,
    objective: str | Objective = "fixmatch",
    robust: str | Robust = "uncertainty",
    ood: str | None = None,
    ratio: float | None = None,
    seed: int = 0,
    *,
    preset: Preset = "quick",
    norm: Norm | None = None,
    passes: Order | None = None,
    validation: int = 0,
    validation_use: ValidationUse = "clean",
    objective_options: Mapping[str, Any] | None = None,
    robust_options: Mapping[str, Any] | None = None,
    data_options: Mapping[str, Any] | None = None,
    data_root: Path | str | None = None,
    checkpoint: Path | str | None = None,
    **options: Any,
) -> TrainedTask:
    """Train on a dirty pool by the usual settings, and score it.

    Args:
        data: a data set of `evidentia.semisup.load_pool`, or data with a test.
        objective: what unlabeled samples cost.
        robust: how they are weighed.
        ood: kind of OOD in the pool, None for a clean one.
        ratio: share of OOD in the pool.
        seed: draws the data, and fixes the training.
        preset: see `usual_settings`.
        norm: "none", "batch", "frozen" or "weighted"; by default what goes with the robust method.
        passes: "concat" or "separate"; for both see `evidentia.semisup.SemiSupervisedTraining`.
        validation: clean labels beyond the labeled ones.
        validation_use: what is done with them: "clean", weights are learnt by them; "labeled", the network is trained
            on them; "none", they lie idle, so that the pool is that of the other two.
        objective_options: settings of the objective that take the place of the usual ones, by name.
        robust_options: settings of the robust method, by name.
        data_options: `labels_per_class`, and `unlabeled` or `pool_size`, of `load_pool`.
        data_root: a folder with the data sets.
        checkpoint: a file from which a run that was broken off goes on.
        options: settings of `SemiSupervisedClassifier` that take the place of the usual ones.

    Raises:
        EvidentiaError: if something is not there, or does not go with the rest.

    Example:
        >>> trained = train_task("two-moons", "pi-model", ood="faraway", ratio=0.5, updates=200, progress=False)
        >>> trained.result.accuracy > 0.9, trained.classifier.weights_.shape, len(trained.data.x_test)
        (True, torch.Size([4000]), 1000)
    """
    drawn = TaskData(data, ood, ratio, seed, validation, validation_use, data_options, data_root).drawn()
    clf = task_classifier(
        *(drawn, objective, robust, seed),
        preset=preset,
        norm=norm,
        passes=passes,
        objective_options=objective_options,
        robust_options=robust_options,
        checkpoint=checkpoint,
        **options,
    )
    watch = Stopwatch(clf.settings.checkpoint)
    clf.fit(drawn)
    seconds = watch.seconds
    found = clf.review().summary() if clf.robust.uses_pool else {}
    right = clf.predict(drawn.x_test).labels == drawn.y_test
    result = TaskResult(
        accuracy=float(right.double().mean()),
        w_in=found.get("w_in"),
        w_ood=found.get("w_ood"),
        ood_auroc=found.get("auroc"),
        labels=len(drawn.y_labeled) + drawn.extra_labels,
        updates=clf.settings.updates,
        seconds=seconds,
    )
    return TrainedTask(clf, drawn, result)


def check_task(
    data: str | SemiSupervisedData,
    objective: str | Objective = "fixmatch",
    robust: str | Robust = "uncertainty",
    ood: str | None = None,
    ratio: float | None = None,
    seed: int = 0,
    **settings: Any,
) -> None:
    """Refuse arguments of `train_task`, which these are, that cannot be trained with; no data are read.

    What only the data or the machine can tell is left to `train_task`: whether the files are there and hold so many
    samples of a shape that the network takes, and whether there is such a device.

    Raises:
        EvidentiaError: if something is not there, or does not go with the rest.

    Example:
        >>> check_task("mnist", "vat", ood="fashion", ratio=0.5, objective_options={"epsilon": 2.0}, norm="frozen")
        >>> check_task("mnist", "vat", ood="fashion", ratio=7)
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: ratio, the share of the pool that is out of distribution, must be a
        number, at least 0 and less than 1, got 7
    """
    of_data = {field.name: settings.pop(field.name) for field in fields(TaskData) if field.name in settings}
    TaskData(data, ood, ratio, seed, **of_data).check()
    task_classifier(data, objective, robust, seed, **settings)


def base_control(norm: Norm, passes: Order | None = None) -> str:
    """The control that is the plain objective with a method's batch norm, or its unweighted like.

    Example:
        >>> base_control("weighted"), base_control("batch", "separate"), base_control("none")
        ('concatenated BN', 'separate BN', 'no BN')
    """
    if norm in ("none", "frozen"):
        return "no BN" if norm == "none" else "frozen BN"
    return "separate BN" if passes == "separate" else "concatenated BN"


def matched_updates(updates: int, method_seconds: float, base_seconds: float) -> int:
    r"""How many updates the plain objective makes in a method's time: $\lceil n \max(1, t_m / t_b) \rceil$.

    Args:
        updates: n, of both.
        method_seconds: wall time of the method.
        base_seconds: wall time of the plain objective (`base_control`).

    Example:
        >>> matched_updates(1000, 17.0, 10.0), matched_updates(1000, 9.0, 10.0)
        (1700, 1000)
    """
    return math.ceil(updates * max(1.0, method_seconds / base_seconds))
