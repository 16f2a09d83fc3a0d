"""The neighbour sampler: what it draws exists, is bounded, unbiased, and repeats."""

from __future__ import annotations

import importlib.util
import itertools
import sys
import types
from collections import Counter
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from evidentia import EvidentiaError
from evidentia.graphs import NeighbourSampler
from evidentia.graphs.sampling import distinct_below


@st.composite
def problems(draw):
    """A random directed graph with loops and repeats, fanouts for up to three hops, and some seed nodes."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    num_nodes = draw(st.integers(1, 50))
    num_edges = draw(st.sampled_from([0, num_nodes, 5 * num_nodes, num_nodes**2]))
    edge_index = torch.from_numpy(generator.integers(0, num_nodes, (2, num_edges)))
    fanouts = draw(st.lists(st.sampled_from([1, 2, 5, 100, -1]), min_size=1, max_size=3))
    seeds = torch.from_numpy(generator.permutation(num_nodes)[: draw(st.integers(1, num_nodes))])
    return edge_index, num_nodes, fanouts, seeds


def in_neighbours(edge_index, num_nodes):
    found = [set() for _ in range(num_nodes)]
    for source, target in edge_index.T.tolist():
        if source != target:
            found[target].add(source)
    return found


def ring(num_nodes, width=6):
    """Node i hears from its `width` predecessors."""
    target = torch.arange(num_nodes).repeat_interleave(width)
    return torch.stack([(target - torch.arange(1, width + 1).repeat(num_nodes)) % num_nodes, target])


def edges_of(part):
    """The edges in the numbers of the whole graph."""
    return part.node_ids[part.edge_index]


def neighbor_sample(starts, neighbours, seeds, fanouts, csc=False, return_edge_id=True):
    """What pyg-lib's sampler of this name promises, one node after the other."""
    assert csc
    assert not return_edge_id
    nodes, sources, targets, by_hop, first = seeds.tolist(), [], [], [len(seeds)], 0
    for fanout in fanouts:
        last = len(nodes)
        for place in range(first, last):
            known = neighbours[starts[nodes[place]] : starts[nodes[place] + 1]]
            for node in known[torch.randperm(len(known))][: fanout if fanout >= 0 else None].tolist():
                if node not in nodes:
                    nodes.append(node)
                sources.append(nodes.index(node))
                targets.append(place)
        first = last
        by_hop.append(len(nodes) - last)
    return torch.tensor(sources).long(), torch.tensor(targets).long(), torch.tensor(nodes), None, by_hop, []


@pytest.fixture(params=[False, True], ids=["ours", "pyg-lib"], scope="module")
def sampler_of(request):
    """Makes samplers, with pyg-lib or without it; where it is not installed, what stands in for it."""
    library = types.ModuleType("pyg_lib.sampler")
    library.neighbor_sample = neighbor_sample
    found = {"pyg_lib": types.ModuleType("pyg_lib"), "pyg_lib.sampler": library}
    if request.param and importlib.util.find_spec("pyg_lib"):
        found = {}
    with mock.patch.dict(sys.modules, found if request.param else {"pyg_lib.sampler": None}):
        assert (NeighbourSampler(ring(8), 8)._compiled is not None) == request.param
        yield NeighbourSampler


