"""Two moons are where they should be, and each kind of OOD is what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import evidentia as ev
from evidentia.semisup.data.moons import moon_distances, two_moons


def outside(kind: Any, ratio: float = 0.5, **more: Any) -> np.ndarray:
    data = two_moons(kind, ratio, **more)
    return data.x_unlabeled[data.is_ood].numpy()


@given(st.lists(st.tuples(st.floats(-4, 5), st.floats(-4, 5)), min_size=1, max_size=5))
def test_distances_are_those_to_the_nearest_point_of_a_moon(points: list[tuple[float, float]]) -> None:
    angle = np.linspace(0, np.pi, 20_001)
    moons = [
        np.stack([np.cos(angle), np.sin(angle)], 1),
        np.stack([1 - np.cos(angle), 0.5 - np.sin(angle)], 1),
    ]
    given_points = np.array(points)
    nearest = np.stack([[np.hypot(*(moon - point).T).min() for point in given_points] for moon in moons], 1)
    np.testing.assert_allclose(moon_distances(given_points), nearest, atol=1e-4)


def test_moons_are_those_of_scikit_learn() -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    x, y = datasets.make_moons(200, noise=0)
    distances = moon_distances(x)
    np.testing.assert_allclose(distances[np.arange(200), y], 0, atol=1e-12)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_points_lie_on_their_moon_up_to_the_noise(noise: float) -> None:
    data = two_moons(seed=3, noise=noise, validation=100)
    for x, y in (
        (data.x_labeled, data.y_labeled),
        (data.x_validation, data.y_validation),
        (data.x_test, data.y_test),
        (data.x_unlabeled, data.y_unlabeled),
    ):
        assert y is not None
        own = moon_distances(x.double().numpy())[np.arange(len(y)), y.numpy()]
        assert own.max() <= 5 * noise + 1e-6
        assert torch.bincount(y).tolist() == [len(y) // 2] * 2
    assert data.x_labeled.dtype == torch.float32
    assert (len(data.x_labeled), len(data.x_unlabeled), len(data.x_test)) == (6, 2000, 1000)
    assert data.ratio == 0


@pytest.mark.parametrize(("ratio", "count"), [(0.25, 667), (0.5, 2000), (0.75, 6000), (0, 0)])
@pytest.mark.parametrize("kind", ["faraway", "boundary", "random", "mixed"])
def test_the_pool_has_its_ratio(kind: str, ratio: float, count: int) -> None:
    data = two_moons(kind, ratio)
    assert data.is_ood is not None
    assert data.y_unlabeled is not None
    assert int(data.is_ood.sum()) == count
    assert len(data.x_unlabeled) == 2000 + count
    assert data.ratio == pytest.approx(ratio, abs=1e-3)
    assert torch.equal(data.y_unlabeled < 0, data.is_ood)
    inside = data.x_unlabeled[~data.is_ood]
    assert torch.equal(inside.sort(0)[0], two_moons().x_unlabeled.sort(0)[0])


def test_faraway_is_normal_about_its_centre() -> None:
    points = outside("faraway", 0.75)
    np.testing.assert_allclose(points.mean(0), [0, 8], atol=0.03)
    np.testing.assert_allclose(points.std(0), [0.5, 0.5], atol=0.02)


def test_boundary_is_between_the_moons_and_on_neither() -> None:
    distances = moon_distances(outside("boundary", 0.75).astype(np.float64))
    assert (np.abs(distances[:, 0] - distances[:, 1]) < 0.12 + 1e-6).all()
    assert (distances.min(1) > 0.15 - 1e-6).all()


def test_random_fills_its_box() -> None:
    points = outside("random", 0.75)
    np.testing.assert_allclose(points.min(0), [-2.5, -1.25], atol=0.01)
    np.testing.assert_allclose(points.max(0), [3.5, 1.75], atol=0.01)
    np.testing.assert_allclose(points.mean(0), [0.5, 0.25], atol=0.1)


def test_mixed_is_half_and_half() -> None:
    data = two_moons("mixed", 0.5)
    assert data.describe()["ood_kinds"] == {"faraway": 1000, "boundary": 1000}
    assert data.ood_kind is not None
    assert (data.x_unlabeled[data.ood_kind == 0][:, 1] > 4).all()
    assert (data.x_unlabeled[data.ood_kind == 1][:, 1] < 4).all()
    three = two_moons(["faraway", "boundary", "random"], 0.5)
    assert three.describe()["ood_kinds"] == {"faraway": 667, "boundary": 667, "random": 666}


def test_seeds_repeat_and_differ() -> None:
    first, again, other = (two_moons("mixed", 0.5, seed) for seed in (1, 1, 2))
    for name in ("x_labeled", "x_unlabeled", "x_test", "is_ood", "ood_kind"):
        assert torch.equal(getattr(first, name), getattr(again, name))
        assert not torch.equal(getattr(first, name), getattr(other, name))


def test_what_one_argument_changes_leaves_the_rest_alone() -> None:
    few, many = outside("boundary", 0.25), outside("boundary", 0.75)
    assert {tuple(point) for point in few} <= {tuple(point) for point in many}
    small, large = two_moons(unlabeled=100), two_moons("faraway", 0.75, validation=50, labels_per_class=3)
    assert torch.equal(small.x_labeled, large.x_labeled)
    assert torch.equal(small.x_test, large.x_test)
    assert {tuple(point) for point in small.x_unlabeled.tolist()} <= {
        tuple(point) for point in large.x_unlabeled.tolist()
    }


def test_labels_are_spread_along_each_moon() -> None:
    for seed in range(20):
        data = two_moons(seed=seed, noise=0)
        for moon, sign in ((0, 1), (1, -1)):
            centre = torch.tensor([0.0, 0.0] if moon == 0 else [1.0, 0.5])
            points = sign * (data.x_labeled[data.y_labeled == moon] - centre)
            angle = torch.atan2(points[:, 1], points[:, 0])
            assert (angle * 3 / torch.pi).long().tolist() == [0, 1, 2]
    anywhere = two_moons(seed=0, spread=False, labels_per_class=200)
    assert len(anywhere.x_labeled) == 400


def test_a_pool_of_a_given_size() -> None:
    data = two_moons("faraway", 0.25, pool_size=1000)
    assert len(data.x_unlabeled) == 1000
    assert data.ratio == 0.25


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ood": "near"}, "two-moons has no OOD named 'near'; choose one of: faraway, boundary, random, mixed, none"),
        ({"ood": ["faraway", "faraway"]}, "can be named once"),
        ({"ood": [3]}, "no OOD named 3"),
        ({"ood": "faraway", "ratio": 1}, "at least 0 and less than 1, got 1"),
        ({"ood": "faraway", "ratio": -0.1}, "at least 0 and less than 1"),
        ({"ood": "faraway", "ratio": float("nan")}, "at least 0 and less than 1"),
        ({"ood": "faraway", "ratio": "half"}, "at least 0 and less than 1"),
        ({"ratio": 0.5}, "needs a kind of OOD"),
        ({"ood": "none", "ratio": 0.5}, "needs a kind of OOD"),
        ({"ood": "faraway", "ratio": 0.9, "pool_size": 1}, "has no sample in distribution"),
        ({"unlabeled": 0}, "unlabeled must be a whole number of at least 1, got 0"),
        ({"pool_size": 2.5}, "pool_size must be a whole number"),
        ({"labels_per_class": 0}, "labels_per_class must be"),
        ({"validation": -1}, "validation must be"),
        ({"test": None}, "test must be"),
        ({"noise": -1}, "noise must be"),
        ({"noise": float("nan")}, "noise must be"),
        ({"seed": -1}, "seed must be"),
        ({"seed": 0.5}, "seed must be"),
    ],
)
def test_bad_arguments_are_told(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ev.EvidentiaError, match=message):
        two_moons(**arguments)
