"""States of streams that are damaged, foreign or none at all: a sentence, and the stream stays as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from evidentia import EvidentiaError
from evidentia.events import WBC, DetectorStream, EventDetector, OnsetWarning, make_head
from evidentia.events.streams.triggers import LONG_AGO

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


def test_a_state_that_lacks_a_part(det: EventDetector, state: State) -> None:
    for name in state:
        stream = det.stream()
        with pytest.raises(EvidentiaError, match="not the state of a stream" if name == "detector" else name):
            stream.load_state_dict({other: part for other, part in state.items() if other != name})
        assert stream.time == 0


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


# With warnings and without.


def alarms(stream: DetectorStream, samples: Tensor) -> list[dict[str, Any]]:
    return [each.to_dict() for each in stream.push(samples) if each.level == "alarm"]


def with_heads(detector: Callable[..., EventDetector], window: int, of_warning: int) -> EventDetector:
    det = detector(head=make_head("wbc", window=window))
    warning = OnsetWarning(window=of_warning, threshold=det.warning_.threshold)
    return EventDetector.assemble(det.network_, det.labels_, det.inputs_, det.head_, warning)


@pytest.mark.parametrize(
    ("window", "of_warning", "engine"),
    [(4, 2, "torch"), (2, 6, "torch"), (1, 3, "torch"), (3, 3, "torch"), (2, 6, "onnx")],
)
def test_a_stream_goes_on_without_the_warnings_it_had(
    detector: Callable[..., EventDetector], sound: Tensor, window: int, of_warning: int, engine: Any
) -> None:
    if engine == "onnx":
        pytest.importorskip("onnxscript")
        pytest.importorskip("onnxruntime")
    det = with_heads(detector, window, of_warning)
    warned, plain = det.stream(refractory=0.1), det.stream(refractory=0.1, warnings=False, engine=engine)
    warned.push(sound[:20_000])
    plain.load_state_dict(warned.state_dict())
    expected = [each.to_dict() for each in warned.push(sound[20_000:]) if each.level == "alarm"]
    found = plain.push(sound[20_000:])
    assert expected
    assert {each.level for each in found} == {"alarm"}
    # Engines round in different orders.
    assert [(each.label, each.segment) for each in found] == [(each["label"], each["segment"]) for each in expected]


@pytest.mark.parametrize(("window", "of_warning"), [(4, 2), (6, 6)])
def test_warnings_begin_anew_in_a_stream_that_had_none(
    detector: Callable[..., EventDetector], sound: Tensor, window: int, of_warning: int
) -> None:
    det = with_heads(detector, window, of_warning)
    plain, warned, always = det.stream(warnings=False), det.stream(), det.stream()
    plain.push(sound[:20_000])
    always.push(sound[:20_000])
    warned.load_state_dict(plain.state_dict())
    fresh = det.stream().state_dict()
    loaded = warned.state_dict()
    assert all(torch.equal(loaded[name], fresh[name]) for name in fresh if name.startswith("triggers/warning/"))
    # All else is that of a stream that had warnings from the beginning.
    expected = always.state_dict()
    others = [name for name in expected if not name.startswith("triggers/warning/")]
    assert all(torch.equal(loaded[name], expected[name]) for name in others)
    assert alarms(warned, sound[20_000:]) == alarms(always, sound[20_000:])


@pytest.mark.parametrize("window", [1, 3])
def test_warnings_that_look_back_further_than_was_kept(
    detector: Callable[..., EventDetector], sound: Tensor, window: int
) -> None:
    det = with_heads(detector, window, 6)
    plain, warned = det.stream(warnings=False), det.stream()
    plain.push(sound[:20_000])
    with pytest.raises(EvidentiaError, match=r"without warnings, .* the 5 segments .* go on with warnings=False"):
        warned.load_state_dict(plain.state_dict())
    assert warned.time == 0


def test_another_head_is_another_detector(detector: Callable[..., EventDetector], state: State) -> None:
    det = detector()
    other = EventDetector.assemble(det.network_, det.labels_, det.inputs_, WBC(window=7), det.warning_)
    for warnings in (True, False):
        with pytest.raises(EvidentiaError, match="another detector"):
            other.stream(warnings=warnings).load_state_dict(state)
