"""A method of early detection on one data set: trained, its thresholds set on validation clips, and tested.

Four operating points, all chosen on validation clips:

| metrics | thresholds are set to |
|---|---|
| no prefix | the largest macro F1 |
| `at_delay.` | the largest macro F1 with a mean delay of at most 0.40 s, or what `delay_limit` says |
| `at_half_alarms.` | the same with at most half of the false alarms that the baseline has at that delay |
| `at_f1.` | the smallest delay at the macro F1 of the baseline's first point |

Windows, decays and the limits of filters are chosen with them. The baseline, a trained CRNN for sound and ACAR for
video, is held to the same, but for the half of its own false alarms: there it is at `at_delay`. `gain` is macro F1 less
the baseline's, `false_alarms_ratio` and `common_ratio` are ours over the baseline's, the latter of the delays on the
events that both hit. `met` and `baseline_met` are 0 where no thresholds reach the point on the validation clips: then
the nearest to it stand in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from evidentia._support.errors import EvidentiaError
from evidentia.evaluation import common_delays, onset_auc
from evidentia.events import EventDetector, make_head
from evidentia.events.data.by_name import DATASETS, check_data
from evidentia.experiments.jobs.events_methods import (
    METHODS,
    PRETRAINED_ON,
    PRETRAINING,
    PRETRAINING_SEED,
    WINDOWS,
    Method,
    find_method,
)
from evidentia.experiments.jobs.events_networks import Outputs, Training, trained_outputs
from evidentia.experiments.jobs.events_points import Point, chosen_point, own_limit, own_point
from evidentia.experiments.jobs.registry import CHECKS, DATA_CHECKS, JOBS

DELAY = 0.4
_OF_THE_JOB = ("data", "method", "head", "calibrated", "delay_limit", "clips", "held_out", "data_root")


@JOBS.register("events")
def events_job(configuration: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train and test a `method` of `METHODS` on `data`, a name of `evidentia.events.data.by_name.DATASETS`.

    Further options: `clips` to train on and `held_out` clips to set thresholds on and to test with; `head`, settings of
    the method's head that are not chosen on validation clips; `calibrated`, False for the head's own threshold (for
    opinions the thesis' rule: belief above disbelief, vacuity below a limit); `delay_limit` in seconds; and settings of
    `EventDetector`, such as `epochs`. Networks are trained once and kept, see
    `evidentia.experiments.jobs.events_networks`.
    """
    method, fixed = METHODS[configuration["method"]], configuration.get("head", {})
    baseline = METHODS[method.baseline]
    ours = trained_outputs(training_of(configuration, method, seed), method.sampled)
    base = trained_outputs(training_of(configuration, baseline, seed))
    theirs = chosen_point(baseline, base)
    if not configuration.get("calibrated", True):
        return _finite(_figures(own_point(method, ours, fixed), theirs))
    found = _figures(chosen_point(method, ours, fixed), theirs)
    limit = configuration.get("delay_limit", DELAY)
    as_fast = chosen_point(baseline, base, delay=limit)
    half = as_fast.false_alarms_per_minute / 2
    found["at_delay"] = _figures(chosen_point(method, ours, fixed, delay=limit), as_fast)
    found["at_half_alarms"] = _figures(
        chosen_point(method, ours, fixed, delay=limit, false_alarms_per_minute=half), as_fast
    )
    found["at_f1"] = _figures(chosen_point(method, ours, fixed, macro_f1=theirs.validation.macro_f1), theirs)
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
    own_limit(method, configuration.get("head", {}))
    EventDetector(**{**method.training, **_settings(configuration)}, progress=False)


@DATA_CHECKS.register("events")
def check_events_data(configurations: Iterable[Mapping[str, Any]], data_root: str | None) -> None:
    """See that the clips of every data set could be loaded, and load none."""
    check_data((configuration["data"] for configuration in configurations), data_root)


def _settings(configuration: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in configuration.items() if name not in _OF_THE_JOB}


def training_of(configuration: Mapping[str, Any], method: Method, seed: int) -> Training:
    """The training behind a job, and the one before it if the method is pretrained."""
    counts = {name: configuration.get(name) for name in ("clips", "held_out", "data_root")}
    settings, data = _settings(configuration), configuration["data"]
    start = None
    if method.pretrained:
        # Trained once for all seeds and subsets, as users would. Built-in sounds have none beside themselves.
        sounds = PRETRAINED_ON if data != "synthetic" else data
        start = Training({**PRETRAINING, **settings}, sounds, PRETRAINING_SEED, **counts)
    return Training({**method.training, **settings}, data, seed, **counts, start=start)


def _figures(ours: Point, theirs: Point) -> dict[str, Any]:
    """Of the test clips, ours, and ours beside the baseline's."""
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
        "max_uncertainty": ours.max_uncertainty,
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
        given = outputs[part].alpha, outputs[part].beta
        alpha, beta = (torch.cat([tensor[:, :1].expand(-1, before, -1), tensor], 1) for tensor in given)
        head = make_head("umss-warning", pool="geometric", window=window)
        return float(onset_auc(head.fuse(alpha, beta).score[:, before:], outputs[part].truth))

    return auc(max(WINDOWS, key=lambda window: auc(window, "validation")), "test")


def _finite(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Without the figures that nothing was counted for."""
    nested = {name: _finite(value) if isinstance(value, Mapping) else value for name, value in metrics.items()}
    return {
        name: value
        for name, value in nested.items()
        if isinstance(value, dict) or (value is not None and math.isfinite(value))
    }
