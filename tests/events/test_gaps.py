"""Gaps of a stream: the same in one piece and in many, of sound and of series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from evidentia import EvidentiaError
from evidentia.events import DetectorStream, EventDetector, push_many

Make = Callable[..., EventDetector]
KINDS = ("sound", "series")


@pytest.fixture(scope="module")
def detectors(detector: Make) -> dict[str, EventDetector]:
    return {"sound": detector(), "series": detector("temporal", series=True)}


@pytest.fixture(scope="module")
def samples(sound: Tensor) -> dict[str, Tensor]:
    """What comes around the gap; before it, samples that are counted wait for their segment."""
    loud = sound.clone()
    loud[8_990], loud[8_991] = torch.nan, 3.0
    series = torch.randn(60, 4, generator=torch.Generator().manual_seed(2))
    series[17, 1] = torch.nan
    return {"sound": loud, "series": series}


def heard(stream: DetectorStream, gaps: Sequence[float], samples: Tensor) -> list[dict[str, Any]]:
    """All detections of samples with a gap in them, in pieces; between any two another stream takes over."""
    before = 9_001 if samples.ndim == 1 else 18
    found = stream.push(samples[:before])
    for seconds in gaps:
        found += stream.push(None, seconds=seconds) + stream.push([])
        stream.load_state_dict(stream.state_dict())
    return [each.to_dict() for each in found + stream.push(samples[before:])]


def same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> bool:
    """Whether two states are equal, but for the last digits of what is rounded off."""
    found, expected = dict(found), dict(expected)
    assert torch.allclose(found.pop("owed"), expected.pop("owed"), atol=1e-6)
    return found.keys() == expected.keys() and all(torch.equal(part, expected[name]) for name, part in found.items())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("refractory", [0.0, 0.5])
@settings(max_examples=15)
@example(total=5.0, cuts=[0.2, 0.4, 0.6, 0.8], longest=1.0)
@given(
    total=st.sampled_from([0.3, 1.0, 1.1, 5.0, 120.0]),
    cuts=st.lists(st.floats(0, 1), max_size=8),
    longest=st.sampled_from([1.0, 0.0, 0.7]),
)
def test_a_gap_is_the_same_in_any_pieces(
    detectors: dict[str, EventDetector],
    samples: dict[str, Tensor],
    kind: str,
    refractory: float,
    total: float,
    cuts: list[float],
    longest: float,
) -> None:
    one, many = (detectors[kind].stream(refractory=refractory, longest_gap=longest) for _ in range(2))
    places = [0.0, *sorted(total * cut for cut in cuts), total]
    expected = heard(one, [total], samples[kind])
    assert heard(many, [end - begin for begin, end in pairwise(places)], samples[kind]) == expected
    assert same(many.state_dict(), one.state_dict())
    assert (many.invalid, many.clipped) == (one.invalid, one.clipped)


@pytest.mark.parametrize("kind", KINDS)
def test_five_gaps_of_a_second_are_one_of_five(
    detectors: dict[str, EventDetector], samples: dict[str, Tensor], kind: str
) -> None:
    one, five, two = (detectors[kind].stream(refractory=0.0) for _ in range(3))
    expected = heard(one, [5.0], samples[kind])
    assert heard(five, [1.0] * 5, samples[kind]) == expected
    assert same(five.state_dict(), one.state_dict())
    assert int(one.state_dict()["clock/begun"]) < int(one.state_dict()["clock/segment"])
    # Samples end a gap, so that another begins.
    before = 9_001 if kind == "sound" else 18
    two.push(samples[kind][:before])
    for _ in range(5):
        two.push(None, seconds=1.0)
        two.push(samples[kind][before : before + 1])
    assert torch.equal(two.state_dict()["clock/begun"], two.state_dict()["clock/segment"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seconds", [0.5, 5.0])
def test_what_does_not_come_is_not_invalid(
    detectors: dict[str, EventDetector], samples: dict[str, Tensor], kind: str, seconds: float
) -> None:
    stream = detectors[kind].stream()
    heard(stream, [seconds], samples[kind])
    assert (stream.invalid, stream.clipped) == ((1, 1) if kind == "sound" else (1, 0))


def test_a_long_gap_is_heard_as_far_as_a_short_one(detectors: dict[str, EventDetector], sound: Tensor) -> None:
    streams = [detectors["sound"].stream(refractory=0.0) for _ in range(2)]
    push_many(streams, [sound[:9_001]] * 2)
    short, long = push_many(streams, [None, None], seconds=[1.0, 600.0])
    assert short
    assert [each.to_dict() for each in short] == [each.to_dict() for each in long]


@pytest.mark.parametrize("kind", ["sound", "series"])
def test_a_gap_of_all_time_is_refused(detectors: dict[str, EventDetector], kind: str) -> None:
    stream = detectors[kind].stream()
    with pytest.raises(EvidentiaError, match=r"a gap may last up to .* s, got 1e\+18; are these seconds"):
        stream.push(None, seconds=1e18)
    # A clock that is set from 0 to the seconds since 1970.
    stream.push(None, seconds=1.8e9)
    assert stream.time == pytest.approx(1.8e9)


def test_a_state_knows_the_gap_that_it_is_in(detectors: dict[str, EventDetector]) -> None:
    det = detectors["series"]
    stream = det.stream()
    stream.push(torch.zeros(20, 4))
    stream.push(None, seconds=0.6)
    state = stream.state_dict()
    for wrong in (torch.tensor([-1]), torch.tensor([27]), torch.tensor([0.5]), torch.tensor([1, 1])):
        with pytest.raises(EvidentiaError, match="the state is in a gap of"):
            stream.load_state_dict({**state, "gap": wrong})
    stream.push(None, seconds=0.6)
    assert int(stream.state_dict()["clock/begun"]) == 0
    again = det.stream()
    again.load_state_dict(state)
    again.push(None, seconds=0.6)
    assert int(again.state_dict()["clock/begun"]) == 0
