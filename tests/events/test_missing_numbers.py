"""Numbers of a series that do not come: the last good ones stand for them, and at first the mean of training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from evidentia.events import DetectorStream, EventDetector, OnsetWarning, SeriesInputs, make_head, make_network

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


def test_the_mean_is_that_of_the_clips_trained_on() -> None:
    from evidentia.events import Clip

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
