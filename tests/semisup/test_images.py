"""Image files are read to the last byte; damaged and hostile ones are refused and run nothing."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import pickle
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import savemat

import evidentia as ev
from evidentia.semisup.data import images as read
from evidentia.semisup.data.image_files import load_images

PATH = Path("file")


class Touches:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 28, 28), (0, 28, 28)])
def test_idx_files_are_read_as_they_were_written(image_files: ModuleType, shape: tuple[int, ...], packed: bool) -> None:
    array = image_files.images(shape[0], shape[1:])
    np.testing.assert_array_equal(read.read_idx(image_files.idx(array, packed), PATH), array)


def test_images_become_float32_in_0_to_1(image_files: ModuleType) -> None:
    pixels = image_files.images(5, (28, 28))
    found = read.read_idx_pair(image_files.idx(pixels), image_files.idx(image_files.labels(5)), PATH)
    assert found.images.shape == (5, 1, 28, 28)
    taken = found.take(np.array([3, 1]))
    assert taken.dtype == torch.float32
    np.testing.assert_array_equal(taken.numpy()[:, 0], pixels[[3, 1]].astype(np.float32) / 255)


def test_official_letters_are_turned_upright(image_files: ModuleType) -> None:
    pixels, labels = image_files.images(52, (28, 28)), image_files.labels(52, 26)
    payloads = image_files.idx(pixels.transpose(0, 2, 1)), image_files.idx(labels + 1)
    by_idx = read.read_idx_letters(*payloads, PATH)
    np.testing.assert_array_equal(by_idx.images[:, 0], pixels)
    np.testing.assert_array_equal(by_idx.labels, labels)


def test_letters_in_npz_form(image_files: ModuleType) -> None:
    arrays = image_files.letters()
    train, test = read.read_letters_npz(image_files.npz(arrays), PATH)
    np.testing.assert_array_equal(train.images[:, 0], arrays["train_images"])
    np.testing.assert_array_equal(test.labels, arrays["test_labels"])


@pytest.mark.parametrize("protocol", ["python2", 3, 4])
def test_cifar_batches_are_read_as_they_were_written(image_files: ModuleType, protocol: Any) -> None:
    batch = image_files.cifar_batch()
    payload = image_files.python2_pickle(batch) if protocol == "python2" else pickle.dumps(batch, protocol)
    found = read.read_cifar(payload, PATH)
    np.testing.assert_array_equal(found.images.reshape(-1, 3072), batch[b"data"])
    assert found.labels.tolist() == batch[b"labels"]


def test_jpeg_images_are_nearly_what_they_were(image_files: ModuleType) -> None:
    smooth = np.broadcast_to(np.arange(0, 256, 8, dtype=np.uint8)[:, None, None], (32, 32, 3)).copy()
    files = [image_files.jpeg(smooth), image_files.jpeg(255 - smooth)]
    arrays = image_files.cifar_npz(10)
    arrays["train_jpeg"] = np.frombuffer(b"".join(files), dtype=np.uint8)
    arrays["train_offsets"], arrays["train_labels"] = np.cumsum([0, *map(len, files)]), np.array([4, 7])
    train, test = read.read_cifar_npz(image_files.npz(arrays), PATH)
    for row, original in enumerate((smooth, 255 - smooth)):
        assert np.abs(train.images[row].transpose(1, 2, 0).astype(int) - original).max() <= 3
    assert train.labels.tolist() == [4, 7]
    assert test.images.shape == (10, 3, 32, 32)


def test_svhn_as_published(image_files: ModuleType) -> None:
    found = read.read_svhn_mat(image_files.mat(30), PATH)
    np.testing.assert_array_equal(found.images.transpose(0, 2, 3, 1), image_files.images(30, (32, 32, 3)))
    np.testing.assert_array_equal(found.labels, image_files.labels(30))


def test_svhn_crops_of_one_photograph_stay_together(image_files: ModuleType) -> None:
    arrays = image_files.svhn_npz(100)
    train, test = read.read_svhn_npz(image_files.npz(arrays), PATH)
    np.testing.assert_array_equal(test.labels, arrays["labels"][arrays["image_id"] % 5 == 0])
    assert (len(train), len(test)) == (80, 20)


def test_pillow_is_named_when_it_is_missing(image_files: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    payload = image_files.npz(image_files.cifar_npz(10))
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ev.MissingExtraError, match="CIFAR-10 in JPEG form needs Pillow"):
        read.read_cifar_npz(payload, PATH)


@pytest.mark.parametrize("where", ["whole", "data", "labels", "name"])
def test_a_hostile_cifar_batch_runs_nothing(image_files: ModuleType, tmp_path: Path, where: str) -> None:
    sentinel = tmp_path / "ran"
    batch = image_files.cifar_batch()
    hostile: Any = {
        "whole": Touches(sentinel),
        "data": {**batch, b"data": Touches(sentinel)},
        "labels": {**batch, b"labels": [Touches(sentinel)]},
        "name": {**batch, b"extra": {b"deep": (1, Touches(sentinel))}},
    }[where]
    payload = image_files.python2_pickle(hostile)
    for reader in (read.read_cifar, read.read_cifar_names):
        with pytest.raises(
            ev.FileFormatError, match=r"names \w+\.system, which has no place in it.*nothing in it was run"
        ):
            reader(payload, PATH)
    folder = tmp_path / "cifar-10-batches-py"
    image_files.write_cifar10(folder)
    (folder / "data_batch_3").write_bytes(payload)
    with pytest.raises(ev.FileFormatError, match=r"data_batch_3 names"):
        load_images("cifar10", tmp_path)
    assert not sentinel.exists()
    # The same bytes do run with Python's own reader: otherwise this test would prove nothing.
    pickle.loads(payload, encoding="latin1")
    assert sentinel.exists()


@pytest.mark.parametrize("name", ["train_images", "train_jpeg", "images"])
def test_objects_in_npz_files_are_not_unpickled(image_files: ModuleType, tmp_path: Path, name: str) -> None:
    sentinel = tmp_path / "ran"
    arrays = {**image_files.letters(), **image_files.cifar_npz(10), **image_files.svhn_npz()}
    arrays[name] = np.array([Touches(sentinel)], dtype=object)
    reader = {
        "train_images": read.read_letters_npz,
        "train_jpeg": read.read_cifar_npz,
        "images": read.read_svhn_npz,
    }[name]
    payload = image_files.npz(arrays)
    with pytest.raises(ev.FileFormatError, match="not a readable npz file"):
        reader(payload, PATH)
    assert not sentinel.exists()


@pytest.fixture(scope="module")
def readers(image_files: ModuleType) -> dict[str, tuple[Callable[[bytes], Any], bytes]]:
    """A reader and a whole file of each kind."""
    images, labels = image_files.idx(image_files.images(20, (28, 28))), image_files.idx(image_files.labels(20))
    names = {b"fine_label_names": [b"thing"] * 100}
    return {
        "idx images": (lambda payload: read.read_idx_pair(payload, labels, PATH), images),
        "idx labels": (lambda payload: read.read_idx_pair(images, payload, PATH), labels),
        "idx unpacked": (lambda payload: read.read_idx_pair(images, payload, PATH), gzip.decompress(labels)),
        "letters": (lambda payload: read.read_letters_npz(payload, PATH), image_files.npz(image_files.letters(26))),
        "cifar": (
            lambda payload: read.read_cifar(payload, PATH),
            image_files.python2_pickle(image_files.cifar_batch(10)),
        ),
        "names": (lambda payload: read.read_cifar_names(payload, PATH), image_files.python2_pickle(names)),
        "jpeg": (lambda payload: read.read_cifar_npz(payload, PATH), image_files.npz(image_files.cifar_npz(10))),
        "crops": (lambda payload: read.read_svhn_npz(payload, PATH), image_files.npz(image_files.svhn_npz(20))),
        "mat": (lambda payload: read.read_svhn_mat(payload, PATH), image_files.mat(20)),
    }


KINDS = ("idx images", "idx labels", "idx unpacked", "letters", "cifar", "names", "jpeg", "crops", "mat")


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(st.data())
def test_truncated_files_are_refused(readers: dict[str, Any], kind: str, data: st.DataObject) -> None:
    reader, whole = readers[kind]
    reader(whole)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(ev.FileFormatError, match="file"):
        reader(whole[:cut])


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(st.data())
def test_damaged_files_are_read_or_refused_but_never_fail_otherwise(
    readers: dict[str, Any], kind: str, data: st.DataObject
) -> None:
    reader, whole = readers[kind]
    payload = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 8))):
        # Headers and names are at the ends of the files, pixels between them.
        near = data.draw(st.integers(0, min(len(payload), 400) - 1))
        payload[data.draw(st.sampled_from([near, -1 - near]))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ev.FileFormatError):
        reader(bytes(payload))


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(readers: dict[str, Any], payload: bytes) -> None:
    for reader, _ in readers.values():
        with pytest.raises(ev.FileFormatError):
            reader(payload)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"", "it starts with nothing"),
        (b"\0\0\x0d\x01\0\0\0\0", "no idx file of bytes"),
        (b"\0\0\x08\x09", "no idx file of bytes"),
        (b"\0\0\x08\x03" + b"\xff" * 12, r"says that its shape is \(4294967295, 4294967295, 4294967295\)"),
        (b"\0\0\x08\x01\0\0\0\x05abc", "has 5 values and has only 3"),
        (b"\0\0\x08\x01\0\0\0\x02abc", "has 2 values and has more"),
        # Sixteen million zeros in a few bytes, of which two are announced.
        (gzip.compress(b"\0\0\x08\x01\0\0\0\x02" + bytes(2**24)), "has 2 values and has more"),
        (b"<html>not found</html>", "no idx file of bytes"),
    ],
)
def test_idx_files_that_are_none_are_told(payload: bytes, message: str) -> None:
    with pytest.raises(ev.FileFormatError, match=message):
        read.read_idx(payload, PATH)


def test_images_and_labels_must_belong_together(image_files: ModuleType) -> None:
    images, labels = image_files.images(6, (28, 28)), image_files.labels(6)
    for pixels, classes, message in (
        (images, labels[:5], "6 images and labels"),
        (images, labels + 8, "must be from 0 to 9, got 8 to 13"),
        (images[:, :27], labels, r"must be bytes of shape \(n, 1, 28, 28\)"),
        (images[:0], labels[:0], "must be bytes of shape"),
        (images[0], labels, "must be bytes"),
    ):
        with pytest.raises(ev.FileFormatError, match=message):
            read.read_idx_pair(image_files.idx(pixels), image_files.idx(classes), PATH)
    with pytest.raises(ev.FileFormatError, match="must be from 0 to 25, got -1"):
        read.read_idx_letters(image_files.idx(images), image_files.idx(labels), PATH)


@pytest.mark.parametrize(
    "change",
    [
        {b"data": None},
        {b"data": [1, 2]},
        {b"data": np.zeros((50, 3071), np.uint8)},
        {b"data": np.zeros((49, 3072), np.uint8)},
        {b"data": np.zeros((50, 3072), np.float32)},
        {b"labels": None},
        {b"labels": [0] * 49},
        {b"labels": [10] * 50},
        {b"labels": [-1] * 50},
        {b"labels": [2**80] * 50},
        {b"labels": [0.5] * 50},
        {b"labels": [True] * 50},
        {b"labels": np.zeros(50, np.int64)},
    ],
)
def test_cifar_batches_that_are_none_are_refused(image_files: ModuleType, change: dict[bytes, Any]) -> None:
    with pytest.raises(ev.FileFormatError):
        read.read_cifar(pickle.dumps({**image_files.cifar_batch(), **change}, 4), PATH)


@pytest.mark.parametrize("names", [None, [b"thing"] * 99, [1] * 100, "thing"])
def test_class_names_that_are_none_are_refused(image_files: ModuleType, names: Any) -> None:
    with pytest.raises(ev.FileFormatError, match="names of 100 classes"):
        read.read_cifar_names(image_files.python2_pickle({b"fine_label_names": names}), PATH)
    with pytest.raises(ev.FileFormatError, match="a dictionary of named values"):
        read.read_cifar_names(image_files.python2_pickle({3: names}), PATH)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train_offsets": np.array([0, 5])}, "do not cut"),
        ({"train_offsets": np.array([0.0, 5.0])}, "do not cut"),
        ({"train_offsets": np.arange(11)}, "do not cut"),
        ({"train_offsets": np.zeros(0, np.int64)}, "do not cut"),
        ({"train_jpeg": np.zeros(10, np.int32)}, "do not cut"),
        ({"train_jpeg": np.zeros(10, np.uint8), "train_offsets": np.arange(11)}, "image 0 in file cannot be read"),
        ({"train_labels": np.zeros(9, np.uint8)}, "10 images and labels"),
        ({"train_labels": np.full(10, 10)}, "from 0 to 9"),
    ],
)
def test_jpeg_files_that_are_none_are_refused(image_files: ModuleType, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ev.FileFormatError, match=message):
        read.read_cifar_npz(image_files.npz({**image_files.cifar_npz(10), **change}), PATH)


def test_pictures_of_another_size_or_format_are_not_decoded(image_files: ModuleType) -> None:
    from PIL import Image

    png = io.BytesIO()
    Image.new("RGB", (32, 32)).save(png, "PNG")
    cut = image_files.jpeg(image_files.images(1, (32, 32, 3))[0])[:-60]
    for file, message in (
        (image_files.jpeg(np.zeros((33, 32, 3), np.uint8)), "32 x 33 pixels, not 32 x 32"),
        (png.getvalue(), "cannot be read"),
        (cut, "truncated"),
    ):
        one = {"jpeg": np.frombuffer(file, np.uint8), "offsets": np.array([0, len(file)]), "labels": np.zeros(1, int)}
        arrays = {**image_files.cifar_npz(10), **{f"train_{name}": array for name, array in one.items()}}
        with pytest.raises(ev.FileFormatError, match=message):
            read.read_cifar_npz(image_files.npz(arrays), PATH)


@pytest.mark.parametrize(
    "arrays",
    [
        {"X": np.zeros((32, 32, 3, 2), np.uint8)},
        {"X": np.zeros((32, 32, 3), np.uint8), "y": np.ones((2, 1), np.uint8)},
        {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.zeros((2, 1), np.uint8)},
        {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.full((2, 1), 11, np.uint8)},
        {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.ones((3, 1), np.uint8)},
        {"X": np.zeros((32, 32, 3, 2)), "y": np.ones((2, 1), np.uint8)},
        {"X": np.array([[None]], dtype=object), "y": np.ones((2, 1), np.uint8)},
    ],
)
def test_mat_files_that_are_none_are_refused(arrays: dict[str, np.ndarray]) -> None:
    out = io.BytesIO()
    savemat(out, {name: array if array.dtype != object else {"a": 1} for name, array in arrays.items()})
    with pytest.raises(ev.FileFormatError):
        read.read_svhn_mat(out.getvalue(), PATH)


def test_npz_files_that_lack_something_are_told(image_files: ModuleType) -> None:
    arrays = image_files.svhn_npz()
    with pytest.raises(ev.FileFormatError, match="file lacks labels"):
        read.read_svhn_npz(image_files.npz({k: v for k, v in arrays.items() if k != "labels"}), PATH)
    for change in ({"image_id": arrays["image_id"][:-1]}, {"image_id": arrays["image_id"] * 1.0}):
        with pytest.raises(ev.FileFormatError, match="image_id in file must be a whole number"):
            read.read_svhn_npz(image_files.npz({**arrays, **change}), PATH)
    with pytest.raises(ev.FileFormatError, match="too small to be split"):
        read.read_svhn_npz(image_files.npz({**arrays, "image_id": arrays["image_id"] * 5}), PATH)
    with pytest.raises(ev.FileFormatError, match=r"shape \(n, 3, 32, 32\)"):
        read.read_svhn_npz(image_files.npz({**arrays, "images": arrays["images"][..., 0]}), PATH)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("images.npy", b"no array")
    with pytest.raises(ev.FileFormatError):
        read.read_svhn_npz(out.getvalue(), PATH)


@pytest.mark.parametrize("name", ["mnist", "fashion", "emnist", "cifar10", "svhn"])
def test_the_real_files(real_data: Path, name: str) -> None:
    found = load_images(name, real_data)
    sizes = {
        "mnist": (60_000, 10_000),
        "fashion": (60_000, 10_000),
        "emnist": (15_600, 5_200),
        "cifar10": (25_000, 5_000),
    }
    if name in sizes:
        assert (len(found.train), len(found.test)) == sizes[name]
    else:
        assert len(found.train) + len(found.test) == 10_000
    classes = len(found.class_names)
    assert set(found.train.labels) == set(found.test.labels) == set(range(classes))
    if name in ("fashion", "emnist", "cifar10"):
        assert (np.bincount(found.train.labels) == len(found.train) // classes).all()
    if name == "cifar10":
        pixels = np.ascontiguousarray(found.test.images.transpose(0, 2, 3, 1))
        # As the notes beside the file state it.
        told = "aa3a0f1908664ade1a8a4e3fcd49f23fe60c56712b21023032ed1c0b6ffa4c5b"
        assert hashlib.sha256(pixels.tobytes()).hexdigest() == told
