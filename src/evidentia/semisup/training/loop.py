"""The training loop: equally many updates for every method, seeded, logged, stoppable, resumable."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia._support.errors import FileFormatError
from evidentia._support.files import load_tensors, save_tensors
from evidentia._support.memory import keep_freed_memory
from evidentia._support.settings import Settings
from evidentia.learning.annealing import scheduled_rate
from evidentia.learning.checkpoint import (
    check_settings,
    load_module_tensors,
    load_optimizer,
    module_tensors,
    optimizer_tensors,
    part_of,
)
from evidentia.learning.seeding import seeded
from evidentia.semisup.choices import Norm, Order
from evidentia.semisup.networks.averaging import WeightAverage
from evidentia.semisup.networks.features import logits_in_parts, pass_size
from evidentia.semisup.networks.passes import Passes
from evidentia.semisup.objectives import Objective
from evidentia.semisup.objectives.base import costs_of, prepared_by
from evidentia.semisup.robust import Pool, Robust, Update
from evidentia.semisup.robust.base import check_apply
from evidentia.semisup.training.batches import labeled_batch, pool_rows, unlabeled_size
from evidentia.semisup.training.checks import (
    batches_of_one_told,
    check_costs,
    check_statistics,
    check_weights,
    loss_error,
)
from evidentia.semisup.uncertainty import Progress

Record: TypeAlias = dict[str, float]
"""What was measured in a block of updates, by name."""

_KIND = "semi-supervised training"
_OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": partial(torch.optim.SGD, momentum=0.9, nesterov=True),
}


class SemiSupervisedTraining(Settings):
    """How a semi-supervised network is trained.

    Attributes:
        updates: steps of the optimiser, the same for every method.
        labeled_batch: labeled samples of an update, all of them if there are fewer.
        unlabeled_batch: unlabeled samples of an update; by default 256, or the pool if it is smaller.
        optimizer: "adam", "adamw", or "sgd" with Nesterov's momentum of 0.9, which wants rates some ten times as large.
        learning_rate: its (first) learning rate.
        weight_decay: its weight decay; of "adam" and "sgd" it is part of the gradient.
        schedule: "cosine" lowers the rate to 0 by the end, "constant" keeps it, "step" multiplies it by 0.2 half-way,
            as the thesis does at 1,000 of 2,000 updates.
        average: the decay of a moving average of the weights, by which is predicted; None for the weights themselves.
        norm: "none", "batch", "frozen" or "weighted"; see `evidentia.semisup.Passes`. By default what goes with the
            robust method: "weighted" for meta and ift, "frozen" for uncertainty and oracle where a batch has at least
            32 labeled samples, else "batch".
        passes: "concat" or "separate"; by default concat, and separate for norm "frozen". Targets of consistency
            objectives come from a pass of the unlabeled batch alone: with "concat" and batch norm they have other
            statistics than the pass that learns; see `evidentia.semisup.Passes`.
        block: updates from one entry of the log, and one checkpoint, to the next.
        seed: fixes weights, batches, augmentations and all else.
        checkpoint: a file from which a broken-off run goes on, to exactly where it would have ended.
        log: a file of JSON lines, one a block.
        tensorboard: a folder for TensorBoard.
        progress: show a progress bar on the terminal's error stream.
    """

    updates: int = Field(1000, ge=1)
    labeled_batch: int = Field(64, ge=1)
    unlabeled_batch: int | None = Field(None, ge=1)
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    learning_rate: float = Field(3e-3, gt=0)
    weight_decay: float = Field(0.0, ge=0)
    schedule: Literal["cosine", "constant", "step"] = "cosine"
    average: float | None = Field(0.99, ge=0, lt=1)
    norm: Norm | None = None
    passes: Order | None = None
    block: int = Field(50, ge=1)
    seed: int = Field(0, ge=0, lt=2**32)
    checkpoint: Path | None = None
    log: Path | None = None
    tensorboard: Path | None = None
    progress: bool = True

    def rate_at(self, update: int) -> float:
        """The learning rate of an update, counted from 0."""
        return scheduled_rate(self.learning_rate, self.schedule, update / self.updates)


@dataclass(eq=False)
class Training:
    """A run of training, from its start or from where it was broken off.

    Attributes:
        passes: runs the network, whose layers are in the modes that they are to be trained in.
        objective: what unlabeled samples cost.
        robust: what they weigh.
        pool: the samples, and their weights.
        settings: how to train.
        update: the number of updates done.
        history: what was measured in each block.
    """

    passes: Passes
    objective: Objective
    robust: Robust
    pool: Pool
    settings: SemiSupervisedTraining
    update: int = 0
    history: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make what goes with the network, in the state before the first update."""
        network = self.passes.last.network
        settings = self.settings
        check_apply(self.robust.applied)
        self.device = self.pool.unlabeled.device
        self.optimizer = _OPTIMIZERS[settings.optimizer](
            network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
        )
        self.average = None if settings.average is None else WeightAverage(network, settings.average)
        self.unlabeled_batch = unlabeled_size(settings.unlabeled_batch, len(self.pool.unlabeled))
        self.pool.batch_size = pass_size(settings.labeled_batch + self.unlabeled_batch)
        keep_freed_memory()
        self.objective.start(network)
        with seeded(settings.seed, -1, self.device):
            self.robust.attach(self.pool)

    def start(self, progress: Progress | None = None) -> None:
        """Let the robust method look at the pool, and tell how far it is if that takes long."""
        with seeded(self.settings.seed, -1, self.device):
            # A look at the pool may take minutes; batches that cannot be normalised, and networks, objectives and
            # augmentations of the user's own that fail, are told before it.
            self._rehearse()
        self.pool.progress = progress
        with seeded(self.settings.seed, -1, self.device):
            self.robust.start(self.pool)
        self.pool.progress = None

    def save(self, path: Path, fingerprint: dict[str, Any]) -> None:
        """Write everything to one file, whole or not at all."""
        parts = {**self._state(), "optimizer": optimizer_tensors(self.optimizer)}
        tensors = {f"{part}/{name}": tensor for part, entries in parts.items() for name, tensor in entries.items()}
        content = {"settings": fingerprint, "update": self.update, "history": self.history}
        save_tensors(path, _KIND, tensors, content)

    def load(self, path: Path, fingerprint: dict[str, Any]) -> None:
        """Take up a run where its last finished block left it."""
        tensors, content = load_tensors(path, _KIND)
        check_settings(path, content.get("settings", {}), fingerprint)
        try:
            self._restore(tensors, content)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise FileFormatError(
                f"{path} does not hold a whole run ({error}); take another file, or remove it to start anew"
            ) from error

    def _restore(self, tensors: dict[str, Tensor], content: dict[str, Any]) -> None:
        state = {part: part_of(tensors, part) for part in (*self._state(), "optimizer")}
        load_module_tensors(self.passes.last.network, state["network"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        self.objective.load_state_dict(state["objective"])
        self.robust.load_state_dict(state["robust"])
        self.pool.weights.load_state_dict(state["weights"])
        uncertainty = state["uncertainty"].get("values")
        self.pool.uncertainty = None if uncertainty is None else uncertainty.to(self.device)
        load_optimizer(self.optimizer, state["optimizer"])
        self.update, self.history = content["update"], content["history"]
        whole = isinstance(self.update, int) and 0 <= self.update <= self.settings.updates
        if not whole or len(self.history) != -(-self.update // self.settings.block):
            raise ValueError(f"{self.update} updates in {len(self.history)} blocks")

    def run(self, after_block: Callable[[Record], None]) -> None:
        """Train to the end, and tell after every block what was measured in it; the network then holds its average."""
        network = self.passes.last.network
        settings = self.settings
        while self.update < settings.updates:
            # A run that was resumed may start inside a block only if its length was changed, which is refused.
            until = min(settings.updates, self.update + settings.block)
            # All randomness of a block follows from the seed and where it starts, so it can be taken up there.
            with seeded(settings.seed, self.update, self.device), batches_of_one_told(*self._sizes()):
                losses = [self._update() for _ in range(self.update, until)]
            # Before anything is kept: a checkpoint of such a network would be of no use.
            check_statistics(network, self.update)
            self.history.append(self._measured(losses))
            after_block(self.history[-1])
        network.eval()
        if self.average is not None:
            self.average.copy_to(network)
        self.robust.finish(self.pool)

    def _sizes(self) -> tuple[int, int, int]:
        """Samples of a labeled, of an unlabeled and of a clean batch."""
        labeled, clean = (min(self.settings.labeled_batch, len(x)) for x, _ in (self.pool.labeled, self.pool.clean))
        return labeled, self.unlabeled_batch, clean

    def _rehearse(self) -> None:
        """Make the passes of an update with copies of everything that learns, and weights of 1."""
        last = type(self.passes.last)(copy.deepcopy(self.passes.last.network))
        robust = Robust() if self.robust.uses_pool else self.robust
        passes, pool = replace(self.passes, last=last), replace(self.pool, last=last)
        trial = Training(passes, copy.deepcopy(self.objective), robust, pool, self.settings)
        with batches_of_one_told(*self._sizes()):
            loss = trial._loss()[0]
            if robust.uses_pool:
                passes.backward(loss)
            else:
                loss.backward()

    def _update(self) -> tuple[float, float]:
        number = self.update
        if self.robust.refresh_every and number and number % self.robust.refresh_every == 0:
            self.robust.refresh(self.pool)
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.rate_at(number)
        loss, unlabeled_loss = self._loss()
        if not math.isfinite(total := loss.item()):
            raise loss_error(total, number)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        network = self.passes.last.network
        self.objective.after_step(network)
        if self.average is not None:
            self.average.update(network)
        self.update += 1
        return total, unlabeled_loss

    def _loss(self) -> tuple[Tensor, float]:
        """The loss of an update's batches, and the unlabeled part of it."""
        labeled = self._batch(self.pool.labeled)
        if self.robust.uses_pool:
            return self._semi_supervised(labeled)
        return F.cross_entropy(self.passes.labeled(labeled[0])[1], labeled[1]), 0.0

    def _semi_supervised(self, labeled: tuple[Tensor, Tensor]) -> tuple[Tensor, float]:
        pool, objective = self.pool, self.objective
        rows = pool_rows(pool.weights, self.unlabeled_batch, self.robust.applied)
        weighs = self.robust.applied == "loss"
        weights = pool.weights.of(rows).to(pool.unlabeled) if weighs else pool.unlabeled.new_ones(len(rows))
        with self.passes.weighing(weights):
            network, x = self.passes.last.network, pool.unlabeled[rows]
            consistency = prepared_by(objective, network, x, pool.augment, labeled)
        known, unknown = self.passes.both(labeled[0], consistency.inputs, weights)
        costs = costs_of(objective, unknown[1], consistency)
        check_costs(costs, unknown[1], objective, self.update)
        coefficient = objective.coefficient(self.update)
        update = Update(
            number=self.update,
            rows=rows,
            weights=weights,
            objective=objective,
            consistency=consistency,
            coefficient=coefficient,
            labeled=labeled,
            clean=self._batch(pool.clean) if self.robust.uses_clean and not pool.clean_is_labeled else labeled,
            hidden=(known[0], unknown[0]),
            costs=costs.detach(),
            concat=self.passes.order == "concat",
        )
        weights = check_weights(self.robust.weigh(pool, update), len(rows), self.robust)
        unlabeled_loss = coefficient * (weights.to(costs) * costs).mean()
        labeled_loss = F.cross_entropy(known[1], labeled[1])
        if not math.isfinite(part := unlabeled_loss.item()) and bool(labeled_loss.isfinite()):
            raise loss_error(part, self.update, objective)
        return labeled_loss + unlabeled_loss, part

    def _batch(self, samples: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return labeled_batch(samples, self.settings.labeled_batch, self.pool.augment)

    def _measured(self, losses: list[tuple[float, float]]) -> Record:
        total, unlabeled = (sum(values) / len(losses) for values in zip(*losses, strict=True))
        pool, weights = self.pool, self.pool.weights.per_sample
        record: Record = {"update": self.update, "loss": total, "unlabeled_loss": unlabeled}
        if self.robust.uses_pool:
            record["weight"] = float(weights.mean())
            if pool.is_ood is not None and bool(pool.is_ood.any()):
                record["w_ood"] = float(weights[pool.is_ood].mean())
                if not bool(pool.is_ood.all()):
                    record["w_in"] = float(weights[~pool.is_ood].mean())
        if not pool.clean_is_labeled:
            x, y = pool.clean
            record["validation_accuracy"] = float((self.logits(x).argmax(-1) == y).double().mean())
        return record

    def logits(self, x: Tensor) -> Tensor:
        """What the network, or its average, says about many samples."""
        network = self.passes.last.network
        tensors = None if self.average is None else self.average.tensors
        return logits_in_parts(network, x, self.pool.batch_size, tensors=tensors)

    def _state(self) -> dict[str, dict[str, Tensor]]:
        """Everything that training has changed, but for the optimiser, part by part."""
        uncertainty = self.pool.uncertainty
        return {
            "network": module_tensors(self.passes.last.network),
            "average": {} if self.average is None else self.average.state_dict(),
            "objective": self.objective.state_dict(),
            "robust": self.robust.state_dict(),
            "weights": self.pool.weights.state_dict(),
            "uncertainty": {} if uncertainty is None else {"values": uncertainty},
        }
