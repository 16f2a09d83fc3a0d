"""Readers of image files: idx (MNIST and its like), npz, CIFAR's pickles and SVHN's mat files.

No file can run code: pickles go through the restricted reader of `evidentia._support.pickles`, arrays of Python objects
are never read, and a file that says it is larger than it is, or that unpacks to more than it says, is refused.
"""

from __future__ import annotations

import gzip
import io
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia._support.extras import from_extra
from evidentia._support.pickles import read_record
from evidentia.semisup.data.mat_files import read_mat

Array = npt.NDArray[Any]

DIGITS = tuple("0123456789")
LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
FASHION = (
    *("T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag"),
    "ankle boot",
)
_LARGEST = 2**32


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images of shape `(n, channels, height, width)` in uint8, and their classes.

    They stay uint8, a quarter of the memory, until some are taken.
    """

    images: Array
    labels: Array

    def take(self, rows: Array) -> Tensor:
        """Some of the images in [0, 1] as float32."""
        return torch.from_numpy(self.images[rows]).to(torch.float32).div_(255)

    def __len__(self) -> int:
        return len(self.labels)


def checked(images: Array, labels: Array, classes: int, shape: Sequence[int], path: Path) -> ImageSet:
    """The image set of these arrays, after checking that they make one."""
    if images.dtype != np.uint8 or images.shape[1:] != tuple(shape) or not len(images):
        raise FileFormatError(
            f"the images in {path} must be bytes of shape (n, {', '.join(map(str, shape))}), got {images.dtype} of "
            f"shape {images.shape}; fetch the file again"
        )
    if labels.dtype.kind not in "iu" or labels.shape != images.shape[:1]:
        raise FileFormatError(
            f"{path} has {len(images)} images and labels of {labels.dtype} of shape {labels.shape}: they do not belong "
            "together; fetch the files again"
        )
    if int(labels.min()) < 0 or int(labels.max()) >= classes:
        raise FileFormatError(
            f"the labels in {path} must be from 0 to {classes - 1}, got {labels.min()} to {labels.max()}"
        )
    return ImageSet(np.ascontiguousarray(images), labels.astype(np.int64))


def read_idx(payload: bytes, path: Path) -> Array:
    """The bytes in an idx file, packed with gzip or not.

    The format is two zero bytes, a code for the type (8 for bytes), the number of dimensions, each dimension as four
    bytes (the highest first), and the values.

    Example:
        >>> read_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 5, 6, 7]), Path("labels"))
        array([5, 6, 7], dtype=uint8)
    """
    try:
        with gzip.open(io.BytesIO(payload)) if payload[:2] == b"\x1f\x8b" else io.BytesIO(payload) as file:
            start = file.read(4)
            if len(start) < 4 or start[:3] != b"\0\0\x08" or not 1 <= start[3] <= 4:
                raise FileFormatError(f"{path} is no idx file of bytes: it starts with {start.hex() or 'nothing'}")
            shape = np.frombuffer(file.read(4 * start[3]), dtype=">u4").tolist()
            if len(shape) != start[3] or math.prod(shape) > _LARGEST:
                raise FileFormatError(f"{path} says that its shape is {tuple(shape)}, which no data set here has")
            # One byte more than is announced tells a file that goes on from one that ends.
            content = file.read(math.prod(shape) + 1)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(f"{path} is truncated or damaged ({error}); fetch it again") from error
    if len(content) != math.prod(shape):
        held = "more" if len(content) > math.prod(shape) else f"only {len(content)}"
        raise FileFormatError(
            f"{path} says that it has {math.prod(shape)} values and has {held}: it is truncated or damaged; fetch it "
            "again"
        )
    values: Array = np.frombuffer(content, dtype=np.uint8).reshape(shape)
    return values


def read_idx_pair(images: bytes, labels: bytes, path: Path) -> ImageSet:
    """The digits or clothes of an images file and a labels file of MNIST or Fashion-MNIST."""
    return checked(_grey(read_idx(images, path)), read_idx(labels, path), 10, (1, 28, 28), path)


def read_idx_letters(images: bytes, labels: bytes, path: Path) -> ImageSet:
    """The letters of the official EMNIST files, which are transposed and number the letters from 1."""
    upright = np.swapaxes(_grey(read_idx(images, path)), -1, -2)
    return checked(upright, read_idx(labels, path).astype(np.int64) - 1, 26, (1, 28, 28), path)


def read_letters_npz(payload: bytes, path: Path) -> tuple[ImageSet, ImageSet]:
    """Upright EMNIST letters: arrays `train_images`, `train_labels`, `test_images` and `test_labels`."""
    arrays = read_npz(payload, path, [f"{part}_{what}" for part in ("train", "test") for what in ("images", "labels")])
    train, test = (
        checked(_grey(arrays[f"{part}_images"]), arrays[f"{part}_labels"], 26, (1, 28, 28), path)
        for part in ("train", "test")
    )
    return train, test


def read_svhn_npz(payload: bytes, path: Path) -> tuple[ImageSet, ImageSet]:
    """SVHN crops: arrays `images`, `labels` and `image_id`, the number of the photograph a digit was cut from.

    The file has no split of its own. Digits of one photograph share their light and their colours, so photographs are
    split, not digits: those whose number is a multiple of 5 are the test.
    """
    arrays = read_npz(payload, path, ["images", "labels", "image_id"])
    whole = checked(_channels_first(arrays["images"]), arrays["labels"], 10, (3, 32, 32), path)
    number = arrays["image_id"]
    if number.shape != whole.labels.shape or number.dtype.kind not in "iu":
        raise FileFormatError(f"the image_id in {path} must be a whole number for each image")
    tested = number % 5 == 0
    if tested.all() or not tested.any():
        raise FileFormatError(f"{path} is too small to be split into photographs for training and for the test")
    train, test = (ImageSet(whole.images[rows], whole.labels[rows]) for rows in (~tested, tested))
    return train, test


def read_svhn_mat(payload: bytes, path: Path) -> ImageSet:
    """SVHN's cropped digits as they are published: `X` of shape (32, 32, 3, n), and `y` with 10 for the digit 0."""
    try:
        arrays = read_mat(payload, _LARGEST)
        images, labels = arrays["X"], arrays["y"].reshape(-1)
    except (ValueError, KeyError) as error:
        raise FileFormatError(f"{path} is not a readable mat file of SVHN ({error}); fetch it again") from error
    # MATLAB may have written the labels as floats.
    if labels.dtype.kind == "f" and bool(np.isfinite(labels).all()) and bool((labels == labels.round()).all()):
        labels = labels.astype(np.int64)
    if images.ndim != 4 or labels.dtype.kind not in "iu" or not len(labels) or labels.min() < 1 or labels.max() > 10:
        raise FileFormatError(f"{path} must hold images X of shape (32, 32, 3, n) and labels y from 1 to 10")
    return checked(images.transpose(3, 2, 0, 1), labels.astype(np.int64) % 10, 10, (3, 32, 32), path)


