"""Splits follow the protocols, repeat by seed, and leave the graph they are made from alone."""

from __future__ import annotations

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import evidentia as ev
from evidentia.graphs import author_draws, check_graph, citation_graph, load_graph, misclassification_split, ood_split

MASKS = ("train_mask", "val_mask", "test_mask")


def bare(nodes: int = 400, classes: int = 5, unlabelled: int = 7) -> Data:
    """A graph without a split of its own, some nodes of which have no label."""
    y = torch.arange(nodes) % classes
    y[:unlabelled] = -1
    edges = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    return Data(x=torch.ones(nodes, 2), edge_index=edges, y=y, num_classes=classes)


def sizes(data: Data) -> list[int]:
    return [int(data[mask].sum()) for mask in MASKS]


def same(first: Data, second: Data) -> bool:
    return all(torch.equal(first[mask], second[mask]) for mask in MASKS)


@given(st.integers(0, 2**31), st.integers(1, 20), st.integers(1, 100))
def test_drawn_splits_cover_every_labelled_node_once(seed: int, per_class: int, validation: int) -> None:
    graph = bare()
    data = misclassification_split(graph, seed, per_class=per_class, validation=validation)
    assert sizes(data)[:2] == [5 * per_class, validation]
    assert torch.bincount(data.y[data.train_mask]).tolist() == [per_class] * 5
    assert torch.equal(sum(data[mask].long() for mask in MASKS), (data.y >= 0).long())
    assert same(data, misclassification_split(graph, seed, per_class=per_class, validation=validation))


def test_other_seeds_draw_other_nodes() -> None:
    graph = bare()
    first, second = (misclassification_split(graph, seed, validation=50) for seed in (0, 1))
    assert not torch.equal(first.train_mask, second.train_mask)
    assert not torch.equal(first.val_mask, second.val_mask)


def test_a_split_of_its_own_is_kept_whatever_the_seed() -> None:
    graph = citation_graph(nodes=600, classes=4)
    data = misclassification_split(graph, seed=3)
    assert torch.equal(data.train_mask, graph.train_mask)
    assert torch.equal(data.val_mask, graph.val_mask)
    drawn = misclassification_split(graph, seed=3, public=False, validation=50)
    assert not torch.equal(drawn.train_mask, graph.train_mask)


@given(
    st.integers(0, 2**31),
    st.one_of(st.sampled_from(["last", "random"]), st.lists(st.integers(0, 6), min_size=1, max_size=5, unique=True)),
)
def test_unknown_classes_are_kept_from_training_and_validation(seed: int, classes: Any) -> None:
    graph = bare(700, classes=7)
    data = ood_split(graph, seed, classes, validation=60)
    outside = torch.tensor(data.ood_classes)
    inside = torch.tensor([label for label in range(7) if label not in data.ood_classes])
    assert torch.equal(data.ood_mask, torch.isin(graph.y, outside))
    assert data.num_classes == len(inside)
    # Labels in distribution are numbered from 0 in their old order; all others have none.
    known = data.y >= 0
    assert torch.equal(inside[data.y[known]], graph.y[known])
    assert torch.equal(known, torch.isin(graph.y, inside))
    assert torch.equal(data.y_original, graph.y)
    assert sizes(data)[:2] == [20 * len(inside), 60]
    assert not (data.ood_mask & (data.train_mask | data.val_mask)).any()
    assert torch.equal(sum(data[mask].long() for mask in MASKS), (graph.y >= 0).long())
    assert same(data, ood_split(graph, seed, classes, validation=60))
    if data.num_classes > 1:
        check_graph(data, data.num_classes)


@pytest.mark.parametrize(
    ("classes", "outside"),
    [(7, [4, 5, 6]), (6, [3, 4, 5]), (3, [2]), (8, [4, 5, 6, 7]), (10, [5, 6, 7, 8, 9]), (5, [3, 4]), (4, [2, 3])],
)
def test_the_last_half_of_the_classes_is_unknown(classes: int, outside: list[int]) -> None:
    assert ood_split(bare(1000, classes), validation=10).ood_classes == outside
    assert len(ood_split(bare(1000, classes), 1, "random", validation=10).ood_classes) == len(outside)


