"""Multi-class, binary and multi-label tasks on the same methods.

A binary task is one variable with two classes, a multi-label task is K such variables; a multi-class task is one
variable with K classes. Every method knows only variables with classes, in the last dimension.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from evidentia._support.checks import validation_enabled
from evidentia._support.errors import EvidentiaError
from evidentia._support.registry import Registry
from evidentia._support.scalars import whole_number
from evidentia.opinions import BinomialOpinion, MultinomialOpinion, Opinion

TASKS: Registry[Callable[[int], TaskShape]] = Registry("task")


class TaskShape(ABC):
    """How labels, outputs, probabilities and opinions of a task are laid out."""

    # How many classes there must be.
    least = 1

    def __init__(self, num_classes: int) -> None:
        self.num_classes = whole_number(num_classes, "num_classes", self.least)
        self.variables = 1
        self.classes_per_variable = 2

    def shape(self, outputs: Tensor) -> Tensor:
        """Give each variable a row of its own, if there are several."""
        return outputs

    @abstractmethod
    def target(self, target: Tensor, count: int) -> Tensor:
        """Labels of `count` samples as the method wants them: indices or probabilities of each variable's classes."""

    @abstractmethod
    def class_of(self, target: Tensor) -> Tensor | None:
        """The (likeliest) class of each sample, or None if a sample has no single one."""

    def probs(self, probs: Tensor) -> Tensor:
        """Probabilities as a `Prediction` wants them: that of class 1 for variables with two classes."""
        return probs[..., 1]

    def opinion(self, opinion: Opinion) -> Opinion:
        """Opinions as a `Prediction` wants them: binomial ones for variables with two classes."""
        if not isinstance(opinion, MultinomialOpinion):
            raise EvidentiaError(f"a {type(opinion).__name__} needs a multiclass task")
        return BinomialOpinion.from_multinomial(opinion)


@TASKS.register("multiclass")
class Multiclass(TaskShape):
    """One of K classes."""

    least = 2

    def __init__(self, num_classes: int) -> None:
        super().__init__(num_classes)
        self.classes_per_variable = self.num_classes

    def target(self, target: Tensor, count: int) -> Tensor:
        """Class indices or class probabilities, as they are."""
        return target

    def class_of(self, target: Tensor) -> Tensor:
        """The class, or the likeliest."""
        return target.argmax(-1) if target.is_floating_point() else target

    def probs(self, probs: Tensor) -> Tensor:
        """The probability of every class."""
        return probs

    def opinion(self, opinion: Opinion) -> Opinion:
        """Whatever the method gives."""
        return opinion


@TASKS.register("binary")
class Binary(TaskShape):
    """Yes or no."""

    def __init__(self, num_classes: int) -> None:
        super().__init__(num_classes)
        if self.num_classes != 2:
            raise EvidentiaError(f"a binary task has num_classes=2, got {num_classes}; use task='multilabel' for more")

    def target(self, target: Tensor, count: int) -> Tensor:
        """0 and 1 as class indices; a trailing dimension of size 1 may be there."""
        if target.ndim == 2 and target.shape[1] == 1:
            target = target.squeeze(1)
        return _yes_or_no(target, (count,))

    def class_of(self, target: Tensor) -> Tensor:
        """No or yes, whichever is likelier."""
        return (target.reshape(-1) > 0.5).long()


@TASKS.register("multilabel")
class Multilabel(TaskShape):
    """Any number of K labels at once."""

    def __init__(self, num_classes: int) -> None:
        super().__init__(num_classes)
        self.variables = self.num_classes

    def shape(self, outputs: Tensor) -> Tensor:
        """One row of outputs a label."""
        return outputs.reshape(len(outputs), self.variables, -1)

    def target(self, target: Tensor, count: int) -> Tensor:
        """0 and 1 for each label, as class indices."""
        return _yes_or_no(target, (count, self.variables))

    def class_of(self, target: Tensor) -> None:
        """A sample may have any number of labels."""


def _yes_or_no(target: Tensor, shape: tuple[int, ...]) -> Tensor:
    """0/1 labels as class indices, and labels in between as probabilities of the two classes."""
    if target.shape != shape:
        raise EvidentiaError(f"labels need shape {shape}, got {tuple(target.shape)}")
    if validation_enabled() and target.numel() and not bool(((target >= 0) & (target <= 1)).all()):
        raise EvidentiaError(
            f"labels must be 0 or 1, got values from {float(target.min()):g} to {float(target.max()):g}"
        )
    if not target.is_floating_point():
        return target.long()
    return torch.stack([1 - target, target], -1)
