"""A user's own arrays, tensors or torch datasets as `SemiSupervisedData`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from evidentia._support.checks import validation_enabled
from evidentia._support.errors import EvidentiaError
from evidentia.semisup.inputs.columns import column_names, common_columns, places
from evidentia.semisup.inputs.conversion import as_numbers, float_copy, kind_and_size, to_tensor
from evidentia.semisup.inputs.labels import Column, label_column, numbered
from evidentia.semisup.inputs.precision import WIDE, Precision
from evidentia.semisup.pool import SemiSupervisedData

Raw: TypeAlias = Tensor | npt.NDArray[Any]
"""Inputs with the values and the dtype that they were given in."""


def from_arrays(
    labeled: Any,
    unlabeled: Any,
    *,
    validation: Any = None,
    test: Any = None,
    is_ood: Any = None,
    y_unlabeled: Any = None,
    num_classes: int | None = None,
    class_names: Sequence[str] | None = (),
    name: str = "data",
) -> SemiSupervisedData:
    """Gather arrays, tensors or torch datasets, checked and as float32.

    Inputs of `uint8` are taken for images and divided by 255, as torchvision's `ToTensor` does; other inputs keep
    their values. An array is copied once, part by part, also if it is on disk (`np.memmap`): memory for all samples in
    float32 is needed, and no more. Tables, such as a pandas `DataFrame` with columns of numbers, serve as arrays do;
    if several have names of columns, these must be the same, and are put in the order of the first. Datasets are read
    into memory once, so a dataset that augments at random gives one draw of each sample: leave its augmentation out,
    the objectives bring their own.

    Args:
        labeled: a pair of inputs and classes, or a dataset of such pairs. Classes are numbers from 0 on, or names.
        unlabeled: inputs, or a dataset; of pairs the second entry is left unread.
        validation: clean labels beyond the labeled ones, in the form of `labeled`; by default none.
        test: in the form of `labeled`; by default none.
        is_ood: which samples of the pool belong to no class, if that is known; never used in training.
        y_unlabeled: true classes of the pool, -1 for samples of no class, if they are known; never used in training.
        num_classes: by default one more than the largest label, or as many as there are names.
        class_names: names of the classes in their order; by default, if classes are given as names, these sorted.
        name: what to call the data.

    Raises:
        EvidentiaError: if the parts do not fit each other, a class has no label, a value is NaN, the pool is empty, or
            a feature has so large an offset that float32 loses how it varies.

    Example:
        >>> x, y, pool = torch.rand(6, 3), torch.tensor([0, 1, 2, 0, 1, 2]), torch.rand(50, 3)
        >>> from_arrays(labeled=(x, y), unlabeled=pool)
        SemiSupervisedData('data': 3 classes, inputs of shape (3,), 6 labeled, 50 unlabeled, 0 for validation, 0 for
        the test)
    """
    x_labeled, y_labeled = _pair(labeled, "labeled")
    inputs: dict[str, Raw] = {"labeled": x_labeled, "unlabeled": _pool(unlabeled)}
    columns = {"labeled": y_labeled}
    for part, given in (("validation", validation), ("test", test)):
        inputs[part], columns[part] = (x_labeled[:0], y_labeled[:0]) if given is None else _pair(given, part)
    _check_scales(inputs)
    found_names = {"labeled": _names(labeled), "unlabeled": column_names(unlabeled)}
    found_names |= {"validation": _names(validation), "test": _names(test)}
    features = common_columns(found_names)
    inputs = {part: _arranged(given, found_names[part], features, part) for part, given in inputs.items()}
    labels, names = numbered(columns, class_names, num_classes)
    true = None if y_unlabeled is None else _true_classes(y_unlabeled)
    outside = _flags(is_ood) if is_ood is not None else None if true is None else true < 0
    found = len(names) if isinstance(y_labeled, list) else max(2, int(y_labeled.max()) + 1) if len(y_labeled) else 2
    x = _floats(inputs, features)
    return SemiSupervisedData(
        x_labeled=x["labeled"],
        y_labeled=labels["labeled"],
        x_unlabeled=x["unlabeled"],
        x_validation=x["validation"],
        y_validation=labels["validation"],
        x_test=x["test"],
        y_test=labels["test"],
        is_ood=outside,
        y_unlabeled=true,
        num_classes=found if num_classes is None else num_classes,
        class_names=names,
        name=name,
        columns=features,
        from_bytes=str(x_labeled.dtype).endswith("uint8"),
    )


def training_data(
    labeled: Any, unlabeled: Any, validation: Any, is_ood: Any, options: Mapping[str, Any]
) -> SemiSupervisedData:
    """What a classifier's `fit` is given, with its `options` of `from_arrays`, as data to train on."""
    if unknown := options.keys() - {"num_classes", "class_names"}:
        raise EvidentiaError(
            f"fit has no option {min(unknown)!r}; it takes num_classes and class_names, and settings of training go to "
            "SemiSupervisedClassifier(...)"
        )
    if isinstance(labeled, SemiSupervisedData):
        if unlabeled is not None or validation is not None or is_ood is not None or options:
            raise EvidentiaError("SemiSupervisedData brings its own pool and validation; give nothing else")
        return labeled
    if unlabeled is None:
        raise EvidentiaError("there is no unlabeled pool; give one, or train without with EvidentialClassifier")
    return from_arrays(labeled, unlabeled, validation=validation, is_ood=is_ood, **options)


