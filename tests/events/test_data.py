"""Data sets of events by name."""

from __future__ import annotations

import pytest
import torch

import evidentia as ev
from evidentia.events import load_clips
from evidentia.events.data.by_name import DATASETS, check_data


def test_the_parts_of_the_built_in_data_differ_and_repeat():
    parts = {part: load_clips("synthetic", part, count=2) for part in ("train", "validation", "test")}
    assert len({clip.name for clips in parts.values() for clip in clips}) == 6
    assert not torch.equal(parts["train"][0].samples, parts["test"][0].samples)
    again = load_clips("synthetic", "test", count=1)
    assert torch.equal(again[0].samples, parts["test"][0].samples)
    assert not torch.equal(load_clips("synthetic", "test", count=1, seed=1)[0].samples, again[0].samples)
    assert len(load_clips("synthetic", "validation")) == 50


def test_bad_names_are_refused():
    with pytest.raises(ev.EvidentiaError, match="choose one of: synthetic"):
        load_clips("esc10")
    with pytest.raises(ev.EvidentiaError, match="part"):
        load_clips("synthetic", "exam")
    for name in ("esc50-alarm", "ava-0.3s"):
        with pytest.raises(ev.EvidentiaError, match="data_root"):
            load_clips(name)


def test_files_that_are_not_there_are_told_without_loading(tmp_path):
    check_data(["synthetic"])
    with pytest.raises(ev.EvidentiaError, match="data_root"):
        check_data(["synthetic", "ava-0.3s"])
    with pytest.raises(FileNotFoundError, match=r"esc50\.csv"):
        check_data(["esc50-alarm"], tmp_path)


def test_every_real_benchmark_loads(real_data):
    pytest.importorskip("soundfile")
    if not (real_data / "ESC-50" / "meta").is_dir():
        pytest.skip("ESC-50 is not here")
    check_data(DATASETS[:5], real_data)
    for name in DATASETS[1:5]:
        (clip,) = load_clips(name, "validation", count=1, data_root=real_data)
        assert clip.duration == 10
        assert clip.rate == 16_000
