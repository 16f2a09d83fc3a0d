"""Files of sound, annotations, features and series: read rightly, refused clearly, and never run."""

from __future__ import annotations

import builtins
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

import evidentia as ev
from evidentia._support.errors import FileFormatError, MissingExtraError
from evidentia.events import (
    Event,
    Ontology,
    load_ava,
    load_esc50,
    load_sounds,
    load_strong,
    mix_soundscapes,
    read_audio,
    read_ava,
    read_ava_actions,
    read_series,
    read_strong_labels,
)

soundfile = pytest.importorskip("soundfile")
RATE = 16_000
FORMATS = ("wav", "flac", "ogg")


def sound(seconds: float = 1.0, channels: int = 1) -> np.ndarray:
    t = np.arange(round(seconds * RATE)) / RATE
    wave = 0.5 * np.sin(2 * np.pi * 440 * t).astype(np.float32)
    return wave if channels == 1 else np.stack([wave, np.zeros_like(wave)], 1)


def write(path: Path, samples: np.ndarray, rate: int = RATE, **options) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, rate, **options)
    return path


@pytest.mark.parametrize("ending", FORMATS)
def test_each_format_is_read(tmp_path, ending):
    samples, rate = read_audio(write(tmp_path / f"a.{ending}", sound()))
    assert (rate, samples.dtype, samples.shape) == (RATE, torch.float32, (RATE,))
    np.testing.assert_allclose(samples.numpy(), sound(), atol=0.05)


def test_stereo_is_averaged_and_other_rates_are_resampled(tmp_path):
    samples, _ = read_audio(write(tmp_path / "a.wav", sound(channels=2)))
    np.testing.assert_allclose(samples.numpy(), sound() / 2, atol=1e-3)
    slow, rate = read_audio(tmp_path / "a.wav", rate=8000)
    assert (rate, len(slow)) == (8000, RATE // 2)
    np.testing.assert_allclose(slow.numpy()[100:-100], sound()[::2][100:-100] / 2, atol=5e-3)
    with pytest.raises(ev.EvidentiaError, match="rate"):
        read_audio(tmp_path / "a.wav", rate=0)


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.97])
def test_truncated_sound_is_refused(tmp_path, ending, share):
    whole = write(tmp_path / f"a.{ending}", np.random.default_rng(0).normal(0, 0.1, 3 * RATE)).read_bytes()
    cut = tmp_path / f"cut.{ending}"
    cut.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(FileFormatError, match=r"cut\."):
        read_audio(cut)


@settings(max_examples=60)
@given(data=st.data(), ending=st.sampled_from(FORMATS))
def test_damaged_sound_is_read_or_refused_and_nothing_else(tmp_path_factory, data, ending):
    folder = tmp_path_factory.mktemp("damaged")
    content = bytearray(write(folder / f"a.{ending}", sound(0.2)).read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (folder / f"a.{ending}").write_bytes(bytes(content))
    try:
        samples, rate = read_audio(folder / f"a.{ending}")
    except FileFormatError:
        return
    assert samples.isfinite().all()
    assert rate > 0


def test_other_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file"):
        read_audio(tmp_path / "none.wav")
    (tmp_path / "text.wav").write_text("hello")
    with pytest.raises(FileFormatError, match="wav, flac or ogg"):
        read_audio(tmp_path / "text.wav")
    write(tmp_path / "a.aiff", sound())
    with pytest.raises(FileFormatError, match="AIFF"):
        read_audio(tmp_path / "a.aiff")
    write(tmp_path / "nan.wav", np.full(100, np.nan), subtype="FLOAT")
    with pytest.raises(FileFormatError, match="NaN"):
        read_audio(tmp_path / "nan.wav")
    (tmp_path / "pickle.wav").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(FileFormatError):
        read_audio(tmp_path / "pickle.wav")


def test_a_missing_soundfile_is_said_so(tmp_path, monkeypatch):
    path = write(tmp_path / "a.wav", sound())
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "soundfile":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"evidentia\[events\]"):
        read_audio(path)


