"""The review of a pool: counts, order, groups, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import evidentia as ev
from evidentia._support.errors import MissingExtraError
from evidentia.evaluation import auroc
from evidentia.semisup import PoolReview, SemiSupervisedClassifier
from evidentia.semisup.review import KEPT_FROM


def make(**changes: Any) -> PoolReview:
    values: dict[str, Any] = {
        "weights": torch.tensor([0.9, 0.1, 0.5, 0.1, 0.9, 0.49]),
        "labels": torch.tensor([0, 0, 2, 2, 2, 0]),
        "confidence": torch.tensor([0.9, 0.6, 0.8, 0.5, 0.7, 0.6]),
        "uncertainty": torch.tensor([0.1, 0.9, 0.4, 0.8, 0.2, 3.0]),
        "clusters": torch.tensor([4, 1, 4, 1, 4, 7]),
        "is_ood": torch.tensor([False, True, False, True, True, False]),
        "class_names": ("cat", "dog", "cow"),
    }
    return PoolReview(**values | changes)


def bare(weights: torch.Tensor, **changes: Any) -> PoolReview:
    return PoolReview(weights, torch.zeros(len(weights), dtype=torch.int64), torch.ones(len(weights)), **changes)


def test_kept_is_a_weight_of_at_least_the_threshold() -> None:
    assert KEPT_FROM == 0.5
    assert make().kept.tolist() == [True, False, True, False, True, False]


def test_trust_orders_by_weight_and_then_by_row() -> None:
    review = make()
    assert review.most_trusted(4).tolist() == [0, 4, 2, 5]
    assert review.least_trusted(4).tolist() == [1, 3, 5, 2]
    assert review.most_trusted(100).tolist() == [0, 4, 2, 5, 1, 3]


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=40), st.integers(1, 50))
def test_order_is_that_of_a_stable_sort(weights: list[float], count: int) -> None:
    review = bare(torch.tensor(weights))
    rows = range(len(weights))
    assert review.most_trusted(count).tolist() == sorted(rows, key=lambda row: -weights[row])[:count]
    assert review.least_trusted(count).tolist() == sorted(rows, key=lambda row: weights[row])[:count]


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_counts_are_whole_and_positive(count: Any) -> None:
    for ask in (make().most_trusted, make().least_trusted):
        with pytest.raises(ev.EvidentiaError, match="whole number of at least 1"):
            ask(count)


def test_summary_counts_and_scores() -> None:
    review = make()
    figures = review.summary()
    assert {name: figures[name] for name in ("samples", "kept", "thrown_out", "ood", "ood_kept", "in_thrown_out")} == {
        "samples": 6,
        "kept": 3,
        "thrown_out": 3,
        "ood": 3,
        "ood_kept": 1,
        "in_thrown_out": 1,
    }
    assert figures["mean_weight"] == pytest.approx(2.99 / 6)
    assert figures["w_in"] == pytest.approx((0.9 + 0.5 + 0.49) / 3)
    assert figures["w_ood"] == pytest.approx((0.1 + 0.1 + 0.9) / 3)
    assert figures["auroc"] == pytest.approx(float(auroc(1 - review.weights.double(), review.is_ood)))
    assert json.loads(json.dumps(figures)) == figures


def test_a_pool_that_was_not_used_is_not_called_kept() -> None:
    review = make(used=False)
    assert repr(review) == "PoolReview(6 samples, none of which were used in training)"
    assert review.summary()["used"] is False
    assert not review.to_frame()["used"].any()
    assert "used" not in make().summary()
    assert "used" not in make().to_frame()


def test_auroc_tells_weights_apart_that_round_to_one_uncertainty() -> None:
    weights = torch.tensor([1e-12, 2e-12])
    assert bare(weights, is_ood=torch.tensor([True, False])).summary()["auroc"] == 1.0


def test_summary_without_truth_says_nothing_of_it() -> None:
    assert set(make(is_ood=None).summary()) == {"samples", "kept", "thrown_out", "mean_weight"}


@pytest.mark.parametrize(("ood", "missing"), [(False, "w_ood"), (True, "w_in")])
def test_what_has_no_samples_is_none(ood: bool, missing: str) -> None:
    figures = bare(torch.tensor([0.2, 0.8]), is_ood=torch.tensor([ood, ood])).summary()
    assert figures["auroc"] is None
    assert figures[missing] is None
    assert figures["w_ood" if ood else "w_in"] == pytest.approx(0.5)
    json.dumps(figures, allow_nan=False)


def test_clusters_come_by_weight_with_their_most_common_class() -> None:
    rows = make().by_cluster()
    assert [row["cluster"] for row in rows] == [4, 7, 1]
    assert [row["class"] for row in rows] == ["cow", "cat", "cat"]
    assert [(row["size"], row["kept"], row["thrown_out"]) for row in rows] == [(3, 3, 0), (1, 0, 1), (2, 0, 2)]
    assert [row["weight"] for row in rows] == pytest.approx([2.3 / 3, 0.49, 0.1])
    assert [row["ood_share"] for row in rows] == pytest.approx([1 / 3, 0, 1])
    assert json.loads(json.dumps(rows)) == rows


def test_clusters_of_one_weight_come_by_number_and_without_truth_have_no_share() -> None:
    rows = bare(torch.ones(4), clusters=torch.tensor([3, 0, 2, 3])).by_cluster()
    assert [row["cluster"] for row in rows] == [0, 2, 3]
    assert all("ood_share" not in row for row in rows)


def test_without_clusters_there_is_nothing_by_cluster() -> None:
    with pytest.raises(ev.EvidentiaError, match="not in clusters; by_class"):
        make(clusters=None).by_cluster()


def test_every_class_has_a_row_even_if_it_is_never_predicted() -> None:
    cat, dog, cow = make().by_class()
    assert (cat["class"], cat["size"], cat["kept"], cat["thrown_out"]) == ("cat", 3, 1, 2)
    assert (dog["class"], dog["size"], dog["kept"], dog["weight"], dog["ood_share"]) == ("dog", 0, 0, None, None)
    assert (cow["label"], cow["size"], cow["kept"]) == (2, 3, 2)
    assert cat["weight"] == pytest.approx((0.9 + 0.1 + 0.49) / 3)


def test_classes_without_names_are_numbers() -> None:
    review = make(class_names=())
    assert review.num_classes == 3
    assert [row["class"] for row in review.by_class()] == ["0", "1", "2"]
    assert review.to_frame()["label"].tolist() == review.labels.tolist()


def test_the_last_classes_have_rows_too_where_they_collapse(tmp_path: Path) -> None:
    review = make(class_names=(), num_classes=6)
    assert [row["size"] for row in review.by_class()][3:] == [0, 0, 0]
    x, y = torch.randn(42, 2), torch.arange(42) % 6
    clf = SemiSupervisedClassifier("pi-model", "none", norm="none", updates=1, progress=False).fit((x, y), x[:3])
    clf.save(tmp_path / "clf")
    assert clf.review().num_classes == SemiSupervisedClassifier.load(tmp_path / "clf").review().num_classes == 6
    with pytest.raises(ev.EvidentiaError, match="num_classes is 2, and names or labels of the review are of 3"):
        make(num_classes=2)


@given(st.integers(1, 60), st.integers(0, 100))
def test_groups_add_up_to_the_pool(size: int, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    labels, clusters = (torch.randint(5, (size,), generator=rng) for _ in range(2))
    review = PoolReview(torch.rand(size, generator=rng), labels, torch.rand(size, generator=rng), clusters=clusters)
    figures = review.summary()
    for rows in (review.by_cluster(), review.by_class()):
        for part, total in (("size", "samples"), ("kept", "kept"), ("thrown_out", "thrown_out")):
            assert sum(row[part] for row in rows) == figures[total]
        weight = sum(row["size"] * (row["weight"] or 0.0) for row in rows) / size
        assert weight == pytest.approx(figures["mean_weight"])


def test_frame_has_a_row_a_sample_and_a_column_for_what_is_known() -> None:
    frame = make().to_frame()
    assert list(frame.columns) == ["weight", "kept", "label", "confidence", "uncertainty", "cluster", "is_ood"]
    assert frame["label"].tolist() == ["cat", "cat", "cow", "cow", "cow", "cat"]
    assert frame["kept"].tolist() == make().kept.tolist()
    assert list(bare(torch.ones(2)).to_frame().columns) == ["weight", "kept", "label", "confidence"]


def test_without_pandas_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pandas.*evidentia\[report\]"):
        make().to_frame()


def test_it_is_kept_without_gradients_and_cannot_be_changed() -> None:
    review = make(weights=torch.rand(6, requires_grad=True))
    assert not review.weights.requires_grad
    with pytest.raises(AttributeError):
        review.weights = torch.ones(6)  # type: ignore[misc]


def test_repr_tells_the_verdict_and_the_scores_that_are_known() -> None:
    assert len(make()) == 6
    assert repr(bare(torch.tensor([1.0, 0.0]))) == "PoolReview(2 samples: 1 kept, 1 thrown out; mean weight 0.500)"
    clean = bare(torch.tensor([1.0, 0.0]), is_ood=torch.tensor([False, False]))
    assert repr(clean) == "PoolReview(2 samples: 1 kept, 1 thrown out; w_in 0.500)"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": torch.empty(0)}, "weights has 0 entries and labels has 6"),
        ({"weights": [0.1] * 6}, "weights must be a tensor of floating numbers, one a sample, got list"),
        ({"weights": torch.rand(6, 1)}, r"shape \(n,\), one a sample of the pool, got torch.float32 of shape \(6, 1\)"),
        ({"weights": torch.tensor(0.5)}, r"got torch.float32 of shape \(\)"),
        ({"weights": torch.full((6,), 1.2)}, r"weights must lie in \[0, 1\], got values from 1.2 to 1.2"),
        ({"weights": torch.full((6,), torch.nan)}, "weights must be finite, got NaN"),
        ({"labels": None}, "labels must be a tensor of int64, one a sample, got NoneType"),
        ({"labels": torch.rand(6)}, "labels must be int64"),
        ({"labels": torch.zeros(5, dtype=torch.int64)}, "weights has 6 entries and labels has 5"),
        ({"labels": torch.full((6,), -1)}, "classes from 0 on, got -1"),
        ({"labels": torch.full((6,), 3)}, "3 class_names, and labels go up to 3"),
        ({"confidence": torch.full((6,), 2.0)}, r"confidence must lie in \[0, 1\]"),
        ({"uncertainty": torch.full((6,), torch.nan)}, "uncertainty is NaN for 6 of 6 samples"),
        ({"clusters": torch.full((6,), -1)}, "clusters must be numbered from 0 on, got -1"),
        ({"is_ood": torch.zeros(6)}, "is_ood must be bool"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ev.EvidentiaError, match=message):
        make(**changes)


def test_an_empty_pool_is_refused() -> None:
    with pytest.raises(ev.EvidentiaError, match="no pool to review"):
        bare(torch.empty(0))
