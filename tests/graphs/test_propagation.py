"""Evidence along edges: what stays, what moves, and the matrices it moves by."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evidentia import EvidentiaError
from evidentia.graphs.propagation import (
    normalised_adjacency,
    personalised_pagerank,
    propagate_energy,
    propagate_evidence,
    propagate_strength,
    random_walk,
)


def _graph(seed: int, nodes: int = 12, edges: int = 20) -> torch.Tensor:
    pairs = torch.randint(0, nodes, (2, edges), generator=torch.Generator().manual_seed(seed))
    pairs = torch.unique(pairs[:, pairs[0] != pairs[1]].sort(dim=0).values, dim=1)
    return torch.cat([pairs, pairs.flip(0)], dim=1)


@given(st.integers(0, 10_000))
def test_strength_propagation_keeps_labels_and_class_ratios(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(12, 4, generator=generator) * 5
    spread = propagate_strength(logits, random_walk(_graph(seed), 12))
    torch.testing.assert_close(spread.log_softmax(-1), logits.log_softmax(-1), atol=1e-5, rtol=1e-5)
    assert torch.equal(spread.argmax(-1), logits.argmax(-1))


@given(st.integers(0, 10_000))
def test_strength_is_the_pagerank_of_the_log_total(seed: int) -> None:
    logits = torch.randn(12, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    walk = random_walk(_graph(seed), 12).to(torch.float64)
    expected = personalised_pagerank(logits.logsumexp(-1, keepdim=True), walk)
    torch.testing.assert_close(propagate_strength(logits, walk).logsumexp(-1, keepdim=True), expected)


def test_isolated_nodes_are_left_alone() -> None:
    walk = random_walk(torch.tensor([[0, 1], [1, 0]]), 3)
    logits = torch.tensor([[4.0, 0.0], [0.0, 1.0], [3.0, -2.0]])
    torch.testing.assert_close(propagate_evidence(logits, walk)[2], logits[2])
    torch.testing.assert_close(propagate_strength(logits, walk)[2], logits[2])


def test_many_steps_reach_the_closed_form_of_personalised_pagerank() -> None:
    edges, teleport = _graph(1), 0.1
    walk = random_walk(edges, 12).to(torch.float64)
    values = torch.randn(12, 2, dtype=torch.float64)
    exact = teleport * torch.linalg.solve(torch.eye(12).double() - (1 - teleport) * walk.to_dense(), values)
    torch.testing.assert_close(personalised_pagerank(values, walk, teleport, steps=400), exact)


def test_walk_averages_over_neighbours() -> None:
    walk = random_walk(torch.tensor([[1, 2, 0, 0], [0, 0, 1, 2]]), 3).to_dense()
    assert walk.tolist() == [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]


def test_an_edge_from_a_node_to_itself_makes_it_no_neighbour_of_its_own() -> None:
    walk = random_walk(torch.tensor([[0, 1, 0, 2], [1, 0, 0, 2]]), 3).to_dense()
    assert walk.tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]


def test_adjacency_is_that_of_kipf_and_welling() -> None:
    edges = _graph(2)
    dense = torch.zeros(12, 12)
    dense[edges[1], edges[0]] = 1
    dense += torch.eye(12)
    scale = torch.diag(dense.sum(1).rsqrt())
    torch.testing.assert_close(normalised_adjacency(edges, 12).to_dense(), scale @ dense @ scale)


def test_self_loops_in_the_input_change_nothing() -> None:
    edges = _graph(3)
    with_loops = torch.cat([edges, torch.arange(12).expand(2, -1)], dim=1)
    torch.testing.assert_close(
        normalised_adjacency(with_loops, 12).to_dense(), normalised_adjacency(edges, 12).to_dense()
    )


@pytest.mark.parametrize("options", [{"teleport": 0.0}, {"teleport": 1.5}, {"steps": -1}])
def test_settings_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(EvidentiaError, match="must"):
        personalised_pagerank(torch.ones(3, 1), random_walk(torch.tensor([[0, 1], [1, 0]]), 3), **options)


def test_energy_is_averaged_with_the_neighbours_twice() -> None:
    walk = random_walk(torch.tensor([[0, 1], [1, 0]]), 3)
    logits = torch.tensor([[2.0, 0.0], [0.0, 0.0], [5.0, 1.0]])
    own = -logits.logsumexp(-1)
    mixed = (own[0] + own[1]) / 2
    torch.testing.assert_close(propagate_energy(logits, walk), torch.stack([mixed, mixed, own[2]]))
