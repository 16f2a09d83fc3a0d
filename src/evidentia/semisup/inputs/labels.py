"""The classes of samples as numbers, whether they were given as numbers or as names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from evidentia._support.checks import check_class_names
from evidentia._support.columns import listed
from evidentia._support.errors import EvidentiaError
from evidentia.semisup.inputs.conversion import is_table, to_tensor

Column: TypeAlias = Tensor | list[str]
"""Classes, one a sample: whole numbers, or names."""
_ONE_HOT = "this looks one-hot: give y.argmax(1)"
# Classes without a label that are told.
_TOLD = 10


def label_column(values: Any, what: str) -> Column:
    """Whole numbers, also those of a floating dtype, as a tensor of int64, or names as a list.

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
            f"the {what} classes must be one a sample, got {given.dtype} of shape {given.shape}; "
            f"{_ONE_HOT if _is_one_hot(given) else 'give one column'}"
        )
    entries = given.tolist() if isinstance(given, np.ndarray) and given.dtype.kind in "OUTS" else given
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
    if labels.ndim != 1:
        usual = "give one column, labels[:, 0]" if labels.ndim == 2 else "number the classes from 0"
        raise EvidentiaError(
            f"the {what} classes must be whole numbers or names, one a sample, got {labels.dtype} of shape "
            f"{tuple(labels.shape)}; {_ONE_HOT if _is_one_hot(labels) else usual}"
        )
    whole = labels.to(torch.int64)
    if labels.is_floating_point() and bool((other := whole.to(labels.dtype) != labels).any()):
        value = float(labels[other][0])
        advice = "move rows without a label to the pool" if math.isnan(value) else "number the classes from 0"
        raise EvidentiaError(
            f"the {what} classes must be whole numbers or names, got {value:g} among them ({labels.dtype}); {advice}"
        )
    return whole


def out_of_range_advice(labels: Tensor, num_classes: int) -> str:
    """What to do about labels that are not all from 0 to K - 1, by the usual causes.

    Example:
        >>> out_of_range_advice(torch.tensor([0, 1, -1]), 2)
        '-1 is the usual mark of samples without a label: move these rows to the pool'
    """
    values = labels.unique()
    least, most = int(values[0]), int(values[-1])
    if values.tolist() == [-1, 1]:
        return "if the two classes are -1 and 1, give (y + 1) // 2; if -1 is no label, move these rows to the pool"
    if least == -1:
        return "-1 is the usual mark of samples without a label: move these rows to the pool"
    if (least, most) == (1, num_classes):
        return "labels seem to begin at 1: give y - 1"
    return "number the classes from 0, or give the right num_classes"


def missing_classes(labels: Tensor, num_classes: int) -> tuple[list[int], str]:
    """The first classes of K without a label, and what to do about them; without memory for every class.

    Example:
        >>> missing_classes(torch.tensor([0, 2]), 3)
        ([1], 'label some, or number only the classes that have labels')
    """
    present = set(labels.unique().tolist())
    missing = list(islice((number for number in range(num_classes) if number not in present), _TOLD + 1))
    if missing == [0]:
        return missing, "labels seem to begin at 1: give y - 1"
    if num_classes - len(present) > max(_TOLD, len(present)):
        # Numbers of articles or postal codes, which are names.
        return missing, "labels that are not numbered from 0 are names: give [str(label) for label in y]"
    return missing, "label some, or number only the classes that have labels"


def names_of_classes(class_names: Sequence[str] | None) -> tuple[str, ...]:
    """Names of classes in their order, as text; none if there are none.

    Example:
        >>> names_of_classes(None), names_of_classes(np.array([3, 5]))
        ((), ('3', '5'))
    """
    if class_names is None:
        return ()
    check_class_names(class_names)
    names = tuple(str(_number(name)) for name in class_names)
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise EvidentiaError(
            f"class_names must differ, got {listed(twice)} more than once; give each class its own name"
        )
    return names


def numbered(
    columns: Mapping[str, Column], class_names: Sequence[str] | None = (), num_classes: int | None = None
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
    given = names_of_classes(class_names)
    names = given or (tuple(sorted(set(known))) if not isinstance(known, Tensor) else ())
    if by_name and num_classes not in (None, len(names)):
        raise EvidentiaError(
            f"num_classes is {num_classes}, but there are {len(names)} names of classes ({listed(names)}); every class "
            "needs a labeled sample, or leave num_classes out"
        )
    numbers, number_of = {}, {name: number for number, name in enumerate(names)}
    for part, column in columns.items():
        if isinstance(column, Tensor):
            if by_name and len(column):
                raise EvidentiaError(
                    f"the labeled classes are names ({listed(names)}) and the {part} classes are numbers; give the "
                    "same names in both"
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
                f"the {part} classes hold {unknown[0]!r}, which is none of the classes ({listed(names)}); "
                f"{'name it in class_names' if given else 'label a sample of it'}, or leave its samples out"
            )
        numbers[part] = torch.tensor([number_of[name] for name in column], dtype=torch.int64)
    return numbers, names


def _number(value: Any) -> Any:
    plain = value.item() if isinstance(value, Tensor | np.generic) and value.ndim == 0 else value
    # Names in files such as those of HDF5 are bytes.
    return plain.decode(errors="backslashreplace") if isinstance(plain, bytes) else plain


def _is_one_hot(values: Tensor | npt.NDArray[Any]) -> bool:
    if values.ndim != 2 or values.shape[1] < 2 or (isinstance(values, np.ndarray) and values.dtype.kind not in "biuf"):
        return False
    return bool(((values == 0) | (values == 1)).all()) and bool((values.sum(1) == 1).all())
