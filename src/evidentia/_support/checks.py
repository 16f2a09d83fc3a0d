"""Argument checks shared by all rooms, and the switch that turns the costly ones off.

Checks that read tensor values (is any entry NaN? do the masses add up?) cost a pass over the data and a
device synchronisation, so they can be switched off in hot loops. Checks of shapes and types always run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError

TensorLike: TypeAlias = "Tensor | npt.NDArray[Any] | Sequence[Any] | float"

# Entries that are looked at once.
_ENTRIES = 2**20
_enabled: ContextVar[bool] = ContextVar("evidentia_validation", default=True)


@contextmanager
def validation(enabled: bool) -> Iterator[None]:
    """Switch the checks of tensor values on or off inside a `with` block.

    Example:
        >>> import torch, evidentia as ev
        >>> with ev.validation(False):
        ...     w = ev.MultinomialOpinion.from_evidence(torch.tensor([1.0, 2.0]))
    """
    token = _enabled.set(enabled)
    try:
        yield
    finally:
        _enabled.reset(token)


def validation_enabled(override: bool | None = None) -> bool:
    """Whether tensor values are to be checked: `override` if given, else the surrounding `validation` block."""
    return _enabled.get() if override is None else override


def as_float_tensor(value: TensorLike, name: str, like: Tensor | None = None) -> Tensor:
    """Turn a tensor, array, list or number into a floating tensor.

    With `like`, it gets the dtype and device of that tensor. Without, tensors and arrays keep theirs, and numbers and
    lists get the default dtype.
    """
    if isinstance(value, Tensor):
        check_dense(value, name)
        tensor = value
    else:
        check_unmasked(value, name)
        try:
            array = in_native_order(np.asarray(value))
            # PyTorch takes neither read-only nor reversed memory.
            shared = array.flags.writeable and all(stride >= 0 for stride in array.strides)
            tensor = torch.as_tensor(array if shared else array.copy())
        except (TypeError, ValueError, RuntimeError) as error:
            raise EvidentiaError(
                f"{name} must be a tensor, an array or a list of numbers, got {kind_of(value)}"
            ) from error
        # Python's numbers are exact to float64 and must not lose that on the way to a `like` of float64.
        if like is None and tensor.dtype == torch.float64 and not isinstance(value, np.ndarray | np.generic):
            tensor = tensor.to(torch.get_default_dtype())
    if tensor.is_complex():
        raise EvidentiaError(f"{name} must be real, got a tensor of {tensor.dtype}")
    if like is not None:
        return tensor.to(like)
    return tensor if tensor.is_floating_point() else tensor.to(torch.get_default_dtype())


def check_tensor(value: Any, name: str) -> None:
    """Require a dense tensor of real numbers, where neither arrays nor lists will do.

    Example:
        >>> check_tensor([1.0, 2.0], "alpha")
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: alpha must be a tensor, got list; give torch.as_tensor(x)
    """
    if not isinstance(value, Tensor):
        raise EvidentiaError(f"{name} must be a tensor, got {type(value).__name__}; give torch.as_tensor(x)")
    check_dense(value, name)
    if value.is_complex():
        raise EvidentiaError(f"{name} must be real, got a tensor of {value.dtype}")


def check_dense(tensor: Tensor, name: str) -> None:
    """Require a tensor that has a number at every place, none of the forms with which few operations can deal."""
    if tensor.is_nested:
        form, cure = "nested", "pad it with x.to_padded_tensor(0.0), or give its parts one by one"
    elif tensor.layout != torch.strided:
        form, cure = "sparse", "give x.to_dense()"
    elif tensor.is_quantized:
        form, cure = "quantized", "give x.dequantize()"
    else:
        return
    raise EvidentiaError(f"{name} must be a dense tensor, got one that is {form}; {cure}")


def check_unmasked(value: Any, name: str) -> None:
    """Require an array of which nothing is masked: what stands beneath a mask, NumPy hands on as if it were there."""
    if isinstance(value, np.ma.MaskedArray) and (masked := int(np.ma.getmaskarray(value).sum())):
        raise EvidentiaError(
            f"{name} has {masked} of {value.size} entries masked; fill them, x.filled(...), or leave their samples out"
        )


def in_native_order(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array with its bytes in the order of this machine, as PyTorch needs them; files may have the other one.

    Example:
        >>> in_native_order(np.array([1.5], dtype=">f4")).dtype == np.float32
        True
    """
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def kind_of(value: Any) -> str:
    """What was given where numbers are needed, in words.

    Example:
        >>> kind_of("3"), kind_of(np.array(["3"])), kind_of([[1], [2, 3]])
        ('str', 'ndarray of <U1', 'list with something else in it, or with rows of unequal length')
    """
    name = type(value).__name__
    if isinstance(value, list | tuple):
        return f"{name} with something else in it, or with rows of unequal length"
    return f"{name} of {value.dtype}" if isinstance(value, np.ndarray) else name