def test_random_classes_differ_by_seed() -> None:
    graph = bare(700, classes=7)
    assert len({tuple(ood_split(graph, seed, "random", validation=10).ood_classes) for seed in range(20)}) > 5


def test_with_a_split_of_its_own_only_known_nodes_of_it_are_kept() -> None:
    graph = citation_graph(nodes=900, classes=6)
    graph.class_names = list("abcdef")
    data = ood_split(graph)
    inside = graph.y < 3
    assert torch.equal(data.train_mask, graph.train_mask & inside)
    assert torch.equal(data.val_mask, graph.val_mask & inside)
    assert data.class_names == ["a", "b", "c"]


@pytest.mark.parametrize("split", [misclassification_split, ood_split])
def test_the_given_graph_stays_as_it_is(split: Any) -> None:
    for graph in (bare(), citation_graph(nodes=600, classes=4)):
        graph.class_names = [str(label) for label in range(graph.num_classes)]
        before = graph.clone()
        split(graph, validation=50)
        assert graph.keys() == before.keys()
        for key in graph.keys():  # noqa: SIM118 (not a dict)
            old, new = before[key], graph[key]
            if not isinstance(old, torch.Tensor):
                assert new == old
            else:
                assert torch.equal(*(t.to_dense() if t.layout != torch.strided else t for t in (old, new)))


def test_the_global_random_state_is_left_alone() -> None:
    state = torch.get_rng_state()
    ood_split(bare(), 3, "random", validation=50)
    author_draws(misclassification_split(bare(), validation=50), size=10)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_published_draws() -> None:
    graph = bare(1500, classes=5, unlabelled=15)
    for data in (misclassification_split(graph), ood_split(graph)):
        drawn = author_draws(data, seed=1)
        assert drawn.shape == (10, 1000)
        assert all(len(set(draw.tolist())) == 1000 for draw in drawn)
        assert not torch.equal(drawn[0], drawn[1])
        assert not data.train_mask[drawn].any()
        # Validation nodes are among them, nodes without a label are not, nodes out of distribution are.
        assert data.val_mask[drawn].any()
        assert (graph.y[drawn] >= 0).all()
        assert bool((data.y[drawn] < 0).any()) == ("ood_mask" in data)
        assert torch.equal(drawn, author_draws(data, seed=1))
        assert not torch.equal(drawn, author_draws(data, seed=2))


def test_the_published_draws_leave_out_all_public_training_nodes() -> None:
    graph = citation_graph(nodes=1500, classes=4, features=80)
    data = ood_split(graph)
    assert torch.equal(data.spare_mask, graph.train_mask & (graph.y >= 2))
    drawn = author_draws(data, draws=3, size=1500 - int(graph.train_mask.sum()))
    assert all(torch.equal(draw.sort().values, (~graph.train_mask).nonzero().flatten()) for draw in drawn)
    # The test by a protocol of ours has them, and where nodes are drawn there are none.
    assert data.test_mask[data.spare_mask].all()
    assert not ood_split(graph, public=False).spare_mask.any()


def test_integers_of_numpy_are_integers() -> None:
    graph, three = bare(), np.int64(3)
    counts = {"per_class": np.int64(4), "validation": np.int32(50)}
    for split in (misclassification_split, ood_split):
        data = split(graph, three, **counts)
        assert same(data, split(graph, 3, per_class=4, validation=50))
        drawn = author_draws(data, three, draws=np.int64(2), size=np.int64(9))
        assert torch.equal(drawn, author_draws(data, 3, draws=2, size=9))
    assert ood_split(graph, 0, np.array([1, 2]), validation=50).ood_classes == [1, 2]


