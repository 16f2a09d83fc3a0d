"""How a detector does on whole clips: the scores of its alarms, and what they cost."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from evidentia.evaluation import EarlyScores, EventTruth, early_scores
from evidentia.events.clips import Clip, clip_labels
from evidentia.events.streams.alarms import alarms
from evidentia.events.streams.triggers import Trigger
from evidentia.events.training.fitting import check_lengths

if TYPE_CHECKING:
    from evidentia.events.estimator import EventDetector

# Clips of up to about so many segments, a minute of sound, are scored together whatever their lengths.
_SHORT = 1023


@dataclass(frozen=True, eq=False)
class DetectorScores(EarlyScores):
    """Early scores of a detector's alarms, with the processor time that it took to give them.

    False alarms a minute are of all alarms that streams of the clips give, also where all else is counted by clip, by
    which a recording of any length has at most one of a class.

    Attributes:
        inference_time: processor seconds a second of input, of all cores together, from samples to alarms. Whole clips
            go through the network in batches; `benchmarks/events.py` measures streams.
    """

    inference_time: float

    def __repr__(self) -> str:
        return (
            f"DetectorScores(macro F1 {self.macro_f1:.3f}, delay {self.delay:.3f} s, "
            f"{self.false_alarms_per_minute:.2f} false alarms a minute)"
        )

    def summary(self) -> dict[str, Any]:
        """The figures of all classes together, and the inference time, ready for JSON; None for NaN."""
        return {**super().summary(), "inference_time": self.inference_time}


def score_detector(
    det: EventDetector, clips: Sequence[Clip], trigger: Trigger, options: Mapping[str, Any]
) -> DetectorScores:
    """Early scores of the alarms that streams of clips would give.

    Args:
        det: the detector.
        clips: the clips.
        trigger: of the streams.
        options: of `early_scores`.
    """
    check_lengths(clips, det.inputs_)
    if unknown := [label for label in clip_labels(clips) if label not in det.labels_]:
        warnings.warn(
            f"the detector does not know {', '.join(unknown)}, of which the clips have events: these are left out, and "
            f"an alarm at one counts as false; it knows {', '.join(det.labels_)}. Name classes as in training",
            stacklevel=3,
        )
    groups = _alike(det.truth(clips).lengths.tolist())
    parts = [_score_some(det, [clips[place] for place in places], trigger, options) for places in groups]
    scores = parts[0].scores if len(parts) == 1 else _joined(parts, groups)
    counted = {field.name: getattr(scores, field.name) for field in fields(scores)}
    spent, minutes = sum(part.spent for part in parts), sum(part.truth.minutes for part in parts)
    return DetectorScores(**counted, inference_time=spent / (60 * minutes))


class _Scored(NamedTuple):
    """Some clips that were scored."""

    scores: EarlyScores
    """With every false alarm counted, whatever else is by clip."""
    truth: EventTruth
    spent: float
    """Processor seconds from samples to alarms."""


def _alike(lengths: Sequence[int]) -> list[list[int]]:
    """The places of clips that are scored together: those of about one length.

    Each takes the memory of the longest among them, which is then less than twice its own; short clips take little
    anyhow.
    """
    groups: dict[int, list[int]] = {}
    # Of clips of less than a segment alone there would be nothing to score.
    shortest = min(length for length in lengths if length)
    for place, length in enumerate(lengths):
        groups.setdefault(max(length, shortest, _SHORT).bit_length(), []).append(place)
    return list(groups.values())


def _score_some(det: EventDetector, clips: Sequence[Clip], trigger: Trigger, options: Mapping[str, Any]) -> _Scored:
    truth = det.truth(clips)
    pooled = det.head_.outputs(truth.num_classes) < truth.num_classes
    begin = time.process_time()
    found = det.beta(clips)
    given = alarms(det.head_.calls(det.head_.fuse(found.alpha, found.beta)), trigger, truth.segment)
    spent = time.process_time() - begin
    told = truth.any_class() if pooled else truth
    scores = early_scores(given, told, **options)
    every = early_scores(given, told, **{**options, "by": "event"}).false_alarms_per_minute
    return _Scored(replace(scores, false_alarms_per_minute=every), told, spent)


def _joined(parts: Sequence[_Scored], groups: Sequence[Sequence[int]]) -> EarlyScores:
    """The scores of all clips from those of some at a time: counts add up, and means do by what they are of."""
    scores = [part.scores for part in parts]
    hits, false, missed = (
        torch.stack([getattr(each, name) for each in scores]).sum(0)
        for name in ("true_positives", "false_positives", "false_negatives")
    )
    # Events are in the order of their clips.
    owners = torch.cat([torch.tensor(places)[part.truth.clip] for part, places in zip(parts, groups, strict=True)])
    order = owners.argsort(stable=True)
    delays, steps = (
        torch.cat([getattr(each, name) for each in scores])[order] for name in ("delays", "delays_in_segments")
    )
    late = torch.stack([(each.class_delay * each.true_positives).nan_to_num(0.0) for each in scores]).sum(0)
    return EarlyScores(
        true_positives=hits,
        false_positives=false,
        false_negatives=missed,
        delays=delays,
        delays_in_segments=steps,
        delay=float(delays.nanmean()),
        delay_segments=float(steps.nanmean()),
        censored_delay=_mean(
            [each.censored_delay for each in scores],
            [int((each.true_positives + each.false_negatives).sum()) for each in scores],
        ),
        class_delay=late / hits,
        false_alarms_per_minute=_mean(
            [each.false_alarms_per_minute for each in scores], [part.truth.minutes for part in parts]
        ),
    )


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """The weighted mean of values that something was counted for; NaN without any."""
    total = sum(weights)
    counted = [value * weight for value, weight in zip(values, weights, strict=True) if weight]
    return sum(counted) / total if total else math.nan