@given(problem=problems())
def test_what_is_drawn(sampler_of, problem):
    """Nodes once, seeds first; edges once, all of the graph; as many neighbours as the fanout or the degree allows."""
    edge_index, num_nodes, fanouts, seeds = problem
    part = sampler_of(edge_index, num_nodes, fanouts).sample(seeds)
    neighbours = in_neighbours(edge_index, num_nodes)
    assert torch.equal(part.node_ids[: part.num_seeds], seeds)
    assert part.num_seeds == len(seeds) == part.num_nodes_by_hop[0]
    assert len(part.node_ids.unique()) == part.num_nodes == sum(part.num_nodes_by_hop)
    assert len(part.num_nodes_by_hop) == len(fanouts) + 1

    edges = edges_of(part).T.tolist()
    assert len({tuple(edge) for edge in edges}) == len(edges)
    assert all(source in neighbours[target] for source, target in edges)

    drawn = Counter(target for _, target in edges)
    hop_of = np.repeat(np.arange(len(fanouts) + 1), part.num_nodes_by_hop)
    for node, hop in zip(part.node_ids.tolist(), hop_of, strict=True):
        fanout = fanouts[hop] if hop < len(fanouts) else 0
        degree = len(neighbours[node])
        assert drawn[node] == (degree if fanout < 0 else min(degree, fanout))

    # A node beyond the seeds is there because a node of the hop before has drawn it.
    for place in range(part.num_seeds, part.num_nodes):
        users = part.edge_index[1, part.edge_index[0] == place]
        assert hop_of[users.numpy()].min() == hop_of[place] - 1


def test_all_neighbours_when_there_are_few():
    edge_index = ring(20, width=4)
    for fanout in (4, 5, -1):
        part = NeighbourSampler(edge_index, 20, (fanout,)).sample(torch.arange(20))
        drawn, whole = ({tuple(edge) for edge in edges.T.tolist()} for edges in (edges_of(part), edge_index))
        assert drawn == whole


@pytest.mark.parametrize(("size", "count"), [(5, 1), (5, 3), (6, 5), (7, 2)])
def test_every_set_is_as_likely(size, count):
    chosen = distinct_below(np.full(40_000, size), count, np.random.default_rng(0))
    sets = Counter(map(tuple, np.sort(chosen, axis=1).tolist()))
    assert set(sets) == set(itertools.combinations(range(size), count))
    assert chisquare(list(sets.values())).pvalue > 0.001


