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
     (X[:4], Table(NAMES)), (Table(X[:4]), NAMES), Pairs()],
    ids=["list", "tuple", "array", "objects", "column", "table", "dataset"],
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
