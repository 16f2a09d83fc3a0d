"""The training loop of event networks: seeded, stoppable, resumable to the bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from evidentia._support.errors import EvidentiaError
from evidentia._support.files import check_writable
from evidentia._support.memory import keep_freed_memory
from evidentia._support.progress import progress_bar
from evidentia.evaluation import EventTruth
from evidentia.events.evidence import Activation, Loss, segment_loss
from evidentia.events.networks.network import EventNetwork
from evidentia.events.training.augmentation import Batch
from evidentia.learning.checkpoint import Checkpoint, digest, module_digest
from evidentia.learning.epoch_settings import EpochSettings
from evidentia.learning.seeding import seeded

# Beyond this length gradients are cut: a GRU now and then has a very steep moment.
_STEEPEST = 5.0


class EventTraining(EpochSettings):
    """How an event network is trained; `EpochSettings` has the others.

    Attributes:
        batch_size: clips a step.
        loss: "beta", the Bayes risk of the cross entropy; "bce", the cross entropy at the expected probability; or
            "sigmoid", a plain network without evidence. See `segment_loss`.
        activation: from the network's outputs to evidence: "exp" learns fastest by far, "softplus", "relu" or "elu".
        onset_weights: let the first segments of an event count more, see `evidentia.events.onset_weights`.
        augmentation: change training clips at random in every epoch, see `evidentia.events.Augmentation`.
        piece: clips longer than so many segments are cut in pieces of that length to train on; by default 160, 10 s of
            sound, and 512 for a series.
        seed: fixes weights, batches, augmentations and which clips are held out.
    """

    epochs: int = Field(25, ge=1)
    batch_size: int = Field(8, ge=1)
    learning_rate: float = Field(5e-3, gt=0)
    weight_decay: float = Field(1e-4, ge=0)
    loss: Loss = "beta"
    activation: Activation = "exp"
    onset_weights: bool = False
    augmentation: bool = False
    piece: int | None = Field(None, ge=2)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        if self.checkpoint is not None:
            check_writable(self.checkpoint)


@dataclass(frozen=True, eq=False)
class Examples:
    """Clips to train on, as one tensor of frames that is computed once and kept.

    Attributes:
        batch: all of them; shorter clips are repeated to the length of the longest, with weight 0.
    """

    batch: Batch

    @classmethod
    def of(
        cls, frames: Iterable[Tensor], truth: EventTruth, segment: int, weights: Sequence[Tensor] | None = None
    ) -> Examples:
        """From the frames of each clip, `(T, F)`, which may be made one by one, and the truth about them.

        Args:
            frames: of each clip.
            truth: about them.
            segment: frames a segment.
            weights: of each clip's segments and classes in the loss; all 1 if None.
        """
        longest = int(truth.lengths.max())
        rows = torch.empty(0)
        for number, (clip, length) in enumerate(zip(frames, truth.lengths.tolist(), strict=True)):
            if not number:
                rows = torch.empty(len(truth.lengths), longest * segment, clip.shape[1])
            rows[number] = clip[torch.arange(longest * segment) % (length * segment)]
        weight = truth.valid().expand(-1, -1, truth.num_classes).float()
        if weights is not None:
            weight = pad_sequence(list(weights), batch_first=True)
        return cls(Batch(rows, truth.activity().float(), weight, truth.lengths))

    def __len__(self) -> int:
        return len(self.batch.lengths)

    def take(self, rows: Tensor) -> Batch:
        """Some of the clips."""
        return Batch(*(part[rows] for part in self.batch))

    def digest(self) -> str:
        """A hash, by which a run is known to be of the same data."""
        return digest(self.batch)


def train(
    network: EventNetwork,
    examples: Examples,
    settings: EventTraining,
    validation: Examples | None = None,
    augment: Callable[[Batch], Batch] | None = None,
    description: Mapping[str, Any] | None = None,
) -> list[dict[str, float]]:
    """Train a network in place, which is left in evaluation mode.

    Args:
        network: the network, with its first weights.
        examples: what to train on.
        settings: how.
        validation: what the loss is watched on; needed for patience.
        augment: a change of every training batch.
        description: further settings that must be the same for an interrupted run to go on.

    Returns:
        What was measured in each epoch.
    """
    if settings.patience is not None and validation is None:
        raise EvidentiaError("early stopping by patience needs validation clips")
    optimizer = torch.optim.AdamW(network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)
    state = Checkpoint(network, optimizer)
    fingerprint = {
        **settings.model_dump(mode="json", exclude={"checkpoint", "progress"}),
        "examples": examples.digest(),
        "validation": None if validation is None else validation.digest(),
        "augment": repr(augment),
        "network": f"{type(network).__name__} {module_digest(network)}",
        **({} if network.unit is None else {"unit": network.unit.tolist()}),
        **(description or {}),
    }
    if settings.checkpoint is not None and settings.checkpoint.exists():
        state.load(settings.checkpoint, fingerprint)
    keep_freed_memory()
    try:
        with progress_bar("training", settings.epochs, done=state.epoch, shown=settings.progress) as advance:
            while state.epoch < settings.epochs and not state.out_of_patience(settings.patience):
                # All randomness of an epoch follows from the seed and its number, so it can be taken up anywhere.
                with seeded(settings.seed, state.epoch):
                    record = {"loss": _epoch(network, examples, optimizer, settings, state.epoch, augment)}
                    if validation is not None:
                        record["validation_loss"] = _validate(network, validation, settings)
                state.finish_epoch(record)
                if settings.checkpoint is not None:
                    state.save(settings.checkpoint, fingerprint)
                advance(state.epoch, f"loss {record['loss']:.4f}")
    finally:
        network.eval()
    if settings.patience is not None:
        state.restore_best()
    return state.history


def _epoch(
    network: EventNetwork,
    examples: Examples,
    optimizer: torch.optim.Optimizer,
    settings: EventTraining,
    epoch: int,
    augment: Callable[[Batch], Batch] | None,
) -> float:
    network.train()
    total, counted = 0.0, 0
    batches = torch.randperm(len(examples)).split(settings.batch_size)
    for number, rows in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = settings.rate_at(epoch + number / len(batches))
        batch = examples.take(rows)
        try:
            loss, entries = _loss(network, batch if augment is None else augment(batch), settings)
        except EvidentiaError as error:
            raise EvidentiaError(f"training stopped in epoch {epoch}; lower the learning rate: {error}") from error
        value = loss.item()
        if not math.isfinite(value):
            raise EvidentiaError(f"the loss became {value} in epoch {epoch}; lower the learning rate")
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), _STEEPEST)
        optimizer.step()
        total, counted = total + value * entries, counted + entries
    return total / counted


@torch.no_grad()
def _validate(network: EventNetwork, examples: Examples, settings: EventTraining) -> float:
    network.eval()
    total, counted = 0.0, 0
    for rows in torch.arange(len(examples)).split(4 * settings.batch_size):
        loss, entries = _loss(network, examples.take(rows), settings)
        total, counted = total + loss.item() * entries, counted + entries
    return total / counted


def _loss(network: EventNetwork, batch: Batch, settings: EventTraining) -> tuple[Tensor, int]:
    """The mean weighted loss over all segments and classes that there are, and their number."""
    losses = segment_loss(network(batch.frames), batch.target, settings.loss, settings.activation)
    entries = int(batch.lengths.sum()) * batch.target.shape[2]
    return (losses * batch.weight).sum() / entries, entries
