"""What OOD does to semi-supervised training (thesis, "Impact of OOD on SSL Performance").

The plain objective with every treatment of batch norm, over kinds and shares of OOD. The thesis has three models:
SSL-NBN (no batch norm), SSL-BN and SSL-FBN (frozen). Its SSL-BN is two here, as it makes all the difference whether
labeled and unlabeled samples go through the network together or one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evidentia.experiments.semisup_published import published_accuracy
from evidentia.semisup.tasks import CONTROLS, TrainedTask, train_task

MODELS = ("no BN", "concatenated BN", "separate BN", "frozen BN")


def impact_models(
    data: str,
    ood: str | None,
    ratio: float,
    seed: int,
    *,
    objective: str = "vat",
    models: Sequence[str] = MODELS,
    after_each: Callable[[], None] | None = None,
    **settings: Any,
) -> dict[str, TrainedTask]:
    """Train each model on one pool.

    Args:
        data: a data set of `evidentia.semisup.load_pool`.
        ood: kind of OOD.
        ratio: share of OOD in the pool; 0 for a clean one.
        seed: of data and training.
        objective: what unlabeled samples cost.
        models: names of `evidentia.semisup.CONTROLS`.
        after_each: called after each training.
        settings: further ones of `evidentia.semisup.train_task`.

    Example:
        >>> trained = impact_models("two-moons", "faraway", 0.5, 0, models=["no BN"], updates=5, progress=False)
        >>> trained["no BN"].classifier.settings.norm
        'none'
    """
    trained = {}
    for model in models:
        share: dict[str, Any] = {"ood": ood, "ratio": ratio} if ratio else {}
        trained[model] = train_task(data, objective, seed=seed, **share, **CONTROLS[model], **settings)
        if after_each is not None:
            after_each()
    return trained


def impact_rows(
    data: str,
    kinds: Sequence[str],
    ratios: Sequence[float],
    seeds: Sequence[int],
    *,
    objective: str = "vat",
    models: Sequence[str] = MODELS,
    **settings: Any,
) -> list[dict[str, Any]]:
    """The accuracy of each model for each kind and share of OOD, ready for JSON.

    A row holds `data`, `objective`, `ood`, `ratio`, `model`, the `accuracies` of the seeds, their `mean` and `std`, and
    `published`, the thesis' accuracy in [0, 1], or None where it has none.

    Args:
        data: a data set of `evidentia.semisup.load_pool`.
        kinds: of OOD.
        ratios: shares of OOD in the pool.
        seeds: of data and training.
        objective: what unlabeled samples cost.
        models: names of `evidentia.semisup.CONTROLS`.
        settings: further ones of `impact_models`.
    """
    rows = []
    for ood in kinds:
        for ratio in ratios:
            runs = [
                impact_models(data, ood, ratio, seed, objective=objective, models=models, **settings) for seed in seeds
            ]
            for model in models:
                found = [run[model].result.accuracy for run in runs]
                rows.append(
                    {
                        "data": data,
                        "objective": objective,
                        "ood": ood,
                        "ratio": ratio,
                        "model": model,
                        "accuracies": found,
                        "mean": float(np.mean(found)),
                        "std": spread(found),
                        "published": _published(data, objective, ood, ratio, model),
                    }
                )
    return rows


def spread(values: Sequence[float]) -> float:
    """The standard deviation, 0 for a single value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _published(data: str, objective: str, ood: str, ratio: float, model: str) -> float | None:
    control = CONTROLS[model]
    norm, passes = control.get("norm", "batch"), control.get("passes")
    figure = published_accuracy(data, objective, control["robust"], ood, ratio, norm, passes)
    return None if figure is None else figure.value / 100