def tsv(path: Path, *rows: str) -> Path:
    path.write_text("\n".join("\t".join(row.split("|")) for row in rows) + "\n")
    return path


def test_desed_labels_and_sound(tmp_path):
    table = tsv(
        tmp_path / "labels.tsv",
        "filename|onset|offset|event_label",
        "a.wav|0.1|0.4|Dog",
        "b.wav|||",
        "a.wav|0.3|0.9|Cat",
    )
    assert read_strong_labels(table) == {"a.wav": [Event("Dog", 0.1, 0.4), Event("Cat", 0.3, 0.9)], "b.wav": []}
    for name in ("a", "b"):
        write(tmp_path / "audio" / f"{name}.wav", sound())
    clips = load_strong(table, tmp_path / "audio")
    assert [clip.name for clip in clips] == ["a.wav", "b.wav"]
    assert clips[0].labels == ("Cat", "Dog")
    only = load_strong(table, tmp_path / "audio", classes=["Cat"])
    assert [(clip.name, clip.labels) for clip in only] == [("a.wav", ("Cat",))]
    assert len(load_strong(table, tmp_path / "audio", limit=1)) == 1
    (tmp_path / "audio" / "a.wav").unlink()
    with pytest.raises(FileNotFoundError, match=r"a\.wav"):
        load_strong(table, tmp_path / "audio")
    assert [clip.name for clip in load_strong(table, tmp_path / "audio", skip_missing=True)] == ["b.wav"]


def test_events_are_cut_at_the_end_of_their_sound_and_refused_beyond_it(tmp_path):
    """Annotations round, and sounds lose their last milliseconds; but times in milliseconds are no rounding."""
    write(tmp_path / "a.wav", sound(9.98))
    rows = ["filename|onset|offset|event_label", "a.wav|8.5|10.024|Dog", "a.wav|9.99|10.0|Cat"]
    (clip,) = load_strong(tsv(tmp_path / "labels.tsv", *rows), tmp_path)
    assert clip.events == (Event("Dog", 8.5, 9.98),)
    table = tsv(tmp_path / "labels.tsv", *rows, "a.wav|1200|3400|Cat")
    with pytest.raises(ev.EvidentiaError, match=r"a\.wav: 'Cat' .* 1200 s to 3400 s .* 9\.98 s.*milliseconds"):
        load_strong(table, tmp_path)


def test_a_row_may_end_with_the_name_of_its_file(tmp_path):
    rows = ["filename|onset|offset|event_label", "a.wav|0.1|0.2|Dog", "b.wav", "c.wav|||"]
    found = read_strong_labels(tsv(tmp_path / "labels.tsv", *rows))
    assert found == {"a.wav": [Event("Dog", 0.1, 0.2)], "b.wav": [], "c.wav": []}


def test_audioset_strong_labels_names_and_subsets(tmp_path):
    table = tsv(
        tmp_path / "strong.tsv",
        "segment_id|start_time_seconds|end_time_seconds|label",
        "yt_1000|0.0|0.5|/m/1",
        "yt_1000|0.2|3.0|/m/2",
    )
    entries = [
        {"id": "/m/0", "name": "Engine", "child_ids": ["/m/1"]},
        {"id": "/m/1", "name": "Idling", "child_ids": []},
        {"id": "/m/2", "name": "Speech", "child_ids": []},
    ]
    (tmp_path / "ontology.json").write_text(json.dumps(entries))
    ontology = Ontology.read(tmp_path / "ontology.json")
    assert ontology.children("Engine") == ("Idling",)
    write(tmp_path / "yt_1000.flac", sound())
    (clip,) = load_strong(table, tmp_path, classes=ontology.children("Engine"), names=ontology.names_below("Engine"))
    assert clip.events == (Event("Idling", 0.0, 0.5),)
    (both,) = load_strong(table, tmp_path, names=ontology.names)
    assert both.events[1] == Event("Speech", 0.2, 1.0)
    with pytest.raises(ev.EvidentiaError, match="no class"):
        ontology.children("Dragon")
    for bad in ("", "[1]", '[{"id": 1}]', "{}{", "[" * 5000):
        (tmp_path / "ontology.json").write_text(bad)
        with pytest.raises(FileFormatError, match="ontology"):
            Ontology.read(tmp_path / "ontology.json")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["a|b|c|d"], "columns"),
        (["filename|onset|offset|event_label", "a.wav|0.1|Dog"], "line 2"),
        (["filename|onset|offset|event_label", "|0.1|0.2|Dog"], "line 2"),
        (["filename|onset|offset|event_label", "a.wav|x|0.2|Dog"], "seconds"),
        (["filename|onset|offset|event_label", "a.wav|0.5|0.2|Dog"], "end after it begins"),
        (["filename|onset|offset|event_label", "a.wav|nan|0.2|Dog"], "end after it begins"),
        (["filename|onset|offset|event_label", "a.wav|0.1|0.2|"], "without a label"),
    ],
)
def test_bad_tsv_files_are_refused(tmp_path, rows, message):
    with pytest.raises(FileFormatError, match=message):
        read_strong_labels(tsv(tmp_path / "labels.tsv", *rows))