def read_cifar(payload: bytes, path: Path, labels: str = "labels", classes: int = 10) -> ImageSet:
    """A batch of CIFAR-10 (`labels`) or CIFAR-100 (`fine_labels`) as published, without running what is in it."""
    record = read_record(payload, path)
    data, found = record.get("data"), record.get(labels)
    fits = isinstance(data, np.ndarray) and data.ndim == 2 and data.shape[1] == 3072
    if not fits or not isinstance(found, list) or not all(type(label) is int for label in found):
        raise FileFormatError(f"{path} must hold data of 3072 bytes an image and a list of {labels}; fetch it again")
    if any(not 0 <= label < classes for label in found):
        raise FileFormatError(f"the labels in {path} must be from 0 to {classes - 1}")
    assert isinstance(data, np.ndarray)
    return checked(data.reshape(-1, 3, 32, 32), np.array(found, dtype=np.int64), classes, (3, 32, 32), path)


def read_cifar_names(payload: bytes, path: Path) -> tuple[str, ...]:
    """The names of the 100 classes in CIFAR-100's `meta`."""
    names = read_record(payload, path).get("fine_label_names")
    if not isinstance(names, list) or len(names) != 100 or not all(isinstance(name, str) for name in names):
        raise FileFormatError(f"{path} must hold the names of 100 classes as fine_label_names; fetch it again")
    return tuple(names)


def read_cifar_npz(payload: bytes, path: Path) -> tuple[ImageSet, ImageSet]:
    """CIFAR-10 as JPEG files joined end to end: `train_jpeg`, `train_offsets`, `train_labels`, and so for the test."""
    kinds = ("jpeg", "offsets", "labels")
    arrays = read_npz(payload, path, [f"{part}_{kind}" for part in ("train", "test") for kind in kinds])
    train, test = (
        checked(
            _decode(arrays[f"{part}_jpeg"], arrays[f"{part}_offsets"], path),
            *(arrays[f"{part}_labels"], 10, (3, 32, 32), path),
        )
        for part in ("train", "test")
    )
    return train, test


def read_npz(payload: bytes, path: Path, names: Sequence[str]) -> Mapping[str, Array]:
    """Some arrays of an npz file, none of them of Python objects."""
    try:
        with np.load(io.BytesIO(payload), allow_pickle=False) as file:
            if missing := [name for name in names if name not in file]:
                raise FileFormatError(f"{path} lacks {', '.join(missing)}")
            return {name: file[name] for name in names}
    except FileFormatError:
        raise
    except Exception as error:  # zipfile, zlib, lzma and numpy each have errors of their own for damaged files
        raise FileFormatError(f"{path} is not a readable npz file ({error}); fetch it again") from error


def _decode(joined: Array, offsets: Array, path: Path) -> Array:
    with from_extra("Pillow", "demo", "CIFAR-10 in JPEG form"):
        from PIL import Image

    in_order = joined.dtype == np.uint8 and offsets.dtype.kind in "iu" and offsets.ndim == joined.ndim == 1
    steps = offsets.astype(np.int64) if in_order else np.zeros(0, dtype=np.int64)
    if len(steps) < 2 or steps[0] != 0 or steps[-1] != len(joined) or (np.diff(steps) <= 0).any():
        raise FileFormatError(f"the offsets in {path} do not cut its JPEG bytes into images; fetch it again")
    content = joined.tobytes()
    images = np.empty((len(steps) - 1, 32, 32, 3), dtype=np.uint8)
    row = 0
    try:
        for row, (start, end) in enumerate(pairwise(steps.tolist())):
            with Image.open(io.BytesIO(content[start:end]), formats=("JPEG",)) as image:
                # Before decoding: a few bytes can announce a picture that fills the memory.
                if image.size != (32, 32):
                    raise EvidentiaError(f"it is {image.size[0]} x {image.size[1]} pixels, not 32 x 32")
                images[row] = np.asarray(image.convert("RGB"))
    except Exception as error:  # Pillow has errors of several kinds for damaged files
        raise FileFormatError(f"image {row} in {path} cannot be read ({error}); fetch the file again") from error
    return _channels_first(images)


def _grey(images: Array) -> Array:
    return images[:, None] if images.ndim == 3 else images


def _channels_first(images: Array) -> Array:
    return images.transpose(0, 3, 1, 2) if images.ndim == 4 else images
