"""AVA as a data set by name, on a folder that is made up."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from evidentia import EvidentiaError
from evidentia.events import load_clips
from evidentia.events.data.ava_folder import AVA_SEGMENTS, check_ava
from evidentia.events.data.by_name import check_data
from evidentia.events.training.fitting import event_truth


@pytest.fixture
def folder(made_up_ava: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    shutil.copytree(made_up_ava, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.mark.parametrize("length", AVA_SEGMENTS)
def test_a_clip_is_three_seconds_in_segments_of_the_length_of_its_name(made_up_ava: Path, length: str) -> None:
    clips = load_clips(f"ava-{length}", "validation", count=4, data_root=made_up_ava)
    segment = float(length.removesuffix("s"))
    assert [(clip.duration, clip.channels, len(clip.samples)) for clip in clips] == [
        (pytest.approx(3), 6, AVA_SEGMENTS[length])
    ] * 4
    assert event_truth(clips, segment=segment).lengths.tolist() == [AVA_SEGMENTS[length]] * 4


def test_parts_have_videos_of_their_own_and_only_actions_that_count(made_up_ava: Path) -> None:
    parts = {part: load_clips("ava-0.75s", part, data_root=made_up_ava) for part in ("train", "validation", "test")}
    videos = {part: {clip.name.partition("#")[0] for clip in clips} for part, clips in parts.items()}
    assert videos == {"train": {"a", "b"}, "validation": {"c", "e"}, "test": {"d", "f"}}
    assert [len(clips) for clips in parts.values()] == [2 * 298] * 3
    assert {label for clip in parts["train"] for label in clip.labels} == {"sit", "stand"}


def test_some_clips_are_drawn_by_the_seed(made_up_ava: Path) -> None:
    one, again, other = (
        [clip.name for clip in load_clips("ava-0.5s", "test", count=5, seed=seed, data_root=made_up_ava)]
        for seed in (1, 1, 2)
    )
    assert one == again
    assert one != other
    assert len(one) == len(set(one)) == 5


@pytest.mark.parametrize("count", [4500, 6000, 27_000])
def test_a_segment_is_the_mean_of_the_vectors_that_end_in_it(folder: Path, count: int) -> None:
    np.save(folder / "AVA" / "features" / "c.npy", np.arange(1, count + 1)[:, None] * 900 / count)
    np.save(folder / "AVA" / "features" / "e.npy", np.zeros((count, 1)))
    clips = load_clips("ava-0.3s", "validation", data_root=folder)
    second = next(clip for clip in clips if clip.name == "c#1").samples.flatten()
    # The time at which each vector ends, so that the mean lies in its segment.
    edges = 3 + 0.3 * torch.arange(11)
    assert (second > edges[:-1]).all()
    assert (second <= edges[1:] + 1e-4).all()


def test_what_is_missing_is_named_with_its_place(folder: Path) -> None:
    check_data([f"ava-{length}" for length in AVA_SEGMENTS], folder)
    (folder / "AVA" / "features" / "d.npy").unlink()
    with pytest.raises(EvidentiaError, match=r"AVA lacks features/d\.npy; put AVA's annotations there"):
        check_ava(folder)
    with pytest.raises(FileNotFoundError, match="features of video 'd'"):
        load_clips("ava-0.3s", "test", data_root=folder)
    (folder / "AVA" / "ava_val_v2.2.csv").unlink()
    with pytest.raises(EvidentiaError, match=r"AVA lacks ava_val_v2\.2\.csv; put"):
        check_ava(folder)
    with pytest.raises(EvidentiaError, match="pass data_root"):
        check_ava(None)


def test_features_that_are_too_sparse_are_refused(folder: Path) -> None:
    np.save(folder / "AVA" / "features" / "a.npy", np.zeros((900, 6)))
    with pytest.raises(EvidentiaError, match=r"a\.npy has 900 vectors .* need 3,000 or more"):
        load_clips("ava-0.3s", "train", data_root=folder)
