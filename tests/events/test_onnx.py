"""ONNX: exported steps agree with PyTorch, and streams by ONNX Runtime give the same detections."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from evidentia import EvidentiaError
from evidentia.events import EventDetector, export_onnx, make_network, push_many
from evidentia.events.onnx import NetworkStep, check_agreement, make_engine, session

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
    # Either engine goes on with the other's state.
    after = det.stream(refractory=0.0)
    after.load_state_dict(streams[1].state_dict())
    rest = after.push(sound[10_000:])
    assert [(e.label, e.segment) for e in rest] == [(e.label, e.segment) for e in expected if e.segment >= 9]


def test_streams_that_have_just_begun_are_decided_about_by_what_they_have_had(detector: Make) -> None:
    pipeline = detector().stream().runner.pipeline
    engine, batch = make_engine("onnx", pipeline), 64
    generator = torch.Generator().manual_seed(0)
    frames = torch.randn(batch, 4, 128, generator=generator) * 14 - 50
    old, mixed = torch.full((batch,), 50), torch.arange(batch) % 5
    with torch.inference_mode():
        by_age = [
            torch.cat(list(each.run(frames, begun, pipeline.start(batch)).calls), 1)
            for begun in (old, mixed)
            for each in (engine, pipeline)
        ]
    assert torch.equal(by_age[0], by_age[1])
    assert torch.equal(by_age[2], by_age[3])
    assert not torch.equal(by_age[0], by_age[2])


def test_what_cannot_be_exported_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvidentiaError, match="evaluation mode"):
        export_onnx(make_network("crnn", 128, 2).train(), tmp_path / "step.onnx")
    with pytest.raises(EvidentiaError, match="offline baseline"):
        export_onnx(make_network("crnn-offline", 128, 2).eval(), tmp_path / "step.onnx")
    with pytest.raises(EvidentiaError, match="float32"):
        export_onnx(make_network("crnn", 128, 2).eval().double(), tmp_path / "step.onnx")
    assert not list(tmp_path.iterdir())


def test_a_model_that_differs_is_noticed(tmp_path: Path) -> None:
    net = make_network("temporal", 3, 2).eval()
    export_onnx(net, tmp_path / "step.onnx")
    runtime = session(tmp_path / "step.onnx")
    with torch.no_grad():
        net.head.weight += 0.1
    with pytest.raises(EvidentiaError, match="differ by"):
        check_agreement(NetworkStep(net), runtime)


def test_units_are_exported(tmp_path: Path) -> None:
    net = make_network("temporal", 3, 2).eval()
    net.take_units(torch.randn(2, 50, 3) * torch.tensor([1e-6, 1.0, 1e3]))
    assert net.unit is not None
    export_onnx(net, tmp_path / "step.onnx")
    assert check_agreement(NetworkStep(net), session(tmp_path / "step.onnx")) < 1e-5