def test_empty_and_binary_tables_are_refused(tmp_path):
    path = tmp_path / "labels.tsv"
    for content, message in ((b"", "empty"), (b"\xff\xfe\x00", "UTF-8"), (b'filename\t"', "table")):
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=message):
            read_strong_labels(path)
    with pytest.raises(FileNotFoundError):
        read_strong_labels(tmp_path / "none.tsv")


@pytest.mark.parametrize("name", ["../secret.wav", "/etc/passwd", "a/../../b.wav"])
def test_annotations_cannot_point_out_of_their_folder(tmp_path, name):
    write(tmp_path / "secret.wav", sound())
    (tmp_path / "audio").mkdir()
    with pytest.raises(FileFormatError, match="points out"):
        load_strong({name: [Event("Dog", 0.0, 0.5)]}, tmp_path / "audio")


def ava_rows(*marks: tuple[str, str, str]) -> str:
    return "\n".join(f"{video},{second},0.1,0.1,0.9,0.9,{action},0" for video, second, action in marks)


def test_ava_labels_become_events_and_features_clips(tmp_path):
    table = tmp_path / "ava.csv"
    table.write_text(
        ava_rows(
            ("v1", "0902", "12"), ("v1", "0903", "12"), ("v1", "0903", "12"), ("v1", "0906", "12"), ("v2", "0902", "")
        )
    )
    (tmp_path / "list.pbtxt").write_text('item {\n  name: "stand"\n  id: 12\n}\nitem {\n  name: "sit"\n  id: 11\n}\n')
    names = read_ava_actions(tmp_path / "list.pbtxt")
    assert names == {12: "stand", 11: "sit"}
    events = read_ava(table, names)
    assert events == {"v1": [Event("stand", 901.5, 903.5), Event("stand", 905.5, 906.5)], "v2": []}
    np.save(tmp_path / "v1.npy", np.random.default_rng(0).normal(size=(40, 8)))
    save_file({"features": torch.zeros(40, 8)}, tmp_path / "v2.safetensors")
    clips = load_ava(events, tmp_path, rate=4.0, start=900.0)
    assert [(clip.name, clip.duration, clip.channels) for clip in clips] == [("v1", 10.0, 8), ("v2", 10.0, 8)]
    assert clips[0].events == (Event("stand", 1.5, 3.5), Event("stand", 5.5, 6.5))
    parts = load_ava(table, tmp_path, rate=4.0, start=900.0, names=names, clip_seconds=3.0)
    assert [clip.name for clip in parts[:4]] == ["v1#0", "v1#1", "v1#2", "v1#3"]
    assert parts[0].events == (Event("stand", 1.5, 3.0),)
    assert parts[1].events == (Event("stand", 0.0, 0.5), Event("stand", 2.5, 3.0))


def test_rounding_leaves_nothing_of_an_action_where_a_video_is_cut(tmp_path):
    np.save(tmp_path / "v1.npy", np.zeros((10, 2)))
    labels = {"v1": [Event("wave", 0.1, 0.1 + 0.2)]}  # a little after 0.3, where the second clip begins
    clips = load_ava(labels, tmp_path, rate=10.0, start=0.0, clip_seconds=0.3)
    assert [len(clip.events) for clip in clips] == [1, 0, 0, 0]


