"""A training loop for people who want none of their own: seeded, stoppable, resumable."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset

from evidentia._support.errors import EvidentiaError
from evidentia._support.memory import keep_freed_memory
from evidentia._support.progress import progress_bar
from evidentia.learning.checkpoint import Checkpoint
from evidentia.learning.data import as_dataset, device_of, in_order, to_model, types_told
from evidentia.learning.epoch_settings import EpochSettings
from evidentia.learning.modes import evaluating
from evidentia.learning.seeding import seeded

if TYPE_CHECKING:
    from evidentia.learning.classifier import EvidentialClassifier


class TrainingSettings(EpochSettings):
    """How `EvidentialClassifier.fit` trains; `EpochSettings` has the others.

    Attributes:
        validation: a pair of inputs and labels, or a `Dataset`, on which the loss is watched, with all penalties at the
            weight that they have at the end.
        seed: fixes the order of samples and all randomness inside the network.
    """

    validation: Any = None

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        if self.patience is not None and self.validation is None:
            raise EvidentiaError("early stopping by patience needs validation data; give validation=(x, y)")


def train(model: EvidentialClassifier, x: Any, y: Any, settings: TrainingSettings) -> None:
    """Train a classifier in place; `model.history` holds what was measured in each epoch."""
    dataset = as_dataset(x, y, model)
    validation = None if settings.validation is None else _validation_set(settings.validation, model)
    for part in (dataset, validation):
        if isinstance(part, TensorDataset):
            model.check_labels(part.tensors[1])
    keep_freed_memory()
    device = device_of(model)
    with seeded(settings.seed, -1, device):
        _size_head(model, dataset)
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)
    state = Checkpoint(model, optimizer)
    fingerprint = _fingerprint(model, dataset, validation, settings)
    if settings.checkpoint is not None and settings.checkpoint.exists():
        state.load(settings.checkpoint, fingerprint)
    # The same list, so that it is there even if training is broken off.
    model.history = state.history

    try:
        with progress_bar("training", settings.epochs, done=state.epoch, shown=settings.progress) as advance:
            while state.epoch < settings.epochs and not state.out_of_patience(settings.patience):
                for group in optimizer.param_groups:
                    group["lr"] = settings.rate_at(state.epoch)
                # All randomness of an epoch follows from the seed and its number, so it can be taken up anywhere.
                with seeded(settings.seed, state.epoch, device):
                    record = {"loss": _epoch(model, dataset, optimizer, settings, state.epoch, device)}
                    if validation is not None:
                        record["validation_loss"] = _validate(model, validation, settings, state.epoch, device)
                state.finish_epoch(record)
                if settings.checkpoint is not None:
                    state.save(settings.checkpoint, fingerprint)
                advance(state.epoch, f"loss {record['loss']:.4f}")
    finally:
        model.eval()
    if settings.patience is not None:
        state.restore_best()
    model.calibrate(dataset)


def _epoch(
    model: EvidentialClassifier,
    dataset: Dataset[Any],
    optimizer: torch.optim.Optimizer,
    settings: TrainingSettings,
    epoch: int,
    device: torch.device,
) -> float:
    model.train()
    total, seen = 0.0, 0
    for inputs, labels in _shuffled(dataset, settings.batch_size):
        loss = _loss(model, to_model(inputs, model), labels.to(device), epoch, epoch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
        seen += len(labels)
    if not all(bool(parameter.isfinite().all()) for parameter in model.parameters()):
        raise EvidentiaError(f"weights became NaN or infinite in epoch {epoch}; lower the learning rate")
    return total / seen


@torch.no_grad()
def _validate(
    model: EvidentialClassifier, dataset: Dataset[Any], settings: TrainingSettings, epoch: int, device: torch.device
) -> float:
    model.eval()
    total, seen = 0.0, 0
    for inputs, labels in in_order(dataset, settings.batch_size):
        # Penalties at their final weight, or their rise alone would make every epoch look worse than the one before.
        loss = _loss(model, to_model(inputs, model), labels.to(device), settings.epochs, epoch)
        total += loss.item() * len(labels)
        seen += len(labels)
    return total / seen


def _loss(model: EvidentialClassifier, inputs: Tensor, labels: Tensor, progress: float, epoch: int) -> Tensor:
    """The loss of a batch with penalties as after `progress` epochs, or an error that says when it failed."""
    try:
        loss = model.loss(model(inputs), labels, progress)
    except EvidentiaError as error:
        raise EvidentiaError(f"training stopped in epoch {epoch}: {error}") from error
    if not math.isfinite(value := loss.item()):
        raise EvidentiaError(f"the loss became {value} in epoch {epoch}; lower the learning rate or check the inputs")
    return loss


def _shuffled(dataset: Any, batch_size: int) -> DataLoader[Any]:
    # Batch normalisation cannot work on a batch of one, so a single sample left over is left out of this epoch.
    lonely = len(dataset) > batch_size and len(dataset) % batch_size == 1
    return DataLoader(dataset, batch_size, shuffle=True, drop_last=lonely)


def _validation_set(given: Any, model: EvidentialClassifier) -> Dataset[Any]:
    if isinstance(given, Dataset):
        return as_dataset(given, None, model, "validation set")
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise EvidentiaError(
            f"validation must be a pair of inputs and labels, or a Dataset of such pairs, got {type(given).__name__}"
        )
    inputs, labels = given
    return as_dataset(inputs, labels, model, "validation set")


def _fingerprint(
    model: EvidentialClassifier, dataset: Any, validation: Any, settings: TrainingSettings
) -> dict[str, Any]:
    """What must be the same for an interrupted run to go on."""
    sizes = {"samples": len(dataset), "validation samples": 0 if validation is None else len(validation)}
    chosen = settings.model_dump(mode="json", exclude={"validation", "checkpoint", "progress"})
    described: dict[str, Any] = json.loads(json.dumps(model.settings() | chosen | sizes))
    return described


def _size_head(model: EvidentialClassifier, dataset: Any) -> None:
    """Run one sample through the model, so that layers whose size is found on first use have their parameters."""
    inputs, _ = next(iter(DataLoader(dataset, 1)))
    inputs = to_model(inputs, model)
    with evaluating(model), torch.no_grad(), types_told(inputs, model):
        model(inputs)
