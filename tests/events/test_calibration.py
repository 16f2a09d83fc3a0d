"""Calibration meets its target on held-out data, and does as well as a search over everything."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import evidentia as ev
from evidentia.evaluation import EventTruth, early_scores
from evidentia.events import (
    UMSS,
    WBC,
    OnsetWarning,
    PhaseI,
    calibrate,
    make_head,
    onset_weights,
    quiet_thresholds,
    sensitivity,
)
from evidentia.events.search import Candidates, choose


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


counts = st.integers(0, 6)


@given(st.lists(st.tuples(counts, counts, counts, counts), min_size=2, max_size=5), st.integers(0, 12))
def test_the_search_meets_a_budget_whenever_some_choice_does(rows, budget):
    tp, fp = (torch.tensor([[row[i], row[i + 2]] for row in rows]) for i in (0, 1))
    fn = 6 - tp
    zero = torch.zeros(tp.shape, dtype=torch.float64)
    candidates = Candidates(tp, fp, fn, zero, zero, minutes=1.0, per_class=True)
    choice, met = choose(candidates, "false_alarms_per_minute", float(budget))
    f1, most = candidates.f1, -1.0
    for pair in itertools.product(range(len(rows)), repeat=2):
        picked = torch.tensor(pair)
        if candidates.at(picked, fp) <= budget:
            most = max(most, candidates.at(picked, f1))
    assert met == (most >= 0)
    if met:
        assert candidates.at(choice, fp) <= budget
        assert candidates.at(choice, f1) <= most + 1e-9
    free, _ = choose(candidates, "none", 0.0)
    assert candidates.at(free, f1) == pytest.approx(float(f1.amax(0).sum()))


def test_a_class_that_never_occurs_is_never_called():
    alpha, beta, truth = world(5)
    active = truth.activity()
    active[..., 1] = False
    result = calibrate(PhaseI(), alpha, beta, EventTruth.from_activity(active))
    assert result.scores.false_positives[1] == 0
    assert result.scores.f1[1].isnan()


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


def test_sensitivity_repeats_the_scores_of_each_setting():
    alpha, beta, truth = world(8)
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
        ({"delay": 0.1, "macro_f1": 0.5}, "one target"),
        ({"delay": -1.0}, "at least 0"),
        ({"thresholds": 1}, "thresholds"),
        ({"windows": (2,)}, "no window"),
        ({"decays": (0.5,)}, "no decay"),
    ],
)
def test_bad_input_is_refused(options, message):
    alpha, beta, truth = world(0, clips=4)
    with pytest.raises(ev.EvidentiaError, match=message):
        calibrate(PhaseI(), alpha, beta, truth, **options)


def test_bad_levels_and_settings_are_refused():
    alpha, beta, truth = world(0, clips=4)
    with pytest.raises(ev.EvidentiaError, match="level"):
        quiet_thresholds(UMSS(), alpha, beta, truth, level=0)
    with pytest.raises(ev.EvidentiaError, match="no event-free window"):
        quiet_thresholds(UMSS(), alpha, beta, EventTruth.from_activity(torch.ones(alpha.shape)))
    with pytest.raises(ev.EvidentiaError, match="settings do not fit"):
        sensitivity(PhaseI(), alpha, beta, truth, "window", [1])