def test_both_of_avas_lists_of_actions_are_read(tmp_path):
    (tmp_path / "list.pbtxt").write_text(
        'label {\n  name: "swim"\n  label_id: 13\n  label_type: PERSON_MOVEMENT\n}\n'
        'label {\n  name: "walk"\n  label_id: 14\n  label_type: PERSON_MOVEMENT\n}\n'
    )
    assert read_ava_actions(tmp_path / "list.pbtxt") == {13: "swim", 14: "walk"}


def test_bad_ava_files_are_refused_and_run_nothing(tmp_path):
    table = tmp_path / "ava.csv"
    for content in (
        "v1,0902",
        ava_rows(("v1", "x", "12")),
        ava_rows(("v1", "0902", "y")),
        ava_rows(("v1", "-1", "2")),
        ava_rows(("", "902", "2")),
    ):
        table.write_text(content)
        with pytest.raises(FileFormatError, match="line 1"):
            read_ava(table)
    (tmp_path / "list.pbtxt").write_text("nothing")
    with pytest.raises(FileFormatError, match="entries"):
        read_ava_actions(tmp_path / "list.pbtxt")
    with pytest.raises(FileNotFoundError, match="features"):
        load_ava({"v1": []}, tmp_path, rate=1.0)
    with pytest.raises(FileNotFoundError, match="any of the 1 videos"):
        load_ava({"v1": []}, tmp_path, rate=1.0, skip_missing=True)
    with pytest.raises(FileFormatError, match="points out"):
        load_ava({"../v1": []}, tmp_path, rate=1.0)

    class Touches:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'touched'}",)

    np.save(tmp_path / "v1.npy", np.array([Touches()], dtype=object), allow_pickle=True)
    with pytest.raises(FileFormatError, match="npy"):
        load_ava({"v1": []}, tmp_path, rate=1.0)
    assert not (tmp_path / "touched").exists()
    np.save(tmp_path / "v1.npy", np.zeros(5))
    with pytest.raises(FileFormatError, match="shape"):
        load_ava({"v1": []}, tmp_path, rate=1.0)
    (tmp_path / "v3.safetensors").write_bytes(b"x" * 100)
    with pytest.raises(FileFormatError, match="safetensors"):
        load_ava({"v3": []}, tmp_path, rate=1.0)
    save_file({"a": torch.zeros(2, 2), "b": torch.zeros(2, 2)}, tmp_path / "v3.safetensors")
    with pytest.raises(FileFormatError, match="one tensor"):
        load_ava({"v3": []}, tmp_path, rate=1.0)
    with pytest.raises(ev.EvidentiaError, match="clip_seconds"):
        load_ava({"v3": []}, tmp_path, rate=1.0, clip_seconds=0.1)


