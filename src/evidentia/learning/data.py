"""Inputs in the forms that users have them: tensors, arrays, datasets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from evidentia._support.checks import TensorLike, check_dense, check_finite, check_unmasked, in_native_order, kind_of
from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import whole_number

Samples: TypeAlias = "Tensor | npt.NDArray[Any] | Dataset[Any]"

_Result = TypeVar("_Result")

# PyTorch's complaints about a dtype, in all of its layers, hold one of these.
_OF_TYPES = re.compile("type|not implemented for", re.IGNORECASE)


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
    inputs, labels = _in_precision(as_tensor(x, "inputs", model), model), as_tensor(y, "labels", model)
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
            yield to_model(batch[0] if isinstance(batch, list | tuple) else batch, model)
        return
    inputs = _in_precision(as_tensor(x, "inputs", model), model)
    if inputs.ndim == 0 or len(inputs) == 0:
        raise EvidentiaError(f"there are no samples to predict: got inputs of shape {tuple(inputs.shape)}")
    if inputs.is_floating_point():
        check_finite(inputs, "inputs")
    for batch in inputs.split(batch_size):
        yield to_model(batch, model)


def by_batch(call: Callable[[Tensor], _Result], x: Samples, batch_size: int, model: nn.Module) -> list[_Result]:
    """What a call gives for each batch of `as_inputs`."""
    results = []
    for batch in as_inputs(x, batch_size, model):
        with types_told(batch, model):
            results.append(call(batch))
    return results


def in_order(dataset: Dataset[Any], batch_size: int) -> DataLoader[Any]:
    """A loader of batches in order, which takes nothing from the global random state."""
    return DataLoader(dataset, batch_size, generator=torch.Generator())


def as_tensor(values: Any, name: str, model: nn.Module) -> Tensor:
    """A tensor of the values; float64 arrays get the dtype of the model."""
    if isinstance(values, Tensor):
        check_dense(values, name)
        return values
    check_unmasked(values, name)
    try:
        tensor = torch.as_tensor(in_native_order(np.array(values, order="C")))
    except (TypeError, ValueError) as error:
        raise EvidentiaError(
            f"{name} must be a tensor, an array or a Dataset, of numbers, got {kind_of(values)}"
        ) from error
    return tensor.to(dtype_of(model)) if tensor.dtype == torch.float64 else tensor


def to_model(batch: Any, model: nn.Module) -> Any:
    """A batch of inputs on the device of a model; floating numbers get its dtype, and integers stay as they are."""
    return _in_precision(batch.to(device_of(model)), model)


@contextmanager
def types_told(inputs: Any, model: nn.Module) -> Iterator[None]:
    """Turn PyTorch's error about inputs of a dtype that the network cannot take into a sentence that says what to do.

    Which networks take integers is known by trying only: those with embeddings, and those that convert them.

    Example:
        >>> x, net = torch.ones(1, 3, dtype=torch.long), nn.Linear(3, 2)
        >>> with types_told(x, net):
        ...     net(x)
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: the network cannot take inputs of torch.int64 (mat1 and mat2 must ...
    """
    try:
        yield
    except (RuntimeError, ValueError) as error:
        embeds = any(isinstance(module, nn.Embedding | nn.EmbeddingBag) for module in model.modules())
        foreign = isinstance(inputs, Tensor) and (embeds or inputs.dtype != dtype_of(model))
        if isinstance(error, EvidentiaError) or not foreign or not _OF_TYPES.search(str(error)):
            raise
        cure = "x.long()" if embeds else f"x.to({dtype_of(model)})"
        raise EvidentiaError(f"the network cannot take inputs of {inputs.dtype} ({error}); give {cure}") from error


def device_of(model: nn.Module) -> torch.device:
    """Where a model's parameters are."""
    parameter = next(model.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device


def dtype_of(model: nn.Module) -> torch.dtype:
    """The dtype of a model's parameters, by default that of new tensors."""
    parameter = next((p for p in model.parameters() if p.is_floating_point()), None)
    return torch.get_default_dtype() if parameter is None else parameter.dtype


def _in_precision(inputs: Any, model: nn.Module) -> Any:
    return inputs.to(dtype_of(model)) if isinstance(inputs, Tensor) and inputs.is_floating_point() else inputs


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
