"""Neighbour lists in compressed rows: for every node, the nodes that its edges come from or go to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evidentia.graphs._inputs import IntArray


@dataclass(frozen=True)
class NeighbourLists:
    """The neighbours of node v are `neighbours[starts[v] : starts[v + 1]]`, ascending, each once, never v itself."""

    starts: IntArray
    neighbours: npt.NDArray[np.int32]

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.starts.size - 1

    @property
    def num_edges(self) -> int:
        """Number of neighbours over all nodes: an undirected edge counts twice."""
        return self.neighbours.size

    @property
    def degrees(self) -> IntArray:
        """Number of neighbours of every node."""
        return np.diff(self.starts)

    def of(self, nodes: IntArray) -> tuple[npt.NDArray[np.int32], IntArray]:
        """The neighbours of several nodes, one list after the other, and the length of each list."""
        first = self.starts[nodes]
        lengths = self.starts[nodes + 1] - first
        return self.neighbours[ranges(first, lengths)], lengths


def neighbour_lists(nodes: IntArray, neighbours: IntArray, num_nodes: int, *, both_ways: bool) -> NeighbourLists:
    """Lists that hold `neighbours[e]` for `nodes[e]`, and with `both_ways` the reverse too.

    Self loops and repeated edges are dropped: neither changes a shortest path, and neighbours are sets.
    """
    # One number a pair makes grouping, ordering and finding repeats a single sort of machine words.
    shift = np.int64(max(num_nodes - 1, 1).bit_length())
    pairs = (nodes << shift) | neighbours
    if both_ways:
        pairs = np.concatenate([pairs, (neighbours << shift) | nodes])
    pairs.sort()
    rows, columns = pairs >> shift, pairs & ((np.int64(1) << shift) - 1)
    kept = rows != columns
    kept[1:] &= pairs[1:] != pairs[:-1]
    rows, columns = rows[kept], columns[kept]
    starts = np.zeros(num_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=num_nodes), out=starts[1:])
    return NeighbourLists(starts, columns.astype(np.int32))


def ranges(first: IntArray, lengths: IntArray) -> IntArray:
    """The numbers first[i], first[i] + 1, ... for lengths[i] of them, for one i after the other.

    Example:
        >>> import numpy as np
        >>> ranges(np.array([10, 50]), np.array([3, 2]))
        array([10, 11, 12, 50, 51])
    """
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if ends.size else 0
    return np.arange(total) + np.repeat(first - ends + lengths, lengths)
