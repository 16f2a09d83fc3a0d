"""A graph that cannot be trained on is refused with a sentence before any training."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import evidentia as ev
from evidentia.graphs import check_graph, citation_graph


def graph(**changes: Any) -> SimpleNamespace:
    nodes = 12
    y = torch.arange(nodes) % 3
    attributes = {
        "x": torch.ones(nodes, 4),
        "edge_index": torch.tensor([[0, 1, 2], [1, 2, 3]]),
        "y": y,
        "train_mask": torch.arange(nodes) < 6,
        "val_mask": torch.arange(nodes) >= 9,
    }
    return SimpleNamespace(**{**attributes, **changes})


def test_good_graphs_pass() -> None:
    check_graph(graph(), 3)
    check_graph(graph(edge_index=torch.empty(2, 0, dtype=torch.long)), 3)
    check_graph(graph(edge_index=torch.tensor([[0], [11]], dtype=torch.int32)), 3)
    check_graph(graph(y=torch.where(torch.arange(12) == 7, -1, torch.arange(12) % 3)), 3)
    check_graph(citation_graph(nodes=200, classes=3), 3)


def with_value(shape: tuple[int, ...], value: float) -> torch.Tensor:
    tensor = torch.ones(shape)
    tensor[0, 0] = value
    return tensor


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": None}, "data.x must be a tensor, got NoneType"),
        ({"x": torch.ones(12)}, r"data.x must hold floating numbers in shape \(nodes, features\), got shape \(12,\)"),
        ({"x": torch.ones(12, 4, dtype=torch.long)}, "data.x must hold floating numbers"),
        ({"x": torch.ones(12, 0)}, "data.x must hold floating numbers"),
        ({"x": torch.ones(0, 4)}, "data.x must hold floating numbers"),
        ({"x": with_value((12, 4), float("nan"))}, "data.x must be finite, got NaN"),
        ({"x": with_value((12, 4), float("inf"))}, "data.x must be finite, got infinite"),
        ({"x": torch.ones(11, 4)}, "data.y must hold whole numbers, one for each of the 11 nodes"),
        ({"edge_index": None}, "data.edge_index must be a tensor"),
        ({"edge_index": torch.ones(2, 3)}, "data.edge_index must hold whole numbers, got torch.float32"),
        ({"edge_index": torch.ones(2, 3, dtype=torch.bool)}, "data.edge_index must hold whole numbers"),
        ({"edge_index": torch.ones(3, 2, dtype=torch.long)}, r"shape \(2, edges\), got \(3, 2\); transpose it"),
        ({"edge_index": torch.ones(6, dtype=torch.long)}, r"shape \(2, edges\), got \(6,\)$"),
        ({"edge_index": torch.tensor([[0], [12]])}, "nodes from 0 to 11, .* got nodes from 0 to 12"),
        ({"edge_index": torch.tensor([[-1], [2]])}, "got nodes from -1 to 2"),
        ({"y": None}, "data.y must be a tensor"),
        ({"y": torch.ones(12)}, "data.y must hold whole numbers"),
        ({"y": torch.ones(12, 3, dtype=torch.long)}, "argmax"),
        ({"y": torch.ones(13, dtype=torch.long)}, "one for each of the 12 nodes"),
        ({"y": torch.arange(12) % 4}, "labels from 0 to 2, or -1 for none, got labels from 0 to 3"),
        ({"y": torch.arange(12) % 3 - 2}, "got labels from -2 to 0"),
        ({"y": torch.arange(12) % 3 - 1}, "every training node needs a label, but 2 have -1"),
        ({"train_mask": None}, "data.train_mask must be a tensor, .*misclassification_split"),
        ({"train_mask": torch.ones(11, dtype=torch.bool)}, r"data.train_mask must .* each of the 12 nodes, got shape"),
        ({"val_mask": torch.ones(12, 1, dtype=torch.bool)}, "data.val_mask must have True or False"),
        ({"val_mask": torch.ones(12)}, "data.val_mask must have True or False"),
        ({"train_mask": torch.zeros(12, dtype=torch.bool)}, "there is no training node: data.train_mask is empty"),
        ({"val_mask": torch.zeros(12, dtype=torch.bool)}, "there is no validation node: data.val_mask is empty"),
        ({"val_mask": torch.arange(12) >= 5}, "training and validation at once, but 1 are"),
        ({"train_mask": torch.arange(12) < 2}, "class 2 has no training node"),
        ({"train_mask": torch.arange(12) < 1}, "classes 1, 2 have no training node"),
    ],
)
def test_bad_graphs_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ev.EvidentiaError, match=message):
        check_graph(graph(**changes), 3)


def test_too_few_classes_are_refused() -> None:
    with pytest.raises(ev.EvidentiaError, match="num_classes must be a whole number of at least 2, got 1"):
        check_graph(graph(), 1)


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_coo, torch.sparse_csc])
def test_nan_is_found_in_sparse_features(layout: torch.layout) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own words on sparse tensors
        good, bad = (with_value((12, 4), value).to_sparse(layout=layout) for value in (1.0, float("nan")))
    check_graph(graph(x=good), 3)
    with pytest.raises(ev.EvidentiaError, match="NaN"):
        check_graph(graph(x=bad), 3)


def test_values_go_unchecked_where_validation_is_off() -> None:
    with ev.validation(False):
        check_graph(graph(x=with_value((12, 4), float("nan"))), 3)
        check_graph(graph(edge_index=torch.tensor([[0], [12]])), 3)
        with pytest.raises(ev.EvidentiaError, match="edge_index must have shape"):
            check_graph(graph(edge_index=torch.ones(3, 2, dtype=torch.long)), 3)
