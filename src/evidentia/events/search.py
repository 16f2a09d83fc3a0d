"""The search behind calibration: one candidate for each class, so that a target on all of them is met.

Costs are sums over classes, as macro F1 is but for its divisor. So with a multiplier for every limit each class can
choose for itself, and the multipliers are searched, those of a second limit within each step of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from evidentia._support.scalars import real_number

_STEPS = 60
# The range of a multiplier: at its end the limit decides alone.
_SMALLEST, _LARGEST = 1e-12, 1e12
# The mean delay of a class that is never hit: later than any.
_NEVER = 1e6
_SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class Candidates:
    """What each of Q candidate settings gives for each class, all of shape `(Q, K)`, counted by clip.

    Attributes:
        true_positives: hits.
        false_positives: calls for nothing.
        false_negatives: misses.
        delay_sum: the delays of all hits together, in seconds.
        missed_sum: how long what was missed lasts together.
        minutes: the length of all clips.
        per_class: whether classes may choose different candidates.
        false_alarms: the alarms for nothing that a stream would give; the false positives if None.
    """

    true_positives: Tensor
    false_positives: Tensor
    false_negatives: Tensor
    delay_sum: Tensor
    missed_sum: Tensor
    minutes: float
    per_class: bool
    false_alarms: Tensor | None = None

    @property
    def f1(self) -> Tensor:
        """The share of each class in macro F1 if no class that does not occur is called; 0 where a class has none."""
        present = (self.true_positives + self.false_negatives).amax(0) > 0
        return self._class_f1.nan_to_num(0.0) / max(1, int(present.sum()))

    @property
    def macro_f1(self) -> Tensor:
        """Macro F1 if all classes choose the same candidate, shape `(Q,)`; 0 where no class has an F1."""
        return self._class_f1.nanmean(-1).nan_to_num(0.0)

    @property
    def gain(self) -> Tensor:
        """Macro F1 as a sum: over classes, shape `(Q, K)`, or of one for all of them, `(Q, 1)`, that they share."""
        return self.f1 if self.per_class else self.macro_f1.unsqueeze(-1)

    @property
    def mean_delay(self) -> Tensor:
        """Over hits, of classes or of all of them, as `gain`; without any it is later than all others."""
        delays, hits = self.delay_sum, self.true_positives
        if not self.per_class:
            delays, hits = delays.sum(-1, keepdim=True), hits.sum(-1, keepdim=True)
        return torch.where(hits > 0, delays / hits.clamp(min=1), _NEVER)

    @property
    def late(self) -> Tensor:
        """The censored delays: what was missed counts with its whole length."""
        return self.delay_sum + self.missed_sum

    @cached_property
    def tie(self) -> Tensor:
        """What settles ties: false positives, then delays; far below any difference that counts."""
        return 1e-9 * self.false_positives + 1e-10 * self.late

    @cached_property
    def _class_f1(self) -> Tensor:
        """NaN where there is nothing to find and no call, as `EarlyScores` has it."""
        counted = 2 * self.true_positives + self.false_positives + self.false_negatives
        return 2 * self.true_positives.double() / counted

    def at(self, choice: Tensor, values: Tensor) -> float:
        """The sum over classes of values at the chosen candidates."""
        return float(values.gather(0, choice.unsqueeze(0)).sum())

    def macro_f1_at(self, choice: Tensor) -> float:
        """Macro F1 at the chosen candidates: a class that does not occur counts, with 0, as soon as it is called."""
        return float(self._class_f1.gather(0, choice.unsqueeze(0)).nanmean().nan_to_num(0.0))

    def best(self, gain: Tensor) -> Tensor:
        """The candidate of each class, shape `(K,)`, with the largest gain; among equals, that of fewest alarms."""
        return (gain - self.tie).argmax(0)


class _Limit(NamedTuple):
    """What a target asks for."""

    cost: Tensor
    """What it counts, shape `(Q, K)`."""
    most: float
    """How much of it there may be over all classes."""
    holds: Callable[[Tensor], bool]
    """Whether a choice, shape `(K,)`, keeps to it."""


_Search: TypeAlias = Callable[[Candidates, Tensor, Sequence[_Limit]], Tensor | None]


def choose(candidates: Candidates, target: Mapping[str, float]) -> tuple[Tensor, bool]:
    r"""The candidate of each class, and whether the target is met.

    Args:
        candidates: what there is to choose from.
        target: nothing (the largest macro F1); `false_alarms_per_minute`, `delay` or both (the largest macro F1 with no
            more of either); or `macro_f1` (the smallest censored delay with no less).

    Example:
        >>> count = torch.tensor([[9], [5]])
        >>> none = torch.zeros(2, 1, dtype=torch.float64)
        >>> both = Candidates(count, torch.tensor([[6], [1]]), 10 - count, none, none, minutes=1.0, per_class=True)
        >>> choose(both, {}), choose(both, {"false_alarms_per_minute": 2.0})
        ((tensor([0]), True), (tensor([1]), True))
    """
    for name, value in target.items():
        real_number(value, f"the target {name}", 0)
    limits = {name: _limit(candidates, name, value) for name, value in target.items()}
    # Within the search for one limit there may be one for a second: that which silence always keeps to.
    order = [limits[name] for name in ("macro_f1", "delay", "false_alarms_per_minute") if name in limits]
    gain = -candidates.late if "macro_f1" in limits else candidates.gain
    best = _best_apart if candidates.per_class else _best_shared
    choice = best(candidates, gain, order)
    if choice is None:
        choice = _nearest(candidates, limits, best)
    return choice, all(limit.holds(choice) for limit in order)


def _limit(candidates: Candidates, name: str, value: float) -> _Limit:
    if name == "macro_f1":
        return _Limit(-candidates.f1, -value, lambda choice: candidates.macro_f1_at(choice) >= value - _SLACK)
    if name == "false_alarms_per_minute":
        counted = candidates.false_positives if candidates.false_alarms is None else candidates.false_alarms
        cost, most = counted.double(), value * candidates.minutes
        return _Limit(cost, most, lambda choice: candidates.at(choice, cost) <= most + _SLACK)
    # The mean over hits is at most the target where their delays in excess of it add up to no more than 0.
    excess = candidates.delay_sum - value * candidates.true_positives

    def soon(choice: Tensor) -> bool:
        # A detector that never calls has no delay to speak of.
        return candidates.at(choice, excess) <= _SLACK and candidates.at(choice, candidates.true_positives) > 0

    return _Limit(excess, 0.0, soon)


def _best_apart(candidates: Candidates, gain: Tensor, limits: Sequence[_Limit]) -> Tensor | None:
    """The candidate of each class with the largest gain within all limits; None if the search finds none."""
    if not limits:
        return candidates.best(gain)
    limit, *others = limits

    def at(multiplier: float) -> Tensor | None:
        choice = _best_apart(candidates, gain - multiplier * limit.cost, others)
        return choice if choice is not None and limit.holds(choice) else None

    kept = at(0.0)
    if kept is not None:
        return kept
    kept = at(_LARGEST)
    if kept is None:
        return None
    low, high = _SMALLEST, _LARGEST
    for _ in range(_STEPS):
        middle = (low * high) ** 0.5
        choice = at(middle)
        if choice is None:
            low = middle
        else:
            kept, high = choice, middle
    return _spent(kept, gain, limits)


def _best_shared(candidates: Candidates, gain: Tensor, limits: Sequence[_Limit]) -> Tensor | None:
    """The one candidate for all classes with the largest gain within all limits; None if there is none."""
    count, classes = candidates.tie.shape
    each = torch.arange(count).unsqueeze(1).expand(-1, classes)
    kept = torch.tensor([all(limit.holds(choice) for limit in limits) for choice in each])
    worth = gain.sum(-1) - candidates.tie.sum(-1)
    for limit in limits:
        # Among equals, what leaves most of the limit.
        worth = worth - 1e-9 * limit.cost.sum(-1)
    return each[torch.where(kept, worth, -torch.inf).argmax()] if kept.any() else None


def _nearest(candidates: Candidates, limits: Mapping[str, _Limit], best: _Search) -> Tensor:
    """What comes nearest to limits that no choice keeps to; a delay, as near as false alarms allow."""
    alarms = [limits[name] for name in limits if name == "false_alarms_per_minute"]
    tried: list[tuple[Tensor, list[_Limit]]] = []
    if "macro_f1" in limits:
        tried.append((candidates.gain, []))
    if "delay" in limits:
        # Of few alarms the soonest hits would be a few lucky ones, had misses no say.
        tried.append((-candidates.late if alarms else -candidates.mean_delay, alarms))
    tried += [(-limit.cost, []) for limit in alarms]
    return next(choice for gain, kept in tried if (choice := best(candidates, gain, kept)) is not None)


def _spent(choice: Tensor, gain: Tensor, limits: Sequence[_Limit]) -> Tensor:
    """The choice after single classes have changed theirs for as long as there is a gain within the limits.

    One multiplier for all classes steps over choices, and may leave much of a limit unused.
    """
    while True:
        more = gain - gain.gather(0, choice.unsqueeze(0))
        for limit in limits:
            paid = limit.cost.gather(0, choice.unsqueeze(0))
            more = torch.where(paid.sum() + limit.cost - paid <= limit.most + _SLACK, more, -torch.inf)
        candidate, k = divmod(int(more.argmax()), more.shape[1])
        if more[candidate, k] <= _SLACK:
            return choice
        choice = choice.index_fill(0, torch.tensor([k]), candidate)