def test_neighbours_are_drawn_evenly_and_apart():
    """Over many batches every neighbour of a hub turns up as often; and two nodes' draws do not go together."""
    width, batches = 8, 4000
    sampler = NeighbourSampler(ring(30, width), 30, (2,), seed=3)
    found = np.zeros((2, batches, width))
    for batch in range(batches):
        for source, target in edges_of(sampler.sample(torch.tensor([10, 20]), batch=batch)).T.tolist():
            found[target // 10 - 1, batch, target - source - 1] = 1
    for counts in found.sum(axis=1):
        assert chisquare(counts).pvalue > 0.001
    together = np.corrcoef(found[0].ravel(), found[1].ravel())[0, 1]
    assert abs(together) < 4 / np.sqrt(batches * width)


def test_draws_depend_on_seed_epoch_and_batch_alone(sampler_of):
    edge_index, seeds = ring(1000), torch.arange(0, 1000, 7)

    def draw(seed=0, **which):
        sampler = sampler_of(edge_index, 1000, (2, 3), seed)
        sampler.sample(seeds, epoch=9)  # earlier calls leave no trace
        return edges_of(sampler.sample(seeds, **which))

    assert torch.equal(draw(), draw())
    assert torch.equal(draw(5, epoch=2, batch=3), draw(5, epoch=2, batch=3))
    different = [draw(), draw(1), draw(epoch=1), draw(batch=1)]
    for one, other in itertools.combinations(different, 2):
        assert not torch.equal(one, other)


def test_batches_cover_all_nodes_once():
    nodes = torch.arange(0, 100, 3)
    sampler = NeighbourSampler(ring(100), 100, (2, 2), seed=1)
    parts = list(sampler.batches(nodes, 10, epoch=4))
    assert [part.num_seeds for part in parts] == [10, 10, 10, 4]
    order = torch.cat([part.node_ids[: part.num_seeds] for part in parts])
    assert not torch.equal(order, nodes)
    assert torch.equal(order.sort().values, nodes)

    again = list(sampler.batches(nodes, 10, epoch=4))
    for one, other in zip(parts, again, strict=True):
        assert torch.equal(one.node_ids, other.node_ids)
        assert torch.equal(one.edge_index, other.edge_index)
    later = torch.cat([part.node_ids[: part.num_seeds] for part in sampler.batches(nodes, 10, epoch=5)])
    assert not torch.equal(order, later)


def test_a_batch_can_be_drawn_alone():
    sampler = NeighbourSampler(ring(100), 100, (2, 2))
    third = list(sampler.batches(torch.arange(100), 16, epoch=1))[2]
    alone = sampler.sample(third.node_ids[:16], epoch=1, batch=2)
    assert torch.equal(alone.edge_index, third.edge_index)


def test_unshuffled_batches_keep_the_order():
    sampler = NeighbourSampler(ring(20), 20, (2,))
    parts = sampler.batches(torch.arange(20).flip(0), 8, shuffle=False)
    order = torch.cat([part.node_ids[: part.num_seeds] for part in parts])
    assert order.tolist() == list(range(19, -1, -1))


def test_isolated_seeds_and_no_seeds():
    sampler = NeighbourSampler(torch.tensor([[0, 2], [1, 2]]), 4, (3, 3))
    part = sampler.sample(torch.tensor([3, 2, 0]))  # alone, with a loop only, and with an edge that leaves it
    assert part.node_ids.tolist() == [3, 2, 0]
    assert part.edge_index.shape == (2, 0)
    assert part.num_nodes_by_hop == (3, 0, 0)
    none = sampler.sample(torch.empty(0, dtype=torch.long))
    assert none.num_nodes == 0
    assert list(sampler.batches(torch.empty(0, dtype=torch.long), 5)) == []
    edgeless = NeighbourSampler(torch.empty(2, 0, dtype=torch.long), 3, (5,)).sample(torch.tensor([1]))
    assert edgeless.node_ids.tolist() == [1]


def test_a_subgraph_owns_its_memory():
    seeds = torch.tensor([0, 1])
    part = NeighbourSampler(torch.empty(2, 0, dtype=torch.long), 3, (5,)).sample(seeds)
    seeds[0] = 2
    assert part.node_ids.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_nodes": 0}, "num_nodes must be a whole number of at least 1"),
        ({"num_nodes": 5}, r"edge_index must hold node numbers in 0\.\.4"),
        ({"edge_index": torch.zeros(2, 3)}, "edge_index must hold integers"),
        ({"fanouts": ()}, r"fanouts must hold .* got \(\)"),
        ({"fanouts": (10, 0)}, r"fanouts must hold .* got \(10, 0\)"),
        ({"fanouts": (-2,)}, "fanouts must hold"),
        ({"fanouts": (1.5,)}, "fanouts must hold"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
    ],
)
def test_bad_samplers(change, message):
    with pytest.raises(EvidentiaError, match=message):
        NeighbourSampler(**({"edge_index": ring(10), "num_nodes": 10} | change))


@pytest.mark.parametrize(
    ("seeds", "which", "message"),
    [
        (torch.tensor([10]), {}, r"seed_nodes must hold node numbers in 0\.\.9, got values from 10 to 10"),
        (torch.tensor([-1]), {}, "seed_nodes must hold node numbers"),
        (torch.tensor([1, 2, 1]), {}, "seed_nodes must name every node at most once, got 1 repeated"),
        (torch.tensor([[1]]), {}, "seed_nodes must have one dimension"),
        (torch.tensor([1.0]), {}, "seed_nodes must hold integers"),
        (torch.tensor([1]), {"epoch": -1}, "epoch must be a whole number of at least 0"),
        (torch.tensor([1]), {"batch": -1}, "batch must be a whole number of at least 0"),
    ],
)
def test_bad_draws(seeds, which, message):
    with pytest.raises(EvidentiaError, match=message):
        NeighbourSampler(ring(10), 10).sample(seeds, **which)


def test_bad_batches_are_told_at_the_call():
    sampler = NeighbourSampler(ring(10), 10)
    with pytest.raises(EvidentiaError, match="batch_size must be a whole number of at least 1"):
        sampler.batches(torch.arange(10), 0)
    with pytest.raises(EvidentiaError, match="nodes must hold node numbers"):
        sampler.batches(torch.arange(11), 2)
