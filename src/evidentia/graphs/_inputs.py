"""What the functions on raw graphs require of edges, labels and training nodes, checked before any work."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import whole_number
from evidentia.graphs.checks import INTEGERS

IntArray: TypeAlias = "npt.NDArray[np.int64]"
FloatArray: TypeAlias = "npt.NDArray[np.float64]"

# Two node numbers must fit into one 64-bit sort key (`csr.py`).
MAX_NODES = 1 << 31


class Labels(NamedTuple):
    """The training nodes, ordered by class and then by number, and the class of each."""

    nodes: IntArray
    classes: IntArray


def read_nodes(value: Tensor, name: str, num_nodes: int) -> IntArray:
    """Require a flat integer tensor of node numbers, each at most once."""
    nodes = _read_integers(value, name)
    if nodes.ndim != 1:
        raise EvidentiaError(f"{name} must have one dimension, got shape {nodes.shape}")
    _check_range(nodes, name, num_nodes)
    repeated = nodes.size - np.unique(nodes).size
    if repeated:
        raise EvidentiaError(
            f"{name} must name every node at most once, got {repeated} repeated entries; "
            "if it is a mask of 0 and 1, turn it into bool first"
        )
    return nodes


def read_edges(edge_index: Tensor, num_nodes: int) -> tuple[IntArray, IntArray]:
    """Require an integer tensor of shape (2, E) with node numbers below `num_nodes`; gives sources and targets."""
    if num_nodes > MAX_NODES:
        raise EvidentiaError(f"graphs of up to {MAX_NODES:,} nodes are supported, got {num_nodes:,}")
    edges = _read_integers(edge_index, "edge_index")
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise EvidentiaError(f"edge_index must have shape (2, E): a row of sources, one of targets; got {edges.shape}")
    _check_range(edges, "edge_index", num_nodes)
    return edges[0], edges[1]


def read_labels(y: Tensor, train_mask: Tensor, num_classes: int) -> Labels:
    """Require one label a node and a non-empty set of training nodes, whose classes lie below `num_classes`.

    The labels of other nodes are not looked at: they may be -1 for unknown, or classes outside the distribution.
    """
    num_classes = whole_number(num_classes, "num_classes", least=1)
    labels = _read_integers(y, "y")
    if labels.ndim != 1:
        raise EvidentiaError(f"y must hold one class a node, got shape {labels.shape}")
    mask = _read_tensor(train_mask, "train_mask")
    if mask.dtype == torch.bool:
        if mask.shape != labels.shape:
            raise EvidentiaError(
                f"train_mask must have one entry for each of the {labels.size} nodes of y, got {tuple(mask.shape)}"
            )
        nodes = np.flatnonzero(mask.cpu().numpy())
    else:
        nodes = np.sort(read_nodes(mask, "train_mask", labels.size))
    if nodes.size == 0:
        raise EvidentiaError("train_mask must mark at least one training node, got none")
    classes = labels[nodes]
    if classes.min() < 0 or classes.max() >= num_classes:
        wrong = int(np.argmax((classes < 0) | (classes >= num_classes)))
        raise EvidentiaError(
            f"y of training nodes must lie in 0..{num_classes - 1} for num_classes={num_classes}, "
            f"got {classes[wrong]} for node {nodes[wrong]}"
        )
    by_class = np.argsort(classes, kind="stable")
    return Labels(nodes[by_class], classes[by_class])


def read_weights(edge_weight: Tensor, num_edges: int) -> FloatArray:
    """Require one finite length of at least 0 for each edge."""
    weights = _read_tensor(edge_weight, "edge_weight").detach().cpu().to(torch.float64).numpy()
    if weights.shape != (num_edges,):
        raise EvidentiaError(
            f"edge_weight must have one entry for each of the {num_edges} edges of edge_index, got {weights.shape}"
        )
    if not np.isfinite(weights).all():
        kind = "NaN" if np.isnan(weights).any() else "infinite values"
        raise EvidentiaError(f"edge_weight must be finite, got {kind}; leave out edges that cannot be walked")
    if weights.size and weights.min() < 0:
        raise EvidentiaError(f"edge_weight holds lengths of at least 0, got a smallest value of {weights.min():.6g}")
    return weights


def _read_tensor(value: Any, name: str) -> Tensor:
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise EvidentiaError(f"{name} must be a tensor or an array, got {type(value).__name__}") from error


def _read_integers(value: Tensor, name: str) -> IntArray:
    tensor = _read_tensor(value, name)
    if tensor.dtype not in INTEGERS:
        raise EvidentiaError(f"{name} must hold integers, got {tensor.dtype}; convert it with .long()")
    return tensor.cpu().numpy().astype(np.int64, copy=False)


def _check_range(nodes: IntArray, name: str, num_nodes: int) -> None:
    if nodes.size and (nodes.min() < 0 or nodes.max() >= num_nodes):
        raise EvidentiaError(
            f"{name} must hold node numbers in 0..{num_nodes - 1}, got values from {nodes.min()} to {nodes.max()}; "
            "the number of nodes is too small or the numbers are not consecutive"
        )
