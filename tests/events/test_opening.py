"""Opening streams: what does not fit is told before samples come, and engines are of the detector as it is now."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from evidentia import EvidentiaError
from evidentia.events import WBC, Clip, EventDetector, push_many, synthetic_clips

Make = Callable[..., EventDetector]


@pytest.mark.parametrize("setting", [{"window": (1, 2)}, {"window": (3,)}, {"threshold": (0.0,)}, {"decay": (0.5, 1)}])
def test_a_setting_for_other_classes_is_told_before_samples_come(detector: Make, setting: dict[str, Any]) -> None:
    det = detector(classes=3)
    det.head_ = WBC(**setting)
    with pytest.raises(EvidentiaError, match="one value for each of 3 classes"):
        det.stream()


def test_a_network_that_was_left_in_training_mode_is_told(detector: Make, sound: Tensor) -> None:
    det = detector()
    expected = det.stream().push(sound)
    det.network_.train()
    for use in (det.stream, lambda: det.detect(Clip(sound, 16_000)), lambda: det.evaluate([Clip(sound, 16_000)])):
        with pytest.raises(EvidentiaError, match=r"call eval\(\) first"):
            use()
    det.network_.eval()
    assert len(det.stream().push(sound)) == len(expected) > 0


def test_weights_that_are_changed_in_place_are_those_of_the_next_stream(detector: Make, sound: Tensor) -> None:
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    det = detector()
    before = [det.stream(engine=engine, refractory=0.0, warnings=False) for engine in ("torch", "onnx")]
    assert all(stream.push(sound) for stream in before)
    assert det.stream(engine="onnx", refractory=0.0, warnings=False).runner is before[1].runner
    state = before[0].state_dict()
    with torch.no_grad():
        det.network_.head.bias.view(-1, 2)[:, 0] -= 1e3
    for engine in ("torch", "onnx"):
        stream = det.stream(engine=engine, refractory=0.0, warnings=False)
        assert not stream.push(sound)
        with pytest.raises(EvidentiaError, match="another detector"):
            stream.load_state_dict(state)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda det: pickle.loads(pickle.dumps(det))])
def test_a_detector_whose_streams_run_by_onnx_runtime_can_be_copied(
    detector: Make, sound: Tensor, copied: Callable[[EventDetector], EventDetector]
) -> None:
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    det = detector()
    expected = det.stream(engine="onnx").push(sound)
    found = copied(det).stream(engine="onnx").push(sound)
    assert [(each.label, each.segment) for each in found] == [(each.label, each.segment) for each in expected]


def test_a_copied_stream_goes_on_by_itself(detector: Make, sound: Tensor) -> None:
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    for engine in ("torch", "onnx"):
        stream = detector().stream(engine=engine)
        half = len(sound) // 2
        stream.push(sound[:half])
        twin = copy.deepcopy(stream)
        rest = [(each.label, each.segment) for each in stream.push(sound[half:])]
        assert twin.time < stream.time
        assert [(each.label, each.segment) for each in push_many(iter([twin]), iter([sound[half:]]))[0]] == rest


@pytest.mark.parametrize("series", [False, True])
def test_detectors_are_of_single_precision_whatever_the_default_is(tmp_path: Path, *, series: bool) -> None:
    clips = synthetic_clips(6, seed=1, labels=["siren", "clicks"], duration=2.0)
    if series:
        clips = [Clip(clip.samples[:320].view(-1, 2), 80, clip.events) for clip in clips]
    found = []
    for dtype in (torch.float32, torch.float64):
        torch.set_default_dtype(dtype)
        try:
            det = EventDetector("temporal" if series else "crnn", epochs=1, seed=0, progress=False).fit(clips)
            det.save(tmp_path / "detector.safetensors")
            det = EventDetector.load(tmp_path / "detector.safetensors")
            det.head_ = det.head_.model_copy(update={"threshold": -2.0})
            streams = [det.stream(warnings=False), det.stream(warnings=False, engine="onnx")]
            found.append(det.detect(clips[0], warnings=False))
            found += [stream.push(clips[0].samples) for stream in streams]
            assert det.evaluate(clips).macro_f1 >= 0
        finally:
            torch.set_default_dtype(torch.float32)
    told = [[(each.label, each.segment) for each in detections] for detections in found]
    assert told[0]
    assert all(each == told[0] for each in told)
