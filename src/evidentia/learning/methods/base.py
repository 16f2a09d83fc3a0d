"""What a method is: the meaning of a network's outputs, and the loss they are trained by."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from evidentia._support.registry import Registry
from evidentia._support.scalars import real_number, whole_number
from evidentia.learning.activations import ACTIVATIONS
from evidentia.learning.annealing import annealed_weight
from evidentia.learning.losses import as_probabilities, check_indices, misleading_evidence
from evidentia.opinions import MultinomialOpinion, Opinion

METHODS: Registry[Callable[..., Method]] = Registry("method")

# The label of a sample that belongs to no class, for methods that learn from such samples.
OUTLIER = -1


class Method(nn.Module, ABC):
    """Gives outputs of shape `(..., num_outputs)` their meaning.

    A method is a module because some have state: what they learn from the training set besides the network's weights.

    Args:
        num_classes: K, at least 2.
    """

    # Whether training samples may carry the label OUTLIER.
    learns_from_outliers = False
    # Whether `calibrate` wants the training set's features once training is over.
    needs_features = False

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.num_classes = whole_number(num_classes, "num_classes", 2)

    @property
    def num_outputs(self) -> int:
        """How many numbers the network must give for each sample."""
        return self.num_classes

    @property
    def num_targets(self) -> int:
        """How many different labels there are; class indices run below it."""
        return self.num_classes

    @abstractmethod
    def opinion(self, outputs: Tensor) -> Opinion | None:
        """The opinion that the outputs express; None if the method gives none."""

    @abstractmethod
    def loss(self, outputs: Tensor, target: Tensor, epoch: float) -> Tensor:
        """The loss of each sample, given class indices or class probabilities."""

    def check_labels(self, labels: Tensor) -> None:
        """Raise a clear error if any label of a training set cannot be learnt from."""
        if not labels.is_floating_point() and labels.ndim == 1:
            check_indices(labels, self.num_targets, OUTLIER if self.learns_from_outliers else 0)
        else:
            as_probabilities(labels, labels.new_empty(len(labels), self.num_classes), self.learns_from_outliers)

    def probs(self, outputs: Tensor) -> Tensor:
        """The predicted class probabilities."""
        opinion = self.opinion(outputs)
        if opinion is None:
            raise AssertionError("a method without opinions must say what its probabilities are")
        return opinion.projected

    def adjust(self, outputs: Tensor, features: Tensor) -> Tensor:
        """Outputs as they are to be used for prediction, given the features they come from."""
        return outputs

    def calibrate(self, features: Tensor, target: Tensor | None) -> None:
        """Learn from the training set's features once the network is trained."""


class DirichletMethod(Method):
    """A method whose outputs become evidence, one number a class: alpha = evidence + prior.

    Args:
        num_classes: K.
        activation: how outputs become evidence; one of `evidentia.learning.ACTIVATIONS`.
        prior: what every class has before any evidence; the opinion's prior weight is `prior * K`.
        kl_weight: the full weight of the penalty on evidence for wrong classes, before division by K.
        kl_ramp: the epochs over which that weight rises from 0.
    """

    def __init__(
        self,
        num_classes: int,
        activation: str = "exp",
        prior: float = 1.0,
        kl_weight: float = 1.0,
        kl_ramp: float = 10.0,
    ) -> None:
        super().__init__(num_classes)
        self.activation = activation
        self.prior = real_number(prior, "prior", 0, open_low=True)
        self.kl_weight = real_number(kl_weight, "kl_weight", 0)
        self.kl_ramp = real_number(kl_ramp, "kl_ramp", 0)
        self._activate = ACTIVATIONS[activation]

    @abstractmethod
    def risk(self, alpha: Tensor, y: Tensor) -> Tensor:
        """What a sample costs apart from the penalty on misleading evidence; `y` holds class probabilities."""

    def evidence(self, outputs: Tensor) -> Tensor:
        """The evidence for each class, at least 0."""
        return self._activate(outputs)

    def opinion(self, outputs: Tensor) -> Opinion:
        """The multinomial opinion of the evidence."""
        return MultinomialOpinion.from_evidence(
            self.evidence(outputs), prior_weight=self.prior * self.num_classes, validate=False
        )

    def loss(self, outputs: Tensor, target: Tensor, epoch: float) -> Tensor:
        """The risk plus the annealed penalty on evidence for wrong classes."""
        evidence = self.evidence(outputs)
        y = as_probabilities(target, evidence, self.learns_from_outliers)
        loss = self.risk(evidence + self.prior, y)
        weight = annealed_weight(epoch, self.num_classes, self.kl_weight, self.kl_ramp)
        return loss + weight * misleading_evidence(evidence, y, self.prior) if weight > 0 else loss

    def extra_repr(self) -> str:
        """The settings, for `print(model)`."""
        settings: dict[str, Any] = {
            "num_classes": self.num_classes,
            "activation": self.activation,
            "prior": self.prior,
            "kl_weight": self.kl_weight,
        }
        return ", ".join(f"{name}={value}" for name, value in settings.items())
