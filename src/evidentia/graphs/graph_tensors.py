"""A graph as the networks want it: features, and the matrices that spread values along edges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from evidentia.graphs.propagation import normalised_adjacency, random_walk
from evidentia.graphs.sparse_matrix import SparseMatrix


@dataclass(frozen=True)
class GraphTensors:
    """A graph as the networks want it.

    Attributes:
        features: node features, shape `(N, F)`; sparse ones stay sparse.
        edge_index: edges from row 0 to row 1, both directions of an undirected one, shape `(2, E)`.
    """

    features: SparseMatrix | Tensor
    edge_index: Tensor

    @classmethod
    def build(
        cls, x: Tensor, edge_index: Tensor, *, normalise: bool = True, like: Tensor | None = None
    ) -> GraphTensors:
        """From node features, dense or sparse, and edges.

        Args:
            x: features.
            edge_index: edges.
            normalise: divide the features of each node by their sum.
            like: a tensor whose type and device they are to have; by default torch's type, and their own device.
        """
        x = x.detach().to(torch.get_default_dtype()) if like is None else x.detach().to(like)
        edges = edge_index.to(x.device, torch.int64)
        if x.layout != torch.strided:
            matrix = SparseMatrix.from_tensor(x)
            return cls(matrix.row_normalised() if normalise else matrix, edges)
        if not normalise:
            return cls(x, edges)
        total = x.sum(-1, keepdim=True)
        return cls(x / torch.where(total != 0, total, torch.ones_like(total)), edges)

    @property
    def num_nodes(self) -> int:
        """N."""
        return int(self.features.shape[0])

    @property
    def num_features(self) -> int:
        """F."""
        return int(self.features.shape[1])

    @cached_property
    def adjacency(self) -> SparseMatrix:
        """The normalised adjacency matrix of a GCN."""
        return normalised_adjacency(self.edge_index, self.num_nodes)

    @cached_property
    def mean_adjacency(self) -> SparseMatrix:
        """The same with rows that sum to 1."""
        return self.adjacency.row_normalised()

    @cached_property
    def walk(self) -> SparseMatrix:
        """The matrix that averages over neighbours."""
        return random_walk(self.edge_index, self.num_nodes)

    def subgraph(self, nodes: Tensor, edge_index: Tensor) -> GraphTensors:
        """The features of some nodes, with edges in the numbers of `nodes`."""
        features = self.features
        return GraphTensors(features.rows(nodes) if isinstance(features, SparseMatrix) else features[nodes], edge_index)

    def without_edges(self, rate: float) -> GraphTensors:
        """DropEdge: every undirected edge left out with probability `rate`."""
        source, target = self.edge_index
        # Both directions of an edge share the draw of their pair of ends.
        pair = torch.minimum(source, target) * self.num_nodes + torch.maximum(source, target)
        edges, edge_of = torch.unique(pair, return_inverse=True)
        kept = (torch.rand(len(edges), device=pair.device) >= rate)[edge_of]
        return replace(self, edge_index=self.edge_index[:, kept])
