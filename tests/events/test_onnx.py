"""ONNX: exported steps agree with PyTorch, and streams by ONNX Runtime give the same detections."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from evidentia import EvidentiaError
from evidentia.events import (
    HEADS,
    WBC,
    EventDetector,
    OnsetWarning,
    PhaseI,
    export_onnx,
    make_head,
    make_network,
    push_many,
)
from evidentia.events.fusion.base import Fusion
from evidentia.events.fusion.state import Windows
from evidentia.events.streams.onnx import NetworkStep, PipelineStep, check_agreement, make_engine, onnx_bytes, session
from evidentia.events.streams.pipeline import Pipeline

pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

Make = Callable[..., EventDetector]


@pytest.mark.parametrize("network", ["crnn", "conformer"])
def test_exported_steps_agree(network: str, tmp_path: Path) -> None:
    net = make_network(network, 128, 4).eval()
    export_onnx(net, tmp_path / "step.onnx")
    runtime = session(tmp_path / "step.onnx")
    for batch in (1, 2, 7):
        assert check_agreement(NetworkStep(net), runtime, batch=batch) < 1e-5


def test_streams_by_onnx_runtime_detect_the_same(detector: Make, sound: Tensor) -> None:
    det = detector()
    expected = det.stream(refractory=0.0).push(sound)
    streams = [det.stream(engine="onnx", refractory=0.0) for _ in range(2)]
    found = push_many(streams, [sound, sound[:10_000]])[0]
    assert expected
    assert [(e.label, e.segment, e.level) for e in found] == [(e.label, e.segment, e.level) for e in expected]
    assert all(mine.opinion.allclose(its.opinion, atol=1e-4) for mine, its in zip(found, expected, strict=True))
    # Either engine goes on with the other's state.
    after = det.stream(refractory=0.0)
    after.load_state_dict(streams[1].state_dict())
    rest = after.push(sound[10_000:])
    assert [(e.label, e.segment) for e in rest] == [(e.label, e.segment) for e in expected if e.segment >= 9]


def test_streams_that_have_just_begun_are_decided_about_by_what_they_have_had(detector: Make) -> None:
    pipeline = detector().stream().runner.pipeline
    engine, batch = make_engine("onnx", pipeline), 64
    generator = torch.Generator().manual_seed(0)
    frames = (torch.randn(batch, 4, 128, generator=generator) * 14 - 50).numpy()
    old, mixed = np.full(batch, 50), np.arange(batch) % 5
    by_age = [
        np.concatenate(each.run(frames, begun, pipeline.start(batch)).calls, axis=1)
        for begun in (old, mixed)
        for each in (engine, pipeline)
    ]
    assert np.array_equal(by_age[0], by_age[1])
    assert np.array_equal(by_age[2], by_age[3])
    assert not np.array_equal(by_age[0], by_age[2])


def test_what_cannot_be_exported_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvidentiaError, match="evaluation mode"):
        export_onnx(make_network("crnn", 128, 2).train(), tmp_path / "step.onnx")
    with pytest.raises(EvidentiaError, match="offline baseline"):
        export_onnx(make_network("crnn-offline", 128, 2).eval(), tmp_path / "step.onnx")
    with pytest.raises(EvidentiaError, match="float32"):
        export_onnx(make_network("crnn", 128, 2).eval().double(), tmp_path / "step.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("in_onnx", [True, False])
def test_every_head_decides_the_same_by_onnx_runtime(detector: Make, in_onnx: bool) -> None:
    # Random weights are never as sure as filters want it.
    lenient = {"max_uncertainty": 1.0}
    heads = [make_head(name, **(lenient if "max_uncertainty" in HEADS[name].model_fields else {})) for name in HEADS]
    detectors = [detector("temporal", head, series=True) for head in heads if head.in_onnx == in_onnx]
    alone = detectors[0].stream().runner.pipeline
    pipeline = Pipeline(alone.network, [det.head_ for det in detectors], alone.loss, alone.activation)
    engines = (pipeline, make_engine("onnx", pipeline))
    kept, called = [pipeline.start() for _ in engines], np.zeros(len(detectors), dtype=bool)
    for begun, frames in enumerate(torch.randn(80, 1, 1, 4, generator=torch.Generator().manual_seed(2)).numpy()):
        expected, found = (each.run(frames, np.array([begun]), old) for each, old in zip(engines, kept, strict=True))
        assert all(map(np.array_equal, found.calls, expected.calls))
        np.testing.assert_allclose(found.alpha, expected.alpha, rtol=1e-4)
        called |= [bool(calls.any()) for calls in expected.calls]
        kept = [{**ran.caches, "alpha": ran.alpha[:, 1:], "beta": ran.beta[:, 1:]} for ran in (expected, found)]
    assert called.all()


def test_a_warning_of_one_segment_that_skips_some_runs_by_onnx_runtime(detector: Make) -> None:
    det = detector("temporal", series=True)
    det.warning_ = OnsetWarning(window=1, skip=2, threshold=det.warning_.threshold)
    series = torch.randn(80, 4, generator=torch.Generator().manual_seed(2))
    expected, found = (det.stream(engine=engine, refractory=0.0).push(series) for engine in ("torch", "onnx"))
    assert any(each.level == "warning" for each in expected)
    assert [(e.label, e.segment, e.level) for e in found] == [(e.label, e.segment, e.level) for e in expected]


def test_a_model_that_onnx_runtime_does_not_take_is_told_in_a_sentence() -> None:
    with pytest.raises(EvidentiaError, match=r"ONNX Runtime does not take the model .* use the engine 'torch'"):
        session(b"no model")


class Unknown(PhaseI):
    """A head that says nothing of its digamma."""

    name: ClassVar[str] = "unknown"

    def _fuse(self, windows: Windows) -> Fusion:
        fusion = super()._fuse(windows)
        return fusion._replace(score=fusion.score + torch.digamma(windows.latest()[0]))


def test_what_the_exporter_refuses_is_told_in_a_sentence(detector: Make) -> None:
    det = detector("temporal", series=True)
    det = EventDetector.assemble(det.network_, det.labels_, det.inputs_, Unknown(), det.warning_)
    assert det.stream() is not None
    with pytest.raises(EvidentiaError, match=r"and its heads into ONNX \(\w+\); .*the engine 'torch'") as refused:
        det.stream(engine="onnx")
    assert refused.value.__cause__ is not None


class Tampered:
    """A session whose results are changed on the way."""

    def __init__(self, runtime: Any, change: Callable[[str, Any], Any]) -> None:
        self.runtime, self.change = runtime, change
        self.get_inputs = runtime.get_inputs

    def run(self, names: list[str], feed: dict[str, Any]) -> list[Any]:
        return [self.change(name, array) for name, array in zip(names, self.runtime.run(names, feed), strict=True)]


@pytest.fixture(scope="module")
def exported(detector: Make) -> tuple[PipelineStep, Any]:
    step = PipelineStep(detector("temporal", WBC(window=4), series=True).stream().runner.pipeline)
    return step, session(onnx_bytes(step))


@pytest.mark.parametrize("number", [0, 1])
def test_decisions_that_differ_are_noticed(exported: tuple[PipelineStep, Any], number: int) -> None:
    step, runtime = exported
    assert check_agreement(step, runtime) < 1e-5
    inverted = Tampered(runtime, lambda name, array: ~array if name == f"calls/{number}" else array)
    with pytest.raises(EvidentiaError, match=r"differ in \d+ calls"):
        check_agreement(step, inverted)


def test_a_model_that_differs_is_noticed(exported: tuple[PipelineStep, Any]) -> None:
    step = copy.deepcopy(exported[0])
    with torch.no_grad():
        step.network.head.weight += 0.1
    with pytest.raises(EvidentiaError, match="differ by"):
        check_agreement(step, exported[1])


def test_windows_are_those_of_the_segments_before(exported: tuple[PipelineStep, Any]) -> None:
    """The check lets heads look at windows of evidence, not of what stands before a stream's beginning."""
    seen = []

    def remember(name: str, array: Any) -> Any:
        if name == "alpha":
            seen.append(torch.from_numpy(array.copy()))
        return array

    check_agreement(exported[0], Tampered(exported[1], remember), segments=5)
    for before, after in pairwise(seen):
        assert torch.equal(after[:, :-1], before[:, 1:])
    assert bool((seen[-1] > 1).all())


