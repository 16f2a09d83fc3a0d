"""Settings that are one of a few values, told from what only looks like one."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from evidentia._support.errors import EvidentiaError

Scope: TypeAlias = Literal["last", "full"]
Norm: TypeAlias = Literal["none", "batch", "frozen", "weighted"]
Order: TypeAlias = Literal["concat", "separate"]


def as_flag(value: object, name: str) -> bool:
    """True or False, required to be one: any text, also "false", would count as true.

    Args:
        value: what was given.
        name: of the setting.

    Example:
        >>> as_flag(np.True_, "joint")
        True
        >>> as_flag("false", "joint")
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: joint must be True or False, got 'false'
    """
    if not isinstance(value, bool | np.bool_):
        raise EvidentiaError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_scope(scope: Scope) -> None:
    """Require one of the two parts of a network that hypergradients go through.

    Example:
        >>> check_scope("first")
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: the scope must be 'last' (the last layer) or 'full' (the network),
        got 'first'
    """
    if scope not in ("last", "full"):
        raise EvidentiaError(f"the scope must be 'last' (the last layer) or 'full' (the network), got {scope!r}")


def refuse_class(value: object, setting: str) -> None:
    """Refuse a class of methods or networks where one of its instances is meant.

    Example:
        >>> from evidentia.semisup import VAT
        >>> refuse_class(VAT, "objective")
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: objective was given the class VAT; write objective=VAT(), with its
        settings
    """
    if isinstance(value, type):
        name = value.__name__
        raise EvidentiaError(f"{setting} was given the class {name}; write {setting}={name}(), with its settings")
