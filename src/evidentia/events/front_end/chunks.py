"""Chunks of a stream as they come, from sound cards, files and sensors, as float32 samples."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError

Samples: TypeAlias = npt.NDArray[np.float32]

# More channels of sound than this are taken for a mistake of the order of dimensions.
_MOST_CHANNELS = 8
# So many numbers of a sample are shown in a message.
_SHOWN = 8
# The middle and the full scale of whole numbers.
_PCM: dict[str, tuple[float, float]] = {
    "int8": (0.0, 128.0),
    "uint8": (128.0, 128.0),
    "int16": (0.0, 32_768.0),
    "int32": (0.0, 2_147_483_648.0),
}


class Cleaned(NamedTuple):
    """A segment of some streams with nothing in it that a network cannot take."""

    block: Samples
    """The samples, shape `(B, n)` or `(B, n, channels)`."""
    invalid: npt.NDArray[np.int64] | None
    """How many of them were NaN or infinite, shape `(B,)`, int64; None if none were."""
    clipped: npt.NDArray[np.int64] | None
    """How many were beyond full scale; None if none were."""


def sound_samples(given: Any) -> Samples:
    """Sound as float32, `(n,)`: floats as they are, whole numbers by their full scale, channels averaged.

    Example:
        >>> sound_samples(np.array([[16384, 0], [-32768, -32768]], dtype=np.int16))
        array([ 0.25, -1.  ], dtype=float32)
    """
    array = _as_array(given)
    if array.dtype.kind in "iu":
        if array.dtype.name not in _PCM:
            raise EvidentiaError(
                f"whole numbers of type {array.dtype.name} have no known full scale; give sound as floats in [-1, 1], "
                f"or as one of: {', '.join(_PCM)}"
            )
        middle, scale = _PCM[array.dtype.name]
        array = (array.astype(np.float64) - middle) / scale
    samples = _as_float32(array)
    if samples.ndim == 2 and 1 <= samples.shape[1] <= _MOST_CHANNELS:
        samples = samples[:, 0] if samples.shape[1] == 1 else samples.mean(1, dtype=np.float32)
    if samples.ndim != 1:
        raise EvidentiaError(
            f"sound must have shape (n,) or (n, channels) with at most {_MOST_CHANNELS} channels, got "
            f"{samples.shape}; transpose sound that has its channels first"
        )
    return samples


def series_samples(given: Any, channels: int) -> Samples:
    """A piece of a series as float32, `(n, channels)`; `(n,)` will do with one channel.

    Example:
        >>> series_samples([[1, 2], [3, 4]], channels=2)
        array([[1., 2.],
               [3., 4.]], dtype=float32)
    """
    samples = _as_float32(_as_array(given))
    if samples.ndim == 1 and (channels == 1 or not samples.size):
        samples = samples.reshape(-1, channels)
    if samples.ndim != 2 or samples.shape[1] != channels:
        advice = ""
        if samples.ndim == 1:
            # The commonest slip: the numbers of one moment, as a sensor gives them.
            one = ", ".join(f"{number:g}" for number in samples) if len(samples) == channels <= _SHOWN else "..."
            advice = f"; give a row a sample, one sample as [[{one}]]"
        raise EvidentiaError(f"this series has samples of shape (n, {channels}), got {samples.shape}{advice}")
    return samples


def unmasked(given: Any) -> Any:
    """A masked array, as readers of netCDF files give it, with NaN for what is masked; anything else as it is.

    Example:
        >>> unmasked(np.ma.masked_greater([1.0, 9.9e36], 1e36))
        array([ 1., nan])
    """
    if not np.ma.isMaskedArray(given):
        return given
    if given.dtype.kind in "iu" and np.ma.is_masked(given):
        raise EvidentiaError(
            f"whole numbers have none for what is masked, got a masked array of {given.dtype}; give floats, "
            "array.astype(float)"
        )
    return given.filled(np.nan) if given.dtype.kind == "f" else given.data


def _as_array(given: Any) -> npt.NDArray[Any]:
    given = unmasked(given)
    try:
        if isinstance(given, Tensor):
            # NumPy has no bfloat16.
            given = given.detach().cpu().float() if given.dtype == torch.bfloat16 else given.detach().cpu()
        array = np.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise EvidentiaError(f"samples must be an array, a tensor or a list of numbers: {error}") from error
    if array.dtype.kind not in "iuf":
        raise EvidentiaError(f"samples must be real numbers, got {array.dtype}")
    return array


def _as_float32(array: npt.NDArray[Any]) -> Samples:
    if array.dtype == np.float32:
        # PyTorch takes neither read-only nor reversed memory.
        return array if array.flags.writeable and all(stride >= 0 for stride in array.strides) else array.copy()
    # Beyond float32 lies infinity, which is dealt with as such; so are NaN of several channels.
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(array, dtype=np.float32)
