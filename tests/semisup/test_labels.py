"""Classes by number or by name, and samples from tables and files."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset

from evidentia import EvidentiaError
from evidentia.semisup import SemiSupervisedClassifier, from_arrays

QUICK: dict[str, Any] = {"updates": 2, "unlabeled_batch": 10, "progress": False}
X = np.random.default_rng(0).normal(size=(20, 3))
NAMES = ["dog", "cat", "dog", "cat"]


class Table:
    """What pandas looks like to numpy, with columns of several dtypes."""

    def __init__(self, rows: Any) -> None:
        self.rows = np.asarray(rows, dtype=object)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.rows

    to_numpy = __array__


class Pairs(Dataset[Any]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, row: int) -> Any:
        return X[row], NAMES[row]


@pytest.mark.parametrize(
    "labeled",
    [(X[:4], NAMES), (X[:4], tuple(NAMES)), (X[:4], np.array(NAMES)), (X[:4], np.array(NAMES, dtype=object)),
     (X[:4], Table(NAMES)), (Table(X[:4]), NAMES), Pairs(), (X[:4], np.array(NAMES).astype("S3")),
     (X[:4], np.array([name.encode() for name in NAMES], dtype=object))],
    ids=["list", "tuple", "array", "objects", "column", "table", "dataset", "bytes", "objects of bytes"],
)  # fmt: skip
def test_names_of_every_kind_become_classes(labeled: Any) -> None:
    data = from_arrays(labeled, X, validation=(X[4:7], ["cat", "cat", "dog"]))
    assert (data.class_names, data.num_classes) == (("cat", "dog"), 2)
    assert data.y_labeled.tolist() == [1, 0, 1, 0]
    assert data.y_validation.tolist() == [0, 0, 1]
    assert torch.equal(data.x_labeled, torch.as_tensor(X[:4]).float())


def test_class_names_fix_the_order() -> None:
    data = from_arrays((X[:4], NAMES), X, class_names=["dog", "cat"], num_classes=2)
    assert data.class_names == ("dog", "cat")
    assert data.y_labeled.tolist() == [0, 1, 0, 1]


def test_numbers_are_numbers_whatever_holds_them() -> None:
    for classes in ([1, 0, 1, 0], np.array([1, 0, 1, 0], dtype=object), Table([1, 0, 1, 0]), np.array([1, 0, 1, 0])):
        assert from_arrays((X[:4], classes), X).y_labeled.tolist() == [1, 0, 1, 0]


def test_whole_numbers_may_be_of_a_floating_dtype() -> None:
    for classes in ([1.0, 0.0, 1, 0], np.array([1.0, 0, 1, 0], dtype=np.float32), torch.tensor([1.0, 0, 1, 0])):
        data = from_arrays((X[:4], classes), X)
        assert (data.y_labeled.dtype, data.y_labeled.tolist()) == (torch.int64, [1, 0, 1, 0])


def test_names_of_classes_may_be_anything_with_a_name(tmp_path: Path) -> None:
    assert from_arrays((X[:4], [1, 0, 1, 0]), X, class_names=None).class_names == ()
    assert from_arrays((X[:4], NAMES), X, class_names=None).class_names == ("cat", "dog")
    clf = SemiSupervisedClassifier("pi-model", "none", **QUICK)
    clf.fit((X[:4], [1, 0, 1, 0]), X, class_names=np.array([3, 5]))
    assert clf.class_names == ("3", "5")
    clf.save(tmp_path / "clf.safetensors")
    assert SemiSupervisedClassifier.load(tmp_path / "clf.safetensors").class_names == ("3", "5")
    by_name = from_arrays((X[:4], NAMES), X, class_names=(name for name in ("dog", "cat")))
    assert (by_name.class_names, by_name.y_labeled.tolist()) == (("dog", "cat"), [0, 1, 0, 1])


@pytest.mark.parametrize("class_names", ["ab", {"a", "b"}, 5])
def test_names_of_classes_without_an_order_are_told(class_names: Any) -> None:
    with pytest.raises(EvidentiaError, match="class_names must be a list of names in the order of the classes, got "):
        from_arrays((X[:4], [0, 1, 0, 1]), X, class_names=class_names)


@pytest.mark.parametrize(
    ("classes", "options", "message"),
    [
        ([0, 10**11] * 2, {}, r"class 1, 2, .* of 100000000001 classes have none; .* are names: give \[str\(label\)"),
        ([0, 2**62] * 2, {}, r"are names: give \[str\(label\) for label in y\]"),
        ([0, 10**30] * 2, {}, "numbers past 64 bits"),
        (
            [0, 1, -1, -1],
            {},
            "from -1 to 1; -1 is the usual mark of samples without a label: move these rows to the pool",
        ),
        ([0, 0, -1, -1], {}, "move these rows to the pool"),
        ([-1, 1, -1, 1], {}, r"if the two classes are -1 and 1, give \(y \+ 1\) // 2"),
        ([1, 2, 1, 2], {}, "class 0 of 3 classes has none; labels seem to begin at 1: give y - 1"),
        ([1, 2, 1, 2], {"num_classes": 2}, "from 1 to 2; labels seem to begin at 1: give y - 1"),
        ([0, 1, 2, 7], {"num_classes": 3}, "from 0 to 7; number the classes from 0, or give the right num_classes"),
        ([0, 0, 0, 0], {}, "class 1 of 2 classes has none"),
        ([0.0, 0.5, 1.0, 1.0], {}, r"must be whole numbers or names, got 0\.5 among them"),
        ([0.0, float("nan"), 1.0, 1.0], {}, "got nan among them .*move rows without a label to the pool"),
        ([0.0, 1e30, 1.0, 1.0], {}, r"must be whole numbers or names, got 1e\+30"),
        (np.eye(2)[[0, 1, 0, 1]], {}, r"one a sample, .*\(4, 2\); this looks one-hot: give y\.argmax\(1\)"),
        (torch.eye(2)[[0, 1, 0, 1]], {}, r"one a sample, .*\(4, 2\); this looks one-hot: give y\.argmax\(1\)"),
        ([[0, 1], [1, 0], [0, 1], [1, 0]], {}, r"this looks one-hot: give y\.argmax\(1\)"),
        (np.ones((4, 2)), {}, r"of shape \(4, 2\); give one column"),
        (torch.tensor([[0], [1], [0], [1]]), {}, r"shape \(4, 1\); give one column, labels\[:, 0\]"),
        (torch.zeros(4, 1, 1), {}, r"shape \(4, 1, 1\); number the classes from 0"),
        ((label for label in [0, 1, 0, 1]), {}, "got a generator"),
        ([0, 1, 0, 1], {"class_names": ["a", "a"]}, "class_names must differ, got a more than once"),
        ([0, 1, 0, 1], {"class_names": ["a", "b", "c"]}, r"2 classes and 3 class_names \(a, b, c\); give one name"),
    ],
)
def test_the_usual_causes_of_wrong_labels_are_told(classes: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvidentiaError, match=message):
        from_arrays((X[:4], classes), X, **options)


@pytest.mark.parametrize(
    ("labeled", "options", "message"),
    [
        ((X[:4], ["cat", 1, "dog", 0]), {}, r"mix names and other values, such as 'cat' and 1 \(int\)"),
        ((X[:4], np.array(["cat", None, "dog", "cat"], dtype=object)), {}, r"such as 'cat' and None \(NoneType\)"),
        ((X[:4], np.array(["cat", float("nan")] * 2, dtype=object)), {}, r"such as 'cat' and nan \(float\)"),
        ((X[:4], np.array(NAMES)[:, None]), {}, r"one a sample, got <U3 of shape \(4, 1\); give one column"),
        ((X[:4], np.array([{}, 1, 0, 1], dtype=object)), {}, r"labeled classes must be numbers.*got {} \(dict\)"),
        ((X[:4], NAMES), {"validation": (X[:2], ["cat", "cow"])}, r"validation classes hold 'cow'.*\(cat, dog\)"),
        ((X[:4], NAMES), {"validation": (X[:2], [0, 1])}, "labeled classes are names.*validation classes are numbers"),
        ((X[:4], [0, 1, 0, 1]), {"validation": (X[:2], ["cat", "dog"])}, "validation classes are names, such as 'cat'"),
        ((X[:4], NAMES), {"class_names": ["cat", "cow"]}, "labeled classes hold 'dog'.*class_names"),
        ((X[:4], NAMES), {"num_classes": 3}, r"num_classes is 3, but there are 2 names of classes \(cat, dog\)"),
        ((X[:4], NAMES), {"y_unlabeled": ["cat"] * 20}, "y_unlabeled, must be numbers"),
        ((Table([[1.0, "red"]] * 4), NAMES), {}, r"labeled inputs must be numbers.*got 'red' \(str\)"),
    ],
)
def test_classes_that_cannot_be_told_apart_are_told(labeled: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvidentiaError, match=message):
        from_arrays(labeled, X, **options)


def test_tables_are_fitted_and_predicted() -> None:
    rows = Table([[True, 1, 0.5], [False, 2, 0.25]] * 10)
    by_table, by_array = (
        SemiSupervisedClassifier("pi-model", "none", **QUICK).fit(labeled, pool)
        for labeled, pool in (
            ((Table(rows.rows[:4]), NAMES), rows),
            ((rows.rows[:4].astype(float), NAMES), rows.rows.astype(float)),
        )
    )
    assert torch.equal(by_table.predict(rows).probs, by_array.predict(rows.rows.astype(float)).probs)
    assert by_table.predict(rows).class_names == ("cat", "dog")


def test_pandas() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"length": X[:, 0], "count": np.arange(20) % 5, "fresh": np.arange(20) % 3 == 0})
    plain = frame.astype("float64").to_numpy()
    clf, expected = (SemiSupervisedClassifier("pi-model", "none", **QUICK) for _ in range(2))
    expected.fit((plain[:4], NAMES), plain, (plain[4:6], NAMES[:2]))
    clf.fit((frame[:4], pd.Series(NAMES)), frame, (frame[4:6], pd.Series(NAMES[:2], dtype="category")))
    assert torch.equal(clf.predict(frame).probs, expected.predict(plain).probs)
    assert clf.predict(frame).class_names == ("cat", "dog")
    whole = pd.Series([1, 0, 1, 0], dtype="Int64")
    assert from_arrays((frame[:4], whole), frame).y_labeled.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", ">f4"])
def test_an_array_on_disk_is_copied_once(dtype: str, tmp_path: Path) -> None:
    rows, width = 4000, 2000
    disk = np.memmap(tmp_path / "pool.bin", dtype=dtype, mode="w+", shape=(rows, width))
    disk[:] = np.random.default_rng(0).integers(0, 200, (rows, width))
    disk.flush()
    disk = np.memmap(tmp_path / "pool.bin", dtype=dtype, mode="r", shape=(rows, width))
    tracemalloc.start()
    data = from_arrays((disk[:4], NAMES), disk)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # What numpy holds at once, next to the tensor of 32 MB, which is not traced.
    assert peak < 40e6 if dtype == "float64" else peak < 24e6
    expected = torch.as_tensor(np.array(disk[-3:]).astype("float32"))
    assert torch.equal(data.x_unlabeled[-3:], expected / 255 if dtype == "uint8" else expected)
