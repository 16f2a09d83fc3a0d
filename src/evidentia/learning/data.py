"""Inputs in the forms that users have them: tensors, arrays, datasets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from evidentia._support.checks import TensorLike, check_finite, in_native_order, kind_of
from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import whole_number

Samples: TypeAlias = "Tensor | npt.NDArray[Any] | Dataset[Any]"


def as_dataset(x: Any, y: TensorLike | None, model: nn.Module, name: str = "training set") -> Dataset[Any]:
    """A dataset of pairs of input and label, checked as far as that is cheap."""
    _refuse_loader(x)
    if isinstance(x, Dataset):
        if y is not None:
            raise EvidentiaError("a Dataset brings its own labels; leave y out")
        if _length(x) == 0:
            raise EvidentiaError(f"the {name} is empty")
        if not isinstance(first := x[0], tuple | list) or len(first) != 2:
            raise EvidentiaError(
                f"the {name} must give pairs of input and label, got {type(first).__name__} as its first sample"
            )
        return x
    if y is None:
        raise EvidentiaError(f"the {name} has no labels: give inputs and labels, or a Dataset of pairs")
    inputs, labels = as_tensor(x, "inputs", model), as_tensor(y, "labels", model)
    if inputs.ndim == 0 or labels.ndim == 0 or len(inputs) != len(labels):
        raise EvidentiaError(
            f"the {name} needs as many labels as inputs, got shapes {tuple(inputs.shape)} and {tuple(labels.shape)}"
        )
    if len(inputs) == 0:
        raise EvidentiaError(f"the {name} is empty")
    if inputs.is_floating_point():
        check_finite(inputs, "inputs")
    return TensorDataset(inputs, labels)


def as_inputs(x: Samples, batch_size: int, model: nn.Module) -> Iterator[Tensor]:
    """Batches of inputs in order, on the model's device; pairs of a dataset are cut to their input."""
    batch_size = whole_number(batch_size, "batch_size", 1)
    _refuse_loader(x)
    if isinstance(x, Dataset):
        if _length(x) == 0:
            raise EvidentiaError("there are no samples to predict")
        for batch in in_order(x, batch_size):
            yield (batch[0] if isinstance(batch, list | tuple) else batch).to(device_of(model))
        return
    inputs = as_tensor(x, "inputs", model)
    if inputs.ndim == 0 or len(inputs) == 0:
        raise EvidentiaError(f"there are no samples to predict: got inputs of shape {tuple(inputs.shape)}")
    if inputs.is_floating_point():
        check_finite(inputs, "inputs")
    for batch in inputs.split(batch_size):
        yield batch.to(device_of(model))


def in_order(dataset: Dataset[Any], batch_size: int) -> DataLoader[Any]:
    """A loader of batches in order, which takes nothing from the global random state."""
    return DataLoader(dataset, batch_size, generator=torch.Generator())


def as_tensor(values: Any, name: str, model: nn.Module) -> Tensor:
    """A tensor of the values; float64 arrays get the dtype of the model."""
    if isinstance(values, Tensor):
        return values
    try:
        tensor = torch.as_tensor(in_native_order(np.array(values, order="C")))
    except (TypeError, ValueError) as error:
        raise EvidentiaError(
            f"{name} must be a tensor, an array or a Dataset, of numbers, got {kind_of(values)}"
        ) from error
    return tensor.to(dtype_of(model)) if tensor.dtype == torch.float64 else tensor


def device_of(model: nn.Module) -> torch.device:
    """Where a model's parameters are."""
    parameter = next(model.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device


def dtype_of(model: nn.Module) -> torch.dtype:
    """The dtype of a model's parameters, by default that of new tensors."""
    parameter = next((p for p in model.parameters() if p.is_floating_point()), None)
    return torch.get_default_dtype() if parameter is None else parameter.dtype


def _refuse_loader(x: Any) -> None:
    if isinstance(x, DataLoader):
        raise EvidentiaError(
            "a DataLoader is not taken here, because batches are made inside; pass loader.dataset and a batch_size, or "
            "train in a loop of your own over the loader"
        )


def _length(dataset: Dataset[Any]) -> int:
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
        raise EvidentiaError("the Dataset must have a length and samples by number; an IterableDataset has not")
    return len(dataset)
