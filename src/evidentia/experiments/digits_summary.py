"""What the digits experiment shows, over all its seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy import stats

from evidentia.experiments.digits import GROUPS, TASKS, DigitsRun
from evidentia.prediction import Verdict

UNCERTAINTIES = ("vacuity", "dissonance", "entropy", "aleatoric", "epistemic")


@dataclass(frozen=True)
class Claim:
    """A comparison of two scores at one task, seed by seed."""

    score: str
    baseline: str
    task: str
    differences: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean difference of AUROC."""
        return sum(self.differences) / len(self.differences)

    @property
    def holds(self) -> bool:
        """Whether the score is ahead on average."""
        return self.mean > 0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the mean difference, by Student's t over the seeds."""
        values = np.asarray(self.differences)
        reach = float(stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values)))
        return self.mean - reach, self.mean + reach

    @property
    def verdict(self) -> str:
        """Above, below, or on par if the interval leaves both open."""
        low, high = self.interval
        return "above" if low > 0 else "below" if high < 0 else "on par with"

    def __str__(self) -> str:
        ahead = sum(difference > 0 for difference in self.differences)
        low, high = self.interval
        return (
            f"{self.task}: {self.score} is {self.verdict} {self.baseline} ({self.mean:+.3f} AUROC on average, "
            f"95% interval {low:+.3f} to {high:+.3f}, ahead on {ahead} of {len(self.differences)} seeds)"
        )


def claims(runs: Sequence[DigitsRun]) -> list[Claim]:
    """The two claims that the experiment is about, and the same two against a stronger control."""
    misclassification, unknown = TASKS
    return [
        _compare(runs, score, baseline, task)
        for baseline in ("softmax entropy", "softmax entropy, density-scaled")
        for score, task in (("vacuity", unknown), ("dissonance", misclassification))
    ]


def score_rows(runs: Sequence[DigitsRun]) -> list[tuple[str, ...]]:
    """A row a score: its AUROC at each task, mean and standard deviation over the seeds."""
    rows = []
    for score in runs[0].scores:
        cells = []
        for task in TASKS:
            values = torch.tensor([run.scores[score][task] for run in runs])
            cells.append(f"{float(values.mean()):.3f} ± {float(values.std()):.3f}")
        rows.append((score, *cells))
    return rows


def uncertainty_rows(runs: Sequence[DigitsRun]) -> list[tuple[str, ...]]:
    """A row an uncertainty: its mean over right, wrong and out-of-distribution samples of all seeds."""
    rows = []
    for name in UNCERTAINTIES:
        groups = [torch.cat([run.groups(name)[group] for run in runs]) for group in GROUPS]
        rows.append((name, *(f"{float(values.mean()):.3f}" for values in groups)))
    return rows


def triage_rows(runs: Sequence[DigitsRun]) -> list[tuple[str, ...]]:
    """A row a verdict: the share of right, wrong and out-of-distribution samples that got it."""
    verdicts: list[torch.Tensor] = []
    for group in GROUPS:
        parts = []
        for run in runs:
            known = run.test.triage(run.rule).verdicts
            chosen = {GROUPS[0]: known[~run.wrong], GROUPS[1]: known[run.wrong]}
            parts.append(chosen.get(group, run.unknown.triage(run.rule).verdicts))
        verdicts.append(torch.cat(parts))
    shown = [verdict for verdict in Verdict if any(bool((codes == verdict).any()) for codes in verdicts)]
    return [
        (verdict.description, *(f"{float((codes == verdict).double().mean()):.1%}" for codes in verdicts))
        for verdict in shown
    ]


def accuracy_line(runs: Sequence[DigitsRun]) -> str:
    """The mean accuracy of both networks, in words."""
    means = {name: sum(run.accuracy[name] for run in runs) / len(runs) for name in runs[0].accuracy}
    return ", ".join(f"{name} {mean:.1%}" for name, mean in means.items())


def _compare(runs: Sequence[DigitsRun], score: str, baseline: str, task: str) -> Claim:
    differences = tuple(run.scores[score][task] - run.scores[baseline][task] for run in runs)
    return Claim(score, baseline, task, differences)