def shape_or_kind(value: Any) -> str:
    """What was given where a tensor of another shape is needed, in words.

    Example:
        >>> shape_or_kind(torch.zeros(2, 3)), shape_or_kind([0.0])
        ('shape (2, 3)', 'list')
    """
    return f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


def as_array(tensor: Tensor) -> npt.NDArray[Any]:
    """A NumPy array of a tensor's values; NumPy has no bfloat16, so those become float32."""
    values = tensor.detach().cpu()
    return (values.float() if values.dtype == torch.bfloat16 else values).numpy()


def check_class_names(class_names: Any) -> None:
    """Require names in an order: a set has none, and a text would be read letter by letter.

    Example:
        >>> check_class_names("cat")
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: class_names must be a list of names in the order of the classes, got
        'cat' (str); give such as ['cat', 'dog']
    """
    if isinstance(class_names, str | set | frozenset) or not isinstance(class_names, Iterable):
        raise EvidentiaError(
            f"class_names must be a list of names in the order of the classes, got {class_names!r} "
            f"({type(class_names).__name__}); give such as ['cat', 'dog']"
        )


def check_class_dim(tensor: Tensor, name: str) -> None:
    """Require a last dimension of at least two classes."""
    if tensor.ndim == 0 or tensor.shape[-1] < 2:
        raise EvidentiaError(
            f"{name} needs a last dimension with one entry for each of at least 2 classes, "
            f"got shape {tuple(tensor.shape)}"
        )


def check_finite(tensor: Tensor, name: str) -> None:
    """Require that no entry is NaN or infinite."""
    if tensor.is_meta:
        raise EvidentiaError(f"{name} has no values, on the device meta; make it on a device with memory")
    if not _all_finite(tensor):
        kind = "NaN" if bool(torch.isnan(tensor).any()) else "infinite values"
        where = (~torch.isfinite(tensor)).nonzero()
        first = f", first at [{', '.join(map(str, where[0].tolist()))}]" if tensor.ndim else ""
        raise EvidentiaError(
            f"{name} must be finite, got {kind} ({len(where)} of {tensor.numel()} entries are not finite{first}); "
            "check where they come from: missing data, a division by 0, or a network that diverged"
        )


def _all_finite(tensor: Tensor) -> bool:
    if tensor.numel() <= _ENTRIES:
        return bool(torch.isfinite(tensor).all())
    # Part by part: PyTorch takes twice the memory of what it looks at, and data may fill most of what there is.
    rows = max(1, _ENTRIES * len(tensor) // tensor.numel())
    return all(bool(torch.isfinite(part).all()) for part in tensor.split(rows))


def check_nonnegative(tensor: Tensor, name: str) -> None:
    """Require finite entries that are at least 0."""
    check_finite(tensor, name)
    if tensor.numel() and bool((tensor < 0).any()):
        raise EvidentiaError(f"{name} must be at least 0 everywhere, got a smallest value of {tensor.min().item():.6g}")


def check_positive(tensor: Tensor, name: str) -> None:
    """Require finite entries above 0."""
    check_finite(tensor, name)
    if tensor.numel() and bool((tensor <= 0).any()):
        raise EvidentiaError(
            f"{name} must be positive everywhere, got a smallest value of {tensor.detach().min().item():.6g}"
        )


def check_unit_interval(tensor: Tensor, name: str) -> None:
    """Require finite entries in [0, 1]."""
    check_finite(tensor, name)
    if tensor.numel() and bool(((tensor < 0) | (tensor > 1)).any()):
        low, high = tensor.min().item(), tensor.max().item()
        raise EvidentiaError(f"{name} must lie in [0, 1], got values from {low:.6g} to {high:.6g}")


def mass_tolerance(dtype: torch.dtype, terms: int) -> float:
    """How far a sum of `terms` masses may stray from 1 by rounding alone."""
    return 8 * torch.finfo(dtype).eps * max(terms, 8)


def check_adds_to_one(total: Tensor, terms: int, name: str) -> None:
    """Require masses that add up to 1, to the rounding of their dtype."""
    error = (total - 1).abs()
    if total.numel() and bool((error > mass_tolerance(total.dtype, terms)).any()):
        worst = total.flatten()[error.argmax()].item()
        raise EvidentiaError(f"{name} must add up to 1, got a sum of {worst:.6g}; divide by the sum first")


def check_same_length(first: Sequence[Any] | Tensor, second: Sequence[Any] | Tensor, names: str) -> None:
    """Require two aligned sequences."""
    if len(first) != len(second):
        raise EvidentiaError(f"{names} must have the same length, got {len(first)} and {len(second)}")
