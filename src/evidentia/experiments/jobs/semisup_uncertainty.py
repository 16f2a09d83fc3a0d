"""Which uncertainties tell OOD in a pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evidentia.experiments.jobs.registry import JOBS
from evidentia.experiments.semisup_uncertainty import epistemic_of_pool, vacuity_by_kind


@JOBS.register("vacuity")
def vacuity_job(configuration: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The mean `vacuity` of every kind of OOD (`in` for what belongs to classes), and its `auroc`, by one `estimator`.

    Example:
        >>> options = {"data": "two-moons", "kinds": ["faraway"], "estimator": "kernel", "updates": 50}
        >>> sorted(vacuity_job(options, seed=0)["vacuity"])
        ['faraway', 'in']
    """
    found = vacuity_by_kind(**configuration, seed=seed, progress=False)
    # What belongs to classes is the same in pools of the same classes: one of them speaks for it.
    inside = next(iter(found.values())).inside
    return {
        "vacuity": {"in": inside, **{kind: each.outside for kind, each in found.items()}},
        "auroc": {kind: each.auroc for kind, each in found.items()},
    }


@JOBS.register("epistemic")
def epistemic_job(configuration: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The mean epistemic uncertainty of a pool (`epistemic.id`, `epistemic.ood`) after one `training` on it."""
    found, accuracy = epistemic_of_pool(**configuration, seed=seed, progress=False)
    return {"epistemic": {"id": found.inside, "ood": found.outside}, "auroc": found.auroc, "accuracy": accuracy}
