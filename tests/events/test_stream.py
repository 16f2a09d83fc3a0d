"""Live streams: the same detections in any pieces, causal, restored after a kill, and whatever comes in."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from evidentia import EvidentiaError
from evidentia.events import ANY, HEADS, Clip, Detection, DetectorStream, Event, EventDetector, make_head, push_many
from evidentia.events.streams.alarms import alarms as alarms_of
from evidentia.events.streams.runner import Runner
from evidentia.events.streams.triggers import Trigger

STREAMING = ("crnn", "conformer", "dual-dnn", "temporal", "slowfast", "aia", "acar")
Make = Callable[..., EventDetector]


def described(detections: list[Detection]) -> list[dict[str, Any]]:
    return [detection.to_dict() for detection in detections]


def names(detections: list[Detection]) -> list[tuple[str, int, str]]:
    return [(detection.label, detection.segment, detection.level) for detection in detections]


def pieces(samples: Tensor, cuts: list[int]) -> list[Tensor]:
    places = sorted(min(cut, len(samples)) for cut in cuts)
    return list(samples.tensor_split(places))


@pytest.fixture(scope="module")
def det(detector: Make) -> EventDetector:
    return detector()


@pytest.fixture(scope="module")
def whole(det: EventDetector, sound: Tensor) -> list[dict[str, Any]]:
    found = described(det.stream(refractory=0.0).push(sound))
    # Otherwise the tests below would show nothing.
    assert len({each["label"] for each in found}) >= 3
    assert {each["level"] for each in found} == {"warning", "alarm"}
    return found


@settings(max_examples=25)
@given(cuts=st.lists(st.integers(0, 48_000), max_size=40))
def test_any_chunking_gives_the_same_detections_to_the_bit(
    det: EventDetector, sound: Tensor, whole: list[dict[str, Any]], cuts: list[int]
) -> None:
    stream = det.stream(refractory=0.0)
    assert described([each for piece in pieces(sound, cuts) for each in stream.push(piece)]) == whole
    assert stream.time == pytest.approx(3.0)


@pytest.mark.parametrize("size", [1, 160, 1023, 1024, 1025])
def test_chunks_of_one_size(det: EventDetector, sound: Tensor, size: int) -> None:
    short = sound[:16_000] if size > 1 else sound[:3000]
    stream, together = det.stream(refractory=0.0), det.stream(refractory=0.0)
    found = [each for piece in short.split(size) for each in stream.push(piece)]
    assert described(found) == described(together.push(short))


@pytest.mark.parametrize("network", STREAMING)
def test_every_network_streams_as_it_detects_offline(detector: Make, sound: Tensor, network: str) -> None:
    series = network in ("temporal", "slowfast", "aia", "acar")
    det = detector(network, series=series)
    samples = torch.randn(60, 4, generator=torch.Generator().manual_seed(2)) if series else sound
    rate = 10.0 if series else 16_000.0
    stream = det.stream(refractory=0.0)
    found = [each for piece in pieces(samples, [7, 20, 1500, 1501, 30_000]) for each in stream.push(piece)]
    offline = det.detect(Clip(samples, rate), refractory=0.0)
    assert found
    assert names(found) == names(offline)
    for mine, its in zip(found, offline, strict=True):
        assert mine.opinion.allclose(its.opinion, atol=1e-4)


@pytest.mark.parametrize("head", list(HEADS))
def test_every_head_streams_as_it_detects_offline(detector: Make, sound: Tensor, head: str) -> None:
    # Random weights are never as sure as filters want it.
    lenient = {"max_uncertainty": 1.0} if head in ("entropy", "aleatoric", "epistemic") else {}
    det = detector(head=make_head(head, **lenient))
    stream = det.stream(needed=1, of=2, refractory=0.2)
    found = [each for piece in sound.split(5000) for each in stream.push(piece)]
    assert names(found) == names(det.detect(Clip(sound, 16_000), needed=1, of=2, refractory=0.2))
    assert found
    if head == "umss-warning":
        assert {each.label for each in found} == {ANY}


@pytest.mark.parametrize("network", ["crnn", "conformer", "dual-dnn"])
@settings(max_examples=8)
@given(at=st.integers(1, 47_000))
def test_the_future_changes_nothing_before_it(detector: Make, sound: Tensor, network: str, at: int) -> None:
    det = detector(network)
    other = torch.cat([sound[:at], 0.5 * torch.randn(len(sound) - at)])
    found, changed = (described(det.stream(refractory=0.0).push(each)) for each in (sound, other))
    before = at / 16_000
    assert [each for each in found if each["time"] <= before] == [each for each in changed if each["time"] <= before]


def test_many_streams_of_different_ages_in_one_batch(det: EventDetector, sound: Tensor) -> None:
    ages = [0, 700, 5000, 1024]
    alone, batched = ([det.stream(refractory=0.0) for _ in ages] for _ in range(2))
    expected: list[list[Detection]] = [[] for _ in ages]
    found: list[list[Detection]] = [[] for _ in ages]
    for streams, results in ((alone, expected), (batched, found)):
        for number, stream in enumerate(streams):
            results[number] += stream.push(sound[: ages[number]])
    for first in range(5000, 30_000, 2500):
        chunks = [sound[first : first + 2500 + 100 * number] for number in range(len(ages))]
        for number, stream in enumerate(alone):
            expected[number] += stream.push(chunks[number])
        # In another order now and then, so that memories must be sorted again.
        order = [2, 0, 3, 1] if first % 5000 else [0, 1, 2, 3]
        for number, more in zip(order, push_many([batched[n] for n in order], [chunks[n] for n in order]), strict=True):
            found[number] += more
    assert all(expected)
    for mine, its in zip(found, expected, strict=True):
        assert names(mine) == names(its)
        assert all(a.opinion.allclose(b.opinion, atol=1e-4) for a, b in zip(mine, its, strict=True))
    assert push_many([], []) == []


def test_a_killed_stream_goes_on_from_a_file_in_another_detector(
    det: EventDetector, sound: Tensor, whole: list[dict[str, Any]], tmp_path: Path
) -> None:
    stream = det.stream(refractory=0.0)
    first = stream.push(sound[:20_001])
    stream.save(tmp_path / "stream.safetensors")
    det.save(tmp_path / "detector.safetensors")
    del stream
    again = EventDetector.load(tmp_path / "detector.safetensors", network=det.network_).stream(refractory=0.0)
    again.load(tmp_path / "stream.safetensors")
    assert again.time == pytest.approx(20_001 / 16_000)
    assert described(first + again.push(sound[20_001:])) == whole


def test_a_state_is_a_copy_and_that_of_a_batch_only_its_own(det: EventDetector, sound: Tensor) -> None:
    streams = [det.stream(refractory=0.0) for _ in range(3)]
    push_many(streams, [sound[:3000], sound[100:3100], sound[200:3300]])
    state = streams[1].state_dict()
    assert all(len(tensor) == 1 for name, tensor in state.items() if name not in ("waiting", "detector"))
    expected = described(streams[1].push(sound[3100:40_000]))
    other = det.stream(refractory=0.0)
    other.load_state_dict(state)
    assert described(other.push(sound[3100:40_000])) == expected


def test_an_interrupted_push_leaves_the_stream_as_it_was(
    det: EventDetector, sound: Tensor, whole: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = [det.stream(refractory=0.0) for _ in range(2)]
    found = described(push_many(streams, [sound[:7000], sound[:500]])[0])
    before = [stream.state_dict() for stream in streams]
    advance, calls = Runner.advance, 0

    def interrupted(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return advance(*arguments)

    monkeypatch.setattr(Runner, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        push_many(streams, [sound[7000:], sound[500:]])
    monkeypatch.undo()
    for stream, state in zip(streams, before, strict=True):
        assert all(torch.equal(tensor, state[name]) for name, tensor in stream.state_dict().items())
    assert calls == 4
    assert found + described(streams[0].push(sound[7000:])) == whole


def test_states_of_others_are_refused(det: EventDetector, detector: Make) -> None:
    state = det.stream().state_dict()
    with pytest.raises(EvidentiaError, match="another detector"):
        detector("conformer").stream().load_state_dict(state)
    with pytest.raises(EvidentiaError, match="triggers/alarm/recent"):
        det.stream(needed=1, of=3).load_state_dict(state)
    with pytest.raises(EvidentiaError, match="not the state"):
        det.stream().load_state_dict({"waiting": torch.zeros(0)})
    with pytest.raises(EvidentiaError, match="waiting samples"):
        det.stream().load_state_dict({**state, "waiting": torch.zeros(1024)})


def test_memory_does_not_grow_with_the_stream(det: EventDetector, sound: Tensor) -> None:
    stream = det.stream()
    stream.push(sound[:8000])
    sizes = {name: tensor.shape for name, tensor in stream.state_dict().items() if name != "waiting"}
    stream.push(sound)
    assert sizes == {name: tensor.shape for name, tensor in stream.state_dict().items() if name != "waiting"}
    quiet = det.stream(warnings=False, needed=1024, of=1024)
    quiet.push(sound[:8000])
    before = quiet._place.memory.triggers["alarm/last"]
    quiet.push(sound[8000:16_000])
    assert quiet._place.memory.triggers["alarm/last"] is before
    # An array of PyTorch's holds the tensor that it was cut from.
    bases = [array if array.base is None else array.base for array in stream._place.memory.to_dict().values()]
    held = [base.untyped_storage().nbytes() if isinstance(base, Tensor) else base.nbytes for base in bases]
    assert sum(held) < 200_000


def test_label_filters_and_no_warnings(det: EventDetector, whole: list[dict[str, Any]], sound: Tensor) -> None:
    only = det.stream(labels=["class 1"], refractory=0.0, warnings=False).push(sound)
    assert described(only) == [each for each in whole if each["label"] == "class 1"]
    for wrong in (["class 9"], "class 1"):
        with pytest.raises(EvidentiaError, match="labels must be a list of some of"):
            det.stream(labels=wrong)


def test_a_warning_comes_before_an_alarm_and_not_right_after_one(det: EventDetector, sound: Tensor) -> None:
    found = det.stream(refractory=1.0).push(sound)
    alarms = [each for each in found if each.level == "alarm"]
    assert described(alarms) == described(det.stream(refractory=1.0, warnings=False).push(sound))
    warned = {each.time for each in found if each.level == "warning"}

    def is_news(time: float) -> bool:
        return all(not 0 <= time - alarm.time < 0.999 for alarm in alarms)

    assert all(is_news(time) for time in warned)
    # Without that rule there would be others.
    head = det.warning_
    evidence = det.beta([Clip(sound, 16_000)])
    calls = head.calls(head.fuse(evidence.alpha, evidence.beta))
    alone = alarms_of(calls, Trigger(refractory=1.0), det.inputs_.seconds)[0, :, 0].nonzero().flatten().tolist()
    times = {round((number + 1) * det.inputs_.seconds, 9) for number in alone}
    assert any(not is_news(time) for time in times)


def test_x_out_of_y_and_refractory_time_call_less(
    det: EventDetector, sound: Tensor, whole: list[dict[str, Any]]
) -> None:
    strict = det.stream(needed=3, of=4, refractory=0.0, warnings=False).push(sound)
    rested = det.stream(refractory=1.0, warnings=False).push(sound)
    alarms = [each for each in whole if each["level"] == "alarm"]
    assert 0 < len(strict) < len(alarms)
    assert 0 < len(rested) < len(alarms)
    for label in {each.label for each in rested}:
        times = [each.time for each in rested if each.label == label]
        assert all(later - earlier >= 0.99 for earlier, later in pairwise(times))
    with pytest.raises(EvidentiaError, match="3 of 2"):
        det.stream(needed=3, of=2)


def test_delays_where_the_truth_is_known(det: EventDetector, sound: Tensor) -> None:
    events = [Event("class 0", 0.5, 1.0)]
    found = det.stream(events=events, refractory=0.0).push(sound)
    assert any(each.delay is not None for each in found)
    for each in found:
        inside = each.label in ("class 0", ANY) and 0.448 <= each.segment * 0.064 < 1.0
        assert each.delay == (pytest.approx(each.time - 0.5) if inside else None)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (("class 0", 1), "an event is a label, an onset and an offset"),
        (("class 0", 5.0, 2.0), "must end after it begins"),
        (("class 0", 1.0, float("inf")), "must end after it begins"),
        (("class 9", 1.0, 2.0), "of the detector's classes, class 0, class 1, class 2, got class 9"),
    ],
)
def test_events_that_cannot_happen_in_the_stream(det: EventDetector, event: Any, message: str) -> None:
    with pytest.raises(EvidentiaError, match=message):
        det.stream(events=[event])


# What comes in.


def run(det: EventDetector, *chunks: Any) -> tuple[list[dict[str, Any]], DetectorStream]:
    stream = det.stream(refractory=0.0)
    return described([each for chunk in chunks for each in stream.push(chunk)]), stream


def test_kinds_of_samples(det: EventDetector, sound: Tensor) -> None:
    pcm = (sound * 32_768).round().clamp(-32_768, 32_767)
    expected, _ = run(det, pcm / 32_768)
    assert run(det, pcm.to(torch.int16))[0] == expected
    assert run(det, pcm.numpy().astype(np.int16))[0] == expected
    assert run(det, (pcm.double() * 65_536).numpy().astype(np.int32))[0] == expected
    assert run(det, (pcm / 32_768).double())[0] == expected
    assert run(det, torch.stack([pcm / 32_768] * 2, dim=1))[0] == expected
    assert run(det, (pcm / 32_768).unsqueeze(1))[0] == expected
    assert run(det, [], np.zeros(0), (pcm / 32_768).tolist(), [])[0] == expected


def test_invalid_and_clipped_samples_are_counted(det: EventDetector, sound: Tensor) -> None:
    holes, zeros = sound.clone(), sound.clone()
    holes[5000:5100], zeros[5000:5100] = torch.nan, 0.0
    holes[6000], zeros[6000] = torch.inf, 0.0
    found, stream = run(det, holes)
    assert found == run(det, zeros)[0]
    assert (stream.invalid, stream.clipped) == (101, 0)
    loud, stream = run(det, 5 * sound)
    assert loud == run(det, (5 * sound).clamp(-1, 1))[0]
    assert stream.clipped == int((5 * sound[: 46 * 1024]).abs().gt(1).sum())


def test_silence_is_sound_too(det: EventDetector) -> None:
    found, stream = run(det, torch.zeros(32_000))
    assert all(np.isfinite(each["belief"]) for each in found)
    assert (stream.invalid, stream.clipped) == (0, 0)


def test_bad_chunks_are_refused_and_change_nothing(det: EventDetector, sound: Tensor) -> None:
    stream = det.stream(refractory=0.0)
    before = described(stream.push(sound[:20_000]))
    bad = [[1, 2], np.zeros((2, 500)), np.zeros((2, 2, 2)), ["a"], np.zeros(3, dtype=complex), np.array([True]), 0.5]
    for chunk in bad:
        with pytest.raises(EvidentiaError):
            stream.push(chunk)
    with pytest.raises(EvidentiaError, match=r"16000 samples a second, got 44100"):
        stream.push(sound, rate=44_100)
    with pytest.raises(EvidentiaError, match=r"a gap, .*needs its length in seconds="):
        stream.push(None)
    with pytest.raises(EvidentiaError, match="16000 samples a second, got 'a'"):
        stream.push(sound, rate="a")  # type: ignore[arg-type]
    with pytest.raises(EvidentiaError, match=r"needs its length in seconds=, at least 0, got '3'"):
        stream.push(None, seconds="3")  # type: ignore[arg-type]
    with pytest.raises(EvidentiaError, match="longest_gap must be at least 0 seconds, got '1'"):
        det.stream(longest_gap="1")  # type: ignore[arg-type]
    with pytest.raises(EvidentiaError, match="length of a gap"):
        stream.push(sound, seconds=1.0)
    other = det.stream(refractory=0.0)
    with pytest.raises(EvidentiaError, match="every stream needs a chunk"):
        push_many([stream, other], [sound])
    with pytest.raises(EvidentiaError, match="twice"):
        push_many([stream, stream], [sound, sound])
    for different in (det.stream(refractory=9.0), det.stream(refractory=0.0, warnings=False)):
        with pytest.raises(EvidentiaError, match="same engine, trigger and warnings; stream 1 differs from stream 0"):
            push_many([stream, different], [sound, sound])
    with pytest.raises(EvidentiaError, match=r"^stream 1: samples must be real numbers"):
        push_many([other, stream], [sound, ["a"]])
    with pytest.raises(EvidentiaError, match=r"^samples must be real numbers"):
        push_many([other], [["a"]])
    assert other.time == 0
    assert before + described(stream.push(sound[20_000:], rate=16_000)) == run(det, sound)[0]


def test_a_short_gap_is_silence(det: EventDetector, sound: Tensor) -> None:
    stream = det.stream(refractory=0.0)
    found = stream.push(sound[:9000]) + stream.push(None, seconds=0.25) + stream.push(sound[9000:])
    assert described(found) == run(det, sound[:9000], torch.zeros(4000), sound[9000:])[0]


def test_after_a_long_gap_the_stream_begins_anew_and_time_goes_on(det: EventDetector, sound: Tensor) -> None:
    stream = det.stream(refractory=0.0)
    stream.push(sound[:9001])
    # Its first second is heard as a gap of one.
    heard, _ = run(det, sound[:9001], torch.zeros(16_000))
    assert described(stream.push(None, seconds=600.0)) == [each for each in heard if each["time"] > 8192 / 16_000]
    assert stream.time == pytest.approx(600 + 9001 / 16_000)
    whole, rest = divmod(600 * 16_000 + 9001, 1024)
    anew, _ = run(det, torch.zeros(rest), sound)
    for each in anew:
        each["segment"] += whole
        each["time"] = pytest.approx(each["time"] + whole * 0.064)
    assert described(stream.push(sound)) == anew


def test_series_hold_their_last_good_number(detector: Make) -> None:
    det = detector("temporal", series=True)
    series = torch.randn(50, 4, generator=torch.Generator().manual_seed(1))
    holes, held = series.clone(), series.clone()
    holes[10:13, 2], held[10:13, 2] = torch.nan, series[9, 2]
    holes[0, 1], held[0, 1] = torch.inf, 0.0
    found, stream = run(det, holes)
    assert found
    assert found == run(det, held)[0]
    assert stream.invalid == 4
    gap = det.stream(refractory=0.0, longest_gap=2.0)
    with_gap = gap.push(series[:10]) + gap.push(None, seconds=0.5) + gap.push(series[10:])
    assert described(with_gap) == run(det, series[:10], series[9].expand(5, 4), series[10:])[0]
    with pytest.raises(EvidentiaError, match=r"shape \(n, 4\)"):
        stream.push(torch.zeros(5, 3))


def test_networks_that_look_ahead_have_no_streams(detector: Make, sound: Tensor) -> None:
    det = detector("crnn-offline")
    with pytest.raises(EvidentiaError, match="offline baseline"):
        det.stream()
    assert det.detect(Clip(sound, 16_000), refractory=0.0)
