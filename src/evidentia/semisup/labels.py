"""The classes of samples as numbers, whether they were given as numbers or as names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia.semisup.conversion import is_table, to_tensor

Column: TypeAlias = Tensor | list[str]
"""Classes, one a sample: whole numbers, or names."""


def label_column(values: Any, what: str) -> Column:
    """Whole numbers as a tensor of int64, or names as a list.

    Args:
        values: an array, a tensor, a list, or a column of a table.
        what: whose classes they are.

    Example:
        >>> label_column(np.array([1, 0], dtype=np.uint8), "labeled"), label_column(["cat", "dog"], "labeled")
        (tensor([1, 0]), ['cat', 'dog'])
    """
    given = np.asarray(values) if is_table(values) else values
    if isinstance(given, np.ndarray) and given.ndim != 1:
        raise EvidentiaError(
            f"the {what} classes must be one a sample, got {given.dtype} of shape {given.shape}; give one column"
        )
    entries = given.tolist() if isinstance(given, np.ndarray) and given.dtype.kind in "OUT" else given
    if isinstance(entries, list | tuple):
        given = entries = [_number(entry) for entry in entries]
        texts = [entry for entry in entries if isinstance(entry, str)]
        if texts and len(texts) < len(entries):
            other = next(entry for entry in entries if not isinstance(entry, str))
            raise EvidentiaError(
                f"the {what} classes mix names and other values, such as {texts[0]!r} and {other!r} "
                f"({type(other).__name__}); give names alone, or numbers alone"
            )
        if texts:
            return texts
    labels = to_tensor(given, f"the {what} classes")
    if labels.is_floating_point() or labels.ndim != 1:
        raise EvidentiaError(
            f"the {what} classes must be whole numbers or names, one a sample, got {labels.dtype} of shape "
            f"{tuple(labels.shape)}; number the classes from 0"
        )
    return labels.to(torch.int64)


def numbered(
    columns: Mapping[str, Column], class_names: Sequence[str] = (), num_classes: int | None = None
) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """Classes by number, and their names.

    Args:
        columns: classes of each part; those of "labeled" decide which classes there are.
        class_names: names in the order of the classes; by default sorted.
        num_classes: how many there are said to be.

    Example:
        >>> numbered({"labeled": ["dog", "cat", "dog"], "validation": ["cat"]})
        ({'labeled': tensor([1, 0, 1]), 'validation': tensor([0])}, ('cat', 'dog'))
    """
    known = columns["labeled"]
    by_name = not isinstance(known, Tensor)
    names = tuple(class_names) or (tuple(sorted(set(known))) if not isinstance(known, Tensor) else ())
    if by_name and num_classes not in (None, len(names)):
        raise EvidentiaError(
            f"num_classes is {num_classes}, but there are {len(names)} names of classes ({_some(names)}); every class "
            "needs a labeled sample, or leave num_classes out"
        )
    numbers, number_of = {}, {name: number for number, name in enumerate(names)}
    for part, column in columns.items():
        if isinstance(column, Tensor):
            if by_name and len(column):
                raise EvidentiaError(
                    f"the labeled classes are names ({_some(names)}) and the {part} classes are numbers; give the same "
                    "names in both"
                )
            numbers[part] = column
            continue
        if not by_name:
            raise EvidentiaError(
                f"the {part} classes are names, such as {column[0]!r}, and the labeled classes are numbers; give "
                "numbers in both"
            )
        if unknown := sorted(set(column) - number_of.keys()):
            raise EvidentiaError(
                f"the {part} classes hold {unknown[0]!r}, which is none of the classes ({_some(names)}); "
                f"{'name it in class_names' if class_names else 'label a sample of it'}, or leave its samples out"
            )
        numbers[part] = torch.tensor([number_of[name] for name in column], dtype=torch.int64)
    return numbers, names


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor | np.generic) and value.ndim == 0 else value


def _some(names: Sequence[str]) -> str:
    return f"{', '.join(map(str, names[:10]))}{', ...' if len(names) > 10 else ''}"
