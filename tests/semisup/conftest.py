"""Small image data sets in the file formats of the real ones, and where the real ones are."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from python2_pickles import python2_pickle
from scipy.io import savemat

IDX = ("images-idx3-ubyte", "labels-idx1-ubyte")


@pytest.fixture(scope="session")
def image_files() -> ModuleType:
    """The functions of this module, which test modules cannot import."""
    return sys.modules[__name__]


def images(size: int, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (size, *shape), dtype=np.uint8)


def labels(size: int, classes: int = 10) -> np.ndarray:
    return (np.arange(size) % classes).astype(np.uint8)


def idx(array: np.ndarray, packed: bool = True) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
    payload = header + array.tobytes()
    return gzip.compress(payload, 1) if packed else payload


def write_idx(folder: Path, size: int = 400, packed: bool = True, seed: int = 0) -> None:
    """MNIST or Fashion-MNIST: `size` training and a tenth as many test images."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (part, count) in enumerate((("train", size), ("t10k", size // 10))):
        arrays = (images(count, (28, 28), seed + number), labels(count))
        for what, array in zip(IDX, arrays, strict=True):
            (folder / f"{part}-{what}{'.gz' if packed else ''}").write_bytes(idx(array, packed))


def letters(size: int = 260) -> dict[str, np.ndarray]:
    return {
        f"{part}_{what}": array
        for number, part in enumerate(("train", "test"))
        for what, array in (("images", images(size, (28, 28), number)), ("labels", labels(size, 26)))
    }


def npz(arrays: dict[str, np.ndarray]) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def jpeg(image: np.ndarray) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(image).save(out, "JPEG", quality=95)
    return out.getvalue()


def cifar_npz(size: int = 100) -> dict[str, np.ndarray]:
    arrays = {"class_names": np.array(["airplane"])}
    for number, part in enumerate(("train", "test")):
        files = [jpeg(image) for image in images(size, (32, 32, 3), number)]
        arrays[f"{part}_jpeg"] = np.frombuffer(b"".join(files), dtype=np.uint8)
        arrays[f"{part}_offsets"] = np.cumsum([0, *map(len, files)])
        arrays[f"{part}_labels"] = labels(size)
    return arrays


def cifar_batch(size: int = 50, key: str = "labels", classes: int = 10, seed: int = 0) -> dict[bytes, Any]:
    return {
        b"batch_label": b"training batch 1 of 5",
        key.encode(): [int(label) for label in labels(size, classes)],
        b"data": images(size, (3072,), seed),
        b"filenames": [f"{row}.png".encode() for row in range(size)],
    }


def write_cifar10(folder: Path, size: int = 50) -> None:
    folder.mkdir(parents=True)
    for seed, name in enumerate([*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]):
        (folder / name).write_bytes(python2_pickle(cifar_batch(size, seed=seed)))


def write_cifar100(folder: Path, size: int = 400) -> None:
    folder.mkdir(parents=True)
    for seed, name in enumerate(("train", "test")):
        (folder / name).write_bytes(python2_pickle(cifar_batch(size, "fine_labels", 100, seed)))
    names = {b"fine_label_names": [f"thing {number}".encode() for number in range(100)]}
    (folder / "meta").write_bytes(python2_pickle(names))


def mat(size: int = 100, seed: int = 0) -> bytes:
    """A part of SVHN, where the digit 0 has the label 10."""
    out = io.BytesIO()
    digits = labels(size)
    savemat(
        out, {"X": images(size, (32, 32, 3), seed).transpose(1, 2, 3, 0), "y": np.where(digits, digits, 10)[:, None]}
    )
    return out.getvalue()


def write_svhn(folder: Path, size: int = 100, parts: tuple[str, ...] = ("train", "test")) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for seed, part in enumerate(parts):
        (folder / f"{part}_32x32.mat").write_bytes(mat(size, seed))


def svhn_npz(size: int = 300) -> dict[str, np.ndarray]:
    return {
        "images": images(size, (32, 32, 3)),
        "labels": labels(size),
        "image_id": np.arange(size, dtype=np.int32) // 2,
    }
