"""Pools by name: the right classes, sizes and ratios, by seed, from files in every usual layout."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import evidentia as ev
from evidentia.semisup.data import image_files as catalog
from evidentia.semisup.data.by_name import RECIPES, load_pool, mean_images
from evidentia.semisup.data.digits import TURNED, digits_images, letters
from evidentia.semisup.data.image_files import SOURCES, load_images
from evidentia.semisup.data.images import ImageSet
from evidentia.semisup.pool import SemiSupervisedData

SMALL = {"labels_per_class": 2, "unlabeled": 30}


def rows(x: Tensor) -> list[bytes]:
    """Each sample as bytes, to find it again."""
    return [sample.numpy().tobytes() for sample in x]


def inside(data: SemiSupervisedData) -> set[bytes]:
    assert data.is_ood is not None
    return set(rows(data.x_unlabeled[~data.is_ood]))


@pytest.fixture(scope="module")
def root(image_files: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All image data sets in small, in torchvision's layouts where there are any."""
    folder = tmp_path_factory.mktemp("data")
    image_files.write_idx(folder / "MNIST" / "raw")
    image_files.write_idx(folder / "FashionMNIST" / "raw", packed=False, seed=10)
    (folder / "EMNIST").mkdir()
    (folder / "EMNIST" / "emnist_letters.npz").write_bytes(image_files.npz(image_files.letters()))
    image_files.write_cifar10(folder / "cifar-10-batches-py")
    image_files.write_cifar100(folder / "cifar-100-python")
    image_files.write_svhn(folder / "SVHN", 200, parts=("train", "test", "extra"))
    return folder


CASES = [
    *(("mnist", kind, 10) for kind in ("fashion", "emnist", "mean", "mixed")),
    *(("cifar10", kind, 6) for kind in ("held-out", "svhn", "mixed")),
    *(("cifar100", "held-out", 50), ("svhn", "held-out", 5), ("svhn-extra", "held-out", 5)),
    *(("digits", "letters", 10), ("digits", "held-out", 5), ("digits", "mixed", 5)),
]


@pytest.mark.parametrize(("name", "kind", "classes"), CASES)
@pytest.mark.parametrize("ratio", [0.25, 0.5, 0.75])
def test_pools_are_what_they_say(root: Path, name: str, kind: str, classes: int, ratio: float) -> None:
    data = load_pool(name, kind, ratio, 1, **SMALL, validation=4, data_root=root)
    assert data.name == name
    assert data.num_classes == classes == len(data.class_names)
    assert torch.bincount(data.y_labeled).tolist() == [2] * classes
    assert len(data.x_validation) == data.extra_labels == 4
    assert data.x_unlabeled.dtype == torch.float32
    assert 0 <= float(data.x_unlabeled.min()) < float(data.x_unlabeled.max()) <= 1
    assert data.is_ood is not None
    assert int((~data.is_ood).sum()) == 30
    assert data.ratio == pytest.approx(ratio)
    assert data.describe()["ood_kinds"].keys() == (set(RECIPES[name].mixed) if kind == "mixed" else {kind})
    assert set(data.y_test.tolist()) == set(range(classes))
    # No sample in two parts.
    parts = [data.x_labeled, data.x_validation, data.x_test, data.x_unlabeled[~data.is_ood]]
    samples = [row for part in parts for row in rows(part)]
    if name != "digits":  # which has a few images twice
        assert len(set(samples)) == len(samples)
    # The pool is in no order that gives it away.
    half = data.is_ood[: len(data.is_ood) // 2]
    assert 0 < int(half.sum()) < len(half)


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, kind, _ in CASES])
def test_seeds_repeat_and_differ(root: Path, name: str, kind: str) -> None:
    first, again, other = (load_pool(name, kind, 0.5, seed, **SMALL, data_root=root) for seed in (1, 1, 2))
    for field in ("x_labeled", "x_unlabeled", "is_ood", "y_unlabeled", "ood_kind"):
        assert torch.equal(getattr(first, field), getattr(again, field))
        if field != "ood_kind":
            assert not torch.equal(getattr(first, field), getattr(other, field))


