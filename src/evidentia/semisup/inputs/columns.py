"""The features of tables by their names, so that the same columns in another order are the same features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from evidentia._support.checks import check_finite
from evidentia._support.columns import column_order, listed
from evidentia._support.errors import EvidentiaError
from evidentia.semisup.inputs.conversion import is_table


def column_names(values: Any) -> tuple[str, ...]:
    """The names of the columns of a table, such as a `DataFrame`; empty for anything else.

    Example:
        >>> import pandas as pd
        >>> column_names(pd.DataFrame({"heat": [20.0], "flow": [1.0]})), column_names([[20.0, 1.0]])
        (('heat', 'flow'), ())
    """
    return tuple(map(str, values.columns)) if is_table(values) and hasattr(values, "columns") else ()


def common_columns(names: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The names of the features of several parts, in the order of the first part that has any.

    A table without names of its own numbers its columns, so names come before numbers.

    Example:
        >>> common_columns({"labeled": ("0", "1"), "unlabeled": ("heat", "flow"), "test": ()})
        ('heat', 'flow')
    """
    given = [tuple(columns) for columns in names.values() if columns]
    return next((columns for columns in given if columns != _numbering(columns)), given[0] if given else ())


def places(found: Sequence[str], wanted: Sequence[str], name: str) -> list[int] | None:
    """Where the wanted columns are; None if all are in their places, as those without names are taken to be.

    Args:
        found: the names of the columns that there are.
        wanted: the names in the order of training.
        name: what has the columns, for messages.

    Raises:
        EvidentiaError: unless both are the same names.

    Example:
        >>> places(("heat", "flow"), ("flow", "heat"), "the pool"), places((), ("flow", "heat"), "the pool")
        ([1, 0], None)
        >>> places(("0", "1"), ("flow", "heat"), "the pool"), places(("1", "0"), ("0", "1"), "the pool")
        (None, [1, 0])
    """
    if not found or not wanted or tuple(found) == tuple(wanted):
        return None
    # The numbers that a table gives its columns by itself say nothing beside names, and much beside the same numbers.
    numbers = any(tuple(columns) == _numbering(columns) for columns in (found, wanted))
    if numbers and len(found) == len(wanted) and set(found) != set(wanted):
        return None
    return column_order(found, wanted, name)


def check_numbers(x: Tensor, columns: Sequence[str], name: str) -> None:
    """Require that no number is missing or infinite, and tell in which columns of a table some are.

    Args:
        x: samples, of a table in the order of its columns.
        columns: their names; none for what is no table.
        name: what has the samples, for messages.
    """
    if columns and x.ndim == 2 and x.shape[1] == len(columns):
        missing = ~x.isfinite()
        if found := [column for column, some in zip(columns, missing.any(0).tolist(), strict=True) if some]:
            raise EvidentiaError(
                f"{name} must be finite, and {int(missing.any(1).sum())} of {len(x)} rows have missing or infinite "
                f"numbers, in {listed(found)}; fill them, as scikit-learn's SimpleImputer does, or leave these rows or "
                "columns out"
            )
    check_finite(x, name)


def _numbering(columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(str, range(len(columns))))
