"""A few labels, a large unlabeled pool, and what is known of that pool for scoring only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from operator import index
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from evidentia._support.checks import validation_enabled
from evidentia._support.columns import listed
from evidentia._support.errors import EvidentiaError
from evidentia.semisup.inputs.columns import check_numbers
from evidentia.semisup.inputs.labels import missing_classes, out_of_range_advice

Values: TypeAlias = Literal["bytes", "numbers"]

_PARTS = ("labeled", "validation", "test")


@dataclass(frozen=True, eq=False, repr=False)
class SemiSupervisedData:
    """Data for semi-supervised training on a pool that may hold samples of no class (OOD, out of distribution).

    Methods train on `x_labeled`, `y_labeled` and `x_unlabeled`. They may look at `x_validation` and `y_validation`,
    which are labels beyond the labeled ones and are to be counted as such; often there are none, and the labeled set
    serves in their place. `is_ood`, `y_unlabeled` and `ood_kind` are for scoring and for the oracle, and None where
    nobody knows.

    Attributes:
        x_labeled: inputs, shape `(n, ...)`.
        y_labeled: their classes, 0 to K - 1, shape `(n,)`, int64; each class at least once.
        x_unlabeled: the pool, shape `(m, ...)`.
        x_validation: inputs in distribution, outside all other parts; none unless asked for.
        y_validation: their classes.
        x_test: inputs in distribution only; none if there is no test.
        y_test: their classes.
        num_classes: K.
        is_ood: which samples of the pool belong to no class, shape `(m,)`, bool.
        y_unlabeled: the true classes of the pool, -1 for OOD.
        ood_kind: the number in `ood_names` of what each OOD sample is, -1 for the others.
        ood_names: names of the kinds of OOD.
        name: name of the data set.
        class_names: names of the classes, or nothing.
        columns: names of the features, if the inputs came from a table.
        from_bytes: whether the inputs were bytes, 0 to 255, and were divided by 255.
    """

    x_labeled: Tensor
    y_labeled: Tensor
    x_unlabeled: Tensor
    x_validation: Tensor
    y_validation: Tensor
    x_test: Tensor
    y_test: Tensor
    num_classes: int
    is_ood: Tensor | None = None
    y_unlabeled: Tensor | None = None
    ood_kind: Tensor | None = None
    ood_names: tuple[str, ...] = ()
    name: str = "data"
    class_names: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    from_bytes: bool = False

    def __post_init__(self) -> None:
        if hasattr(self.num_classes, "__index__"):
            # Of numpy, for one, whose numbers are not written to files as others are.
            object.__setattr__(self, "num_classes", index(self.num_classes))
        _check_inputs(self)
        _check_classes(self)
        _check_pool(self)
        if validation_enabled():
            for part in ("labeled", "unlabeled", "validation", "test"):
                check_numbers(getattr(self, f"x_{part}"), self.columns, f"x_{part}")

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return tuple(self.x_labeled.shape[1:])

    @property
    def values(self) -> Values | None:
        """What values of inputs tell them apart from others: that they were bytes, or that they are beyond [0, 1]."""
        if self.from_bytes:
            return "bytes"
        return "numbers" if bool(((self.x_labeled < 0) | (self.x_labeled > 1)).any()) else None

    @property
    def ratio(self) -> float | None:
        """The share of the pool that is out of distribution, if known."""
        return None if self.is_ood is None else float(self.is_ood.double().mean())

    @property
    def extra_labels(self) -> int:
        """How many labels there are beyond the labeled set: those of the validation set."""
        return len(self.y_validation)

    def describe(self) -> dict[str, Any]:
        """Sizes and names, ready for JSON."""
        kinds = {}
        if self.ood_kind is not None:
            kinds = {name: int((self.ood_kind == number).sum()) for number, name in enumerate(self.ood_names)}
        return {
            "name": self.name,
            "classes": self.num_classes,
            "sample_shape": list(self.sample_shape),
            "labeled": len(self.y_labeled),
            "unlabeled": len(self.x_unlabeled),
            "ood": None if self.is_ood is None else int(self.is_ood.sum()),
            "ood_kinds": kinds,
            "extra_labels": self.extra_labels,
            "test": len(self.y_test),
        }

    def to(self, device: torch.device | str, dtype: torch.dtype | None = None) -> SemiSupervisedData:
        """The same data on another device, and its inputs of another dtype if one is given, ready to be trained on."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        moved: dict[str, Any] = {
            # Autograd refuses tensors that were made in inference mode.
            name: (value.clone() if value.is_inference() else value).to(
                device, dtype if value.is_floating_point() else None
            )
            for name, value in values.items()
            if isinstance(value, Tensor)
        }
        return replace(self, **moved)

    def __repr__(self) -> str:
        ood = "" if self.is_ood is None else f" ({int(self.is_ood.sum())} of them out of distribution)"
        return (
            f"SemiSupervisedData({self.name!r}: {self.num_classes} classes, inputs of shape {self.sample_shape}, "
            f"{len(self.y_labeled)} labeled, {len(self.x_unlabeled)} unlabeled{ood}, {self.extra_labels} for "
            f"validation, {len(self.y_test)} for the test)"
        )


