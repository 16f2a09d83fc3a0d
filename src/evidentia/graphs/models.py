"""Graph networks of two layers: GCN (two kinds), GAT, GraphSAGE and APPNP by name, and a user's own module.

All take a graph and give outputs of shape `(passes, N, outputs)`: with dropout on, every pass drops other units, and
many passes at once are faster than one after the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia._support.checks import shape_or_kind
from evidentia._support.errors import EvidentiaError
from evidentia._support.registry import Registry
from evidentia.graphs.graph_tensors import GraphTensors
from evidentia.graphs.propagation import personalised_pagerank
from evidentia.graphs.sparse_matrix import SparseMatrix
from evidentia.learning.dropout import dropout

BACKBONES: Registry[Callable[..., Backbone]] = Registry("graph backbone")


class Backbone(nn.Module, ABC):
    """A graph network; `first` holds the parameters of its first layer, which alone are decayed."""

    first: nn.Module

    def start_training(self, labels: Tensor) -> None:
        """Told the labels of the training nodes before the first epoch."""

    def start_epoch(self, epoch: int) -> None:
        """Told the number of an epoch, from 0, before it."""

    def pass_entries(self, graph: GraphTensors) -> int:
        """How many numbers the largest tensor of one pass holds, about."""
        widest = max(parameter.shape[-1] for parameter in self.parameters() if parameter.ndim)
        stored = graph.features.num_values if isinstance(graph.features, SparseMatrix) else 0
        return max(graph.num_nodes * widest, stored)

    @abstractmethod
    def forward(self, graph: GraphTensors, passes: int = 1) -> Tensor:
        """Outputs of shape `(passes, N, outputs)`."""

    @abstractmethod
    def hidden(self, graph: GraphTensors, passes: int = 1) -> Tensor:
        """What the first layer gives, shape `(passes, N, hidden)`."""


class Projection(nn.Module):
    """A linear layer without bias over node features, with dropout on them.

    Args:
        features: F.
        outputs: width of the result.
        dropout: probability with which an input is dropped.
    """

    def __init__(self, features: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(features, outputs))
        self.dropout = dropout
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x: SparseMatrix | Tensor, passes: int = 1) -> Tensor:
        """The product, shape `(passes, N, outputs)`; inputs of three dimensions bring their own passes."""
        rate = self.dropout if self.training else 0.0
        if isinstance(x, SparseMatrix):
            return x.dropped_matmul(self.weight, rate, passes)
        inputs = x.expand(passes, -1, -1) if x.ndim == 2 else x
        return (dropout(inputs, rate) if rate else inputs) @ self.weight


@BACKBONES.register("gcn")
class GCN(Backbone):
    r"""$\hat A\, \mathrm{relu}(\hat A X W_1)\, W_2$, with dropout on X and on the hidden layer (Kipf and Welling 2017).

    Args:
        features: F.
        outputs: numbers a node.
        hidden: width of the hidden layer.
        dropout: dropout rate of both layers.
    """

    def __init__(self, features: int, outputs: int, hidden: int = 16, dropout: float = 0.5) -> None:
        super().__init__()
        self.first = Projection(features, hidden, dropout)
        self.second = Projection(hidden, outputs, dropout)

    def hidden(self, graph: GraphTensors, passes: int = 1) -> Tensor:
        """relu(A X W)."""
        return F.relu(_spread(self._matrix(graph), self.first(graph.features, passes)))

    def forward(self, graph: GraphTensors, passes: int = 1) -> Tensor:
        """Outputs of shape `(passes, N, outputs)`."""
        return _spread(self._matrix(graph), self.second(self.hidden(graph, passes)))

    def _matrix(self, graph: GraphTensors) -> SparseMatrix:
        return graph.adjacency


@BACKBONES.register("mean-gcn")
class MeanGCN(GCN):
    r"""A GCN with $\hat A_{ij} / \sum_l \hat A_{il}$: a node takes the mean of its neighbours, however many it has.

    The rows of $\hat A$ sum to more where a node has many neighbours, and logits grow with them, right or wrong: on
    graphs of many edges a GCN's total evidence mostly tells degrees. Arguments are as for `GCN`.
    """

    def _matrix(self, graph: GraphTensors) -> SparseMatrix:
        return graph.mean_adjacency


@BACKBONES.register("graphsage")
class GraphSAGE(Backbone):
    """A node's own features and the mean of its neighbours', each with weights of their own (Hamilton et al. 2017).

    A node without neighbours stands in for them itself. Arguments are as for `GCN`.
    """

    def __init__(self, features: int, outputs: int, hidden: int = 16, dropout: float = 0.5) -> None:
        super().__init__()
        self.first = Projection(features, 2 * hidden, dropout)
        self.second = Projection(hidden, 2 * outputs, dropout)

    def hidden(self, graph: GraphTensors, passes: int = 1) -> Tensor:
        """The relu of own and neighbours' projections added."""
        return F.relu(self._join(graph, self.first(graph.features, passes)))

    def forward(self, graph: GraphTensors, passes: int = 1) -> Tensor:
        """Outputs of shape `(passes, N, outputs)`."""
        return self._join(graph, self.second(self.hidden(graph, passes)))

    @staticmethod
    def _join(graph: GraphTensors, both: Tensor) -> Tensor:
        own, neighbours = both.chunk(2, dim=-1)
        return own + _spread(graph.walk, neighbours)


