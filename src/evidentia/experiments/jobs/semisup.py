"""A training on a dirty pool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evidentia._support.errors import EvidentiaError
from evidentia.experiments.jobs.data_checks import DATA_CHECKS
from evidentia.experiments.jobs.registry import CHECKS, JOBS
from evidentia.semisup import SemiSupervisedClassifier, load_pool, pool_kinds
from evidentia.semisup.presets import usual_settings
from evidentia.semisup.tasks import robust_method, run_task

_OF_THE_DATA = ("data", "ood", "ratio", "validation", "validation_use", "data_root")


@JOBS.register("semisup")
def semisup_job(configuration: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Run `evidentia.semisup.run_task`, with its arguments by name.

    Example:
        >>> task = {"data": "two-moons", "objective": "pi-model", "robust": "oracle", "ood": "faraway", "ratio": 0.5}
        >>> semisup_job({**task, "updates": 5}, seed=0)["w_ood"]
        0.0
    """
    return dict(run_task(**configuration, seed=seed, progress=False).metrics())


@DATA_CHECKS.register("semisup")
def check_semisup_data(configurations: Iterable[Mapping[str, Any]], data_root: str | None) -> None:
    """Load every pool once."""
    kinds = {(each["data"], each.get("ood")): each.get("ratio") for each in configurations}
    for (data, ood), ratio in kinds.items():
        load_pool(data, ood, ratio, data_root=data_root)


@CHECKS.register("semisup")
def check_semisup_job(configuration: Mapping[str, Any]) -> None:
    """Build the classifier and train nothing."""
    settings = {name: value for name, value in configuration.items() if name not in _OF_THE_DATA}
    data, ood = configuration.get("data"), configuration.get("ood")
    if not isinstance(data, str):
        raise EvidentiaError(f"a semisup job needs data, the name of a data set such as 'two-moons', got {data!r}")
    if ood is not None and ood not in pool_kinds(data):
        raise EvidentiaError(f"{data} has no OOD of kind {ood!r}; choose one of: {', '.join(pool_kinds(data))}")
    method = robust_method(settings.pop("robust", "uncertainty"), settings.pop("robust_options", None))
    usual = usual_settings(data, settings.pop("objective", "fixmatch"), settings.pop("preset", "quick"))
    SemiSupervisedClassifier(robust=method, **{**usual, **settings})
