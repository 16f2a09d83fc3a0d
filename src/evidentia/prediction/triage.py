"""From uncertainties to decisions: accept the label, abstain, or ask for more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import torch
from scipy.stats import beta
from torch import Tensor

from evidentia._support.checks import check_unit_interval
from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import real_number

if TYPE_CHECKING:
    from evidentia.prediction.prediction import Prediction


class Verdict(IntEnum):
    """What to do with a sample."""

    ACCEPT = 0
    NO_EVIDENCE = 1
    CONFLICT = 2
    INDISTINCT = 3

    @property
    def description(self) -> str:
        """The verdict in words."""
        return _DESCRIPTIONS[self]


_DESCRIPTIONS = {
    Verdict.ACCEPT: "accept",
    Verdict.NO_EVIDENCE: "abstain: no evidence",
    Verdict.CONFLICT: "ask: conflicting evidence",
    Verdict.INDISTINCT: "ask: classes not distinct",
}

# From how many shares of the validation samples a calibration with confidence starts to test.
_STARTS = 5

# In order of precedence: without evidence, conflict and vagueness mean nothing.
_REASONS = {"vacuity": Verdict.NO_EVIDENCE, "dissonance": Verdict.CONFLICT, "vagueness": Verdict.INDISTINCT}


# Every uncertainty is above this threshold.
ACCEPT_NOTHING = -1.0


@dataclass(frozen=True)
class TriageRule:
    """Thresholds above which an uncertainty keeps a label from being accepted; None for one that is not used.

    Vacuity takes precedence over dissonance, and dissonance over vagueness. A threshold of -1 accepts nothing.

    Example:
        >>> import torch
        >>> TriageRule(vacuity=0.5).apply({"vacuity": torch.tensor([0.1, 0.9])}).names
        ['accept', 'abstain: no evidence']
    """

    vacuity: float | None = None
    dissonance: float | None = None
    vagueness: float | None = None

    def __post_init__(self) -> None:
        for name in _REASONS:
            if (threshold := getattr(self, name)) is not None and threshold != ACCEPT_NOTHING:
                real_number(threshold, f"the threshold of {name} ({ACCEPT_NOTHING:g} accepts nothing)", 0, 1)
        if not self.thresholds:
            raise EvidentiaError(f"triage needs a threshold for at least one of: {', '.join(_REASONS)}")

    @classmethod
    def of(cls, thresholds: Mapping[str, float]) -> TriageRule:
        """A rule of thresholds by the name of the uncertainty."""
        unknown = [name for name in thresholds if name not in _REASONS]
        if unknown:
            raise EvidentiaError(f"triage is by {', '.join(_REASONS)}, not by {', '.join(unknown)}")
        return cls(**thresholds)

    @property
    def thresholds(self) -> dict[str, float]:
        """The thresholds in use, by the name of the uncertainty."""
        given = {name: getattr(self, name) for name in _REASONS}
        return {name: float(threshold) for name, threshold in given.items() if threshold is not None}

    def apply(self, uncertainties: Mapping[str, Tensor]) -> Triage:
        """Decide for each sample, given its uncertainties by name."""
        missing = [name for name in self.thresholds if name not in uncertainties]
        if missing:
            raise EvidentiaError(
                f"triage by {', '.join(missing)} needs that uncertainty, but there are only: {', '.join(uncertainties)}"
            )
        first = uncertainties[next(iter(self.thresholds))]
        verdicts = torch.zeros_like(first, dtype=torch.long)
        for name, threshold in reversed(self.thresholds.items()):
            verdicts = verdicts.masked_fill(uncertainties[name] > threshold, int(_REASONS[name]))
        return Triage(verdicts)

    @classmethod
    def calibrate(
        cls,
        validation: Prediction,
        labels: Tensor | None = None,
        *,
        coverage: float | None = None,
        error_rate: float | None = None,
        false_alarm_rate: float | None = None,
        confidence: float | None = None,
    ) -> TriageRule:
        """Find thresholds on held-out data that meet one target.

        The thresholds of all uncertainties are the same quantile of each on the validation data, so that one number
        moves them together, and no uncertainty is favoured for its scale. A coverage or a false-alarm rate asks for a
        minimum, and as little more is accepted as ties allow; an error rate sets a maximum, and as much is accepted
        as it allows, which may be nothing.

        Args:
            validation: predictions for samples that were not trained on.
            labels: their true labels; needed for the last two targets.
            coverage: accept at least this share of samples.
            error_rate: accept so much that at most this share of the accepted labels is wrong.
            false_alarm_rate: hold back at most this share of the samples that were labelled right.
            confidence: for `error_rate`, hold the target not just on the validation data but on new data like it, with
                this probability. By Clopper-Pearson bounds, tested one threshold after the other from five starting
                points (fixed-sequence testing, as in Angelopoulos et al. 2021, "Learn then test").

        Example:
            >>> import torch, evidentia as ev
            >>> evidence = torch.rand(200, 3, generator=torch.Generator().manual_seed(0)) * 30
            >>> opinion = ev.MultinomialOpinion.from_evidence(evidence)
            >>> validation = ev.Prediction(opinion.projected, opinion)
            >>> rule = ev.TriageRule.calibrate(validation, coverage=0.8)
            >>> validation.triage(rule).coverage >= 0.8
            True
        """
        targets = {"coverage": coverage, "error_rate": error_rate, "false_alarm_rate": false_alarm_rate}
        given = {name: value for name, value in targets.items() if value is not None}
        if len(given) != 1:
            raise EvidentiaError(f"calibration needs exactly one target of {', '.join(targets)}, got {len(given)}")
        ((target, value),) = given.items()
        value = real_number(value, target, 0, 1)
        if confidence is not None:
            if target != "error_rate":
                raise EvidentiaError(f"confidence goes with a target error_rate, not with {target}")
            confidence = real_number(confidence, "confidence", 0, 1, open_low=True, open_high=True)
        if len(validation) == 0:
            raise EvidentiaError("calibration needs at least one validation sample, got none")
        names = [name for name in _REASONS if name in validation.uncertainties]
        if not names:
            raise EvidentiaError(
                f"calibration needs at least one of {', '.join(_REASONS)}, but there are only: "
                f"{', '.join(validation.uncertainties)}; use an evidential method"
            )
        values = torch.stack([validation[name].detach().reshape(-1).cpu().double() for name in names])
        check_unit_interval(values, f"the {' and '.join(names)} of the validation samples")
        strictness = _strictest_quantile(values)
        if target == "coverage":
            count = _fewest(strictness, torch.ones_like(strictness, dtype=torch.bool), value)
        elif target == "false_alarm_rate":
            count = _fewest(strictness, _right(validation, labels, target), 1 - value)
        else:
            count = _most(strictness, ~_right(validation, labels, target), value, confidence)
        if count == 0:
            return cls(**dict.fromkeys(names, ACCEPT_NOTHING))
        # Thresholds at the quantile of the last sample to be accepted; every sample up to it passes them all.
        cut = int(strictness.sort().values[count - 1])
        limits = values.sort(dim=-1).values[:, cut]
        return cls(**dict(zip(names, limits.tolist(), strict=True)))


@dataclass(frozen=True, eq=False)
class Triage:
    """The verdict on each sample.

    Attributes:
        verdicts: `Verdict` codes, shaped as the uncertainties they come from.
    """

    verdicts: Tensor

    @property
    def accepted(self) -> Tensor:
        """Which samples are accepted."""
        return self.verdicts == Verdict.ACCEPT

    @property
    def coverage(self) -> float:
        """The share of samples that are accepted."""
        return float(self.accepted.double().mean())

    @property
    def names(self) -> Any:
        """The verdicts in words, as a list (of lists, for a multi-label task)."""
        return _named(self.verdicts.tolist())

    def counts(self) -> dict[str, int]:
        """How many samples got each verdict."""
        return {verdict.description: int((self.verdicts == verdict).sum()) for verdict in Verdict}

    def __repr__(self) -> str:
        return f"Triage({', '.join(f'{name}: {count}' for name, count in self.counts().items())})"


def _named(codes: Any) -> Any:
    return [_named(code) for code in codes] if isinstance(codes, list) else Verdict(codes).description


def _strictest_quantile(values: Tensor) -> Tensor:
    """For each sample the largest rank that any of its uncertainties has, ties sharing their lowest rank."""
    return torch.searchsorted(values.sort(dim=-1).values, values).amax(0)


def _fewest(strictness: Tensor, counted: Tensor, share: float) -> int:
    """How few samples can be accepted, in order of strictness, for at least this share of those that count."""
    order, ends = _in_order(strictness)
    reached = torch.cat([torch.zeros(1, dtype=torch.long), counted[order].cumsum(0)[ends - 1]])
    enough = reached >= share * int(counted.sum()) - 1e-9
    return int(torch.cat([torch.zeros_like(ends[:1]), ends])[enough][0])


def _most(strictness: Tensor, wrong: Tensor, rate: float, confidence: float | None) -> int:
    """How many samples can be accepted, in order of strictness, with at most this rate of wrong ones among them."""
    order, ends = _in_order(strictness)
    errors = wrong[order].cumsum(0)[ends - 1]
    if confidence is None:
        allowed = ends[errors <= rate * ends + 1e-9]
        return int(allowed[-1]) if len(allowed) else 0
    # Each starting point has its share of the risk of being wrong; from it the test goes on until it first fails.
    level = 1 - (1 - confidence) / _STARTS
    bound = torch.ones(len(ends), dtype=torch.double)
    some = errors < ends
    bound[some] = torch.as_tensor(beta.ppf(level, (errors + 1)[some].numpy(), (ends - errors)[some].numpy()))
    passes = (bound <= rate).tolist()
    accepted = 0
    for start in range(1, _STARTS + 1):
        position = int(torch.searchsorted(ends * _STARTS, start * len(strictness)))
        while position < len(passes) and passes[position]:
            accepted = max(accepted, int(ends[position]))
            position += 1
    return accepted


def _in_order(strictness: Tensor) -> tuple[Tensor, Tensor]:
    """Samples in order of strictness, and how many of them can be accepted: those of a tie pass or fail together."""
    order = strictness.argsort(stable=True)
    ends = torch.unique_consecutive(strictness[order], return_counts=True)[1].cumsum(0)
    return order, ends


def _right(validation: Prediction, labels: Tensor | None, target: str) -> Tensor:
    if labels is None:
        raise EvidentiaError(f"calibration to a target {target} needs the true labels of the validation samples")
    labels = torch.as_tensor(labels)
    if labels.shape != validation.labels.shape:
        raise EvidentiaError(
            f"labels need shape {tuple(validation.labels.shape)} to match the prediction, got {tuple(labels.shape)}"
        )
    return (validation.labels.cpu() == labels.cpu()).reshape(-1)