@BACKBONES.register("appnp")
class APPNP(Backbone):
    """A network of two layers on each node, then personalised PageRank of its outputs (Gasteiger et al. 2019).

    Arguments are as for `GCN`; teleport 0.1 and 10 steps as published.
    """

    def __init__(self, features: int, outputs: int, hidden: int = 64, dropout: float = 0.5) -> None:
        super().__init__()
        self.first = Projection(features, hidden, dropout)
        self.second = Projection(hidden, outputs, dropout)

    def hidden(self, graph: GraphTensors, passes: int = 1) -> Tensor:
        """relu(X W)."""
        return F.relu(self.first(graph.features, passes))

    def forward(self, graph: GraphTensors, passes: int = 1) -> Tensor:
        """Outputs of shape `(passes, N, outputs)`."""
        outputs = self.second(self.hidden(graph, passes))
        wide = outputs.movedim(0, 1).flatten(1)
        spread = personalised_pagerank(wide, graph.adjacency, teleport=0.1, steps=10)
        return spread.reshape(graph.num_nodes, passes, -1).movedim(1, 0)


@BACKBONES.register("gat")
class GAT(Backbone):
    """Attention over neighbours: 8 heads of `hidden` units, then one (Veličković et al. 2018).

    Arguments are as for `GCN`; `hidden` is the width of one head.
    """

    heads = 8

    def __init__(self, features: int, outputs: int, hidden: int = 8, dropout: float = 0.6) -> None:
        super().__init__()
        self.dropout = dropout
        self.first = Projection(features, self.heads * hidden, dropout)
        self.second = Projection(self.heads * hidden, outputs, dropout)
        self.attention = nn.ParameterList(
            nn.init.xavier_uniform_(torch.empty(heads, 2 * width)).requires_grad_()
            for heads, width in ((self.heads, hidden), (1, outputs))
        )

    def hidden(self, graph: GraphTensors, passes: int = 1) -> Tensor:
        """The heads side by side."""
        return F.elu(self._attend(graph, self.first(graph.features, passes), 0))

    def forward(self, graph: GraphTensors, passes: int = 1) -> Tensor:
        """Outputs of shape `(passes, N, outputs)`."""
        return self._attend(graph, self.second(self.hidden(graph, passes)), 1)

    def pass_entries(self, graph: GraphTensors) -> int:
        """Every edge carries what all heads say of its source."""
        edges = graph.edge_index.shape[1] + graph.num_nodes
        # Two numbers of attention for each unit of each head.
        units: int = self.attention[0].numel() // 2
        return max(super().pass_entries(graph), edges * units)

    def _attend(self, graph: GraphTensors, projected: Tensor, layer: int) -> Tensor:
        loops = torch.arange(graph.num_nodes, device=projected.device)
        source, target = torch.cat([graph.edge_index, loops.expand(2, -1)], dim=1)
        weight = self.attention[layer]
        heads, width = weight.shape[0], weight.shape[1] // 2
        values = projected.unflatten(-1, (heads, width))
        from_source, from_target = ((values * part).sum(-1) for part in weight.split(width, dim=-1))
        scores = F.leaky_relu(from_source[:, source] + from_target[:, target], 0.2)
        # Scores of the edges into a node, less their largest, so that their exponentials can be summed.
        index = target.expand(scores.shape[0], heads, -1).movedim(1, 2)
        largest = scores.new_full(from_source.shape, -torch.inf).scatter_reduce(1, index, scores, "amax")
        raw = torch.exp(scores - largest.detach()[:, target])
        total = torch.zeros_like(from_source).index_add(1, target, raw)
        share = raw / total[:, target]
        if self.training:
            share = dropout(share, self.dropout)
        mixed = torch.zeros_like(values).index_add(1, target, share.unsqueeze(-1) * values[:, source])
        return mixed.flatten(-2)


