"""Numbers in the forms that users have them, as tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from evidentia._support.columns import listed
from evidentia._support.errors import EvidentiaError

# Entries of an array that are converted at once.
_ENTRIES = 2**22


def is_table(values: Any) -> bool:
    """Whether this is a table or an array of another library, which knows how to become an array of numpy.

    A picture object may know too, but its channels would be in the wrong place: it has no `to_numpy`, as tables have,
    and no `dtype`, as arrays have.
    """
    known = isinstance(values, Tensor | np.ndarray | np.generic)
    return not known and hasattr(values, "__array__") and (hasattr(values, "to_numpy") or hasattr(values, "dtype"))


def as_numbers(values: Any, what: str) -> Tensor | npt.NDArray[Any]:
    """Numbers as a tensor or an array, as they are: an array, on disk or in memory, is not copied."""
    if isinstance(values, DataLoader):
        raise EvidentiaError(f"{what} cannot be a DataLoader, because batches are made inside; pass loader.dataset")
    if hasattr(values, "toarray") or (isinstance(values, Tensor) and values.layout != torch.strided):
        dense = "x.to_dense()" if isinstance(values, Tensor) else "x.toarray()"
        raise EvidentiaError(f"{what} must be dense, got a sparse {kind_and_size(values)}; give {dense}")
    if isinstance(values, Tensor):
        return values.detach()
    if isinstance(values, Iterator):
        raise EvidentiaError(f"{what} must be all there at once, got a {kind_and_size(values)}; give np.stack(list(x))")
    if not isinstance(values, np.ndarray | np.generic | list | tuple | int | float) and not is_table(values):
        raise EvidentiaError(
            f"{what} must be a tensor or an array, got {kind_and_size(values)}; for pictures, use torchvision's "
            "ToTensor"
        )
    if isinstance(values, np.ma.MaskedArray) and (masked := int(np.ma.getmaskarray(values).sum())):
        raise EvidentiaError(
            f"{what} have {masked} entries that are masked; fill them, x.filled(...), or leave their samples out"
        )
    if hasattr(getattr(values, "dtypes", None), "items"):
        _check_columns(values, what)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise EvidentiaError(f"{what} must be numbers in a regular shape ({error})") from error
    if array.dtype.kind in "USV":
        raise EvidentiaError(
            f"{what} must be numbers, got text or records ({array.dtype}); turn them into numbers first"
        )
    return _plain(array, what) if array.dtype.kind == "O" else array


def to_tensor(values: Any, what: str) -> Tensor:
    """Numbers as a tensor, with the values and the dtype that they have; of an array, a copy."""
    numbers = as_numbers(values, what)
    if not isinstance(numbers, Tensor):
        try:
            # In the machine's byte order, which files need not have.
            numbers = torch.as_tensor(np.array(numbers, dtype=numbers.dtype.newbyteorder("="), order="C"))
        except (TypeError, ValueError) as error:
            raise EvidentiaError(f"{what} must be numbers in a regular shape ({error})") from error
    if numbers.is_complex():
        raise EvidentiaError(f"{what} must be real, got {numbers.dtype}")
    return numbers


def to_float(x: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Inputs as a network takes them: bytes are images and divided by 255, anything else keeps its values."""
    return x.to(dtype).div_(255) if x.dtype == torch.uint8 else x.to(dtype)


def float_copy(numbers: Tensor | npt.NDArray[Any], what: str, see: Callable[[Tensor], None] = lambda _: None) -> Tensor:
    """What `as_numbers` gave as float32, with bytes divided by 255.

    An array is converted part by part, so that there is no other copy of it; a tensor of float32 is taken as it is.

    Args:
        numbers: the inputs.
        what: whose they are.
        see: is shown every part as it was before.
    """

    def converted(part: Tensor | npt.NDArray[Any]) -> Tensor:
        # A function of its own, so that nothing holds a part while the next is read.
        given = to_tensor(part, what)
        see(given)
        return to_float(given)

    if isinstance(numbers, Tensor) or not numbers.ndim:
        return converted(numbers)
    found = torch.empty(numbers.shape, dtype=torch.float32)
    rows = max(1, _ENTRIES // max(1, math.prod(numbers.shape[1:])))
    for start in range(0, len(numbers), rows):
        found[start : start + rows] = converted(numbers[start : start + rows])
    return found


def kind_and_size(value: Any) -> str:
    """What something is, and how long if it is a list, in words."""
    return f"{type(value).__name__}" + (f" of {len(value)}" if isinstance(value, tuple | list) else "")


def _check_columns(table: Any, what: str) -> None:
    """Refuse a pandas table with columns that are no numbers, and name these."""
    others: dict[str, Any] = {}
    for place, (name, dtype) in enumerate(table.dtypes.items()):
        # Extension types of numbers become objects only where some are missing.
        if not (isinstance(dtype, np.dtype) and dtype.kind in "biuf"):
            entries = np.asarray(table.iloc[:, place], dtype=object).tolist()
            other = [entry for entry in entries if not isinstance(entry, Real)]
            others |= {str(name): other[0]} if other else {}
    if others:
        name, entry = next(iter(others.items()))
        raise EvidentiaError(
            f"{what} must be numbers, and {listed(list(others))} {'hold' if len(others) > 1 else 'holds'} others, such "
            f"as {entry!r} ({type(entry).__name__}) in {name}; turn them into numbers first, as scikit-learn's "
            "OneHotEncoder and SimpleImputer do, or leave these columns out"
        )


def _plain(array: npt.NDArray[Any], what: str) -> npt.NDArray[Any]:
    """An array of objects, as a table with columns of several dtypes gives, if all of them are numbers."""
    entries = array.ravel().tolist()
    for entry in entries:
        if not isinstance(entry, Real):
            raise EvidentiaError(
                f"{what} must be numbers in a regular shape, got {entry!r} ({type(entry).__name__}) among them; give "
                "columns of numbers alone"
            )
    try:
        return array.astype(np.int64 if all(isinstance(entry, Integral) for entry in entries) else np.float64)
    except OverflowError as error:
        raise EvidentiaError(f"{what} hold numbers past 64 bits ({error}); give smaller ones") from error