@pytest.mark.parametrize(("name", "kind"), [("mnist", "fashion"), ("mnist", "mean"), ("svhn", "held-out")])
def test_only_the_ood_changes_with_the_ratio(root: Path, name: str, kind: str) -> None:
    few, many = (load_pool(name, kind, ratio, **SMALL, data_root=root) for ratio in (0.25, 0.5))
    clean = load_pool(name, **SMALL, data_root=root)
    assert clean.ratio == 0
    assert clean.ood_names == ()
    assert torch.equal(few.x_labeled, many.x_labeled)
    assert torch.equal(few.x_labeled, clean.x_labeled)
    assert inside(few) == inside(many) == inside(clean)
    if kind != "mean":
        assert set(rows(few.x_unlabeled[few.is_ood])) <= set(rows(many.x_unlabeled[many.is_ood]))
    more = load_pool(name, kind, 0.5, labels_per_class=2, unlabeled=50, validation=10, data_root=root)
    assert inside(few) <= inside(more)


def test_true_classes_are_those_of_the_files(root: Path, image_files: ModuleType) -> None:
    data = load_pool("cifar10", "held-out", 0.5, **SMALL, data_root=root)
    assert data.class_names == ("bird", "cat", "deer", "dog", "frog", "horse")
    files = load_images("cifar10", root)
    label_of = {
        image.astype(np.float32).tobytes(): int(label)
        for part in (files.train, files.test)
        for image, label in zip(part.take(np.arange(len(part))).numpy(), part.labels, strict=True)
    }
    assert data.y_unlabeled is not None
    names = files.class_names
    for x, y in ((data.x_labeled, data.y_labeled), (data.x_test, data.y_test), (data.x_unlabeled, data.y_unlabeled)):
        for row, label in zip(rows(x), y.tolist(), strict=True):
            true = names[label_of[row]]
            assert (
                true == data.class_names[label] if label >= 0 else true in ("airplane", "automobile", "ship", "truck")
            )


def test_other_data_sets_as_ood_are_those(root: Path) -> None:
    data = load_pool("mnist", "mixed", 0.5, **SMALL, data_root=root)
    assert data.ood_names == ("fashion", "emnist")
    for number, kind in enumerate(data.ood_names):
        other = load_images(kind, root).both
        assert data.ood_kind is not None
        assert set(rows(data.x_unlabeled[data.ood_kind == number])) <= set(rows(other.take(np.arange(len(other)))))


def test_mean_images_are_means_of_two_classes() -> None:
    # Images whose one bright pixel tells their class: a mean has two of half the brightness.
    labels = np.arange(60) % 4
    pixels = np.zeros((60, 1, 2, 2), np.uint8)
    pixels[np.arange(60), 0, labels // 2, labels % 2] = 200
    allowed = np.flatnonzero(labels != 3)
    means = mean_images(ImageSet(pixels, labels), allowed, 500, np.random.default_rng(0))
    assert means.shape == (500, 1, 2, 2)
    np.testing.assert_allclose(np.sort(means.flatten(1).numpy(), 1), [[0, 0, 100 / 255, 100 / 255]] * 500, rtol=1e-6)
    assert float(means[:, 0, 1, 1].max()) == 0
    with pytest.raises(ev.EvidentiaError, match="at least 2 classes"):
        mean_images(ImageSet(pixels, labels), np.flatnonzero(labels == 3), 5, np.random.default_rng(0))


def test_means_use_neither_labeled_nor_validation_images(root: Path) -> None:
    data = load_pool("mnist", "mean", 0.5, labels_per_class=19, unlabeled=100, validation=60, data_root=root)
    pool = data.x_unlabeled[~data.is_ood]
    means = data.x_unlabeled[data.is_ood]
    spare = load_pool("mnist", labels_per_class=19, unlabeled=150, validation=60, data_root=root).x_unlabeled
    assert inside(data) <= set(rows(spare))
    # Twice a mean less one of its images is the other one.
    for mean in means[:20]:
        others = (2 * mean - spare).clamp(0, 1).mul(255).round().div(255)
        assert set(rows(others)) & set(rows(spare))
    assert len(pool) == len(means) == 100


def test_letters_are_digits_turned_a_quarter() -> None:
    images = digits_images(0).train
    usable = np.flatnonzero(images.labels < 5)
    shapes = letters(images, usable, 200, np.random.default_rng(0))
    upright = set(rows(images.take(usable[np.isin(images.labels[usable], TURNED)])))
    back = [set(rows(torch.rot90(shapes, turn, (-2, -1)).contiguous())) for turn in (-1, 1)]
    assert len(back[0] & upright) > 50
    assert len(back[1] & upright) > 50
    assert all(
        row_left in upright or row_right in upright
        for row_left, row_right in zip(
            *(rows(torch.rot90(shapes, turn, (-2, -1)).contiguous()) for turn in (-1, 1)), strict=True
        )
    )


def test_digits_are_scikit_learns() -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    images, whole = digits_images(3), datasets.load_digits()
    both = images.both
    assert np.bincount(both.labels).tolist() == np.bincount(whole.target).tolist()
    assert both.take(np.arange(len(both))).numpy().sum() == pytest.approx(whole.images.sum() / 16, rel=1e-3)


def test_the_extra_is_named_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ev.MissingExtraError, match="the digits data set needs scikit-learn"):
        load_pool("digits")


