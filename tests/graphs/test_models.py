"""Backbones: sparse equals dense, many passes equal one by one, and what each computes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from evidentia import EvidentiaError
from evidentia.graphs.graph_tensors import GraphTensors
from evidentia.graphs.models import BACKBONES, GCN, OwnBackbone
from evidentia.graphs.propagation import normalised_adjacency

NODES, FEATURES, OUTPUTS = 15, 9, 4


def _edges() -> torch.Tensor:
    pairs = torch.randint(0, NODES - 1, (2, 25), generator=torch.Generator().manual_seed(0))
    pairs = torch.unique(pairs[:, pairs[0] != pairs[1]].sort(dim=0).values, dim=1)
    return torch.cat([pairs, pairs.flip(0)], dim=1)


def _features() -> torch.Tensor:
    return (torch.rand(NODES, FEATURES, generator=torch.Generator().manual_seed(1)) < 0.4).float()


@pytest.fixture
def graph() -> GraphTensors:
    return GraphTensors.build(_features().to_sparse_csr(), _edges())


@pytest.mark.parametrize("name", BACKBONES)
def test_sparse_and_dense_features_give_the_same(name: str, graph: GraphTensors) -> None:
    network = BACKBONES[name](FEATURES, OUTPUTS).eval()
    dense = GraphTensors.build(_features(), _edges())
    torch.testing.assert_close(network(graph), network(dense))


@pytest.mark.parametrize("name", BACKBONES)
def test_passes_share_weights_and_differ_by_dropout_only(name: str, graph: GraphTensors) -> None:
    network = BACKBONES[name](FEATURES, OUTPUTS)
    assert network.eval()(graph, passes=3).shape == (3, NODES, OUTPUTS)
    torch.testing.assert_close(network(graph, passes=3), network(graph).expand(3, -1, -1))
    sampled = network.train()(graph, passes=3)
    assert not torch.equal(sampled[0], sampled[1])


@pytest.mark.parametrize("name", BACKBONES)
def test_gradients_reach_every_parameter(name: str, graph: GraphTensors) -> None:
    network = BACKBONES[name](FEATURES, OUTPUTS).eval()
    network(graph).square().sum().backward()
    for parameter in network.parameters():
        assert parameter.grad is not None
        assert bool(parameter.grad.isfinite().all())
        assert float(parameter.grad.abs().sum()) > 0


@pytest.mark.parametrize("name", BACKBONES)
def test_a_node_without_edges_gets_finite_outputs_of_its_own(name: str, graph: GraphTensors) -> None:
    network = BACKBONES[name](FEATURES, OUTPUTS).eval()
    alone = GraphTensors.build(_features()[-1:], torch.zeros(2, 0, dtype=torch.long))
    torch.testing.assert_close(network(graph)[0, -1], network(alone)[0, 0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", BACKBONES)
def test_renumbering_the_nodes_renumbers_the_outputs(name: str, graph: GraphTensors) -> None:
    network = BACKBONES[name](FEATURES, OUTPUTS).eval()
    order = torch.randperm(NODES)
    place = torch.argsort(order)
    other = GraphTensors.build(_features()[order], place[_edges()])
    torch.testing.assert_close(network(other)[0], network(graph)[0, order], atol=1e-6, rtol=1e-5)


def test_gcn_is_the_formula(graph: GraphTensors) -> None:
    network = GCN(FEATURES, OUTPUTS).eval()
    adjacency = normalised_adjacency(_edges(), NODES).to_dense()
    x = _features() / _features().sum(-1, keepdim=True).clamp(min=1)
    first, second = (layer.weight for layer in (network.first, network.second))
    torch.testing.assert_close(network(graph)[0], adjacency @ torch.relu(adjacency @ x @ first) @ second)


def test_mean_gcn_says_the_same_of_equal_nodes_whatever_their_degrees() -> None:
    edges = _edges()
    assert len(torch.bincount(edges[1], minlength=NODES).unique()) > 2
    graph = GraphTensors.build(torch.ones(NODES, FEATURES), edges)
    torch.manual_seed(0)
    by_mean, by_sum = (BACKBONES[name](FEATURES, OUTPUTS).eval()(graph)[0] for name in ("mean-gcn", "gcn"))
    torch.testing.assert_close(by_mean, by_mean[:1].expand(NODES, -1))
    assert not torch.allclose(by_sum, by_sum[:1].expand(NODES, -1), atol=0.01)


def test_mean_over_passes_tends_to_the_pass_without_dropout_of_a_linear_network(graph: GraphTensors) -> None:
    torch.manual_seed(0)
    network = GCN(FEATURES, OUTPUTS)
    with torch.no_grad():
        network.first.weight.abs_()  # all hidden units positive, so that relu does nothing
        sampled = network.train()(graph, passes=6000)
        expected = network.eval()(graph)[0]
    error = (sampled.mean(0) - expected).abs() / (sampled.std(0) / 6000**0.5).clamp(min=1e-6)
    assert float(error.max()) < 5.5


def test_dropped_edges_are_dropped_in_both_directions(graph: GraphTensors) -> None:
    kept = graph.without_edges(0.5).edge_index
    assert 0 < kept.shape[1] < graph.edge_index.shape[1]
    pairs = {tuple(edge) for edge in kept.T.tolist()}
    assert all((target, source) in pairs for source, target in pairs)
    assert graph.without_edges(0.0).edge_index.shape == graph.edge_index.shape


def test_own_module_is_called_as_pyg_calls_it(graph: GraphTensors) -> None:
    class Mine(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(FEATURES, OUTPUTS)

        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
            return self.linear(x).index_add(0, edge_index[1], self.linear(x)[edge_index[0]])

    assert OwnBackbone(Mine(), OUTPUTS)(graph, passes=2).shape == (2, NODES, OUTPUTS)
    with pytest.raises(EvidentiaError, match=f"\\({NODES}, {OUTPUTS}\\).* got shape \\({NODES * OUTPUTS},\\)"):
        OwnBackbone(_Flat(FEATURES, OUTPUTS), OUTPUTS)(graph)


class _Flat(nn.Linear):
    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return super().forward(x).flatten()
