"""Triggers and chunks: x out of y, refractory time, and samples of all kinds."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evidentia import EvidentiaError
from evidentia.evaluation import EventTruth, early_scores
from evidentia.events import Clip, Event, SeriesInputs, SoundInputs, Trigger, event_truth
from evidentia.events.front_end.chunks import series_samples, sound_samples
from evidentia.events.front_end.inputs import Inputs
from evidentia.events.streams.alarms import false_alarms
from evidentia.events.streams.detections import Announcer, Fired
from evidentia.events.training.fitting import cut
from evidentia.events.training.held_out import hold_out
from evidentia.opinions import BinomialOpinion


def alarms(trigger: Trigger, calls: list[bool], seconds: float = 0.1) -> list[int]:
    memory, fired = trigger.start(1), []
    for number, call in enumerate(calls):
        now, memory = trigger.fire(np.array([[call]]), memory, np.array([number]), seconds)
        fired += [number] * int(now[0, 0])
    return fired


@given(st.lists(st.booleans(), max_size=60))
def test_without_settings_an_alarm_is_the_first_call_of_a_run(calls: list[bool]) -> None:
    expected = [n for n, call in enumerate(calls) if call and not (n and calls[n - 1])]
    assert alarms(Trigger(refractory=0.0), calls) == expected


@given(st.lists(st.booleans(), max_size=60), st.integers(1, 6), st.integers(1, 6))
def test_x_out_of_y_is_counted_over_the_latest_segments(calls: list[bool], x: int, y: int) -> None:
    needed, of = min(x, y), max(x, y)
    on = [sum(calls[max(0, n - of + 1) : n + 1]) >= needed for n in range(len(calls))]
    expected = [n for n, now in enumerate(on) if now and not (n and on[n - 1])]
    assert alarms(Trigger(needed=needed, of=of, refractory=0.0), calls) == expected


@given(st.lists(st.booleans(), max_size=80), st.integers(0, 20))
def test_refractory_time(calls: list[bool], rest: int) -> None:
    found = alarms(Trigger(refractory=0.1 * rest), calls)
    assert all(later - earlier >= max(rest, 1) for earlier, later in pairwise(found))
    assert all(calls[n] for n in found)
    assert bool(found) == any(calls)


@given(st.lists(st.booleans(), max_size=80), st.floats(0, 20), st.floats(0.01, 3))
def test_alarms_are_the_refractory_time_apart_whatever_the_segment(
    calls: list[bool], refractory: float, seconds: float
) -> None:
    trigger = Trigger(refractory=refractory)
    found = alarms(trigger, calls, seconds)
    assert all((later - earlier) * seconds >= refractory - 1e-5 * seconds for earlier, later in pairwise(found))
    # By less than a segment longer, and the same where false alarms are counted.
    assert refractory - 1e-5 * seconds <= trigger.rest(seconds) * seconds < refractory + seconds
    truth = EventTruth.from_activity(torch.zeros(1, max(len(calls), 1), 1), seconds)
    scores = torch.tensor(calls or [False]).float().view(1, -1, 1)
    assert false_alarms(scores, truth, torch.tensor([[0.5]]), refractory=refractory).tolist() == [[len(found)]]


def test_a_refractory_time_of_whole_segments_is_as_many() -> None:
    calls = [True, False] * 4
    assert alarms(Trigger(refractory=2.4), calls, 1.0) == [0, 4]
    assert alarms(Trigger(refractory=2.0), calls, 1.0) == [0, 2, 4, 6]
    assert Trigger(refractory=0.1 * 3).rest(0.1) == 3


def test_a_class_that_is_still_on_after_the_refractory_time_is_called_then() -> None:
    calls = [True, False, True, True, True, True, True]
    assert alarms(Trigger(refractory=0.4), calls) == [0, 4]


@pytest.mark.parametrize("refractory", [1e9, 1e18, 1e300, 1.7e308])
def test_a_refractory_time_without_end_leaves_the_first_alarm(refractory: float) -> None:
    calls = [False, True, False, True, False, True]
    assert alarms(Trigger(refractory=refractory), calls) == [1]
    truth = EventTruth.from_activity(torch.zeros(1, 6, 1))
    scores = torch.tensor(calls).float().view(1, 6, 1)
    assert false_alarms(scores, truth, torch.tensor([[0.5]]), refractory=refractory).tolist() == [[1]]


def test_chunks_of_bfloat16_are_taken() -> None:
    given = torch.tensor([0.5, -0.25], dtype=torch.bfloat16)
    assert sound_samples(given).tolist() == [0.5, -0.25]
    assert series_samples(given, channels=1).dtype == np.float32


def test_kinds_of_sound() -> None:
    assert sound_samples(np.array([-128, 64], dtype=np.int8)).tolist() == [-1.0, 0.5]
    assert sound_samples(np.array([0, 192], dtype=np.uint8)).tolist() == [-1.0, 0.5]
    assert sound_samples(torch.tensor([[1.0, 0.0], [0.5, 0.5]])).tolist() == [0.5, 0.5]
    assert sound_samples([]).shape == (0,)
    assert np.isinf(sound_samples(np.array([1e300]))).all()
    with pytest.raises(EvidentiaError, match="no known full scale"):
        sound_samples(np.array([1, 2], dtype=np.int64))
    with pytest.raises(EvidentiaError, match="channels first"):
        sound_samples(np.zeros((2, 100), dtype=np.float32))
    assert series_samples([1, 2], channels=1).shape == (2, 1)
    assert series_samples([], channels=3).shape == (0, 3)
    with pytest.raises(EvidentiaError, match=r"got \(3,\); give a row a sample, one sample as \[\[5, 2, 40\]\]"):
        series_samples([5.0, 2.0, 40.0], channels=3)
    with pytest.raises(EvidentiaError, match=r"got \(7,\); give a row a sample, one sample as \[\[...\]\]"):
        series_samples([0.0] * 7, channels=3)


def test_inputs_are_found_from_clips() -> None:
    assert Inputs.for_clip(Clip([0.0], 16_000), None, centred=False) == SoundInputs()
    phone = Inputs.for_clip(Clip([0.0], 8000), None, centred=False)
    assert isinstance(phone, SoundInputs)
    assert (phone.seconds, phone.frame_hop, phone.window) == (0.064, 128, 1024)
    series = Inputs.for_clip(Clip(torch.zeros(5, 2), 50.0), 4, centred=False)
    assert series == SeriesInputs(rate=50.0, channels=2, segment=4)
    assert series.seconds == pytest.approx(0.08)
    for inputs in (phone, series):
        assert Inputs.from_dict(inputs.model_dump(mode="json")) == inputs


def delay_of(label: str, segment: int, events: list[Event]) -> float | None:
    """The delay of a detection of the label in a segment of 0.1 s."""
    labels = ("a", "b")
    announcer = Announcer(labels, 1 if label == "*" else 2, 0.1, events=events)
    calls = np.array([[name == label for name in announcer.names]])
    half = torch.full((1, 2), 0.5)
    opinion = BinomialOpinion(half, half, torch.zeros_like(half), half)
    (found,) = announcer.detections(Fired(calls, lambda: opinion, None, None, np.array([segment])), 0)
    return found.delay


@pytest.mark.parametrize(
    "events",
    [
        [("a", 0.0, 0.25), ("a", 0.27, 0.6)],
        [("a", 0.12, 0.3), ("a", 0.25, 0.7), ("b", 0.4, 0.9)],
        [("a", 0.1, 0.22), ("a", 0.24, 0.26), ("a", 0.28, 0.5)],
    ],
    ids=["share a segment", "overlap", "within a segment"],
)
@pytest.mark.parametrize("label", ["a", "*"])
def test_delays_of_streams_are_those_of_the_scores(label: str, events: list[tuple[str, float, float]]) -> None:
    known = [Event(*each) for each in events]
    truth = event_truth([Clip([0.0] * 100, 100.0, known)], ["a", "b"], 0.1)
    truth = truth.any_class() if label == "*" else truth
    for segment in range(10):
        calls = torch.zeros(1, 10, truth.num_classes, dtype=torch.bool)
        calls[0, segment, 0] = True
        expected = early_scores(calls, truth).delay
        found = delay_of(label, segment, known)
        assert (math.nan if found is None else found) == pytest.approx(expected, nan_ok=True)


def test_no_class_has_the_name_of_all() -> None:
    with pytest.raises(EvidentiaError, match=r"no class may be named '\*'"):
        Announcer(("a", "*"), 2, 0.1)


def test_delays_and_pieces() -> None:
    events = [Event("a", 1.0, 2.0), Event("b", 1.45, 3.0)]
    assert delay_of("a", 9, events) is None
    assert delay_of("a", 10, events) == pytest.approx(0.1)
    assert delay_of("b", 14, events) == pytest.approx(0.05)
    # Of no class in particular: events that overlap are one, as in the scores.
    assert delay_of("*", 29, events) == pytest.approx(2.0)
    assert delay_of("*", 30, events) is None
    # Events of a class that the detector does not know are none.
    assert delay_of("*", 40, [*events, Event("c", 4.0, 5.0)]) is None
    clip = Clip(torch.arange(30.0), 10.0, events)
    pieces = cut([clip], 16)
    assert torch.equal(torch.cat([piece.samples for piece in pieces]), clip.samples)
    assert [piece.labels for piece in pieces] == [("a", "b"), ("a", "b")]
    kept, held = hold_out([clip] * 9 + [pieces[0]], seed=1)
    assert (len(kept), len(held)) == (8, 2)