def test_what_cannot_be_split_is_told() -> None:
    graph = bare(200, classes=5, unlabelled=0)
    for call, message in (
        (
            lambda: misclassification_split(graph, per_class=41, validation=5),
            r"class 0 has 40 nodes, but 41 are needed",
        ),
        (lambda: misclassification_split(graph, validation=101), r"101 validation nodes .* only 100 nodes are left"),
        (lambda: misclassification_split(graph, validation=0), "validation must be a whole number of"),
        (lambda: misclassification_split(graph, per_class=0), "per_class must be a whole number of at least 1, got 0"),
        (lambda: misclassification_split(graph, public=True), "no split of its own"),
        (lambda: misclassification_split(graph, seed=-1), "seed"),
        (lambda: misclassification_split(graph, seed="a"), "seed"),
        (lambda: ood_split(graph, validation=200), "validation nodes"),
        (lambda: ood_split(graph, classes="first"), "'last', 'random' or a list"),
        (lambda: ood_split(graph, classes=[]), "leave at least 2"),
        (lambda: ood_split(graph, classes=[5]), "some of 0 to 4"),
        (lambda: ood_split(graph, classes=[-1]), "some of 0 to 4"),
        (lambda: ood_split(graph, classes=[0, 1, 2, 3]), "leave at least 2"),
        (lambda: ood_split(bare(classes=2), validation=5), "at least 3 classes"),
        (lambda: author_draws(misclassification_split(graph, validation=50)), "1 to 100 nodes"),
        (lambda: author_draws(misclassification_split(graph, validation=50), draws=0), "0 draws"),
        (lambda: author_draws(graph), "train_mask must be a tensor"),
        (lambda: misclassification_split(SimpleNamespace(y=torch.full((5,), -1))), "at least one label"),
        (lambda: misclassification_split(SimpleNamespace(y=torch.eye(5))), "one-hot"),
        (lambda: misclassification_split(SimpleNamespace()), "y must be a tensor"),
    ):
        with pytest.raises(ev.EvidentiaError, match=message):
            call()


def test_a_split_of_its_own_that_lacks_nodes_is_told() -> None:
    graph = citation_graph(nodes=600, classes=4)
    untrained, unwatched, short = copy.copy(graph), copy.copy(graph), copy.copy(graph)
    untrained.train_mask = graph.train_mask & (graph.y != 1)
    unwatched.val_mask = graph.val_mask & (graph.y > 1)
    short.val_mask = graph.val_mask[:-1]
    with pytest.raises(ev.EvidentiaError, match="no training node of class 1"):
        misclassification_split(untrained)
    with pytest.raises(ev.EvidentiaError, match="no validation node in distribution"):
        ood_split(unwatched)
    with pytest.raises(ev.EvidentiaError, match="val_mask must have True or False for each of the 600"):
        misclassification_split(short)


@pytest.mark.parametrize(
    ("name", "clean", "ood", "outside"),
    [
        ("cora", [140, 500, 2068], [80, 333, 2295], [4, 5, 6]),
        ("citeseer", [120, 500, 2692], [60, 231, 3021], [3, 4, 5]),
        ("pubmed", [60, 500, 19157], [40, 292, 19385], [2]),
        ("photo", [160, 500, 6827], [80, 500, 6907], [4, 5, 6, 7]),
        ("computers", [200, 500, 12681], [100, 500, 12781], [5, 6, 7, 8, 9]),
        ("physics", [100, 500, 33893], [60, 500, 33933], [3, 4]),
    ],
)
def test_real_graphs_split_by_the_protocols(
    real_data: Path, name: str, clean: list[int], ood: list[int], outside: list[int]
) -> None:
    graph = load_graph(name, real_data)
    first, second = misclassification_split(graph), ood_split(graph)
    assert (sizes(first), sizes(second), second.ood_classes) == (clean, ood, outside)
    for data in (first, second):
        check_graph(data, data.num_classes)
        assert torch.bincount(data.y[data.train_mask]).tolist() == [20] * data.num_classes
