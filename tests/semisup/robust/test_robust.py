"""What each robust method does with the weights of a batch, on problems small enough to work out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F  # noqa: N812

from evidentia import EvidentiaError
from evidentia.semisup import (
    AUGMENTATIONS,
    OBJECTIVES,
    ROBUST,
    ByUncertainty,
    Confidence,
    ImplicitDifferentiation,
    KernelEvidence,
    LastLayer,
    LearningToReweight,
    Meta,
    MetaWeightNet,
    Oracle,
    PoolUncertainty,
    PoolView,
    SafeDeepSSL,
    SelfDistillation,
    SemiSupervisedClassifier,
    WeightRegulariser,
    two_moons,
)
from evidentia.semisup.networks.features import logits_in_parts
from evidentia.semisup.robust import Pool, Update
from evidentia.semisup.robust.by_gradient import normalised

RATE = 0.1


class Half(PoolUncertainty):
    """u = 0 for the first half of the pool and 1 for the second."""

    refresh = False

    def uncertainty_of(self, pool: PoolView) -> Tensor:
        return (torch.arange(len(pool.unlabeled)) >= len(pool.unlabeled) // 2).float()


@pytest.fixture
def pool() -> Pool:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 2)).double()
    labeled = torch.randn(8, 2, dtype=torch.float64), torch.tensor([0, 1] * 4)
    return Pool(
        last=LastLayer(network),
        labeled=labeled,
        unlabeled=torch.randn(20, 2, dtype=torch.float64),
        clean=labeled,
        num_classes=2,
        augment=AUGMENTATIONS["vectors"](),
    )


def update_of(pool: Pool, number: int = 0, **changes: Any) -> Update:
    torch.manual_seed(1)
    objective = OBJECTIVES["pi-model"](weight=2.0)
    rows = torch.arange(0, 20, 2)
    weights = pool.weights.of(rows).double()
    consistency = objective.prepare(pool.last.network, pool.unlabeled[rows], pool.augment)
    hidden, _ = pool.last.hidden_and_logits(pool.labeled[0])
    unlabeled, logits = pool.last.hidden_and_logits(consistency.inputs)
    return Update(
        number=number,
        rows=rows,
        weights=weights,
        objective=objective,
        consistency=consistency,
        coefficient=2.0,
        labeled=pool.labeled,
        clean=pool.clean,
        hidden=(hidden, unlabeled),
        costs=objective.per_sample(logits, consistency).detach(),
        concat=True,
        **changes,
    )


def clean_loss_after_a_step(pool: Pool, update: Update, weights: Tensor) -> Tensor:
    """L_V of the whole network after one step of training with these weights, as a function of them."""
    network = pool.last.network
    parameters = dict(network.named_parameters())
    x, y = update.labeled
    costs = update.objective.per_sample(network(update.consistency.inputs), update.consistency)
    loss = F.cross_entropy(network(x), y) + update.coefficient * (weights * costs).mean()
    slopes = torch.autograd.grad(loss, list(parameters.values()), create_graph=True)
    stepped = {name: each - RATE * slope for (name, each), slope in zip(parameters.items(), slopes, strict=True)}
    return F.cross_entropy(functional_call(network, stepped, (update.clean[0],)), update.clean[1])


def test_l2rw_is_the_positive_part_of_the_negative_gradient_at_0(pool: Pool) -> None:
    update = update_of(pool)
    weights = torch.zeros(10, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(clean_loss_after_a_step(pool, update, weights), weights)
    helpful = gradient.neg().clamp(min=0)
    assert bool((helpful > 0).any())
    expected = 10 * helpful / helpful.sum()
    torch.testing.assert_close(LearningToReweight(inner_rate=RATE).weigh(pool, update), expected)
    torch.testing.assert_close(pool.weights.of(update.rows), (helpful / helpful.max()).float())


def test_l2rw_leaves_out_a_batch_in_which_nothing_helps(pool: Pool) -> None:
    update = update_of(pool)
    still = replace(update, consistency=replace(update.consistency, counts=torch.zeros(10, dtype=torch.float64)))
    assert torch.equal(LearningToReweight().weigh(pool, still), torch.zeros(10, dtype=torch.float64))


@pytest.mark.parametrize("kind", [MetaWeightNet, SafeDeepSSL])
def test_a_weight_network_moves_along_the_gradient_of_the_clean_loss(kind: type, pool: Pool) -> None:
    method = kind(inner_rate=RATE, hidden=5)
    torch.manual_seed(2)
    method.attach(pool)
    update = update_of(pool)
    network = method._network
    weights = network(method.signal(update)).squeeze(-1)
    expected = torch.autograd.grad(clean_loss_after_a_step(pool, update, weights), list(network.parameters()))
    seen: list[Tensor] = []
    method._optimizer.step = lambda: seen.extend(each.grad.clone() for each in network.parameters())
    method.weigh(pool, update)
    for found, wanted in zip(seen, expected, strict=True):
        torch.testing.assert_close(found, wanted)


def test_a_weight_network_weighs_by_what_it_has_just_learnt(pool: Pool) -> None:
    method = MetaWeightNet()
    method.attach(pool)
    update = update_of(pool)
    weights = method.weigh(pool, update)
    torch.testing.assert_close(weights, method._network(update.costs[:, None]).squeeze(-1).detach())
    torch.testing.assert_close(pool.weights.of(update.rows), weights.float())


def test_a_weight_network_refuses_the_state_of_another(pool: Pool) -> None:
    cost, features = MetaWeightNet(), SafeDeepSSL()
    with pytest.raises(EvidentiaError, match="attach"):
        cost.state_dict()
    cost.attach(pool)
    features.attach(pool)
    with pytest.raises(EvidentiaError, match="another network of weights"):
        features.load_state_dict(cost.state_dict())


@pytest.mark.parametrize("scope", ["last", "full"])
@pytest.mark.parametrize("kind", [Meta, ImplicitDifferentiation])
def test_weights_of_samples_that_raise_the_clean_loss_fall(kind: Any, scope: str, pool: Pool) -> None:
    method = kind(scope=scope, clusters=None, regulariser=WeightRegulariser(uncertainty=0.0), weight_rate=0.2)
    method.attach(pool)
    method.start(pool)
    pool.weights.replace(torch.full((20,), 0.5))
    update = update_of(pool)
    weights = torch.full((10,), 0.5, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(clean_loss_after_a_step(pool, update, weights), weights)
    moved = method.weigh(pool, update) - 0.5
    # The last layer alone, or more than one step, is another function; with the full network the sign is the same.
    if scope == "full" and kind is Meta:
        assert torch.equal(moved.sign().double(), gradient.sign().neg())
        expected = (-0.2 * normalised(gradient)).clamp(-0.5, 0.5)
        torch.testing.assert_close(moved.double(), expected, atol=1e-6, rtol=1e-5)
    others = torch.ones(20, dtype=torch.bool)
    others[update.rows] = False
    assert bool((moved != 0).any())
    assert bool((pool.weights.per_sample[others] == 0.5).all())


def test_weights_move_in_every_lth_update_only(pool: Pool) -> None:
    method = Meta(every=3, clusters=None, regulariser=WeightRegulariser(uncertainty=0.0))
    method.attach(pool)
    pool.weights.replace(torch.full((20,), 0.5))
    for number in (1, 2):
        method.weigh(pool, update_of(pool, number))
    assert bool((pool.weights.per_sample == 0.5).all())
    method.weigh(pool, update_of(pool, 3))
    assert not bool((pool.weights.per_sample == 0.5).all())


def test_the_uncertainty_term_parts_the_pool(pool: Pool) -> None:
    method = Meta(clusters=None, uncertainty=Half(), regulariser=WeightRegulariser(uncertainty=5.0), every=1)
    method.attach(pool)
    method.start(pool)
    for number in range(60):
        method.weigh(pool, update_of(pool, number))
    rows = update_of(pool).rows
    weights = pool.weights.of(rows)
    assert float(weights[:5].min()) > 0.7
    assert float(weights[5:].max()) < 0.3


def test_l1_is_relative_to_a_gradient_of_mean_size_1(pool: Pool) -> None:
    update = update_of(pool)

    def moved(l1: float) -> Tensor:
        pool.weights.replace(torch.full((20,), 0.5))
        Meta(clusters=None, every=1, regulariser=WeightRegulariser(uncertainty=0.0, l1=l1)).weigh(pool, update)
        return pool.weights.of(update.rows)

    without = moved(0.0)
    torch.testing.assert_close(moved(1e-7), without, atol=1e-6, rtol=0)
    assert float(moved(1.0).mean()) < float(without.mean()) - 0.01
    # As large as the hypergradient and larger, it is all that is left of the step.
    torch.testing.assert_close(moved(1e6), torch.full((10,), 0.45), atol=1e-4, rtol=0)


def test_samples_of_a_cluster_share_their_weight_and_are_clustered_anew(pool: Pool) -> None:
    method = Meta(clusters=3, regulariser=WeightRegulariser(uncertainty=0.0))
    method.attach(pool)
    method.start(pool)
    before = pool.weights.assignment
    assert before is not None
    assert len(before.unique()) == 3
    method.weigh(pool, update_of(pool))
    method.refresh(pool)
    assert pool.weights.assignment is not before
    assert len(pool.weights.per_sample.unique()) <= 3


def test_drawn_samples_count_in_full(pool: Pool) -> None:
    method = Meta(apply="sample", clusters=None)
    method.attach(pool)
    method.start(pool)
    update = update_of(pool)
    assert torch.equal(method.weigh(pool, update), update.weights)


def test_weights_by_uncertainty_are_what_it_leaves(pool: Pool) -> None:
    method = ByUncertainty(uncertainty=Half())
    method.start(pool)
    assert pool.uncertainty is not None
    torch.testing.assert_close(pool.weights.per_sample, 1 - pool.uncertainty.float())
    kept = pool.weights.per_sample
    pool.weights.replace(torch.rand(20))
    method.refresh(pool)
    # Half looks at no network, so there is nothing to estimate again.
    assert not torch.equal(pool.weights.per_sample, kept)


def test_an_estimator_that_looks_at_the_network_is_asked_again(pool: Pool) -> None:
    method = ByUncertainty(uncertainty="confidence")
    method.start(pool)
    before = pool.weights.per_sample
    with torch.no_grad():
        for parameter in pool.last.network.parameters():
            parameter.mul_(3)
    method.refresh(pool)
    probs = logits_in_parts(pool.last.network, pool.unlabeled).softmax(-1)
    torch.testing.assert_close(pool.weights.per_sample, probs.amax(-1).float())
    assert not torch.equal(before, pool.weights.per_sample)


GIVEN: dict[str, Callable[[Tensor], Any]] = {
    "a tensor": lambda u: u,
    "a tensor with a gradient": lambda u: u.clone().requires_grad_(),
    "an array": lambda u: u.numpy(),
    "an array of float32": lambda u: u.float().numpy(),
    "a list": lambda u: u.tolist(),
    "truth values": lambda u: (u > 0).numpy(),
}


@pytest.mark.parametrize("what", GIVEN)
def test_an_estimator_of_ones_own_gives_numbers_in_any_form_and_is_asked_again(what: str, pool: Pool) -> None:
    class Own(PoolUncertainty):
        def uncertainty_of(self, pool: PoolView) -> Any:
            return looked(pool)

    def looked(view: PoolView) -> Any:
        asked.append(view.num_classes)
        return GIVEN[what]((torch.arange(len(view.unlabeled)) % 2).double())

    for uncertainty in (Own(), looked):
        asked: list[int] = []
        for method in (ByUncertainty(uncertainty=uncertainty), Meta(uncertainty=uncertainty, clusters=None)):
            method.start(pool)
            assert pool.uncertainty is not None
            assert pool.uncertainty.dtype == torch.float64
            assert pool.uncertainty.tolist() == [0.0, 1.0] * 10
            method.refresh(pool)
        assert asked == [2] * 4


def test_what_a_function_gives_wrongly_is_told_by_its_name(pool: Pool) -> None:
    def far_away(view: PoolView) -> Any:
        return given[-1]

    given: list[Any] = []
    for each, message in (
        ([0.5], "far_away must give one uncertainty for each of 20 samples, got shape"),
        ([7.0] * 20, "the uncertainty of far_away"),
        ("high", "the uncertainty of far_away must be"),
        (None, "the uncertainty of far_away must be"),
    ):
        given.append(each)
        with pytest.raises(EvidentiaError, match=message):
            ByUncertainty(uncertainty=far_away).start(pool)


def test_uasd_keeps_what_a_mean_of_networks_is_surer_of_than_of_clean_samples(pool: Pool) -> None:
    method, total, clean = SelfDistillation(), torch.zeros(()), torch.zeros(())
    method.start(pool)
    for _ in range(3):
        with torch.no_grad():
            for parameter in pool.last.network.parameters():
                parameter.add_(torch.randn_like(parameter))
        total = total + logits_in_parts(pool.last.network, pool.unlabeled).softmax(-1) / 3
        clean = clean + logits_in_parts(pool.last.network, pool.clean[0]).softmax(-1) / 3
        method.refresh(pool)
    expected = (total.amax(-1) >= clean.amax(-1).mean()).float()
    assert torch.equal(pool.weights.per_sample, expected)
    with pytest.raises(EvidentiaError, match="a state of UASD"):
        method.load_state_dict({"other": total})


def test_an_oracle_knows(pool: Pool) -> None:
    pool.is_ood = torch.arange(20) % 3 == 0
    Oracle().start(pool)
    assert torch.equal(pool.weights.per_sample, (~pool.is_ood).float())


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        ("meta", {"every": 0}, "every of Meta"),
        (
            "meta",
            {"clusters": 0},
            "clusters of Meta must be .* at least 1, or None for a weight for each sample, got 0",
        ),
        ("meta", {"scope": "first"}, "scope must be"),
        ("l2rw", {"scope": "foo"}, "scope must be 'last' .* got 'foo'"),
        ("mwn", {"scope": "foo"}, "scope must be 'last' .* got 'foo'"),
        ("ds3l", {"scope": "foo"}, "scope must be 'last' .* got 'foo'"),
        ("meta", {"weight_rate": 3.0}, "weight_rate of Meta must be a number, more than 0 and at most 1, got 3.0"),
        ("ift", {"weight_rate": 0}, "weight_rate of ImplicitDifferentiation"),
        ("meta", {"joint": "false"}, "joint must be True or False, got 'false'"),
        ("meta", {"inner_rate": 0.0}, "inner_rate of Meta"),
        ("meta", {"apply": "both"}, "apply must be"),
        ("meta", {"uncertainty": 3}, "an uncertainty of the pool is"),
        ("ift", {"terms": -1}, "terms of ImplicitDifferentiation"),
        ("l2rw", {"inner_rate": -1.0}, "inner_rate of LearningToReweight"),
        ("mwn", {"hidden": 0}, "hidden of MetaWeightNet"),
        ("ds3l", {"learning_rate": 0}, "learning_rate of SafeDeepSSL"),
        ("uasd", {"refresh_every": 0}, "refresh_every of SelfDistillation"),
        ("uncertainty", {"uncertainty": "pv"}, "there is no uncertainty of the pool named"),
        ("uncertainty", {"uncertainty": Confidence}, r"given the class Confidence; write uncertainty=Confidence\(\)"),
        ("meta", {"uncertainty": Confidence}, r"given the class Confidence; write uncertainty=Confidence\(\)"),
        ("oracle", {"apply": None}, "apply must be"),
    ],
)
def test_settings_out_of_their_range_are_told(kind: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(EvidentiaError, match=message):
        ROBUST[kind](**settings)


def test_settings_that_are_changed_by_hand_are_followed_and_checked() -> None:
    data = two_moons(unlabeled=20)
    for method in (ByUncertainty(uncertainty="confidence"), Meta(uncertainty="confidence")):
        before = method.estimator
        assert method.estimator is before
        method.uncertainty = "kernel"
        assert isinstance(method.estimator, KernelEvidence)
        method.uncertainty = "pv"
        with pytest.raises(EvidentiaError, match="there is no uncertainty of the pool named"):
            _ = method.estimator
    method = Meta(regulariser=WeightRegulariser(uncertainty=0.0))
    assert method.estimator is None
    method.regulariser = WeightRegulariser(uncertainty=1.0)
    assert method.estimator is not None
    oracle = Oracle()
    oracle.apply = "both"  # type: ignore[assignment]
    with pytest.raises(EvidentiaError, match="apply must be 'loss', 'sample' or 'keep', got 'both'"):
        SemiSupervisedClassifier("vat", oracle, updates=2, progress=False).fit(data)


def test_a_method_without_memory_refuses_one() -> None:
    memory = {"values": torch.ones(1)}
    for part, kind in ((ROBUST["none"](), "method"), (OBJECTIVES["vat"](), "objective"), (Half(), "estimator")):
        with pytest.raises(EvidentiaError, match=f"keeps no state, got values; it is of another {kind}"):
            part.load_state_dict(memory)
        part.load_state_dict({})


def test_weights_are_used_as_goes_with_the_uncertainty() -> None:
    assert ByUncertainty().applied == "keep"
    assert ByUncertainty(uncertainty="kernel").applied == "sample"
    assert replace(ByUncertainty(), uncertainty="confidence").applied == "sample"
    assert ByUncertainty(apply="loss").applied == "loss"
