"""The image data sets known by name: which files they are, where users keep them, where they come from."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from evidentia._support.download import cache_folder, kept_or_fetched
from evidentia._support.errors import EvidentiaError
from evidentia.semisup.data import images as read
from evidentia.semisup.data.images import ImageSet

HOMES = {
    "mnist": "https://ossci-datasets.s3.amazonaws.com/mnist",
    "fashion": "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
    "emnist": "https://www.nist.gov/itl/products-and-services/emnist-dataset",
    "cifar10": "https://www.cs.toronto.edu/~kriz/cifar.html",
    "cifar100": "https://www.cs.toronto.edu/~kriz/cifar.html",
    "svhn": "http://ufldl.stanford.edu/housenumbers",
    "svhn-extra": "http://ufldl.stanford.edu/housenumbers",
}


class Images(NamedTuple):
    """An image data set with its own split."""

    train: ImageSet
    test: ImageSet
    class_names: tuple[str, ...]

    @property
    def both(self) -> ImageSet:
        """The training and the test images together."""
        return _joined([self.train, self.test])


@dataclass(frozen=True)
class Layout:
    """A form in which a data set is kept.

    Args:
        folders: folders under a data root that may hold the files; the first is the one to tell users.
        files: names of the files, each of which may also be packed with gzip, with `.gz` behind its name.
        read: makes the data set of the files' bytes and the folder, which is for errors.
    """

    folders: tuple[str, ...]
    files: tuple[str, ...]
    read: Callable[[Mapping[str, bytes], Path], Images]

    def locate(self, folder: Path) -> dict[str, Path]:
        """The files that are in the folder."""
        found = {}
        for file in self.files:
            for path in (folder / file, folder / f"{file}.gz"):
                if path.is_file():
                    found[file] = path
                    break
        return found


@dataclass(frozen=True)
class Source:
    """An image data set known by name.

    Args:
        name: its name here, and a key of `HOMES`.
        layouts: the forms in which it is kept; the best comes first, and downloads have the form of the first.
        digests: SHA-256 of the files at its home, by file name without `.gz`; without any, nothing is downloaded.
    """

    name: str
    layouts: tuple[Layout, ...]
    digests: Mapping[str, str] = field(default_factory=dict)


def load_images(name: str, data_root: str | os.PathLike[str] | None = None) -> Images:
    """Read an image data set.

    Args:
        name: a key of `SOURCES`.
        data_root: a folder that holds it in one of its layouts. Without it, it is looked for in the cache folder
            (`$EVIDENTIA_CACHE`, else `~/.cache/evidentia`), and MNIST and Fashion-MNIST are fetched if they are not
            there, each time checked by SHA-256.

    Raises:
        EvidentiaError: if its files are neither found nor to be had.
        FileFormatError: if a file is damaged or hostile.
    """
    source = SOURCES[name]
    if data_root is None and source.digests:
        layout, folder = source.layouts[0], cache_folder() / source.layouts[0].folders[0]
        return layout.read({file: _cached(source, file, folder) for file in layout.files}, folder)
    root = cache_folder() if data_root is None else Path(data_root)
    if data_root is not None and not root.is_dir():
        raise EvidentiaError(f"data_root must be a folder, and {root} is none")
    layout, folder = _find(source, root, data_root is not None)
    try:
        payloads = {file: path.read_bytes() for file, path in layout.locate(folder).items()}
    except OSError as error:
        raise EvidentiaError(f"{name} in {folder} cannot be read ({error})") from error
    return layout.read(payloads, folder)


def _find(source: Source, root: Path, own: bool) -> tuple[Layout, Path]:
    """The first layout and folder under `root` that hold all files."""
    partly = []
    for layout in source.layouts:
        for folder in (root / place for place in layout.folders):
            found = layout.locate(folder)
            if len(found) == len(layout.files):
                return layout, folder
            if found:
                lacks = [file for file in layout.files if file not in found]
                partly.append(f"\n{folder} has {', '.join(found)}, but lacks {', '.join(lacks)}")
    wanted = "\n".join(f"  {root / layout.folders[0]}: {', '.join(layout.files)}" for layout in source.layouts)
    why = "" if own or source.digests else ", and is not downloaded, because evidentia knows no checksum for it"
    hint = ", or leave data_root out to have it downloaded" if source.digests else ""
    if not own:
        hint = ", or give as data_root a folder that has them"
    raise EvidentiaError(
        f"{source.name} is not under {root}{why}. One of these is needed (each file may be packed with gzip):\n{wanted}"
        f"{''.join(partly)}\nGet the files from {HOMES[source.name]} and put them there{hint}"
    )


def _cached(source: Source, file: str, folder: Path) -> bytes:
    """A file from the cache, fetched first if it is missing or damaged."""
    return kept_or_fetched(f"{HOMES[source.name]}/{file}.gz", folder / f"{file}.gz", source.digests[file])


_IDX = tuple(f"{part}-{what}" for part in ("train", "t10k") for what in ("images-idx3-ubyte", "labels-idx1-ubyte"))
_LETTERS = tuple(
    f"emnist-letters-{part}-{what}" for part in ("train", "test") for what in ("images-idx3-ubyte", "labels-idx1-ubyte")
)
_BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")


def _idx(names: tuple[str, ...]) -> Callable[[Mapping[str, bytes], Path], Images]:
    def reader(files: Mapping[str, bytes], folder: Path) -> Images:
        train, test = (read.read_idx_pair(files[_IDX[at]], files[_IDX[at + 1]], folder / _IDX[at]) for at in (0, 2))
        return Images(train, test, names)

    return reader


def _idx_letters(files: Mapping[str, bytes], folder: Path) -> Images:
    train, test = (
        read.read_idx_letters(files[_LETTERS[at]], files[_LETTERS[at + 1]], folder / _LETTERS[at]) for at in (0, 2)
    )
    return Images(train, test, read.LETTERS)


def _npz(
    reader: Callable[[bytes, Path], tuple[ImageSet, ImageSet]], names: tuple[str, ...]
) -> Callable[[Mapping[str, bytes], Path], Images]:
    def read_one(files: Mapping[str, bytes], folder: Path) -> Images:
        ((file, payload),) = files.items()
        return Images(*reader(payload, folder / file), names)

    return read_one


def _mat(files: Mapping[str, bytes], folder: Path) -> Images:
    parts = {file: read.read_svhn_mat(payload, folder / file) for file, payload in files.items()}
    test = parts.pop("test_32x32.mat")
    return Images(_joined(list(parts.values())), test, read.DIGITS)


def _cifar10(files: Mapping[str, bytes], folder: Path) -> Images:
    parts = {file: read.read_cifar(payload, folder / file) for file, payload in files.items()}
    test = parts.pop("test_batch")
    return Images(_joined(list(parts.values())), test, read.CIFAR10)


def _cifar100(files: Mapping[str, bytes], folder: Path) -> Images:
    train, test = (read.read_cifar(files[part], folder / part, "fine_labels", 100) for part in ("train", "test"))
    return Images(train, test, read.read_cifar_names(files["meta"], folder / "meta"))


def _joined(parts: list[ImageSet]) -> ImageSet:
    return ImageSet(np.concatenate([part.images for part in parts]), np.concatenate([part.labels for part in parts]))


def _folders(name: str, *parents: str) -> tuple[str, ...]:
    return (name, *(f"{parent}/{name}" for parent in parents))


def _checks(digests: str) -> dict[str, str]:
    return dict(zip(_IDX, digests.split(), strict=True))


_SOURCES = (
    # Both have files of the same names, so their folder must say which they are.
    Source(
        "mnist",
        (Layout(("MNIST/raw", "MNIST", "mnist/raw", "mnist"), _IDX, _idx(read.DIGITS)),),
        _checks(
            """
            440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609
            3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c
            8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6
            f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6
            """
        ),
    ),
    Source(
        "fashion",
        (Layout(("FashionMNIST/raw", "FashionMNIST", "fashion-mnist/raw", "fashion-mnist"), _IDX, _idx(read.FASHION)),),
        _checks(
            """
            3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84
            a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845
            346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073
            67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5
            """
        ),
    ),
    Source(
        "emnist",
        (
            Layout(("EMNIST/raw", "EMNIST", "EMNIST/gzip", "EMNIST/raw/gzip", "."), _LETTERS, _idx_letters),
            Layout(("EMNIST", "."), ("emnist_letters.npz",), _npz(read.read_letters_npz, read.LETTERS)),
        ),
    ),
    Source(
        "cifar10",
        (
            Layout((*_folders("cifar-10-batches-py", "cifar10", "CIFAR10"), "."), _BATCHES, _cifar10),
            Layout(("cifar10", "."), ("cifar10.npz",), _npz(read.read_cifar_npz, read.CIFAR10)),
        ),
    ),
    Source(
        "cifar100",
        (Layout(_folders("cifar-100-python", "cifar100", "CIFAR100"), ("train", "test", "meta"), _cifar100),),
    ),
    Source(
        "svhn",
        (
            Layout(("SVHN", "svhn", "."), ("train_32x32.mat", "test_32x32.mat"), _mat),
            Layout(("SVHN", "svhn", "."), ("svhn_test_cropped.npz",), _npz(read.read_svhn_npz, read.DIGITS)),
        ),
    ),
    Source(
        "svhn-extra",
        (Layout(("SVHN", "svhn", "."), ("train_32x32.mat", "extra_32x32.mat", "test_32x32.mat"), _mat),),
    ),
)
SOURCES: dict[str, Source] = {source.name: source for source in _SOURCES}
