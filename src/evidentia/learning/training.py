"""A training loop for people who want none of their own: seeded, stoppable, resumable."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset

from evidentia._support.errors import EvidentiaError
from evidentia.learning.checkpoint import Checkpoint
from evidentia.learning.data import as_dataset

if TYPE_CHECKING:
    from evidentia.learning.classifier import EvidentialClassifier


class TrainingSettings(BaseModel):
    """How `EvidentialClassifier.fit` trains.

    Attributes:
        epochs: passes over the training set.
        batch_size: samples a step.
        learning_rate: the (first) learning rate of AdamW.
        weight_decay: its weight decay.
        schedule: "cosine" lowers the rate to 0 by the end, "constant" keeps it.
        validation: a pair of inputs and labels, or a `Dataset`, on which the loss is watched.
        patience: stop after so many epochs without a better validation loss, and return to the best.
        seed: fixes the order of samples and all randomness inside the network.
        checkpoint: a file written after every epoch; when it is there already, training goes on from it and ends
            exactly where it would have without the interruption.
        progress: show a progress bar on the terminal's error stream.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    epochs: int = Field(30, ge=1)
    batch_size: int = Field(64, ge=1)
    learning_rate: float = Field(1e-3, gt=0)
    weight_decay: float = Field(0.0, ge=0)
    schedule: Literal["cosine", "constant"] = "cosine"
    validation: Any = None
    patience: int | None = Field(None, ge=1)
    seed: int = Field(0, ge=0)
    checkpoint: Path | None = None
    progress: bool = True

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise EvidentiaError(f"the training settings do not fit: {problems}") from error
        if self.patience is not None and self.validation is None:
            raise EvidentiaError("early stopping by patience needs validation data; give validation=(x, y)")

    def rate_at(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0."""
        if self.schedule == "constant":
            return self.learning_rate
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * epoch / self.epochs))


def train(model: EvidentialClassifier, x: Any, y: Any, settings: TrainingSettings) -> None:
    """Train a classifier in place; `model.history` holds what was measured in each epoch."""
    dataset = as_dataset(x, y)
    validation = None if settings.validation is None else _validation_set(settings.validation)
    for part in (dataset, validation):
        if isinstance(part, TensorDataset):
            model.check_labels(part.tensors[1])
    device = model._device()
    with _seeded(settings.seed, -1, device):
        _size_head(model, dataset, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)
    state = Checkpoint(model, optimizer)
    fingerprint = settings.model_dump(mode="json", exclude={"validation", "checkpoint", "progress"})
    if settings.checkpoint is not None and settings.checkpoint.exists():
        state.load(settings.checkpoint, fingerprint)

    with _progress(settings) as bar:
        task = bar.add_task("training", total=settings.epochs, completed=state.epoch, loss="")
        while state.epoch < settings.epochs and not _out_of_patience(state, settings.patience):
            for group in optimizer.param_groups:
                group["lr"] = settings.rate_at(state.epoch)
            # All randomness of an epoch follows from the seed and its number, so it can be taken up again anywhere.
            with _seeded(settings.seed, state.epoch, device):
                record = {"loss": _epoch(model, dataset, optimizer, settings, state.epoch, device)}
            if validation is not None:
                record["validation_loss"] = _validate(model, validation, settings.batch_size, state.epoch, device)
            state.finish_epoch(record)
            if settings.checkpoint is not None:
                state.save(settings.checkpoint, fingerprint)
            bar.update(task, completed=state.epoch, loss=f"loss {record['loss']:.4f}")
    if settings.patience is not None:
        state.restore_best()
    model.history = state.history
    model.eval()
    if model.method.needs_features:
        model.calibrate(dataset, _labels(dataset))


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
        outputs = model(inputs.to(device))
        loss = model.loss(outputs, labels.to(device), epoch)
        value = loss.item()
        if not math.isfinite(value):
            raise EvidentiaError(
                f"the loss became {value} in epoch {epoch}; lower the learning rate or check the inputs"
            )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += value * len(labels)
        seen += len(labels)
    return total / seen


@torch.no_grad()
def _validate(
    model: EvidentialClassifier, dataset: Dataset[Any], batch_size: int, epoch: int, device: torch.device
) -> float:
    model.eval()
    total, seen = 0.0, 0
    for inputs, labels in DataLoader(dataset, batch_size):
        total += float(model.loss(model(inputs.to(device)), labels.to(device), epoch)) * len(labels)
        seen += len(labels)
    return total / seen


def _shuffled(dataset: Any, batch_size: int) -> DataLoader[Any]:
    # Batch normalisation cannot work on a batch of one, so a single sample left over is left out of this epoch.
    lonely = len(dataset) > batch_size and len(dataset) % batch_size == 1
    return DataLoader(dataset, batch_size, shuffle=True, drop_last=lonely)


def _validation_set(given: Any) -> Dataset[Any]:
    return as_dataset(given, None) if isinstance(given, Dataset) else as_dataset(*given)


def _labels(dataset: Any) -> Tensor:
    if isinstance(dataset, TensorDataset):
        return dataset.tensors[1]
    return torch.stack([torch.as_tensor(label) for _, label in dataset])


def _size_head(model: EvidentialClassifier, dataset: Any, device: torch.device) -> None:
    """Run one sample through the model, so that layers whose size is found on first use have their parameters."""
    model.eval()
    inputs, _ = next(iter(DataLoader(dataset, 1)))
    with torch.no_grad():
        model(inputs.to(device))


def _out_of_patience(state: Checkpoint, patience: int | None) -> bool:
    return patience is not None and state.epochs_since_best >= patience


@contextmanager
def _seeded(seed: int, epoch: int, device: torch.device) -> Iterator[None]:
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed * 1_000_003 + epoch + 1)
        yield


@contextmanager
def _progress(settings: TrainingSettings) -> Iterator[Progress]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[loss]}"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not settings.progress) as bar:
        yield bar
