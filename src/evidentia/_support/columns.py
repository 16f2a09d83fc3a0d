"""Columns of tables by their names: in one order wherever they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from evidentia._support.errors import EvidentiaError

# Names of a list that are told; a table may have thousands.
_TOLD = 10


def table_columns(values: Any) -> tuple[str, ...]:
    """The names of the columns of a table, such as a `DataFrame`; empty for anything else, and if they are no texts.

    Example:
        >>> import pandas as pd
        >>> table_columns(pd.DataFrame({"heat": [20.0], "flow": [1.0]})), table_columns(pd.DataFrame([[20.0, 1.0]]))
        (('heat', 'flow'), ())
    """
    names = tuple(values.columns) if hasattr(values, "columns") and hasattr(values, "__array__") else ()
    return names if all(isinstance(name, str) for name in names) else ()


def column_order(found: Sequence[str], wanted: Sequence[str], name: str, unit: str = "columns") -> list[int]:
    """Where among the columns found each wanted one is.

    Args:
        found: the names that there are.
        wanted: the names in the order of training.
        name: what has the columns, for messages.
        unit: what its columns are called, for messages.

    Raises:
        EvidentiaError: unless both are the same names, each once, in whatever order.

    Example:
        >>> column_order(["heat", "flow"], ["flow", "heat"], "pump.csv")
        [1, 0]
        >>> column_order(["hat", "flow"], ["flow", "heat"], "pump.csv")
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: pump.csv has 2 columns, hat, flow, and needs flow, heat: heat is ...
    """
    if twice := [column for column, times in Counter(found).items() if times > 1]:
        raise EvidentiaError(
            f"{name} has {unit} of one name, {listed(twice)}, which cannot be put in the order of training; give every "
            "column a name of its own"
        )
    place_of, known = {column: place for place, column in enumerate(found)}, set(wanted)
    missing = [column for column in wanted if column not in place_of]
    unknown = [column for column in found if column not in known]
    if missing or unknown:
        parts = [
            f"{listed(columns)} {'is' if len(columns) == 1 else 'are'} {what}"
            for columns, what in ((missing, "missing"), (unknown, "unknown"))
            if columns
        ]
        raise EvidentiaError(
            f"{name} has {len(found)} {unit}, {listed(found)}, and needs {listed(wanted)}: {'; '.join(parts)}. "
            "Rename its columns, leave out those that are unknown, or train with these"
        )
    return [place_of[column] for column in wanted]


def listed(names: Sequence[str]) -> str:
    """Names in a sentence, the first ones if there are many.

    Example:
        >>> listed(["heat", "flow"]), listed("abcdefghijkl")
        ('heat, flow', 'a, b, c, d, e, f, g, h, i, j, ...')
    """
    return f"{', '.join(map(str, names[:_TOLD]))}{', ...' if len(names) > _TOLD else ''}"
