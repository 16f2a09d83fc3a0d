"""Counting training nodes by class and hop: a plain search with a queue is the oracle."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evidentia import EvidentiaError
from evidentia.graphs import hop_counts, hops, jagged
from evidentia.graphs.csr import neighbour_lists, ranges


@st.composite
def graphs(draw):
    """Edges of any density, with self loops and repeats, often disconnected; labels and training nodes."""
    num_nodes = draw(st.integers(1, 60))
    num_edges = draw(st.sampled_from([0, 1, num_nodes // 2, num_nodes, 3 * num_nodes, num_nodes**2 // 2]))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    edge_index = generator.integers(0, num_nodes, (2, num_edges))
    num_classes = draw(st.integers(1, 5))
    labels = draw(st.integers(1, num_nodes))
    mask = np.zeros(num_nodes, dtype=bool)
    mask[generator.choice(num_nodes, labels, replace=False)] = True
    y = generator.integers(0, num_classes, num_nodes)
    return torch.from_numpy(edge_index), torch.from_numpy(y), torch.from_numpy(mask), num_classes


def counts_by_queue(edge_index, y, train_mask, num_classes, max_hops, undirected):
    """The textbook search, one training node after the other."""
    neighbours = [set() for _ in y]
    for source, target in edge_index.T.tolist():
        neighbours[source].add(target)
        if undirected:
            neighbours[target].add(source)
    table = np.zeros((len(y), num_classes, max_hops + 1), dtype=np.int32)
    classes = y.tolist()
    for start in train_mask.nonzero().flatten().tolist():
        distance = {start: 0}
        queue = deque([start])
        while queue:
            node = queue.popleft()
            if distance[node] <= max_hops:
                table[node, classes[start], distance[node]] += 1
            for other in neighbours[node]:
                if other not in distance:
                    distance[other] = distance[node] + 1
                    queue.append(other)
    return torch.from_numpy(table)


def random_graph(num_nodes, num_edges, num_labels, num_classes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(num_nodes, (2, num_edges), generator=generator)
    y = torch.randint(num_classes, (num_nodes,), generator=generator)
    return edge_index, y, torch.randperm(num_nodes, generator=generator)[:num_labels]


@given(graphs(), st.integers(0, 8), st.booleans())
def test_counts_are_those_of_a_plain_search(graph, max_hops, undirected):
    found = hop_counts(*graph, max_hops, undirected=undirected)
    assert torch.equal(found, counts_by_queue(*graph, max_hops, undirected))


@given(graphs(), st.booleans(), st.sampled_from([0, 10**9]))
def test_pushing_and_pulling_agree(graph, undirected, push_cost):
    """The cost that decides between them is made so low, then so high, that only one is ever used."""
    expected = hop_counts(*graph, 6, undirected=undirected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hops, "_PUSH_COST", push_cost)
        assert torch.equal(hop_counts(*graph, 6, undirected=undirected), expected)


@given(graphs(), st.sampled_from([1, 2, 5]), st.sampled_from([1, 3]))
def test_diagonals_hubs_and_slabs_change_nothing(graph, shortest, slab):
    expected = counts_by_queue(*graph, 6, True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jagged, "_SHORTEST", shortest)
        patch.setattr(jagged, "_SLAB", slab)
        patch.setattr(hops, "_PUSH_COST", 10**9)  # pull always
        assert torch.equal(hop_counts(*graph, 6), expected)


@pytest.mark.parametrize("num_edges", [0, 300, 900, 4000])
@pytest.mark.parametrize("num_classes", [1, 3, 100])
def test_several_blocks_of_words(num_edges, num_classes):
    """700 sources need eleven words, and so two blocks; with one class several words are its own."""
    edge_index, y, train = random_graph(800, num_edges, 700, num_classes)
    mask = torch.zeros(800, dtype=torch.bool)
    mask[train] = True
    found = hop_counts(edge_index, y, train, num_classes, 4)
    assert torch.equal(found, counts_by_queue(edge_index, y, mask, num_classes, 4, True))
    assert torch.equal(found, hop_counts(edge_index, y, mask, num_classes, 4, memory_limit=1))


def test_hubs_on_a_long_chain():
    """Two stars at the ends of a chain: hubs with far more neighbours than there are diagonals."""
    leaves, chain = 2000, 30
    left = torch.stack([torch.zeros(leaves, dtype=torch.long), torch.arange(chain, chain + leaves)])
    right = torch.stack([torch.full((leaves,), chain - 1), torch.arange(chain + leaves, chain + 2 * leaves)])
    links = torch.stack([torch.arange(chain - 1), torch.arange(1, chain)])
    y = torch.zeros(chain + 2 * leaves, dtype=torch.long)
    train = torch.arange(chain, chain + leaves)[:100]
    found = hop_counts(torch.cat([left, right, links], dim=1), y, train, 1, chain + 1)[:, 0]
    assert (found[:chain].argmax(1) == torch.arange(1, chain + 1)).all()
    assert (found[:chain].sum(1) == 100).all()
    assert found[chain, :3].tolist() == [1, 0, 99]
    assert found[-1].tolist() == [0] * (chain + 1) + [100]


def test_table_of_bytes_counts_bits():
    words = torch.randint(-(2**63), 2**63 - 1, (1000,)).numpy().view(np.uint64)
    words[:2] = 0, 2**64 - 1
    expected = [int(word).bit_count() for word in words]
    assert hops._popcount_by_bytes(words).tolist() == expected
    assert hops.popcount(words).tolist() == expected
    assert hops._popcount_by_bytes(np.stack([words, words], axis=1)[:, 1]).tolist() == expected
    assert hops._popcount_by_bytes(words[:0]).tolist() == []


def test_groups_of_hubs_keep_the_bound():
    starts = np.array([0, 5, 9, 10, 20, 21])
    bounds = jagged._groups(starts, 10)
    assert bounds == [0, 3, 4, 5]
    assert jagged._groups(np.array([0]), 10) == []


@given(graphs())
def test_neighbours_are_sets_in_order(graph):
    edge_index, y, _, _ = graph
    source, target = edge_index.numpy()
    lists = neighbour_lists(source, target, len(y), both_ways=False)
    for node in range(len(y)):
        expected = sorted(set(target[source == node].tolist()) - {node})
        assert lists.neighbours[lists.starts[node] : lists.starts[node + 1]].tolist() == expected
    everything, lengths = lists.of(np.arange(len(y))[::-1])
    assert lengths.tolist() == lists.degrees[::-1].tolist()
    assert sorted(everything.tolist()) == sorted(lists.neighbours.tolist())


def test_ranges_of_nothing():
    assert ranges(np.array([], dtype=np.int64), np.array([], dtype=np.int64)).size == 0
    assert ranges(np.array([3, 7, 9]), np.array([0, 2, 0])).tolist() == [7, 8]


@pytest.mark.parametrize("max_hops", [-1, 1.5, True, "6", None])
def test_wrong_hops(max_hops):
    with pytest.raises(EvidentiaError, match="max_hops must be a whole number of at least 0"):
        hop_counts(*random_graph(10, 10, 3, 2), 2, max_hops)