def test_two_moons_by_name() -> None:
    data = load_pool("moons", "faraway", seed=4)
    assert (data.name, data.ratio, len(data.x_unlabeled), len(data.x_labeled)) == ("two-moons", 0.5, 4000, 6)
    small = load_pool("Two_Moons", "faraway", 0.25, 4, labels_per_class=5, pool_size=100, validation=7)
    assert (len(small.x_labeled), len(small.x_unlabeled), small.extra_labels) == (10, 100, 7)


def test_the_thesis_pool_of_half_mnist_half_fashion(root: Path) -> None:
    data = load_pool("mnist", "fashion", 0.5, labels_per_class=5, pool_size=300, data_root=root)
    assert (len(data.x_labeled), len(data.x_unlabeled), data.ratio) == (50, 300, 0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "imagenet"}, "no data set named 'imagenet'; choose one of: two-moons, mnist, cifar10"),
        ({"name": 3}, "no data set named 3"),
        (
            {"name": "mnist", "ood": "svhn"},
            "mnist has no OOD named 'svhn'; choose one of: fashion, emnist, mean, mixed",
        ),
        ({"name": "svhn", "ood": "mixed"}, "svhn has no OOD named 'mixed'; choose one of: held-out, none"),
        ({"name": "mnist", "unlabeled": 5, "pool_size": 5}, "not both"),
        ({"name": "mnist", "labels_per_class": 41}, "mnist has 40 training samples of class 0; 41 labels"),
        ({"name": "mnist", "labels_per_class": "ten"}, "labels_per_class must be a whole number of at least 1"),
        ({"name": "mnist", "labels_per_class": 0}, "labels_per_class must be a whole number of at least 1"),
        (
            {"name": "mnist", "unlabeled": 301},
            "300 training samples in distribution beside the 100 labeled; 301 for the",
        ),
        ({"name": "mnist", "unlabeled": 300, "validation": 1}, "300 for the pool and 1 for validation are more"),
        ({"name": "mnist", "unlabeled": 30, "validation": -1}, "validation must be"),
        (
            {"name": "mnist", "ood": "emnist", "ratio": 0.9, "unlabeled": 100},
            "520 samples of the OOD kind emnist, and 900",
        ),
        ({"name": "digits", "ood": "held-out", "ratio": 0.9}, "samples of the OOD kind held-out, and 1800 are needed"),
        ({"name": "digits", "ood": "letters", "ratio": 0.9}, "samples of the OOD kind letters, and 1800 are needed"),
        ({"name": "mnist", "seed": -1}, "seed must be"),
        ({"name": "mnist", "data_root": "nowhere"}, "data_root must be a folder, and nowhere is none"),
    ],
)
def test_what_cannot_be_had_is_told(root: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ev.EvidentiaError, match=message):
        load_pool(**{"data_root": root, **arguments})


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("folder", ["MNIST/raw", "MNIST", "mnist/raw"])
def test_layouts_of_mnist(image_files: ModuleType, tmp_path: Path, folder: str, packed: bool) -> None:
    image_files.write_idx(tmp_path / folder, packed=packed)
    assert len(load_images("mnist", tmp_path).train) == 400


