"""Calibration meets its target on held-out data, as a stream of them would."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import evidentia as ev
from evidentia.evaluation import EventTruth, early_curve, early_scores
from evidentia.events import (
    UMSS,
    WBC,
    OnsetWarning,
    PhaseI,
    Trigger,
    beta_from_probability,
    calibrate,
    make_head,
    onset_weights,
    quiet_thresholds,
    sensitivity,
)
from evidentia.events.search import Candidates
from evidentia.events.streams.alarms import alarms, false_alarms


def world(seed: int = 0, clips: int = 40, segments: int = 60, classes: int = 3):
    """Noisy evidence that grows while an event lasts; class 2 is the hardest."""
    generator = torch.Generator().manual_seed(seed)
    active = torch.zeros(clips, segments, classes)
    for n, k in itertools.product(range(clips), range(classes)):
        if torch.rand((), generator=generator) < 0.5:
            onset = int(torch.randint(5, segments - 15, (), generator=generator))
            active[n, onset : onset + 12, k] = 1
    age = active.cumsum(1) * active
    noise = torch.randn(active.shape, generator=generator) * torch.tensor([0.8, 1.4, 2.2])
    logit = -2 + 1.2 * age.clamp(max=4) + noise
    return 1 + 4 * logit.exp(), 1 + 4 * (-logit).exp(), EventTruth.from_activity(active, 0.064)


def test_macro_f1_is_no_worse_than_before_and_holds_on_new_data():
    alpha, beta, truth = world(0)
    head = WBC(window=2)
    result = calibrate(head, alpha, beta, truth, windows=(1, 2, 4), decays=(0.5, 0.9))
    before = early_scores(head.calls(head.fuse(alpha, beta)), truth)
    assert result.met
    assert result.scores.macro_f1 > before.macro_f1
    assert len(result.head.threshold) == len(result.head.window) == len(result.head.decay) == 3
    other = world(1)
    fresh = early_scores(result.head.calls(result.head.fuse(*other[:2])), other[2])
    plain = early_scores(head.calls(head.fuse(*other[:2])), other[2])
    assert fresh.macro_f1 > plain.macro_f1


@pytest.mark.parametrize("per_class", [True, False])
@pytest.mark.parametrize("target", [0.0, 1.0, 5.0, 20.0])
def test_false_alarms_stay_within_the_target(per_class, target):
    alpha, beta, truth = world(2)
    result = calibrate(PhaseI(), alpha, beta, truth, false_alarms_per_minute=target, per_class=per_class)
    assert result.met
    assert result.scores.false_alarms_per_minute <= target + 1e-9
    assert result.scores.macro_f1 > 0
    if not per_class:
        assert isinstance(result.head.threshold, float)


@pytest.mark.parametrize("per_class", [True, False])
def test_delay_stays_within_the_target_and_f1_pays_for_it(per_class):
    alpha, beta, truth = world(3)
    free = calibrate(PhaseI(), alpha, beta, truth, per_class=per_class)
    target = 0.85 * free.scores.delay
    held = calibrate(PhaseI(), alpha, beta, truth, delay=target, per_class=per_class)
    assert held.met
    assert held.scores.delay <= target + 1e-9
    assert 0 < held.scores.macro_f1 <= free.scores.macro_f1
    never = calibrate(PhaseI(), alpha, beta, truth, delay=0.0, per_class=per_class)
    assert not never.met
    assert never.scores.true_positives.sum() > 0


@pytest.mark.parametrize("per_class", [True, False])
def test_a_lower_macro_f1_buys_a_shorter_delay(per_class):
    alpha, beta, truth = world(4)
    free = calibrate(PhaseI(), alpha, beta, truth, per_class=per_class)
    target = free.scores.macro_f1 - 0.1
    held = calibrate(PhaseI(), alpha, beta, truth, macro_f1=target, per_class=per_class)
    assert held.met
    assert held.scores.macro_f1 >= target - 1e-9
    assert held.scores.censored_delay <= free.scores.censored_delay
    best = calibrate(PhaseI(), alpha, beta, truth, macro_f1=1.0, per_class=per_class)
    assert not best.met
    assert best.scores.macro_f1 == pytest.approx(free.scores.macro_f1)


@pytest.mark.parametrize("per_class", [True, False])
def test_a_delay_and_a_rate_of_false_alarms_are_kept_together(per_class):
    alpha, beta, truth = world(3)
    options = {"per_class": per_class, "windows": (1, 2, 4)}
    soon = calibrate(WBC(), alpha, beta, truth, delay=0.2, **options)
    # One threshold for all leaves nothing to trade at a delay.
    most = (0.8 if per_class else 1.0) * soon.false_alarms_per_minute
    assert calibrate(WBC(), alpha, beta, truth, false_alarms_per_minute=most, **options).scores.delay > 0.2
    both = calibrate(WBC(), alpha, beta, truth, delay=0.2, false_alarms_per_minute=most, **options)
    assert soon.met
    assert both.met
    assert both.scores.delay <= 0.2 + 1e-9
    assert both.false_alarms_per_minute <= most + 1e-9
    assert 0 < both.scores.macro_f1 <= soon.scores.macro_f1
    # No alarms and none of them late cannot be had together: the alarms are kept to.
    never = calibrate(WBC(), alpha, beta, truth, delay=0.0, false_alarms_per_minute=most, **options)
    assert not never.met
    assert never.false_alarms_per_minute <= most + 1e-9
    assert never.scores.true_positives.sum() > 0


def test_a_class_that_never_occurs_is_never_called():
    alpha, beta, truth = world(5)
    active = truth.activity()
    active[..., 1] = False
    result = calibrate(PhaseI(), alpha, beta, EventTruth.from_activity(active))
    assert result.scores.false_positives[1] == 0
    assert result.scores.f1[1].isnan()


def announced(head, alpha, beta, truth, refractory=1.0):
    """The false alarms of all classes that streams of the clips give, one segment at a time."""
    calls, active = (each.numpy() for each in (head.calls(head.fuse(alpha, beta)), truth.activity()))
    trigger = Trigger(refractory=refractory)
    memory, count = trigger.start(calls.shape[2]), 0
    for t in range(calls.shape[1]):
        fired, memory = trigger.fire(calls[:, t], memory, np.full(len(calls), t), truth.segment)
        count += int((fired & ~active[:, t]).sum())
    return count


@pytest.mark.parametrize("refractory", [0.0, 0.3, 1.0])
def test_false_alarms_are_those_that_streams_give(refractory):
    alpha, beta, truth = world(9, segments=200)
    score = PhaseI().fuse(alpha, beta).score
    levels = torch.linspace(-3, 3, 7).unsqueeze(-1).expand(-1, 3)
    counts = false_alarms(score, truth, levels, refractory=refractory)
    for level, count in zip(levels[:, 0].tolist(), counts, strict=True):
        assert int(count.sum()) == announced(PhaseI(threshold=level), alpha, beta, truth, refractory)


@pytest.mark.parametrize("per_class", [True, False])
@pytest.mark.parametrize("shape", [(40, 60), (1, 2400)], ids=["clips", "recording"])
def test_the_target_bounds_every_false_alarm_of_a_stream(shape, per_class):
    alpha, beta, truth = world(10)
    alpha, beta = alpha.view(*shape, 3), beta.view(*shape, 3)
    truth = EventTruth.from_activity(truth.activity().reshape(*shape, 3))
    for target in (0.0, 2.0, 10.0):
        result = calibrate(WBC(), alpha, beta, truth, false_alarms_per_minute=target, per_class=per_class)
        assert result.met
        given = announced(result.head, alpha, beta, truth)
        assert given <= target * truth.minutes + 1e-9
        # What a report says beneath the target is what the target counted, not the first alarm of each clip.
        assert result.summary()["scores"]["false_alarms_per_minute"] == pytest.approx(given / truth.minutes)


TARGETS = [{}, {"false_alarms_per_minute": 1.0}, {"macro_f1": 0.9}, {"delay": 1.0}]


@pytest.mark.parametrize("per_class", [True, False])
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: str(*target) or "none")
def test_a_perfect_detector_with_tied_scores_stays_perfect(target, per_class):
    active = torch.zeros(10, 10, 2)
    active[:, 5:] = 1
    truth = EventTruth.from_activity(active)
    # Saturated where it is sure; the second has some doubt before every event, which is not one.
    doubt = active.clone()
    doubt[:, 2, 1] = 0.9
    for probability in (active, doubt):
        result = calibrate(PhaseI(), *beta_from_probability(probability), truth, per_class=per_class, **target)
        assert (result.met, result.scores.macro_f1) == (True, 1.0)


def test_a_detector_that_always_calls_may_be_right():
    active = torch.ones(4, 6, 1)
    result = calibrate(PhaseI(), *beta_from_probability(active), EventTruth.from_activity(active), thresholds=2)
    assert result.scores.macro_f1 == 1.0


def test_thresholds_may_be_few():
    alpha, beta, truth = world(11)
    for count in (2, 3, 5):
        assert calibrate(PhaseI(), alpha, beta, truth, thresholds=count).scores.macro_f1 > 0


def test_a_shared_threshold_pays_for_calls_of_a_class_that_does_not_occur():
    active = torch.zeros(10, 10, 2)
    active[:, 5:, 0] = 1
    alpha = torch.ones(10, 10, 2)
    alpha[:, 6:, 0], alpha[:5, :, 1] = 9, 20
    data = (alpha, torch.ones_like(alpha), EventTruth.from_activity(active))
    shared = calibrate(PhaseI(), *data, macro_f1=0.9, per_class=False)
    assert (shared.met, shared.scores.macro_f1) == (False, 0.5)
    apart = calibrate(PhaseI(), *data, macro_f1=0.9)
    assert (apart.met, apart.scores.macro_f1) == (True, 1.0)
    never = calibrate(PhaseI(), *data, delay=0.0)
    assert (never.met, never.scores.false_positives.tolist()) == (False, [0, 0])


def test_the_search_and_the_scores_mean_the_same_macro_f1():
    alpha, beta, truth = world(12)
    active = truth.activity()
    active[..., 1] = False
    truth = EventTruth.from_activity(active)
    score = PhaseI().fuse(alpha, beta).score
    curve = early_curve(score, truth, torch.linspace(-4, 9, 20))
    parts = [curve.true_positives, curve.false_positives, curve.false_negatives, curve.delay_sum, curve.missed_sum]
    candidates = Candidates(*parts, minutes=curve.minutes, per_class=True)
    assert torch.equal(candidates.macro_f1, curve.macro_f1)
    for choice in torch.randint(20, (10, 3), generator=torch.Generator().manual_seed(0)):
        levels = curve.thresholds.gather(0, choice.unsqueeze(0))
        assert candidates.macro_f1_at(choice) == pytest.approx(early_scores(score > levels, truth).macro_f1)


def test_data_without_events_call_for_silence():
    alpha, beta, _ = world(13)
    quiet = EventTruth.from_activity(torch.zeros(alpha.shape))
    for per_class, target in itertools.product([True, False], TARGETS):
        result = calibrate(PhaseI(), alpha, beta, quiet, per_class=per_class, **target)
        assert result.scores.false_positives.sum() == 0


def test_every_windowed_head_and_the_warning_can_be_calibrated():
    alpha, beta, truth = world(6)
    for name in ("bc", "wbc", "seed", "umss"):
        result = calibrate(make_head(name), alpha, beta, truth, windows=(1, 3), false_alarms_per_minute=10)
        assert result.scores.false_alarms_per_minute <= 10
    warning = calibrate(OnsetWarning(), alpha, beta, truth.any_class(), windows=(1, 2), false_alarms_per_minute=5)
    assert isinstance(warning.head.threshold, float)
    assert warning.scores.false_alarms_per_minute <= 5


def test_quiet_thresholds_are_exceeded_by_the_share_they_promise():
    alpha, beta, truth = world(7, clips=200)
    head = quiet_thresholds(UMSS(window=3), alpha, beta, truth, level=0.05)
    active = truth.activity()
    recent = active | active.roll(1, 1) | active.roll(2, 1)
    recent[:, :2] = active[:, :2] | active[:, :2].roll(1, 1) & torch.tensor([False, True]).view(1, 2, 1)
    score = head.fuse(alpha, beta).score
    for k, threshold in enumerate(head.threshold):
        quiet = score[..., k][~recent[..., k]]
        assert float((quiet > threshold).double().mean()) == pytest.approx(0.05, abs=0.01)
    assert isinstance(quiet_thresholds(OnsetWarning(), alpha, beta, truth).threshold, float)
    # Of windows that hardly ever have enough evidence, each that does exceeds a threshold that can be saved.
    strict = quiet_thresholds(PhaseI(max_vacuity=1e-3), alpha, beta, truth)
    assert all(torch.tensor(strict.threshold).isfinite())
    fused = strict.fuse(alpha, beta)
    assert torch.equal(strict.calls(fused), fused.score.isfinite())


def test_quiet_thresholds_are_of_any_number_of_scores():
    # PyTorch's own quantiles take 16 million: those of 46 hours of a series at 100 Hz.
    size = 2**24 + 1
    alpha = torch.arange(size).remainder(1000).div(100).add(1).view(1, -1, 1)
    truth = EventTruth.from_events([[]], [size], num_classes=1)
    head = quiet_thresholds(UMSS(window=1), alpha, torch.ones_like(alpha), truth, level=0.5)
    assert head.threshold == pytest.approx(2 / 7, rel=1e-2)


def test_sensitivity_repeats_the_scores_of_each_setting():
    alpha, beta, truth = world(8)
    strict = Trigger(needed=3, of=4)
    head = WBC(window=2)
    ((_, scores),) = sensitivity(WBC(), alpha, beta, truth, "window", [2], strict)
    assert scores.summary() == early_scores(alarms(head.calls(head.fuse(alpha, beta)), strict, 0.064), truth).summary()
    options = {"by": "event", "max_delay": 0.3, "early_collar": 0.2}
    ((_, counted),) = sensitivity(WBC(), alpha, beta, truth, "window", [2], strict, **options)
    expected = early_scores(alarms(head.calls(head.fuse(alpha, beta)), strict, 0.064), truth, **options)
    assert counted.summary() == expected.summary() != scores.summary()
    rows = sensitivity(WBC(), alpha, beta, truth, "window", [1, 4])
    assert [value for value, _ in rows] == [1, 4]
    head = WBC(window=4)
    assert rows[1][1].summary() == early_scores(head.calls(head.fuse(alpha, beta)), truth).summary()


def test_onset_weights_follow_the_specification():
    active = torch.zeros(1, 50, 1)
    active[0, 5:35] = 1
    weights = onset_weights(EventTruth.from_activity(active), 60)[0, :, 0]
    expected = [1.0] * 5 + [3.0] * 10 + [1.0] * 15 + [0.4] * 5 + [0.3] * 3 + [1.0] * 12 + [0.0] * 10
    assert weights.tolist() == pytest.approx(expected)
    assert onset_weights(EventTruth.from_activity(torch.zeros(2, 4, 3))).tolist() == torch.ones(2, 4, 3).tolist()
    with pytest.raises(ev.EvidentiaError, match="weights"):
        onset_weights(EventTruth.from_activity(active), late=-1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delay": 0.1, "macro_f1": 0.5}, "by itself, got delay and macro_f1"),
        ({"delay": -1.0}, "at least 0"),
        ({"thresholds": 1}, "thresholds"),
        ({"thresholds": 10.5}, "thresholds must be a whole number of at least 2, got 10.5"),
        ({"delay": "1"}, "the target delay must be a number, at least 0, got '1'"),
        ({"windows": 3}, r"windows must be a list of values to be tried, got 3; give \[3\]"),
        ({"windows": (2,)}, "no window"),
        ({"decays": (0.5,)}, "no decay"),
    ],
)
def test_bad_input_is_refused(options, message):
    alpha, beta, truth = world(0, clips=4)
    with pytest.raises(ev.EvidentiaError, match=message):
        calibrate(PhaseI(), alpha, beta, truth, **options)


def test_clips_shorter_than_a_segment_are_refused():
    nothing = torch.ones(2, 0, 3)
    with pytest.raises(ev.EvidentiaError, match="none of 2 clips is as long as a segment"):
        calibrate(PhaseI(), nothing, nothing, EventTruth.from_events([[], []], [0, 0], 3))


def test_evidence_of_other_clips_or_classes_than_the_truth_is_refused():
    alpha, beta, truth = world(0, clips=6)
    for find in (calibrate, quiet_thresholds):
        for head, some in (
            (WBC(window=2), slice(3)),
            (WBC(window=2), (..., slice(2))),
            (WBC(window=2), 0),
            (OnsetWarning(window=2), slice(3)),
        ):
            known = truth.any_class() if isinstance(head, OnsetWarning) else truth
            with pytest.raises(ev.EvidentiaError, match=r"the head's scores must have shape .* as the truth has, got"):
                find(head, alpha[some], beta[some], known)


def test_bad_levels_and_settings_are_refused():
    alpha, beta, truth = world(0, clips=4)
    with pytest.raises(ev.EvidentiaError, match="level"):
        quiet_thresholds(UMSS(), alpha, beta, truth, level=0)
    with pytest.raises(ev.EvidentiaError, match="no event-free window"):
        quiet_thresholds(UMSS(), alpha, beta, EventTruth.from_activity(torch.ones(alpha.shape)))
    with pytest.raises(ev.EvidentiaError, match="settings do not fit"):
        sensitivity(PhaseI(), alpha, beta, truth, "window", [1])
