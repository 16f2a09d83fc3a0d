"""Checks of single numbers as people give them: Python's and NumPy's alike, nothing else, and never NaN."""

from __future__ import annotations

import math
import numbers
from typing import Any

from evidentia._support.errors import EvidentiaError


def whole_number(value: Any, name: str, least: int, otherwise: str = "") -> int:
    """A whole number of at least `least`, as Python has it; `otherwise` tells what else there is.

    Example:
        >>> import numpy as np
        >>> whole_number(np.int64(5), "every", 1)
        5
        >>> whole_number(True, "every", 1)
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: every must be a whole number of at least 1, got True
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise EvidentiaError(f"{name} must be a whole number of at least {least}{otherwise}, got {value!r}")
    return int(value)


def real_number(
    value: Any, name: str, low: float, high: float = math.inf, *, open_low: bool = False, open_high: bool = False
) -> float:
    """A finite number between two bounds, which may be left out of the range, as Python has it.

    Example:
        >>> real_number(0.5, "rate", 0, 1, open_low=True)
        0.5
        >>> real_number("fast", "rate", 0, 1, open_low=True)
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: rate must be a number, more than 0 and at most 1, got 'fast'
    """
    # A number of NumPy or PyTorch, which has no dimensions.
    number: Any = value.item() if getattr(value, "ndim", None) == 0 else value
    if isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number):
        above = number > low if open_low else number >= low
        below = number < high if open_high else number <= high
        if above and below:
            return number
    lowest = f"more than {low:g}" if open_low else f"at least {low:g}"
    highest = "" if high == math.inf else f" and {'less than' if open_high else 'at most'} {high:g}"
    raise EvidentiaError(f"{name} must be a number, {lowest}{highest}, got {value!r}")
