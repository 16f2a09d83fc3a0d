"""A method of early detection on one data set: trained, its thresholds set on validation clips, and tested.

Three operating points, all chosen on validation clips:

| metrics | thresholds are set to |
|---|---|
| no prefix | the largest macro F1 |
| `at_delay.` | the largest macro F1 with a mean delay of at most 0.40 s |
| `at_f1.` | the smallest delay at the macro F1 of the trained CRNN's first point |

The CRNN is held to the same: `gain` is macro F1 less the CRNN's at the same kind of point, `false_alarms_ratio` and
`common_ratio` are ours over the CRNN's, the latter of the delays on the events that both hit. `met` and `baseline_met`
are 0 where no thresholds reach the point on the validation clips: then the nearest to it stand in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from evidentia._support.errors import EvidentiaError
from evidentia.evaluation import EarlyScores, common_delays, early_scores, onset_auc
from evidentia.events import EventDetector, FusionHead, calibrate, make_head
from evidentia.events.data import DATASETS
from evidentia.experiments.jobs.events_methods import BASELINE, DECAYS, METHODS, WINDOWS, Method, find_method
from evidentia.experiments.jobs.events_networks import PLAIN, Outputs, Training, trained_outputs
from evidentia.experiments.jobs.registry import CHECKS, JOBS

DELAY = 0.4
_OF_THE_JOB = ("data", "method", "head", "calibrated", "clips", "held_out", "data_root")


class Point(NamedTuple):
    """A head at an operating point."""

    validation: EarlyScores
    test: EarlyScores
    met: bool = True
    """Whether the validation clips allow what was asked for; if not, it is as near to it as they do."""


@JOBS.register("events")
def events_job(configuration: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train and test a `method` of `METHODS` on `data`, a name of `evidentia.events.data.DATASETS`.

    Further options: `clips` to train on and `held_out` clips to set thresholds on and to test with; `head`, settings of
    the method's head that are not chosen on validation clips; `calibrated`, False for the head's own threshold (for
    opinions the thesis' rule: belief above disbelief, vacuity below a limit); and settings of `EventDetector`, such as
    `epochs`. Networks are trained once and kept, see `evidentia.experiments.jobs.events_networks`.
    """
    method, fixed = METHODS[configuration["method"]], configuration.get("head", {})
    ours = trained_outputs(_training(configuration, method, seed), method.head if method.sampled else PLAIN)
    base = trained_outputs(_training(configuration, METHODS[BASELINE], seed))
    plain = make_head("phase1")
    # Sampled probabilities have been filtered already; what is left of them is decided about as any others.
    head = plain if method.sampled else make_head(method.head, **fixed)
    theirs = _calibrated(plain, base)
    if not configuration.get("calibrated", True):
        return _finite(_figures(_as_it_is(head, ours), theirs))
    found = _figures(_calibrated(head, ours, fixed), theirs)
    found["at_delay"] = _figures(_calibrated(head, ours, fixed, delay=DELAY), _calibrated(plain, base, delay=DELAY))
    found["at_f1"] = _figures(_calibrated(head, ours, fixed, macro_f1=theirs.validation.macro_f1), theirs)
    if method.training.get("loss", "beta") != "sigmoid":
        found["onset_auc"] = _warning_auc(ours)
    return _finite(found)


@CHECKS.register("events")
def check_events_job(configuration: Mapping[str, Any]) -> None:
    """Build the detector and the head, and train nothing.

    Example:
        >>> check_events_job({"data": "synthetic", "method": "loud"})
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: there is no method 'loud' of events; choose one of: crnn, ...
    """
    if configuration.get("data") not in DATASETS:
        given = configuration.get("data")
        raise EvidentiaError(f"there is no data {given!r} of events; choose one of: {', '.join(DATASETS)}")
    method = find_method(configuration.get("method"))
    make_head(method.head, **configuration.get("head", {}))
    if method.sampled and configuration.get("head"):
        raise EvidentiaError(
            f"the method {configuration['method']} takes no settings of its head: its sampled probabilities are kept "
            "as its usual limit leaves them"
        )
    EventDetector(**{**method.training, **_settings(configuration)}, progress=False)


def _settings(configuration: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in configuration.items() if name not in _OF_THE_JOB}


def _training(configuration: Mapping[str, Any], method: Method, seed: int) -> Training:
    return Training(
        {**method.training, **_settings(configuration)},
        configuration["data"],
        seed,
        configuration.get("clips"),
        configuration.get("held_out"),
        configuration.get("data_root"),
    )


def _calibrated(
    head: FusionHead, outputs: Mapping[str, Outputs], fixed: Mapping[str, Any] | None = None, **target: float
) -> Point:
    """Thresholds, and windows and decays that are not fixed, from the validation clips."""
    free = [name in type(head).model_fields and name not in (fixed or {}) for name in ("window", "decay")]
    options: dict[str, Any] = {"windows": WINDOWS if free[0] else (), "decays": DECAYS if free[1] else (), **target}
    found = calibrate(head, *outputs["validation"], per_class=False, **options)
    return Point(found.scores, _scores(found.head, outputs["test"]), found.met)


def _as_it_is(head: FusionHead, outputs: Mapping[str, Outputs]) -> Point:
    return Point(_scores(head, outputs["validation"]), _scores(head, outputs["test"]))


def _scores(head: FusionHead, outputs: Outputs) -> EarlyScores:
    return early_scores(head.calls(head.fuse(outputs.alpha, outputs.beta)), outputs.truth)


def _figures(ours: Point, theirs: Point) -> dict[str, Any]:
    """Of the test clips, ours, and ours beside the CRNN's."""
    mine, its = ours.test, theirs.test
    delay, base_delay = common_delays(mine, its)
    return {
        **mine.summary(),
        "gain": mine.macro_f1 - its.macro_f1,
        "common_delay": delay,
        "common_ratio": delay / base_delay if base_delay else math.nan,
        "false_alarms_ratio": mine.false_alarms_per_minute / its.false_alarms_per_minute
        if its.false_alarms_per_minute
        else math.nan,
        "validation_macro_f1": ours.validation.macro_f1,
        "met": float(ours.met),
        "baseline_met": float(theirs.met),
    }


def _warning_auc(outputs: Mapping[str, Outputs]) -> float:
    """How well the warning that something begins tells onsets from quiet; its window is chosen on validation clips.

    The head has no score before its window is full, which would count as knowing that all is quiet, the more so the
    larger the window. So the first segment of a clip also stands for those before it.
    """
    before = max(WINDOWS) - 1

    def auc(window: int, part: str) -> float:
        *given, truth = outputs[part]
        alpha, beta = (torch.cat([tensor[:, :1].expand(-1, before, -1), tensor], 1) for tensor in given)
        head = make_head("umss-warning", pool="geometric", window=window)
        return float(onset_auc(head.fuse(alpha, beta).score[:, before:], truth))

    return auc(max(WINDOWS, key=lambda window: auc(window, "validation")), "test")


def _finite(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Without the figures that nothing was counted for."""
    nested = {name: _finite(value) if isinstance(value, Mapping) else value for name, value in metrics.items()}
    return {
        name: value
        for name, value in nested.items()
        if isinstance(value, dict) or (value is not None and math.isfinite(value))
    }
