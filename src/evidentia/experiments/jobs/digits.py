"""Handwritten digits of which some were never shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import whole_number
from evidentia.experiments.digits import TASKS, run_seed
from evidentia.experiments.jobs.registry import CHECKS, JOBS

# The tasks by a word each, as they stand before the names of scores.
_WORDS = dict(zip(TASKS, ("wrong", "unknown"), strict=True))


@JOBS.register("digits")
def digits_job(configuration: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Run `evidentia.experiments.digits.run_seed`, with seeds counted from `first_seed`.

    Metrics are the AUROC of every score, at telling wrong labels (`wrong.vacuity`, `wrong.softmax-entropy` ...) and
    digits that were never shown (`unknown.vacuity` ...), and the accuracy of both networks.
    """
    run = run_seed(configuration.get("first_seed", 0) + seed)
    found: dict[str, Any] = {
        word: {_slug(score): values[task] for score, values in run.scores.items()} for task, word in _WORDS.items()
    }
    return {**found, "accuracy": run.accuracy}


@CHECKS.register("digits")
def check_digits_job(configuration: Mapping[str, Any]) -> None:
    """Train nothing.

    Example:
        >>> check_digits_job({"first_seed": -1})
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: first_seed must be a whole number of at least 0, got -1
    """
    whole_number(configuration.get("first_seed", 0), "first_seed", 0)
    if unknown := set(configuration) - {"first_seed", "data_root"}:
        raise EvidentiaError(f"a digits job has no option {min(unknown)!r}; it has first_seed alone")


def _slug(score: str) -> str:
    return score.replace(",", "").replace(" ", "-")
