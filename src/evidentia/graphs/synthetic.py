"""A citation-like graph made on the spot: for the demo, for tests, and where no download is at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse

from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import real_number, whole_number
from evidentia.graphs.raw import Array, RawGraph, undirected
from evidentia.graphs.splits import draw_nodes

if TYPE_CHECKING:
    from torch_geometric.data import Data

# Exponent of the degrees' power law; that of citations is near 3.
_EXPONENT = 2.8


def citation_graph(
    nodes: int = 2000,
    classes: int = 5,
    features: int = 500,
    homophily: float = 0.8,
    seed: int = 0,
    *,
    degree: float = 4.0,
    words: float = 18.0,
    on_topic: float = 0.2,
    isolated: float = 0.01,
    per_class: int = 20,
    validation: int | None = None,
) -> Data:
    """Make a graph of papers that cite each other.

    Edges follow a stochastic block model whose degrees have a heavy tail: the share `homophily` of them joins papers
    of one class, and busy papers get more. A paper is a set of words, some from the topic of its class and the others
    from all. Classes are of equal size, to one node.

    Args:
        nodes: number of nodes.
        classes: number of classes.
        features: number of different words.
        homophily: share of edges within a class, in [0, 1].
        seed: fixes everything.
        degree: mean number of neighbours; less where a small graph has not enough pairs of nodes.
        words: mean number of words a paper draws; a word drawn twice counts once.
        on_topic: share of words from the topic of the class; the less, the harder.
        isolated: share of nodes that are kept without neighbours; a few more have none by chance.
        per_class: training nodes a class.
        validation: validation nodes; by default 500, or a third of what training leaves if that is less.

    Returns:
        A PyG `Data` like those of `load_graph`, with `train_mask`, `val_mask` and `test_mask` (all other nodes).

    Example:
        >>> citation_graph(nodes=500, classes=3, features=100)
        Data(x=[500, 100], edge_index=[2, 2000], y=[500], train_mask=[500], val_mask=[500], test_mask=[500],
             num_classes=3, name='citation-graph')
    """
    seed = whole_number(seed, "seed", 0)
    for name, count, least in (("nodes", nodes, 1), ("classes", classes, 2), ("features", features, 1)):
        whole_number(count, name, least)
    for name, share in {"homophily": homophily, "on_topic": on_topic, "isolated": isolated}.items():
        real_number(share, name, 0, 1)
    for name, mean in {"degree": degree, "words": words}.items():
        real_number(mean, name, 0, open_low=True)
    if nodes < (least_nodes := classes * (per_class + 2)):
        raise EvidentiaError(
            f"{nodes} nodes are too few for {classes} classes with {per_class} training nodes each and others to test "
            f"on; give at least {least_nodes}"
        )
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(nodes) % classes)
    ends = _edges(labels, classes, homophily, degree, isolated, rng)
    y = torch.from_numpy(labels)
    wanted = min(500, (nodes - classes * per_class) // 3) if validation is None else validation
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    train, val = draw_nodes(y, range(classes), generator, per_class, wanted)
    return RawGraph(
        features=_bags_of_words(labels, classes, features, words, on_topic, rng),
        adjacency=undirected(*ends, nodes),
        labels=labels,
        masks={"train_mask": train.numpy(), "val_mask": val.numpy(), "test_mask": (~train & ~val).numpy()},
    ).to_data("citation-graph")


def _edges(
    labels: Array, classes: int, homophily: float, degree: float, isolated: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Both ends of every edge, the right number of them within classes and between."""
    nodes = len(labels)
    popularity = (1 - rng.random(nodes)) ** (-1 / (_EXPONENT - 1))
    alone = rng.permutation(nodes)[: round(isolated * nodes)]
    popularity[alone] = 0
    sizes = np.bincount(np.delete(labels, alone), minlength=classes).astype(float)
    within = float((sizes * (sizes - 1)).sum() / 2)
    between = float((sizes.sum() ** 2 - (sizes**2).sum()) / 2)
    # At most half of all pairs, so that drawing until there are enough soon ends.
    most = [pairs / (2 * share) for pairs, share in ((within, homophily), (between, 1 - homophily)) if share > 0]
    total = int(min(nodes * degree / 2, *most))
    same = round(homophily * total)
    pairs = np.concatenate(
        [
            _pairs(labels, classes, popularity, same, True, rng),
            _pairs(labels, classes, popularity, total - same, False, rng),
        ]
    )
    return pairs // nodes, pairs % nodes


def _pairs(labels: Array, classes: int, popularity: Array, count: int, alike: bool, rng: np.random.Generator) -> Array:
    """`count` different pairs of nodes, all of one class or all of two, each as one number."""
    nodes = len(labels)
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(classes + 1))
    found = np.empty(0, dtype=np.int64)
    while len(found) < count:
        # Nodes in the order of their classes, so that those of one class are a stretch of the cumulated weights.
        reach = np.concatenate([[0.0], np.cumsum(popularity[order])])
        draws = count - len(found) + 16
        first = _draw(reach, np.zeros(draws), np.full(draws, reach[-1]), order, rng)
        low, high = reach[starts[labels[first]]], reach[starts[labels[first] + 1]]
        if alike:
            second = _draw(reach, low, high, order, rng)
        else:
            # The stretches before and after the own class, laid end to end.
            point = rng.random(draws) * (reach[-1] - (high - low))
            second = _at(reach, np.where(point < low, point, point + (high - low)), order)
        kept = (first != second) & ((labels[first] == labels[second]) == alike)
        # Rounding may put a point just past its stretch, onto a node that is to stay alone.
        kept &= (popularity[first] > 0) & (popularity[second] > 0)
        pairs = np.minimum(first, second)[kept] * nodes + np.maximum(first, second)[kept]
        both = np.concatenate([found, pairs])
        _, earliest = np.unique(both, return_index=True)
        found = both[np.sort(earliest)][:count]
        # Where popular nodes run out of partners, the others get a better chance.
        popularity = np.sqrt(popularity)
    return found


def _draw(reach: Array, low: Array, high: Array, order: Array, rng: np.random.Generator) -> Array:
    return _at(reach, low + rng.random(len(low)) * (high - low), order)


def _at(reach: Array, point: Array, order: Array) -> Array:
    """The node whose stretch of the cumulated weights a point falls on."""
    return order[np.clip(np.searchsorted(reach, point, side="right") - 1, 0, len(order) - 1)]


def _bags_of_words(
    labels: Array, classes: int, features: int, words: float, on_topic: float, rng: np.random.Generator
) -> sparse.csr_matrix[Any]:
    """Which words each node has: ones in a sparse matrix."""
    # Words by Zipf's law; a topic is the same law over words in another order.
    frequency = np.cumsum(1 / np.arange(1, features + 1))
    topics = np.stack([rng.permutation(features) for _ in range(classes)])
    lengths = 1 + rng.poisson(max(words - 1, 0), len(labels))
    node = np.repeat(np.arange(len(labels)), lengths)
    rank = np.searchsorted(frequency, rng.random(len(node)) * frequency[-1], side="right").clip(max=features - 1)
    word = np.where(rng.random(len(node)) < on_topic, topics[labels[node], rank], rank)
    bags = sparse.csr_matrix((np.ones(len(node), dtype=np.float32), (node, word)), shape=(len(labels), features))
    bags.sum_duplicates()
    bags.data[:] = 1
    return bags