def _check_inputs(data: SemiSupervisedData) -> None:
    for part, why in (("labeled", "there is nothing to learn the classes from"), ("unlabeled", "the pool is empty")):
        if isinstance(x := getattr(data, f"x_{part}"), Tensor) and x.ndim and not len(x):
            raise EvidentiaError(f"x_{part} has no samples: {why}")
    first = data.x_labeled
    for part in ("labeled", "unlabeled", "validation", "test"):
        x = getattr(data, f"x_{part}")
        if not isinstance(x, Tensor) or not x.is_floating_point() or x.ndim < 2:
            got = f"a tensor of {x.dtype} of shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
            flat = isinstance(x, Tensor) and x.ndim == 1
            advice = "a single feature is a column, x[:, None]" if flat else "from_arrays converts arrays"
            raise EvidentiaError(f"x_{part} must be a floating tensor of shape (samples, ...), got {got}; {advice}")
        if 0 in x.shape[1:]:
            raise EvidentiaError(
                f"samples of x_{part} have no features: they are of shape {tuple(x.shape[1:])}; give at least one"
            )
        if x.shape[1:] != first.shape[1:]:
            raise EvidentiaError(
                f"all inputs must be of one shape, but samples of x_labeled are of shape {tuple(first.shape[1:])} and "
                f"those of x_{part} of shape {tuple(x.shape[1:])}"
            )
        if x.dtype != first.dtype or x.device != first.device:
            raise EvidentiaError(
                f"all inputs must have one dtype and device, but x_labeled is {first.dtype} on {first.device} and "
                f"x_{part} is {x.dtype} on {x.device}"
            )


def _check_classes(data: SemiSupervisedData) -> None:
    if not isinstance(data.num_classes, int) or data.num_classes < 2:
        raise EvidentiaError(f"num_classes must be a whole number of at least 2, got {data.num_classes!r}")
    for part in _PARTS:
        x, y = getattr(data, f"x_{part}"), getattr(data, f"y_{part}")
        _check_column(y, f"y_{part}", torch.int64, len(x), f"x_{part}")
        if len(y) and (int(y.min()) < 0 or int(y.max()) >= data.num_classes):
            raise EvidentiaError(
                f"y_{part} must hold classes from 0 to {data.num_classes - 1}, got labels from {int(y.min())} to "
                f"{int(y.max())}; {out_of_range_advice(y, data.num_classes)}"
            )
    missing, advice = missing_classes(data.y_labeled, data.num_classes)
    if missing:
        raise EvidentiaError(
            f"every class needs a labeled sample, but {_names(data, missing)} of {data.num_classes} classes "
            f"{'has' if len(missing) == 1 else 'have'} none; {advice}"
        )
    if len(data.class_names) not in (0, data.num_classes):
        raise EvidentiaError(
            f"there are {data.num_classes} classes and {len(data.class_names)} class_names "
            f"({listed(data.class_names)}); give one name for each class, or none"
        )


def _check_pool(data: SemiSupervisedData) -> None:
    size = len(data.x_unlabeled)
    ood, y, kind = data.is_ood, data.y_unlabeled, data.ood_kind
    for name, dtype in (("is_ood", torch.bool), ("y_unlabeled", torch.int64), ("ood_kind", torch.int64)):
        if (column := getattr(data, name)) is not None:
            _check_column(column, name, dtype, size, "x_unlabeled")
    if ood is None:
        if y is not None or kind is not None:
            raise EvidentiaError("y_unlabeled and ood_kind say which samples are out of distribution: give is_ood too")
        return
    if y is not None and (bool(((y < 0) != ood).any()) or int(y.min()) < -1 or int(y.max()) >= data.num_classes):
        raise EvidentiaError(
            f"y_unlabeled must be -1 where is_ood is true and a class from 0 to {data.num_classes - 1} elsewhere"
        )
    if kind is None:
        return
    if bool(((kind < 0) != ~ood).any()) or int(kind.min()) < -1 or int(kind.max()) >= len(data.ood_names):
        raise EvidentiaError(
            f"ood_kind must be a number in the {len(data.ood_names)} ood_names where is_ood is true and -1 elsewhere"
        )


def _check_column(column: Any, name: str, dtype: torch.dtype, size: int, beside: str) -> None:
    if not isinstance(column, Tensor) or column.dtype != dtype or column.shape != (size,):
        got = (
            f"a tensor of {column.dtype} of shape {tuple(column.shape)}"
            if isinstance(column, Tensor)
            else type(column).__name__
        )
        raise EvidentiaError(
            f"{name} must be a tensor of {dtype} with one entry for each of the {size} samples of {beside}, got {got}"
        )


def _names(data: SemiSupervisedData, classes: Sequence[int]) -> str:
    return f"class {listed([data.class_names[k] if k < len(data.class_names) else str(k) for k in classes])}"
