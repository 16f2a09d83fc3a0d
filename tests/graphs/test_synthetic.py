"""The made graph is what it says it is: so homophilous, so heavy-tailed, so balanced, and the same each time."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import evidentia as ev
from evidentia.graphs import check_graph, citation_graph


def homophily(data: Data) -> float:
    source, target = data.edge_index
    return float((data.y[source] == data.y[target]).double().mean())


def degrees(data: Data) -> torch.Tensor:
    return torch.bincount(data.edge_index[0], minlength=data.num_nodes)


@given(st.integers(2, 8), st.integers(0, 1000), st.floats(0, 1), st.integers(0, 2**31), st.floats(0.5, 8))
def test_the_asked_homophily_balance_and_masks(
    classes: int, more: int, wanted: float, seed: int, degree: float
) -> None:
    nodes = 30 * classes + more
    data = citation_graph(nodes, classes, features=50, homophily=wanted, seed=seed, degree=degree)
    edges = data.edge_index.shape[1] // 2
    assert edges > 0
    assert abs(homophily(data) - wanted) <= 0.5 / edges + 1e-9
    sizes = torch.bincount(data.y, minlength=classes)
    assert int(sizes.max() - sizes.min()) <= 1
    assert torch.bincount(data.y[data.train_mask]).tolist() == [20] * classes
    assert torch.equal(data.train_mask.long() + data.val_mask.long() + data.test_mask.long(), torch.ones(nodes).long())
    check_graph(data, classes)
    assert data.is_undirected()
    assert data.is_coalesced()
    assert not data.has_self_loops()


def test_degrees_have_the_asked_mean_and_a_heavy_tail() -> None:
    data = citation_graph(nodes=5000, degree=5.0, isolated=0.03, seed=2)
    degree = degrees(data).double()
    assert float(degree.mean()) == pytest.approx(5.0)
    assert int((degree == 0).sum()) >= 150
    # Poisson degrees of this mean would hardly pass 20, and have a variance of 5.
    assert float(degree.max()) > 50
    assert float(degree.var()) > 25


def test_no_node_need_be_alone_and_all_may() -> None:
    assert citation_graph(nodes=300, isolated=1.0).edge_index.shape == (2, 0)
    dense = citation_graph(nodes=300, isolated=0.0, degree=60.0)
    assert int((degrees(dense) == 0).sum()) == 0


def test_more_edges_than_a_small_graph_has_room_for_are_cut_evenly() -> None:
    data = citation_graph(nodes=110, classes=5, degree=1000.0, homophily=0.7)
    assert homophily(data) == pytest.approx(0.7, abs=0.01)
    assert float(degrees(data).double().mean()) < 110


def test_features_are_sparse_words_that_tell_the_classes_apart() -> None:
    data = citation_graph(nodes=3000, classes=4, features=400, words=18.0, on_topic=0.3)
    assert data.x.layout == torch.sparse_csr
    assert data.x.dtype == torch.float32
    dense = data.x.to_dense()
    assert set(dense.unique().tolist()) == {0.0, 1.0}
    assert 10 < float(dense.sum(1).mean()) < 18
    assert float(dense.sum(1).min()) >= 1
    # Each class' mean over the training nodes is the nearest to most of its test nodes, and not to all.
    means = torch.stack([dense[data.train_mask & (data.y == label)].mean(0) for label in range(4)])
    nearest = torch.cdist(dense[data.test_mask], means).argmin(1)
    accuracy = float((nearest == data.y[data.test_mask]).double().mean())
    assert 0.5 < accuracy < 0.98


def test_words_tell_nothing_where_none_is_on_topic() -> None:
    data = citation_graph(nodes=3000, classes=4, on_topic=0.0)
    dense = data.x.to_dense()
    means = torch.stack([dense[data.y == label].mean(0) for label in range(4)])
    assert float((means - means.mean(0)).abs().max()) < 0.07


def test_a_seed_fixes_everything_and_the_global_state_nothing() -> None:
    state = torch.get_rng_state()
    first = citation_graph(nodes=400, seed=5)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(99)
    again, other = citation_graph(nodes=400, seed=5), citation_graph(nodes=400, seed=6)
    for key in ("edge_index", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(first[key], again[key])
        assert not torch.equal(first[key], other[key])
    assert torch.equal(first.x.to_dense(), again.x.to_dense())


def test_validation_nodes() -> None:
    assert int(citation_graph(nodes=5000).val_mask.sum()) == 500
    assert int(citation_graph(nodes=400).val_mask.sum()) == 100
    assert int(citation_graph(nodes=400, validation=30).val_mask.sum()) == 30


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nodes": 500.5}, "nodes must be a whole number of at least 1, got 500.5"),
        ({"words": None}, "words must be a number, more than 0, got None"),
        ({"nodes": 50}, "50 nodes are too few for 5 classes"),
        ({"classes": 1}, "classes must be a whole number of at least 2, got 1"),
        ({"features": 0}, "features must be a whole number of at least 1, got 0"),
        ({"homophily": 1.1}, "homophily must be a number, at least 0 and at most 1, got 1.1"),
        ({"homophily": float("nan")}, "homophily"),
        ({"on_topic": -0.1}, "on_topic"),
        ({"isolated": 2}, "isolated"),
        ({"degree": 0}, "degree must be a number, more than 0, got 0"),
        ({"words": float("inf")}, "words must be a number, more than 0, got inf"),
        ({"validation": 5000}, "validation nodes are needed"),
        ({"validation": 0}, "validation must be a whole number of at least 1, got 0"),
        ({"per_class": 0}, "per_class must be a whole number of at least 1, got 0"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ev.EvidentiaError, match=message):
        citation_graph(**arguments)  # type: ignore[arg-type]
