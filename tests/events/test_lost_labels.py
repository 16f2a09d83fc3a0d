"""Labels and sounds that would be lost in silence, and so count as their absence, are told or refused."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import evidentia as ev
from evidentia._support.errors import FileFormatError
from evidentia.events import (
    Clip,
    Event,
    EventDetector,
    Ontology,
    Sound,
    load_ava,
    load_sounds,
    load_strong,
    mix_soundscapes,
    read_ava,
)
from evidentia.events.clip_kinds import chosen_labels

soundfile = pytest.importorskip("soundfile")
RATE = 16_000


def write(path: Path, seconds: float = 1.0, ending: str | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    wave = 0.5 * np.sin(np.arange(round(seconds * RATE)) / 6)
    soundfile.write(path, wave, RATE, format=ending)
    return path


@pytest.fixture
def video(tmp_path: Path) -> Path:
    """Features of one video, 900 s at 5 vectors a second."""
    np.save(tmp_path / "v1.npy", np.zeros((4500, 2)))
    return tmp_path


LABELS = {"v1": [Event("stand", second - 0.5, second + 0.5) for second in range(902, 1799, 7)]}


def test_features_of_the_right_seconds_have_every_label(video: Path) -> None:
    (clip,) = load_ava(LABELS, video, rate=5)
    assert len(clip.events) == len(LABELS["v1"])
    # Labels of the first and the last second reach half a second beyond the features, which is as it should be.
    (clip,) = load_ava({"v1": [Event("sit", 899.5, 901.5), Event("sit", 1799.5, 1800.5)]}, video, rate=5)
    assert clip.events == (Event("sit", 0.0, 1.5), Event("sit", 899.5, 900.0))


def test_features_that_no_label_is_of_are_refused(video: Path) -> None:
    for options in ({"rate": 5, "start": 0.0}, {"rate": 5.0, "start": 0.0, "clip_seconds": 3.0}):
        with pytest.raises(ev.EvidentiaError, match=r"no label lies within.* 0 to 900, .*between 901\.5 and 1798\.5"):
            load_ava(LABELS, video, **options)  # type: ignore[arg-type]
    with pytest.raises(ev.EvidentiaError, match=r"'v1' cover seconds 900 to 901\.5, .*rate= and start="):
        load_ava(LABELS, video, rate=3000)


def test_labels_outside_of_the_features_are_told(video: Path) -> None:
    with pytest.warns(UserWarning, match=r"5\d% of what is labelled .*'v1' cover seconds 900 to 1350"):
        load_ava(LABELS, video, rate=10)
    # All labels of one video are told, however few they are among those of others.
    np.save(video / "v2.npy", np.zeros((4500, 2)))
    with pytest.warns(UserWarning, match=r"'v2' cover seconds 900 to 1800, .*between 1 and 2;"):
        load_ava({**LABELS, "v2": [Event("sit", 1.0, 2.0)]}, video, rate=5)
    # A few of many are not worth a word.
    few = {"v1": [*LABELS["v1"], Event("sit", 1850.0, 1852.0)]}
    assert len(load_ava(few, video, rate=5)[0].events) == len(LABELS["v1"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 0}, "rate must be a positive number"),
        ({"rate": "5"}, "rate must be a positive number of feature vectors a second, got '5'"),
        ({"rate": math.nan}, "rate must be"),
        ({"rate": 5, "start": "900"}, "start must be the second"),
        ({"rate": 5, "start": math.inf}, "start must be the second"),
        ({"rate": 5, "clip_seconds": math.nan}, "clip_seconds must be a number of seconds of at least one vector"),
        ({"rate": 5, "clip_seconds": "3"}, "clip_seconds must be a number of seconds of at least one vector"),
        ({"rate": 5, "clip_seconds": -3}, "clip_seconds must be a number of seconds of at least one vector"),
    ],
)
def test_bad_numbers_for_features_are_refused_before_any_file(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ev.EvidentiaError, match=message):
        load_ava("nowhere.csv", "nowhere", **options)


def test_an_empty_file_of_ava_is_told_what_its_lines_have(tmp_path: Path) -> None:
    (tmp_path / "ava.csv").write_text("\n\n")
    with pytest.raises(
        FileFormatError, match=r"ava\.csv is empty; each action needs a line with a video id, a time"
    ) as e:
        read_ava(tmp_path / "ava.csv")
    assert "column names" not in str(e.value)


STRONG = {"a.wav": [Event("hum", 0.1, 0.4)], "b.wav": [Event("buzz", 0.2, 0.5)]}


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ("hum", r"classes must be a list of classes, such as \['Dog'\], or None for all, got 'hum'"),
        ([], "classes must be a list"),
        (["huum"], "no row has an event of huum; there are events of: buzz, hum"),
        (["hum", "huum"], "no row has an event of huum"),
    ],
)
def test_classes_that_no_row_has_are_refused(tmp_path: Path, classes: Any, message: str) -> None:
    with pytest.raises(ev.EvidentiaError, match=message):
        load_strong(STRONG, tmp_path, classes=classes)


def test_only_some_of_many_classes_are_told(tmp_path: Path) -> None:
    many = {"a.wav": [Event(f"class {n:02}", 0.1, 0.2) for n in range(40)]}
    with pytest.raises(ev.EvidentiaError, match=r"class 08, class 09, \.\.\."):
        load_strong(many, tmp_path, classes=["hum"])


def test_a_class_that_the_names_have_is_no_misprint(tmp_path: Path) -> None:
    """A part of AudioSet need not have all classes of a subset."""
    write(tmp_path / "a.wav")
    names = {"hum": "Hum", "boom": "Boom"}
    with pytest.warns(UserWarning, match="no row has an event of Boom"):
        (clip,) = load_strong(STRONG, tmp_path, classes=["Hum", "Boom"], names=names)
    assert clip.labels == ("Hum",)
    with pytest.raises(ev.EvidentiaError, match="no row has an event of Boom"):
        load_strong(STRONG, tmp_path, classes=["Boom"], names=names)


def test_a_folder_with_none_of_the_sounds_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none of the 2 sound files that are listed, such as 'a\.wav'"):
        load_strong(STRONG, tmp_path, skip_missing=True)
    write(tmp_path / "b.wav")
    assert [clip.name for clip in load_strong(STRONG, tmp_path, skip_missing=True)] == ["b.wav"]
    assert load_strong(STRONG, tmp_path, skip_missing=True, limit=0) == []


def test_a_folder_of_a_class_without_sounds_is_told(tmp_path: Path) -> None:
    write(tmp_path / "hum" / "1.wav")
    (tmp_path / "beep").mkdir()
    (tmp_path / "beep" / "1.mp3").write_bytes(b"ID3")
    write(tmp_path / "knock" / "deeper" / "1.wav")
    with pytest.warns(UserWarning, match="no wav, flac or ogg file right in its folder beep, knock, so"):
        assert [sound.label for sound in load_sounds(tmp_path)] == ["hum"]
    with pytest.raises(FileNotFoundError, match="no wav, flac or ogg file right in its folder beep; convert"):
        load_sounds(tmp_path, ["hum", "beep"])
    assert [sound.label for sound in load_sounds(tmp_path, ["hum"])] == ["hum"]
    with pytest.raises(ev.EvidentiaError, match=r"labels must be a list of classes, such as \['hum'\], got 'hum'"):
        load_sounds(tmp_path, "hum")


@pytest.mark.parametrize(
    ("background", "told"),
    [([Path("wind.wav")], "Path 'wind.wav'"), ("wind.wav", "str 'wind.wav'"), (None, "NoneType"), ([[0.5]], "list")],
)
def test_a_background_of_paths_is_refused(background: Any, told: str) -> None:
    hum = Sound(np.sin(np.arange(RATE) / 3), RATE, "hum")
    with pytest.raises(ev.EvidentiaError, match=f"background must be a list of Sound, got .*{told}.*load_sounds"):
        mix_soundscapes([hum], 1, background=background)
    with pytest.raises(ev.EvidentiaError, match="sounds must be a list of Sound"):
        mix_soundscapes(background, 1)


EXPLOSION = Ontology(
    {
        "/m/0": "Explosion",
        "/m/1": "Gunshot, gunfire",
        "/m/2": "Machine gun",
        "/m/3": "Fusillade",
        "/m/4": "Fireworks",
        "/m/5": "Firecracker",
        "/m/6": "Speech",
    },
    {"/m/0": ("/m/1", "/m/4"), "/m/1": ("/m/2",), "/m/2": ("/m/3",), "/m/4": ("/m/5", "/m/3"), "/m/5": ("/m/4",)},
)


def test_a_subset_of_audioset_has_what_is_labelled_below_its_classes(tmp_path: Path) -> None:
    names = EXPLOSION.names_below("Explosion")
    guns, fires = "Gunshot, gunfire", "Fireworks"
    # Fusillade is under both and goes to the first; Fireworks is under itself and stays itself.
    assert names == {"/m/1": guns, "/m/4": fires, "/m/2": guns, "/m/3": guns, "/m/5": fires}
    assert set(names.values()) == set(EXPLOSION.children("Explosion"))
    write(tmp_path / "yt_0.wav")
    write(tmp_path / "yt_1.wav")
    rows = {
        "yt_0": [Event("/m/4", 0.1, 0.3), Event("/m/2", 0.2, 0.9), Event("/m/6", 0.0, 1.0)],
        "yt_1": [Event("/m/3", 0.5, 0.8)],
    }
    clips = load_strong(rows, tmp_path, classes=EXPLOSION.children("Explosion"), names=names)
    assert [clip.events for clip in clips] == [
        (Event(fires, 0.1, 0.3), Event(guns, 0.2, 0.9)),
        (Event(guns, 0.5, 0.8),),
    ]
    assert EXPLOSION.names_below("Speech") == {}
    with pytest.raises(ev.EvidentiaError, match="no class named 'Dragon'"):
        EXPLOSION.names_below("Dragon")


def test_a_child_of_the_class_is_itself_also_below_another() -> None:
    names = {"a": "Alarm", "b": "Siren", "c": "Civil defence siren", "d": "Bell"}
    ontology = Ontology(names, {"a": ("b", "c"), "b": ("c", "d")})
    assert ontology.names_below("Alarm") == {"b": "Siren", "c": "Civil defence siren", "d": "Siren"}


def series(*labels: str, seed: int = 0) -> Clip:
    generator = torch.Generator().manual_seed(seed)
    return Clip(torch.randn(300, 2, generator=generator), 10.0, [(label, 5.0, 9.0) for label in labels])


def test_a_class_that_only_validation_clips_have_is_told_and_left_out() -> None:
    train, held = [series("a", seed=1), series("a", "b", seed=2)], [series("a", "b", "c", seed=3)]
    detector = EventDetector("temporal", preset=None, epochs=1, progress=False)
    with pytest.warns(UserWarning, match="no training clip has an event of c, which only validation clips have"):
        detector.fit(train, held)
    assert detector.labels_ == ("a", "b")
    with pytest.raises(ev.EvidentiaError, match="no training clip has an event of 'c'"):
        chosen_labels(["a", "c"], train, held)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Who names classes has left out the others.
        assert chosen_labels(["a"], train, held) == ("a",)
    with pytest.raises(ev.EvidentiaError, match="no event in any clip"):
        chosen_labels(None, [series()], held)
