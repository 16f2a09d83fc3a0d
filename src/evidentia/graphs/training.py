"""Training of a graph network, on the whole graph or by batches: seeded, stoppable, resumable."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from pydantic import Field
from torch import Tensor

from evidentia._support.checks import validation
from evidentia._support.errors import EvidentiaError
from evidentia._support.memory import keep_freed_memory
from evidentia._support.progress import progress_bar
from evidentia._support.settings import Settings
from evidentia.graphs.batches import LARGE_GRAPH, USUAL_BATCH, Batch, Neighbourhoods, WholeGraph
from evidentia.graphs.graph_tensors import GraphTensors
from evidentia.graphs.methods import GraphMethod
from evidentia.graphs.models import Backbone
from evidentia.graphs.sparse_matrix import SparseMatrix
from evidentia.learning import DivergenceTo
from evidentia.learning.checkpoint import Checkpoint
from evidentia.learning.seeding import seeded

if TYPE_CHECKING:
    from torch_geometric.data import Data

# Outputs and the walk of their graph to outputs.
Spread: TypeAlias = Callable[[Tensor, SparseMatrix], Tensor]

# Epochs between two checkpoints: writing one takes about as long as an epoch.
_SAVE_EVERY = 10

# The share of edges that DropEdge leaves out, in training and in every sampled pass.
EDGE_DROPOUT = 0.1


class GraphTraining(Settings):
    """How a graph network is trained.

    Attributes:
        epochs: the most epochs to train.
        patience: stop after so many epochs without a better validation loss, and return to the best; None trains on.
        learning_rate: of Adam.
        weight_decay: on the first layer; of a module of one's own, on all of it.
        prior_weight: how strongly the prior draws.
        strength_weight: how strongly the strength prior draws the second network of methods that have one.
        batch_size: training nodes a step, with drawn neighbourhoods; by default the whole graph, or 1,024 where it has
            more than 200,000 nodes. Degrees are then those of what was drawn, and as many other nodes as training
            nodes are held to prior and teacher, so evidence differs somewhat from that of training on the whole graph.
        fanouts: how many neighbours to draw at most for a batch, hop by hop.
        propagated: spread evidence along edges in training too, as it will be when predicting.
        seed: fixes all randomness.
        progress: show a progress bar on the terminal's error stream.
    """

    epochs: int = Field(200, ge=1)
    patience: int | None = Field(None, ge=1)
    learning_rate: float = Field(0.01, gt=0)
    weight_decay: float = Field(5e-4, ge=0)
    prior_weight: float = Field(0.001, ge=0)
    strength_weight: float = Field(1.0, ge=0)
    batch_size: int | None = Field(None, ge=1)
    fanouts: tuple[int, ...] = (10, 10)
    propagated: bool = False
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
    spread: Spread | None = None,
    checkpoint: Path | None = None,
    fingerprint: dict[str, Any],
    watch: bool = True,
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
        spread: what spreads outputs along edges before they are scored.
        checkpoint: a file written every ten epochs, from which a broken-off run goes on to the same end.
        fingerprint: what a checkpoint must have been made with to be taken up.
        watch: whether to measure the validation loss where it decides nothing, which is to say without patience.
    """
    keep_freed_memory()
    network.start_training(data.y[data.train_mask])
    optimizer = _optimizer(network, settings)
    state = Checkpoint(network, optimizer)
    if checkpoint is not None and checkpoint.exists():
        state.load(checkpoint, fingerprint)
    batches = _batches(graph, data, settings, others=prior is not None or teacher is not None)
    step = _Step(network, method, data, settings.prior_weight, prior, teacher, spread)
    bar = progress_bar(method.summary, settings.epochs, done=state.epoch, shown=settings.progress)
    # The graph was checked before, and a network that goes astray is found by its loss.
    with validation(False), bar as advance:
        while state.epoch < settings.epochs and not state.out_of_patience(settings.patience):
            losses = []
            with seeded(settings.seed, state.epoch, data.y.device):
                network.train()
                network.start_epoch(state.epoch)
                for batch in batches.training(state.epoch):
                    loss = step.loss(batch, state.epoch)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    losses.append(loss.detach())
            record = {"loss": torch.stack(losses).mean().item()}
            if watch or settings.patience is not None:
                record["validation_loss"] = step.validation_risk(batches.validation())
            if not all(math.isfinite(value) for value in record.values()):
                raise EvidentiaError(f"the loss became NaN or infinite in epoch {state.epoch}; lower the learning rate")
            state.finish_epoch(record)
            finished = state.epoch == settings.epochs or state.out_of_patience(settings.patience)
            if checkpoint is not None and (finished or state.epoch % _SAVE_EVERY == 0):
                state.save(checkpoint, fingerprint)
            advance(state.epoch, f"loss {record['loss']:.4f}")
    if settings.patience is not None:
        state.restore_best()
    network.eval()
    return state.history


