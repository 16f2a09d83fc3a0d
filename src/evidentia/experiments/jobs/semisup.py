"""A training on a dirty pool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evidentia._support.errors import EvidentiaError
from evidentia.experiments.jobs.registry import CHECKS, DATA_CHECKS, JOBS
from evidentia.semisup import load_pool
from evidentia.semisup.tasks import check_task, run_task


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
    kinds = {repr((each["data"], each.get("ood"))): each for each in configurations}
    for each in kinds.values():
        options = each.get("data_options") or {}
        load_pool(each["data"], each.get("ood"), each.get("ratio"), data_root=data_root, **options)


@CHECKS.register("semisup")
def check_semisup_job(configuration: Mapping[str, Any]) -> None:
    """Build the classifier and train nothing."""
    if not isinstance(data := configuration.get("data"), str):
        raise EvidentiaError(f"a semisup job needs data, the name of a data set such as 'two-moons', got {data!r}")
    check_task(**configuration)
