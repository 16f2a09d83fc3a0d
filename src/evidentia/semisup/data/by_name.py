"""Data sets by name: few labels, and an unlabeled pool with samples that belong to no class."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import whole_number
from evidentia.semisup.data.digits import digits_images, letters
from evidentia.semisup.data.draws import (
    Array,
    Rows,
    assemble,
    draw_rows,
    enough,
    generator,
    ood_kinds,
    pool_counts,
)
from evidentia.semisup.data.image_files import SOURCES, Images, load_images
from evidentia.semisup.data.images import ImageSet
from evidentia.semisup.data.moons import MIXED, OOD, two_moons
from evidentia.semisup.pool import SemiSupervisedData

HELD_OUT = "held-out"


@dataclass(frozen=True)
class Recipe:
    """How a pool is made of an image data set.

    Args:
        labels_per_class: labeled images a class.
        unlabeled: images of the pool in distribution; three times as many OOD images, a ratio of 75%, can be had.
        kinds: kinds of OOD.
        mixed: the kinds that `mixed` stands for.
        classes: the classes in distribution; the others are `held-out`.
        always: whether the other classes are left out even if the OOD is of another kind, so that the task stays one.
    """

    labels_per_class: int
    unlabeled: int
    kinds: tuple[str, ...]
    mixed: tuple[str, ...] = ()
    classes: tuple[int, ...] = ()
    always: bool = True


_FIVE = tuple(range(5))
RECIPES: dict[str, Recipe] = {
    "mnist": Recipe(10, 5000, ("fashion", "emnist", "mean"), ("fashion", "emnist")),
    # Animals in, vehicles out, as in Oliver et al. 2018.
    "cifar10": Recipe(400, 3000, (HELD_OUT, "svhn"), ("svhn", HELD_OUT), (2, 3, 4, 5, 6, 7)),
    "cifar100": Recipe(40, 8000, (HELD_OUT,), classes=tuple(range(50))),
    "svhn": Recipe(400, 900, (HELD_OUT,), classes=_FIVE),
    "svhn-extra": Recipe(400, 20_000, (HELD_OUT,), classes=_FIVE),
    "digits": Recipe(10, 200, (HELD_OUT, "letters"), (HELD_OUT, "letters"), _FIVE, always=False),
}
NAMES = ("two-moons", *RECIPES)
_ALIASES = {"moons": "two-moons", "cifar-10": "cifar10", "cifar-100": "cifar100"}


def load_pool(
    name: str,
    ood: str | Sequence[str] | None = None,
    ratio: float | None = None,
    seed: int = 0,
    *,
    labels_per_class: int | None = None,
    unlabeled: int | None = None,
    pool_size: int | None = None,
    validation: int = 0,
    data_root: str | os.PathLike[str] | None = None,
) -> SemiSupervisedData:
    """Load a data set by name, with few labels and a pool in which a share of the samples belongs to no class.

    | name | classes | labels a class | in the pool, in distribution | OOD |
    |---|---|---|---|---|
    | two-moons | 2 | 3 | 2,000 | faraway, boundary, random; mixed: faraway and boundary |
    | mnist | 10 | 10 | 5,000 | fashion, emnist (letters), mean (of two classes' images); mixed: fashion and emnist |
    | cifar10 | 6 animals | 400 | 3,000 | held-out (4 vehicles), svhn; mixed: both |
    | cifar100 | first 50 | 40 | 8,000 | held-out (last 50) |
    | svhn, svhn-extra | digits 0-4 | 400 | 900, 20,000 | held-out (digits 5-9) |
    | digits | 10 | 10 | 200 | letters (digits turned a quarter) |
    | digits | 0-4 | 10 | 200 | held-out (digits 5-9); mixed: held-out and letters |

    Images are float32 in [0, 1] of shape (channels, height, width), not standardised. Labels, pool and validation come
    from the training images, the test is the data set's own (of the classes in distribution). The samples in
    distribution are the same at every ratio, so that what changes is the OOD alone. Two moons and digits need no files.

    Args:
        name: the data set.
        ood: a kind of OOD, several in equal shares, or None for a clean pool.
        ratio: share of OOD in the pool, in [0, 1); by default 0.5 if `ood` is given.
        seed: fixes everything that is drawn.
        labels_per_class: labeled samples a class; by default as in the table.
        unlabeled: samples of the pool in distribution; by default as in the table.
        pool_size: samples of the pool in all, in place of `unlabeled`.
        validation: samples with labels beyond the labeled ones, in all; by default none, and what wants clean labels
            has the labeled set.
        data_root: a folder that holds the files in torchvision's layouts, such as `MNIST/raw` or
            `cifar-10-batches-py`. Without it they are looked for in the cache folder (`$EVIDENTIA_CACHE`, else
            `~/.cache/evidentia`), and MNIST and Fashion-MNIST are fetched if they are not there, each time checked by
            SHA-256.

    Raises:
        EvidentiaError: if there is no such data set or kind, there are fewer samples than asked for, or the files are
            neither found nor to be had.
        FileFormatError: if a file is damaged or hostile.

    Example:
        >>> load_pool("digits", ood="letters", ratio=0.75)
        SemiSupervisedData('digits': 10 classes, inputs of shape (1, 8, 8), 100 labeled, 800 unlabeled (600 of them out
        of distribution), 0 for validation, 449 for the test)
        >>> load_pool("mnist", ood="fashion", ratio=0.5, data_root="datasets").ratio  # doctest: +SKIP
        0.5
        >>> load_pool("nmist")
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: there is no data set named 'nmist'; choose one of: two-moons, ...
    """
    sizes = {"labels_per_class": labels_per_class, "unlabeled": unlabeled, "pool_size": pool_size}
    check_pool(name, ood, ratio, seed, validation=validation, **sizes)
    known = known_name(name)
    if known == "two-moons":
        return two_moons(
            *(ood, ratio, seed),
            labels_per_class=3 if labels_per_class is None else labels_per_class,
            unlabeled=2000 if unlabeled is None else unlabeled,
            pool_size=pool_size,
            validation=validation,
        )
    recipe = RECIPES[known]
    kinds = ood_kinds(ood, recipe.kinds, recipe.mixed, known)
    size = recipe.unlabeled if unlabeled is None else unlabeled
    inside, outside = pool_counts(kinds, ratio, size, pool_size)
    images = digits_images(seed) if known == "digits" else load_images(known, data_root)
    classes = recipe.classes if recipe.always or HELD_OUT in kinds else ()
    classes = classes or tuple(range(len(images.class_names)))
    labels = recipe.labels_per_class if labels_per_class is None else labels_per_class
    rows = draw_rows(images.train.labels, classes, seed, labels, validation, inside, known)
    others = {kind: _ood(kind, images, classes, rows, count, seed, data_root) for kind, count in outside.items()}
    parts = {
        "labeled": _samples(images.train, rows.labeled, classes),
        "validation": _samples(images.train, rows.validation, classes),
        "test": _samples(images.test, np.flatnonzero(np.isin(images.test.labels, classes)), classes),
    }
    return assemble(
        parts,
        _samples(images.train, rows.unlabeled, classes),
        others,
        seed,
        num_classes=len(classes),
        name=known,
        class_names=tuple(images.class_names[label] for label in classes),
    )


def pool_kinds(name: str) -> tuple[str, ...]:
    """The kinds of OOD that a data set can be had with, the usual one first; "mixed" is a mix of some of them.

    Example:
        >>> pool_kinds("two-moons")
        ('faraway', 'boundary', 'random', 'mixed')
        >>> pool_kinds("svhn")
        ('held-out',)
    """
    kinds, mixed = _kinds(known_name(name))
    return (*kinds, "mixed") if mixed else kinds


def check_pool(
    name: str,
    ood: str | Sequence[str] | None = None,
    ratio: float | None = None,
    seed: int = 0,
    *,
    labels_per_class: int | None = None,
    unlabeled: int | None = None,
    pool_size: int | None = None,
    validation: int = 0,
) -> None:
    """Refuse what `load_pool` would refuse, whose arguments these are, before any file is read.

    Example:
        >>> check_pool("mnist", "fashion", 1.5)
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: ratio, the share of the pool that is out of distribution, must be a
        number, at least 0 and less than 1, got 1.5
    """
    known = known_name(name)
    if unlabeled is not None and pool_size is not None:
        raise EvidentiaError("give unlabeled (samples in distribution) or pool_size (samples in all), not both")
    pool_counts(ood_kinds(ood, *_kinds(known), known), ratio, 1 if unlabeled is None else unlabeled, pool_size)
    generator(seed, "labels")
    if labels_per_class is not None:
        whole_number(labels_per_class, "labels_per_class", 1)
    whole_number(validation, "validation", 0)


def _kinds(known: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The kinds of OOD of a data set, and those that "mixed" stands for."""
    return (tuple(OOD), MIXED) if known == "two-moons" else (RECIPES[known].kinds, RECIPES[known].mixed)


def known_name(name: str) -> str:
    """The name of a data set as it is spelt here."""
    spelt = name.strip().lower().replace("_", "-").replace(" ", "-") if isinstance(name, str) else ""
    wanted = _ALIASES.get(spelt, spelt)
    if wanted not in NAMES:
        raise EvidentiaError(f"there is no data set named {name!r}; choose one of: {', '.join(NAMES)}")
    return wanted


def _samples(images: ImageSet, rows: Array, classes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Images and their classes, numbered from 0 among those in distribution."""
    labels = np.searchsorted(np.array(classes), images.labels[rows])
    return images.take(rows), torch.from_numpy(labels)


def _ood(
    kind: str,
    images: Images,
    classes: Sequence[int],
    rows: Rows,
    size: int,
    seed: int,
    data_root: str | os.PathLike[str] | None,
) -> Tensor:
    rng = generator(seed, kind)
    if kind == "mean":
        return mean_images(images.train, rows.spare, size, rng)
    if kind == "letters":
        return letters(images.train, rows.spare, size, rng)
    if kind in SOURCES:
        # The test is not of this data set, so both parts of it may be in the pool.
        other = load_images(kind, data_root).both
        candidates = np.arange(len(other))
    else:
        other = images.train
        candidates = np.flatnonzero(~np.isin(other.labels, classes))
    enough(len(candidates), size, kind)
    return other.take(rng.permutation(candidates)[:size])


def mean_images(images: ImageSet, rows: Array, size: int, rng: np.random.Generator) -> Tensor:
    r"""Means \(\frac12 (x_i + x_j)\) of two images of different classes (thesis, chapter 3, "Impact of boundary OODs").

    Args:
        images: images with labels.
        rows: which of them may be used.
        size: how many means.
        rng: draws the pairs.
    """
    if len(np.unique(images.labels[rows])) < 2:
        raise EvidentiaError("means of images of different classes need images of at least 2 classes")
    pairs = np.empty((0, 2), dtype=np.int64)
    while len(pairs) < size:
        drawn = rng.choice(rows, (2 * size, 2))
        pairs = np.concatenate([pairs, drawn[images.labels[drawn[:, 0]] != images.labels[drawn[:, 1]]]])
    return (images.take(pairs[:size, 0]) + images.take(pairs[:size, 1])).div_(2)
