r"""Early detection: are events called while they last, how soon, and how often for nothing?

Two ways of counting. By clip (the thesis' and the default): of each clip and class only the first call counts; it is a
true positive if an event of that class is going on, else a false positive; a class that is present and not hit is a
false negative. By event, for long streams: an alarm is the first segment of a run of calls; an event is hit if an alarm
falls in it, alarms outside of all events are false, and further alarms within an event that is hit do not count.

A call in segment $t$ (from 0) is made when the segment ends: its delay is $(t + 1) \Delta - \mathrm{onset}$ seconds, or
$t$ minus the segment of the onset. Calls before the onset that `early_collar` admits have delay 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from evidentia._support.checks import TensorLike, as_float_tensor
from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import whole_number
from evidentia.evaluation._inputs import as_binary
from evidentia.evaluation.detection import auroc
from evidentia.evaluation.early_truth import EventTruth


@dataclass(frozen=True, eq=False)
class EarlyScores:
    """How early and how well events were called. Figures that nothing was counted for are NaN.

    Attributes:
        true_positives: hits of each class, shape `(K,)`, int64.
        false_positives: calls of each class for nothing.
        false_negatives: what each class missed.
        delays: the delay of each event of the truth in seconds, NaN where it was not hit, shape `(E,)`, float64.
        delays_in_segments: the same, in segments.
        delay: the mean delay over all hits, in seconds.
        delay_segments: the same, in segments.
        censored_delay: the mean over hits and misses, where a miss counts to the end of the event.
        class_delay: the mean delay of each class's hits, shape `(K,)`.
        false_alarms_per_minute: false positives of all classes a minute of stream; by clip at most one of each clip and
            class, which says little of long clips.
    """

    true_positives: Tensor
    false_positives: Tensor
    false_negatives: Tensor
    delays: Tensor
    delays_in_segments: Tensor
    delay: float
    delay_segments: float
    censored_delay: float
    class_delay: Tensor
    false_alarms_per_minute: float

    @property
    def f1(self) -> Tensor:
        r"""Of each class, $F_1 = 2 TP / (2 TP + FP + FN)$; NaN where there was nothing to find and no call."""
        return f1_score(self.true_positives, self.false_positives, self.false_negatives)

    @property
    def macro_f1(self) -> float:
        """The mean of the F1 of all classes that have one."""
        return float(self.f1.nanmean())

    @property
    def micro_f1(self) -> float:
        """The F1 of all classes counted together."""
        return float(f1_score(self.true_positives.sum(), self.false_positives.sum(), self.false_negatives.sum()))

    @property
    def precision(self) -> Tensor:
        """Of each class, the share of its calls that are hits."""
        return self.true_positives.double() / (self.true_positives + self.false_positives)

    @property
    def recall(self) -> Tensor:
        """Of each class, the share that is hit of what there was to hit."""
        return self.true_positives.double() / (self.true_positives + self.false_negatives)

    def summary(self) -> dict[str, Any]:
        """The figures of all classes together, ready for JSON; None for NaN."""
        figures = {
            "macro_f1": self.macro_f1,
            "micro_f1": self.micro_f1,
            "delay": self.delay,
            "delay_segments": self.delay_segments,
            "censored_delay": self.censored_delay,
            "false_alarms_per_minute": self.false_alarms_per_minute,
        }
        return {name: None if math.isnan(value) else value for name, value in figures.items()}


def early_scores(
    calls: TensorLike,
    truth: EventTruth,
    *,
    by: Literal["clip", "event"] = "clip",
    max_delay: float | None = None,
    early_collar: float = 0.0,
) -> EarlyScores:
    r"""Early F1, delay and false alarms (thesis section 4.7, eq. 4.10 and 4.11).

    Args:
        calls: whether each class is called in each segment, 0 or 1, shape `(N, T, K)`.
        truth: the events of the N clips.
        by: `clip` counts the first call of each clip and class, `event` counts events and alarms. By clip there is at
            most one false alarm a clip and class, so that false alarms a minute shrink as clips get longer; those of
            long recordings are to be counted by event, as a detector's own scores do whatever else is by clip.
        max_delay: calls later than this after the onset, in seconds, are false positives, but for further alarms
            within an event that was hit in time.
        early_collar: calls up to this long before the onset, in seconds, are hits.

    Example:
        >>> from evidentia.evaluation import EventTruth, early_scores
        >>> truth = EventTruth.from_activity([[[0], [1], [1], [1]], [[0], [0], [0], [0]]], segment=0.1)
        >>> scores = early_scores([[[0], [0], [1], [1]], [[0], [1], [0], [0]]], truth)
        >>> round(scores.macro_f1, 4), round(scores.delay, 4), scores.false_alarms_per_minute
        (0.6667, 0.2, 75.0)
    """
    called = as_binary(calls, "calls").cpu()
    check_grid(called, truth, "calls")
    called = called & truth.valid(called.shape[1])
    event, onset_segment, late = truth.reach(called.shape[1], max_delay=max_delay, early_collar=early_collar)
    if by == "clip":
        alarm = called & (called.cumsum(1) == 1)
    elif by == "event":
        alarm = called & ~torch.cat([torch.zeros_like(called[:, :1]), called[:, :-1]], 1)
    else:
        raise EvidentiaError(f"by must be 'clip' or 'event', got {by!r}")
    hitting = (alarm & (event >= 0)).nonzero(as_tuple=True)
    first = torch.full((len(truth.clip),), called.shape[1]).scatter_reduce(0, event[hitting], hitting[1], "amin")
    hit = first < called.shape[1]
    # The number -1 of no event finds the last, which is none that was hit.
    further = torch.cat([hit, hit.new_zeros(1)])[late]
    false = alarm & (event < 0) & ~further
    nan = torch.full_like(truth.onset, torch.nan)
    delays = torch.where(hit, ((first + 1).double() * truth.segment - truth.onset).clamp(min=0), nan)
    steps = torch.where(hit, (first - onset_segment).clamp(min=0).double(), nan)
    found, missed = _found_and_missed(truth, hit, by)
    per_class = [torch.bincount(truth.label[rows], minlength=truth.num_classes) for rows in (found, missed)]
    hits = truth.label[hit]
    return EarlyScores(
        true_positives=per_class[0],
        false_positives=false.sum((0, 1)),
        false_negatives=per_class[1],
        delays=delays,
        delays_in_segments=steps,
        delay=float(delays[hit].mean()),
        delay_segments=float(steps[hit].mean()),
        censored_delay=float(torch.cat([delays[found], truth.duration[missed]]).mean()),
        class_delay=torch.bincount(hits, delays[hit], minlength=truth.num_classes) / per_class[0],
        false_alarms_per_minute=float(false.sum()) / truth.minutes if truth.minutes else float("nan"),
    )


def common_delays(*scores: EarlyScores) -> list[float]:
    """The mean delay of each of several detectors, in seconds, on the events that all of them hit.

    The plain mean delay is over each detector's own hits, so that one which misses late events looks early.

    Example:
        >>> from evidentia.evaluation import EventTruth, common_delays, early_scores
        >>> truth = EventTruth.from_activity([[[1, 1], [1, 1], [1, 1]]], segment=1.0)
        >>> a = early_scores([[[1, 0], [1, 0], [1, 0]]], truth)
        >>> b = early_scores([[[0, 0], [1, 0], [1, 1]]], truth)
        >>> a.delay, b.delay, common_delays(a, b)
        (1.0, 2.5, [1.0, 2.0])
    """
    if not scores:
        raise EvidentiaError("at least one detector's scores are needed, got none")
    if len({len(each.delays) for each in scores}) > 1:
        raise EvidentiaError(
            f"the scores must be of one truth, got {', '.join(str(len(each.delays)) for each in scores)} events"
        )
    common = torch.stack([each.delays for each in scores]).isfinite().all(0)
    return [float(each.delays[common].mean()) for each in scores]


def onset_auc(scores: TensorLike, truth: EventTruth, *, within: int = 10) -> Tensor:
    """How well a score tells the beginning of any event from quiet: the AUROC over segments.

    Positive are the first `within` segments of events, of any class; negative are segments without any event. Segments
    later in an event, and those up to `within` segments after one, are left out.

    Args:
        scores: one score a segment, higher where something begins, shape `(N, T)` or `(N, T, 1)`.
        truth: the events of the N clips.
        within: how many segments count as the beginning.

    Example:
        >>> from evidentia.evaluation import EventTruth, onset_auc
        >>> truth = EventTruth.from_activity([[[0], [0], [1], [1], [1]]])
        >>> onset_auc([[0.1, 0.2, 0.9, 0.1, 0.1]], truth, within=1)
        tensor(1., dtype=torch.float64)
    """
    within = whole_number(within, "within", 1)
    values = as_float_tensor(scores, "scores").detach().cpu()
    values = values.unsqueeze(-1) if values.ndim == 2 else values
    if values.ndim != 3 or values.shape[2] != 1:
        raise EvidentiaError(f"scores must have shape (N, T) or (N, T, 1), got {tuple(values.shape)}")
    size = values.shape[1]
    check_grid(values, truth.any_class(), "scores")
    event, onset_segment, _ = truth.reach(size)
    active = event >= 0
    age = torch.arange(size).view(1, -1, 1) - onset_segment[event.clamp(min=0)] if len(truth.clip) else event
    begins = (active & (age < within)).any(2)
    busy = active.any(2)
    so_far = torch.nn.functional.pad(busy.long().cumsum(1), (within + 1, 0))
    recent = so_far[:, within + 1 :] > so_far[:, :size]
    counted = (begins | ~recent) & truth.valid(size)[..., 0]
    return auroc(values[..., 0][counted], begins[counted])


def f1_score(true_positives: Tensor, false_positives: Tensor, false_negatives: Tensor) -> Tensor:
    """2 TP / (2 TP + FP + FN) in float64, NaN where all are 0."""
    return 2 * true_positives.double() / (2 * true_positives + false_positives + false_negatives)


def check_grid(values: Tensor, truth: EventTruth, name: str) -> None:
    """Require one value for each clip, segment and class of the truth."""
    if values.ndim != 3 or values.shape[0] != len(truth.lengths) or values.shape[2] != truth.num_classes:
        raise EvidentiaError(
            f"{name} must have shape (clips, segments, classes) with {len(truth.lengths)} clips and "
            f"{truth.num_classes} classes as the truth has, got {tuple(values.shape)}"
        )


def _found_and_missed(truth: EventTruth, hit: Tensor, by: str) -> tuple[Tensor, Tensor]:
    """The numbers of the events that stand for true positives and for false negatives."""
    numbers = torch.arange(len(hit))
    if by == "event" or not len(hit):
        return numbers[hit], numbers[~hit]
    # A clip and class is one thing to find, hit by at most one call; its first event stands for it if it is missed.
    row = truth.clip * truth.num_classes + truth.label
    _, group, sizes = torch.unique_consecutive(row, return_inverse=True, return_counts=True)
    any_hit = torch.bincount(group[hit], minlength=len(sizes)) > 0
    return numbers[hit], (sizes.cumsum(0) - sizes)[~any_hit]


def as_thresholds(thresholds: Sequence[float] | Tensor, like: Tensor) -> Tensor:
    """Thresholds of shape `(Q, K)` from Q numbers, or from Q numbers a class."""
    values = as_float_tensor(thresholds, "thresholds", like=like)
    if values.ndim == 1:
        values = values.unsqueeze(-1).expand(-1, like.shape[-1])
    if values.ndim != 2 or values.shape[1] != like.shape[-1] or not len(values):
        raise EvidentiaError(
            f"thresholds must have shape (Q,) or (Q, {like.shape[-1]}) with at least one of them, "
            f"got {tuple(values.shape)}"
        )
    return values
