"""Files: whole or not at all, and no code in them."""

from __future__ import annotations

import errno
import json
import os
import pickle
import stat
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from evidentia import EvidentiaError, FileFormatError
from evidentia._support import files
from evidentia._support.files import (
    FORMAT_VERSION,
    check_writable,
    load_tensors,
    save_tensors,
    write_atomically,
    write_text,
)

CONTENT = {"classes": ["a", "ü"], "rate": 1e-7, "count": 3, "nothing": None, "nested": {"deep": [1.5, True]}}


def tensors():
    base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    return {
        "plain": torch.randn(5, 3),
        "double": torch.randn(2, dtype=torch.float64),
        "transposed": base.T,
        "strided": base[:, ::2],
        "shared": base,
        "shared again": base,
        "half": torch.randn(3).to(torch.bfloat16),
        "flags": torch.tensor([True, False]),
        "counts": torch.tensor([1, -2]),
        "empty": torch.zeros(0, 3),
        "scalar": torch.tensor(2.5),
        "expanded": torch.ones(1).expand(4),
        "with gradient": torch.ones(2, requires_grad=True),
    }


@pytest.fixture
def saved(tmp_path) -> Path:
    path = tmp_path / "model.safetensors"
    save_tensors(path, "thing", {"x": torch.arange(20, dtype=torch.float32)}, CONTENT)
    return path


def test_round_trip(tmp_path):
    path = tmp_path / "new" / "folder" / "model.safetensors"
    given = tensors()
    save_tensors(path, "thing", given, CONTENT)
    loaded, content = load_tensors(path, "thing")
    assert content == CONTENT
    assert set(loaded) == set(given)
    for name, tensor in given.items():
        assert loaded[name].dtype == tensor.dtype
        assert torch.equal(loaded[name], tensor)
        assert not loaded[name].requires_grad


def test_without_tensors(tmp_path):
    save_tensors(tmp_path / "f", "thing", {}, {})
    assert load_tensors(str(tmp_path / "f"), "thing") == ({}, {})


def test_loaded_tensors_do_not_share_memory(tmp_path):
    base = torch.ones(3)
    save_tensors(tmp_path / "f", "thing", {"a": base, "b": base}, {})
    loaded, _ = load_tensors(tmp_path / "f", "thing")
    loaded["a"].zero_()
    assert torch.equal(loaded["b"], base)


def test_overwriting(saved):
    save_tensors(saved, "thing", {"x": torch.zeros(1)}, {"version": 2})
    loaded, content = load_tensors(saved, "thing")
    assert torch.equal(loaded["x"], torch.zeros(1))
    assert content == {"version": 2}


def test_tuples_and_keys_come_back_as_json_has_them(tmp_path):
    save_tensors(tmp_path / "f", "thing", {}, {"shape": (2, 3), "names": {0: "zero"}, 7: 1})
    assert load_tensors(tmp_path / "f", "thing")[1] == {"shape": [2, 3], "names": {"0": "zero"}, "7": 1}


@pytest.mark.parametrize("value", [object(), torch.ones(1), float("nan"), float("inf"), {1, 2}, b"bytes"])
def test_content_that_is_not_json(saved, value):
    before = saved.read_bytes()
    with pytest.raises(EvidentiaError, match="description of a thing must be plain JSON"):
        save_tensors(saved, "thing", {}, {"value": value})
    assert saved.read_bytes() == before


# --- whole or not at all


def test_a_writer_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "f.txt"
    write_text(path, "old")

    def fail(part: Path) -> None:
        part.write_text("half a new")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, fail)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["f.txt"]


def test_a_writer_that_removes_its_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "f", lambda part: part.unlink())
    assert os.listdir(tmp_path) == []


def test_the_old_file_stands_until_the_new_is_whole(tmp_path):
    path = tmp_path / "f.txt"
    write_text(path, "old")

    def write(part: Path) -> None:
        part.write_text("new")
        assert path.read_text() == "old"
        assert part.parent == path.parent  # else the rename would not be atomic

    write_atomically(path, write)
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["f.txt"]


