r"""The prior of a node's Dirichlet from the training nodes around it: graph-based kernel Dirichlet estimation (GKDE).

Every training node is evidence for its class, worth less the farther away it is (thesis section 2.5, GKDE):

$$ \hat e_{jk} = \sum_{i \in \mathbb{L},\, y_i = k} g(d_{ij}), \qquad
   g(d) = \exp\Big(-\frac{d^2}{2 \sigma^2}\Big), \qquad \hat\alpha = \hat e + 1, $$

with d the length of the shortest path and g = 0 where there is none. The thesis' text has a factor
$1 / (\sigma \sqrt{2 \pi})$ in g, which its published priors lack: `normalised=True` brings it in.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import real_number, whole_number
from evidentia.graphs._inputs import FloatArray, IntArray, Labels, read_edges, read_labels, read_weights
from evidentia.graphs.hops import MEMORY_LIMIT, HopSearch

# A training node worth less than this is too far away to look for.
NEGLIGIBLE = 1e-7


def kernel_prior(
    edge_index: Tensor,
    y: Tensor,
    train_mask: Tensor,
    num_classes: int,
    sigma: float = 1.0,
    *,
    max_hops: int | None = None,
    normalised: bool = False,
    edge_weight: Tensor | None = None,
    undirected: bool = True,
    memory_limit: int = MEMORY_LIMIT,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    r"""Prior Dirichlet parameters $\hat\alpha$ of every node, from the training nodes near it (thesis, GKDE).

    Exact up to the hop limit, in time that grows with edges x hops x training nodes / 64. Sums are in float64.

    Args:
        edge_index: `(2, E)` integers, sources above targets. Self loops and repeated edges change nothing.
        y: `(N,)` integers, the class of every node. Only those of training nodes are looked at.
        train_mask: `(N,)` bools, or the numbers of the training nodes.
        num_classes: number K of classes; one without training nodes gets no evidence anywhere.
        sigma: bandwidth of the kernel, in hops.
        max_hops: the last hop that counts. If not given, the first at which g < 1e-7, that is
            $\lceil \sigma \sqrt{2 \ln 10^7} \rceil$: 6 hops for sigma = 1, with g = 2e-11 for the first left out.
        normalised: multiply g by $1 / (\sigma \sqrt{2 \pi})$, as in the thesis' text.
        edge_weight: `(E,)` lengths of the edges, at least 0, in the unit of sigma: distances are then lengths of paths,
            found by Dijkstra's algorithm up to the same limit (one search a training node: much slower). Of
            parallel edges the shortest counts.
        undirected: walk edges both ways; else from training nodes along the direction of the edges.
        memory_limit: bytes the search may use for its state, beside graph and result. Less makes it slower, and
            there is always room for one word a node.
        dtype: of the result.

    Returns:
        `(N, K)` parameters, at least 1, on the device of `y`.

    Example:
        >>> import torch
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> y, train = torch.tensor([0, 0, 1, 1]), torch.tensor([True, False, False, True])
        >>> kernel_prior(path, y, train, num_classes=2)
        tensor([[2.0000, 1.0111],
                [1.6065, 1.1353],
                [1.1353, 1.6065],
                [1.0111, 2.0000]])
    """
    sigma = _read_sigma(sigma)
    memory_limit = whole_number(memory_limit, "memory_limit", least=1)
    if not dtype.is_floating_point:
        raise EvidentiaError(f"dtype must be a floating one, got {dtype}")
    labels = read_labels(y, train_mask, num_classes)
    num_nodes = len(y)
    source, target = read_edges(edge_index, num_nodes)
    if edge_weight is None:
        limit = reach(sigma) if max_hops is None else whole_number(max_hops, "max_hops", least=0)
        search = HopSearch(source, target, num_nodes, undirected=undirected, memory_limit=memory_limit)
        evidence = _evidence_by_hops(search, labels, num_classes, sigma, limit)
    else:
        if max_hops is not None:
            raise EvidentiaError("max_hops counts edges while edge_weight asks for lengths: give only one of them")
        graph = _shortest_edges(source, target, read_weights(edge_weight, source.size), num_nodes, undirected)
        evidence = _evidence_by_length(graph, labels, num_classes, sigma, memory_limit)
    if normalised:
        evidence /= sigma * math.sqrt(2 * math.pi)
    evidence += 1
    return torch.from_numpy(evidence).T.to(torch.as_tensor(y).device, dtype).contiguous()


def gaussian_kernel(distance: npt.NDArray[Any], sigma: float) -> FloatArray:
    r"""What a training node at a distance is worth: $\exp(-d^2 / (2 \sigma^2))$."""
    # Dividing first keeps tiny sigmas from 0 / 0; what overflows there, or underflows, is worth nothing.
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.exp(-0.5 * np.square(distance.astype(np.float64) / sigma)))


def reach(sigma: float) -> int:
    r"""The last distance that counts, the first whole one with g < 1e-7: $\lceil \sigma \sqrt{2 \ln 10^7} \rceil$.

    Example:
        >>> reach(1.0), reach(0.5), reach(3.0)
        (6, 3, 18)
    """
    return math.ceil(sigma * math.sqrt(-2 * math.log(NEGLIGIBLE)))


def _evidence_by_hops(search: HopSearch, labels: Labels, num_classes: int, sigma: float, max_hops: int) -> FloatArray:
    evidence = np.zeros((num_classes, search.rank.size))
    max_hops = min(max_hops, search.rank.size - 1)  # no shortest path is longer
    worth = gaussian_kernel(np.arange(max_hops + 1), sigma)
    for hop, label, nodes, found in search.counts(labels, max_hops):
        evidence[label, nodes] += np.multiply(found, worth[hop], dtype=np.float64)
    return evidence[:, search.rank]


def _evidence_by_length(
    graph: csr_array[np.float64], labels: Labels, num_classes: int, sigma: float, memory_limit: int
) -> FloatArray:
    num_nodes = graph.shape[0]
    evidence = np.zeros((num_classes, num_nodes))
    # Distances and their kernel, a float64 each.
    block = max(1, memory_limit // (2 * 8 * num_nodes))
    for start in range(0, labels.nodes.size, block):
        nodes, classes = labels.nodes[start : start + block], labels.classes[start : start + block]
        distance = dijkstra(graph, indices=nodes, limit=reach(sigma))
        np.add.at(evidence, classes, gaussian_kernel(distance, sigma))
    return evidence


def _shortest_edges(
    source: IntArray, target: IntArray, weight: FloatArray, num_nodes: int, undirected: bool
) -> csr_array[np.float64]:
    """The graph as SciPy wants it, with the shortest of parallel edges; SciPy itself would add their lengths."""
    if undirected:
        source, target = np.concatenate([source, target]), np.concatenate([target, source])
        weight = np.concatenate([weight, weight])
    order = np.lexsort((weight, target, source))
    source, target, weight = source[order], target[order], weight[order]
    first = (np.diff(source, prepend=-1) != 0) | (np.diff(target, prepend=-1) != 0)
    starts = np.concatenate([[0], np.cumsum(np.bincount(source[first], minlength=num_nodes))])
    return csr_array((weight[first], target[first], starts), shape=(num_nodes, num_nodes))


def _read_sigma(sigma: Any) -> float:
    return float(real_number(sigma, "sigma", 0, open_low=True))
