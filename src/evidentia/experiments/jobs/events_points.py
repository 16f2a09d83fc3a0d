"""Operating points: how a method decides is chosen on validation clips, and then counted on test clips.

A filter drops calls whose uncertainty reaches a limit. Its limit is chosen together with the threshold, from: none; the
thesis' own (0.9, and 0.5 for epistemic uncertainty); and those that drop a share of the segments in which there is an
event. Shares, because the measures are on very different scales: a grid over [0, 1] that suits entropy may never filter
anything by the epistemic uncertainty of dropout.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from evidentia._support.errors import EvidentiaError
from evidentia._support.quantiles import quantiles
from evidentia.evaluation import EarlyScores, early_scores
from evidentia.events import FusionHead, calibrate, make_head
from evidentia.events.calibration import Calibration
from evidentia.events.fusion.filters import UncertaintyFilter
from evidentia.experiments.jobs.events_methods import DECAYS, Method
from evidentia.experiments.jobs.events_networks import Outputs

# What the limits of a filter drop, of the segments in which there is an event.
_DROPPED = (0.05, 0.1, 0.2, 0.3, 0.5)


class Point(NamedTuple):
    """A method at an operating point."""

    head: FusionHead
    """What decides, with the settings that were chosen; about probabilities that a filter has left."""
    validation: EarlyScores
    test: EarlyScores
    met: bool = True
    """Whether the validation clips allow what was asked for; if not, it is as near to it as they do."""
    max_uncertainty: float = math.inf
    """The limit of a filter; infinite if it drops nothing, or the method is none."""
    false_alarms_per_minute: float = math.nan
    """Every alarm for nothing that streams of the validation clips give, as `calibrate` counts them."""


def chosen_point(
    method: Method, outputs: Mapping[str, Outputs], fixed: Mapping[str, Any] | None = None, **target: float
) -> Point:
    """The method with thresholds, and windows, decays and limits that are not fixed, from the validation clips.

    Args:
        method: which.
        outputs: what its network says of the `validation` and `test` clips.
        fixed: settings of its head that are not chosen.
        target: as for `calibrate`; the largest macro F1 if none.
    """
    fixed = fixed or {}
    head, seen = _deciding(method, fixed), outputs["validation"]
    options: dict[str, Any] = {
        **target,
        "windows": () if "window" in fixed else method.windows,
        "decays": () if "decay" in fixed or "decay" not in type(head).model_fields else DECAYS,
    }
    limits = _limits(method, fixed, seen)
    found = []
    for limit in limits:
        alpha, beta = seen.within(method.head, limit)
        found.append(calibrate(head, alpha, beta, seen.truth, per_class=False, **options))
    # The first of equals: no limit, where one does not help.
    best = max(range(len(limits)), key=lambda n: _worth(found[n], target))
    chosen = found[best]
    test = _scores(chosen.head, method, outputs["test"], limits[best])
    return Point(chosen.head, chosen.scores, test, chosen.met, limits[best], chosen.false_alarms_per_minute)


def own_point(method: Method, outputs: Mapping[str, Outputs], fixed: Mapping[str, Any]) -> Point:
    """The method with its head's own settings, and those that are fixed."""
    head, limit = _deciding(method, fixed), own_limit(method, fixed)
    validation, test = (_scores(head, method, outputs[part], limit) for part in ("validation", "test"))
    return Point(head, validation, test, max_uncertainty=limit)


def own_limit(method: Method, fixed: Mapping[str, Any]) -> float:
    """The limit of a method's filter as its head has it; infinite if the method is no filter.

    Raises:
        EvidentiaError: if there is one for each class.
    """
    head = make_head(method.head, **fixed)
    if not isinstance(head, UncertaintyFilter):
        return math.inf
    if isinstance(head.max_uncertainty, tuple):
        raise EvidentiaError(f"a study's filters have one limit for all classes, got {head.max_uncertainty}; give one")
    return head.max_uncertainty


def _deciding(method: Method, fixed: Mapping[str, Any]) -> FusionHead:
    """The head that decides; about what a filter leaves, that of plain probabilities."""
    head = make_head(method.head, **fixed)
    return make_head("phase1", threshold=head.threshold) if isinstance(head, UncertaintyFilter) else head


def _limits(method: Method, fixed: Mapping[str, Any], seen: Outputs) -> list[float]:
    own = own_limit(method, fixed)
    if own == math.inf or "max_uncertainty" in fixed:
        return [own]
    during_events = seen.uncertainty(method.head)[seen.truth.activity(seen.alpha.shape[1])]
    kept = 1 - torch.tensor(_DROPPED, dtype=torch.float64)
    return [math.inf, own, *quantiles(during_events, kept).tolist()]


def _worth(found: Calibration, target: Mapping[str, float]) -> tuple[bool, float]:
    """What a limit is chosen by: as `calibrate` chooses a threshold, whether it meets the target first."""
    scores = found.scores
    if "macro_f1" in target and found.met:
        return True, -scores.censored_delay
    if "delay" in target and not found.met:
        return False, -math.inf if math.isnan(scores.delay) else -scores.delay
    return found.met, scores.macro_f1


def _scores(head: FusionHead, method: Method, outputs: Outputs, limit: float) -> EarlyScores:
    return early_scores(head.calls(head.fuse(*outputs.within(method.head, limit))), outputs.truth)
