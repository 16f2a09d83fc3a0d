"""What is held out to calibrate on: a fifth of the clips, or of their length where they differ."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evidentia.evaluation import EventTruth
from evidentia.events import Clip, EventDetector, clip_labels
from evidentia.events.training.held_out import hold_out, warn_missing
from evidentia.learning.seeding import seeded


def clip(length: int, *labels: str) -> Clip:
    return Clip(torch.zeros(length, 2), 10.0, [(label, 0.0, 0.1) for label in labels])


@pytest.mark.parametrize("count", [2, 3, 7, 10, 41])
@pytest.mark.parametrize("seed", [0, 5])
def test_clips_of_one_length_are_drawn_by_number(count: int, seed: int) -> None:
    clips = [clip(50, "a") for _ in range(count)]
    with seeded(seed, -3):
        order = torch.randperm(count).tolist()
    expected = sorted(order[: math.ceil(count / 5)])
    kept, held = hold_out(clips, seed)
    assert [clips.index(each) for each in held] == expected
    assert [clips.index(each) for each in kept] == [n for n in range(count) if n not in expected]


@pytest.mark.parametrize("seed", range(12))
def test_each_class_keeps_an_event_to_train_on_among_clips_of_one_length(seed: int) -> None:
    clips = [*(clip(50, "a") for _ in range(9)), clip(50, "rare")]
    with seeded(seed, -3):
        drawn = torch.randperm(10).tolist()[:2]
    kept, held = hold_out(clips, seed)
    assert clip_labels(kept) == ("a", "rare")
    assert (len(kept), len(held)) == (8, 2)
    if 9 not in drawn:
        assert [clips.index(each) for each in held] == sorted(drawn)
    # Where each clip is the only one of its class, one must go all the same.
    assert len(hold_out([clip(50, "a"), clip(50, "b")], seed)[1]) == 1


def test_classes_without_an_event_to_calibrate_on_are_told() -> None:
    truth = EventTruth.from_events([[(0, 0.0, 1.0)]], [20], 3, 0.1)
    with pytest.warns(UserWarning, match="no event of b, c, so that"):
        assert warn_missing(truth, ["a", "b", "c"]) == ["b", "c"]
    assert warn_missing(truth, ["a"]) == []


def test_a_target_is_not_met_by_clips_without_events() -> None:
    clips = [Clip(torch.randn(300, 2), 10.0, [("a", 5.0, 9.0)]) for _ in range(2)]
    det = EventDetector("temporal", preset=None, epochs=1, progress=False)
    with pytest.warns(UserWarning, match="no event at all.*no target counts as met"):
        det.fit(clips, [Clip(torch.randn(300, 2), 10.0)])
    assert (det.calibration_["met"], det.calibration_["missing"]) == (False, ["a"])


@pytest.mark.parametrize("seed", range(8))
def test_clips_of_many_lengths_are_held_out_by_length(seed: int) -> None:
    clips = [clip(length) for length in (6000, *[3000] * 3, *[100] * 40)]
    kept, held = hold_out(clips, seed)
    lengths = [sum(len(each.samples) for each in part) for part in (kept, held)]
    assert lengths[1] / sum(lengths) == pytest.approx(0.2, abs=0.02)
    assert {id(each) for each in (*kept, *held)} == {id(each) for each in clips}
    assert len(kept) + len(held) == len(clips)


@pytest.mark.parametrize("seed", range(8))
def test_both_parts_have_every_class_where_clips_allow(seed: int) -> None:
    clips = [*(clip(100 + n, "common") for n in range(40)), clip(150, "rare", "common"), clip(160, "rare")]
    kept, held = hold_out([*clips, clip(90, "single")], seed)
    assert clip_labels(held) == ("common", "rare")
    assert clip_labels(kept) == ("common", "rare", "single")


@given(st.lists(st.integers(1, 300), min_size=2, max_size=25), st.integers(0, 50))
def test_neither_part_is_ever_empty(lengths: list[int], seed: int) -> None:
    kept, held = hold_out([clip(length, "ab"[length % 2]) for length in lengths], seed)
    assert kept
    assert held
