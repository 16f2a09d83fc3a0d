"""The settings of objectives and robust methods: each in its range, and as Python has it."""

from __future__ import annotations

import math

from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import real_number, whole_number


def check_whole(method: object, name: str, least: int, otherwise: str = "") -> None:
    """Require a whole number of at least `least`; `otherwise` tells what else there is."""
    setattr(method, name, whole_number(getattr(method, name), _whose(method, name), least, otherwise))


def check_real(
    method: object, name: str, high: float = math.inf, *, open_low: bool = False, open_high: bool = False
) -> None:
    """Require a number from 0 to `high`, of which either may be left out of the range."""
    value = getattr(method, name)
    setattr(method, name, real_number(value, _whose(method, name), 0, high, open_low=open_low, open_high=open_high))


def check_view(method: object, name: str) -> None:
    """Require the name of one of the two augmentations."""
    value = getattr(method, name)
    if value not in ("weak", "strong"):
        raise EvidentiaError(f"{_whose(method, name)} must be 'weak' or 'strong', got {value!r}")


def _whose(method: object, name: str) -> str:
    return f"{name} of {type(method).__name__}"