def test_ties_are_nobodys_fault(detector: Make) -> None:
    pipeline = detector("temporal", series=True).stream(warnings=False).runner.pipeline
    pipeline = Pipeline(pipeline.network, [PhaseI(max_vacuity=1.0)], pipeline.loss, pipeline.activation)
    step, even = PipelineStep(pipeline), torch.full((2, 1, 3), 7.0)
    # As much evidence for as against, of which the log odds are the threshold.
    tied = {"alpha": even, "beta": even, "calls/0": torch.tensor([[True] * 3, [False] * 3])}
    assert step.misjudged(tied) == 0
    assert step.misjudged({**tied, "alpha": 2 * even}) == 3


def test_a_trained_detector_is_exported_by_its_network_with_its_units(detector: Make, tmp_path: Path) -> None:
    det = detector("temporal", series=True)
    det.network_.take_units(torch.randn(2, 50, 4) * torch.tensor([1e-6, 1.0, 1e3, 1.0]))
    assert det.network_.unit is not None
    export_onnx(det, tmp_path / "detector.onnx")
    assert check_agreement(NetworkStep(det.network_), session(tmp_path / "detector.onnx")) < 1e-5
    with pytest.raises(EvidentiaError, match=r"its network, detector.network_, got EventDetector; train it first"):
        export_onnx(EventDetector(), tmp_path / "other.onnx")
    with pytest.raises(EvidentiaError, match=r"its network, detector.network_, got str"):
        export_onnx("crnn", tmp_path / "other.onnx")  # type: ignore[arg-type]
