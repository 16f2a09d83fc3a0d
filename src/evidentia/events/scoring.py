"""How a detector does on whole clips: the scores of its alarms, and what they cost."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from evidentia.evaluation import EarlyScores, early_scores
from evidentia.events.alarms import alarms
from evidentia.events.clips import Clip, clip_labels
from evidentia.events.fitting import check_lengths
from evidentia.events.triggers import Trigger

if TYPE_CHECKING:
    from evidentia.events.estimator import EventDetector


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
    truth = det.truth(clips)
    pooled = det.head_.outputs(truth.num_classes) < truth.num_classes
    begin = time.process_time()
    found = det.beta(clips)
    given = alarms(det.head_.calls(det.head_.fuse(found.alpha, found.beta)), trigger, truth.segment)
    spent = time.process_time() - begin
    told = truth.any_class() if pooled else truth
    scores = early_scores(given, told, **options)
    counted = {field.name: getattr(scores, field.name) for field in fields(scores)}
    counted["false_alarms_per_minute"] = early_scores(given, told, **{**options, "by": "event"}).false_alarms_per_minute
    return DetectorScores(**counted, inference_time=spent / (60 * truth.minutes))