def check_own_module(module: Any) -> None:
    """Raise a clear error unless this is a module that can be called as `module(x, edge_index)`.

    Example:
        >>> check_own_module(nn.Linear(3, 2))
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: a backbone is called as module(x, edge_index), but ...
    """
    if not isinstance(module, nn.Module):
        raise EvidentiaError(f"backbone must be a name or a module, made and not its class, got {module!r}")
    try:
        taken = signature(module.forward)
    except (TypeError, ValueError):
        # Compiled code does not tell what it takes.
        return
    try:
        taken.bind(None, None)
        fits = not isinstance(module, Backbone)
    except TypeError:
        fits = False
    if not fits:
        raise EvidentiaError(
            f"a backbone is called as module(x, edge_index), but {type(module).__name__} takes "
            f"({', '.join(taken.parameters)}); give a name such as 'gcn', or a module whose forward takes the features "
            "of all nodes and their edges, as those of torch_geometric do"
        )


class OwnBackbone(Backbone):
    """A module of the user's that takes node features and edges, `module(x, edge_index)`, as PyG's do.

    All of its parameters count as those of the first layer.

    Args:
        module: gives outputs of shape `(N, outputs)`.
        outputs: how many numbers a node it must give.
    """

    def __init__(self, module: nn.Module, outputs: int) -> None:
        super().__init__()
        if not any(parameter.requires_grad for parameter in module.parameters()):
            raise EvidentiaError(f"the network {type(module).__name__} has no parameter that could be trained")
        self.first, self.outputs = module, outputs

    def forward(self, graph: GraphTensors, passes: int = 1) -> Tensor:
        """One call a pass."""
        features = graph.features
        x = features.to_dense() if isinstance(features, SparseMatrix) else features
        found = [self.first(x, graph.edge_index) for _ in range(passes)]
        wanted = (graph.num_nodes, self.outputs)
        if not isinstance(found[0], Tensor) or found[0].shape != wanted:
            raise EvidentiaError(
                f"the network must give a tensor of shape {wanted}, a number for each node and class, got "
                f"{shape_or_kind(found[0])}"
            )
        return torch.stack(found)

    def hidden(self, graph: GraphTensors, passes: int = 1) -> Tensor:
        """A user's module has no layer that is known to be hidden: its outputs."""
        return self.forward(graph, passes)


def _spread(matrix: SparseMatrix, values: Tensor) -> Tensor:
    """A matrix times values of shape `(passes, N, width)`, all passes side by side."""
    passes, nodes, width = values.shape
    wide = values.movedim(0, 1).reshape(nodes, passes * width)
    return (matrix @ wide).reshape(nodes, passes, width).movedim(1, 0)