class _Step:
    """What a batch costs."""

    def __init__(
        self,
        network: Backbone,
        method: GraphMethod,
        data: Data,
        prior_weight: float,
        prior: Tensor | None,
        teacher: Tensor | None,
        spread: Spread | None,
    ) -> None:
        self.network, self.method, self.data, self.spread = network, method, data, spread
        self.prior_weight, self.prior = prior_weight, prior
        self.divergence = None if prior is None else DivergenceTo(prior)
        # Clamped, because a teacher may be quite sure.
        self.teacher = None if teacher is None else teacher.clamp(min=1e-12).log()

    def loss(self, batch: Batch, epoch: int) -> Tensor:
        """The loss of a training step."""
        dropping = self.method.sampling == "dropedge"
        shown = batch.graph.without_edges(EDGE_DROPOUT) if dropping else batch.graph
        divergence = self.divergence
        if self.prior is not None and batch.nodes is not None:
            divergence = DivergenceTo(batch.of(self.prior))
        return self.method.loss(
            batch.outputs(self._logits(shown)),
            batch.of(self.data.y),
            batch.of(self.data.train_mask),
            epoch,
            divergence=divergence,
            prior_weight=self.prior_weight,
            teacher=None if self.teacher is None else batch.of(self.teacher),
        )

    @torch.no_grad()
    def validation_risk(self, batches: Iterable[Batch]) -> float:
        """The mean risk of the validation nodes."""
        self.network.eval()
        risks = []
        for batch in batches:
            watched = batch.of(self.data.val_mask)
            logits = batch.outputs(self._logits(batch.graph))[watched]
            risks.append(self.method.node_risk(logits, batch.of(self.data.y)[watched]))
        return float(torch.cat(risks).mean())

    def _logits(self, graph: GraphTensors) -> Tensor:
        logits: Tensor = self.network(graph)[0]
        return logits if self.spread is None else self.spread(logits, graph.walk)


def _batches(graph: GraphTensors, data: Data, settings: GraphTraining, *, others: bool) -> WholeGraph | Neighbourhoods:
    size = settings.batch_size
    if size is None and graph.num_nodes > LARGE_GRAPH:
        size = USUAL_BATCH
    if size is None:
        return WholeGraph(graph)
    if settings.propagated:
        raise EvidentiaError(
            "evidence cannot be propagated in training by batches, which hold few neighbours; "
            "leave out propagated, or batch_size for a graph that fits into memory"
        )
    return Neighbourhoods(graph, data, size, settings.fanouts, settings.seed, others=others)


def _optimizer(network: Backbone, settings: GraphTraining) -> torch.optim.Optimizer:
    """Adam, with weight decay on the first layer alone."""
    decayed = list(network.first.parameters())
    known = {id(parameter) for parameter in decayed}
    rest = [parameter for parameter in network.parameters() if id(parameter) not in known]
    groups: list[dict[str, Any]] = [{"params": decayed, "weight_decay": settings.weight_decay}]
    return torch.optim.Adam([*groups, {"params": rest}] if rest else groups, lr=settings.learning_rate)
