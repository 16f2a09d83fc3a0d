"""The prior by random walks against its definition."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evidentia import EvidentiaError
from evidentia.graphs import walk_prior


def _definition(edges: torch.Tensor, y: torch.Tensor, train: torch.Tensor, classes: int, stop: float) -> torch.Tensor:
    """By the inverse of a dense matrix: where an endless walk ends."""
    nodes = len(y)
    walk = torch.zeros(nodes, nodes, dtype=torch.float64)
    for source, target in edges.T.tolist():
        walk[target, source] += source != target
    walk += torch.diag((walk.sum(1) == 0).double())
    walk /= walk.sum(1, keepdim=True)
    ends = stop * torch.linalg.inv(torch.eye(nodes, dtype=torch.float64) - (1 - stop) * walk)
    marks = torch.nn.functional.one_hot(y, classes).double() * train[:, None]
    return 1 + nodes / train.sum() * (ends @ marks)


@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(2, 4), st.sampled_from([0.1, 0.3, 0.8]))
def test_many_steps_come_to_the_definition(seed: int, nodes: int, classes: int, stop: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(nodes, (2, 2 * nodes), generator=generator)
    edges = torch.cat([pairs, pairs.flip(0)], dim=1)
    y = torch.randint(classes, (nodes,), generator=generator)
    train = torch.rand(nodes, generator=generator) < 0.5
    train[0] = True
    found = walk_prior(edges, y, train, classes, teleport=stop, steps=200)
    torch.testing.assert_close(found.double(), _definition(edges, y, train, classes, stop), rtol=1e-4, atol=1e-4)


def test_evidence_is_one_on_average_where_the_walk_keeps_all_nodes_alike() -> None:
    ring = torch.stack([torch.arange(12), (torch.arange(12) + 1) % 12])
    edges = torch.cat([ring, ring.flip(0)], dim=1)
    y = torch.arange(12) % 3
    alpha = walk_prior(edges, y, torch.arange(12) < 5, 3)
    assert float((alpha - 1).sum(-1).mean()) == pytest.approx(1, rel=1e-5)


def test_a_part_without_training_nodes_gets_no_evidence() -> None:
    edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    alpha = walk_prior(edges, torch.tensor([0, 1, 0, 1]), torch.tensor([True, True, False, False]), 2)
    assert torch.equal(alpha[2:], torch.ones(2, 2))
    assert bool((alpha[:2] > 1).all())


def test_edges_past_the_nodes_are_refused() -> None:
    with pytest.raises(EvidentiaError, match="edge_index"):
        walk_prior(torch.tensor([[0], [9]]), torch.tensor([0, 1]), torch.tensor([True, True]), 2)
