"""Pictures of a pool: they show what they claim, fit on their paper, and stand all kinds of pools."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.style
import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from torch import Tensor
from torch.utils.data import TensorDataset

from evidentia import EvidentiaError, MissingExtraError
from evidentia.reports import (
    decision_boundaries,
    decision_boundary,
    pool_picture,
    save_figure,
    weight_curves,
)
from evidentia.reports.semisup_points import MOST_POINTS, chosen_points, find_plane
from evidentia.semisup import (
    PoolReview,
    SemiSupervisedClassifier,
    SemiSupervisedData,
    from_arrays,
    load_pool,
    two_moons,
)


def review(size: int = 100, classes: int = 3, **changes: Any) -> PoolReview:
    values: dict[str, Any] = {
        "weights": torch.rand(size),
        "labels": torch.arange(size) % classes,
        "confidence": torch.rand(size),
    }
    return PoolReview(**values | changes)


def images(size: int, channels: int = 1, height: int = 8, width: int = 8) -> Tensor:
    return torch.rand(size, channels, height, width)


def texts(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


def legend(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def assert_fits(figure: Any) -> None:
    """Everything that is written lies on the paper, and no gallery or panel lies on another."""
    FigureCanvasAgg(figure).draw()
    boxes = [ax.get_tightbbox() for ax in figure.axes]
    for part in [*boxes, *[legend.get_window_extent() for legend in figure.legends]]:
        assert part.x0 >= -1.5
        assert part.y0 >= -1.5
        assert part.x1 <= figure.bbox.width + 1.5
        assert part.y1 <= figure.bbox.height + 1.5
    for index, first in enumerate(boxes):
        for second in boxes[index + 1 :]:
            wide = min(first.x1, second.x1) - max(first.x0, second.x0)
            high = min(first.y1, second.y1) - max(first.y0, second.y0)
            assert wide <= 1.5 or high <= 1.5


def test_images_are_shown_in_two_galleries_with_the_weight_under_each() -> None:
    pool = review(100, classes=10)
    figure = pool_picture(pool, images(100))
    most, least, weights, groups = figure.axes
    assert len(most.images) == len(least.images) == 60
    assert [label.get_text() for label in most.get_yticklabels()] == [str(label) for label in range(10)]
    first = torch.argsort(pool.weights[::10], descending=True)[:6] * 10
    assert texts(most)[:6] == [f"{float(pool.weights[row]):.2f}" for row in first]
    worst = pool.least_trusted(60).tolist()
    assert texts(least) == [f"{int(pool.labels[row])}: {float(pool.weights[row]):.2f}" for row in worst]
    assert weights.get_title() == f"weights, mean {float(pool.weights.mean()):.2f}"
    assert groups.get_title() == "by predicted class"


def test_galleries_have_their_rows_at_one_height() -> None:
    most, least, *_ = pool_picture(
        review(90, classes=4, class_names=("airplane", "bird", "cat", "dog")), images(90)
    ).axes
    assert (len(most.images), len(least.images)) == (24, 36)
    assert most.get_ylim() == least.get_ylim()
    tops = [[image.get_extent()[3] for image in ax.images[:24:6]] for ax in (most, least)]
    assert tops[0] == tops[1]


def test_the_images_shown_are_those_of_the_pool() -> None:
    x = images(20)
    pool = review(20, classes=1, weights=torch.linspace(0, 1, 20))
    most, least, *_ = pool_picture(pool, x).axes
    assert np.allclose(most.images[0].get_array(), x[19, 0])
    assert np.allclose(least.images[0].get_array(), x[0, 0])


def test_frames_say_what_was_kept_and_stars_what_is_out_of_distribution() -> None:
    ood = torch.arange(30) < 4
    pool = review(30, classes=1, weights=torch.linspace(0, 1, 30), is_ood=ood)
    figure = pool_picture(pool, images(30))
    least = figure.axes[1]
    assert [text.endswith("*") for text in texts(least)] == ood.tolist()
    shades = [patch.get_edgecolor() for patch in least.patches]
    assert len(set(shades)) == 2
    assert [shade == shades[0] for shade in shades] == (~pool.kept).tolist()
    assert legend(figure) == ["kept", "thrown out", "in distribution", "* out of distribution (OOD)"]


def test_many_classes_have_one_image_each_and_more_than_fit_are_said_to_be_left_out() -> None:
    most = pool_picture(review(500, classes=50), images(500)).axes[0]
    assert len(most.images) == 50
    most, _, _, groups = pool_picture(review(500, classes=100), images(500)).axes
    assert len(most.images) == 60
    assert most.get_title() == "most trusted of 60 of 100 classes"
    assert groups.get_title() == "20 of 100 classes, most thrown out"
    assert len(groups.get_yticklabels()) == 20


def test_clusters_that_share_a_weight_have_a_row_each_among_the_least_trusted() -> None:
    clusters = torch.arange(400) % 20
    pool = review(400, classes=10, weights=clusters / 20, clusters=clusters)
    _, least, _, groups = pool_picture(pool, images(400)).axes
    assert [label.get_text() for label in least.get_yticklabels()] == [f"#{cluster}" for cluster in range(10)]
    assert [label.get_text().split()[0] for label in groups.get_yticklabels()] == [str(c) for c in range(19, -1, -1)]
    own = review(400, classes=10, clusters=clusters)
    assert pool_picture(own, images(400)).axes[1].get_title() == "least trusted, with the predicted class"


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_channels_and_values_of_all_kinds_can_be_drawn(channels: int) -> None:
    figure = pool_picture(review(20), 5 * torch.randn(20, channels, 6, 9))
    assert all(0 <= image.get_array().min() <= image.get_array().max() <= 1 for image in figure.axes[0].images)
    assert figure.axes[0].get_xlabel() == ("grey is the mean of 2 channels" if channels == 2 else "")


def test_points_are_dots_if_kept_and_crosses_if_not_coloured_by_weight() -> None:
    pool, x = review(100), torch.randn(100, 2)
    labeled = torch.randn(4, 2), torch.tensor([0, 1, 0, 2])
    figure = pool_picture(pool, x, labeled=labeled)
    kept, thrown, *marked = figure.axes[0].collections
    for drawn, mask in ((kept, pool.kept), (thrown, ~pool.kept)):
        assert np.allclose(drawn.get_offsets(), x[mask])
        assert np.allclose(drawn.get_array(), pool.weights[mask])
    assert [len(some.get_offsets()) for some in marked] == [2, 1, 1]
    assert min(some.get_sizes()[0] for some in marked) > max(kept.get_sizes()[0], thrown.get_sizes()[0])
    assert legend(figure) == ["kept", "thrown out", "labeled 0", "labeled 1", "labeled 2"]
    assert figure.axes[0].get_xlabel() == "first input"


def test_other_vectors_are_projected_and_the_axes_say_so() -> None:
    x = torch.randn(200, 5) * torch.tensor([1.0, 10.0, 0.1, 3.0, 0.1])
    ax = pool_picture(review(200), x).axes[0]
    assert ax.get_xlabel().startswith("first principal component (9")
    assert ax.get_ylabel().startswith("second principal component (")
    plane = find_plane(x)
    middle = x.double() - x.double().mean(0)
    assert torch.allclose(plane.directions.T @ plane.directions, torch.eye(2).double(), atol=1e-9)
    variance = torch.linalg.eigvalsh(middle.T @ middle).flip(0)[:2]
    assert np.allclose(np.square(plane.points(x)).sum(0), variance)
    assert find_plane(x[:1]).points(x[:1]).shape == (1, 2)


def test_features_of_other_units_are_drawn_in_the_scale_of_training(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    x, pool = torch.randn(20, 4, generator=generator), torch.randn(300, 4, generator=generator)
    units, labels = torch.tensor([30_000.0, 1.0, 1.0, 1.0]), torch.arange(20) % 2
    clf = SemiSupervisedClassifier("entropy", standardise=True, updates=1, progress=False)
    clf.fit((units * x, labels), units * pool).save(tmp_path / "clf.safetensors")
    loaded = SemiSupervisedClassifier.load(tmp_path / "clf.safetensors")
    for each in (clf, loaded):
        ax = pool_picture(each.review(), units * pool, labeled=(units * x, labels)).axes[0]
        # Income is not all there is to see.
        share = int(ax.get_xlabel().partition("(")[2].partition("%")[0])
        assert 25 <= share < 50
        assert max(abs(edge) for edge in ax.get_xlim()) < 10
        assert np.abs(np.concatenate([part.get_offsets() for part in ax.collections])).max() < 10
    pairs = clf.fit((units[:2] * x[:, :2], labels), units[:2] * pool[:, :2]).review()
    assert max(pool_picture(pairs, units[:2] * pool[:, :2]).axes[0].get_xlim()) > 10_000


def test_single_numbers_are_drawn_at_the_height_of_their_weight() -> None:
    pool = review(50, weights=torch.full((50,), 0.75))
    ax = pool_picture(pool, torch.randn(50, 1), labeled=(torch.randn(2, 1), torch.tensor([0, 1]))).axes[0]
    assert np.allclose(ax.collections[0].get_offsets()[:, 1], 0.75)
    assert ax.get_ylabel() == "weight"


def test_a_number_that_stands_for_nothing_does_not_make_all_others_a_single_point() -> None:
    x = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    x[7] = -9999.0
    ax = pool_picture(PoolReview(torch.ones(200), torch.zeros(200).long(), torch.ones(200)), x).axes[0]
    places = np.concatenate([np.asarray(part.get_offsets()) for part in ax.collections])
    assert np.abs(places).max() < 5
    assert np.allclose(np.delete(places, 7, axis=0), np.delete(x.numpy(), 7, axis=0))
    assert ax.get_title() == "1 far beyond the others, drawn at the edge"
    wide = torch.randn(200, 20, generator=torch.Generator().manual_seed(0))
    wide[7] = -9999.0
    assert np.median(np.abs(find_plane(wide).points(wide))) > 0.3


def test_an_image_far_beyond_all_others_leaves_them_as_they_are() -> None:
    images = torch.rand(30, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    images[3] = -9999.0
    axes = pool_picture(PoolReview(torch.linspace(0, 1, 30), torch.zeros(30).long(), torch.ones(30)), images).axes
    drawn = [np.asarray(image.get_array()) for ax in axes for image in ax.get_images()]
    assert sum(float(picture.std()) > 0.1 for picture in drawn) >= len(drawn) - 2
    assert all(picture.min() >= 0 and picture.max() <= 1 for picture in drawn)


@pytest.mark.parametrize(("classes", "marks"), [(6, 6), (8, 8), (100, 1)])
def test_every_marker_of_labeled_samples_is_in_the_legend(classes: int, marks: int) -> None:
    names = tuple(f"class {n} of so many" for n in range(classes))
    review = PoolReview(torch.ones(50), torch.zeros(50).long(), torch.ones(50), class_names=names)
    labeled = (torch.randn(classes, 2), torch.arange(classes))
    figure = pool_picture(review, torch.randn(50, 2), labeled=labeled)
    texts = [text.get_text() for text in figure.legends[0].get_texts() if text.get_text().startswith("labeled")]
    assert len(texts) == len(set(texts)) == marks


def test_large_pools_are_thinned_the_same_way_each_time_and_keep_what_is_rare() -> None:
    weights = torch.ones(50_000)
    weights[torch.arange(0, 50_000, 2500)] = 0
    pool = review(50_000, weights=weights)
    rows = chosen_points(pool)
    assert len(rows) == len(np.unique(rows)) == MOST_POINTS
    assert np.array_equal(rows, chosen_points(pool))
    assert (weights[torch.from_numpy(rows)] == 0).sum() == 20
    ax = pool_picture(pool, torch.randn(50_000, 2)).axes[0]
    assert ax.get_title() == "4,000 of 50,000 samples drawn: 3,980 kept, 20 thrown out"
    # In proportion where neither is rare.
    half = chosen_points(review(50_000, weights=torch.arange(50_000) % 4 / 4))
    assert abs((half % 4 < 2).mean() - 0.5) < 0.01


def test_the_truth_is_told_where_it_is_known() -> None:
    pool = review(
        5,
        weights=torch.tensor([0.9, 0.7, 0.2, 0.6, 0.1]),
        labels=torch.tensor([0, 0, 0, 1, 1]),
        is_ood=torch.tensor([False, False, False, True, True]),
        class_names=("cat", "dog", "cow"),
    )
    figure = pool_picture(pool, torch.randn(5, 2), title="pets")
    assert figure.axes[1].get_title() == "w_in 0.60,  w_ood 0.35,  AUROC 0.83"
    assert figure._suptitle.get_text().split("\n") == [
        "pets: 3 of 5 samples kept, 2 thrown out",
        "mistakes: 1 of 2 OOD kept, 1 of 3 in distribution thrown out",
    ]
    groups = figure.axes[2]
    assert [label.get_text() for label in groups.get_yticklabels()] == ["cat", "dog", "cow"]
    assert texts(groups) == ["0% OOD", "100% OOD"]
    kept, thrown = groups.containers
    assert [bar.get_width() for bar in kept] == [2, 1, 0]
    assert [bar.get_width() for bar in thrown] == [1, 1, 0]
    assert legend(figure)[2:] == ["in distribution", "out of distribution (OOD)"]


def test_a_pool_that_was_not_used_is_not_said_to_be_kept() -> None:
    pool = review(50, weights=torch.ones(50), is_ood=torch.arange(50) < 20, used=False)
    title = pool_picture(pool, torch.randn(50, 2), title="pets")._suptitle.get_text()
    assert title == "pets: none of the 50 samples were used in training"


def test_a_clean_pool_has_no_ood_to_be_told_of() -> None:
    figure = pool_picture(review(50, is_ood=torch.zeros(50, dtype=torch.bool)), torch.randn(50, 2))
    assert "OOD" not in figure._suptitle.get_text()
    assert legend(figure) == ["kept", "thrown out", "in distribution"]
    assert texts(figure.axes[2]) == []


def test_bars_can_be_by_class_although_there_are_clusters() -> None:
    pool = review(60, clusters=torch.arange(60) % 7)
    assert pool_picture(pool, torch.randn(60, 2)).axes[2].get_ylabel() == "cluster (most common class)"
    assert pool_picture(pool, torch.randn(60, 2), by="class").axes[2].get_title() == "by predicted class"


EDGES = {
    "all weights equal": {"weights": torch.full((120,), 0.3)},
    "all zero": {"weights": torch.zeros(120), "is_ood": torch.arange(120) % 2 == 0},
    "all kept": {"weights": torch.ones(120)},
    "one class": {"labels": torch.zeros(120, dtype=torch.int64)},
    "fifty classes": {
        "labels": torch.arange(120) % 50,
        "class_names": tuple(f"a rather long name {label}" for label in range(50)),
        "is_ood": torch.arange(120) % 3 == 0,
    },
    "no OOD": {"is_ood": torch.zeros(120, dtype=torch.bool)},
    "nothing else": {"is_ood": torch.ones(120, dtype=torch.bool)},
    "clusters": {"clusters": torch.arange(120) % 30, "weights": torch.arange(120) % 30 / 30},
}


@pytest.mark.parametrize("shape", [(2,), (1, 8, 8)], ids=str)
@pytest.mark.parametrize("changes", EDGES.values(), ids=EDGES)
def test_every_pool_fits_on_its_picture(changes: dict[str, Any], shape: tuple[int, ...]) -> None:
    figure = pool_picture(review(120, **changes), torch.rand(120, *shape), title="a title")
    assert_fits(figure)


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 2), (3, 12, 5), (1, 5, 12)], ids=str)
def test_samples_of_every_shape_fit(shape: tuple[int, ...]) -> None:
    assert_fits(pool_picture(review(120), torch.rand(120, *shape)))


@pytest.mark.parametrize("size", [1, 2, 7])
def test_tiny_pools_fit_too(size: int) -> None:
    for x in (images(size), torch.randn(size, 2), torch.zeros(size, 4)):
        assert_fits(pool_picture(review(size, classes=2), x))


def test_long_titles_are_broken() -> None:
    figure = pool_picture(review(20), torch.randn(20, 2), title="a word " * 30)
    FigureCanvasAgg(figure).draw()
    box = figure._suptitle.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width


@pytest.mark.parametrize(
    ("x", "labeled", "message"),
    [
        (torch.rand(99, 2), None, "the review is of 100 samples and x holds 99"),
        (torch.rand(100), None, r"of shape \(n, ...\), got shape \(100,\)"),
        ([[0.0]], None, "the review is of 100 samples and x holds 1"),
        ("abc", None, "unlabeled inputs must be a tensor or an array, got str"),
        (torch.full((100, 2), torch.nan), None, "x must be finite"),
        (torch.rand(100, 2), (torch.rand(3, 3), [0, 1, 0]), r"inputs of shape \(m, 2\) and m classes, got shapes"),
        (torch.rand(100, 2), (torch.full((3, 2), torch.inf), [0, 1, 0]), "the labeled inputs must be finite"),
    ],
)
def test_what_does_not_fit_the_review_is_refused(x: Any, labeled: Any, message: str) -> None:
    with pytest.raises(EvidentiaError, match=message):
        pool_picture(review(100), x, labeled=labeled)


def test_it_takes_what_fit_takes() -> None:
    x, names = np.random.default_rng(0).normal(size=(60, 2)), ["cat", "dog"]
    pool = review(60, classes=2, class_names=names)
    few = (x[:4], np.array(["dog", "cat", "dog", "cat"]))
    figures = [
        pool_picture(pool, x, labeled=few),
        pool_picture(pool, x.tolist(), labeled=[few[0].tolist(), few[1].tolist()]),
        pool_picture(pool, TensorDataset(torch.as_tensor(x)), labeled=(x[:4], np.array([1, 0, 1, 0], dtype=np.uint8))),
    ]
    for figure in figures:
        assert legend(figure)[2:] == ["labeled cat", "labeled dog"]
        places = [mark.get_offsets() for mark in figure.axes[0].collections[-2:]]
        np.testing.assert_allclose(np.concatenate(places), x[[1, 3, 0, 2]], rtol=1e-6)
    grey = np.random.default_rng(0).integers(0, 256, (60, 12, 12), dtype=np.uint8)
    shown = pool_picture(pool, grey, labeled=(grey[:4], few[1]))
    assert "most trusted" in shown.axes[0].get_title()
    with pytest.raises(EvidentiaError, match=r"hold 'cow', which is none of the classes \(cat, dog\)"):
        pool_picture(pool, x, labeled=(x[:2], ["cat", "cow"]))


@pytest.mark.parametrize("shape", [(60, 2), (60, 1, 8, 8)])
def test_names_with_dollars_are_no_mathematics(shape: tuple[int, ...]) -> None:
    """Which a name such as these would be refused as, when all is drawn."""
    names = ("p $\\q$", "$2")
    pool = review(60, classes=2, class_names=names)
    figure = pool_picture(pool, torch.rand(shape), title=names[0])
    assert_fits(figure)
    data = two_moons(test=0)
    data = replace(data, class_names=names)
    figure = decision_boundary(linear, data, title=names[0])
    assert figure.axes[0].get_title() == names[0]
    assert legend(figure)[:2] == [f"labeled {name}" for name in names]
    assert_fits(figure)


def test_bars_by_something_else_are_refused() -> None:
    with pytest.raises(EvidentiaError, match="by 'cluster' or by 'class', got 'colour'"):
        pool_picture(review(10), torch.rand(10, 2), by="colour")  # type: ignore[arg-type]
    with pytest.raises(EvidentiaError, match="not in clusters"):
        pool_picture(review(10), torch.rand(10, 2), by="cluster")


def linear(points: Tensor) -> Tensor:
    probability = torch.sigmoid(8 * (0.25 - points[:, 1]))
    return torch.stack([1 - probability, probability], dim=1)


def three_classes() -> SemiSupervisedData:
    centres = torch.tensor([[0.0, 2.0], [2.0, -1.0], [-2.0, -1.0]])
    return from_arrays((centres, torch.arange(3)), centres.repeat(20, 1) + 0.3 * torch.randn(60, 2))


@pytest.mark.parametrize("kind", ["faraway", "boundary", None])
def test_faraway_samples_do_not_press_the_moons_into_a_corner(kind: str | None) -> None:
    data = two_moons(kind)
    ax = decision_boundary(linear, data, title="line").axes[0]
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    assert high < 2
    assert bool((data.x_test[:, 1] < high).all())
    x, y = data.x_unlabeled.unbind(1)
    outside = int(((x < left) | (x > right) | (y < low) | (y > high)).sum())
    note = f"{outside:,} of {len(x):,} pool samples lie outside the frame"
    assert ax.get_xlabel() == (note if outside else "")
    right = float((linear(data.x_test).argmax(1) == data.y_test).double().mean())
    assert ax.get_title() == f"line: {right:.1%} right on the test"
    # The pool, in distribution or not, then the labels of both classes, large.
    shown = [some for some in ax.collections if len(some.get_offsets()) > 1]
    assert sum(len(some.get_offsets()) for some in shown) == len(x) - outside + 6
    assert [len(some.get_offsets()) for some in shown[-2:]] == [3, 3]


def test_the_whole_pool_can_be_framed() -> None:
    ax = decision_boundary(linear, two_moons("faraway"), whole_pool=True).axes[0]
    assert ax.get_ylim()[1] > 9
    assert ax.get_xlabel() == ""


def test_ood_is_in_the_legend_if_it_is_in_the_frame() -> None:
    moons = ["labeled upper moon", "labeled lower moon", "pool, in distribution"]
    assert legend(decision_boundary(linear, two_moons("faraway"))) == moons
    assert legend(decision_boundary(linear, two_moons("boundary"))) == [*moons, "pool, out of distribution"]


@pytest.mark.parametrize("count", [1, 2, 4, 5])
def test_boundaries_stand_beside_each_other_on_one_frame(count: int) -> None:
    figure = decision_boundaries({f"method {k}": linear for k in range(count)}, two_moons("boundary", test=50))
    *panels, bar = figure.axes
    assert [ax.get_title().split(":")[0] for ax in panels] == [f"method {k}" for k in range(count)]
    assert len({(ax.get_xlim(), ax.get_ylim()) for ax in panels}) == 1
    assert bar.get_ylabel() == "probability of lower moon"
    assert_fits(figure)


def test_three_classes_and_no_test_can_be_drawn() -> None:
    data = three_classes()
    figure = decision_boundary(lambda points: torch.softmax(-torch.cdist(points, data.x_labeled), 1), data)
    assert legend(figure) == ["labeled class 0", "labeled class 1", "labeled class 2", "pool"]
    assert figure.axes[0].get_title() == ""
    assert_fits(figure)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_a_classifier_of_one_opinion_can_be_drawn(value: float) -> None:
    def constant(points: Tensor) -> Tensor:
        return torch.tensor([1 - value, value]).expand(len(points), 2)

    assert_fits(decision_boundary(constant, two_moons(test=0), resolution=20))


def test_predict_gets_points_like_the_data_and_no_gradients() -> None:
    seen = []

    def spy(points: Tensor) -> Tensor:
        seen.append((points.dtype, points.shape[1], torch.is_grad_enabled()))
        return linear(points)

    decision_boundary(spy, two_moons(test=0), resolution=10)
    assert set(seen) == {(torch.float32, 2, False)}


@pytest.mark.parametrize(
    ("predict", "message"),
    [
        (lambda points: points[:, 0], r"the probabilities of 'mine' must be a tensor of shape \(100, 2\) for 100"),
        (lambda points: points.tolist(), "got list"),
        (lambda points: 3 * torch.ones_like(points), r"must lie in \[0, 1\]"),
        (lambda points: torch.full_like(points, torch.nan), "must be finite"),
    ],
)
def test_what_is_not_probabilities_is_refused(predict: Any, message: str) -> None:
    with pytest.raises(EvidentiaError, match=message):
        decision_boundary(predict, two_moons(), title="mine", resolution=10)


def test_other_data_and_no_classifier_are_refused() -> None:
    with pytest.raises(EvidentiaError, match=r"must be of shape \(2,\), got \(1, 8, 8\)"):
        decision_boundary(linear, load_pool("digits"))
    with pytest.raises(EvidentiaError, match="at least one classifier"):
        decision_boundaries({}, two_moons())
    with pytest.raises(EvidentiaError, match="resolution must be a whole number of at least 2, got 1"):
        decision_boundary(linear, two_moons(), resolution=1)


HISTORY = [
    {
        "update": update,
        "weight": 0.5,
        "w_in": 0.9,
        "w_ood": 0.1,
        "loss": 2.0,
        "labeled_loss": 1.0,
        "unlabeled_loss": 0.1,
    }
    | {"validation_accuracy": 0.8}
    for update in range(0, 200, 10)
]


def test_weights_losses_and_accuracy_have_a_panel_each() -> None:
    figure = weight_curves(HISTORY, title="run")
    weights, losses, accuracy = figure.axes
    assert [line.get_label() for line in weights.get_lines()] == ["w_in", "w_ood", "whole pool"]
    assert [line.get_label() for line in losses.get_lines()] == ["total", "labeled", "unlabeled"]
    assert accuracy.get_lines()[0].get_ydata()[0] == pytest.approx(80)
    assert weights.get_lines()[1].get_xdata().tolist() == list(range(0, 200, 10))
    assert_fits(figure)


def test_what_the_history_lacks_is_left_out() -> None:
    history = [{"update": 20, "loss": 0.1}, {"update": 0, "loss": 3.0, "w_in": None}, {"update": 10, "loss": torch.nan}]
    (losses,) = weight_curves(history).axes
    (line,) = losses.get_lines()
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([0, 20], [3.0, 0.1])
    assert_fits(weight_curves([{"update": 0, "weight": torch.tensor(1.0)}]))


def test_losses_over_orders_of_magnitude_have_a_logarithmic_scale() -> None:
    for losses, scale in (
        ([1.0, 0.5], "linear"),
        ([1.0, 1e-4], "log"),
        ([1.0, 0.0], "linear"),
        ([1.0, -2.0], "linear"),
    ):
        figure = weight_curves([{"update": k, "loss": loss} for k, loss in enumerate(losses)])
        (ax,) = figure.axes
        assert ax.get_yscale() == scale
        FigureCanvasAgg(figure).draw()
        # In a report mathematics would be shown as it is spelt.
        assert not any("$" in label.get_text() for label in [*ax.get_yticklabels(), *ax.get_yticklabels(minor=True)])


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ([], "the history is empty"),
        ([{"update": 0, "loss": 1.0}, {"loss": 1.0}], "'update'; entry 1 has none"),
        ([{"update": 0, "speed": 1.0}], "nothing to draw; it may hold: w_in, w_ood, weight, loss"),
    ],
)
def test_histories_without_curves_are_refused(history: Any, message: str) -> None:
    with pytest.raises(EvidentiaError, match=message):
        weight_curves(history)


FIGURES = {
    "images": lambda: pool_picture(review(60, is_ood=torch.arange(60) % 2 == 0), images(60)),
    "points": lambda: pool_picture(review(60), torch.randn(60, 2)),
    "boundary": lambda: decision_boundary(linear, two_moons("boundary"), resolution=30),
    "weights": lambda: weight_curves(HISTORY),
}


@pytest.fixture(params=FIGURES.values(), ids=FIGURES)
def draw(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_pictures_can_be_drawn_on_dark_paper(draw: Any) -> None:
    with matplotlib.style.context("dark_background"):
        canvas = FigureCanvasAgg(draw())
        canvas.draw()
    assert np.asarray(canvas.buffer_rgba())[..., :3].mean() < 128


def test_pictures_are_saved_with_the_same_bytes_each_time(draw: Any, tmp_path: Path) -> None:
    for name in ("first.svg", "second.svg"):
        torch.manual_seed(0)
        save_figure(draw(), tmp_path / name)
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()


def test_without_matplotlib_the_error_names_the_extra(draw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"needs matplotlib.*pip install 'evidentia\[report\]'"):
        draw()
