"""States of streams that are damaged, foreign or none at all: a sentence, and the stream stays as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from evidentia import EvidentiaError
from evidentia.events import EventDetector
from evidentia.events.triggers import LONG_AGO

State = dict[str, Tensor]


@pytest.fixture(scope="module")
def det(detector: Callable[..., EventDetector]) -> EventDetector:
    return detector()


@pytest.fixture(scope="module")
def state(det: EventDetector, sound: Tensor) -> State:
    stream = det.stream()
    stream.push(sound[:20_000])
    return stream.state_dict()


def test_a_sound_state_is_taken(det: EventDetector, state: State) -> None:
    # Both kinds of what the triggers remember are good: an alarm, and none yet.
    last = torch.cat([state["triggers/alarm/last"].flatten(), state["triggers/warning/last"].flatten()])
    assert bool((last >= 0).any())
    stream = det.stream()
    stream.load_state_dict({**state, "triggers/alarm/last": torch.full((1, 3), LONG_AGO)})
    stream.load_state_dict({name: part.numpy() for name, part in state.items()})
    assert stream.time == pytest.approx(1.25)


@pytest.mark.parametrize("given", [None, 3, {"a": "b"}, {"a": None}, [torch.zeros(1)], {1: torch.zeros(1)}])
def test_what_is_no_state(det: EventDetector, given: Any) -> None:
    with pytest.raises(EvidentiaError, match="give what state_dict returned"):
        det.stream().load_state_dict(given)


@pytest.mark.parametrize(
    "identity",
    [torch.zeros(2, 2), torch.tensor([300]), torch.tensor(1, dtype=torch.uint8), torch.zeros(32)],
    ids=["2d", "too large", "scalar", "floats"],
)
def test_what_says_no_detector(det: EventDetector, state: State, identity: Tensor) -> None:
    with pytest.raises(EvidentiaError, match="not the state of a stream"):
        det.stream().load_state_dict({**state, "detector": identity})
    with pytest.raises(EvidentiaError, match="another detector"):
        det.stream().load_state_dict({**state, "detector": torch.zeros(32, dtype=torch.uint8)})


@pytest.mark.parametrize("waiting", [torch.tensor(1.0), torch.zeros(3, 2), torch.zeros(3, dtype=torch.float64)])
def test_waiting_samples_that_do_not_fit(det: EventDetector, state: State, waiting: Tensor) -> None:
    with pytest.raises(EvidentiaError, match="waiting samples"):
        det.stream().load_state_dict({**state, "waiting": waiting})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kept/", torch.nan),
        ("inputs/tail", torch.inf),
        ("clock/segment", -5),
        ("clock/invalid", -1),
        ("clock/begun", 10_000),
        ("triggers/alarm/last", 10_000),
        ("triggers/warning/last", -3),
    ],
)
def test_numbers_that_no_stream_comes_to(det: EventDetector, state: State, name: str, value: float) -> None:
    full = next(each for each in state if each.startswith(name))
    stream = det.stream()
    with pytest.raises(EvidentiaError, match=f"the state is damaged.*{full}"):
        stream.load_state_dict({**state, full: torch.full_like(state[full], value)})
    assert stream.time == 0
