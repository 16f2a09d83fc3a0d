"""F1, delay and false alarms against the threshold: what each threshold would have given, all at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from evidentia._support.checks import TensorLike, validation_enabled
from evidentia._support.errors import EvidentiaError
from evidentia.evaluation._inputs import as_values
from evidentia.evaluation.early import as_thresholds, check_grid, f1_score
from evidentia.evaluation.early_truth import EventTruth


class EarlyCurve(NamedTuple):
    """Counts by clip at each of Q thresholds, of each class; sums over classes and means come from these."""

    thresholds: Tensor
    """Shape `(Q, K)`."""
    true_positives: Tensor
    """Clips in which the first call hits an event, shape `(Q, K)`, int64."""
    false_positives: Tensor
    """Clips in which it hits none."""
    false_negatives: Tensor
    """Clips that have an event and no hit."""
    delay_sum: Tensor
    """The delays of all hits together, in seconds, shape `(Q, K)`, float64."""
    missed_sum: Tensor
    """How long the missed events last together, in seconds."""
    minutes: float
    """The length of all clips together."""

    @property
    def f1(self) -> Tensor:
        """Of each class, shape `(Q, K)`; NaN where there is nothing to find and no call."""
        return f1_score(self.true_positives, self.false_positives, self.false_negatives)

    @property
    def macro_f1(self) -> Tensor:
        """The mean over the classes that have an F1, shape `(Q,)`."""
        return self.f1.nanmean(-1)

    @property
    def micro_f1(self) -> Tensor:
        """Of all classes together, shape `(Q,)`."""
        return f1_score(self.true_positives.sum(-1), self.false_positives.sum(-1), self.false_negatives.sum(-1))

    @property
    def delay(self) -> Tensor:
        """The mean delay over all hits in seconds, shape `(Q,)`; NaN where there are none."""
        return self.delay_sum.sum(-1) / self.true_positives.sum(-1)

    @property
    def censored_delay(self) -> Tensor:
        """The mean over hits and misses, where a miss counts to the end of the event, shape `(Q,)`."""
        units = (self.true_positives + self.false_negatives).sum(-1)
        return (self.delay_sum + self.missed_sum).sum(-1) / units

    @property
    def false_alarms_per_minute(self) -> Tensor:
        """False positives of all classes a minute, shape `(Q,)`."""
        return self.false_positives.sum(-1) / self.minutes


def early_curve(
    scores: TensorLike,
    truth: EventTruth,
    thresholds: Sequence[float] | Tensor,
    *,
    max_delay: float | None = None,
    early_collar: float = 0.0,
) -> EarlyCurve:
    """The early scores by clip of `scores > threshold` at many thresholds.

    The first call at a threshold is where the running maximum of the score first exceeds it, which a binary search
    finds: hundreds of thresholds cost little more than one.

    Args:
        scores: any range, higher for more likely, shape `(N, T, K)`.
        truth: the events of the N clips.
        thresholds: Q numbers, or shape `(Q, K)` for thresholds of each class.
        max_delay: as in `early_scores`.
        early_collar: as in `early_scores`.

    Example:
        >>> from evidentia.evaluation import EventTruth, early_curve
        >>> truth = EventTruth.from_activity([[[0], [1], [1], [1]]], segment=0.1)
        >>> curve = early_curve([[[0.2], [0.4], [0.6], [0.9]]], truth, [0.1, 0.5, 0.7])
        >>> curve.macro_f1, curve.delay
        (tensor([0., 1., 1.], dtype=torch.float64), tensor([   nan, 0.2000, 0.3000], dtype=torch.float64))
    """
    values = as_values(scores, "scores").cpu()
    check_grid(values, truth, "scores")
    if validation_enabled() and values.is_floating_point() and bool(values.isnan().any()):
        raise EvidentiaError(
            f"scores must not be NaN, got {int(values.isnan().sum())} NaN; check the network's outputs"
        )
    values = values if values.is_floating_point() else values.double()
    levels = as_thresholds(thresholds, values)
    first = first_calls(values.masked_fill(~truth.valid(values.shape[1]), -torch.inf), levels)

    size = values.shape[1]
    event = truth.reach(size, max_delay=max_delay, early_collar=early_collar).event.permute(0, 2, 1)
    called = first < size
    hit_event = torch.where(called, event.gather(2, first.clamp(max=size - 1)), -1)
    hit = hit_event >= 0
    present, length = _first_events(truth)
    at = hit_event.clamp(min=0)
    onset = truth.onset[at] if len(truth.onset) else torch.zeros_like(at, dtype=torch.float64)
    delay = ((first + 1).double() * truth.segment - onset).clamp(min=0)
    missed = present.unsqueeze(-1) & ~hit
    return EarlyCurve(
        thresholds=levels,
        true_positives=hit.sum(0).T,
        false_positives=(called & ~hit).sum(0).T,
        false_negatives=missed.sum(0).T,
        delay_sum=torch.where(hit, delay, 0.0).sum(0).T,
        missed_sum=torch.where(missed, length.unsqueeze(-1), 0.0).sum(0).T,
        minutes=truth.minutes,
    )


def first_calls(scores: Tensor, thresholds: Tensor) -> Tensor:
    """The first segment in which the score exceeds each threshold, or T where none does.

    Args:
        scores: shape `(N, T, K)`.
        thresholds: shape `(Q, K)`.

    Returns:
        Shape `(N, K, Q)`, int64.

    Example:
        >>> first_calls(torch.tensor([[[0.2], [0.9], [0.5]]]), torch.tensor([[0.1], [0.5], [0.9]]))
        tensor([[[0, 1, 3]]])
    """
    highest = scores.transpose(1, 2).contiguous().cummax(-1).values
    wanted = thresholds.T.expand(len(scores), -1, -1).contiguous()
    return torch.searchsorted(highest, wanted, right=True)


def _first_events(truth: EventTruth) -> tuple[Tensor, Tensor]:
    """Whether each clip has each class, and how long its first event of it lasts, shape `(N, K)`."""
    row = truth.clip * truth.num_classes + truth.label
    present = torch.zeros(len(truth.lengths) * truth.num_classes, dtype=torch.bool)
    length = torch.zeros(len(present), dtype=torch.float64)
    present[row] = True
    # Events are in the order of clips, classes and onsets.
    first = torch.ones_like(row, dtype=torch.bool)
    first[1:] = row[1:] != row[:-1]
    length[row[first]] = truth.duration[first]
    shape = (len(truth.lengths), truth.num_classes)
    return present.view(shape), length.view(shape)
