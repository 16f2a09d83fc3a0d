"""What a graph file holds, once read and checked, and how it becomes a PyG `Data`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from scipy.sparse import csgraph
from torch import Tensor

from evidentia._support.errors import FileFormatError
from evidentia.graphs._pyg import data_class

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class RawGraph:
    """A graph as its files have it.

    Args:
        features: one row a node.
        adjacency: square, symmetric, an empty diagonal; see `undirected`.
        labels: one a node, -1 where a node has none.
        class_names: names of the classes, empty if unknown.
        masks: `train_mask`, `val_mask` and `test_mask` of a public split, empty if there is none.
        index: the nodes' numbers in the file, if only some of them are kept.
    """

    features: sparse.csr_matrix[Any]
    adjacency: sparse.csr_matrix[Any]
    labels: Array
    class_names: tuple[str, ...] = ()
    masks: dict[str, Array] = field(default_factory=dict)
    index: Array | None = None

    def largest_component(self) -> RawGraph:
        """The part of the graph that hangs together and has most nodes (the first of them in a tie)."""
        _, component = csgraph.connected_components(self.adjacency, directed=False)
        keep = np.flatnonzero(component == np.bincount(component).argmax())
        return replace(
            self,
            features=self.features[keep],
            adjacency=self.adjacency[keep][:, keep],
            labels=self.labels[keep],
            masks={name: mask[keep] for name, mask in self.masks.items()},
            index=keep,
        )

    def to_data(self, name: str) -> Any:
        """The graph as a PyG `Data`."""
        # CSR with sorted columns is the order that PyG calls coalesced.
        edges = self.adjacency.tocoo()
        attributes: dict[str, Any] = {
            "x": _as_tensor(self.features),
            "edge_index": torch.from_numpy(np.stack([edges.row, edges.col]).astype(np.int64)),
            "y": torch.from_numpy(self.labels.astype(np.int64)),
            **{mask: torch.from_numpy(values) for mask, values in self.masks.items()},
            "num_classes": int(self.labels.max()) + 1,
            "name": name,
        }
        if len(self.class_names) == attributes["num_classes"]:
            attributes["class_names"] = list(self.class_names)
        if self.index is not None:
            attributes["n_id"] = torch.from_numpy(self.index.astype(np.int64))
        return data_class()(**attributes)


def _as_tensor(matrix: sparse.csr_matrix[Any]) -> Tensor:
    """A torch sparse CSR tensor, its invariants checked."""
    return torch.sparse_csr_tensor(
        torch.from_numpy(matrix.indptr.astype(np.int64)),
        torch.from_numpy(matrix.indices.astype(np.int64)),
        torch.from_numpy(np.array(matrix.data)).to(torch.float32),
        matrix.shape,
        check_invariants=True,
    )


def undirected(rows: Array, columns: Array, nodes: int) -> sparse.csr_matrix[Any]:
    """The adjacency of the undirected graph: both directions, every edge once, no self loops."""
    links = rows != columns
    rows, columns = rows[links], columns[links]
    ends = (np.concatenate([rows, columns]), np.concatenate([columns, rows]))
    adjacency = sparse.csr_matrix((np.ones(len(ends[0]), dtype=np.float32), ends), shape=(nodes, nodes))
    adjacency.sum_duplicates()
    adjacency.data[:] = 1
    return adjacency


def checked_csr(
    data: Array, indices: Array, indptr: Array, shape: tuple[int, int], what: str, path: Path
) -> sparse.csr_matrix[Any]:
    """The CSR matrix of these arrays, float32, after checking that they make one; scipy itself trusts its input."""

    def refuse(why: str) -> FileFormatError:
        return FileFormatError(f"the {what} in {path} are not a sparse matrix: {why}; fetch the file again")

    for name, array, kinds in (("data", data, "biuf"), ("indices", indices, "iu"), ("indptr", indptr, "iu")):
        if array.ndim != 1 or array.dtype.kind not in kinds:
            raise refuse(f"its {name} are {array.dtype} of shape {array.shape}")
    rows, columns = shape
    if rows < 0 or columns < 0 or len(indptr) != rows + 1:
        raise refuse(f"{len(indptr)} row pointers do not fit {rows} rows")
    steps = indptr.astype(np.int64)
    if steps[0] != 0 or (np.diff(steps) < 0).any() or steps[-1] != len(indices) or len(data) != len(indices):
        raise refuse("its row pointers do not fit its entries")
    if len(indices) and (indices.min() < 0 or indices.max() >= columns):
        raise refuse(f"a column is outside 0 to {columns - 1}")
    values = data.astype(np.float32)
    if not np.isfinite(values).all():
        raise refuse("it holds NaN or infinite values")
    matrix = sparse.csr_matrix((values, indices.astype(np.int64), steps), shape=shape)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix
