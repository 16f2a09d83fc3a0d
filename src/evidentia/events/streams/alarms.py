"""Alarms as a stream would announce them, of whole clips, and how many are false at many thresholds at once."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from evidentia.evaluation import EventTruth
from evidentia.events.state import Array
from evidentia.events.streams.triggers import LONG_AGO, Trigger

# What one step of all thresholds remembers should stay in a processor's cache.
_AT_ONCE = 60_000


def alarms(calls: Tensor, trigger: Trigger, seconds: float, after: Tensor | None = None) -> Tensor:
    """Where streams of clips would give alarms, by the very rule that they go by.

    Args:
        calls: whether each class is called in each segment, bool, shape `(N, T, K)`.
        trigger: when calls become alarms.
        seconds: the length of a segment.
        after: for warnings, the alarms that they rest after, shape `(N, T, C)`.

    Returns:
        Bool, shape `(N, T, K)`.

    Example:
        >>> calls = torch.tensor([1, 0, 1, 1, 1, 1, 0, 1]).bool().view(1, 8, 1)
        >>> alarms(calls, Trigger(needed=2, of=3, refractory=0.0), seconds=0.1).flatten().nonzero().flatten()
        tensor([2])
        >>> alarms(calls, Trigger(refractory=0.3), seconds=0.1).flatten().nonzero().flatten()
        tensor([0, 3, 7])
        >>> after = torch.tensor([0, 0, 1, 0, 0, 0, 0, 0]).bool().view(1, 8, 1)
        >>> alarms(calls, Trigger(refractory=0.3), seconds=0.1, after=after).flatten().nonzero().flatten()
        tensor([0, 5])
    """
    given = calls.cpu().numpy()
    memory = {name: array.repeat(len(given), 0) for name, array in trigger.start(given.shape[2]).items()}
    fired = np.zeros_like(given)
    alarmed = np.full((len(given), 1), LONG_AGO)
    for number in range(given.shape[1]):
        if after is not None:
            alarmed[after[:, number].any(1).numpy()] = number
        fired[:, number], memory = trigger.fire(given[:, number], memory, np.array([number]), seconds, alarmed)
    return torch.from_numpy(fired)


def sustained(scores: Tensor, trigger: Trigger) -> Tensor:
    """The scores that x-out-of-y goes by: a class is on at a threshold where these exceed it.

    Of the latest y scores, x exceed a threshold just where the x-th largest of them does.

    Args:
        scores: any range, higher for more likely, shape `(N, T, K)`.
        trigger: x and y; its refractory time plays no part.

    Example:
        >>> scores = torch.tensor([0.9, 0.1, 0.7, 0.8]).view(1, 4, 1)
        >>> sustained(scores, Trigger(needed=2, of=3)).flatten()
        tensor([  -inf, 0.1000, 0.7000, 0.7000])
    """
    if trigger.of == 1:
        return scores
    before = torch.nn.functional.pad(scores, (0, 0, trigger.of - 1, 0), value=-torch.inf)
    return before.unfold(1, trigger.of, 1).topk(trigger.needed, dim=-1).values[..., -1]


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
        scores: any range, higher for more likely, shape `(N, T, K)`; `sustained` ones for x-out-of-y.
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
    found = truth.reach(size, max_delay=max_delay, early_collar=early_collar)
    event, late = (part.unsqueeze(-1).numpy() for part in (found.event, found.late))
    values = scores.masked_fill(~truth.valid(size), -torch.inf).unsqueeze(-1).numpy()
    levels = thresholds.T.contiguous().numpy()
    rule = Trigger() if refractory is None else Trigger(refractory=refractory)
    # Beyond the end of the clips nothing is counted, and all of it fits the counters.
    rest = min(rule.rest(truth.segment), size)
    total = np.zeros(levels.shape, dtype=np.int64)
    step = max(1, _AT_ONCE // levels.size)
    for first in range(0, len(values), step):
        rows = slice(first, first + step)
        total += _alarms(values[rows], event[rows], late[rows], levels, rest).sum(0)
    return torch.from_numpy(total).T


def _alarms(values: Array, event: Array, late: Array, levels: Array, rest: int) -> Array:
    """What `Trigger.fire` gives outside of events, counted for each clip, class and threshold, shape `(N, K, Q)`."""
    shape = (len(values), *levels.shape)
    on, ready, count = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.int64)
    # The latest event that was hit; events of a class follow each other, so that none before it is still going on.
    hit = np.full(shape, -1)
    for t in range(values.shape[1]):
        active = values[:, t] > levels
        begins = active > on
        begins &= ready <= t
        on &= active
        # Few begin at a time, so that it is cheaper to find them than to write to all.
        fired = np.flatnonzero(begins)
        on.flat[fired] = True
        ready.flat[fired] = t + rest
        now, missed = (np.broadcast_to(part[:, t], shape).flat[fired] for part in (event, late))
        before = hit.flat[fired]
        count.flat[fired] += (now < 0) & ((missed < 0) | (missed != before))
        hit.flat[fired] = np.where(now < 0, before, now)
    return count
