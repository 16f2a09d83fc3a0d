"""How right predictions are, with the truth in any form that `fit` takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia.semisup.inputs.labels import label_column, numbered


def share_right(predicted: Tensor, truth: Any, class_names: Sequence[str], num_classes: int) -> float:
    """The share of samples whose class was predicted.

    Args:
        predicted: numbers of classes, shape `(n,)`.
        truth: the classes by number or by name, one a sample.
        class_names: names of the classes, or nothing.
        num_classes: K.

    Raises:
        EvidentiaError: if a class is none of these, or there is not one a sample.

    Example:
        >>> import torch
        >>> share_right(torch.tensor([0, 1, 1, 1]), ["cat", "dog", "cat", "dog"], ("cat", "dog"), 2)
        0.75
    """
    column = label_column(truth, "true")
    if not isinstance(column, Tensor):
        if not class_names:
            raise EvidentiaError(
                f"the true classes are names, such as {column[0]!r}, and the classifier was trained on classes by "
                "number; give numbers, or train it with class_names"
            )
        if unknown := sorted(set(column) - set(class_names)):
            raise EvidentiaError(
                f"the true classes hold {unknown[0]!r}, which is none of the classes that the classifier was trained "
                f"on ({', '.join(class_names)}); leave its samples out"
            )
        column = numbered({"labeled": column}, class_names)[0]["labeled"]
    if column.shape != predicted.shape:
        raise EvidentiaError(f"there are {len(predicted)} samples and {len(column)} true classes; give one a sample")
    if len(column) and not 0 <= int(column.min()) <= int(column.max()) < num_classes:
        wrong = int(column.min()) if int(column.min()) < 0 else int(column.max())
        raise EvidentiaError(
            f"the true classes hold {wrong}, and the classifier was trained on classes from 0 to {num_classes - 1}; "
            "leave its samples out"
        )
    return float((predicted == column.to(predicted)).double().mean())
