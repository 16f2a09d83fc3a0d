"""`evidentia events` on a folder that has a sub-folder of sounds for each class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from evidentia.cli import app
from evidentia.events import Clip, EventDetector, mix_soundscapes

soundfile = pytest.importorskip("soundfile")
RATE = 16_000


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, ["events", *map(str, arguments)])


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four sounds of each of two classes, and a folder that is none."""
    folder = tmp_path_factory.mktemp("sounds")
    for place, label in enumerate(("beep", "hum")):
        (folder / label).mkdir()
        for number in range(4):
            wave = 0.4 * np.sin(2 * np.pi * (200 + 900 * place + 10 * number) * np.arange(RATE) / RATE)
            soundfile.write(folder / label / f"{number}.wav", wave, RATE)
    (folder / "notes").mkdir()
    (folder / "notes" / "read.me").write_text("x")
    return folder


@pytest.fixture(scope="module")
def trained(sounds: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    out = tmp_path_factory.mktemp("models") / "model.safetensors"
    return out, run("train", sounds, "--out", out, "--clips", "8", "--epochs", "1", "--seed", "3")


def test_training_mixes_clips(trained: tuple[Path, Any], sounds: Path) -> None:
    out, result = trained
    assert result.exit_code == 0, f"{result.output} {result.exception}"
    assert f"{sounds.name}: 8 clips, 2 classes; crnn" in " ".join(result.stdout.split())
    assert EventDetector.load(out).labels_ == ("beep", "hum")
    # Once, though the folder is read for both parts.
    assert result.stderr.count("no wav, flac or ogg file right in its folder notes") == 1


def test_what_is_held_out_is_given_to_calibrate_on(
    sounds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[list[Clip]] = []

    def fit(self: EventDetector, clips: list[Clip], validation: list[Clip]) -> None:
        given.extend([clips, validation])
        raise SystemExit(7)

    monkeypatch.setattr(EventDetector, "fit", fit)
    assert run("train", sounds, "--out", tmp_path / "model", "--clips", "6", "--seed", "2").exit_code == 7
    train, held = given
    assert (len(train), len(held)) == (6, 2)
    assert all("-train-6-" in clip.name for clip in train)
    assert all("-validation-7-" in clip.name for clip in held)


def test_clips_to_calibrate_on_are_given_as_those_to_train_on(
    sounds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All sounds of another folder, a part of a data set, or a table with its sounds, whatever is trained on."""
    given: list[list[Clip]] = []

    def fit(self: EventDetector, clips: list[Clip], validation: list[Clip]) -> None:
        given.append(validation)
        raise SystemExit(7)

    monkeypatch.setattr(EventDetector, "fit", fit)
    (tmp_path / "labels.tsv").write_text("filename\tonset\toffset\tevent_label\n1.wav\t0.1\t0.5\tbeep\n")
    soundfile.write(tmp_path / "1.wav", np.zeros(RATE), RATE)
    others = tmp_path / "others"
    # One sound of a class, of which no part could be held out.
    (others / "beep").mkdir(parents=True)
    soundfile.write(others / "beep" / "1.wav", 0.5 * np.sin(np.arange(RATE)), RATE)
    for validation in (others, "synthetic", tmp_path / "labels.tsv"):
        options = ("--out", tmp_path / "model", "--clips", "6", "--validation", validation)
        assert run("train", sounds, *options).exit_code == 7
    mixed, drawn, listed = given
    assert (len(mixed), len(drawn), len(listed)) == (2, 2, 1)
    assert "others-test-" in mixed[0].name
    assert drawn[0].name.startswith("synthetic-1-")
    assert listed[0].events[0].label == "beep"


def test_clips_are_mixed_over_a_background(
    sounds: Path, trained: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, behind = tmp_path / "room", []
    (room / "monday").mkdir(parents=True)
    soundfile.write(room / "monday" / "fan.flac", 0.1 * np.sin(np.arange(RATE)), RATE)
    mix = mix_soundscapes

    def watched(*given: Any, **options: Any) -> Any:
        behind.append([sound.name for sound in options["background"]])
        return mix(*given, **options)

    monkeypatch.setattr("evidentia.events.data.sound_folder.mix_soundscapes", watched)
    options = ("--clips", "4", "--background", room)
    assert run("train", sounds, "--out", tmp_path / "model", "--epochs", "1", *options).exit_code == 0
    assert run("evaluate", trained[0], sounds, *options).exit_code == 0
    assert behind == [["fan"]] * 3
    for data, place, told in (
        ("synthetic", room, "those of synthetic are not mixed"),
        (sounds, sounds / "notes", "has no wav, flac or ogg file to go on behind the events"),
    ):
        result = run("train", data, "--out", tmp_path / "model", "--background", place)
        assert told in str(result.exception)


def test_evaluation_mixes_others_and_says_so(trained: tuple[Path, Any], sounds: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    result = run("evaluate", trained[0], sounds, "--clips", "3", "--json", file)
    assert result.exit_code == 0, f"{result.output} {result.exception}"
    assert f"{sounds.name}, 3 clips, by clip" in " ".join(result.stdout.split())
    assert "if the detector was trained on some of them, its scores are too good" in " ".join(result.stderr.split())
    assert str(sounds) not in file.read_text()
    assert json.loads(file.read_text())["mean"]["classes"].keys() == {"beep", "hum"}


def test_a_folder_without_sounds_is_told_what_may_be_in_it(tmp_path: Path) -> None:
    (tmp_path / "beep").mkdir()
    (tmp_path / "beep" / "1.mp3").write_bytes(b"ID3")
    message = str(run("train", tmp_path, "--out", tmp_path / "x").exception)
    assert "must hold one tsv file of events, got 0, or CSV files of series, or a sub-folder of wav, flac" in message


def test_a_folder_cannot_be_listened_to(trained: tuple[Path, Any], sounds: Path, tmp_path: Path) -> None:
    state = tmp_path / "state.safetensors"
    message = str(run("detect", trained[0], sounds, "--state", state).exception)
    assert f"{sounds} is a folder; give a file in it" in message
    assert "evidentia events evaluate" in message
    assert not state.exists()


def test_help_names_the_data_that_there_are() -> None:
    for command in ("train", "evaluate"):
        words = " ".join(run(command, "--help").stdout.replace("│", " ").split())
        for told in ("ava-0.75s", "sub-folder of sounds", "1,000 to train on", "ESC-50, AVA, or the sounds"):
            assert told in words
