r"""How many training nodes of each class lie how many hops from every node, by bit-parallel breadth-first search.

A node holds one bit for each source that has reached it, 64 sources a machine word. One hop of all searches at once is

$$ B_{h+1}(v) = B_h(v) \;|\; \bigvee_{u \to v} B_h(u), \qquad
   F_{h+1}(v) = B_{h+1}(v) \oplus B_h(v), $$

where the ball B has the sources within h hops and the front F those at exactly h + 1. Counting the bits of F under
the mask of a class gives the numbers wanted. The work is O(hops x edges x sources / 64), in two ways that agree: while
the front is small its edges are *pushed*, and else all nodes *pull* from their neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, reduce
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from evidentia._support.scalars import whole_number
from evidentia.graphs._inputs import IntArray, Labels, read_edges, read_labels
from evidentia.graphs.csr import NeighbourLists, neighbour_lists
from evidentia.graphs.jagged import JaggedDiagonals

Words: TypeAlias = "npt.NDArray[np.uint64]"

# Bytes that a search may hold: 1M nodes then have room for 512 sources at a time.
MEMORY_LIMIT = 1 << 28

_BITS = 64
# Beyond one cache line a row, more words at a time save nothing.
_MOST_WORDS = 8
# Balls, grown balls, front, and what is gathered from neighbours.
_ARRAYS = 4
# Pushing an edge costs about as much as pulling this many.
_PUSH_COST = 8


class HopCount(NamedTuple):
    """`found[i]` sources of class `label` (more may come from other words) lie `hop` hops from node `nodes[i]`."""

    hop: int
    label: int
    nodes: IntArray | slice
    found: npt.NDArray[np.uint8]


class _Front(NamedTuple):
    """The sources that have just arrived: one row of bits for each node of `nodes`."""

    nodes: IntArray | slice
    words: Words


class HopSearch:
    """Searches over one graph. Nodes are named by rank (`rank[node]`), as `JaggedDiagonals` orders them.

    Args:
        source: for every edge, the node that it leaves.
        target: the node that it enters.
        num_nodes: number of nodes.
        undirected: walk edges both ways; else from source to target only.
        memory_limit: bytes to be held by a search at a time, with at least 64 sources.
    """

    def __init__(
        self, source: IntArray, target: IntArray, num_nodes: int, *, undirected: bool, memory_limit: int
    ) -> None:
        self._into = neighbour_lists(target, source, num_nodes, both_ways=undirected)
        self._edges = (source, target, undirected)
        self._jagged = JaggedDiagonals.of(self._into)
        self._block = _BITS * max(1, min(_MOST_WORDS, memory_limit // (_ARRAYS * 8 * max(num_nodes, 1))))
        self.rank = self._jagged.rank

    @cached_property
    def _out_of(self) -> NeighbourLists:
        source, target, undirected = self._edges
        return self._into if undirected else neighbour_lists(source, target, self.rank.size, both_ways=False)

    def counts(self, labels: Labels, max_hops: int) -> Iterator[HopCount]:
        """Counts for hop 0, 1, ... up to `max_hops`, for a block of sources after the other; zeros may be left out."""
        for start in range(0, labels.nodes.size, self._block):
            stop = start + self._block
            yield from self._search(Labels(labels.nodes[start:stop], labels.classes[start:stop]), max_hops)

    def _search(self, labels: Labels, max_hops: int) -> Iterator[HopCount]:
        masks = _class_masks(labels.classes)
        front = self._sources(labels.nodes)
        ball = np.zeros((self.rank.size, front.words.shape[1]), dtype=np.uint64)
        ball[front.nodes] = front.words
        for hop in range(max_hops + 1):
            for word, mask, label in masks:
                yield HopCount(hop, label, front.nodes, popcount(front.words[:, word] & mask))
            if hop < max_hops:
                front, ball = self._push(front, ball) if self._is_small(front) else self._pull(ball)
            if front.words.size == 0:
                return

    def _sources(self, nodes: IntArray) -> _Front:
        """The front at hop 0: source i is bit i % 64 of word i // 64."""
        bit = np.arange(nodes.size)
        words = np.zeros((nodes.size, -(-nodes.size // _BITS)), dtype=np.uint64)
        words[bit, bit // _BITS] = np.uint64(1) << (bit % _BITS).astype(np.uint64)
        return _Front(self.rank[nodes].astype(np.int64), words)

    def _is_small(self, front: _Front) -> bool:
        if isinstance(front.nodes, slice):
            return False
        nodes = self._jagged.order[front.nodes]
        edges = int((self._out_of.starts[nodes + 1] - self._out_of.starts[nodes]).sum())
        return edges * _PUSH_COST < self._into.num_edges

    def _push(self, front: _Front, ball: Words) -> tuple[_Front, Words]:
        """Send the front along its edges and join what arrives at one node."""
        neighbours, lengths = self._out_of.of(self._jagged.order[front.nodes])
        target = self.rank[neighbours]
        arrival = np.argsort(target, kind="stable")
        target = target[arrival]
        first = np.flatnonzero(np.diff(target, prepend=-1))
        sent = front.words[np.repeat(np.arange(lengths.size), lengths)[arrival]]
        nodes = target[first].astype(np.int64)
        words = np.bitwise_or.reduceat(sent, first, axis=0) if first.size else sent
        words &= ~ball[nodes]
        new = _any_bit(words)
        nodes, words = nodes[new], words[new]
        ball[nodes] |= words
        return _Front(nodes, words), ball

    def _pull(self, ball: Words) -> tuple[_Front, Words]:
        """Let every node take the balls of its neighbours."""
        grown = self._jagged.or_neighbours(ball)
        words = np.bitwise_xor(grown, ball, out=ball)
        new = _any_bit(words)
        if np.count_nonzero(new) * _PUSH_COST < new.size:
            nodes = np.flatnonzero(new)
            return _Front(nodes, words[nodes]), grown
        return _Front(slice(None), words), grown


def hop_counts(
    edge_index: Tensor,
    y: Tensor,
    train_mask: Tensor,
    num_classes: int,
    max_hops: int = 6,
    *,
    undirected: bool = True,
    memory_limit: int = MEMORY_LIMIT,
) -> Tensor:
    """How many training nodes of each class lie exactly 0, 1, ..., `max_hops` hops from every node.

    Any prior that depends on hops and classes alone is a weighted sum of these: `kernel_prior` for several sigmas, say,
    is `1 + hop_counts(...) @ torch.exp(-hops**2 / (2 * sigma**2))` for each.

    Args:
        edge_index: `(2, E)` integers, sources above targets. Self loops and repeated edges change nothing.
        y: `(N,)` integers, the class of every node. Only those of training nodes are looked at.
        train_mask: `(N,)` bools, or the numbers of the training nodes.
        num_classes: number K of classes; one without training nodes has zeros throughout.
        max_hops: the last hop counted.
        undirected: walk edges both ways; else from training nodes along the direction of the edges.
        memory_limit: bytes the search may use for its state, beside graph and result.

    Returns:
        `(N, K, max_hops + 1)` counts, int32, on the device of `y`.

    Example:
        >>> import torch
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> y, train = torch.tensor([0, 1, 1, 0]), torch.tensor([True, True, False, False])
        >>> hop_counts(path, y, train, num_classes=2, max_hops=2)[2]  # node 0 is two hops away, node 1 is one
        tensor([[0, 0, 1],
                [0, 1, 0]], dtype=torch.int32)
    """
    labels = read_labels(y, train_mask, num_classes)
    max_hops = whole_number(max_hops, "max_hops", least=0)
    memory_limit = whole_number(memory_limit, "memory_limit", least=1)
    source, target = read_edges(edge_index, len(y))
    search = HopSearch(source, target, len(y), undirected=undirected, memory_limit=memory_limit)
    table = np.zeros((max_hops + 1, num_classes, len(y)), dtype=np.int32)
    for hop, label, nodes, found in search.counts(labels, max_hops):
        table[hop, label, nodes] += found
    return torch.from_numpy(table[:, :, search.rank].transpose(2, 1, 0).copy()).to(torch.as_tensor(y).device)


def _class_masks(classes: IntArray) -> list[tuple[int, np.uint64, int]]:
    """Word, mask and class for every run of equal classes within a word; `classes` are sorted, one a source."""
    word = np.arange(classes.size) // _BITS
    starts = np.flatnonzero((np.diff(word, prepend=-1) != 0) | (np.diff(classes, prepend=-1) != 0)).tolist()
    masks = []
    for start, stop in zip(starts, [*starts[1:], classes.size], strict=True):
        bits = ((1 << (stop - start)) - 1) << (start % _BITS)
        masks.append((start // _BITS, np.uint64(bits), int(classes[start])))
    return masks


def _any_bit(words: Words) -> npt.NDArray[np.bool_]:
    """Which rows hold any bit."""
    # NumPy's own reductions along a short last axis are several times slower.
    return np.asarray(reduce(np.bitwise_or, words.T) != 0)


def _popcount_by_bytes(words: Words) -> npt.NDArray[np.uint8]:
    """Number of bits set in each word, from a table of the 256 bytes."""
    table = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)
    of_bytes: npt.NDArray[np.uint8] = table[np.ascontiguousarray(words)[:, None].view(np.uint8)]
    return np.asarray(of_bytes.sum(axis=1, dtype=np.uint8))


# NumPy before 2.0 has no instruction for it.
popcount: Callable[[Words], npt.NDArray[np.uint8]] = getattr(np, "bitwise_count", _popcount_by_bytes)
