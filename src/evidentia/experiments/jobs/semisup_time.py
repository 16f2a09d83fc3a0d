"""What a way to weigh the pool costs beside the plain objective."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from evidentia.experiments.jobs.registry import CHECKS, JOBS
from evidentia.experiments.jobs.semisup import check_semisup_job
from evidentia.semisup import SemiSupervisedData
from evidentia.semisup.task_parts import TaskData, task_classifier

_OF_THE_POOL = {field.name for field in fields(TaskData)}
# The robust methods of the thesis go with weighted batch norm, and their ratio is to batch norm as it comes.
_PLAIN: dict[str, Any] = {"robust": "none", "norm": "batch"}


@JOBS.register("semisup-time")
def semisup_time_job(configuration: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train with arguments of `evidentia.semisup.run_task`, and before and after it the plain objective.

    `seconds` is the time of the processor, and `ratio` that time to the plain objective's.

    Example:
        >>> found = semisup_time_job({"data": "two-moons", "objective": "vat", "robust": "meta", "updates": 5}, seed=0)
        >>> sorted(found)
        ['ratio', 'seconds']
    """
    pool = {name: value for name, value in configuration.items() if name in _OF_THE_POOL}
    data = TaskData(seed=seed, **pool).drawn()
    settings = {name: value for name, value in configuration.items() if name not in _OF_THE_POOL}
    plain = {name: value for name, value in settings.items() if name not in ("robust", "robust_options", "norm")}
    # What is loaded and allocated the first time is not to be counted.
    _seconds(data, {**plain, **_PLAIN, "updates": 2}, seed)
    before = _seconds(data, {**plain, **_PLAIN}, seed)
    seconds = _seconds(data, settings, seed)
    after = _seconds(data, {**plain, **_PLAIN}, seed)
    return {"ratio": 2 * seconds / (before + after), "seconds": seconds}


CHECKS.register("semisup-time")(check_semisup_job)


def _seconds(data: SemiSupervisedData, settings: Mapping[str, Any], seed: int) -> float:
    classifier = task_classifier(data, seed=seed, **{"progress": False, **settings})
    start = time.process_time()
    classifier.fit(data)
    return time.process_time() - start
