"""Weights of the loss that make a network early: the first segments of an event count more."""

from __future__ import annotations

import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia.evaluation import EventTruth


def onset_weights(
    truth: EventTruth,
    segments: int | None = None,
    *,
    first: tuple[int, float] = (10, 3.0),
    middle: tuple[int, float] = (25, 1.0),
    late: float = 0.4,
    after: tuple[int, float] = (3, 0.3),
) -> Tensor:
    """The weight of each clip, segment and class in the loss, shape `(N, T, K)`, float32.

    An alarm is useful at the beginning of an event. So positives count more there, and less once the event has gone on
    for long; and the negatives right after an event count less, where a network that is still sure does no harm.

    Args:
        truth: the events of N clips.
        segments: T; the longest clip's number of segments if None. Segments beyond the end of a clip have weight 0.
        first: positives among an event's first so many segments have this weight.
        middle: those after, up to so many segments, have this one.
        late: all later ones have this.
        after: so many negatives after an event have this weight; all other negatives have 1.

    Example:
        >>> truth = EventTruth.from_activity([[[0], [1], [1], [1], [0], [0]]])
        >>> onset_weights(truth, first=(1, 3.0), middle=(2, 1.0), late=0.4, after=(1, 0.3))[0, :, 0]
        tensor([1.0000, 3.0000, 1.0000, 0.4000, 0.3000, 1.0000])
    """
    if not 0 <= first[0] <= middle[0] or after[0] < 0 or min(first[1], middle[1], late, after[1]) < 0:
        raise EvidentiaError(
            f"weights must be at least 0, and first no longer than middle, got first={first}, middle={middle}, "
            f"late={late}, after={after}"
        )
    event, onset_segment, _ = truth.reach(segments)
    active = event >= 0
    weights = torch.ones(event.shape)
    if len(onset_segment):
        age = torch.arange(event.shape[1]).view(1, -1, 1) - onset_segment[event.clamp(min=0)]
        positive = torch.where(age < first[0], first[1], torch.where(age < middle[0], middle[1], late))
        so_far = torch.nn.functional.pad(active.long().cumsum(1), (0, 0, after[0] + 1, 0))
        recent = so_far[:, after[0] + 1 :] > so_far[:, : event.shape[1]]
        weights = torch.where(active, positive, torch.where(recent, after[1], 1.0))
    return weights * truth.valid(segments)
