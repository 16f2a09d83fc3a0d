"""Which uncertainties tell OOD in a pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evidentia.experiments.jobs.registry import JOBS
from evidentia.experiments.semisup_uncertainty import IN, epistemic_rows, vacuity_rows


@JOBS.register("vacuity")
def vacuity_job(configuration: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The mean `vacuity` of every kind of OOD (`in` for what belongs to classes), and its `auroc`, by one `estimator`.

    Example:
        >>> options = {"data": "two-moons", "kinds": ["faraway"], "estimator": "kernel", "updates": 50}
        >>> sorted(vacuity_job(options, seed=0)["vacuity"])
        ['faraway', 'in']
    """
    settings = dict(configuration)
    estimator = settings.pop("estimator")
    rows = vacuity_rows(**settings, estimators=[estimator], seeds=[seed], progress=False)
    return {
        "vacuity": {"in" if row["kind"] == IN else row["kind"]: row["mean"] for row in rows},
        "auroc": {row["kind"]: row["auroc"] for row in rows if row["kind"] != IN},
    }


@JOBS.register("epistemic")
def epistemic_job(configuration: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The mean epistemic uncertainty of a pool (`epistemic.id`, `epistemic.ood`) after one `training` on it."""
    settings = dict(configuration)
    training = settings.pop("training")
    (row,) = epistemic_rows(**settings, trainings=[training], seeds=[seed], progress=False)
    return {
        "epistemic": {"id": row["id"], "ood": row["ood"]},
        "auroc": row["auroc"],
        "accuracy": row["accuracy"],
    }