def test_a_series_and_its_events(tmp_path):
    table, marks = tmp_path / "pump.csv", tmp_path / "events.csv"
    table.write_text("flow,time,heat\n1,10.0,20\n2,10.1,21\n3,10.2,22\n4,10.3,23\n")
    marks.write_text("label,onset,offset\nhot,10.1,10.4\n")
    clip = read_series(table, marks)
    assert clip.rate == pytest.approx(10)
    assert clip.samples.tolist() == [[1, 20], [2, 21], [3, 22], [4, 23]]
    (event,) = clip.events
    assert (event.label, event.onset, event.offset) == ("hot", pytest.approx(0.1), pytest.approx(0.4))
    assert clip.columns == ("flow", "heat")
    chosen = read_series(table, [Event("hot", 0.0, 1.0)], rate=2, columns=["heat"])
    assert (chosen.rate, chosen.samples.shape) == (2, (4, 1))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no samples"),
        ("a,b\n", "no samples"),
        ("1,2\n3,4\n", "column names"),
        ("a,a\n1,2\n", "each differently"),
        ("a,\n1,2\n", "every column"),
        ("time,b\n0,x\n", "numbers only"),
        ("time,b\n0,1\n1\n", "line 3 .* has 1 cells, but the first line names 2 columns"),
        ("time,b\n0,1\n1,\n2,x\n", "line 4 .* has 'x' in column 'b'"),
        ("time,b,c\n0,1\n1,1\n", "names 3 columns"),
        ("time,b\n0,1\n,1\n2,1\n", "line 3 .* has no time"),
        (
            "time,b\n0,1\n1,1\n2,1\n3.7,1\n4,1\n5,1\n6,1\n",
            r"rise evenly; most steps are 1 s, but line 5 is 0\.\d+ s off",
        ),
        ("time,b\n0,1\n2,1\n1,1\n3,1\n", "times must rise, .* line 4 has 1 s after 2 s in line 3; sort"),
        ("time,b\n0,1\n1,1\n2,1\n1004,1\n", "gap of 1002 s from line 4 to 5.* 1000 samples; cut"),
        ("time,b\n0,1\n0,1\n0,1\n", "times must rise"),
        ("time,b\n0,1\n", "single sample"),
        ("a,b\n0,1\n1,1\n", "no column 'time'"),
        ("time\n0\n1\n", "no channels"),
    ],
)
def test_bad_series_are_refused(tmp_path, content, message):
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(ev.EvidentiaError, match=message):
        read_series(tmp_path / "x.csv")


def test_bad_columns_and_events_of_series_are_refused(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n0,1\n1,1\n")
    with pytest.raises(ev.EvidentiaError, match="no column z"):
        read_series(tmp_path / "x.csv", rate=1, columns=["z"])
    (tmp_path / "x.csv").write_bytes(b"\xff\xff")
    with pytest.raises(FileFormatError, match="UTF-8"):
        read_series(tmp_path / "x.csv")
    with pytest.raises(FileNotFoundError):
        read_series(tmp_path / "none.csv")
    (tmp_path / "x.csv").write_text("a,b\n0,1\n1,1\n")
    for content in ("a,b\n", "label,onset,offset\nhot,1\n", "label,onset,offset\nhot,1,x\n"):
        (tmp_path / "events.csv").write_text(content)
        with pytest.raises(FileFormatError, match="events"):
            read_series(tmp_path / "x.csv", tmp_path / "events.csv", rate=1)


def test_a_folder_a_class(tmp_path):
    for label, ending in (("dog", "wav"), ("cat", "ogg")):
        write(tmp_path / label / f"1.{ending}", sound())
    (tmp_path / "cat" / "notes.txt").write_text("x")
    sounds = load_sounds(tmp_path)
    assert [item.label for item in sounds] == ["cat", "dog"]
    assert [item.label for item in load_sounds(tmp_path, ["dog"])] == ["dog"]
    assert len(mix_soundscapes(sounds, 2)) == 2
    with pytest.raises(FileNotFoundError, match="unicorn"):
        load_sounds(tmp_path, ["unicorn"])
    with pytest.raises(FileNotFoundError, match="no folder"):
        load_sounds(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="one for each class"):
        load_sounds(tmp_path / "empty")


def test_the_layout_of_esc_50(tmp_path):
    root = tmp_path / "ESC-50"
    (root / "meta").mkdir(parents=True)
    table = root / "meta" / "esc50.csv"
    table.write_text("filename,fold,target,category\na.wav,1,0,dog\nb.wav,2,1,cat\n")
    for name in ("a.ogg", "b.wav"):
        write(root / "audio" / name, sound())
    assert [item.label for item in load_esc50(tmp_path)] == ["dog", "cat"]
    assert [item.label for item in load_esc50(root, folds=(2,))] == ["cat"]
    assert [item.label for item in load_esc50(root, ["dog"])] == ["dog"]
    for content in (
        "filename,fold\na.wav,1\n",
        "filename,fold,category\na.wav,x,dog\n",
        "filename,fold,category\na.wav\n",
    ):
        table.write_text(content)
        with pytest.raises(FileFormatError, match="esc50"):
            load_esc50(root)