def test_a_full_disk_is_told_with_the_name_of_the_file(saved, monkeypatch):
    before = saved.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(files, "save_file", full)
    with pytest.raises(OSError, match=r"model.safetensors cannot be written: .* No space left on device"):
        save_tensors(saved, "thing", {}, {})

    def fail(part: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left on device") as told:
        write_atomically(saved, fail)
    assert told.value.filename == str(saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_a_link_goes_on_leading_to_its_file(tmp_path):
    (tmp_path / "disk").mkdir()
    link, file = tmp_path / "model", tmp_path / "disk" / "model-1"
    link.symlink_to(file)
    for text in ("first", "second"):
        check_writable(link)
        write_text(link, text)
        assert link.is_symlink()
        assert file.read_text() == text
    assert os.listdir(tmp_path / "disk") == ["model-1"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    check_writable(pipe)
    save_tensors(pipe, "thing", {"x": torch.ones(2)}, CONTENT)
    received = os.read(reader, 1 << 16)
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    (tmp_path / "file").write_bytes(received)
    assert load_tensors(tmp_path / "file", "thing")[1] == CONTENT


def test_a_name_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("n" * 255)
    check_writable(path)
    write_text(path, "text")
    assert path.read_text() == "text"
    with pytest.raises(EvidentiaError, match="cannot be written"):
        check_writable(tmp_path / ("n" * 256))


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_text(file, "of mine")
    file.chmod(0o640)
    write_text(file, "of mine too")
    assert file.stat().st_mode & 0o777 == 0o640


def test_permissions_are_the_ordinary_ones(tmp_path):
    (tmp_path / "ordinary").write_text("x")
    write_text(tmp_path / "ours", "x")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ordinary", "ours")]
    assert modes[0] == modes[1]


def test_write_text_is_utf8(tmp_path):
    write_text(str(tmp_path / "f"), "ü∑")
    assert (tmp_path / "f").read_bytes() == "ü∑".encode()


# --- damage


def test_truncation_anywhere(saved):
    whole = saved.read_bytes()
    for length in [0, 1, 7, 8, 9, 50, len(whole) // 2, len(whole) - 80, len(whole) - 4, len(whole) - 1]:
        saved.write_bytes(whole[:length])
        with pytest.raises(FileFormatError):
            load_tensors(saved, "thing")


def test_something_appended(saved):
    saved.write_bytes(saved.read_bytes() + b"more")
    with pytest.raises(FileFormatError):
        load_tensors(saved, "thing")


def test_a_flipped_bit_anywhere(saved):
    whole = saved.read_bytes()
    header = int.from_bytes(whole[:8], "little")
    assert len(whole) == 8 + header + 80
    # Every byte of the length, the header with its manifest, and the data; but for the blanks that pad the header.
    padding = len(whole[8 : 8 + header]) - len(whole[8 : 8 + header].rstrip(b" "))
    for position in [*range(8 + header - padding), *range(8 + header, len(whole))]:
        damaged = bytearray(whole)
        damaged[position] ^= 1 << (position % 7)
        saved.write_bytes(damaged)
        try:
            loaded, content = load_tensors(saved, "thing")
        except FileFormatError:
            continue
        pytest.fail(f"byte {position} of {len(whole)} was changed unnoticed: {content}, {loaded}")


def rewritten(path: Path, change) -> None:
    """Change the manifest and write the file anew."""
    with safe_open(path, framework="pt") as file:
        manifest = json.loads(file.metadata()["evidentia"])
        stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    manifest = change(manifest)
    save_file(stored, path, metadata={"evidentia": manifest if isinstance(manifest, str) else json.dumps(manifest)})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: {**m, "kind": "other"}, "of another kind: needed is 'thing', got 'other'"),
        (lambda m: {**m, "content": {**m["content"], "count": 4}}, "does not match its checksum"),
        (lambda m: {**m, "sha256": "0" * 64}, "does not match its checksum"),
        (lambda m: {**m, "evidentia_version": "9"}, "does not match its checksum"),
        (lambda m: {**m, "format_version": FORMAT_VERSION + 1}, f"format version {FORMAT_VERSION + 1}.*reads version"),
        (lambda m: {**m, "format_version": "1"}, "format version '1'"),
        (lambda m: {**m, "format": "foreign"}, "manifest of .* is damaged"),
        (lambda m: {**m, "extra": 1}, "manifest of .* is damaged"),
        (lambda m: {k: v for k, v in m.items() if k != "sha256"}, "manifest of .* is damaged"),
        (lambda m: {k: v for k, v in m.items() if k != "format_version"}, "manifest of .* is damaged"),
        (lambda m: [1, 2], "manifest of .* is damaged"),
        (lambda m: "not json {", "manifest of .* is damaged"),
        (lambda m: "null", "manifest of .* is damaged"),
    ],
)
def test_changed_manifest(saved, change, words):
    rewritten(saved, change)
    with pytest.raises(FileFormatError, match=words):
        load_tensors(saved, "thing")


def test_an_unchanged_manifest_loads(saved):
    rewritten(saved, lambda manifest: manifest)
    assert load_tensors(saved, "thing")[1] == CONTENT


def test_tensors_swapped_behind_the_manifest(saved):
    with safe_open(saved, framework="pt") as file:
        metadata = file.metadata()
    for stored in ({"x": torch.zeros(20)}, {"y": torch.arange(20.0)}, {"x": torch.arange(20.0).reshape(4, 5)}, {}):
        save_file(stored, saved, metadata=metadata)
        with pytest.raises(FileFormatError, match="checksum"):
            load_tensors(saved, "thing")


def test_another_kind(saved):
    with pytest.raises(FileFormatError, match="needed is 'classifier', got 'thing'"):
        load_tensors(saved, "classifier")


def test_foreign_safetensors(tmp_path):
    for metadata in (None, {"format": "pt"}):
        save_file({"x": torch.ones(2)}, tmp_path / "f", metadata=metadata)
        with pytest.raises(FileFormatError, match="evidentia did not write it"):
            load_tensors(tmp_path / "f", "thing")


@pytest.mark.parametrize("content", [b"", b"hello", b"\x00" * 100, b"\xff" * 100, b"PK\x03\x04" + b"\x00" * 60])
def test_not_a_tensor_file(tmp_path, content):
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(FileFormatError, match="not a readable safetensors file"):
        load_tensors(tmp_path / "f", "thing")


def test_a_manifest_nested_without_end(tmp_path):
    save_file({}, tmp_path / "f", metadata={"evidentia": "[" * 100_000})
    with pytest.raises(FileFormatError, match="is damaged"):
        load_tensors(tmp_path / "f", "thing")


def test_no_file(tmp_path):
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(FileNotFoundError, match="there is no file"):
            load_tensors(path, "thing")


class _Bomb:
    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self):
        return Path.touch, (self.trace,)


