"""Draws by seed, and how many of what.

Every role (labels, pool, each kind of OOD, order) has a random generator of its own, so that changing one thing leaves
the others as they were: the labels of a seed are the same at every OOD ratio, and the OOD samples of a lower ratio are
among those of a higher one.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import real_number, whole_number
from evidentia.semisup.pool import SemiSupervisedData

Array = npt.NDArray[Any]


def generator(seed: int, role: str) -> np.random.Generator:
    """The random generator of one role.

    Example:
        >>> generator(0, "labels").integers(100) == generator(0, "labels").integers(100)
        np.True_
    """
    return np.random.default_rng([whole_number(seed, "seed", 0), zlib.crc32(role.encode())])


def ood_kinds(
    ood: str | Sequence[str] | None, known: Sequence[str], mixed: Sequence[str], name: str
) -> tuple[str, ...]:
    """The kinds of OOD that are meant: none, one, those of `mixed`, or a list of kinds."""
    given = () if ood is None else tuple(ood) if isinstance(ood, Sequence) and not isinstance(ood, str) else (ood,)
    wanted = tuple(kind.strip().lower() if isinstance(kind, str) else kind for kind in given)
    if wanted in ((), ("none",)):
        return ()
    if wanted == ("mixed",) and mixed:
        return tuple(mixed)
    if unknown := [kind for kind in wanted if kind not in known]:
        names = ", ".join([*known, *(["mixed"] if mixed else []), "none"])
        raise EvidentiaError(f"{name} has no OOD named {unknown[0]!r}; choose one of: {names}")
    if len(set(wanted)) < len(wanted):
        raise EvidentiaError(f"each kind of OOD can be named once, got {', '.join(wanted)}")
    return wanted


def pool_counts(
    kinds: Sequence[str], ratio: float | None, unlabeled: int, pool_size: int | None = None
) -> tuple[int, dict[str, int]]:
    r"""How many samples of the pool are in distribution, and how many of each kind of OOD.

    With the share \(\rho\) of OOD, \(n_{ood} = \frac{\rho}{1 - \rho} n_{in}\), shared equally among the kinds; or, with
    a `pool_size` \(n\), \(n_{ood} = \rho n\).

    Args:
        kinds: the kinds of OOD.
        ratio: share of OOD in the pool, in [0, 1); by default 0.5 if there is a kind of OOD, else 0.
        unlabeled: samples in distribution, the same at every ratio.
        pool_size: samples in all, in place of `unlabeled`.

    Example:
        >>> pool_counts(["faraway", "boundary"], 0.75, 2000)
        (2000, {'faraway': 3000, 'boundary': 3000})
        >>> pool_counts(["fashion"], 0.5, 5000, pool_size=49_950)
        (24975, {'fashion': 24975})
    """
    share = (0.5 if kinds else 0.0) if ratio is None else ratio
    share = real_number(share, "ratio, the share of the pool that is out of distribution,", 0, 1, open_high=True)
    if share and not kinds:
        raise EvidentiaError(f"a pool with a ratio of {share:g} needs a kind of OOD; give ood, or leave ratio out")
    size = whole_number(unlabeled, "unlabeled", 1) if pool_size is None else whole_number(pool_size, "pool_size", 1)
    outside = round(size * share / (1 - share)) if pool_size is None else round(size * share)
    inside = size if pool_size is None else size - outside
    if not inside:
        raise EvidentiaError(f"a pool of {size} with a ratio of {share:g} has no sample in distribution")
    if share == 0:
        return inside, {}
    each, more = divmod(outside, len(kinds))
    return inside, {kind: each + (number < more) for number, kind in enumerate(kinds)}


@dataclass(frozen=True)
class Rows:
    """Numbers of the samples of each part; `spare` are all that are neither labeled nor for validation."""

    labeled: Array
    validation: Array
    unlabeled: Array
    spare: Array


def draw_rows(
    labels: Array, classes: Sequence[int], seed: int, labels_per_class: int, validation: int, unlabeled: int, name: str
) -> Rows:
    """Draw the labeled, validation and in-distribution unlabeled samples from those of some classes.

    Labeled are the first `labels_per_class` of each class in a random order of all; of the others, the first are
    the pool's and the last are for validation.

    Args:
        labels: the classes of all training samples.
        classes: the classes in distribution.
        seed: fixes the order.
        labels_per_class: labeled samples a class.
        validation: samples for validation, in all.
        unlabeled: samples of the pool.
        name: the data set, for errors.
    """
    whole_number(labels_per_class, "labels_per_class", 1)
    order = generator(seed, "labels").permutation(np.flatnonzero(np.isin(labels, classes)))
    is_labeled = np.zeros(len(order), dtype=bool)
    for label in classes:
        places = np.flatnonzero(labels[order] == label)[:labels_per_class]
        if len(places) < labels_per_class:
            raise EvidentiaError(
                f"{name} has {len(places)} training samples of class {label}; {labels_per_class} labels a class are "
                "more than that"
            )
        is_labeled[places] = True
    rest = order[~is_labeled]
    if whole_number(validation, "validation", 0) + unlabeled > len(rest):
        raise EvidentiaError(
            f"{name} has {len(rest)} training samples in distribution beside the {int(is_labeled.sum())} labeled; "
            f"{unlabeled} for the pool and {validation} for validation are more than that: lower unlabeled, pool_size "
            "or validation"
        )
    spare = rest[: len(rest) - validation]
    return Rows(order[is_labeled], rest[len(rest) - validation :], spare[:unlabeled], spare)


def enough(available: int, needed: int, kind: str) -> None:
    """Require as many OOD samples as the ratio needs."""
    if needed > available:
        raise EvidentiaError(
            f"there are {available} samples of the OOD kind {kind}, and {needed} are needed for this ratio and pool; "
            "lower ratio, unlabeled or pool_size"
        )


def assemble(
    parts: Mapping[str, tuple[Tensor, Tensor]],
    inside: tuple[Tensor, Tensor],
    outside: Mapping[str, Tensor],
    seed: int,
    **facts: Any,
) -> SemiSupervisedData:
    """Put the data together, with the pool in random order.

    Args:
        parts: inputs and classes of "labeled", "validation" and "test".
        inside: the pool's samples in distribution and their true classes.
        outside: the pool's samples out of distribution, by kind.
        seed: fixes the order of the pool.
        facts: other fields of `SemiSupervisedData`.
    """
    x_inside, y_inside = inside
    kinds = [torch.full((len(y_inside),), -1)]
    kinds += [torch.full((len(x),), number) for number, x in enumerate(outside.values())]
    kind = torch.cat(kinds)
    true = torch.cat([y_inside, torch.full((len(kind) - len(y_inside),), -1)])
    order = torch.from_numpy(generator(seed, "order").permutation(len(kind)))
    (x_labeled, y_labeled), (x_validation, y_validation), (x_test, y_test) = (
        parts[part] for part in ("labeled", "validation", "test")
    )
    return SemiSupervisedData(
        x_labeled=x_labeled,
        y_labeled=y_labeled,
        x_validation=x_validation,
        y_validation=y_validation,
        x_test=x_test,
        y_test=y_test,
        x_unlabeled=torch.cat([x_inside, *outside.values()])[order],
        is_ood=(kind >= 0)[order],
        y_unlabeled=true[order],
        ood_kind=kind[order],
        ood_names=tuple(outside),
        **facts,
    )
