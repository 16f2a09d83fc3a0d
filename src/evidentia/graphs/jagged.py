"""Neighbour lists as jagged diagonals: the first neighbour of every node, then the second of those that have two, ...

With the nodes ordered by falling degree, the k-th neighbours are one array, shorter with every k. A sum, or here a
bitwise or, over the neighbours of all nodes is then a few long vector operations, where compressed rows need a short
loop a node. Nodes are named by their *rank* in that order; hubs come first, which also keeps them in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from evidentia.graphs._inputs import IntArray
from evidentia.graphs.csr import NeighbourLists, ranges

# A diagonal shorter than this costs more in calls than in work. The few nodes that reach further keep the rest of
# their neighbours in compressed rows.
_SHORTEST = 256

# Rows worked on at a time, so that what is being changed stays in the cache of a core.
_SLAB = 1 << 14


@dataclass(frozen=True)
class JaggedDiagonals:
    """Neighbours by rank: `diagonals[k][r]` is neighbour k of rank r; `rest` holds what the hubs have beyond those."""

    order: IntArray
    rank: npt.NDArray[np.int32]
    diagonals: list[npt.NDArray[np.int32]]
    rest: npt.NDArray[np.int32]
    rest_starts: IntArray
    groups: list[int]

    @classmethod
    def of(cls, lists: NeighbourLists) -> JaggedDiagonals:
        """Rearrange compressed rows."""
        degrees, size = lists.degrees, lists.num_nodes
        order = np.argsort(-degrees, kind="stable")
        rank = np.empty(size, dtype=np.int32)
        rank[order] = np.arange(size, dtype=np.int32)
        neighbours = rank[lists.neighbours]
        starts, degrees = lists.starts[order], degrees[order]

        # With degrees falling, the nodes with more than k neighbours are the first few.
        longest = int(degrees[_SHORTEST - 1]) if size >= _SHORTEST else 0
        lengths = size - np.searchsorted(degrees[::-1], np.arange(longest), side="right")
        diagonals = [neighbours[starts[:length] + k] for k, length in enumerate(lengths)]

        hubs = int(np.count_nonzero(degrees > longest))
        left = degrees[:hubs] - longest
        rest = neighbours[ranges(starts[:hubs] + longest, left)]
        rest_starts = np.concatenate([[0], np.cumsum(left)])
        return cls(order, rank, diagonals, rest, rest_starts, _groups(rest_starts, size))

    def or_neighbours(self, words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """The bitwise or of every row of `words` with the rows of its neighbours, rows being in order of rank."""
        result: npt.NDArray[np.uint64] = words.copy()
        for start in range(0, len(words), _SLAB):
            slab = result[start : start + _SLAB]
            for diagonal in self.diagonals:
                part = diagonal[start : start + _SLAB]
                if part.size == 0:
                    break
                # Ranks are in range by construction, and "clip" spares the check of each.
                slab[: part.size] |= words.take(part, axis=0, mode="clip")
        for first, last in pairwise(self.groups):
            starts = self.rest_starts[first : last + 1]
            gathered = words.take(self.rest[starts[0] : starts[-1]], axis=0, mode="clip")
            result[first:last] |= np.bitwise_or.reduceat(gathered, starts[:-1] - starts[0], axis=0)
        return result


def _groups(starts: IntArray, most: int) -> list[int]:
    """Bounds of runs of hubs with no more than `most` neighbours together, which bounds the memory of gathering them.

    No hub has more than `most` alone: neighbours are distinct nodes.
    """
    bounds = [0]
    for hub in range(1, starts.size - 1):
        if starts[hub + 1] - starts[bounds[-1]] > most:
            bounds.append(hub)
    return [*bounds, starts.size - 1] if starts.size > 1 else []
