"""Triage: what thresholds mean, and that calibrated ones keep the target they were calibrated to."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import evidentia as ev
from evidentia import EvidentiaError, Prediction, TriageRule
from evidentia.prediction import Triage, Verdict

U = {
    "vacuity": torch.tensor([0.1, 0.9, 0.1, 0.9, 0.5, 0.1]),
    "dissonance": torch.tensor([0.1, 0.9, 0.9, 0.1, 0.5, 0.1]),
    "vagueness": torch.tensor([0.1, 0.9, 0.9, 0.1, 0.5, 0.9]),
}


def predicted(right, **uncertainties):
    """Predictions of class 0 out of two, with labels that make them right or wrong."""
    right = torch.as_tensor(right, dtype=torch.bool)
    probs = torch.tensor([1.0, 0.0]).repeat(len(right), 1)
    return Prediction(probs, None, {name: torch.as_tensor(u) for name, u in uncertainties.items()}), (~right).long()


def test_vacuity_goes_before_dissonance_and_dissonance_before_vagueness():
    triage = TriageRule(vacuity=0.5, dissonance=0.5, vagueness=0.5).apply(U)
    assert triage.verdicts.tolist() == [
        Verdict.ACCEPT,
        Verdict.NO_EVIDENCE,
        Verdict.CONFLICT,
        Verdict.NO_EVIDENCE,
        Verdict.ACCEPT,  # at a threshold is not above it
        Verdict.INDISTINCT,
    ]
    assert triage.names[2] == "ask: conflicting evidence"
    assert triage.counts() == {
        "accept": 2,
        "abstain: no evidence": 2,
        "ask: conflicting evidence": 1,
        "ask: classes not distinct": 1,
    }
    assert triage.coverage == pytest.approx(1 / 3)
    assert triage.accepted.tolist() == [True, False, False, False, True, False]
    assert repr(triage).startswith("Triage(accept: 2, abstain: no evidence: 2")


def test_only_the_thresholds_given_count():
    assert TriageRule(dissonance=0.5).apply(U).accepted.tolist() == [True, False, False, True, True, True]
    assert TriageRule(vacuity=1.0, vagueness=1.0).apply(U).coverage == 1
    assert TriageRule(vacuity=-1).apply({"vacuity": torch.zeros(3)}).coverage == 0


def test_by_rule_or_by_thresholds():
    pred, _ = predicted([True] * 6, **U)
    by_rule, by_thresholds = pred.triage(TriageRule(vacuity=0.3)), pred.triage(vacuity=0.3)
    assert torch.equal(by_rule.verdicts, by_thresholds.verdicts)
    for call, message in [
        (pred.triage, "triage needs either a rule or thresholds"),
        (lambda: pred.triage(TriageRule(vacuity=0.3), vacuity=0.3), "triage needs either a rule or thresholds"),
        (lambda: pred.triage(entropy=0.3), "triage is by vacuity, dissonance, vagueness, not by entropy"),
        (lambda: pred.triage(vacuity=1.5), "threshold of vacuity .* at most 1, got 1.5"),
        (lambda: pred.triage(vacuity=-0.5), "threshold of vacuity .* at least 0 .*, got -0.5"),
        (lambda: pred.triage(vacuity="high"), "threshold of vacuity .* must be a number, .* got 'high'"),
        (lambda: pred.triage(vacuity=float("nan")), "threshold of vacuity"),
        (lambda: pred.triage(0.5), r"triage needs a rule of TriageRule.calibrate, got 0.5; .* triage\(vacuity=0.5\)"),
        (TriageRule, "triage needs a threshold for at least one of: vacuity, dissonance, vagueness"),
        (lambda: Prediction([[0.5, 0.5]]).triage(vacuity=0.5), "needs that uncertainty, but there are only: entropy"),
    ]:
        with pytest.raises(EvidentiaError, match=message):
            call()


def test_a_multi_label_task_has_a_verdict_a_sample_and_class():
    opinion = ev.BinomialOpinion.from_evidence(torch.tensor([[9.0, 0], [9, 30]]), torch.tensor([[9.0, 0], [0, 0]]))
    pred = Prediction(opinion.projected, opinion, task="multilabel")
    triage = pred.triage(vacuity=0.5, dissonance=0.5)
    assert triage.names == [["ask: conflicting evidence", "abstain: no evidence"], ["accept", "accept"]]
    rule = TriageRule.calibrate(pred, torch.tensor([[0, 1], [1, 1]]), error_rate=0.0)
    accepted = pred.triage(rule).accepted
    assert bool((pred.labels == torch.tensor([[0, 1], [1, 1]]))[accepted].all())
    assert TriageRule.calibrate(pred, coverage=0.5).apply(pred.uncertainties).coverage >= 0.5


# Few different values, so that there are ties.
level = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0]) | st.floats(0, 1, width=32)
rows = st.lists(st.tuples(level, level, st.booleans()), min_size=1, max_size=40)
share = st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.9, 1.0]) | st.floats(0, 1)
names = st.sampled_from([("vacuity",), ("dissonance",), ("vacuity", "dissonance"), ("dissonance", "vagueness")])


def case(rows, names):
    values = torch.tensor([row[:2] for row in rows], dtype=torch.float32).T
    return predicted([row[2] for row in rows], **dict(zip(names, values, strict=False)))


def candidates(pred):
    """How many samples each common quantile of the uncertainties accepts, found by trying them all."""
    used = [pred[name] for name in ("vacuity", "dissonance", "vagueness") if name in pred.uncertainties]
    found = [torch.zeros(len(pred), dtype=torch.bool)]
    for rank in range(len(pred)):
        passes = [values <= values.sort().values[rank] for values in used]
        found.append(torch.stack(passes).all(0))
    return found


@given(rows, names, share)
def test_coverage_is_reached_with_as_few_samples_as_ties_allow(rows, names, target):
    pred, _ = case(rows, names)
    accepted = pred.triage(TriageRule.calibrate(pred, coverage=target)).accepted
    assert int(accepted.sum()) >= target * len(pred) - 1e-6
    enough = [int(c.sum()) for c in candidates(pred) if int(c.sum()) >= target * len(pred) - 1e-9]
    assert int(accepted.sum()) == min(enough)


@given(rows, names, share)
def test_the_error_rate_is_kept_with_as_many_samples_as_it_allows(rows, names, target):
    pred, labels = case(rows, names)
    wrong = pred.labels != labels
    accepted = pred.triage(TriageRule.calibrate(pred, labels, error_rate=target)).accepted
    assert int((wrong & accepted).sum()) <= target * int(accepted.sum()) + 1e-6
    allowed = [c for c in candidates(pred) if int((wrong & c).sum()) <= target * int(c.sum()) + 1e-9]
    assert int(accepted.sum()) == max(int(c.sum()) for c in allowed)


@given(rows, names, share)
def test_the_false_alarm_rate_is_kept_with_as_few_samples_as_it_allows(rows, names, target):
    pred, labels = case(rows, names)
    right = pred.labels == labels
    accepted = pred.triage(TriageRule.calibrate(pred, labels, false_alarm_rate=target)).accepted
    held_back = int((right & ~accepted).sum())
    assert held_back <= target * int(right.sum()) + 1e-6
    kept = [c for c in candidates(pred) if int((right & ~c).sum()) <= target * int(right.sum()) + 1e-9]
    assert int(accepted.sum()) == min(int(c.sum()) for c in kept)


@given(rows, names, share, st.floats(0.5, 0.99))
def test_with_confidence_never_more_is_accepted(rows, names, target, confidence):
    pred, labels = case(rows, names)
    plain = pred.triage(TriageRule.calibrate(pred, labels, error_rate=target))
    sure = pred.triage(TriageRule.calibrate(pred, labels, error_rate=target, confidence=confidence))
    assert bool((plain.accepted | ~sure.accepted).all())


def test_equal_uncertainties_pass_or_fail_together():
    pred, labels = predicted([True] * 8 + [False] * 2, vacuity=torch.full((10,), 0.3))
    for target, expected in (({"coverage": 0.1}, 1), ({"error_rate": 0.2}, 1), ({"false_alarm_rate": 0.5}, 1)):
        assert pred.triage(TriageRule.calibrate(pred, labels, **target)).coverage == expected
    assert pred.triage(TriageRule.calibrate(pred, labels, error_rate=0.1)).coverage == 0


@pytest.mark.parametrize("value", [0.0, 0.5])
def test_when_nothing_is_acceptable_nothing_is_accepted(value):
    pred, labels = predicted([False] * 5, vacuity=torch.full((5,), value), dissonance=torch.full((5,), value))
    rule = TriageRule.calibrate(pred, labels, error_rate=0.1)
    assert pred.triage(rule).coverage == 0
    assert TriageRule.calibrate(pred, labels, error_rate=1.0).apply(pred.uncertainties).coverage == 1


def test_all_uncertainties_are_held_to_the_same_quantile():
    generator = torch.Generator().manual_seed(0)
    small, large = 0.01 * torch.rand(1000, generator=generator), torch.rand(1000, generator=generator)
    pred, _ = predicted([True] * 1000, vacuity=small, dissonance=large)
    rule = TriageRule.calibrate(pred, coverage=0.81)
    assert pred.triage(rule).coverage == pytest.approx(0.81, abs=0.001)
    shares = [float((small <= rule.vacuity).float().mean()), float((large <= rule.dissonance).float().mean())]
    assert shares[0] == pytest.approx(shares[1], abs=1e-6)
    assert shares[0] == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize(
    ("error", "target", "confidence"),
    [
        (lambda u: 0.11 + 0 * u, 0.1, 0.9),  # just above the target whatever is accepted
        (lambda u: 0.3 * u, 0.1, 0.9),
        (lambda u: 0.2 - 0.15 * u, 0.1, 0.8),  # the uncertainty misleads
    ],
    ids=["flat", "rising", "falling"],
)
def test_with_confidence_the_error_rate_holds_on_new_data(error, target, confidence):
    generator = np.random.default_rng(0)
    trials, broken = 300, 0
    for _ in range(trials):
        u = generator.random(250)
        pred, labels = predicted(generator.random(250) >= error(u), vacuity=u)
        rule = TriageRule.calibrate(pred, labels, error_rate=target, confidence=confidence)
        if rule.vacuity > 0:
            broken += error(np.linspace(0, rule.vacuity, 1000)).mean() > target
    # Three standard deviations of slack.
    share = 1 - confidence
    assert broken <= trials * share + 3 * (trials * share * confidence) ** 0.5


def test_with_confidence_a_good_classifier_is_still_accepted():
    generator = np.random.default_rng(0)
    u = generator.random(1000)
    pred, labels = predicted(generator.random(1000) >= 0.2 * u**2, vacuity=u)
    rule = TriageRule.calibrate(pred, labels, error_rate=0.1, confidence=0.95)
    assert pred.triage(rule).coverage > 0.8
    stricter = TriageRule.calibrate(pred, labels, error_rate=0.05, confidence=0.95)
    assert 0.3 < pred.triage(stricter).coverage < 0.9


def test_a_few_right_samples_prove_nothing():
    pred, labels = predicted([True] * 10, vacuity=torch.linspace(0, 1, 10))
    assert pred.triage(TriageRule.calibrate(pred, labels, error_rate=0.05, confidence=0.9)).coverage == 0
    assert pred.triage(TriageRule.calibrate(pred, labels, error_rate=0.05)).coverage == 1


def test_rules_made_on_validation_data_serve_other_data():
    generator = torch.Generator().manual_seed(0)
    validation, other = (
        ev.MultinomialOpinion.from_evidence(20 * torch.rand(500, 3, generator=generator)) for _ in range(2)
    )
    rule = TriageRule.calibrate(Prediction(validation.projected, validation), coverage=0.7)
    triage = Prediction(other.projected, other).triage(rule)
    assert isinstance(triage, Triage)
    assert triage.coverage == pytest.approx(0.7, abs=0.1)
    assert set(rule.thresholds) == {"vacuity", "dissonance"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "exactly one target of coverage, error_rate, false_alarm_rate, got 0"),
        ({"coverage": 0.5, "error_rate": 0.1}, "exactly one target of .*, got 2"),
        ({"coverage": 1.5}, "coverage must be a number, at least 0 and at most 1, got 1.5"),
        ({"error_rate": -0.1}, "error_rate must be a number, at least 0 and at most 1, got -0.1"),
        ({"false_alarm_rate": float("nan")}, "false_alarm_rate must be a number, at least 0 and at most 1, got nan"),
        ({"error_rate": 0.1, "labels": None}, "calibration to a target error_rate needs the true labels"),
        ({"false_alarm_rate": 0.1, "labels": None}, "calibration to a target false_alarm_rate needs the true labels"),
        ({"error_rate": 0.1, "labels": torch.zeros(5)}, r"labels need shape \(6,\) to match .*, got \(5,\)"),
        ({"error_rate": 0.1, "confidence": 1.0}, "confidence must be a number, more than 0 and less than 1, got 1"),
        ({"coverage": 0.5, "confidence": 0.9}, "confidence goes with a target error_rate, not with coverage"),
    ],
)
def test_targets_that_cannot_be_met_are_refused_in_a_sentence(given, message):
    pred, labels = predicted([True] * 6, **U)
    with pytest.raises(EvidentiaError, match=message):
        TriageRule.calibrate(pred, **{"labels": labels, **given})


def test_predictions_that_cannot_be_calibrated_on_are_refused_in_a_sentence():
    pred, _ = predicted([True] * 6, **U)
    with pytest.raises(EvidentiaError, match="needs at least one validation sample, got none"):
        TriageRule.calibrate(pred[:0], coverage=0.5)
    with pytest.raises(EvidentiaError, match="there are only: entropy; use an evidential method"):
        TriageRule.calibrate(Prediction([[0.5, 0.5]]), coverage=0.5)
    broken, _ = predicted([True] * 2, vacuity=torch.tensor([0.5, float("nan")]))
    with pytest.raises(EvidentiaError, match="the vacuity of the validation samples must be finite, got NaN"):
        TriageRule.calibrate(broken, coverage=0.5)


def test_certain_conflict_can_be_calibrated_on():
    opinion = ev.MultinomialOpinion.from_evidence(torch.full((5, 10), 1e30))
    assert TriageRule.calibrate(Prediction(opinion.projected, opinion), coverage=1.0).dissonance == 1
