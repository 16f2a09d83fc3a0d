"""What a training step is shown: the whole graph, or drawn neighbourhoods of some of its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from evidentia.graphs.graph_tensors import GraphTensors
from evidentia.graphs.sampling import NeighbourSampler, SampledSubgraph

if TYPE_CHECKING:
    from torch_geometric.data import Data

# From so many nodes on, training goes by batches of so many labelled nodes, unless the user says otherwise.
LARGE_GRAPH = 200_000
USUAL_BATCH = 1024

# The sampler's epoch of validation neighbourhoods, which training never reaches.
_VALIDATION_EPOCH = 1 << 40


@dataclass(frozen=True)
class Batch:
    """A graph and the nodes that its first outputs stand for.

    Attributes:
        graph: the whole graph or a part of it.
        nodes: numbers in the whole graph; None if the batch is all of it.
    """

    graph: GraphTensors
    nodes: Tensor | None = None

    def of(self, values: Tensor) -> Tensor:
        """Those of the values, one for each node of the whole graph, that the batch is about."""
        return values if self.nodes is None else values[self.nodes]

    def outputs(self, values: Tensor) -> Tensor:
        """Those of a network's outputs that stand for nodes; the others were neighbours."""
        return values if self.nodes is None else values[: len(self.nodes)]


class WholeGraph:
    """One batch an epoch: everything."""

    def __init__(self, graph: GraphTensors) -> None:
        self._batch = Batch(graph)

    def training(self, epoch: int) -> Iterator[Batch]:
        """The whole graph."""
        yield self._batch

    def validation(self) -> Iterator[Batch]:
        """The whole graph."""
        yield self._batch


class Neighbourhoods:
    """Training nodes in batches, each with neighbourhoods drawn anew, and as many other nodes beside them.

    The others are for losses of nodes without a label: those that draw to a prior or a teacher.

    Args:
        graph: the whole graph.
        data: the same with its masks.
        batch_size: training nodes a batch.
        fanouts: neighbours drawn at most, hop by hop.
        seed: of all draws.
        others: whether to draw other nodes too.
    """

    def __init__(
        self,
        graph: GraphTensors,
        data: Data,
        batch_size: int,
        fanouts: tuple[int, ...],
        seed: int,
        *,
        others: bool,
    ) -> None:
        self.graph, self.batch_size = graph, batch_size
        self.sampler = NeighbourSampler(graph.edge_index, graph.num_nodes, fanouts, seed)
        self._train = data.train_mask.nonzero().squeeze(-1).cpu()
        self._rest = (~data.train_mask).nonzero().squeeze(-1).cpu() if others else self._train[:0]
        # Drawn once, so that epochs can be compared.
        validation = data.val_mask.nonzero().squeeze(-1).cpu()
        drawn = self.sampler.batches(validation, batch_size, epoch=_VALIDATION_EPOCH, shuffle=False)
        self._validation = [self._batch(part) for part in drawn]

    def training(self, epoch: int) -> Iterator[Batch]:
        """Every training node once; call it inside `seeded`, which decides the order."""
        order = self._train[torch.randperm(len(self._train))]
        for index, nodes in enumerate(order.split(self.batch_size)):
            beside = self._rest[torch.randperm(len(self._rest))[: len(nodes)]]
            yield self._batch(self.sampler.sample(torch.cat([nodes, beside]), epoch=epoch, batch=index))

    def validation(self) -> Iterator[Batch]:
        """Every validation node, with the same neighbours each time."""
        yield from self._validation

    def _batch(self, drawn: SampledSubgraph) -> Batch:
        device = self.graph.edge_index.device
        nodes = drawn.node_ids.to(device)
        return Batch(self.graph.subgraph(nodes, drawn.edge_index.to(device)), nodes[: drawn.num_seeds])
