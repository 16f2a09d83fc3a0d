"""Any network, as a classifier that gives opinions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from typing_extensions import Self

from evidentia._support.checks import TensorLike, check_finite, shape_or_kind, validation_enabled
from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia._support.files import load_tensors, save_tensors
from evidentia.learning.checkpoint import load_module_tensors, module_tensors
from evidentia.learning.data import Samples, as_dataset, by_batch, in_order, to_model
from evidentia.learning.methods import METHODS, Method
from evidentia.learning.modes import evaluating
from evidentia.learning.tasks import TASKS
from evidentia.learning.training import TrainingSettings, train
from evidentia.opinions import Opinion
from evidentia.prediction import Prediction, Task, class_names_for

_KIND = "evidential classifier"


class EvidentialClassifier(nn.Module):
    """Wraps any `nn.Module` so that it learns to give opinions instead of bare probabilities.

    Calling it gives the raw outputs; `loss` turns them into a loss, `opinion` and `predict` give what they mean. Train
    it in a loop of your own, or with `fit`.

    Args:
        backbone: maps a batch of inputs to features of shape `(N, D)`; further dimensions are flattened.
        num_classes: the number of classes; 2 for a binary task.
        method: how outputs become opinions and what they are trained by; a name of `evidentia.learning.METHODS`.
        task: "multiclass", "binary" (labels 0 and 1) or "multilabel" (labels of shape `(N, K)`, each 0 or 1).
        head: "linear" puts a linear layer after the backbone, on its device and of its dtype, its size found on first
            use; a module of your own; or None if the backbone gives the outputs itself, `num_outputs` of them a sample.
        class_names: a name for each class.
        method_options: further settings of the method, such as `kl_weight` or `activation`.

    Example:
        A training loop in five lines:

        >>> import torch, evidentia as ev
        >>> x = torch.randn(60, 2) + torch.tensor([[4.0, 0.0], [0.0, 4.0], [-4.0, -4.0]]).repeat(20, 1)
        >>> y = torch.arange(3).repeat(20)
        >>> model = ev.EvidentialClassifier(torch.nn.Linear(2, 16), num_classes=3)
        >>> optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        >>> for epoch in range(30):
        ...     loss = model.loss(model(x), y, epoch)
        ...     optimizer.zero_grad()
        ...     loss.backward()
        ...     optimizer.step()
        >>> bool((model.predict(x).labels == y).float().mean() > 0.9)
        True
    """

    def __init__(
        self,
        backbone: nn.Module,
        num_classes: int,
        method: str = "edl",
        task: Task = "multiclass",
        head: nn.Module | str | None = "linear",
        class_names: Sequence[str] | None = None,
        **method_options: Any,
    ) -> None:
        super().__init__()
        if not isinstance(backbone, nn.Module):
            raise EvidentiaError(f"the backbone must be a torch.nn.Module, got {type(backbone).__name__}")
        self._task = TASKS[task](num_classes)
        self.task: Task = task
        self.num_classes = self._task.num_classes
        self.class_names = None if class_names is None else class_names_for(self.num_classes, class_names)
        self.method_name = method
        self.method_options: dict[str, Any] = _plain(method_options)
        last = next(reversed([*backbone.parameters()]), torch.empty(0))
        self.method = _build_method(method, self._task.classes_per_variable, self.method_options).to(last.device)
        self.backbone = backbone
        self.head = self._build_head(head, last)
        self.history: list[dict[str, float]] = []

    @property
    def num_outputs(self) -> int:
        """How many numbers a sample the head (or a backbone without one) must give."""
        return self._task.variables * self.method.num_outputs

    def features(self, x: Tensor) -> Tensor:
        """The backbone's features, flattened to shape `(N, D)`."""
        features = self.backbone(x)
        if not isinstance(features, Tensor) or features.ndim < 2 or len(features) != len(x):
            raise EvidentiaError(
                f"the backbone must give features of shape ({len(x)}, ...) for a batch of {len(x)} inputs, got "
                f"{shape_or_kind(features)}"
            )
        return features.flatten(1)

    def forward(self, x: Tensor) -> Tensor:
        """The raw outputs: shape `(N, outputs)`, for a multi-label task `(N, K, outputs)`."""
        return self._outputs(self.features(x))

    def loss(self, outputs: Tensor, target: Tensor, epoch: float = 0.0) -> Tensor:
        """The mean loss of a batch of outputs.

        Args:
            outputs: what calling the model gave.
            target: class indices (binary: 0 and 1; multi-label: 0 and 1 for each sample and class).
            epoch: epochs done so far, by which penalties are annealed.
        """
        return self.sample_losses(outputs, target, epoch).mean()

    def sample_losses(self, outputs: Tensor, target: Tensor, epoch: float = 0.0) -> Tensor:
        """The loss of each sample, shape `(N,)`; of a multi-label one, the mean over its classes."""
        losses = self.method.loss(outputs, self._task.target(target, len(outputs)), epoch)
        return losses.flatten(1).mean(1) if losses.ndim > 1 else losses

    def opinion(self, x: Tensor) -> Opinion:
        """The opinions about a batch of inputs; gradients flow."""
        opinion = self._opinion(self._adjusted(x))
        if opinion is None:
            raise EvidentiaError(f"method {self.method_name!r} gives no opinions; choose an evidential one")
        return opinion

    @torch.no_grad()
    def predict(self, x: Samples, batch_size: int = 1024) -> Prediction:
        """Predict in evaluation mode, batch by batch; takes a tensor, an array or a `Dataset`."""
        return self.predict_with(self._adjusted, x, batch_size)

    @torch.no_grad()
    def predict_with(self, outputs: Callable[[Tensor], Tensor], x: Samples, batch_size: int = 1024) -> Prediction:
        """Predict from the outputs that a function gives for each batch of inputs."""
        with evaluating(self):
            return Prediction.cat(by_batch(lambda batch: self.interpret(outputs(batch)), x, batch_size, self))

    def interpret(self, outputs: Tensor) -> Prediction:
        """What a batch of outputs means."""
        if validation_enabled():
            check_finite(outputs, "the network's outputs")
        probs = self._task.probs(self.method.probs(outputs))
        return Prediction(probs, self._opinion(outputs), task=self.task, class_names=self.class_names)

    def check_labels(self, labels: Tensor) -> None:
        """Raise a clear error if any label cannot be trained on."""
        if self.task == "multiclass":
            self.method.check_labels(labels)
        else:
            self._task.target(labels, len(labels))

    def fit(self, x: Any, y: TensorLike | None = None, **settings: Any) -> Self:
        """Train on inputs and labels, or on a `Dataset` of both.

        Args:
            x: inputs as a tensor or an array, or a `Dataset` that gives pairs of input and label. Floating numbers of
                any precision get the network's; integers stay integers, for networks that begin with an embedding.
            y: labels, unless `x` is a `Dataset`.
            settings: see `evidentia.learning.TrainingSettings`: epochs, batch_size, learning_rate, weight_decay,
                schedule, validation, patience, seed, checkpoint, progress.

        Example:
            >>> import torch, evidentia as ev
            >>> x = torch.randn(60, 2) + torch.tensor([[4.0, 0.0], [0.0, 4.0], [-4.0, -4.0]]).repeat(20, 1)
            >>> y = torch.arange(3).repeat(20)
            >>> model = ev.EvidentialClassifier(torch.nn.Linear(2, 16), num_classes=3)
            >>> pred = model.fit(x, y, epochs=30, learning_rate=0.05).predict(x)
            >>> bool((pred.labels == y).float().mean() > 0.9)
            True
        """
        train(self, x, y, TrainingSettings(**settings))
        return self

    @torch.no_grad()
    def calibrate(self, x: Any, y: TensorLike | None = None, batch_size: int = 1024) -> Self:
        """Let the method learn from the trained features, if it has to; `fit` does this at its end.

        Args:
            x: the training inputs, or the `Dataset` of inputs and labels.
            y: their labels, unless `x` is a `Dataset`.
            batch_size: samples at a time.
        """
        if not self.method.needs_features:
            return self
        features, labels = [], []
        with evaluating(self):
            for inputs, target in in_order(as_dataset(x, y, self), batch_size):
                features.append(self.features(to_model(inputs, self)))
                labels.append(target)
        self.method.calibrate(torch.cat(features), self._task.class_of(torch.cat(labels)))
        return self

    def settings(self) -> dict[str, Any]:
        """What, besides the network, makes this classifier what it is; plain JSON."""
        return {
            "num_classes": self.num_classes,
            "task": self.task,
            "method": self.method_name,
            "method_options": self.method_options,
            "class_names": self.class_names,
        }

    def save(self, path: str | Path) -> None:
        """Save weights and settings to one file, whole or not at all. The backbone's code is not in it."""
        if any(is_lazy(tensor) for tensor in self.state_dict().values()):
            raise EvidentiaError("the head has no size yet; train the model or call it on a batch before saving it")
        save_tensors(path, _KIND, module_tensors(self), self.settings())

    @classmethod
    def load(cls, path: str | Path, backbone: nn.Module, head: nn.Module | str | None = "linear") -> Self:
        """Load what `save` wrote into a backbone (and head) of the same shape; nothing in the file can run code."""
        tensors, content = load_tensors(path, _KIND)
        try:
            model = cls(
                backbone,
                content["num_classes"],
                content["method"],
                content["task"],
                head,
                content["class_names"],
                **content["method_options"],
            )
            load_module_tensors(model, tensors)
        except (KeyError, TypeError, RuntimeError) as error:
            raise FileFormatError(f"{path} does not fit this backbone and head: {error}") from error
        return model

    def _outputs(self, features: Tensor) -> Tensor:
        outputs = features if self.head is None else self.head(features)
        if outputs.ndim != 2 or outputs.shape[1] != self.num_outputs:
            raise EvidentiaError(
                f"method {self.method_name!r} for a {self.task} task with {self.num_classes} classes needs "
                f"{self.num_outputs} outputs a sample, got shape {tuple(outputs.shape)}; leave head='linear' to add "
                "a layer that gives them"
            )
        return self._task.shape(outputs)

    def _adjusted(self, x: Tensor) -> Tensor:
        features = self.features(x)
        return self.method.adjust(self._outputs(features), features)

    def _opinion(self, outputs: Tensor) -> Opinion | None:
        opinion = self.method.opinion(outputs)
        return None if opinion is None else self._task.opinion(opinion)

    def _build_head(self, head: nn.Module | str | None, like: Tensor) -> nn.Module | None:
        if isinstance(head, str) and head == "linear":
            return nn.LazyLinear(self.num_outputs, device=like.device, dtype=like.dtype)
        if head is not None and not isinstance(head, nn.Module):
            raise EvidentiaError(f"head must be 'linear', a torch.nn.Module or None, got {head!r}")
        return head


def _build_method(name: str, num_classes: int, options: dict[str, Any]) -> Method:
    try:
        return METHODS[name](num_classes=num_classes, **options)
    except TypeError as error:
        raise EvidentiaError(f"method {name!r} cannot be built with the options {options}: {error}") from error


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    """Options as they will be saved: plain JSON, with sets as lists."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(options, default=_as_list))
    except (TypeError, ValueError) as error:
        raise EvidentiaError(f"method options must be numbers, names or lists of them, got {options}") from error
    return plain


def _as_list(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else list(value)
