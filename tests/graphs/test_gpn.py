"""The Graph Posterior Network: its flows are densities, far away there is no evidence, and it learns."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd.functional import jacobian

from evidentia import EvidentiaError
from evidentia.graphs.gpn import GPN, RadialFlows, UnitGPN
from evidentia.graphs.graph_tensors import GraphTensors
from evidentia.graphs.methods import GraphMethod
from evidentia.graphs.propagation import normalised_adjacency, personalised_pagerank
from evidentia.graphs.sparse_matrix import SparseMatrix
from evidentia.graphs.synthetic import citation_graph
from evidentia.learning import cross_entropy_risk
from evidentia.opinions import MultinomialOpinion, vacuity

METHOD = GraphMethod("GPN", evidence="log-counts", risk="expected-cross-entropy")
NO_EDGES = torch.zeros(2, 0, dtype=torch.long)

seeds = st.integers(0, 2**31)
spreads = st.sampled_from([0.1, 1.0, 5.0])


@pytest.fixture(autouse=True)
def _fixed_weights() -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def _flows(classes: int, dim: int, layers: int, seed: int, spread: float) -> RadialFlows:
    """Flows in float64 whose parameters are drawn widely, as training may leave them."""
    generator = torch.Generator().manual_seed(seed)
    flows = RadialFlows(classes, dim, layers).double()
    with torch.no_grad():
        for parameter in flows.parameters():
            parameter.copy_(spread * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return flows


@pytest.mark.parametrize("seed", range(5))
def test_a_density_on_the_line_integrates_to_one(seed: int) -> None:
    grid = torch.linspace(-60, 60, 60_001, dtype=torch.float64)
    with torch.no_grad():
        mass = torch.trapezoid(_flows(3, 1, 4, seed, spread=0.7)(grid.unsqueeze(-1)).exp(), grid, dim=0)
    torch.testing.assert_close(mass, torch.ones_like(mass), atol=1e-3, rtol=0)


def test_a_density_in_the_plane_integrates_to_one() -> None:
    axis = torch.linspace(-15, 15, 1201, dtype=torch.float64)
    with torch.no_grad():
        density = _flows(2, 2, 10, seed=1, spread=0.7)(torch.cartesian_prod(axis, axis)).exp()
    mass = density.sum(0) * (axis[1] - axis[0]) ** 2
    torch.testing.assert_close(mass, torch.ones_like(mass), atol=1e-3, rtol=0)


@given(seed=seeds, spread=spreads, dim=st.integers(1, 5))
def test_log_determinant_is_that_of_the_jacobian(seed: int, spread: float, dim: int) -> None:
    flows = _flows(2, dim, 3, seed, spread)
    point = torch.randn(dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    moved, log_det = flows.transform(point)
    by_autograd = jacobian(lambda z: flows.transform(z)[0], point)
    assert moved.shape == (2, dim)
    torch.testing.assert_close(log_det, torch.linalg.slogdet(by_autograd).logabsdet, atol=1e-8, rtol=1e-6)
    assert bool((torch.linalg.slogdet(by_autograd).sign > 0).all())


@given(seed=seeds, spread=spreads)
def test_a_chain_on_the_line_keeps_the_order_of_points(seed: int, spread: float) -> None:
    grid = torch.linspace(-30, 30, 5001, dtype=torch.float64)
    with torch.no_grad():
        moved, _ = _flows(3, 1, 4, seed, spread).transform(grid.unsqueeze(-1))
    assert bool((moved.squeeze(-1).diff(dim=0) > 0).all())


def test_a_layer_is_the_published_radial_flow() -> None:
    flows = _flows(1, 3, 1, seed=2, spread=1.0)
    centre, (a, b) = flows.centres[0, 0], torch.nn.functional.softplus(flows.raw[:, 0, 0])
    z = torch.randn(3, dtype=torch.float64)
    beta = b - a
    expected = z + beta / (a + (z - centre).norm()) * (z - centre)
    torch.testing.assert_close(flows.transform(z)[0][0], expected)
    assert bool(beta > -a)


def test_flows_that_do_not_move_points_are_standard_normal() -> None:
    flows = RadialFlows(2, 4)
    torch.nn.init.zeros_(flows.raw)
    z = torch.randn(7, 4)
    expected = torch.distributions.Normal(0.0, 1.0).log_prob(z).sum(-1, keepdim=True).expand(-1, 2)
    torch.testing.assert_close(flows(z), expected)


def test_gradients_of_the_density_are_right_and_finite_at_a_centre() -> None:
    flows = _flows(2, 3, 2, seed=3, spread=1.0)
    z = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(flows, (z,))
    flows(flows.centres[0].detach()).sum().backward()
    assert all(bool(parameter.grad.isfinite().all()) for parameter in flows.parameters())


def test_counts_are_the_formula() -> None:
    data = citation_graph(nodes=60, classes=3, features=20, per_class=3)
    graph = GraphTensors.build(data.x, data.edge_index)
    network = GPN(20, 3).eval()
    network.start_training(torch.tensor([0, 0, 1, 2]))
    prior = torch.tensor([0.5, 0.25, 0.25])
    density = network.flows(network.latent(graph)[0]).exp()
    counts = density * prior * (4 * math.pi) ** 8
    expected = personalised_pagerank(counts, normalised_adjacency(data.edge_index, 60))
    torch.testing.assert_close(network(graph)[0].exp(), expected, rtol=1e-3, atol=1e-3)


def test_far_from_all_it_has_learned_a_node_alone_is_vacuous() -> None:
    network = GPN(6, 3).eval()
    with torch.no_grad():
        far = network(GraphTensors(1e4 * torch.eye(6), NO_EDGES))[0]
        further = network(GraphTensors(1e12 * torch.eye(6), NO_EDGES))[0]
        near = network(GraphTensors(torch.zeros(6, 6), NO_EDGES))[0]
    for logits in (far, further):
        strange = vacuity(MultinomialOpinion.from_alpha(METHOD.alpha(logits)))
        torch.testing.assert_close(strange, torch.ones(6))
    assert float(vacuity(MultinomialOpinion.from_alpha(METHOD.alpha(near))).max()) < 0.5


def test_extreme_latents_leave_outputs_and_gradients_finite() -> None:
    network = GPN(2, 2)
    features = torch.tensor([[0.0, 0.0], [1e15, 0.0], [0.0, -1e15], [1.0, 1.0]])
    logits = network(GraphTensors(features, torch.tensor([[0, 1], [1, 0]])), passes=2)
    loss = METHOD.node_risk(logits.flatten(0, 1), torch.tensor([0, 1, 0, 1, 0, 1, 0, 1])).sum()
    loss.backward()
    assert bool(logits.isfinite().all())
    assert all(bool(parameter.grad.isfinite().all()) for parameter in network.parameters())


def test_while_warming_up_only_the_flows_learn() -> None:
    network = GPN(4, 2)
    graph = GraphTensors(torch.eye(4), NO_EDGES)
    for epoch, encoder_learns in ((0, False), (4, False), (5, True), (300, True)):
        network.zero_grad()
        network.start_epoch(epoch)
        network(graph).sum().backward()
        assert network.flows.raw.grad is not None
        assert (network.first.weight.grad is not None) == encoder_learns
        assert (network.second.weight.grad is not None) == encoder_learns


def test_the_risk_is_the_expected_cross_entropy_less_a_little_entropy() -> None:
    logits, y = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1])
    alpha = logits.exp() + 1
    expected = cross_entropy_risk(alpha, y) - 1e-4 * torch.distributions.Dirichlet(alpha).entropy()
    torch.testing.assert_close(METHOD.node_risk(logits, y), expected)


def test_ratios_of_large_counts_stay() -> None:
    probs = METHOD.probs(torch.tensor([[25.0, 20.0]]))
    torch.testing.assert_close(probs, torch.tensor([[5.0, 0.0]]).softmax(-1))


def test_extreme_log_counts_give_a_finite_risk() -> None:
    logits = torch.tensor([[1e4, -1e4], [-1e4, -1e4], [0.0, 0.0]], requires_grad=True)
    risk = METHOD.node_risk(logits, torch.tensor([1, 0, 0]))
    risk.sum().backward()
    assert logits.grad is not None
    assert bool(risk.isfinite().all() & logits.grad.isfinite().all())


def test_it_learns_a_citation_graph() -> None:
    data = citation_graph(nodes=600, classes=3, features=100)
    graph = GraphTensors.build(data.x, data.edge_index)
    network = GPN(100, 3)
    network.start_training(data.y[data.train_mask])
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for epoch in range(60):
        network.start_epoch(epoch)
        loss = METHOD.node_risk(network(graph)[0, data.train_mask], data.y[data.train_mask]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    right = network.eval()(graph)[0].argmax(-1) == data.y
    assert float(right[data.test_mask].float().mean()) > 0.8


@pytest.mark.parametrize("sparse", [False, True])
def test_the_scale_of_features_is_nothing_to_the_unit_network(sparse: bool) -> None:
    x, edges = torch.rand(5, 4), torch.tensor([[0, 1, 2], [1, 2, 3]])
    network = UnitGPN(4, 2).eval()

    def seen(features: torch.Tensor) -> torch.Tensor:
        outputs: torch.Tensor = network(GraphTensors(SparseMatrix.from_tensor(features) if sparse else features, edges))
        return outputs

    torch.testing.assert_close(seen(x), seen(0.01 * x))


def test_class_shares_survive_saving() -> None:
    network, other = GPN(4, 2), GPN(4, 2)
    network.start_training(torch.tensor([0, 0, 0, 1]))
    other.load_state_dict(network.state_dict())
    torch.testing.assert_close(other.log_prior.exp(), torch.tensor([0.75, 0.25]))


def test_errors_are_sentences() -> None:
    with pytest.raises(EvidentiaError, match="layers must be a whole number of at least 1, got 0"):
        RadialFlows(2, 3, layers=0)
    with pytest.raises(EvidentiaError, match=r"over 3 dimensions, got points of shape \(5, 2\)"):
        RadialFlows(2, 3)(torch.zeros(5, 2))
    with pytest.raises(EvidentiaError, match="each of the 3 classes and no other"):
        GPN(4, 3).start_training(torch.tensor([0, 1]))
    with pytest.raises(EvidentiaError, match="each of the 3 classes and no other"):
        GPN(4, 3).start_training(torch.tensor([0, 1, 2, 3]))