def test_layouts_of_the_others(image_files: ModuleType, tmp_path: Path) -> None:
    image_files.write_cifar10(tmp_path / "a" / "cifar10" / "cifar-10-batches-py")
    image_files.write_cifar100(tmp_path / "a" / "CIFAR100" / "cifar-100-python")
    image_files.write_svhn(tmp_path / "a")
    arrays = image_files.letters()
    (tmp_path / "a" / "EMNIST" / "raw").mkdir(parents=True)
    for part in ("train", "test"):
        upright, labels = arrays[f"{part}_images"], arrays[f"{part}_labels"]
        for what, array in (("images-idx3", upright.transpose(0, 2, 1)), ("labels-idx1", labels + 1)):
            (tmp_path / "a" / "EMNIST" / "raw" / f"emnist-letters-{part}-{what}-ubyte").write_bytes(
                image_files.idx(array, packed=False)
            )
    (tmp_path / "b" / "EMNIST").mkdir(parents=True)
    (tmp_path / "b" / "EMNIST" / "emnist_letters.npz").write_bytes(image_files.npz(arrays))
    (tmp_path / "b" / "cifar10").mkdir()
    (tmp_path / "b" / "cifar10" / "cifar10.npz").write_bytes(image_files.npz(image_files.cifar_npz()))
    (tmp_path / "b" / "SVHN").mkdir()
    (tmp_path / "b" / "SVHN" / "svhn_test_cropped.npz").write_bytes(image_files.npz(image_files.svhn_npz()))
    found = {name: load_images(name, tmp_path / "a") for name in ("cifar10", "cifar100", "svhn", "emnist")}
    assert {name: len(images.train) for name, images in found.items()} == {
        "cifar10": 250,
        "cifar100": 400,
        "svhn": 100,
        "emnist": 260,
    }
    assert found["cifar100"].class_names[42] == "thing 42"
    others = {name: load_images(name, tmp_path / "b") for name in ("cifar10", "svhn", "emnist")}
    np.testing.assert_array_equal(others["emnist"].train.images, found["emnist"].train.images)
    assert (len(others["cifar10"].train), len(others["svhn"].train)) == (100, 240)