def test_a_pickle_runs_no_code(tmp_path):
    trace = tmp_path / "exploded"
    for path, write in (
        (tmp_path / "a.pkl", lambda path: path.write_bytes(pickle.dumps(_Bomb(trace)))),
        (tmp_path / "b.pt", lambda path: torch.save({"x": _Bomb(trace)}, path)),
    ):
        write(path)
        with pytest.raises(FileFormatError, match="not a readable safetensors file"):
            load_tensors(path, "thing")
    assert not trace.exists()
    pickle.loads((tmp_path / "a.pkl").read_bytes())
    assert trace.exists()  # the bomb was live


def test_where_a_file_can_be_written_is_known_beforehand_and_nothing_is_left_there(tmp_path: Path) -> None:
    check_writable(tmp_path / "new" / "deep" / "file")
    assert not list(tmp_path.iterdir())
    file = tmp_path / "file"
    file.write_text("as it was")
    check_writable(file)
    assert file.read_text() == "as it was"
    with pytest.raises(EvidentiaError, match=f"{tmp_path} is a folder"):
        check_writable(tmp_path)
    with pytest.raises(EvidentiaError, match=f"{tmp_path} is a folder"):
        save_tensors(tmp_path, "thing", {}, {})
    with pytest.raises(EvidentiaError, match="Not a directory"):
        check_writable(file / "below")
    assert list(tmp_path.iterdir()) == [file]
