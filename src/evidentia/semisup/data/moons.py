r"""Two moons in the plane, and points that belong to neither.

Moon 0 is the upper half of the unit circle about (0, 0), moon 1 the lower half of the one about (1, 1/2). A point of
class k is a point of moon k, drawn evenly along it, plus normal noise in both coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from evidentia._support.scalars import real_number, whole_number
from evidentia.semisup.data.draws import Array, assemble, generator, ood_kinds, pool_counts
from evidentia.semisup.pool import SemiSupervisedData

MIXED = ("faraway", "boundary")
FARAWAY_CENTRE, FARAWAY_SPREAD = (0.0, 8.0), 0.5
BOUNDARY_WIDTH, BOUNDARY_GAP = 0.12, 0.15
_LOW, _HIGH = np.array([-1.0, -0.5]), np.array([2.0, 1.0])  # the bounding box of the moons without noise
_CENTRES = np.array([[0.0, 0.0], [1.0, 0.5]])
_NAMES = ("upper moon", "lower moon")


def two_moons(
    ood: str | Sequence[str] | None = None,
    ratio: float | None = None,
    seed: int = 0,
    *,
    labels_per_class: int = 3,
    unlabeled: int = 2000,
    pool_size: int | None = None,
    validation: int = 0,
    test: int = 1000,
    noise: float = 0.1,
    spread: bool = True,
) -> SemiSupervisedData:
    r"""Two moons with a pool that holds points out of distribution.

    With \(d_k\) the distance to moon k without noise, the kinds of OOD are

    - `faraway`: normal about (0, 8) with standard deviation 0.5;
    - `boundary`: evenly in the part of the moons' bounding box with \(|d_0 - d_1| < 0.12\), \(\min d_k > 0.15\);
    - `random`: evenly in a box twice as wide and high as the moons' (some of these points lie on the moons);
    - `mixed`: half faraway, half boundary.

    Args:
        ood: a kind, several of them in equal shares, or None for a clean pool.
        ratio: share of OOD in the pool, in [0, 1); by default 0.5 if `ood` is given. The points in distribution are the
            same at every ratio.
        seed: fixes everything.
        labels_per_class: labeled points a moon.
        unlabeled: points of the pool in distribution.
        pool_size: points of the pool in all, in place of `unlabeled`.
        validation: points with labels beyond the labeled ones.
        test: test points.
        noise: standard deviation of the noise.
        spread: draw the labeled points of a moon one from each of as many equal stretches of it. With False they are
            drawn anywhere on it: six points may then all lie at one end, and what is compared is luck with labels.

    Example:
        >>> data = two_moons("faraway", ratio=0.25)
        >>> data
        SemiSupervisedData('two-moons': 2 classes, inputs of shape (2,), 6 labeled, 2667 unlabeled (667 of them out of
        distribution), 0 for validation, 1000 for the test)
        >>> [round(value) for value in data.x_unlabeled[data.is_ood].mean(0).tolist()]
        [0, 8]
    """
    real_number(noise, "noise", 0)
    kinds = ood_kinds(ood, tuple(OOD), MIXED, "two-moons")
    inside, outside = pool_counts(kinds, ratio, unlabeled, pool_size)
    sizes = {
        "labeled": 2 * whole_number(labels_per_class, "labels_per_class", 1),
        "validation": whole_number(validation, "validation", 0),
        "test": whole_number(test, "test", 0),
        "pool": inside,
    }
    parts = {
        part: _points(size, noise, generator(seed, part), labels_per_class if spread and part == "labeled" else 1)
        for part, size in sizes.items()
    }
    pool = parts.pop("pool")
    others = {kind: _tensor(OOD[kind](size, generator(seed, kind))) for kind, size in outside.items()}
    return assemble(parts, pool, others, seed, num_classes=2, name="two-moons", class_names=_NAMES)


def moon_distances(points: Array) -> Array:
    """Distances to both moons without noise, shape `(n, 2)` for points of shape `(n, 2)`.

    Example:
        >>> moon_distances(np.array([[0.0, 1.0], [1.0, 0.5], [-1.0, -2.0]])).round(3).tolist()
        [[0.0, 0.5], [0.118, 1.0], [2.0, 2.202]]
    """
    distances = []
    for centre, upwards in zip(_CENTRES, (1, -1), strict=True):
        from_centre = points - centre
        ends = np.stack([np.hypot(from_centre[:, 0] - side, from_centre[:, 1]) for side in (-1, 1)])
        beside = upwards * from_centre[:, 1] >= 0
        distances.append(np.where(beside, np.abs(np.hypot(*from_centre.T) - 1), ends.min(0)))
    return np.stack(distances, axis=1)


def _points(size: int, noise: float, rng: np.random.Generator, stretches: int = 1) -> tuple[Tensor, Tensor]:
    """Points of both moons in turn; with `stretches`, those of a moon go through as many equal parts of it in turn."""
    # Angles and noise have generators of their own, so that more points only add to fewer.
    angles, noises = rng.spawn(2)
    labels, stretch = np.arange(size) % 2, np.arange(size) // 2 % stretches
    angle = np.pi * (stretch + angles.random(size)) / stretches
    arc = np.stack([np.cos(angle), np.sin(angle)], axis=1) * np.where(labels == 0, 1, -1)[:, None]
    return _tensor(_CENTRES[labels] + arc + noise * noises.standard_normal((size, 2))), torch.from_numpy(labels)


def _faraway(size: int, rng: np.random.Generator) -> Array:
    return np.array(FARAWAY_CENTRE) + FARAWAY_SPREAD * rng.standard_normal((size, 2))


def _boundary(size: int, rng: np.random.Generator) -> Array:
    found = np.empty((0, 2))
    while len(found) < size:
        points = rng.uniform(_LOW, _HIGH, (4096, 2))
        distances = moon_distances(points)
        near = (np.abs(distances[:, 0] - distances[:, 1]) < BOUNDARY_WIDTH) & (distances.min(1) > BOUNDARY_GAP)
        found = np.concatenate([found, points[near]])
    return found[:size]


def _random(size: int, rng: np.random.Generator) -> Array:
    centre, half = (_LOW + _HIGH) / 2, (_HIGH - _LOW) / 2
    return rng.uniform(centre - 2 * half, centre + 2 * half, (size, 2))


OOD: dict[str, Callable[[int, np.random.Generator], Array]] = {
    "faraway": _faraway,
    "boundary": _boundary,
    "random": _random,
}


def _tensor(points: Array) -> Tensor:
    return torch.from_numpy(points.astype(np.float32))
