r"""Calibration: thresholds, windows and decays from held-out data, to a target that users can name.

Every choice is a trade of F1 against a cost: false alarms, or delay. Macro F1 is a mean over classes and both costs are
sums over them, so with a multiplier $\lambda$ each class can choose for itself the settings with the largest
$F_{1,k} / K - \lambda\, \mathrm{cost}_k$, and $\lambda$ is searched until the target is met; with two costs, two of
them. Calibrate on data that the network was not trained on, and never on what the detector is to be tested with.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia._support.quantiles import quantiles
from evidentia._support.scalars import real_number, whole_number
from evidentia.evaluation import EarlyCurve, EarlyScores, EventTruth, early_curve, early_scores
from evidentia.evaluation.early import check_grid
from evidentia.events.fusion import FusionHead, WindowedHead
from evidentia.events.search import Candidates, choose
from evidentia.events.streams.alarms import alarms, false_alarms, sustained
from evidentia.events.streams.triggers import Trigger

# A threshold that nothing exceeds: log odds and vacuities are far below.
NEVER = 1e6


@dataclass(frozen=True, eq=False)
class Calibration:
    """A calibrated head, and how it did on the held-out data.

    Attributes:
        head: the head with the settings that were chosen.
        scores: its scores on the held-out data; a little better than on new data, because the settings fit these.
        met: whether the target was met there; if not, the settings come as close to it as any. Where there are no
            events no target is.
        false_alarms_per_minute: every alarm that streams of the held-out data give for nothing, as the target counts
            them; that of the scores is of the first alarm of each clip and class.
    """

    head: FusionHead
    scores: EarlyScores
    met: bool
    false_alarms_per_minute: float

    def summary(self) -> dict[str, Any]:
        """Whether the target was met, and the scores with every false alarm counted, ready for JSON; None for NaN."""
        scores = {**self.scores.summary(), "false_alarms_per_minute": self.false_alarms_per_minute}
        return {"met": self.met, "scores": scores}


def calibrate(
    head: FusionHead,
    alpha: Tensor,
    beta: Tensor,
    truth: EventTruth,
    *,
    false_alarms_per_minute: float | None = None,
    delay: float | None = None,
    macro_f1: float | None = None,
    windows: Sequence[int] = (),
    decays: Sequence[float] = (),
    thresholds: int = 100,
    per_class: bool = True,
    max_delay: float | None = None,
    early_collar: float = 0.0,
    trigger: Trigger | None = None,
) -> Calibration:
    """Choose a head's thresholds, and if asked its windows and decays, on held-out data.

    F1 and delay are of the first alarm of each clip and class, so cut long recordings in pieces before. Without a
    target macro F1 is made as large as it gets. With a target of the first three arguments:

    Args:
        head: the head, whose other settings stay as they are.
        alpha: what the network gives for the held-out clips, shape `(N, T, K)`.
        beta: the same of the evidence against.
        truth: the events of the clips; `any_class` of it for a head with one output.
        false_alarms_per_minute: macro F1 as large as it gets with at most so many false alarms a minute of all classes.
            Every alarm that a stream would give outside of its class's events counts, where the false alarms of the
            scores are at most one a clip and class.
        delay: the same with a mean delay over hits of at most so many seconds. With both, macro F1 as large as it gets
            within both; where they cannot be had together, false alarms stay within theirs, and the censored delay is
            as short as it then gets.
        macro_f1: the smallest censored delay at this macro F1 or more; by itself.
        windows: windows to choose from; that of the head if none.
        decays: decays to choose from; that of the head if none.
        thresholds: about how many thresholds to try, between quantiles of the scores.
        per_class: choose for each class; else one choice for all of them, which less data are enough for.
        max_delay: as in `early_scores`.
        early_collar: as in `early_scores`.
        trigger: that of the streams for which the settings are chosen; a stream's default if None.

    Example:
        >>> from evidentia.events import PhaseI
        >>> alpha = torch.tensor([[[1.0], [2.0], [9.0], [9.0]], [[1.0], [3.0], [1.0], [1.0]]])
        >>> truth = EventTruth.from_activity([[[0], [0], [1], [1]], [[0], [0], [0], [0]]])
        >>> result = calibrate(PhaseI(), alpha, torch.ones_like(alpha), truth)
        >>> result.scores.macro_f1, result.met
        (1.0, True)
    """
    target = given_target(false_alarms_per_minute, delay, macro_f1)
    thresholds = whole_number(thresholds, "thresholds", 2)
    if not truth.minutes:
        raise EvidentiaError(
            f"there is nothing to calibrate on: none of {len(truth.lengths)} clips is as long as a segment of "
            f"{truth.segment:g} s; give longer ones"
        )
    rule = Trigger() if trigger is None else trigger
    options: dict[str, Any] = {"max_delay": max_delay, "early_collar": early_collar}
    variants = _variants(head, windows, decays)
    curves, counts = [], []
    for variant in variants:
        score = variant.fuse(alpha, beta).score.detach().cpu()
        check_grid(score, truth, "the head's scores")
        score = sustained(score, rule)
        levels = _levels(score, truth, thresholds, per_class)
        curves.append(early_curve(score, truth, levels, **options))
        if false_alarms_per_minute is not None:
            counts.append(false_alarms(score, truth, levels, refractory=rule.refractory, **options))
    candidates = _candidates(curves, counts, per_class)
    choice, met = choose(candidates, target)
    chosen = _with_choice(head, variants, curves, choice, per_class)
    announced = alarms(chosen.calls(chosen.fuse(alpha, beta)), rule, truth.segment)
    scores, streamed = (early_scores(announced, truth, by=by, **options) for by in ("clip", "event"))
    return Calibration(chosen, scores, met and len(truth.clip) > 0, streamed.false_alarms_per_minute)


def given_target(
    false_alarms_per_minute: float | None, delay: float | None, macro_f1: float | None
) -> dict[str, float]:
    """What is asked for by its names, without what is not.

    Example:
        >>> given_target(2.0, 0.4, None)
        {'false_alarms_per_minute': 2.0, 'delay': 0.4}
    """
    targets = {"false_alarms_per_minute": false_alarms_per_minute, "delay": delay, "macro_f1": macro_f1}
    given = {name: value for name, value in targets.items() if value is not None}
    if macro_f1 is not None and len(given) > 1:
        raise EvidentiaError(
            f"a macro F1 is a target by itself, got {' and '.join(given)}; give a delay, false alarms a minute, or "
            "both, and macro F1 is made as large as it gets within them"
        )
    return given


def quiet_thresholds(
    head: FusionHead, alpha: Tensor, beta: Tensor, truth: EventTruth, level: float = 0.05
) -> FusionHead:
    r"""The head with thresholds that a share `level` of the event-free windows exceeds: UMSS as the thesis means it.

    For each class the threshold is the $1 - \mathrm{level}$ quantile of its scores where no event of the class has been
    going on in the window. It bounds false alarms a window, of which there are many; `calibrate` bounds them a minute.

    Example:
        >>> from evidentia.events import UMSS
        >>> truth = EventTruth.from_activity(torch.zeros(1, 100, 1))
        >>> strength = 2 / torch.linspace(0.01, 1.0, 100).reshape(1, 100, 1)
        >>> head = quiet_thresholds(UMSS(window=1), strength - 1, torch.ones_like(strength), truth)
        >>> round(head.threshold, 2)
        0.96
    """
    level = real_number(level, "level", 0, 1, open_low=True, open_high=True)
    score = head.fuse(alpha, beta).score.detach().cpu()
    truth = truth.any_class() if score.shape[-1] == 1 else truth
    check_grid(score, truth, "the head's scores")
    active, valid = truth.activity(score.shape[1]), truth.valid(score.shape[1])
    busy = torch.nn.functional.pad(active.long().cumsum(1), (0, 0, head.span, 0))
    quiet = (busy[:, head.span :] == busy[:, : -head.span]) & valid
    chosen = []
    for k in range(score.shape[-1]):
        values = score[..., k][quiet[..., k]].double()
        if not len(values):
            raise EvidentiaError(f"class {k} has no event-free window of {head.span} segments; give more clips")
        # Of scores most of which are minus infinity, for want of evidence, every other exceeds it.
        exceeded = math.ceil((1 - level) * (len(values) - 1))
        chosen.append(max(-NEVER, float(values.sort().values[exceeded])))
    return head.model_copy(update={"threshold": chosen[0] if score.shape[-1] == 1 else tuple(chosen)})


def sensitivity(
    head: FusionHead,
    alpha: Tensor,
    beta: Tensor,
    truth: EventTruth,
    setting: str,
    values: Iterable[Any],
    trigger: Trigger | None = None,
    *,
    by: Literal["clip", "event"] = "clip",
    max_delay: float | None = None,
    early_collar: float = 0.0,
) -> list[tuple[Any, EarlyScores]]:
    """The scores at each value of one setting, all else equal: the thesis' figures over vacuity limits and windows.

    Args:
        head: the head.
        alpha: what the network gives, shape `(N, T, K)`.
        beta: the same of the evidence against.
        truth: the events of the clips.
        setting: its name, such as `max_vacuity`, `window`, `decay` or `threshold`.
        values: the values to try.
        trigger: that of the streams; a stream's default if None.
        by: as in `early_scores`.
        max_delay: as in `early_scores`.
        early_collar: as in `early_scores`.

    Example:
        >>> from evidentia.events import PhaseI
        >>> alpha = torch.tensor([[[1.0], [2.0], [9.0]]])
        >>> truth = EventTruth.from_activity([[[0], [1], [1]]])
        >>> rows = sensitivity(PhaseI(), alpha, torch.ones_like(alpha), truth, "max_vacuity", [0.3, 0.9])
        >>> [(limit, round(scores.delay, 3)) for limit, scores in rows]
        [(0.3, 0.128), (0.9, 0.064)]
    """
    rows = []
    for value in values:
        variant = type(head)(**{**head.model_dump(), setting: value})
        announced = alarms(variant.calls(variant.fuse(alpha, beta)), trigger or Trigger(), truth.segment)
        scores = early_scores(announced, truth, by=by, max_delay=max_delay, early_collar=early_collar)
        rows.append((value, scores))
    return rows


def _variants(head: FusionHead, windows: Sequence[int], decays: Sequence[float]) -> list[FusionHead]:
    """The head with every window and decay to be tried."""
    settings = head.model_dump()
    tried: dict[str, Sequence[Any]] = {}
    for name, values in (("window", windows), ("decay", decays)):
        if not isinstance(values, Iterable):
            raise EvidentiaError(f"{name}s must be a list of values to be tried, got {values!r}; give [{values!r}]")
        if name in settings:
            tried[name] = list(values) or [settings[name]]
        elif values:
            raise EvidentiaError(f"the head {head.name!r} has no {name} to calibrate")
    return [type(head)(**{**settings, **dict(zip(tried, values, strict=True))}) for values in product(*tried.values())]


def _levels(score: Tensor, truth: EventTruth, count: int, per_class: bool) -> Tensor:
    """Thresholds to try, shape `(Q, K)`: where calls, false alarms or delays change; and never."""
    active, valid = truth.activity(score.shape[1]), truth.valid(score.shape[1])
    smallest = score.masked_fill(~(valid & score.isfinite()), torch.inf).amin(1)
    highest, of_quiet = (score.masked_fill(~kept, -torch.inf).amax(1) for kept in (valid, valid & ~active))
    levels = []
    for k in range(score.shape[-1] if per_class else 1):
        rows = slice(k, k + 1) if per_class else slice(None)
        wanted = (
            (smallest[:, rows], 1),
            (highest[:, rows], max(2, count // 4)),
            (of_quiet[:, rows], max(2, count // 4)),
            (score[..., rows][active[..., rows]], max(2, count // 2)),
        )
        found = [quantiles(values, torch.linspace(0, 1, number, dtype=torch.float64)) for values, number in wanted]
        levels.append(_between(torch.cat(found).unique()))
    padded = torch.nn.utils.rnn.pad_sequence(levels, padding_value=NEVER)
    return torch.nn.functional.pad(padded, (0, 0, 0, 1), value=NEVER).expand(-1, score.shape[-1]).to(score.dtype)


def _between(values: Tensor) -> Tensor:
    """Thresholds below, between and above distinct ascending scores: at one, rounding would decide on another day."""
    if not len(values):
        return values
    margin = 1e-5 * values.abs().clamp(min=1e-3)
    return torch.cat([values[:1] - margin[:1], (values[1:] + values[:-1]) / 2, values[-1:] + margin[-1:]])


def _candidates(curves: list[EarlyCurve], counts: list[Tensor], per_class: bool) -> Candidates:
    parts = {
        name: torch.cat([getattr(curve, name) for curve in curves])
        for name in ("true_positives", "false_positives", "false_negatives", "delay_sum", "missed_sum")
    }
    counted = torch.cat(counts) if counts else None
    return Candidates(**parts, minutes=curves[0].minutes, per_class=per_class, false_alarms=counted)


def _with_choice(
    head: FusionHead, variants: list[FusionHead], curves: list[EarlyCurve], choice: Tensor, per_class: bool
) -> FusionHead:
    """The head with the chosen candidate of each class; `choice` has shape `(K,)`."""
    levels = torch.cat([curve.thresholds for curve in curves])
    owner = torch.arange(len(curves)).repeat_interleave(torch.tensor([len(curve.thresholds) for curve in curves]))
    picked = [variants[int(owner[q])] for q in choice.tolist()]
    changed: dict[str, Any] = {"threshold": tuple(float(levels[q, k]) for k, q in enumerate(choice.tolist()))}
    if isinstance(head, WindowedHead):
        names = ["window", *(["decay"] if "decay" in type(head).model_fields else [])]
        for name in names:
            values = [getattr(variant, name) for variant in picked]
            changed[name] = tuple(v[k] if isinstance(v, tuple) else v for k, v in enumerate(values))
    if not per_class or len(choice) == 1:
        changed = {name: value[0] if len(set(value)) == 1 else value for name, value in changed.items()}
    return type(head)(**{**head.model_dump(), **changed})
