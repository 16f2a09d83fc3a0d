"""False alarms as a stream would announce them, at many thresholds at once."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from evidentia.evaluation import EventTruth
from evidentia.events.triggers import Array, Trigger

# What one step of all thresholds remembers should stay in a processor's cache.
_AT_ONCE = 60_000


def false_alarms(
    scores: Tensor,
    truth: EventTruth,
    thresholds: Tensor,
    *,
    refractory: float | None = None,
    max_delay: float | None = None,
    early_collar: float = 0.0,
) -> Tensor:
    """How many alarms fall outside of the events of their class, every alarm of each clip counted.

    `early_curve` counts the first call of a clip and class, which says little of long recordings.

    Args:
        scores: any range, higher for more likely, shape `(N, T, K)`.
        truth: the events of the N clips.
        thresholds: what a score must exceed, shape `(Q, K)`.
        refractory: seconds after an alarm of a class without another; as streams have by default if None.
        max_delay: as in `early_scores`.
        early_collar: as in `early_scores`.

    Returns:
        Shape `(Q, K)`, int64.

    Example:
        >>> truth = EventTruth.from_activity([[[0], [0], [0], [0], [1], [1]]], segment=1.0)
        >>> scores = torch.tensor([[[0.9], [0.1], [0.6], [0.1], [0.9], [0.9]]])
        >>> false_alarms(scores, truth, torch.tensor([[0.0], [0.5], [0.7], [0.9]])).flatten()
        tensor([1, 2, 1, 0])
    """
    size = scores.shape[1]
    outside = (truth.reach(size, max_delay=max_delay, early_collar=early_collar).event < 0).unsqueeze(-1).numpy()
    values = scores.masked_fill(~truth.valid(size), -torch.inf).unsqueeze(-1).numpy()
    levels = thresholds.T.contiguous().numpy()
    rest = round((Trigger().refractory if refractory is None else refractory) / truth.segment)
    total = np.zeros(levels.shape, dtype=np.int64)
    step = max(1, _AT_ONCE // levels.size)
    for first in range(0, len(values), step):
        rows = slice(first, first + step)
        total += _alarms(values[rows], outside[rows], levels, rest).sum(0)
    return torch.from_numpy(total).T


def _alarms(values: Array, outside: Array, levels: Array, rest: int) -> Array:
    """What `Trigger.fire` gives outside of events, counted for each clip, class and threshold, shape `(N, K, Q)`."""
    shape = (len(values), *levels.shape)
    on, ready, count = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.int64)
    for t in range(values.shape[1]):
        active = values[:, t] > levels
        begins = active > on
        begins &= ready <= t
        on &= active
        # Few begin at a time, so that it is cheaper to find them than to write to all.
        fired = np.flatnonzero(begins)
        on.flat[fired] = True
        ready.flat[fired] = t + rest
        count.flat[fired] += np.broadcast_to(outside[:, t], shape).flat[fired]
    return count
