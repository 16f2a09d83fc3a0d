"""The container holds only data that fit each other, and takes a user's own in any usual form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import evidentia as ev
from evidentia.semisup.inputs.arrays import from_arrays
from evidentia.semisup.pool import SemiSupervisedData


@pytest.fixture
def parts() -> dict[str, Any]:
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator)

    return {
        "labeled": (draw(6, 1, 4, 4), torch.arange(6) % 3),
        "unlabeled": draw(10, 1, 4, 4),
        "validation": (draw(3, 1, 4, 4), torch.arange(3)),
        "test": (draw(5, 1, 4, 4), torch.arange(5) % 3),
    }


@pytest.fixture
def data(parts: dict[str, Any]) -> SemiSupervisedData:
    is_ood = torch.arange(10) >= 6
    whole = from_arrays(**parts, is_ood=is_ood, y_unlabeled=torch.where(is_ood, -1, 1))
    kind = torch.where(is_ood, torch.arange(10) % 2, -1)
    return replace(whole, ood_kind=kind, ood_names=("noise", "other"), class_names=("a", "b", "c"))


def test_what_it_tells(data: SemiSupervisedData, parts: dict[str, Any]) -> None:
    assert data.sample_shape == (1, 4, 4)
    assert data.ratio == pytest.approx(0.4)
    assert data.extra_labels == 3
    assert data.describe() == {
        "name": "data",
        "classes": 3,
        "sample_shape": [1, 4, 4],
        "labeled": 6,
        "unlabeled": 10,
        "ood": 4,
        "ood_kinds": {"noise": 2, "other": 2},
        "extra_labels": 3,
        "test": 5,
    }
    assert "10 unlabeled (4 of them out of distribution)" in repr(data)
    unknown = from_arrays(parts["labeled"], parts["unlabeled"])
    assert (unknown.ratio, unknown.extra_labels, len(unknown.x_test)) == (None, 0, 0)
    assert "out of distribution" not in repr(unknown)
    assert unknown.describe()["ood"] is None


def test_it_moves_to_a_device(data: SemiSupervisedData) -> None:
    moved = data.to("cpu")
    assert torch.equal(moved.x_unlabeled, data.x_unlabeled)
    assert moved.describe() == data.describe()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x_unlabeled": torch.rand(0, 1, 4, 4)}, "x_unlabeled has no samples: the pool is empty"),
        ({"x_labeled": torch.rand(0, 1, 4, 4)}, "x_labeled has no samples"),
        (
            {"x_unlabeled": torch.rand(10, 3, 4, 4)},
            r"of shape \(1, 4, 4\) and those of x_unlabeled of shape \(3, 4, 4\)",
        ),
        ({"x_test": torch.rand(5, 1, 4, 5)}, r"x_test of shape \(1, 4, 5\)"),
        ({"x_unlabeled": torch.rand(10, 1, 4, 4).double()}, "one dtype and device"),
        ({"x_unlabeled": torch.zeros(10, 1, 4, 4, dtype=torch.uint8)}, "must be a floating tensor"),
        ({"x_labeled": torch.rand(6)}, r"got a tensor .* of shape \(6,\); a single feature is a column, x\[:, None\]"),
        ({"x_unlabeled": [1.0]}, "x_unlabeled must be a floating tensor of shape .* got list"),
        ({"x_labeled": torch.rand(6)}, "x_labeled must be a floating tensor"),
        ({"y_labeled": torch.arange(5) % 3}, "y_labeled must be a tensor of torch.int64 .* 6 samples of x_labeled"),
        ({"y_labeled": (torch.arange(6) % 3).float()}, "y_labeled must be a tensor of torch.int64"),
        ({"y_labeled": [0, 1, 2]}, "got list"),
        ({"y_labeled": torch.arange(6) % 4}, "y_labeled must hold classes from 0 to 2, got labels from 0 to 3"),
        ({"y_test": torch.arange(5) - 1}, "y_test must hold classes from 0 to 2, got labels from -1 to 3"),
        ({"y_labeled": torch.arange(6) % 2}, "every class needs a labeled sample, but class c of 3 classes has none"),
        ({"num_classes": 1}, "num_classes must be a whole number of at least 2, got 1"),
        ({"num_classes": 5, "class_names": ()}, "class 3, 4 of 5 classes have none"),
        ({"class_names": ("a", "b")}, r"3 classes and 2 class_names \(a, b\); give one name for each class, or none"),
        ({"is_ood": torch.zeros(9, dtype=torch.bool)}, "is_ood must be a tensor of torch.bool .* 10 samples"),
        ({"is_ood": torch.zeros(10)}, "is_ood must be a tensor of torch.bool"),
        ({"is_ood": None}, "give is_ood too"),
        ({"is_ood": torch.zeros(10, dtype=torch.bool)}, "y_unlabeled must be -1 where is_ood is true"),
        ({"y_unlabeled": torch.where(torch.arange(10) >= 6, -1, 3)}, "a class from 0 to 2 elsewhere"),
        ({"y_unlabeled": torch.where(torch.arange(10) >= 6, -2, 1)}, "y_unlabeled must be -1"),
        ({"ood_kind": torch.where(torch.arange(10) >= 6, 2, -1)}, "ood_kind must be a number in the 2 ood_names"),
        ({"ood_kind": torch.zeros(10, dtype=torch.int64)}, "ood_kind must be"),
        *(
            ({f"x_{part}": torch.full((size, 1, 4, 4), bad)}, f"x_{part} must be finite")
            for part, size in (("labeled", 6), ("unlabeled", 10), ("validation", 3), ("test", 5))
            for bad in (float("nan"), float("inf"))
        ),
    ],
)
def test_data_that_do_not_fit_are_refused(data: SemiSupervisedData, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ev.EvidentiaError, match=message):
        replace(data, **change)


def test_a_whole_number_of_numpy_is_a_number_of_classes(data: SemiSupervisedData, parts: dict[str, Any]) -> None:
    for found in (from_arrays(**parts, num_classes=np.int64(3)), replace(data, num_classes=np.int64(3))):
        assert type(found.num_classes) is int
        assert found.num_classes == 3


def test_the_costly_check_can_be_switched_off(data: SemiSupervisedData) -> None:
    with ev.validation(False):
        replace(data, x_test=torch.full((5, 1, 4, 4), float("nan")))


class Pictures(Dataset[Any]):
    """Gives numpy arrays and Python numbers, as many a user's data set does."""

    def __init__(self, x: Tensor, y: Tensor) -> None:
        self.x, self.y = x.numpy(), y.tolist()

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, row: int) -> Any:
        return self.x[row], self.y[row]


