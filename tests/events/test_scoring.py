"""Scores and thresholds are of the alarms that a stream with the same trigger gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from evidentia import EvidentiaError
from evidentia.evaluation import EarlyScores, EventTruth, early_curve, early_scores
from evidentia.events import Clip, EventDetector, PhaseI, SeriesInputs, SoundInputs, Trigger, calibrate, synthetic_clips
from evidentia.events.front_end.inputs import Inputs
from evidentia.events.scoring import _alike
from evidentia.events.streams.alarms import alarms, false_alarms, sustained
from evidentia.events.training.fitting import SegmentBeta, Tuning, check_lengths, tune

RULES: list[dict[str, Any]] = [
    {},
    {"refractory": 0.0},
    {"needed": 2, "of": 3},
    {"needed": 3, "of": 8, "refractory": 0.4},
]


@pytest.fixture(scope="module")
def clips(sound: Tensor) -> list[Clip]:
    events = [("class 0", 0.3, 0.9), ("class 1", 0.5, 1.6), ("class 0", 1.9, 2.6), ("class 2", 2.0, 2.9)]
    return [Clip(sound, 16_000, events), Clip(sound.flip(0), 16_000, events[:2]), Clip(sound[:20_000], 16_000)]


@pytest.mark.parametrize("head", ["wbc", "umss"])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_scores_are_those_of_the_alarms_of_streams(
    detector: Callable[..., EventDetector], clips: list[Clip], head: str, rule: dict[str, Any]
) -> None:
    det = detector(head=head)
    truth = det.truth(clips)
    if det.head_.outputs(3) == 1:
        truth = truth.any_class()
    given = torch.zeros(len(clips), int(truth.lengths.max()), truth.num_classes, dtype=torch.bool)
    for row, clip in enumerate(clips):
        for detection in det.stream(warnings=False, **rule).push(clip.samples):
            given[row, detection.segment, 0 if truth.num_classes == 1 else det.labels_.index(detection.label)] = True
    assert given.any()
    for by, collar in product(("clip", "event"), (0.0, 0.2)):
        options: dict[str, Any] = {"by": by, "early_collar": collar, "max_delay": 0.7}
        expected = early_scores(given, truth, **options).summary()
        every = early_scores(given, truth, **{**options, "by": "event"})
        expected["false_alarms_per_minute"] = every.false_alarms_per_minute
        found = det.evaluate(clips, **options, **rule).summary()
        assert 0 < found.pop("inference_time") < math.inf
        assert found == expected


@pytest.mark.parametrize("by", ["clip", "event"])
@pytest.mark.parametrize("head", ["wbc", "umss-warning"])
def test_scores_of_long_and_short_clips_are_the_same_in_groups(
    detector: Callable[..., EventDetector], sound: Tensor, monkeypatch: pytest.MonkeyPatch, head: str, by: Any
) -> None:
    det, events = detector(head=head), [("class 0", 0.3, 0.9), ("class 1", 0.5, 1.6), ("class 2", 1.2, 1.9)]
    long = [Clip(sound, 16_000, events), Clip(sound.flip(0), 16_000, events[1:])]
    # In no order, and one of less than a segment.
    short = [Clip(sound[:12_000], 16_000, [("class 0", 0.1, 0.5)]), Clip(sound[:500], 16_000, [("class 1", 0.0, 0.02)])]
    clips = [long[0], *short, long[1]]
    whole = det.evaluate(clips, by=by)
    monkeypatch.setattr("evidentia.events.scoring._SHORT", 1)
    parts = det.evaluate(clips, by=by)
    for field in fields(EarlyScores):
        expected = torch.as_tensor(getattr(whole, field.name)).double()
        found = torch.as_tensor(getattr(parts, field.name)).double()
        assert torch.allclose(found, expected, equal_nan=True), field.name
    assert int(whole.true_positives.sum()) > 0


def test_groups_of_clips_take_memory_by_their_length() -> None:
    lengths = [600] * 60 + [180_000] + [5_000, 7_000, 0] * 5
    groups = _alike(lengths)
    assert sorted(place for group in groups for place in group) == list(range(len(lengths)))
    needed = sum(len(group) * max(lengths[place] for place in group) for group in groups)
    assert needed < 2 * sum(lengths)
    assert _alike([10, 1000, 0]) == [[0, 1, 2]]
    assert _alike([0, 180_000, 5_000]) == [[0, 2], [1]]


def test_the_first_call_is_the_first_alarm_of_the_default(
    detector: Callable[..., EventDetector], clips: list[Clip]
) -> None:
    det = detector()
    found = det.beta(clips)
    calls = det.head_.calls(det.head_.fuse(found.alpha, found.beta))
    expected = early_scores(calls, det.truth(clips))
    scores = det.evaluate(clips)
    assert torch.equal(scores.true_positives, expected.true_positives)
    assert torch.equal(scores.false_positives, expected.false_positives)
    assert (scores.delay, scores.macro_f1) == (expected.delay, expected.macro_f1)
    assert (
        det.evaluate(clips, by="event").false_alarms_per_minute
        < early_scores(calls, det.truth(clips), by="event").false_alarms_per_minute
    )


@pytest.mark.parametrize("by", ["clip", "event"])
def test_every_false_alarm_of_a_long_recording_counts(detector: Callable[..., EventDetector], by: Any) -> None:
    det = detector("temporal", series=True)
    numbers = torch.randn(6000, 4, generator=torch.Generator().manual_seed(0))
    recording = Clip(numbers, 10.0, [("class 0", 590.0, 599.0)])
    given = det.stream(warnings=False, refractory=5.0).push(recording.samples)
    false = [alarm for alarm in given if alarm.label != "class 0" or not 590 < alarm.time < 599.2]
    assert len(false) > 100
    assert det.evaluate([recording], by=by, refractory=5.0).false_alarms_per_minute == pytest.approx(len(false) / 10)


def world(seed: int) -> tuple[Tensor, Tensor, EventTruth]:
    generator = torch.Generator().manual_seed(seed)
    active = torch.zeros(30, 60, 2)
    for row, k in product(range(30), range(2)):
        if torch.rand(1, generator=generator) < 0.6:
            first = int(torch.randint(5, 45, (1,), generator=generator))
            active[row, first : first + 12, k] = 1
    alpha = 1 + torch.exp(2 * active + 1.5 * torch.randn(active.shape, generator=generator))
    beta = 1 + torch.exp(1 + 1.5 * torch.randn(active.shape, generator=generator))
    return alpha, beta, EventTruth.from_activity(active)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_curves_over_sustained_scores_count_the_alarms(rule: dict[str, Any]) -> None:
    alpha, beta, truth = world(1)
    trigger = Trigger(**rule)
    score = PhaseI().fuse(alpha, beta).score
    levels = score[score.isfinite()].quantile(torch.tensor([0.05, 0.5, 0.8, 0.9, 0.97])).unsqueeze(-1).expand(-1, 2)
    curve = early_curve(sustained(score, trigger), truth, levels)
    false = false_alarms(sustained(score, trigger), truth, levels, refractory=trigger.refractory)
    for q, level in enumerate(levels):
        given = alarms(score > level, trigger, truth.segment)
        expected = early_scores(given, truth)
        assert curve.f1[q].tolist() == expected.f1.tolist()
        assert float(curve.delay[q]) == pytest.approx(expected.delay, nan_ok=True)
        assert torch.equal(false[q], (given & ~truth.activity()).sum((0, 1)))
    assert curve.true_positives.amax() > 5


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("options", [{"max_delay": 0.2}, {"max_delay": 0.0}, {"max_delay": 0.3, "early_collar": 0.2}])
def test_calibration_and_scores_count_late_alarms_alike(rule: dict[str, Any], options: dict[str, float]) -> None:
    alpha, beta, truth = world(3)
    trigger = Trigger(**rule)
    score = PhaseI().fuse(alpha, beta).score
    levels = score[score.isfinite()].quantile(torch.tensor([0.3, 0.6, 0.8, 0.9])).unsqueeze(-1).expand(-1, 2)
    counted = false_alarms(sustained(score, trigger), truth, levels, refractory=trigger.refractory, **options)
    for level, count in zip(levels, counted, strict=True):
        given = alarms(score > level, trigger, truth.segment)
        expected = early_scores(given, truth, by="event", **options)
        assert torch.equal(count, expected.false_positives)
        outside = given & (truth.reach(**options).event < 0)
        assert count.sum() <= outside.sum()


def test_thresholds_are_calibrated_for_the_trigger() -> None:
    alpha, beta, truth = world(2)
    strict = Trigger(needed=3, of=4)
    best = {
        name: calibrate(PhaseI(), alpha, beta, truth, per_class=False, trigger=trigger)
        for name, trigger in (("plain", Trigger()), ("strict", strict))
    }

    def strictly(head: PhaseI) -> float:
        return early_scores(alarms(head.calls(head.fuse(alpha, beta)), strict, truth.segment), truth).macro_f1

    # Three of four segments must be called, so that each may be called the more readily.
    assert best["strict"].head.threshold < best["plain"].head.threshold
    assert strictly(best["strict"].head) == best["strict"].scores.macro_f1 > strictly(best["plain"].head)


@pytest.mark.filterwarnings("ignore:the clips to calibrate on have no event of")
def test_a_detector_keeps_the_trigger_that_it_was_calibrated_for(clips: list[Clip], tmp_path: Path) -> None:
    det = EventDetector(epochs=1, preset=None, progress=False, needed=2, of=3, max_delay=2.0).fit(
        synthetic_clips(6, seed=1, duration=3.0)
    )
    det.save(tmp_path / "detector")
    again = EventDetector.load(tmp_path / "detector")
    assert again.trigger == Trigger(needed=2, of=3)
    assert again.stream().runner.trigger == again.trigger
    assert again.stream(refractory=0.2).runner.trigger == Trigger(needed=2, of=3, refractory=0.2)
    assert again.tuning.max_delay == 2.0
    with pytest.raises(EvidentiaError, match="3 of 2"):
        EventDetector(needed=3, of=2)


@pytest.mark.parametrize(
    ("inputs", "clip"),
    [
        (SoundInputs(), Clip([0.0] * 400, 16_000, name="tick")),
        (SeriesInputs(rate=10.0, channels=1, segment=4), Clip([0.0] * 3, 10.0, name="tick")),
    ],
)
def test_clips_shorter_than_a_segment_are_told_with_both_lengths(inputs: Inputs, clip: Clip) -> None:
    lengths = (
        rf"tick.* lasts {clip.duration:g} s and a segment {inputs.seconds:g} s, {inputs.step} samples.*longer clips"
    )
    with pytest.raises(EvidentiaError, match=lengths):
        check_lengths([clip], inputs)
    with pytest.raises(EvidentiaError, match=f"the longest of 2 clips, {lengths}"):
        check_lengths([clip, clip], inputs)


def test_evaluation_tells_clips_that_are_too_short(detector: Callable[..., EventDetector], sound: Tensor) -> None:
    det = detector()
    with pytest.raises(EvidentiaError, match=r"tick lasts 0\.025 s and a segment 0\.064 s"):
        det.evaluate([Clip(sound[:400], 16_000, name="tick")])
    assert det.evaluate([Clip(sound[:400], 16_000), Clip(sound, 16_000)]).false_alarms_per_minute > 0


@pytest.mark.parametrize(("fewest", "per_class"), [(19, False), (20, True)])
def test_thresholds_are_of_a_class_where_every_class_has_20_events(fewest: int, per_class: bool) -> None:
    labels = [0] * 60 + [1] * fewest
    truth = EventTruth.from_events([[(label, 0.3, 0.6)] for label in labels], [10] * len(labels), 2, 0.1)
    alpha = 1 + 9 * torch.rand(len(labels), 10, 2, generator=torch.Generator().manual_seed(0))
    found = SegmentBeta(alpha, torch.full_like(alpha, 4.0), truth.lengths)
    head = tune(PhaseI(), found, truth, Tuning(), Trigger())[0].head
    assert isinstance(head.threshold, tuple) == per_class
