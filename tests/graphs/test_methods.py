"""What each graph method's loss is made of."""

from __future__ import annotations

import pytest
import torch

from evidentia.graphs.methods import GRAPH_METHODS
from evidentia.learning import DivergenceTo, dirichlet_kl, squared_error_risk

NODES, CLASSES = 10, 3


@pytest.fixture
def nodes() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(NODES, CLASSES), torch.randint(0, CLASSES, (NODES,)), torch.arange(NODES) < 4


def _loss(
    name: str,
    nodes: tuple[torch.Tensor, ...],
    epoch: int = 0,
    prior: torch.Tensor | None = None,
    teacher: torch.Tensor | None = None,
) -> torch.Tensor:
    logits, y, train = nodes
    return GRAPH_METHODS[name].loss(
        logits,
        y,
        train,
        epoch,
        divergence=None if prior is None else DivergenceTo(prior),
        prior_weight=0.1,
        teacher=None if teacher is None else teacher.clamp(min=1e-12).log(),
    )


def test_the_full_loss_is_the_thesis_joint_loss(nodes: tuple[torch.Tensor, ...]) -> None:
    logits, y, train = nodes
    prior, teacher = torch.rand(NODES, CLASSES) + 1, torch.rand(NODES, CLASSES).softmax(-1)
    alpha = logits.exp() + 1
    probs = alpha / alpha.sum(-1, keepdim=True)
    expected = (
        squared_error_risk(alpha, y)[train].mean()
        + 0.1 * dirichlet_kl(alpha, prior).mean()
        + 0.25 * (probs * (probs / teacher).log()).sum(-1).mean()
    )
    torch.testing.assert_close(_loss("s-bgcn-t-k", nodes, epoch=50, prior=prior, teacher=teacher), expected)


def test_the_teacher_counts_fully_from_epoch_200_on(nodes: tuple[torch.Tensor, ...]) -> None:
    teacher = torch.rand(NODES, CLASSES).softmax(-1)
    at_0, at_200, at_900 = (_loss("s-bgcn-t", nodes, epoch, teacher=teacher) for epoch in (0, 200, 900))
    torch.testing.assert_close(at_0, _loss("s-bgcn", nodes))
    assert at_200 == at_900 > at_0


def test_only_training_nodes_need_labels(nodes: tuple[torch.Tensor, ...]) -> None:
    logits, y, train = nodes
    hidden = torch.where(train, y, -1)
    for name in GRAPH_METHODS:
        torch.testing.assert_close(_loss(name, (logits, hidden, train)), _loss(name, nodes))


def test_the_prior_network_is_drawn_to_evidence_50_over_1_1(nodes: tuple[torch.Tensor, ...]) -> None:
    logits, y, train = nodes
    wanted = 1.1 + 50.0 * torch.nn.functional.one_hot(y, CLASSES)
    expected = dirichlet_kl(logits.exp() + 1, wanted)[train].mean() / 50
    torch.testing.assert_close(_loss("dpn-gcn", nodes), expected)


def test_softmax_methods_use_the_cross_entropy(nodes: tuple[torch.Tensor, ...]) -> None:
    logits, y, train = nodes
    expected = torch.nn.functional.cross_entropy(logits[train], y[train])
    torch.testing.assert_close(_loss("gcn", nodes), expected)


@pytest.mark.parametrize("name", GRAPH_METHODS)
def test_extreme_outputs_give_finite_losses_and_gradients(name: str) -> None:
    logits = torch.tensor([[1e4, -1e4, 0.0], [0.0, 0.0, 0.0], [-1e4, -1e4, -1e4]], requires_grad=True)
    y, train = torch.tensor([1, 0, 2]), torch.tensor([True, True, True])
    prior = None if GRAPH_METHODS[name].evidence is None else torch.ones(3, 3)
    loss = _loss(name, (logits, y, train), epoch=10, prior=prior, teacher=torch.eye(3))
    loss.backward()
    assert bool(loss.isfinite())
    assert logits.grad is not None
    assert bool(logits.grad.isfinite().all())


@pytest.mark.parametrize("start", [-0.9, 0.0])
def test_classes_whose_logits_begin_low_still_learn_with_relu_evidence(start: float) -> None:
    logits = torch.full((4, 3), start, requires_grad=True)
    GRAPH_METHODS["edl-gcn"].node_risk(logits, torch.tensor([0, 1, 2, 0])).sum().backward()
    assert logits.grad is not None
    assert bool((logits.grad != 0).all())