class Inputs(Dataset[Any]):
    def __init__(self, x: Tensor) -> None:
        self.x = x

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, row: int) -> Any:
        return self.x[row]


@pytest.mark.parametrize("form", ["tensors", "arrays", "lists", "float64", "datasets", "pictures"])
def test_every_form_gives_the_same_data(parts: dict[str, Any], form: str) -> None:
    def pair(x: Tensor, y: Tensor) -> Any:
        return {
            "tensors": (x, y),
            "arrays": (x.numpy(), y.numpy().astype(np.uint8)),
            "lists": [x.tolist(), y.tolist()],
            "float64": (x.double(), y.int()),
            "datasets": TensorDataset(x, y),
            "pictures": Pictures(x, y),
        }[form]

    x = parts["unlabeled"]
    pool = {
        "tensors": x,
        "arrays": x.numpy()[::-1][::-1],
        "lists": x.tolist(),
        "float64": x.double().numpy(),
        "datasets": Inputs(x),
        "pictures": Pictures(x, torch.zeros(len(x), dtype=torch.int64)),
    }[form]
    labeled, validation, test = (pair(*parts[part]) for part in ("labeled", "validation", "test"))
    found, plain = from_arrays(labeled, pool, validation=validation, test=test), from_arrays(**parts)
    for part in ("labeled", "unlabeled", "validation", "test"):
        x = getattr(found, f"x_{part}")
        assert x.dtype == torch.float32
        torch.testing.assert_close(x, getattr(plain, f"x_{part}"))
        if part != "unlabeled":
            assert torch.equal(getattr(found, f"y_{part}"), getattr(plain, f"y_{part}"))


def test_bytes_are_images_in_0_to_1() -> None:
    x = torch.tensor([[0, 255], [51, 102]], dtype=torch.uint8)
    data = from_arrays((x, [0, 1]), x.numpy())
    torch.testing.assert_close(data.x_labeled, torch.tensor([[0, 1], [0.2, 0.4]]))
    torch.testing.assert_close(data.x_unlabeled, data.x_labeled)
    with pytest.raises(
        ev.EvidentiaError, match=r"the labeled inputs are uint8 .* the unlabeled inputs are torch.float32"
    ):
        from_arrays((x, [0, 1]), x.float())
    # Whole numbers of another type are values as they stand.
    assert from_arrays((x.int(), [0, 1]), x.int()).x_labeled.max() == 255


def test_a_users_tensors_are_not_changed(parts: dict[str, Any]) -> None:
    before = parts["unlabeled"].clone()
    pool = (parts["unlabeled"] * 255).to(torch.uint8)
    from_arrays(**parts)
    from_arrays((pool[:3], [0, 1, 2]), pool)
    assert torch.equal(parts["unlabeled"], before)
    assert torch.equal(pool, (before * 255).to(torch.uint8))


