"""What every estimator requires of a graph, checked before any training."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from evidentia._support.checks import check_finite, validation_enabled
from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import whole_number

if TYPE_CHECKING:
    from torch_geometric.data import Data

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def check_graph(data: Data, num_classes: int) -> None:
    """Require a graph that a node classifier can be trained on.

    Checks of values (not of shapes and types) are left out inside `evidentia.validation(False)`.

    Args:
        data: a PyG `Data` with `x`, `edge_index`, `y`, `train_mask` and `val_mask`.
        num_classes: labels must lie in 0 to `num_classes - 1`, or be -1 where a node has none.

    Raises:
        EvidentiaError: at the first thing that is wrong.

    Example:
        >>> from evidentia.graphs import citation_graph
        >>> data = citation_graph(nodes=300, classes=3)
        >>> check_graph(data, num_classes=3)
        >>> data.train_mask &= data.y != 1
        >>> check_graph(data, num_classes=3)
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: class 1 has no training node; ...
    """
    whole_number(num_classes, "num_classes", 2)
    nodes = check_nodes(data)
    y = check_labels(data, nodes)
    train, validation = check_mask(data, "train_mask", nodes), check_mask(data, "val_mask", nodes)
    if validation_enabled():
        _check_classes(y, num_classes)
        _check_sets(y, train, validation, num_classes)


def check_nodes(data: Data, num_features: int | None = None) -> int:
    """Require features and edges that a network can be shown, and return the number of nodes.

    Args:
        data: a PyG `Data` with `x` and `edge_index`.
        num_features: how many features a node must have; any number if None.
    """
    x, edge_index = _tensor(data, "x"), _tensor(data, "edge_index")
    _check_features(x)
    if num_features is not None and x.shape[1] != num_features:
        raise EvidentiaError(
            f"data.x must have the {num_features} features that the classifier was trained on, got {x.shape[1]}"
        )
    nodes = x.shape[0]
    _check_edges(edge_index, nodes)
    if validation_enabled():
        check_finite(stored_values(x), "data.x")
    return nodes


def stored_values(x: Tensor) -> Tensor:
    """All values of a dense tensor, or those that a sparse one stores; what it does not store is 0."""
    if x.layout == torch.strided:
        return x
    # Those of COO can be read without sorting them first.
    return x._values() if x.layout == torch.sparse_coo else x.values()


def count_classes(data: Data, num_classes: Any = None) -> int:
    """K: as given, or `data.num_classes`, or one more than the largest label."""
    y = check_labels(data)
    given = getattr(data, "num_classes", None) if num_classes is None else num_classes
    if given is None:
        return int(y.max()) + 1 if len(y) else 0
    if isinstance(given, bool) or not isinstance(given, Integral):
        raise EvidentiaError(f"num_classes must be a whole number, got {given!r}")
    return int(given)


def check_labels(data: Data, nodes: int | None = None) -> Tensor:
    """The labels of a graph, after checking that they are whole numbers, one a node."""
    y = _tensor(data, "y")
    if y.dtype not in INTEGERS or y.ndim != 1 or (nodes is not None and len(y) != nodes):
        needed = "one a node" if nodes is None else f"one for each of the {nodes} nodes"
        raise EvidentiaError(
            f"data.y must hold whole numbers, {needed}, got shape {tuple(y.shape)} of {y.dtype}; "
            "one-hot labels become numbers by .argmax(1)"
        )
    return y


def check_mask(data: Data, name: str, nodes: int) -> Tensor:
    """The mask of that name, after checking that it has True or False for every node."""
    mask = _tensor(data, name)
    if mask.dtype != torch.bool or tuple(mask.shape) != (nodes,):
        raise EvidentiaError(
            f"data.{name} must have True or False for each of the {nodes} nodes, got shape {tuple(mask.shape)} of "
            f"{mask.dtype}"
        )
    return mask


def _tensor(data: Any, name: str) -> Tensor:
    if data is None or isinstance(data, str | tuple | list | Tensor | np.ndarray):
        raise EvidentiaError(
            f"a graph must be a PyG Data, got {type(data).__name__}; torch_geometric.data has it, and tensors become "
            "one by Data(x=x, edge_index=edge_index, y=y)"
        )
    value = getattr(data, name, None)
    if not isinstance(value, Tensor):
        raise EvidentiaError(
            f"data.{name} must be a tensor, got {type(value).__name__}; a graph needs x, edge_index, y, train_mask and "
            "val_mask (evidentia.graphs.misclassification_split makes the masks)"
        )
    return value


def _check_features(x: Tensor) -> None:
    if x.ndim != 2 or not x.is_floating_point() or 0 in x.shape:
        raise EvidentiaError(
            f"data.x must hold floating numbers in shape (nodes, features), got shape {tuple(x.shape)} of {x.dtype}"
            f"{'' if x.is_floating_point() else '; convert it by .float()'}"
        )


def _check_edges(edge_index: Tensor, nodes: int) -> None:
    if edge_index.dtype not in INTEGERS:
        raise EvidentiaError(f"data.edge_index must hold whole numbers, got {edge_index.dtype}; convert it by .long()")
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        hint = "; transpose it" if edge_index.ndim == 2 and edge_index.shape[1] == 2 else ""
        raise EvidentiaError(f"data.edge_index must have shape (2, edges), got {tuple(edge_index.shape)}{hint}")
    if not validation_enabled() or not edge_index.numel():
        return
    low, high = int(edge_index.min()), int(edge_index.max())
    if low < 0 or high >= nodes:
        raise EvidentiaError(
            f"data.edge_index must hold nodes from 0 to {nodes - 1}, as data.x has {nodes} rows, "
            f"got nodes from {low} to {high}"
        )


def _check_classes(y: Tensor, num_classes: int) -> None:
    low, high = int(y.min()), int(y.max())
    if low < -1 or high >= num_classes:
        raise EvidentiaError(
            f"data.y must hold labels from 0 to {num_classes - 1}, or -1 for none, got labels from {low} to {high}"
        )


def _check_sets(y: Tensor, train: Tensor, validation: Tensor, num_classes: int) -> None:
    for name, mask in (("training", train), ("validation", validation)):
        if not bool(mask.any()):
            raise EvidentiaError(
                f"there is no {name} node: data.{'train' if name == 'training' else 'val'}_mask is empty"
            )
        if unlabelled := int((mask & (y < 0)).sum()):
            raise EvidentiaError(
                f"every {name} node needs a label, but {unlabelled} have -1; take them out of the mask"
            )
    if both := int((train & validation).sum()):
        raise EvidentiaError(f"no node may be in training and validation at once, but {both} are")
    counts = torch.bincount(y[train].long(), minlength=num_classes)
    if empty := (counts == 0).nonzero().flatten().tolist():
        which = f"class {empty[0]} has" if len(empty) == 1 else f"classes {', '.join(map(str, empty))} have"
        raise EvidentiaError(
            f"{which} no training node; label some, or leave such classes out and number the others from 0"
        )
