r"""Small subgraphs around a few nodes, for training on graphs too large to be passed through a network whole.

From every seed node some of its in-neighbours are drawn, from each of those some of theirs, and so on, one *fanout* a
layer of the network (GraphSAGE: Hamilton et al., 2017). The draw is uniform over subsets, without replacement: among d
neighbours, each of the $\binom{d}{f}$ sets of f is as likely as any other.

Where pyg-lib is installed, which is not to be had from PyPI, its compiled sampler draws; the draws of the two differ.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import whole_number
from evidentia.graphs._inputs import IntArray, read_edges, read_nodes
from evidentia.graphs.csr import neighbour_lists, ranges


@dataclass(frozen=True)
class SampledSubgraph:
    """Nodes around some seeds, renumbered 0, 1, ..., and edges between them; tensors on the CPU.

    Attributes:
        node_ids: `(n,)` numbers in the whole graph, each once; the seeds come first, in the order given.
        edge_index: `(2, m)` edges, each once, in the numbers of the subgraph: from a drawn neighbour to its node.
        num_seeds: how many of the nodes are seeds.
        num_nodes_by_hop: seeds, nodes that the first draw added, nodes that the second added, ...; adds up to n.
    """

    node_ids: Tensor
    edge_index: Tensor
    num_seeds: int
    num_nodes_by_hop: tuple[int, ...]

    @property
    def num_nodes(self) -> int:
        """Number of nodes, seeds included."""
        return len(self.node_ids)


class NeighbourSampler:
    """Draws the neighbourhoods of seed nodes, along edges against their direction: those whose messages reach the seed.

    A node's neighbours are drawn when it first turns up. Repeated edges count once, and self loops are left out, since
    networks that want them add their own. A draw depends on `seed`, `epoch`, `batch` and the seed nodes, and on
    no earlier call: batches may be drawn in any order, by any number of workers, or again after a restart.

    Args:
        edge_index: `(2, E)` integers, sources above targets.
        num_nodes: number N of nodes.
        fanouts: how many neighbours to draw at most, at the first hop, the second, ...; -1 for all of them.
        seed: of all random choices.

    Example:
        >>> import torch
        >>> star = torch.tensor([[1, 2, 3, 4, 5], [0, 0, 0, 0, 0]])
        >>> drawn = NeighbourSampler(star, num_nodes=6, fanouts=(2,), seed=0).sample(torch.tensor([0]))
        >>> drawn.num_nodes, drawn.num_nodes_by_hop, drawn.edge_index
        (3, (1, 2), tensor([[1, 2], [0, 0]]))
    """

    def __init__(self, edge_index: Tensor, num_nodes: int, fanouts: Sequence[int] = (10, 10), seed: int = 0) -> None:
        self.num_nodes = whole_number(num_nodes, "num_nodes", least=1)
        self.fanouts = _read_fanouts(fanouts)
        self.seed = whole_number(seed, "seed", least=0)
        source, target = read_edges(edge_index, self.num_nodes)
        self._lists = neighbour_lists(target, source, self.num_nodes, both_ways=False)
        self._compiled = _compiled_sampler()

    def sample(self, seed_nodes: Tensor, *, epoch: int = 0, batch: int = 0) -> SampledSubgraph:
        """Draw around `seed_nodes`, a flat tensor of distinct node numbers."""
        nodes = read_nodes(seed_nodes, "seed_nodes", self.num_nodes)
        generator = self._generator(epoch, 1 + whole_number(batch, "batch", least=0))
        if self._compiled is not None:
            return self._sample_compiled(self._compiled, nodes, generator)
        by_hop = [nodes.size]
        # Where a node stands in the subgraph. Only the entries of nodes just written are ever read, so that nothing
        # needs to be set up in advance, which would take longer than a draw.
        place = np.empty(self.num_nodes, dtype=np.int64)
        sources, targets = [], []
        for fanout in self.fanouts:
            first_new = nodes.size - by_hop[-1]
            drawn, counts = self._draw(nodes[first_new:], fanout, generator)
            nodes, local = _append_new(nodes, drawn, place)
            sources.append(local)
            targets.append(np.repeat(np.arange(first_new, first_new + counts.size), counts))
            by_hop.append(nodes.size - first_new - counts.size)
        edges = np.stack([np.concatenate([*ends, np.empty(0, np.int64)]) for ends in (sources, targets)])
        return SampledSubgraph(torch.from_numpy(nodes), torch.from_numpy(edges), by_hop[0], tuple(by_hop))

    @cached_property
    def _arrays(self) -> tuple[Tensor, Tensor]:
        """Where each node's in-neighbours begin, and these, as pyg-lib wants them."""
        starts, neighbours = (
            torch.from_numpy(array.astype(np.int64)) for array in (self._lists.starts, self._lists.neighbours)
        )
        return starts, neighbours

    def _sample_compiled(
        self, compiled: Callable[..., Any], nodes: IntArray, generator: np.random.Generator
    ) -> SampledSubgraph:
        with torch.random.fork_rng(devices=[]):
            # pyg-lib draws by the global generator of the CPU.
            torch.default_generator.manual_seed(int(generator.integers(2**63)))
            found = compiled(*self._arrays, torch.from_numpy(nodes), list(self.fanouts), csc=True, return_edge_id=False)
        sources, targets, node_ids, _, by_hop, _ = found
        return SampledSubgraph(node_ids, torch.stack([sources, targets]), nodes.size, tuple(by_hop))

    def batches(
        self, nodes: Tensor, batch_size: int, *, epoch: int = 0, shuffle: bool = True
    ) -> Iterator[SampledSubgraph]:
        """Draw around all `nodes`, `batch_size` of them at a time, in an order that `seed` and `epoch` set.

        Example:
            >>> import torch
            >>> ring = torch.stack([torch.arange(10), torch.arange(1, 11) % 10])
            >>> sampler = NeighbourSampler(ring, num_nodes=10, fanouts=(1, 1))
            >>> [part.num_seeds for part in sampler.batches(torch.arange(10), batch_size=4)]
            [4, 4, 2]
        """
        batch_size = whole_number(batch_size, "batch_size", least=1)
        given = read_nodes(nodes, "nodes", self.num_nodes)
        order = self._generator(epoch, 0).permutation(given) if shuffle else given
        starts = range(0, order.size, batch_size)
        # Not a generator function: wrong arguments are to be told at the call.
        return (
            self.sample(torch.from_numpy(order[start : start + batch_size]), epoch=epoch, batch=index)
            for index, start in enumerate(starts)
        )

    def _generator(self, epoch: int, stream: int) -> np.random.Generator:
        """Randomness of its own for everything: stream 0 shuffles an epoch, stream i + 1 draws its batch i."""
        key = (whole_number(epoch, "epoch", least=0), stream)
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))

    def _draw(self, nodes: IntArray, fanout: int, generator: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Some neighbours of each node, one node after the other, and how many of each."""
        first = self._lists.starts[nodes]
        degrees = self._lists.starts[nodes + 1] - first
        counts = degrees if fanout < 0 else np.minimum(degrees, fanout)
        positions = ranges(first, counts)
        crowded = np.flatnonzero(degrees > counts)
        if crowded.size:
            chosen = distinct_below(degrees[crowded], fanout, generator)
            ends = np.cumsum(counts)[crowded]
            positions[ends[:, None] - np.arange(fanout, 0, -1)] = first[crowded, None] + chosen
        return self._lists.neighbours[positions].astype(np.int64), counts


def _compiled_sampler() -> Callable[..., Any] | None:
    try:
        from pyg_lib.sampler import neighbor_sample
    except (ImportError, OSError):  # a build for another version of torch is an OSError
        return None
    sampler: Callable[..., Any] = neighbor_sample
    return sampler


def distinct_below(sizes: IntArray, count: int, generator: np.random.Generator) -> IntArray:
    """For every size, `count` distinct numbers in 0..size-1, each set as likely as any other; sizes exceed `count`.

    Floyd's algorithm, for all sizes at once: for j = size - count, ..., size - 1 draw t in 0..j, and take j if t has
    been taken before. Its work does not depend on the sizes, so that hubs cost no more than others.
    """
    chosen = np.empty((count, sizes.size), dtype=np.int64)
    for step in range(count):
        last = sizes - count + step
        drawn = generator.integers(0, last, endpoint=True)
        taken = (chosen[:step] == drawn).any(axis=0)
        chosen[step] = np.where(taken, last, drawn)
    transposed: IntArray = chosen.T
    return transposed


def _append_new(nodes: IntArray, drawn: IntArray, place: IntArray) -> tuple[IntArray, IntArray]:
    """`nodes` with those of `drawn` that are not among them, and the places of all drawn in the result."""
    both = np.concatenate([nodes, drawn])
    # Of entries written to one place the last stays; backwards, that is the first to occur.
    place[both[::-1]] = np.arange(both.size - 1, -1, -1)
    first = place[both]
    is_new = first == np.arange(both.size)
    number = np.cumsum(is_new) - 1
    return both[is_new], number[first[nodes.size :]]


def _read_fanouts(fanouts: Sequence[Any]) -> tuple[int, ...]:
    right = [isinstance(fanout, numbers.Integral) and (int(fanout) > 0 or fanout == -1) for fanout in fanouts]
    if not right or not all(right):
        raise EvidentiaError(
            f"fanouts must hold a whole number of at least 1, or -1 for all neighbours, for each hop; got {fanouts!r}"
        )
    return tuple(int(fanout) for fanout in fanouts)
