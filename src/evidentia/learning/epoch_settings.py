"""What all training by epochs is told, whatever is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from evidentia._support.errors import EvidentiaError
from evidentia._support.settings import Settings
from evidentia.learning.annealing import scheduled_rate


class EpochSettings(Settings):
    """How a network is trained by epochs of AdamW; each kind of training has its own usual numbers.

    Attributes:
        epochs: passes over the training set.
        batch_size: samples a step.
        learning_rate: the (first) learning rate of AdamW.
        weight_decay: its weight decay.
        schedule: "cosine" lowers the rate to 0 by the end, "constant" keeps it.
        patience: stop after so many epochs without a better validation loss, and return to the best.
        seed: fixes all randomness.
        checkpoint: a file written after every epoch; when it is there already, training goes on from it and ends
            exactly where it would have without the interruption (with the same data and settings, on one machine).
        progress: show a progress bar on the terminal's error stream.
    """

    epochs: int = Field(30, ge=1)
    batch_size: int = Field(64, ge=1)
    learning_rate: float = Field(1e-3, gt=0)
    weight_decay: float = Field(0.0, ge=0)
    schedule: Literal["cosine", "constant"] = "cosine"
    patience: int | None = Field(None, ge=1)
    seed: int = Field(0, ge=0, lt=2**32)
    checkpoint: Path | None = None
    progress: bool = True

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        if self.checkpoint is not None and self.checkpoint.is_dir():
            raise EvidentiaError(f"the checkpoint must be a file, but {self.checkpoint} is a folder")

    def rate_at(self, step: float) -> float:
        """The learning rate after so many epochs, whole or in part."""
        return scheduled_rate(self.learning_rate, self.schedule, step / self.epochs)
