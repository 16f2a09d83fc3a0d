"""Numbers of a series that do not come: the last good ones stand for them, and at first the mean of training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from evidentia import EvidentiaError
from evidentia.events import (
    Clip,
    DetectorStream,
    EventDetector,
    EventTraining,
    OnsetWarning,
    SeriesInputs,
    make_head,
    make_network,
    push_many,
)
from evidentia.events.training.fitting import parted, pieces
from evidentia.events.training.held_out import hold_out

MEAN = torch.tensor([5.0, 2.0, 40.0, -3.0])


def detector(segment: int) -> EventDetector:
    """Random weights, but the mean of training that four sensors could have."""
    torch.manual_seed(3)
    net = make_network("temporal", 4, 3, segment=segment).eval()
    net.standardise.running_mean.copy_(MEAN)
    inputs = SeriesInputs(rate=10.0, channels=4, segment=segment)
    return EventDetector.assemble(net, ["a", "b", "c"], inputs, make_head("wbc"), OnsetWarning(window=2))


def series(length: int = 80) -> Tensor:
    return MEAN + torch.randn(length, 4, generator=torch.Generator().manual_seed(1))


def pushed(stream: DetectorStream, *chunks: Any) -> dict[str, Tensor]:
    """What network, heads and front end remember after some chunks; gaps are given by their seconds."""
    for chunk in chunks:
        if isinstance(chunk, float):
            stream.push(None, seconds=chunk)
        else:
            stream.push(chunk)
    return {name: part for name, part in stream.state_dict().items() if name.startswith(("inputs/", "kept/"))}


def same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> bool:
    return all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize("segment", [1, 4])
@pytest.mark.parametrize("heard", [40, 43])
def test_a_long_gap_keeps_the_last_good_numbers(segment: int, heard: int) -> None:
    det, samples = detector(segment), series()
    # The last good number of one channel waits for its segment, that of another came long before.
    before = samples[:heard].clone()
    before[10:, 2] = torch.nan
    last = samples[heard - 1].clone()
    last[2] = samples[9, 2]
    rest = (heard + 53) % segment
    after = samples[40:80].clone()
    after[:2, 2] = torch.nan
    held = after.clone()
    held[:2, 2] = last[2]
    stream = det.stream()
    found = pushed(stream, before, 5.3, after)
    assert same(found, pushed(det.stream(), last.expand(rest, 4), held))
    assert stream.time == pytest.approx((heard + 53 + 40) / 10)


@pytest.mark.parametrize("segment", [1, 4])
def test_the_mean_of_training_stands_for_numbers_that_have_not_come_yet(segment: int) -> None:
    det, samples = detector(segment), series()
    holes, filled = samples.clone(), samples.clone()
    holes[:6, 2], filled[:6, 2] = torch.nan, MEAN[2]
    expected = pushed(det.stream(), filled)
    assert same(pushed(det.stream(), holes), expected)
    assert same(pushed(det.stream(), *holes.split(1)), expected)
    assert same(pushed(det.stream(), 0.8, samples), pushed(det.stream(), MEAN.expand(8, 4), samples))
    assert same(pushed(det.stream(), 6.0, samples), pushed(det.stream(), MEAN.expand(60 % segment, 4), samples))


@pytest.mark.parametrize("sentinel", [9.9e37, 3.4e38, -1e20, 1e16])
@pytest.mark.parametrize("normalisation", ["fixed", "running"])
def test_numbers_that_stand_for_none_are_missing(sentinel: float, normalisation: Any) -> None:
    torch.manual_seed(3)
    net = make_network("temporal", 4, 3, normalisation=normalisation).eval()
    inputs = SeriesInputs(rate=10.0, channels=4)
    det = EventDetector.assemble(net, ["a", "b", "c"], inputs, make_head("wbc"), OnsetWarning(window=2))
    marked, holes = series(), series()
    marked[20:23, 2], holes[20:23, 2] = sentinel, torch.nan
    stream = det.stream()
    assert same(pushed(stream, marked), pushed(det.stream(), holes))
    assert stream.invalid == 3
    alpha, beta, _ = det.beta([Clip(marked, 10.0)])
    expected = det.beta([Clip(holes, 10.0)])
    assert torch.equal(alpha, expected.alpha)
    assert torch.equal(beta, expected.beta)


def test_training_leaves_numbers_that_stand_for_none_out() -> None:
    clips = [Clip(series(400), 10.0, [("a", 5.0, 9.0)]) for _ in range(2)]
    marked = clips[0].samples.clone()
    marked[100, 1] = 9.9e37
    clips[0] = Clip(marked, 10.0, clips[0].events)
    det = EventDetector("temporal", preset=None, epochs=1, progress=False).fit(clips, clips)
    assert torch.allclose(det.network_.usual_frame(), MEAN, atol=0.2)


def test_the_mean_is_that_of_the_clips_trained_on() -> None:
    clips = [Clip(series(400) + k, 10.0, [("a", 5.0, 9.0)]) for k in range(4)]
    det = EventDetector("temporal", preset=None, epochs=1, progress=False).fit(clips, clips)
    assert torch.allclose(det.network_.usual_frame(), MEAN + 1.5, atol=0.2)
    assert torch.equal(det.stream().state_dict()["inputs/last"][0], det.network_.usual_frame())


def test_streams_that_began_with_zeros_go_on() -> None:
    det, samples = detector(1), series()
    state = {**det.stream().state_dict(), "inputs/last": torch.zeros(1, 4)}
    stream = det.stream()
    stream.load_state_dict(state)
    holes, filled = samples.clone(), samples.clone()
    holes[0, 1], filled[0, 1] = torch.nan, 0.0
    assert same(pushed(stream, holes), pushed(det.stream(), filled))


@pytest.mark.parametrize("kind", ["read-only", "reversed"])
def test_arrays_that_pytorch_does_not_take(kind: str) -> None:
    det, samples = detector(1), series().numpy()
    given = samples[::-1].copy()[::-1] if kind == "reversed" else samples.copy()
    if kind == "read-only":
        given.setflags(write=False)
    assert same(pushed(det.stream(), given), pushed(det.stream(), samples))
    assert np.array_equal(given, samples)


def test_many_streams_take_gaps_as_one_does() -> None:
    det, samples = detector(4), series()
    chunks = [samples[:43], None, samples[:10], None]
    gaps = [None, 0.7, None, 5.3]
    alone, together = ([det.stream() for _ in chunks] for _ in range(2))
    for stream in (*alone, *together):
        stream.push(samples[:18])
    found = push_many(together, chunks, seconds=gaps)
    expected = [stream.push(chunk, seconds=gap) for stream, chunk, gap in zip(alone, chunks, gaps, strict=True)]
    assert [[each.to_dict() for each in part] for part in found] == [[e.to_dict() for e in part] for part in expected]
    for mine, its in zip(together, alone, strict=True):
        states = mine.state_dict(), its.state_dict()
        # In a batch of another size sums are rounded in another order.
        assert all(torch.allclose(part, states[1][name], atol=1e-5, equal_nan=True) for name, part in states[0].items())
        assert mine.time == its.time


@pytest.mark.parametrize(
    ("chunks", "gaps", "message"),
    [
        (
            [None, None],
            None,
            "^stream 0: a gap, None in place of samples, needs its length in seconds=, at least 0, got None",
        ),
        ([None, series(5)], [0.5, 0.5], "^stream 1: .*give it with None in place of samples"),
        ([None, series(5)], [0.5], "for each of 2 streams, got 1"),
        ([series(5), None], [None, -1.0], "^stream 1: .* at least 0, got -1"),
        ([None, None], 3.0, "seconds must be a list .* for each of 2 streams, got 3.0"),
    ],
)
def test_bad_gaps_of_many_streams_leave_all_as_they_were(chunks: Any, gaps: Any, message: str) -> None:
    det = detector(1)
    streams = [det.stream(), det.stream()]
    with pytest.raises(EvidentiaError, match=message):
        push_many(streams, chunks, seconds=gaps)
    assert [stream.time for stream in streams] == [0.0, 0.0]


def test_clips_miss_numbers_as_streams_do() -> None:
    det, samples = detector(4), series()
    samples[:3, 1] = torch.nan
    samples[30:37] = torch.nan
    clip = Clip(samples, 10.0)
    found = det.detect(clip, refractory=0.0)
    assert [each.to_dict() for each in found] == [
        pytest.approx(each.to_dict(), abs=1e-5) for each in det.stream(refractory=0.0).push(samples)
    ]
    # A long clip is cut in pieces, and a piece that begins in the hole goes on with the last good numbers.
    det.settings = det.settings.model_copy(update={"piece": 8})
    whole = series()
    whole[:3, 1], whole[30:37] = MEAN[1], whole[29]
    events = [("a", 1.0, 2.0), ("b", 4.0, 5.0), ("c", 5.0, 6.0)]
    filled, holes = (det.calibrate([Clip(part, 10.0, events)]).head_ for part in (whole, samples))
    assert filled == holes


@pytest.mark.parametrize("seconds", [0.04, 0.06, 0.05, 0.014])
@pytest.mark.parametrize("longest", [1.0, 0.0], ids=["filled", "anew"])
def test_short_gaps_are_as_long_together_as_a_long_one(seconds: float, longest: float) -> None:
    det = detector(4)
    stream = det.stream(longest_gap=longest)
    for number in range(100):
        stream.push(None, seconds=seconds)
        # Another stream takes over what is rounded off.
        if number == 50:
            state, stream = stream.state_dict(), det.stream(longest_gap=longest)
            stream.load_state_dict(state)
        assert stream.time == pytest.approx((number + 1) * seconds, abs=0.0501)
    owing = {**stream.state_dict(), "owed": torch.tensor([3.0])}
    with pytest.raises(EvidentiaError, match="a share of one"):
        stream.load_state_dict(owing)


@pytest.mark.parametrize("count", [1, 5])
def test_numbers_are_missing_as_in_the_clips_trained_on(count: int) -> None:
    """The mean of what is trained on stands for them, in what is held out too."""
    clips = []
    for k in range(count):
        samples = series(2048) + 10 * k + torch.arange(2048).unsqueeze(1) / 100
        samples[:40, 0] = torch.nan
        clips.append(Clip(samples, 10.0, [("a", 5.0, 9.0)], str(k)))
    inputs, settings = SeriesInputs(rate=10.0, channels=4), EventTraining(piece=None if count > 1 else 128)
    kept, held = parted(clips, None, inputs, settings)
    plain = hold_out(clips if count > 1 else pieces(clips, inputs, 128), settings.seed)[0]
    mean = torch.cat([clip.samples for clip in plain])[:, 0].nanmean()
    assert [clip.name for clip in kept] == [clip.name for clip in plain]
    first = [clip for clip in (*kept, *held) if clip.name in [each.name for each in clips] or "from 0 s" in clip.name]
    assert len(first) == count
    for clip in first:
        assert torch.allclose(clip.samples[:40, 0], mean)


def test_training_on_clips_with_missing_numbers() -> None:
    clips = []
    for k in range(5):
        samples = series(400) + k
        samples[:40, 0], samples[100:120] = torch.nan, torch.nan
        clips.append(Clip(samples, 10.0, [("a", 5.0, 9.0)]))
    det = EventDetector("temporal", preset=None, epochs=1, progress=False).fit(clips)
    assert det.network_.usual_frame().isfinite().all()
    assert det.evaluate(clips).inference_time > 0
    silent = Clip(torch.full((400, 4), torch.nan), 10.0, [("a", 5.0, 9.0)], columns=("p", "q", "r", "s"))
    with pytest.raises(EvidentiaError, match="no clip has a number in channel p, q, r, s"):
        EventDetector("temporal", epochs=1, progress=False).fit([silent, silent])


def test_sound_misses_no_samples() -> None:
    clip = Clip(torch.full((16_000, 1), torch.nan), 16_000, [("a", 0.1, 0.5)], "hole")
    with pytest.raises(EvidentiaError, match="hole is taken for sound and misses 16000 samples"):
        EventDetector(epochs=1, progress=False).fit([clip, clip])
    with pytest.raises(EvidentiaError, match="finite"):
        Clip(torch.full((5, 2), torch.inf), 10.0)
