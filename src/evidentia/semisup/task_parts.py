"""What a training on a dirty pool is made of: the data with their labels, and a classifier by the usual settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import torch

from evidentia._support.errors import EvidentiaError
from evidentia.semisup.choices import Norm, Order, refuse_class
from evidentia.semisup.data.by_name import check_pool, known_name, load_pool
from evidentia.semisup.estimator import SemiSupervisedClassifier
from evidentia.semisup.networks.models import NETWORKS
from evidentia.semisup.networks.passes import check_norm, check_passes, usual_order
from evidentia.semisup.objectives import Objective
from evidentia.semisup.pool import SemiSupervisedData
from evidentia.semisup.presets import Preset, usual_settings
from evidentia.semisup.robust import ROBUST, Robust

ValidationUse: TypeAlias = Literal["clean", "labeled", "none"]
Method = TypeVar("Method", Objective, Robust)

_DATA_OPTIONS = ("labels_per_class", "unlabeled", "pool_size")


@dataclass(frozen=True, eq=False)
class TaskData:
    """What a task is trained on; the arguments of `evidentia.semisup.train_task` that say so.

    Example:
        >>> TaskData("two-moons", "faraway", 0.5, validation=10, validation_use="labeled").drawn()
        SemiSupervisedData('two-moons': 2 classes, inputs of shape (2,), 16 labeled, 4000 unlabeled (2000 of them out of
        distribution), 0 for validation, 1000 for the test)
    """

    data: str | SemiSupervisedData
    ood: str | None = None
    ratio: float | None = None
    seed: int = 0
    validation: int = 0
    validation_use: ValidationUse = "clean"
    data_options: Mapping[str, Any] | None = None
    data_root: Path | str | None = None

    def drawn(self) -> SemiSupervisedData:
        """The data, with what there is for validation where it is to be used."""
        self.check()
        data = self.data
        if isinstance(data, str):
            drawn_by = {"validation": self.validation, "data_root": self.data_root, **(self.data_options or {})}
            data = load_pool(data, self.ood, self.ratio, self.seed, **drawn_by)
        return _with_validation(data, self.validation_use)

    def check(self) -> None:
        """Refuse what fits no data, before any file is read.

        Example:
            >>> TaskData("mnist", "fashion", data_options={"labels": 3}).check()
            Traceback (most recent call last):
            evidentia._support.errors.EvidentiaError: data have no setting 'labels'; choose one of: labels_per_class,
            unlabeled, pool_size
        """
        if self.validation_use not in ("clean", "labeled", "none"):
            raise EvidentiaError(f"validation_use must be 'clean', 'labeled' or 'none', got {self.validation_use!r}")
        options = self.data_options or {}
        if not isinstance(self.data, SemiSupervisedData):
            _check_data_options(options)
            check_pool(self.data, self.ood, self.ratio, self.seed, validation=self.validation, **options)
            return
        drawn = (self.ood is not None, self.ratio is not None, self.validation, self.data_root is not None, options)
        if any(drawn):
            raise EvidentiaError("data that is there already brings its OOD and validation; give it alone")
        if not len(self.data.y_test):
            raise EvidentiaError("a task is scored on a test, and the data has none; give x_test and y_test")


def task_classifier(
    data: str | SemiSupervisedData,
    objective: str | Objective = "fixmatch",
    robust: str | Robust = "uncertainty",
    seed: int = 0,
    *,
    preset: Preset = "quick",
    norm: Norm | None = None,
    passes: Order | None = None,
    objective_options: Mapping[str, Any] | None = None,
    robust_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> SemiSupervisedClassifier:
    """What `evidentia.semisup.train_task` trains, whose arguments these are, before it is trained.

    Args:
        data: what it is to be trained on; a name alone says how large the pool is only when it is read, and so leaves
            batches as large as the preset has them.
        objective: what unlabeled samples cost.
        robust: how they are weighed.
        seed: fixes the training.
        preset: see `usual_settings`.
        norm: what batch norm does.
        passes: how both batches go through the network.
        objective_options: settings of the objective.
        robust_options: settings of the robust method.
        options: settings of `SemiSupervisedClassifier`.

    Raises:
        EvidentiaError: if something is not there, or does not go with the rest.

    Example:
        >>> task_classifier("two-moons", "pi-model", "oracle", preset="author").settings.updates
        10000
        >>> task_classifier("two-moons", norm="frozen", passes="concat")
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: norm 'frozen' keeps unlabeled samples out of the running statistics,
        which needs passes 'separate'
    """
    name = data.name if isinstance(data, SemiSupervisedData) else known_name(data)
    method = robust_method(robust, robust_options)
    settings = {**usual_settings(name, objective, preset, uses_pool=method.uses_pool), "seed": seed}
    settings["objective"] = with_options(settings["objective"], objective_options)
    if isinstance(data, SemiSupervisedData):
        settings["unlabeled_batch"] = min(settings["unlabeled_batch"], len(data.x_unlabeled))
    settings |= {"norm": norm, "passes": passes, **options}
    clf = SemiSupervisedClassifier(robust=method, **settings)
    _check_passes(clf)
    return clf


def with_options(method: Method, options: Mapping[str, Any] | None) -> Method:
    """An objective or a robust method with other settings.

    Example:
        >>> from evidentia.semisup import OBJECTIVES
        >>> with_options(OBJECTIVES["vat"](), {"epsilon": 0.5}).epsilon
        0.5
        >>> with_options(OBJECTIVES["vat"](), {"scope": "full"})
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: VAT has no setting 'scope'; it has these: weight, ...
    """
    if not options:
        return method
    known = [entry.name for entry in fields(method) if entry.init] if is_dataclass(method) else []
    if unknown := [name for name in options if name not in known]:
        has = f"these: {', '.join(known)}" if known else "none"
        raise EvidentiaError(f"{type(method).__name__} has no setting {unknown[0]!r}; it has {has}")
    return replace(method, **options)


def robust_method(robust: str | Robust, options: Mapping[str, Any] | None = None) -> Robust:
    """A robust method by its name, or one that is there, with other settings.

    Example:
        >>> robust_method("meta", {"scope": "full"}).scope
        'full'
    """
    refuse_class(robust, "robust")
    return with_options(robust if isinstance(robust, Robust) else ROBUST[robust](), options)


def _check_data_options(options: Iterable[str]) -> None:
    if unknown := [name for name in options if name not in _DATA_OPTIONS]:
        raise EvidentiaError(f"data have no setting {unknown[0]!r}; choose one of: {', '.join(_DATA_OPTIONS)}")


def _check_passes(clf: SemiSupervisedClassifier) -> None:
    """Require a network that there is, and passes that go with it; a user's own is looked at once there are samples."""
    if isinstance(clf.network, str):
        NETWORKS[clf.network]  # tells which there are, if there is none of that name
    norm, order = clf.settings.norm, clf.settings.passes
    if norm is None:
        return
    check_passes(norm, order or usual_order(norm))
    if clf.network is None or isinstance(clf.network, str):
        check_norm(clf.robust, norm)


def _with_validation(data: SemiSupervisedData, use: ValidationUse) -> SemiSupervisedData:
    if use == "clean" or not data.extra_labels:
        return data
    without = replace(data, x_validation=data.x_validation[:0], y_validation=data.y_validation[:0])
    if use == "none":
        return without
    return replace(
        without,
        x_labeled=torch.cat([data.x_labeled, data.x_validation]),
        y_labeled=torch.cat([data.y_labeled, data.y_validation]),
    )
