"""The search behind calibration: one candidate for each class, so that a target on all of them is met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError

_STEPS = 60
_LARGEST = 1e6
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
    def tie(self) -> Tensor:
        """What settles ties: false positives, then delays; far below any difference that counts."""
        return 1e-9 * self.false_positives + 1e-10 * (self.delay_sum + self.missed_sum)

    @property
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


def choose(candidates: Candidates, target: str, value: float) -> tuple[Tensor, bool]:
    r"""The candidate of each class, and whether the target is met.

    Args:
        candidates: what there is to choose from.
        target: `none` (the largest macro F1), `false_alarms_per_minute` or `delay` (the largest macro F1 with no more
            of it), or `macro_f1` (the smallest censored delay with no less).
        value: the target's value.

    Example:
        >>> count = torch.tensor([[9], [5]])
        >>> none = torch.zeros(2, 1, dtype=torch.float64)
        >>> both = Candidates(count, torch.tensor([[6], [1]]), 10 - count, none, none, minutes=1.0, per_class=True)
        >>> choose(both, "none", 0.0), choose(both, "false_alarms_per_minute", 2.0)
        ((tensor([0]), True), (tensor([1]), True))
    """
    f1 = candidates.f1
    cost, limit = _cost(candidates, target, value)
    if not candidates.per_class:
        return _choose_one(candidates, cost.sum(-1), target, value, limit)

    def fits(choice: Tensor) -> bool:
        if target == "macro_f1":
            return candidates.macro_f1_at(choice) >= value - _SLACK
        # A detector that never calls has no delay to speak of.
        silent = target == "delay" and not candidates.at(choice, candidates.true_positives)
        return candidates.at(choice, cost) <= limit + _SLACK and not silent

    def at(multiplier: float) -> Tensor:
        return candidates.best(f1 - multiplier * cost)

    if target == "none":
        return at(0.0), True
    # With the largest multiplier the cost decides alone; macro F1 as a target fits with the smallest first.
    eager, thrifty = at(0.0), at(_LARGEST)
    first, last = (thrifty, eager) if target == "macro_f1" else (eager, thrifty)
    if fits(first):
        return first, True
    if not fits(last):
        return (_soonest(candidates) if target == "delay" else last), False
    choice = _bisect(at, fits, last, keep_low=target == "macro_f1")
    return (_spent(choice, -cost, -f1, -value) if target == "macro_f1" else _spent(choice, f1, cost, limit)), True


def _cost(candidates: Candidates, target: str, value: float) -> tuple[Tensor, float]:
    """What a target counts, shape `(Q, K)`, and how much of it there may be."""
    if target == "none":
        return torch.zeros_like(candidates.delay_sum), 0.0
    if not 0 <= value < float("inf"):
        raise EvidentiaError(f"the target {target} must be at least 0 and finite, got {value}")
    if target == "false_alarms_per_minute":
        counted = candidates.false_positives if candidates.false_alarms is None else candidates.false_alarms
        return counted.double(), value * candidates.minutes
    if target == "delay":
        # The mean over hits is at most the target where their delays in excess of it add up to no more than 0.
        return candidates.delay_sum - value * candidates.true_positives, 0.0
    return candidates.delay_sum + candidates.missed_sum, float("inf")


def _soonest(candidates: Candidates) -> Tensor:
    """For each class the candidate of the smallest mean delay; of a class without hits, that of fewest alarms."""
    return candidates.best(-_mean_delay(candidates.delay_sum, candidates.true_positives))


def _mean_delay(delay_sum: Tensor, hits: Tensor) -> Tensor:
    """Over hits; without any it is later than all others."""
    return torch.where(hits > 0, delay_sum / hits.clamp(min=1), _LARGEST)


def _choose_one(candidates: Candidates, cost: Tensor, target: str, value: float, limit: float) -> tuple[Tensor, bool]:
    """One candidate for all classes, from the cost of all of them, shape `(Q,)`."""
    f1, tie = candidates.macro_f1, candidates.tie.sum(-1)
    reached = (
        f1 >= value - _SLACK if target == "macro_f1" else (cost <= limit + _SLACK) & ((f1 > 0) | (target != "delay"))
    )
    gain = -cost if target == "macro_f1" else f1 - 1e-9 * cost
    met = bool(reached.any())
    if met:
        gain = torch.where(reached, gain, -torch.inf)
    elif target == "delay":
        gain = -_mean_delay(candidates.delay_sum.sum(-1), candidates.true_positives.sum(-1))
    else:
        gain = f1 if target == "macro_f1" else -cost
    return (gain - tie).argmax().expand(candidates.tie.shape[1]), met


def _bisect(at: Callable[[float], Tensor], fits: Callable[[Tensor], bool], kept: Tensor, keep_low: bool) -> Tensor:
    """The choice at the multiplier where `fits` turns: just before it with `keep_low`, else just after."""
    low, high = 1e-12, _LARGEST
    for _ in range(_STEPS):
        middle = (low * high) ** 0.5
        choice = at(middle)
        fitting = fits(choice)
        if fitting:
            kept = choice
        if fitting == keep_low:
            low = middle
        else:
            high = middle
    return kept


def _spent(choice: Tensor, gain: Tensor, cost: Tensor, limit: float) -> Tensor:
    """The choice after single classes have changed theirs for as long as there is a gain within the limit.

    One multiplier for all classes steps over choices, and may leave much of the limit unused.
    """
    while True:
        paid, had = (values.gather(0, choice.unsqueeze(0)) for values in (cost, gain))
        more = torch.where(paid.sum() + cost - paid <= limit + _SLACK, gain - had, -torch.inf)
        candidate, k = divmod(int(more.argmax()), more.shape[1])
        if more[candidate, k] <= _SLACK:
            return choice
        choice = choice.index_fill(0, torch.tensor([k]), candidate)
