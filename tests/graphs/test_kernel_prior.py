"""The kernel prior: its definition by SciPy's Dijkstra, proposition 1 of the thesis, limits, and bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from evidentia import EvidentiaError, MultinomialOpinion, vacuity
from evidentia.graphs import hop_counts, kernel_prior
from evidentia.graphs.kernel_prior import reach

DOUBLE = {"dtype": torch.float64}
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


@st.composite
def problems(draw):
    """A random graph of 1 to 60 nodes, from empty to dense, with loops and repeats; at times more than 64 labels."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    num_nodes = draw(st.integers(1, 60))
    num_edges = draw(st.sampled_from([0, num_nodes // 2, num_nodes, 2 * num_nodes, num_nodes**2 // 2]))
    if draw(st.integers(0, 4)) == 0:  # enough labels for several words, on a graph with some distance in it
        num_nodes, num_edges = 200, draw(st.sampled_from([150, 250, 1000]))
    num_classes = draw(st.integers(1, 6))
    mask = generator.random(num_nodes) < draw(st.sampled_from([0.1, 0.5, 1.0]))
    mask[generator.integers(num_nodes)] = True
    edge_index = generator.integers(0, num_nodes, (2, num_edges))
    y = generator.integers(0, num_classes, num_nodes)
    return torch.from_numpy(edge_index), torch.from_numpy(y), torch.from_numpy(mask), num_classes


def distances(edge_index, train_nodes, num_nodes, undirected, weight=None):
    """From every training node (rows) to every node, by Dijkstra's algorithm as SciPy has it."""
    source, target = edge_index.numpy()
    shortest = np.full((num_nodes, num_nodes), np.inf)
    np.minimum.at(shortest, (source, target), np.ones(source.size) if weight is None else weight.numpy())
    if undirected:
        shortest = np.minimum(shortest, shortest.T)
    rows, columns = np.nonzero(np.isfinite(shortest))
    graph = coo_array((shortest[rows, columns], (rows, columns)), shape=shortest.shape).tocsr()
    return dijkstra(graph, indices=train_nodes.numpy())


def definition(edge_index, y, train_mask, num_classes, sigma, limit, undirected=True, weight=None):
    """The sum over training nodes of each class of exp(-d² / (2 sigma²)), plus 1."""
    train_nodes = train_mask.nonzero().flatten()
    distance = distances(edge_index, train_nodes, len(y), undirected, weight)
    worth = np.where(distance <= limit, np.exp(-(distance**2) / (2 * sigma**2)), 0)
    alpha = np.ones((len(y), num_classes))
    for row, node in zip(worth, train_nodes, strict=True):
        alpha[:, y[node]] += row
    return torch.from_numpy(alpha)


def example(num_nodes=300, num_edges=450, num_labels=40, num_classes=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(num_nodes, (2, num_edges), generator=generator)
    y = torch.randint(num_classes, (num_nodes,), generator=generator)
    mask = torch.zeros(num_nodes, dtype=torch.bool)
    mask[torch.randperm(num_nodes, generator=generator)[:num_labels]] = True
    return edge_index, y, mask, num_classes


@given(problems(), st.sampled_from([0.3, 1.0, 2.5]), st.booleans())
def test_equals_the_definition(problem, sigma, undirected):
    found = kernel_prior(*problem, sigma, undirected=undirected, **DOUBLE)
    torch.testing.assert_close(found, definition(*problem, sigma, reach(sigma), undirected), **CLOSE)


@given(problems(), st.booleans())
def test_without_a_limit_equals_the_whole_definition(problem, undirected):
    found = kernel_prior(*problem, 3.0, max_hops=len(problem[1]), undirected=undirected, **DOUBLE)
    torch.testing.assert_close(found, definition(*problem, 3.0, math.inf, undirected), **CLOSE)


@given(problems(), st.sampled_from([0.5, 1.0, 4.0]))
def test_proposition_1(problem, sigma):
    """Proposition 1 of the thesis (chapter 2, GKDE).

    Given L training nodes, let d_i = [d_i1, ..., d_iL] hold the graph distances from node i to them. If, for two nodes
    i and j, d_il >= d_jl for all l in 1..L, then u_i >= u_j, where u is the vacuity K / (sum_k e_k + K) of the prior
    that GKDE estimates. The thesis says it of testing nodes; it holds for any two, and for unreachable ones too,
    whose distance is infinite.
    """
    edge_index, y, mask, _ = problem
    num_classes = max(problem[3], 2)  # an opinion needs a choice
    distance = distances(edge_index, mask.nonzero().flatten(), len(y), undirected=True)
    alpha = kernel_prior(edge_index, y, mask, num_classes, sigma, **DOUBLE)
    u = vacuity(MultinomialOpinion.from_alpha(alpha)).numpy()
    farther = (distance[:, :, None] >= distance[:, None, :]).all(axis=0)  # [i, j]
    assert farther.diagonal().all()
    assert (u[:, None] - u[None, :])[farther].min() >= -1e-12


def test_proposition_1_on_a_path():
    """Walking away from the only training node, vacuity rises to 1 and stays there."""
    num_nodes = 12
    path = torch.stack([torch.arange(num_nodes - 1), torch.arange(1, num_nodes)])
    alpha = kernel_prior(path, torch.zeros(num_nodes, dtype=torch.long), torch.tensor([0]), 3, **DOUBLE)
    u = vacuity(MultinomialOpinion.from_alpha(alpha))
    assert u[0] == pytest.approx(3 / 4)
    assert (u[:7].diff() > 0).all()
    assert (u[7:] == 1).all()


@given(problems(), st.sampled_from([0.7, 1.5]), st.booleans(), st.integers(0, 2**32 - 1))
def test_weighted_equals_dijkstra(problem, sigma, undirected, seed):
    """Lengths of several sizes, 0 among them, and of parallel edges the shortest."""
    weight = torch.from_numpy(np.random.default_rng(seed).choice([0.0, 0.25, 1.0, 3.5], problem[0].shape[1]))
    found = kernel_prior(*problem, sigma, edge_weight=weight, undirected=undirected, **DOUBLE)
    torch.testing.assert_close(found, definition(*problem, sigma, reach(sigma), undirected, weight), **CLOSE)


@given(problems(), st.sampled_from([0.5, 1.0, 2.0]), st.booleans())
def test_lengths_of_one_are_hops(problem, sigma, undirected):
    hops = kernel_prior(*problem, sigma, undirected=undirected, **DOUBLE)
    ones = torch.ones(problem[0].shape[1])
    lengths = kernel_prior(*problem, sigma, edge_weight=ones, undirected=undirected, **DOUBLE)
    torch.testing.assert_close(lengths, hops, **CLOSE)


def test_weighted_in_little_memory():
    edge_index, y, mask, num_classes = example()
    weight = torch.rand(edge_index.shape[1], generator=torch.Generator().manual_seed(1))
    prior = [
        kernel_prior(edge_index, y, mask, num_classes, edge_weight=weight, memory_limit=limit, **DOUBLE)
        for limit in (1, 20_000, 1 << 28)
    ]
    torch.testing.assert_close(prior[0], prior[2], **CLOSE)
    torch.testing.assert_close(prior[1], prior[2], **CLOSE)


def test_last_hop():
    """6 hops for sigma = 1: g(5) = 3.7e-6 is above 1e-7, g(6) = 1.5e-8 is the first below and the last counted."""
    path = torch.stack([torch.arange(19), torch.arange(1, 20)])
    y, train = torch.zeros(20, dtype=torch.long), torch.tensor([0])
    evidence = kernel_prior(path, y, train, 1, **DOUBLE)[:, 0] - 1
    assert evidence[5] == pytest.approx(math.exp(-12.5))
    assert evidence[6] == pytest.approx(math.exp(-18), abs=1e-15)
    assert (evidence[7:] == 0).all()
    assert [reach(sigma) for sigma in (0.1, 0.5, 1.0, 2.0, 10.0)] == [1, 3, 6, 12, 57]
    for sigma in (0.3, 0.9, 1.0, 1.7, 5.0):
        last = reach(sigma)
        assert math.exp(-(last**2) / (2 * sigma**2)) < 1e-7 <= math.exp(-((last - 1) ** 2) / (2 * sigma**2))


@pytest.mark.parametrize("max_hops", [0, 1, 3, 100])
def test_given_hops(max_hops):
    problem = example()
    found = kernel_prior(*problem, 1.0, max_hops=max_hops, **DOUBLE)
    torch.testing.assert_close(found, definition(*problem, 1.0, max_hops), **CLOSE)


def test_tiny_sigma_leaves_each_training_node_its_own_label():
    edge_index, y, mask, num_classes = example()
    own = torch.nn.functional.one_hot(y, num_classes) * mask.unsqueeze(-1) + 1.0
    for sigma in (1e-3, 1e-200, 5e-324):
        assert torch.equal(kernel_prior(edge_index, y, mask, num_classes, sigma), own)


def test_huge_sigma_counts_the_labels_of_the_component():
    edge_index, y, mask, num_classes = example()
    counts = hop_counts(edge_index, y, mask, num_classes, len(y)).sum(-1)
    for sigma in (1e9, 1e300):
        assert torch.equal(kernel_prior(edge_index, y, mask, num_classes, sigma), counts + 1.0)


def test_any_sigma_is_a_sum_over_hop_counts():
    problem = example()
    counts = hop_counts(*problem, max_hops=12).double()
    for sigma in (0.5, 1.0, 2.0):
        worth = torch.exp(-(torch.arange(13.0, **DOUBLE) ** 2) / (2 * sigma**2))
        found = kernel_prior(*problem, sigma, max_hops=12, **DOUBLE)
        torch.testing.assert_close(found, 1 + counts @ worth, **CLOSE)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
def test_normalised(sigma):
    problem = example()
    plain = kernel_prior(*problem, sigma, **DOUBLE) - 1
    scaled = kernel_prior(*problem, sigma, normalised=True, **DOUBLE) - 1
    torch.testing.assert_close(scaled, plain / (sigma * math.sqrt(2 * math.pi)), **CLOSE)


@pytest.mark.parametrize("memory_limit", [1, 10_000, 60_000])
def test_little_memory_changes_nothing(memory_limit):
    problem = example(num_nodes=900, num_edges=1500, num_labels=600)
    small = kernel_prior(*problem, memory_limit=memory_limit, **DOUBLE)
    torch.testing.assert_close(small, kernel_prior(*problem, **DOUBLE), **CLOSE)


def test_repeats_bit_for_bit():
    problem = example()
    assert torch.equal(kernel_prior(*problem, **DOUBLE), kernel_prior(*problem, **DOUBLE))


@given(problems(), st.integers(0, 2**32 - 1))
def test_renumbering_nodes_renumbers_the_prior(problem, seed):
    edge_index, y, mask, num_classes = problem
    number = torch.from_numpy(np.random.default_rng(seed).permutation(len(y)))
    moved_y, moved_mask = torch.empty_like(y), torch.empty_like(mask)
    moved_y[number], moved_mask[number] = y, mask
    moved = kernel_prior(number[edge_index], moved_y, moved_mask, num_classes, **DOUBLE)
    torch.testing.assert_close(moved[number], kernel_prior(*problem, **DOUBLE), **CLOSE)


@given(problems())
def test_loops_repeats_and_reversed_edges_change_nothing(problem):
    edge_index, y, mask, num_classes = problem
    loops = torch.arange(len(y)).repeat(2, 1)
    more = torch.cat([edge_index, loops, edge_index.flip(0), edge_index], dim=1)
    assert torch.equal(kernel_prior(more, y, mask, num_classes), kernel_prior(*problem))


def test_direction_is_from_the_training_node_outward():
    path, y, train = torch.tensor([[0, 1], [1, 2]]), torch.zeros(3, dtype=torch.long), torch.tensor([1])
    forward = kernel_prior(path, y, train, 1, undirected=False)
    assert forward.flatten().tolist() == pytest.approx([1, 2, 1 + math.exp(-0.5)])


def test_no_edges_and_a_single_node():
    empty = torch.empty(2, 0, dtype=torch.long)
    assert kernel_prior(empty, torch.tensor([1]), torch.tensor([True]), 2).tolist() == [[1, 2]]
    y, mask = torch.tensor([0, 1, 1]), torch.tensor([True, False, True])
    assert kernel_prior(empty, y, mask, 2).tolist() == [[2, 1], [1, 1], [1, 2]]
    assert kernel_prior(empty, y, mask, 2, edge_weight=torch.empty(0)).tolist() == [[2, 1], [1, 1], [1, 2]]


def test_a_class_without_training_nodes_has_no_evidence():
    edge_index, y, mask, _ = example(num_classes=3)
    assert (kernel_prior(edge_index, y, mask, 5)[:, 3:] == 1).all()


def test_labels_of_other_nodes_are_not_looked_at():
    edge_index, y, mask, num_classes = example()
    hidden = torch.where(mask, y, -1)
    assert torch.equal(kernel_prior(edge_index, hidden, mask, num_classes), kernel_prior(edge_index, y, mask, 4))


def test_types_of_input_and_result(dtype):
    edge_index, y, mask, num_classes = example()
    expected = kernel_prior(edge_index, y, mask, num_classes, dtype=dtype)
    assert expected.dtype == dtype
    assert expected.shape == (300, 4)
    assert expected.is_contiguous()
    nodes = mask.nonzero().flatten().flip(0)
    for other in (mask.numpy(), nodes, nodes.int(), nodes.tolist()):
        assert torch.equal(kernel_prior(edge_index.int(), y.short(), other, num_classes, dtype=dtype), expected)
    assert kernel_prior(edge_index, y, mask, num_classes).dtype == torch.float32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edge_index": torch.zeros(3, 5, dtype=torch.long)}, r"edge_index must have shape \(2, E\).*\(3, 5\)"),
        ({"edge_index": torch.zeros(4, dtype=torch.long)}, r"edge_index must have shape \(2, E\)"),
        ({"edge_index": torch.zeros(2, 5)}, "edge_index must hold integers, got torch.float32"),
        ({"edge_index": torch.zeros(2, 5, dtype=torch.bool)}, "edge_index must hold integers, got torch.bool"),
        ({"edge_index": torch.tensor([[0, 1], [1, 10]])}, r"edge_index .* 0\.\.9, got values from 0 to 10"),
        ({"edge_index": torch.tensor([[0, -1], [1, 2]])}, "edge_index .* got values from -1 to 2"),
        ({"edge_index": "edges"}, "edge_index must be a tensor or an array, got str"),
        ({"y": torch.zeros(10)}, "y must hold integers"),
        ({"y": torch.zeros(10, 1, dtype=torch.long)}, r"y must hold one class a node, got shape \(10, 1\)"),
        ({"y": torch.zeros(9, dtype=torch.long)}, r"one entry for each of the 9 nodes of y, got \(10,\)"),
        ({"y": torch.full((10,), 2)}, r"0\.\.1 for num_classes=2, got 2 for node 0"),
        ({"y": torch.full((10,), -1)}, "got -1 for node 0"),
        ({"train_mask": torch.zeros(10, dtype=torch.bool)}, "at least one training node, got none"),
        ({"train_mask": torch.empty(0, dtype=torch.long)}, "at least one training node, got none"),
        ({"train_mask": torch.ones(11, dtype=torch.bool)}, "train_mask must have one entry"),
        ({"train_mask": torch.ones(10)}, "train_mask must hold integers"),
        ({"train_mask": torch.tensor([[1]])}, "train_mask must have one dimension"),
        ({"train_mask": torch.tensor([3, 10])}, r"train_mask must hold node numbers in 0\.\.9"),
        ({"train_mask": torch.tensor([0, 1, 0, 0])}, "turn it into bool first"),
        ({"num_classes": 0}, "num_classes must be a whole number of at least 1, got 0"),
        ({"num_classes": 2.0}, "num_classes must be a whole number"),
        ({"sigma": 0}, "sigma must be a number, more than 0, got 0"),
        ({"sigma": -1.0}, "sigma must be"),
        ({"sigma": math.nan}, "sigma must be"),
        ({"sigma": math.inf}, "sigma must be"),
        ({"sigma": "wide"}, "sigma must be"),
        ({"max_hops": -1}, "max_hops must be a whole number of at least 0, got -1"),
        ({"memory_limit": 0}, "memory_limit must be"),
        ({"dtype": torch.int64}, "dtype must be a floating one"),
        ({"edge_weight": torch.ones(3)}, r"edge_weight must have one entry for each of the 2 edges.*\(3,\)"),
        ({"edge_weight": torch.tensor([1.0, math.nan])}, "edge_weight must be finite, got NaN"),
        ({"edge_weight": torch.tensor([1.0, math.inf])}, "edge_weight must be finite, got infinite values"),
        ({"edge_weight": torch.tensor([1.0, -2.0])}, "at least 0, got a smallest value of -2"),
        ({"edge_weight": torch.ones(2), "max_hops": 3}, "give only one of them"),
    ],
)
def test_bad_input(change, message):
    good = {
        "edge_index": torch.tensor([[0, 1], [1, 2]]),
        "y": torch.zeros(10, dtype=torch.long),
        "train_mask": torch.ones(10, dtype=torch.bool),
        "num_classes": 2,
    }
    with pytest.raises(EvidentiaError, match=message):
        kernel_prior(**(good | change))