def labeled_samples(given: Any, class_names: Sequence[str] = (), columns: Sequence[str] = ()) -> tuple[Tensor, Tensor]:
    """Inputs, in the order of the columns of the pool, and numbers of classes of what `fit` takes as `labeled`."""
    x, column = _pair(given, "labeled")
    x = _arranged(x, _names(given), columns, "labeled")
    return float_copy(x, "the labeled inputs"), numbered({"labeled": column}, class_names)[0]["labeled"]


def samples_and_classes(given: Any) -> tuple[Any, Column]:
    """Inputs, a table as it is, and classes of a pair or of a dataset of pairs."""
    x, column = _pair(given, "test")
    return x if isinstance(given, Dataset) else given[0], column


def pool_samples(given: Any) -> Tensor:
    """Inputs of what `fit` takes as `unlabeled`."""
    return float_copy(_pool(given), "the unlabeled inputs")


def _pair(given: Any, what: str) -> tuple[Raw, Column]:
    if isinstance(given, Dataset):
        rows = _rows(given, what)
        if not all(isinstance(row, tuple | list) and len(row) == 2 for row in rows):
            raise EvidentiaError(f"the {what} dataset must give pairs of input and class")
        return stack([row[0] for row in rows], what), label_column([row[1] for row in rows], what)
    if isinstance(given, DataLoader):
        raise EvidentiaError(f"{what} cannot be a DataLoader, because batches are made inside; pass loader.dataset")
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise EvidentiaError(
            f"{what} must be a pair of inputs and classes or a torch Dataset of pairs, got {kind_and_size(given)}"
        )
    inputs = as_numbers(given[0], f"the {what} inputs")
    if not inputs.ndim:
        raise EvidentiaError(f"the {what} inputs must be one a class, got the single number {inputs.item():g}")
    return inputs, label_column(given[1], what)


def _pool(given: Any) -> Raw:
    if isinstance(given, Dataset):
        rows = _rows(given, "unlabeled")
        return stack([input_of(row) for row in rows], "unlabeled")
    if isinstance(given, tuple):
        raise EvidentiaError("unlabeled must be inputs alone, got a tuple; true classes of the pool go to y_unlabeled")
    return as_numbers(given, "the unlabeled inputs")


def input_of(row: Any) -> Any:
    """The input of what a dataset gives for a sample, with a label or without; a list of numbers is an input itself.

    Example:
        >>> input_of((torch.ones(2), 1)), input_of([0.5, 1.0])
        (tensor([1., 1.]), [0.5, 1.0])
    """
    pair = isinstance(row, tuple | list) and not all(isinstance(entry, Real) for entry in row)
    return row[0] if pair else row


def size_of(dataset: Dataset[Any], what: str) -> int:
    """The number of samples of a dataset, which must have some, and numbers for them."""
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
        raise EvidentiaError(f"the {what} dataset must have a length and samples by number; an IterableDataset has not")
    if len(dataset) == 0:
        raise EvidentiaError(f"the {what} dataset has no samples")
    return len(dataset)


def _rows(dataset: Dataset[Any], what: str) -> list[Any]:
    return [dataset[row] for row in range(size_of(dataset, what))]


def stack(samples: list[Any], what: str) -> Tensor:
    """Samples of a dataset as one tensor, which all must be of one shape and dtype."""
    tensors = [to_tensor(sample, f"a sample of the {what} dataset") for sample in samples]
    if len({(tensor.shape, tensor.dtype) for tensor in tensors}) > 1:
        kinds = sorted({f"{tuple(tensor.shape)} of {tensor.dtype}" for tensor in tensors})
        raise EvidentiaError(
            f"all samples of the {what} dataset must be of one shape and dtype, got {', '.join(kinds[:3])}"
        )
    return torch.stack(tensors)


def _true_classes(values: Any) -> Tensor:
    column = label_column(values, "unlabeled")
    if not isinstance(column, Tensor):
        raise EvidentiaError(
            "the true classes of the pool, y_unlabeled, must be numbers, and -1 for samples of no class"
        )
    return column


def _flags(values: Any) -> Tensor:
    flags = to_tensor(values, "is_ood")
    if bool(((flags != 0) & (flags != 1)).any()):
        raise EvidentiaError("is_ood must be true or false for each sample of the pool")
    return flags.to(torch.bool)


def _names(pair: Any) -> tuple[str, ...]:
    return column_names(pair[0]) if isinstance(pair, tuple | list) else ()


def _arranged(x: Raw, found: Sequence[str], wanted: Sequence[str], part: str) -> Raw:
    order = places(found, wanted, f"the {part} table")
    return x if order is None else x[:, order]


def _floats(inputs: Mapping[str, Raw], columns: Sequence[str]) -> dict[str, Tensor]:
    # Over all parts together: of a few labeled samples, a feature may be all but the same.
    precision = Precision()
    wide = any(x.ndim and to_tensor(x[:0], f"the {part} inputs").dtype in WIDE for part, x in inputs.items())
    see = [precision.see] if wide and validation_enabled() else []
    x = {part: float_copy(given, f"the {part} inputs", *see) for part, given in inputs.items()}
    precision.check(columns)
    return x


def _check_scales(inputs: Mapping[str, Raw]) -> None:
    # The names of dtypes, which arrays and tensors have in common.
    images = {part for part, x in inputs.items() if str(x.dtype).endswith("uint8")}
    others = [part for part, x in inputs.items() if part not in images and x.shape[:1] != (0,)]
    if images and others:
        raise EvidentiaError(
            f"the {sorted(images)[0]} inputs are uint8 (0 to 255, to be divided by 255) and the {others[0]} inputs "
            f"are {inputs[others[0]].dtype}: bring all to one scale first"
        )
