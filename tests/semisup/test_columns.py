"""Columns of tables: matched by their names wherever they are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from evidentia import EvidentiaError
from evidentia.semisup import PoolReview, SemiSupervisedClassifier, from_arrays
from evidentia.semisup.inputs.arrays import labeled_samples

pd = pytest.importorskip("pandas")
QUICK: dict[str, Any] = {"updates": 2, "unlabeled_batch": 10, "progress": False}
FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=["t", "u"])
TURNED = FRAME[["u", "t"]]
Y = [0, 1] * 4


class Sheet:
    """A table of another library: names in a plain list, numbers by `__array__`."""

    def __init__(self, frame: Any) -> None:
        self.frame, self.columns = frame, list(frame.columns)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.frame.to_numpy()

    to_numpy = __array__


def fitted(labeled: Any = FRAME[:8], pool: Any = FRAME, *validation: Any) -> SemiSupervisedClassifier:
    return SemiSupervisedClassifier("pi-model", "none", **QUICK).fit((labeled, Y), pool, *validation)


@pytest.fixture(scope="module")
def clf() -> SemiSupervisedClassifier:
    return fitted()


@pytest.mark.parametrize("table", [lambda frame: frame, Sheet], ids=["pandas", "other"])
def test_the_same_columns_in_another_order_are_the_same_data(clf: SemiSupervisedClassifier, table: Any) -> None:
    expected = clf.predict(FRAME).probs
    assert torch.equal(clf.predict(table(TURNED)).probs, expected)
    assert torch.equal(clf.predict(table(TURNED), batch_size=3).probs, clf.predict(FRAME, batch_size=3).probs)
    assert torch.equal(fitted(FRAME[:8], table(TURNED)).predict(TURNED).probs, expected)
    data = from_arrays((FRAME[:8], Y), TURNED, validation=(table(TURNED[:8]), Y))
    assert data.columns == ("t", "u")
    assert torch.equal(data.x_validation, data.x_labeled)
    assert torch.equal(data.x_unlabeled[:8], data.x_labeled)


def test_a_pool_of_names_names_labeled_samples_without(clf: SemiSupervisedClassifier) -> None:
    plain = FRAME.to_numpy(copy=True)
    by_pool = fitted(plain[:8], FRAME)
    assert torch.equal(by_pool.predict(TURNED).probs, clf.predict(FRAME).probs)


def test_data_without_names_are_taken_by_position(clf: SemiSupervisedClassifier) -> None:
    plain, expected = FRAME.to_numpy(copy=True), clf.predict(FRAME).probs
    # Numbers that pandas gives to columns by itself are no names.
    for given in (plain, torch.as_tensor(plain), pd.DataFrame(plain)):
        assert torch.equal(clf.predict(given).probs, expected)
    nameless = fitted(plain[:8], plain)
    assert torch.equal(nameless.predict(FRAME).probs, expected)
    numbered = fitted(pd.DataFrame(plain[:8]), pd.DataFrame(plain))
    assert torch.equal(numbered.predict(FRAME).probs, expected)
    assert torch.equal(numbered.predict(pd.DataFrame(plain)[[1, 0]]).probs, expected)
    assert from_arrays((pd.DataFrame(plain[:8]), Y), FRAME).columns == ("t", "u")


def test_other_columns_are_told(clf: SemiSupervisedClassifier) -> None:
    other = FRAME.rename(columns={"u": "v"})
    told = r"table.* has 2 columns, t, v, and needs t, u: u is missing; v is unknown\. Rename its columns"
    with pytest.raises(EvidentiaError, match=f"the table to predict {told[8:]}"):
        clf.predict(other)
    with pytest.raises(EvidentiaError, match=f"the unlabeled {told}"):
        fitted(FRAME[:8], other)
    with pytest.raises(EvidentiaError, match=f"the validation {told}"):
        fitted(FRAME[:8], FRAME, (other[:8], Y))
    with pytest.raises(EvidentiaError, match="has 1 columns, u, and needs t, u: t is missing"):
        clf.predict(FRAME[["u"]])
    with pytest.raises(EvidentiaError, match=r"columns of one name, t, which cannot be put in the order of training"):
        clf.predict(FRAME[["t", "t"]])


def test_columns_that_are_no_numbers_or_lack_some_are_told(clf: SemiSupervisedClassifier) -> None:
    mixed = FRAME.assign(place=["here", "there"] * 10, day=pd.Timestamp("2020-02-02"), flag=True)
    told = r"inputs must be numbers, and place, day hold others, such as 'here' \(str\) in place; .*OneHotEncoder"
    with pytest.raises(EvidentiaError, match=f"the labeled {told}"):
        fitted(mixed[:8], mixed)
    with pytest.raises(EvidentiaError, match=f"the unlabeled {told}"):
        fitted(FRAME[:8], mixed)
    with pytest.raises(EvidentiaError, match=r"u holds others, such as <NA> .*SimpleImputer"):
        fitted(FRAME[:8], FRAME.assign(u=pd.array([1, None] * 10, dtype="Int64")))
    gaps = FRAME.assign(u=FRAME["u"].where(FRAME.index > 2))
    with pytest.raises(EvidentiaError, match=r"x_unlabeled must be finite, and 3 of 20 rows .*, in u; fill them"):
        fitted(FRAME[:8], gaps)
    with pytest.raises(EvidentiaError, match=r"inputs must be finite, and 3 of 20 rows .*, in u; fill them"):
        clf.predict(gaps)
    whole = FRAME.assign(u=pd.array(range(20), dtype="Int64"), t=FRAME["t"].astype(object))
    assert torch.equal(from_arrays((whole[:8], Y), whole).x_unlabeled[:, 1], torch.arange(20.0))


def test_names_are_saved(clf: SemiSupervisedClassifier, tmp_path: Path) -> None:
    file = tmp_path / "clf.safetensors"
    clf.save(file)
    assert torch.equal(SemiSupervisedClassifier.load(file).predict(TURNED).probs, clf.predict(FRAME).probs)


def test_a_run_goes_on_whether_the_data_have_names_or_not(tmp_path: Path) -> None:
    file, plain = tmp_path / "run.safetensors", FRAME.to_numpy(copy=True)
    first = SemiSupervisedClassifier("pi-model", "none", checkpoint=file, **QUICK).fit((plain[:8], Y), plain)
    again = SemiSupervisedClassifier("pi-model", "none", checkpoint=file, **QUICK).fit((FRAME[:8], Y), TURNED)
    assert torch.equal(again.predict(TURNED).probs, first.predict(plain).probs)


def test_labeled_samples_of_a_picture_are_in_the_order_of_the_pool() -> None:
    found, _ = labeled_samples((TURNED[:8], Y), columns=("t", "u"))
    assert torch.equal(found, torch.as_tensor(FRAME[:8].to_numpy(copy=True)).float())


def test_a_picture_shows_labeled_samples_by_the_names_of_their_columns() -> None:
    pytest.importorskip("matplotlib")
    from evidentia.reports import pool_picture

    review = PoolReview(torch.rand(20), torch.arange(20) % 2, torch.rand(20))
    shown, expected = (
        [
            points.get_offsets().tolist()
            for points in pool_picture(review, FRAME, labeled=(frame[:8], Y)).axes[0].collections
        ]
        for frame in (TURNED, FRAME)
    )
    assert shown == expected