def test_true_classes_tell_what_is_ood(parts: dict[str, Any]) -> None:
    data = from_arrays(parts["labeled"], parts["unlabeled"], y_unlabeled=[0, 1, 2, -1, -1, 0, 0, 0, 0, -1])
    assert data.is_ood is not None
    assert data.is_ood.nonzero().flatten().tolist() == [3, 4, 9]
    by_numbers = from_arrays(parts["labeled"], parts["unlabeled"], is_ood=[0, 1] * 5)
    assert by_numbers.ratio == 0.5
    assert by_numbers.y_unlabeled is None


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter([])


class Picture:
    """Like a PIL image: numpy would take it for an array."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.zeros((4, 4, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unlabeled": []}, "the pool is empty"),
        ({"unlabeled": np.zeros((0, 1, 4, 4))}, "the pool is empty"),
        ({"unlabeled": Inputs(torch.rand(0, 2))}, "the unlabeled dataset has no samples"),
        ({"unlabeled": np.zeros((10, 4, 4))}, r"x_unlabeled of shape \(4, 4\)"),
        ({"unlabeled": [[1.0], [2.0, 3.0]]}, "numbers in a regular shape"),
        ({"unlabeled": np.array(["a"])}, "must be numbers, got text"),
        ({"unlabeled": torch.zeros(10, 1, 4, 4, dtype=torch.complex64)}, "must be real"),
        ({"unlabeled": DataLoader(Inputs(torch.rand(2, 2)))}, r"cannot be a DataLoader.* pass loader\.dataset"),
        ({"labeled": DataLoader(Inputs(torch.rand(2, 2)))}, r"labeled cannot be a DataLoader.* pass loader\.dataset"),
        ({"unlabeled": Stream()}, "an IterableDataset has not"),
        ({"unlabeled": (torch.rand(10, 1, 4, 4), torch.zeros(10))}, "go to y_unlabeled"),
        (
            {"unlabeled": Picture()},
            "must be a tensor or an array, got Picture; for pictures, use torchvision's ToTensor",
        ),
        ({"unlabeled": [Picture()]}, "uint8 .* inputs|of shape"),
        ({"labeled": torch.rand(6, 1, 4, 4)}, "labeled must be a pair of inputs and classes .* got Tensor"),
        ({"labeled": (torch.rand(6, 1, 4, 4),)}, "got tuple of 1"),
        ({"labeled": Inputs(torch.rand(6, 1, 4, 4))}, "the labeled dataset must give pairs"),
        ({"labeled": (torch.rand(6, 1, 4, 4), torch.rand(6))}, "classes must be whole numbers"),
        ({"labeled": (torch.rand(6, 1, 4, 4), torch.eye(6).long())}, "one a sample"),
        ({"labeled": (torch.rand(6, 1, 4, 4), ["a"] * 6)}, "classes are names"),
        ({"labeled": (torch.rand(6, 1, 4, 4), [0, 0, 0, 2, 2, 2])}, "class 1 of 3 classes has none"),
        ({"labeled": (torch.rand(0, 1, 4, 4), torch.zeros(0, dtype=torch.int64))}, "x_labeled has no samples"),
        ({"labeled": (torch.rand(6, 1, 4, 4), [1, 2, 3, 1, 2, 3])}, "class 0 of 4 classes has none"),
        ({"validation": (torch.rand(2, 1, 4, 4), [0, 3])}, "y_validation must hold classes from 0 to 2"),
        ({"is_ood": [2] * 10}, "is_ood must be true or false"),
        ({"is_ood": [True] * 3}, "10 samples of x_unlabeled"),
        ({"num_classes": 4}, "class 3 of 4 classes has none; label some"),
        ({"num_classes": 3.0}, r"num_classes must be a whole number of at least 2, got 3\.0"),
        ({"unlabeled": np.ma.masked_equal(np.eye(4), 1)}, r"have 4 entries that are masked; fill them, x\.filled"),
        ({"unlabeled": torch.full((10, 1, 4, 4), torch.nan)}, r"160 of 160 entries .* first at \[0, 0, 0, 0\]"),
        ({"unlabeled": csr_matrix(np.eye(4))}, r"the unlabeled inputs must be dense.* give x\.toarray\(\)"),
        ({"unlabeled": (row for row in torch.rand(10, 1, 4, 4))}, r"got a generator; give np\.stack\(list\(x\)\)"),
    ],
)
def test_what_cannot_be_used_is_told(parts: dict[str, Any], change: dict[str, Any], message: str) -> None:
    with pytest.raises(ev.EvidentiaError, match=message):
        from_arrays(**{**parts, **change})


def test_samples_of_a_dataset_must_be_alike() -> None:
    class Ragged(Inputs):
        def __getitem__(self, row: int) -> Any:
            return torch.rand(2 + row)

    with pytest.raises(ev.EvidentiaError, match=r"one shape and dtype, got \(2,\) of torch\.float32, \(3,\)"):
        from_arrays((torch.rand(2, 2), [0, 1]), Ragged(torch.rand(2, 2)))
