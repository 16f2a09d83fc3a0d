"""Soundscapes from a folder of sounds: parts that share no recording, and repeat by their seed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

import evidentia as ev
from evidentia.events import Sound
from evidentia.events.data.sound_folder import FOLDER_CLIPS, folder_soundscapes, is_sound_folder, part_sounds

soundfile = pytest.importorskip("soundfile")
RATE = 16_000


def sound(label: str, number: int, size: int = RATE) -> Sound:
    draw = np.random.default_rng([ord(label[0]), number])
    return Sound(draw.uniform(-0.5, 0.5, size), RATE, label, f"{label}/{number}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for label, count in (("hum", 6), ("beep", 3)):
        (tmp_path / label).mkdir()
        for number in range(count):
            soundfile.write(tmp_path / label / f"{number}.wav", sound(label, number).samples, RATE)
    return tmp_path


@pytest.mark.parametrize("seed", range(5))
def test_no_recording_is_in_both_parts_and_every_class_is(seed: int) -> None:
    sounds = [*(sound("hum", n) for n in range(10)), *(sound("beep", n) for n in range(3))]
    # The same recording by two names, and under two classes.
    twins = [Sound(sounds[0].samples, RATE, "hum", "copy"), Sound(sounds[1].samples, RATE, "beep", "other")]
    kept, held = part_sounds([*sounds, *twins], seed)
    assert {each.samples.tobytes() for each in kept}.isdisjoint(each.samples.tobytes() for each in held)
    assert len(kept) + len(held) == 15
    counts = [Counter(each.label for each in part) for part in (kept, held)]
    assert all(set(count) == {"hum", "beep"} for count in counts)
    assert 2 <= len({each.samples.tobytes() for each in held if each.label == "hum"}) <= 3
    again = part_sounds([*sounds, *twins], seed)
    assert [each.name for each in again[1]] == [each.name for each in held]


def test_the_seed_draws_what_is_held_out() -> None:
    sounds = [sound("hum", n) for n in range(20)]
    drawn = {tuple(each.name for each in part_sounds(sounds, seed)[1]) for seed in range(4)}
    assert len(drawn) > 1
    assert {len(names) for names in drawn} == {4}


def test_a_class_needs_two_sounds_that_can_be_heard() -> None:
    hums = [sound("hum", n) for n in range(5)]
    silence, click = Sound(np.zeros(RATE), RATE, "beep"), sound("beep", 1, size=100)
    for few in ([sound("beep", 0)], [sound("beep", 0), silence], [sound("beep", 0), click], [silence]):
        with pytest.raises(ev.EvidentiaError, match="class 'beep' needs at least two sounds of its own"):
            part_sounds([*hums, *few])
    copies = [sound("beep", 0), Sound(sound("beep", 0).samples, RATE, "beep", "copy")]
    with pytest.raises(ev.EvidentiaError, match="class 'beep'"):
        part_sounds([*hums, *copies])


def test_the_parts_of_a_folder_differ_and_repeat(folder: Path) -> None:
    parts = {part: folder_soundscapes(folder, part, count=3, seed=4) for part in FOLDER_CLIPS}
    onsets = [[event.onset for clip in clips for event in clip.events] for clips in parts.values()]
    assert onsets[0] != onsets[1] != onsets[2] != onsets[0]
    assert {label for clips in parts.values() for clip in clips for label in clip.labels} == {"hum", "beep"}
    assert all(clip.duration == 10 for clip in parts["train"])
    again = folder_soundscapes(folder, "train", count=1, seed=4)
    assert torch.equal(again[0].samples, parts["train"][0].samples)
    assert folder_soundscapes(folder, "test", count=1, rate=8000)[0].rate == 8000
    with pytest.raises(ev.EvidentiaError, match="no part named 'exam'"):
        folder_soundscapes(folder, "exam")


def test_training_clips_hold_no_sound_that_is_held_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mixed: list[set[str]] = []
    monkeypatch.setattr(
        "evidentia.events.data.sound_folder.mix_soundscapes",
        lambda sounds, count, *_, **__: mixed.append({each.name for each in sounds}) or [count],
    )
    counts = [folder_soundscapes(folder, part, seed=2) for part in FOLDER_CLIPS]
    assert counts == [[1000], [250], [250]]
    assert not mixed[0] & mixed[1]
    assert mixed[0] | mixed[1] == mixed[2]
    assert len(mixed[2]) == 9


def test_tables_tell_more_than_sub_folders(folder: Path) -> None:
    assert is_sound_folder(folder)
    assert not is_sound_folder(folder / "hum")
    assert not is_sound_folder(folder / "none")
    (folder / "labels.tsv").write_text("")
    assert not is_sound_folder(folder)
