"""A user's own arrays, tensors or torch datasets as `SemiSupervisedData`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from evidentia._support.errors import EvidentiaError
from evidentia.semisup.pool import SemiSupervisedData


def from_arrays(
    labeled: Any,
    unlabeled: Any,
    *,
    validation: Any = None,
    test: Any = None,
    is_ood: Any = None,
    y_unlabeled: Any = None,
    num_classes: int | None = None,
    class_names: Sequence[str] = (),
    name: str = "data",
) -> SemiSupervisedData:
    """Gather arrays, tensors or torch datasets, checked and as float32.

    Inputs of `uint8` are taken for images and divided by 255, as torchvision's `ToTensor` does; other inputs keep
    their values. Datasets are read into memory once, so a dataset that augments at random gives one draw of each
    sample: leave its augmentation out, the objectives bring their own.

    Args:
        labeled: a pair of inputs and classes, or a dataset of such pairs.
        unlabeled: inputs, or a dataset; of pairs the second entry is left unread.
        validation: clean labels beyond the labeled ones, in the form of `labeled`; by default none.
        test: in the form of `labeled`; by default none.
        is_ood: which samples of the pool belong to no class, if that is known; never used in training.
        y_unlabeled: true classes of the pool, -1 for samples of no class, if they are known; never used in training.
        num_classes: by default one more than the largest label.
        class_names: names of the classes.
        name: what to call the data.

    Raises:
        EvidentiaError: if the parts do not fit each other, a class has no label, a value is NaN, or the pool is empty.

    Example:
        >>> x, y, pool = torch.rand(6, 3), torch.tensor([0, 1, 2, 0, 1, 2]), torch.rand(50, 3)
        >>> from_arrays(labeled=(x, y), unlabeled=pool)
        SemiSupervisedData('data': 3 classes, inputs of shape (3,), 6 labeled, 50 unlabeled, 0 for validation, 0 for
        the test)
    """
    x_labeled, y_labeled = _pair(labeled, "labeled")
    inputs = {"labeled": x_labeled, "unlabeled": _pool(unlabeled)}
    labels = {"labeled": y_labeled}
    for part, given in (("validation", validation), ("test", test)):
        inputs[part], labels[part] = (x_labeled[:0], y_labeled[:0]) if given is None else _pair(given, part)
    _check_scales(inputs)
    true = None if y_unlabeled is None else _labels(y_unlabeled, "unlabeled")
    outside = _flags(is_ood) if is_ood is not None else None if true is None else true < 0
    classes = num_classes if num_classes is not None else int(y_labeled.max()) + 1 if len(y_labeled) else 2
    return SemiSupervisedData(
        x_labeled=to_float(inputs["labeled"]),
        y_labeled=labels["labeled"],
        x_unlabeled=to_float(inputs["unlabeled"]),
        x_validation=to_float(inputs["validation"]),
        y_validation=labels["validation"],
        x_test=to_float(inputs["test"]),
        y_test=labels["test"],
        is_ood=outside,
        y_unlabeled=true,
        num_classes=classes,
        class_names=tuple(class_names),
        name=name,
    )


def _pair(given: Any, what: str) -> tuple[Tensor, Tensor]:
    if isinstance(given, Dataset):
        rows = _rows(given, what)
        if not all(isinstance(row, tuple | list) and len(row) == 2 for row in rows):
            raise EvidentiaError(f"the {what} dataset must give pairs of input and class")
        return stack([row[0] for row in rows], what), _labels([row[1] for row in rows], what)
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise EvidentiaError(
            f"{what} must be a pair of inputs and classes or a torch Dataset of pairs, got {_kind(given)}"
        )
    return to_tensor(given[0], f"the {what} inputs"), _labels(given[1], what)


def _pool(given: Any) -> Tensor:
    if isinstance(given, Dataset):
        rows = _rows(given, "unlabeled")
        return stack([row[0] if isinstance(row, tuple | list) else row for row in rows], "unlabeled")
    if isinstance(given, tuple):
        raise EvidentiaError("unlabeled must be inputs alone, got a tuple; true classes of the pool go to y_unlabeled")
    return to_tensor(given, "the unlabeled inputs")


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
        shapes = sorted({str(tuple(tensor.shape)) for tensor in tensors})
        raise EvidentiaError(f"all samples of the {what} dataset must be alike, got shapes {', '.join(shapes[:3])}")
    return torch.stack(tensors)


def to_tensor(values: Any, what: str) -> Tensor:
    """Numbers as a tensor, with the values and the dtype that they have."""
    if isinstance(values, DataLoader):
        raise EvidentiaError(f"{what} cannot be a DataLoader, because batches are made inside; pass loader.dataset")
    if isinstance(values, Tensor):
        tensor = values.detach()
    else:
        # Not np.asarray of anything: a picture object would become an array with its channels in the wrong place.
        if not isinstance(values, np.ndarray | np.generic | list | tuple | int | float):
            raise EvidentiaError(
                f"{what} must be a tensor or an array, got {_kind(values)}; for pictures, use torchvision's ToTensor"
            )
        try:
            tensor = torch.as_tensor(np.array(values, order="C"))
        except (TypeError, ValueError) as error:
            raise EvidentiaError(f"{what} must be numbers in a regular shape ({error})") from error
    if tensor.is_complex():
        raise EvidentiaError(f"{what} must be real, got {tensor.dtype}")
    return tensor


def _labels(values: Any, what: str) -> Tensor:
    labels = to_tensor(
        [_number(value) for value in values] if isinstance(values, list) else values, f"the {what} classes"
    )
    if labels.is_floating_point() or labels.ndim != 1:
        raise EvidentiaError(
            f"the {what} classes must be whole numbers, one a sample, got {labels.dtype} of shape "
            f"{tuple(labels.shape)}; number the classes from 0"
        )
    return labels.to(torch.int64)


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor | np.generic) and value.ndim == 0 else value


def _flags(values: Any) -> Tensor:
    flags = to_tensor(values, "is_ood")
    if bool(((flags != 0) & (flags != 1)).any()):
        raise EvidentiaError("is_ood must be true or false for each sample of the pool")
    return flags.to(torch.bool)


def _check_scales(inputs: dict[str, Tensor]) -> None:
    images = {part for part, x in inputs.items() if x.dtype == torch.uint8}
    others = [part for part, x in inputs.items() if part not in images and len(x)]
    if images and others:
        raise EvidentiaError(
            f"the {sorted(images)[0]} inputs are uint8 (0 to 255, to be divided by 255) and the {others[0]} inputs "
            f"are {inputs[others[0]].dtype}: bring all to one scale first"
        )


def to_float(x: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Inputs as a network takes them: bytes are images and divided by 255, anything else keeps its values."""
    return x.to(dtype).div_(255) if x.dtype == torch.uint8 else x.to(dtype)


def _kind(value: Any) -> str:
    return f"{type(value).__name__}" + (f" of {len(value)}" if isinstance(value, tuple | list) else "")
