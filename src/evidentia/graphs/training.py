"""Full-batch training of a graph network: seeded, stoppable, resumable."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from pydantic import Field
from rich.console import Console
from rich.progress import Progress
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia._support.settings import Settings
from evidentia.graphs.methods import GraphMethod
from evidentia.graphs.models import Backbone, GraphTensors
from evidentia.learning.checkpoint import Checkpoint
from evidentia.learning.seeding import seeded

if TYPE_CHECKING:
    from torch_geometric.data import Data

# The share of edges that DropEdge leaves out, in training and in every sampled pass.
EDGE_DROPOUT = 0.1


class GraphTraining(Settings):
    """How a graph network is trained.

    Attributes:
        epochs: the most epochs to train.
        patience: stop after so many epochs without a better validation loss, and return to the best; None trains on.
        learning_rate: of Adam.
        weight_decay: on the first layer.
        prior_weight: how strongly the kernel prior draws.
        seed: fixes all randomness.
        progress: show a progress bar on the terminal's error stream.
    """

    epochs: int = Field(200, ge=1)
    patience: int | None = Field(None, ge=1)
    learning_rate: float = Field(0.01, gt=0)
    weight_decay: float = Field(5e-4, ge=0)
    prior_weight: float = Field(0.001, ge=0)
    seed: int = Field(0, ge=0, lt=2**32)
    progress: bool = True


def train_network(
    network: Backbone,
    method: GraphMethod,
    graph: GraphTensors,
    data: Data,
    settings: GraphTraining,
    *,
    prior: Tensor | None = None,
    teacher: Tensor | None = None,
    checkpoint: Path | None = None,
    fingerprint: dict[str, Any],
) -> list[dict[str, float]]:
    """Train a network in place and return what was measured in each epoch.

    Args:
        network: the network.
        method: what its outputs mean and what they cost.
        graph: the graph as the network wants it.
        data: the same graph with labels and masks.
        settings: how to train.
        prior: Dirichlet parameters to be drawn to, shape `(N, K)`.
        teacher: class probabilities to be drawn to, shape `(N, K)`.
        checkpoint: a file written after every epoch, from which a broken-off run goes on to the same end.
        fingerprint: what a checkpoint must have been made with to be taken up.
    """
    optimizer = _optimizer(network, settings)
    state = Checkpoint(network, optimizer)
    if checkpoint is not None and checkpoint.exists():
        state.load(checkpoint, fingerprint)
    with Progress(console=Console(stderr=True), transient=True, disable=not settings.progress) as bar:
        task = bar.add_task(method.summary, total=settings.epochs, completed=state.epoch)
        while state.epoch < settings.epochs and not _out_of_patience(state, settings.patience):
            with seeded(settings.seed, state.epoch, data.y.device):
                network.train()
                shown = graph.without_edges(EDGE_DROPOUT) if method.sampling == "dropedge" else graph
                loss = method.loss(
                    network(shown)[0],
                    data.y,
                    data.train_mask,
                    state.epoch,
                    prior=prior,
                    prior_weight=settings.prior_weight,
                    teacher=teacher,
                )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            watched = _validation_risk(network, method, graph, data)
            if not bool(torch.isfinite(loss)) or not bool(torch.isfinite(watched)):
                raise EvidentiaError(f"the loss became NaN or infinite in epoch {state.epoch}; lower the learning rate")
            state.finish_epoch({"loss": loss.item(), "validation_loss": watched.item()})
            if checkpoint is not None:
                state.save(checkpoint, fingerprint)
            bar.update(task, completed=state.epoch)
    if settings.patience is not None:
        state.restore_best()
    network.eval()
    return state.history


def _optimizer(network: Backbone, settings: GraphTraining) -> torch.optim.Optimizer:
    """Adam, with weight decay on the first layer alone."""
    decayed = list(network.first.parameters())
    known = {id(parameter) for parameter in decayed}
    rest = [parameter for parameter in network.parameters() if id(parameter) not in known]
    groups: list[dict[str, Any]] = [{"params": decayed, "weight_decay": settings.weight_decay}]
    return torch.optim.Adam([*groups, {"params": rest}] if rest else groups, lr=settings.learning_rate)


@torch.no_grad()
def _validation_risk(network: Backbone, method: GraphMethod, graph: GraphTensors, data: Data) -> Tensor:
    network.eval()
    logits = network(graph)[0]
    return method.node_risk(logits[data.val_mask], data.y[data.val_mask]).mean()


def _out_of_patience(state: Checkpoint, patience: int | None) -> bool:
    return patience is not None and state.epochs_since_best >= patience