def test_nothing_is_written_beside_the_files(image_files: ModuleType, tmp_path: Path) -> None:
    image_files.write_idx(tmp_path / "MNIST" / "raw")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    load_pool("mnist", "mean", **SMALL, data_root=tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_missing_files_are_told_with_their_places(image_files: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(ev.EvidentiaError) as caught:
        load_pool("cifar10", data_root=tmp_path)
    for words in ("cifar10 is not under", "cifar-10-batches-py: data_batch_1", "cifar10.npz", "https://www.cs.toronto"):
        assert words in str(caught.value)
    image_files.write_idx(tmp_path / "MNIST" / "raw")
    (tmp_path / "MNIST" / "raw" / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(ev.EvidentiaError, match=r"but lacks t10k-labels-idx1-ubyte(?s:.)*leave data_root out"):
        load_pool("mnist", data_root=tmp_path)


def test_files_that_cannot_be_opened_are_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ev.EvidentiaError, match=r"mnist in .* cannot be read .*Permission denied"):
        load_pool("mnist", data_root=root)


@pytest.mark.parametrize("cut", [0, 3, 100, 5000])
def test_damaged_files_are_told(image_files: ModuleType, tmp_path: Path, cut: int) -> None:
    image_files.write_idx(tmp_path / "MNIST" / "raw")
    path = tmp_path / "MNIST" / "raw" / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ev.FileFormatError, match="train-images-idx3-ubyte"):
        load_pool("mnist", **SMALL, data_root=tmp_path)


@pytest.fixture
def home(image_files: ModuleType, serve: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder served on this machine as the home of all images; it holds a small MNIST."""
    served = tmp_path / "home"
    image_files.write_idx(served)
    digests = {path.name[:-3]: hashlib.sha256(path.read_bytes()).hexdigest() for path in served.iterdir()}
    monkeypatch.setitem(SOURCES, "mnist", replace(SOURCES["mnist"], digests=digests))
    monkeypatch.setenv("EVIDENTIA_CACHE", str(tmp_path / "cache"))
    address = serve(partial(SimpleHTTPRequestHandler, directory=str(served)))
    monkeypatch.setitem(catalog.HOMES, "mnist", address)
    return served


def test_a_download_is_checked_kept_and_used_again(home: Path, tmp_path: Path) -> None:
    first = load_pool("mnist", "mean", **SMALL)
    kept = tmp_path / "cache" / "MNIST" / "raw"
    assert sorted(path.name for path in kept.iterdir()) == sorted(path.name for path in home.iterdir())
    damaged = kept / "train-labels-idx1-ubyte.gz"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert torch.equal(load_pool("mnist", "mean", **SMALL).x_unlabeled, first.x_unlabeled)
    for path in home.iterdir():
        path.unlink()
    assert torch.equal(load_pool("mnist", "mean", **SMALL).x_unlabeled, first.x_unlabeled)
    assert torch.equal(load_pool("mnist", "mean", **SMALL, data_root=tmp_path / "cache").x_unlabeled, first.x_unlabeled)


def test_a_download_that_is_not_what_it_should_be_is_not_kept(home: Path, tmp_path: Path) -> None:
    path = home / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(ev.FileFormatError, match="does not match its checksum"):
        load_pool("mnist", **SMALL)
    assert not list((tmp_path / "cache").rglob("*.gz"))


def test_data_sets_without_a_known_checksum_are_not_downloaded(
    image_files: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVIDENTIA_CACHE", str(tmp_path / "cache"))
    for name in ("cifar10", "cifar100", "svhn", "svhn-extra"):
        with pytest.raises(ev.EvidentiaError, match=r"knows no checksum for it(?s:.)*give as data_root a folder"):
            load_pool(name)
    image_files.write_svhn(tmp_path / "cache" / "SVHN")
    assert load_pool("svhn", "held-out", **SMALL).num_classes == 5


def test_every_source_and_recipe_is_complete() -> None:
    for name, source in SOURCES.items():
        assert name in catalog.HOMES
        assert all(len(digest) == 64 for digest in source.digests.values())
        assert set(source.digests) in (set(), set(source.layouts[0].files))
    for name, recipe in RECIPES.items():
        assert name in SOURCES or name == "digits"
        assert set(recipe.mixed) <= set(recipe.kinds)
        assert set(recipe.kinds) - set(SOURCES) <= {"held-out", "mean", "letters"}


def test_the_checksums_are_those_of_the_real_files(real_data: Path) -> None:
    for name, folder in (("mnist", "MNIST"), ("fashion", "FashionMNIST")):
        for file, digest in SOURCES[name].digests.items():
            payload = (real_data / folder / "raw" / f"{file}.gz").read_bytes()
            assert hashlib.sha256(payload).hexdigest() == digest


@pytest.mark.parametrize(
    ("name", "kind"),
    [("mnist", "emnist"), ("mnist", "mixed"), ("cifar10", ["svhn", "held-out"]), ("svhn", "held-out")],
)
def test_the_real_pools_reach_75_percent_with_their_defaults(real_data: Path, name: str, kind: Any) -> None:
    data = load_pool(name, kind, 0.75, data_root=real_data)
    recipe = RECIPES[name]
    assert data.ratio == 0.75
    assert len(data.x_unlabeled) == 4 * recipe.unlabeled
    assert torch.bincount(data.y_labeled).tolist() == [recipe.labels_per_class] * data.num_classes
