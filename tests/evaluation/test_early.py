"""Early-detection scores: worked by hand, against a slow count, and what must hold of them."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import evidentia as ev
from evidentia.evaluation import EventTruth, auroc, common_delays, early_curve, early_scores, onset_auc

SEGMENT = 0.5


def grid(*rows: str) -> torch.Tensor:
    """Clips of one class from strings of 0 and 1; a comma separates classes."""
    clips = [[list(map(int, part)) for part in row.split(",")] for row in rows]
    return torch.tensor(clips).transpose(1, 2).bool()


def scored(calls: torch.Tensor, truth: torch.Tensor, **options):
    return early_scores(calls, EventTruth.from_activity(truth, SEGMENT), **options)


def test_a_table_worked_by_hand():
    truth = grid("00111100,11110000", "00000000,00111111", "01110011,00000000")
    calls = grid("00011100,00000000", "00100000,01111111", "00000010,00000000")
    scores = scored(calls, truth)
    # Class 0: hit in clip 0 (one segment late), false in clip 1, hit of the second event in clip 2.
    # Class 1: missed in clip 0, called one segment too early in clip 1.
    assert scores.true_positives.tolist() == [2, 0]
    assert scores.false_positives.tolist() == [1, 1]
    assert scores.false_negatives.tolist() == [0, 2]
    assert scores.f1.tolist() == pytest.approx([0.8, 0.0])
    assert scores.macro_f1 == pytest.approx(0.4)
    assert scores.micro_f1 == pytest.approx(4 / 8)
    assert scores.precision.tolist() == pytest.approx([2 / 3, 0.0])
    assert scores.recall.tolist() == pytest.approx([1.0, 0.0])
    assert scores.delay == pytest.approx((1.0 + 0.5) / 2)
    assert scores.delay_segments == pytest.approx(0.5)
    # Misses last 4 and 6 segments.
    assert scores.censored_delay == pytest.approx((1.0 + 0.5 + 2.0 + 3.0) / 4)
    assert scores.false_alarms_per_minute == pytest.approx(2 / (24 * SEGMENT / 60))
    assert scores.class_delay[0] == pytest.approx(0.75)
    assert math.isnan(scores.class_delay[1])


def test_by_event_worked_by_hand():
    truth = grid("0111001110")
    calls = grid("1101011011")
    by_event = scored(calls, truth, by="event")
    # Runs begin at 0 (false), 3 (hits the first), 5 (false), 8 (hits the second).
    assert by_event.true_positives.tolist() == [2]
    assert by_event.false_positives.tolist() == [2]
    assert by_event.false_negatives.tolist() == [0]
    assert by_event.delays_in_segments.tolist() == [2, 2]
    assert by_event.delays.tolist() == pytest.approx([1.5, 1.5])
    by_clip = scored(calls, truth)
    assert (by_clip.true_positives.item(), by_clip.false_positives.item(), by_clip.false_negatives.item()) == (0, 1, 1)


def test_a_further_alarm_in_an_event_that_is_hit_does_not_count():
    scores = scored(grid("0101010"), grid("0111110"), by="event")
    assert (scores.true_positives.item(), scores.false_positives.item()) == (1, 0)
    assert scores.delays.tolist() == [SEGMENT]


def test_delay_counts_from_the_true_onset_to_the_end_of_the_segment():
    truth = EventTruth.from_events([[(0, 0.7, 2.0)]], lengths=[4], num_classes=1, segment=SEGMENT)
    assert truth.activity()[0, :, 0].tolist() == [False, True, True, True]
    first = early_scores(grid("0100"), truth)
    assert first.delay == pytest.approx(0.3)
    assert first.delay_segments == 0
    assert early_scores(grid("0001"), truth).delay == pytest.approx(1.3)


def test_options_collar_and_largest_delay():
    truth = grid("00011111")
    early = grid("00100000")
    assert scored(early, truth).false_positives.item() == 1
    hit = scored(early, truth, early_collar=0.5)
    assert (hit.true_positives.item(), hit.delay, hit.delay_segments) == (1, 0.0, 0.0)
    assert scored(grid("01000000"), truth, early_collar=0.5).true_positives.item() == 0
    late = grid("00000110")
    assert scored(late, truth, max_delay=1.5).true_positives.item() == 1
    too_late = scored(late, truth, max_delay=1.4)
    assert (too_late.true_positives.item(), too_late.false_positives.item()) == (0, 1)
    assert too_late.false_negatives.item() == 1


def test_a_collar_does_not_reach_into_an_event_that_goes_on():
    truth = grid("11101111")
    scores = scored(grid("01000000"), truth, early_collar=10.0)
    assert scores.delays[0] == pytest.approx(1.0)
    assert math.isnan(scores.delays[1])


def test_a_call_too_late_for_an_event_that_goes_on_is_no_early_hit_of_the_next():
    truth = EventTruth.from_events([[(0, 1.0, 5.0), (0, 5.5, 9.0)]], [10], 1, segment=1.0)
    options = {"by": "event", "max_delay": 1.0, "early_collar": 2.0}
    for segment, hits, false in ((0, 1, 0), (1, 1, 0), (2, 0, 1), (4, 0, 1), (5, 1, 0), (6, 0, 1)):
        calls = torch.zeros(1, 10, 1)
        calls[0, segment] = 1
        scores = early_scores(calls, truth, **options)
        assert (scores.true_positives.item(), scores.false_positives.item()) == (hits, false), segment
    reach = truth.reach(max_delay=1.0, early_collar=2.0)
    assert reach.event.flatten().tolist() == [0, 0, -1, -1, -1, 1, -1, -1, -1, -1]
    assert reach.late.flatten().tolist() == [-1, -1, 0, 0, 0, -1, 1, 1, 1, -1]


def test_events_that_touch_are_one_and_those_out_of_sight_none():
    truth = EventTruth.from_events(
        [[(0, 0.0, 1.0), (0, 1.0, 1.5), (0, 0.2, 0.4), (1, 9.0, 10.0)]], [4], num_classes=2, segment=SEGMENT
    )
    assert truth.onset.tolist() == [0.0]
    assert truth.offset.tolist() == [1.5]
    assert truth.label.tolist() == [0]


def test_clips_of_different_lengths():
    truth = EventTruth.from_events([[(0, 1.0, 9.0)], []], lengths=[4, 2], num_classes=1, segment=SEGMENT)
    calls = grid("0000", "0011")
    scores = early_scores(calls, truth)
    assert scores.false_positives.item() == 0
    assert scores.censored_delay == pytest.approx(1.0)
    assert truth.minutes == pytest.approx(6 * SEGMENT / 60)
    same = EventTruth.from_activity(grid("0011", "0000"), SEGMENT, lengths=[4, 2])
    assert torch.equal(same.activity(), truth.activity())


def test_nothing_to_find_and_nothing_called():
    scores = scored(grid("0000,0000"), grid("0000,0000"))
    assert scores.f1.isnan().all()
    assert scores.false_alarms_per_minute == 0
    assert scores.summary() == {
        "macro_f1": None,
        "micro_f1": None,
        "delay": None,
        "delay_segments": None,
        "censored_delay": None,
        "false_alarms_per_minute": 0.0,
    }
    one = scored(grid("0010,0000"), grid("0110,0000"))
    assert one.macro_f1 == 1.0


def test_delay_on_common_hits_answers_survivorship():
    truth = grid("1111,1111,1111")
    careful, lucky = grid("0111,0001,0001"), grid("0111,0000,0000")
    a, b = scored(careful, truth), scored(lucky, truth)
    assert b.delay < a.delay
    assert common_delays(a, b) == pytest.approx([1.0, 1.0])
    assert b.censored_delay > b.delay
    with pytest.raises(ev.EvidentiaError, match="one truth"):
        common_delays(a, scored(grid("1"), grid("1")))
    with pytest.raises(ev.EvidentiaError, match="none"):
        common_delays()


grids = st.tuples(st.integers(1, 4), st.integers(1, 12), st.integers(1, 3), st.integers(0, 2**32 - 1))


def drawn(shape):
    n, t, k, seed = shape
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(2, n, t, k, generator=generator) < torch.tensor([0.3, 0.5]).view(2, 1, 1, 1)).unbind(0)


@given(grids)
def test_by_clip_equals_a_slow_count(shape):
    calls, truth = drawn(shape)
    counts = torch.zeros(3, truth.shape[2], dtype=torch.int64)
    delays, censored = [], []
    for n in range(truth.shape[0]):
        for k in range(truth.shape[2]):
            y, c = truth[n, :, k].tolist(), calls[n, :, k].tolist()
            first = c.index(True) if True in c else None
            hit = first is not None and y[first]
            counts[0, k] += hit
            counts[1, k] += first is not None and not hit
            counts[2, k] += any(y) and not hit
            if hit:
                onset = max(t for t in range(first + 1) if y[t] and (t == 0 or not y[t - 1]))
                delays.append((first + 1 - onset) * SEGMENT)
                censored.append(delays[-1])
            elif any(y):
                begin = y.index(True)
                end = next((t for t in range(begin, len(y)) if not y[t]), len(y))
                censored.append((end - begin) * SEGMENT)
    scores = scored(calls, truth)
    found = torch.stack([scores.true_positives, scores.false_positives, scores.false_negatives])
    assert torch.equal(found, counts)
    assert scores.delay == pytest.approx(sum(delays) / len(delays) if delays else math.nan, nan_ok=True)
    assert scores.censored_delay == pytest.approx(sum(censored) / len(censored) if censored else math.nan, nan_ok=True)


@given(grids)
def test_the_truth_itself_is_perfect_and_immediate(shape):
    _, truth = drawn(shape)
    for by in ("clip", "event"):
        scores = scored(truth, truth, by=by)
        assert scores.false_positives.sum() == scores.false_negatives.sum() == 0
        if truth.any():
            assert scores.macro_f1 == scores.micro_f1 == 1
            assert scores.delay == scores.censored_delay == pytest.approx(SEGMENT)


@given(grids)
def test_activity_survives_the_way_through_events(shape):
    _, truth = drawn(shape)
    events = EventTruth.from_activity(truth, 0.064)
    assert torch.equal(events.activity(truth.shape[1]), truth)
    listed = [[] for _ in truth]
    for row in zip(
        events.clip.tolist(), events.label.tolist(), events.onset.tolist(), events.offset.tolist(), strict=True
    ):
        listed[row[0]].append(row[1:])
    again = EventTruth.from_events(listed, events.lengths, truth.shape[2], 0.064)
    assert torch.equal(again.activity(truth.shape[1]), truth)
    assert torch.equal(events.any_class().activity(truth.shape[1])[..., 0], truth.any(-1))


@given(grids, st.sampled_from([None, 0.6, 1.0]), st.sampled_from([0.0, 0.5]))
def test_each_point_of_the_curve_is_the_score_of_its_threshold(shape, max_delay, early_collar):
    _, active = drawn(shape)
    generator = torch.Generator().manual_seed(shape[3])
    values = torch.rand(active.shape, generator=generator)
    truth = EventTruth.from_activity(active, SEGMENT)
    options = {"max_delay": max_delay, "early_collar": early_collar}
    thresholds = torch.tensor([-1.0, 0.2, 0.5, 0.9, 2.0])
    curve = early_curve(values, truth, thresholds, **options)
    for q, threshold in enumerate(thresholds):
        scores = early_scores(values > threshold, truth, **options)
        assert torch.equal(curve.true_positives[q], scores.true_positives)
        assert torch.equal(curve.false_positives[q], scores.false_positives)
        assert torch.equal(curve.false_negatives[q], scores.false_negatives)
        for name in ("macro_f1", "micro_f1", "delay", "censored_delay", "false_alarms_per_minute"):
            assert float(getattr(curve, name)[q]) == pytest.approx(getattr(scores, name), nan_ok=True), name


@given(grids)
def test_a_lower_threshold_never_calls_later(shape):
    _, active = drawn(shape)
    values = torch.rand(active.shape, generator=torch.Generator().manual_seed(shape[3]))
    curve = early_curve(values, EventTruth.from_activity(active, SEGMENT), torch.linspace(0, 1, 11))
    called = curve.true_positives + curve.false_positives
    assert (called.diff(dim=0) <= 0).all()


def test_thresholds_of_each_class():
    values = torch.tensor([[[0.2, 0.2], [0.8, 0.8]]])
    truth = EventTruth.from_activity(grid("01,01"), SEGMENT)
    curve = early_curve(values, truth, torch.tensor([[0.1, 0.5]]))
    assert curve.true_positives.tolist() == [[0, 1]]
    quiet = EventTruth.from_events([[]], [2], 2)
    assert early_curve(values, quiet, [0.5]).false_positives.tolist() == [[1, 1]]


def test_onset_auc_tells_beginnings_from_quiet():
    truth = EventTruth.from_activity(grid("0001110000,0000001100"), SEGMENT)
    score = torch.tensor([[0.1, 0.2, 0.1, 0.9, 0.0, 0.0, 0.8, 0.0, 0.0, 0.3]])
    # One segment counts as a beginning: 3 and 6 against the quiet 0, 1, 2, 9 (8 follows an event).
    assert float(onset_auc(score, truth, within=1)) == 1.0
    labels = torch.tensor([0, 0, 0, 1, 1, 1, 1])
    assert float(onset_auc(score.unsqueeze(-1), truth, within=2)) == float(
        auroc(score[0, [0, 1, 2, 3, 4, 6, 7]], labels)
    )
    for bad in (torch.zeros(1, 10, 2), torch.zeros(10)):
        with pytest.raises(ev.EvidentiaError, match="shape"):
            onset_auc(bad, truth)
    with pytest.raises(ev.EvidentiaError, match="scores must be a tensor, an array or a list of numbers, got NoneType"):
        onset_auc(None, truth)
    with pytest.raises(ev.EvidentiaError, match="within"):
        onset_auc(score, truth, within=0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EventTruth.from_events([[(0, 1.0, 0.5)]], [4], 1), "must begin"),
        (lambda: EventTruth.from_events([[(0, -1.0, 0.5)]], [4], 1), "must begin"),
        (lambda: EventTruth.from_events([[(0, 0.0, math.inf)]], [4], 1), "must begin"),
        (lambda: EventTruth.from_events([[(2, 0.0, 0.5)]], [4], 1), "classes are 0 to 0"),
        (lambda: EventTruth.from_events([[]], [4, 4], 1), "1 clips"),
        (lambda: EventTruth.from_events([[]], [4], 1, segment=0), "segment"),
        (lambda: EventTruth.from_activity(torch.zeros(2, 3)), "shape"),
        (lambda: EventTruth.from_activity(torch.zeros(2, 3, 1), lengths=[4, 1]), "up to 3"),
        (lambda: EventTruth.from_activity(torch.zeros(2, 3, 1), lengths=[2.5, 1]), "whole number of segments"),
        (lambda: EventTruth.from_events([[]], lengths=[9.984], num_classes=1), "whole number of segments"),
        (lambda: EventTruth.from_events([[]], lengths=["4"], num_classes=1), r"whole number .* got \['4'\]"),
        (lambda: EventTruth.from_events([[("dog", 0.0, 1.0)]], [9], 1), r"its class.* got \('dog', 0.0, 1.0\)"),
        (lambda: EventTruth.from_events([[("0", 0.0, 1.0)]], [9], 1), "number of its class"),
        (lambda: EventTruth.from_events([[(0.5, 1.0, 2.0)]], [9], 1), "number of its class"),
        (lambda: EventTruth.from_events([(0, 1.0, 2.0)], [9], 1), "clip 0: an event is .* got 0"),
        (lambda: scored(grid("01"), grid("01", "10")), "2 clips"),
        (lambda: scored(grid("01,01"), grid("01")), "1 classes"),
        (lambda: scored(grid("0"), grid("01")), "2 segments"),
        (lambda: scored(grid("01"), grid("01"), by="day"), "'clip' or 'event'"),
        (lambda: scored(grid("01"), grid("01"), max_delay=-1), "max_delay"),
        (lambda: scored(grid("01"), grid("01"), early_collar=math.nan), "early_collar"),
        (lambda: scored(grid("01"), grid("01"), max_delay="1"), "max_delay, in seconds, must be a number, .* got '1'"),
        (lambda: scored(grid("01"), grid("01"), early_collar=None), "early_collar, in seconds, must be .* got None"),
        (lambda: EventTruth.from_events([[]], [4], 1, segment=None), "segment, in seconds, must be .* got None"),
        (lambda: scored(torch.full((1, 2, 1), 0.5), grid("01")), "0 or 1"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(ev.EvidentiaError, match=message):
        make()


def test_curves_refuse_bad_scores_and_thresholds():
    truth = EventTruth.from_activity(grid("01"))
    with pytest.raises(ev.EvidentiaError, match="NaN"):
        early_curve(torch.full((1, 2, 1), torch.nan), truth, [0.5])
    for bad in ([], torch.zeros(2, 2), torch.tensor(0.5), None, ["0.5"], [[0.5], [0.5, 0.6]]):
        with pytest.raises(ev.EvidentiaError, match="thresholds"):
            early_curve(torch.zeros(1, 2, 1), truth, bad)


def test_a_segment_that_two_events_share_counts_for_the_later():
    # The first ends and the second begins within segment 2; the third lies in it whole.
    truth = EventTruth.from_events([[(0, 0.1, 0.22), (0, 0.24, 0.26), (0, 0.28, 0.5)]], [6], 1, segment=0.1)
    event = truth.reach().event[0, :, 0].tolist()
    assert event == [-1, 0, 2, 2, 2, -1]
    scores = early_scores(torch.tensor([0, 0, 1, 1, 1, 0]).view(1, 6, 1), truth, by="event")
    assert (scores.true_positives.tolist(), scores.false_negatives.tolist()) == ([1], [2])
    assert scores.delays[2] == pytest.approx(0.02)
    by_clip = early_scores(torch.tensor([0, 0, 1, 1, 1, 0]).view(1, 6, 1), truth)
    assert (by_clip.true_positives.tolist(), by_clip.false_negatives.tolist()) == ([1], [0])


@pytest.mark.parametrize(
    ("calls", "hits", "false"),
    [
        ("0010010100", 1, 0),  # hit in time, then twice more while it lasts
        ("0000010100", 0, 2),  # never in time
        ("0010000001", 1, 1),  # after its end
    ],
)
def test_alarms_in_the_late_part_of_an_event_are_false_unless_it_was_hit_in_time(calls, hits, false):
    truth = grid("0111111110")
    scores = scored(grid(calls), truth, by="event", max_delay=2.0 * SEGMENT)
    assert (scores.true_positives.item(), scores.false_positives.item()) == (hits, false)
    # Of two events, only the one that was hit forgives.
    both = scored(grid("0110001111000"), grid("0111101111110"), by="event", max_delay=1.0 * SEGMENT)
    assert (both.true_positives.item(), both.false_positives.item()) == (2, 0)
    second = scored(grid("0100000101000"), grid("0111101111110"), by="event", max_delay=1.0 * SEGMENT)
    assert (second.true_positives.item(), second.false_positives.item()) == (1, 2)
