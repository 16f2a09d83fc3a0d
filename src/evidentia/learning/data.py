"""Inputs in the forms that users have them: tensors, arrays, datasets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset

from evidentia._support.checks import TensorLike, check_finite
from evidentia._support.errors import EvidentiaError

Samples: TypeAlias = "Tensor | npt.NDArray[Any] | Dataset[Any]"


def as_dataset(x: Any, y: TensorLike | None) -> Dataset[Any]:
    """A dataset of pairs of input and label, checked as far as that is cheap."""
    if isinstance(x, Dataset):
        if y is not None:
            raise EvidentiaError("a Dataset brings its own labels; leave y out")
        if _length(x) == 0:
            raise EvidentiaError("the training set is empty")
        return x
    if y is None:
        raise EvidentiaError("labels are missing: give fit(x, y), or a Dataset of pairs")
    inputs, labels = as_tensor(x, "inputs"), as_tensor(y, "labels")
    if len(inputs) != len(labels):
        raise EvidentiaError(f"inputs and labels must be as many, got {len(inputs)} and {len(labels)}")
    if len(inputs) == 0:
        raise EvidentiaError("the training set is empty")
    if inputs.is_floating_point():
        check_finite(inputs, "inputs")
    return TensorDataset(inputs, labels)


def as_inputs(x: Samples, batch_size: int, device: torch.device) -> Iterator[Tensor]:
    """Batches of inputs in order; pairs of a dataset are cut to their input."""
    if isinstance(x, Dataset):
        if _length(x) == 0:
            raise EvidentiaError("there are no samples to predict")
        for batch in DataLoader(x, batch_size):
            yield (batch[0] if isinstance(batch, list | tuple) else batch).to(device)
        return
    inputs = as_tensor(x, "inputs")
    if inputs.ndim == 0 or len(inputs) == 0:
        raise EvidentiaError(f"there are no samples to predict: got inputs of shape {tuple(inputs.shape)}")
    if inputs.is_floating_point():
        check_finite(inputs, "inputs")
    for batch in inputs.split(batch_size):
        yield batch.to(device)


def as_tensor(values: Any, name: str) -> Tensor:
    """A tensor of the values; float64 arrays become the default dtype, which is what networks have."""
    if isinstance(values, Tensor):
        return values
    try:
        tensor = torch.as_tensor(np.array(values, order="C"))
    except (TypeError, ValueError) as error:
        raise EvidentiaError(f"{name} must be a tensor, an array or a Dataset, got {type(values).__name__}") from error
    return tensor.to(torch.get_default_dtype()) if tensor.dtype == torch.float64 else tensor


def _length(dataset: Dataset[Any]) -> int:
    if not hasattr(dataset, "__len__"):
        raise EvidentiaError("the Dataset must have a length; wrap an IterableDataset in one that has")
    return len(dataset)
