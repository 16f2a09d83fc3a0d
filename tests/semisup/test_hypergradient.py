"""Hypergradients against autograd through the whole step, finite differences, and exact solutions of small problems."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call, hessian
from torch.nn import functional as F  # noqa: N812

from evidentia._support.errors import EvidentiaError
from evidentia.learning import batch_weights, convert_batch_norm, frozen_statistics
from evidentia.semisup import AUGMENTATIONS, MLP, OBJECTIVES, Augmentation, Consistency, LastLayer, LeNet, Objective
from evidentia.semisup.hypergradients.hypergradient import (
    DivergenceWarning,
    HyperGradient,
    InnerProblem,
    LastLayerProblem,
    ift_gradient,
    ift_gradient_from,
    meta_gradient,
    meta_gradient_from,
)
from evidentia.semisup.hypergradients.neumann import neumann_series

K = 3


@dataclass(kw_only=True, eq=False)
class Squares(Objective):
    """A user's own objective, whose Hessian in the last layer does not depend on anything but the features."""

    def prepare(self, network: nn.Module, x: Tensor, augment: Augmentation, **_: object) -> Consistency:
        return Consistency(x, torch.zeros(len(x), K, dtype=x.dtype), x.new_ones(len(x)))

    def per_sample(self, logits: Tensor, consistency: Consistency) -> Tensor:
        assert consistency.targets is not None
        return (logits - consistency.targets).square().sum(-1) / 2


@dataclass(kw_only=True, eq=False)
class Linear(Squares):
    """Costs that are linear in the logits: no curvature at all."""

    def per_sample(self, logits: Tensor, consistency: Consistency) -> Tensor:
        assert consistency.targets is not None
        return (logits * consistency.targets).sum(-1)


class OwnNetwork(nn.Module):
    """A user's network: a layer used twice, one unused, one frozen, and a buffer that changes by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.norm = nn.BatchNorm1d(6)
        self.again = nn.Linear(6, 6)
        self.unused = nn.Linear(2, 2)
        self.register_buffer("calls", torch.zeros(()))
        self.outermost = nn.Linear(6, K, bias=False)
        self.again.bias.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        x = torch.tanh(self.norm(self.first(x)))
        x = torch.tanh(self.again(torch.tanh(self.again(x))))
        return self.outermost(x)


def classes(size: int) -> Tensor:
    return torch.arange(size) % K


def make(
    network: nn.Module,
    objective: Objective | str = "pi-model",
    sizes: tuple[int, int, int] = (6, 8, 5),
    dtype: torch.dtype = torch.float64,
    weights: Tensor | None = None,
    shape: tuple[int, ...] = (4,),
    **settings: object,
) -> InnerProblem:
    """A step on random samples, with targets of the usual size: those of `prepare` may be what the network says."""
    n, unlabeled, m = sizes
    x = torch.randn(n + unlabeled + m, *shape, dtype=dtype)
    targets = torch.randn(unlabeled, K, dtype=dtype).softmax(-1)
    counts = (torch.arange(unlabeled) % 4 != 3).to(dtype)
    problem = InnerProblem(
        LastLayer(network.to(dtype)),
        OBJECTIVES[objective]() if isinstance(objective, str) else objective,
        Consistency(x[n : n + unlabeled], targets, counts),
        0.7,
        (x[:n], classes(n)),
        (x[n + unlabeled :] + 0.5, classes(m)),
        torch.rand(unlabeled, dtype=dtype) if weights is None else weights.to(dtype),
        0.1,
    )
    return replace(problem, **settings)  # type: ignore[arg-type]


def mlp(norm: str = "none", *, weighted: bool = True, **settings: object) -> nn.Module:
    # Smooth, because finite differences across a kink are no derivative.
    network = MLP(4, K, hidden=(7, 5), norm=norm, **settings)  # type: ignore[arg-type]
    network.body = nn.Sequential(*(nn.Tanh() if isinstance(each, nn.ReLU) else each for each in network.body))
    return convert_batch_norm(network) if weighted else network


def validation_loss(
    problem: InnerProblem, w: Tensor, names: set[str] | None, statistics: Tensor | None = None, steps: int = 1
) -> Tensor:
    """L_V after steps of the named parameters, all by autograd; None names them all, `statistics` weigh the passes."""
    network, weighted = problem.last.network, w if statistics is None else statistics
    norms = any(isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d) for layer in network.modules())
    can_weigh = norms and all(
        "Weighted" in type(layer).__name__ for layer in network.modules() if "BatchNorm" in str(type(layer))
    )
    n, (xv, yv) = len(problem.labeled[0]), problem.validation
    parameters = {name: each for name, each in network.named_parameters() if each.requires_grad}
    stepping = set(parameters) if names is None else names

    def run(tensors: dict[str, Tensor], x: Tensor, weights: Tensor | None) -> Tensor:
        with batch_weights(network, weights) if can_weigh else nullcontext():
            return functional_call(network, {**tensors, **{k: v.clone() for k, v in network.named_buffers()}}, (x,))

    with frozen_statistics(network):
        for _ in range(steps):
            if problem.concat:
                both = torch.cat([problem.labeled[0], problem.consistency.inputs])
                logits = run(parameters, both, torch.cat([w.new_ones(n), weighted]))
                logits_l, logits_u = logits[:n], logits[n:]
            else:
                logits_l = run(parameters, problem.labeled[0], None)
                logits_u = run(parameters, problem.consistency.inputs, weighted)
            costs = problem.objective.per_sample(logits_u, problem.consistency)
            loss = F.cross_entropy(logits_l, problem.labeled[1]) + problem.coefficient * (w * costs).sum() / len(w)
            chosen = [name for name in parameters if name in stepping]
            slopes = torch.autograd.grad(
                loss, [parameters[name] for name in chosen], create_graph=True, materialize_grads=True
            )
            parameters = {
                **parameters,
                **{k: parameters[k] - problem.rate * g for k, g in zip(chosen, slopes, strict=True)},
            }
        if problem.joint:
            x = torch.cat([xv, problem.consistency.inputs])
            return F.cross_entropy(run(parameters, x, torch.cat([w.new_ones(len(xv)), w]))[: len(xv)], yv)
        return F.cross_entropy(run(parameters, xv, None), yv)


def of_last_layer(problem: InnerProblem) -> set[str]:
    own = {id(each) for each in problem.last.head.parameters()}
    return {name for name, each in problem.last.network.named_parameters() if id(each) in own}


def by_autograd(problem: InnerProblem, scope: str) -> Tensor:
    w = problem.weights.clone().requires_grad_()
    names, statistics = None, None
    if scope == "last":
        problem.last.hidden_and_logits(problem.validation[0])
        names, statistics = of_last_layer(problem), problem.weights
    (gradient,) = torch.autograd.grad(validation_loss(problem, w, names, statistics), w)
    return gradient


def by_differences(loss: Callable[[Tensor], Tensor], w: Tensor, step: float = 1e-5) -> Tensor:
    columns = torch.eye(len(w), dtype=w.dtype) * step
    return torch.stack([(loss(w + each).detach() - loss(w - each).detach()) / (2 * step) for each in columns])


def relative_error(ours: Tensor, reference: Tensor) -> float:
    return float((ours - reference).norm() / reference.norm().clamp(min=1e-30))


PRECISION = {torch.float32: 1e-4, torch.float64: 1e-9}


@given(
    sizes=st.tuples(st.integers(2, 12), st.integers(2, 20), st.integers(2, 12)),
    objective=st.sampled_from(sorted(OBJECTIVES)),
    norm=st.sampled_from(["none", "batch"]),
    joint=st.booleans(),
    concat=st.booleans(),
    precise=st.booleans(),
    rate=st.floats(1e-3, 2.0),
    data=st.data(),
)
def test_closed_form_is_autograd_through_the_step(sizes, objective, norm, joint, concat, precise, rate, data) -> None:
    torch.manual_seed(data.draw(st.integers(0, 10_000)))
    dtype = torch.float64 if precise else torch.float32
    weights = torch.tensor(data.draw(st.lists(st.floats(0.01, 1), min_size=sizes[1], max_size=sizes[1])))
    problem = make(mlp(norm), objective, sizes, dtype, weights, joint=joint, concat=concat, rate=rate)
    ours = meta_gradient(problem)
    assert ours.gradient.dtype == dtype
    assert ours.gradient.shape == weights.shape
    assert relative_error(ours.gradient, by_autograd(problem, "last")) <= PRECISION[dtype]


def test_closed_form_is_the_formula_of_the_specification() -> None:
    problem = make(mlp(), "pseudo-label")
    ours = meta_gradient(problem)
    hidden, logits = problem.last.hidden_and_logits(problem.consistency.inputs)
    head = problem.last.head
    hidden_l, logits_l = problem.last.hidden_and_logits(problem.labeled[0])
    # Cross entropy: G_j = p_j - t_j where the sample counts.
    G = problem.consistency.counts[:, None] * (logits.softmax(-1) - problem.consistency.targets)
    G_l = logits_l.softmax(-1) - F.one_hot(problem.labeled[1], K)
    W = head.weight - 0.1 * (G_l.T @ hidden_l / 6 + 0.7 / 8 * (problem.weights[:, None] * G).T @ hidden)
    b = head.bias - 0.1 * (G_l.mean(0) + 0.7 / 8 * (problem.weights[:, None] * G).sum(0))
    hidden_v, _ = problem.last.hidden_and_logits(problem.validation[0])
    away = ((hidden_v @ W.T + b).softmax(-1) - F.one_hot(problem.validation[1], K)) / 5
    expected = -0.1 * 0.7 / 8 * (G * (hidden @ (away.T @ hidden_v).T + away.sum(0))).sum(1)
    torch.testing.assert_close(ours.gradient, expected.detach())
    torch.testing.assert_close(
        ours.validation_loss, F.cross_entropy(hidden_v @ W.T + b, problem.validation[1]).detach()
    )
    assert ours.direct is None


@pytest.mark.parametrize("norm", ["none", "batch"])
@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("concat", [False, True])
def test_meta_by_the_full_network_is_the_finite_difference(norm: str, joint: bool, concat: bool) -> None:
    problem = make(mlp(norm), "pi-model", joint=joint, concat=concat, rate=0.5)
    ours = meta_gradient(problem, "full")
    slope = by_differences(lambda w: validation_loss(problem, w, None), problem.weights)
    assert relative_error(ours.gradient, slope) < 1e-6
    torch.testing.assert_close(ours.validation_loss, validation_loss(problem, problem.weights, None).detach())


@pytest.mark.parametrize("scope", ["last", "full"])
def test_joint_gradient_is_the_finite_difference(scope: str) -> None:
    problem = make(mlp("batch"), "vat", joint=True)
    ours = meta_gradient(problem, scope)
    problem.last.hidden_and_logits(problem.validation[0])
    names, fixed = (of_last_layer(problem), problem.weights) if scope == "last" else (None, None)
    slope = by_differences(lambda w: validation_loss(problem, w, names, fixed), problem.weights)
    assert relative_error(ours.gradient, slope) < 1e-6
    # Without steps to speak of only the direct way is left.
    still = meta_gradient(replace(problem, rate=1e-12), scope)
    assert still.direct is not None
    assert relative_error(still.direct, still.gradient) < 1e-6


def test_direct_part_sees_faraway_samples_that_the_step_does_not() -> None:
    network = mlp("batch")
    n, faraway = 6, torch.randn(8, 4, dtype=torch.float64) + 50
    problem = make(network, "pi-model", joint=True)
    inputs = torch.cat([problem.labeled[0][:4], faraway[:4]])
    with batch_weights(network, torch.ones(n + 8)):
        said = network(torch.cat([problem.labeled[0], inputs])).softmax(-1).detach()[n:]
    # They are taught what the network says already, so that its step is blind to them.
    problem = replace(problem, consistency=Consistency(inputs, said, torch.ones(8)), weights=torch.ones(8).double())
    blind, seeing = meta_gradient(replace(problem, joint=False)), meta_gradient(problem)
    assert blind.gradient.abs().max() < 1e-12
    assert seeing.gradient[4:].abs().min() > 1e-6


@pytest.mark.parametrize("scope", ["last", "full"])
@pytest.mark.parametrize("method", [meta_gradient, ift_gradient])
def test_without_batch_statistics_the_direct_part_is_zero(method, scope: str) -> None:
    for network in (mlp(), mlp("batch").eval()):
        problem = make(network)
        joint = method(replace(problem, joint=True), scope)
        assert torch.equal(joint.direct, torch.zeros(8, dtype=torch.float64))
        torch.testing.assert_close(joint.gradient, method(problem, scope).gradient)


@pytest.mark.parametrize("method", [meta_gradient, ift_gradient])
def test_a_linear_network_is_its_last_layer(method, dtype: torch.dtype) -> None:
    problem = make(nn.Linear(4, K), "mean-teacher", dtype=dtype)
    last, full = method(problem, "last"), method(problem, "full")
    assert relative_error(last.gradient, full.gradient) < PRECISION[dtype]
    torch.testing.assert_close(last.validation_loss, full.validation_loss)


def test_plain_batch_norm_counts_all_samples_alike() -> None:
    network = mlp("batch", weighted=False)
    problem = make(network)
    alike = replace(problem, last=LastLayer(convert_batch_norm(deepcopy(network))), weights=torch.ones(8).double())
    for scope in ("last", "full"):
        assert relative_error(meta_gradient(problem, scope).gradient, by_autograd(problem, scope)) < 1e-9
    ones = replace(problem, weights=torch.ones(8).double())
    torch.testing.assert_close(meta_gradient(ones).gradient, meta_gradient(alike).gradient)
    with pytest.raises(EvidentiaError, match="convert_batch_norm"):
        meta_gradient(replace(problem, joint=True))


# Implicit differentiation


def strongly_convex(**settings: object) -> InnerProblem:
    """Squares on features that span the space: the loss has one minimum, and a Hessian of full rank."""
    settings = {"rate": 0.3, **settings}
    return make(nn.Linear(2, K), Squares(), (4, 6, 5), weights=0.5 + torch.rand(6) / 2, shape=(2,), **settings)


def inner_loss(problem: InnerProblem, flat: Tensor, w: Tensor) -> Tensor:
    """L_T of a linear network, written out."""
    W, b = flat[:-K].view(K, -1), flat[-K:]
    (x, y), (u, t) = problem.labeled, (problem.consistency.inputs, problem.consistency.targets)
    costs = (u @ W.T + b - t).square().sum(1) / 2
    return F.cross_entropy(x @ W.T + b, y) + problem.coefficient * (w * costs).mean()


def flat_parameters(problem: InnerProblem) -> Tensor:
    return torch.cat([each.detach().flatten() for each in problem.last.network.parameters()])


def solved(problem: InnerProblem, w: Tensor) -> Tensor:
    """The minimum of the inner loss, by Newton's method."""
    theta = flat_parameters(problem)
    for _ in range(7):
        slope = torch.func.grad(lambda flat: inner_loss(problem, flat, w))(theta)
        theta = theta - torch.linalg.solve(hessian(lambda flat: inner_loss(problem, flat, w))(theta), slope)
    return theta


def clean_loss(problem: InnerProblem, flat: Tensor) -> Tensor:
    x, y = problem.validation
    return F.cross_entropy(x @ flat[:-K].view(K, -1).T + flat[-K:], y)


def implicit(problem: InnerProblem, theta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hessian, mixed derivative and outer gradient at given parameters, all by torch.func."""
    w = problem.weights
    H = hessian(lambda flat: inner_loss(problem, flat, w))(theta)
    mixed = torch.func.jacrev(torch.func.grad(lambda flat, w: inner_loss(problem, flat, w)), argnums=1)(theta, w)
    return H, mixed, torch.func.grad(lambda flat: clean_loss(problem, flat))(theta)


@pytest.mark.parametrize("scope", ["last", "full"])
def test_ift_converges_to_the_exact_implicit_derivative(scope: str) -> None:
    problem = strongly_convex()
    exact = by_differences(lambda w: clean_loss(problem, solved(problem, w)), problem.weights)
    H, mixed, pull = implicit(problem, solved(problem, problem.weights))
    assert relative_error(-(torch.linalg.solve(H, pull) @ mixed), exact) < 1e-6
    ours = ift_gradient(problem, scope, inner_steps=400, terms=400)
    assert relative_error(ours.gradient, exact) < 1e-6
    torch.testing.assert_close(ours.validation_loss, clean_loss(problem, solved(problem, problem.weights)))


@pytest.mark.parametrize("scope", ["last", "full"])
def test_error_shrinks_as_the_largest_eigenvalue_says(scope: str) -> None:
    problem = strongly_convex()
    H, mixed, pull = implicit(problem, flat_parameters(problem))
    exact = -(torch.linalg.solve(H, pull) @ mixed)
    shrink = torch.eye(len(H), dtype=H.dtype) - problem.rate * H
    values, directions = torch.linalg.eigh(shrink)
    # Cross entropy does not change if all classes' parameters move alike, so nothing pulls along those directions.
    factor = values[(pull @ directions).abs() > 1e-9].abs().max().item()
    assert factor < 1
    errors = []
    for terms in range(0, 100, 5):
        ours = ift_gradient(problem, scope, inner_steps=0, terms=terms).gradient
        missing = torch.linalg.matrix_power(shrink, terms + 1) @ torch.linalg.solve(H, pull)
        torch.testing.assert_close(ours - exact, missing @ mixed, rtol=1e-7, atol=1e-12)
        errors.append(float((ours - exact).norm()))
    assert errors[-1] / errors[-2] == pytest.approx(factor**5, rel=0.05)


@pytest.mark.parametrize("objective", sorted(OBJECTIVES))
def test_ift_series_of_every_objective_is_that_of_its_hessian(objective: str) -> None:
    problem = make(mlp("batch"), objective, rate=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)
        ours = ift_gradient(problem, inner_steps=2, terms=4)
    inner = features(problem)
    w, head = problem.weights, torch.cat([inner.head.weight, inner.head.bias[:, None]], 1).detach()

    def extended(hidden: Tensor) -> Tensor:
        return torch.cat([hidden, torch.ones(len(hidden), 1, dtype=hidden.dtype)], 1)

    def loss(A: Tensor, w: Tensor) -> Tensor:
        costs = problem.objective.per_sample(extended(inner.unlabeled) @ A.T, problem.consistency)
        return F.cross_entropy(extended(inner.labeled[0]) @ A.T, inner.labeled[1]) + 0.7 * (w * costs).mean()

    for _ in range(2):
        head = head - 0.05 * torch.func.grad(loss)(head, w)
    size = head.numel()
    H = hessian(lambda A: loss(A, w))(head).reshape(size, size)
    mixed = torch.func.jacrev(torch.func.grad(loss), argnums=1)(head, w).reshape(size, -1)
    pull = torch.func.grad(lambda A: F.cross_entropy(extended(inner.validation[0]) @ A.T, inner.validation[1]))(head)
    shrink = torch.eye(size, dtype=H.dtype) - 0.05 * H
    series = sum(torch.linalg.matrix_power(shrink, p) for p in range(5))
    assert relative_error(ours.gradient, -0.05 * (series @ pull.flatten()) @ mixed) < 1e-9


@pytest.mark.parametrize("scope", ["last", "full"])
@pytest.mark.parametrize("joint", [False, True])
def test_meta_is_ift_without_terms_as_the_rate_goes_to_zero(scope: str, joint: bool) -> None:
    problem = make(mlp("batch"), joint=joint)
    gaps = []
    for rate in (1e-2, 1e-3, 1e-4):
        step = replace(problem, rate=rate)
        meta, ift = meta_gradient(step, scope), ift_gradient(step, scope, inner_steps=1, terms=0)
        torch.testing.assert_close(meta.validation_loss, ift.validation_loss)
        # The part that the step brings is itself of the order of the rate.
        brought = meta.gradient - (meta.direct if meta.direct is not None else 0)
        gaps.append(float((meta.gradient - ift.gradient).norm() / brought.norm()))
    # To first order, so that a tenth of the rate leaves a tenth of the gap.
    assert gaps[0] > 0
    assert gaps[1] / gaps[0] == pytest.approx(0.1, rel=0.3)
    assert gaps[2] / gaps[1] == pytest.approx(0.1, rel=0.3)


@pytest.mark.parametrize("scope", ["last", "full"])
def test_ift_with_joint_adds_the_direct_part(scope: str) -> None:
    problem = make(mlp("batch"), joint=True)
    ours = ift_gradient(problem, scope, inner_steps=0, terms=0)
    meta = meta_gradient(replace(problem, rate=1e-12), scope)
    torch.testing.assert_close(ours.direct, meta.direct)
    # At the same parameters and the same rate both see the same step.
    tiny = ift_gradient(replace(problem, rate=1e-12), scope, inner_steps=0, terms=3)
    assert relative_error(tiny.gradient, meta.gradient) < 1e-6


@pytest.mark.parametrize("scope", ["last", "full"])
def test_growing_terms_are_warned_of(scope: str) -> None:
    problem = strongly_convex()
    largest = torch.linalg.eigvalsh(implicit(problem, flat_parameters(problem))[0])[-1].item()
    too_large = replace(problem, rate=3 / largest)
    with pytest.warns(DivergenceWarning, match="use a rate below") as caught:
        ift_gradient(too_large, scope, inner_steps=0, terms=10)
    advised = float(str(caught[0].message).rsplit(" ", 1)[1])
    assert 0.45 * 2 / largest < advised < 1.1 * 2 / largest
    # Silent with the advised rate, and where no term is taken.
    ift_gradient(replace(problem, rate=0.95 * advised), scope, inner_steps=0, terms=10)
    ift_gradient(too_large, scope, inner_steps=0, terms=0)


def test_a_training_in_which_every_series_grows_says_so_once() -> None:
    v = torch.ones(2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for curvature in torch.linspace(34, 39, 20).tolist():
            neumann_series([v], lambda u, times=curvature: [times * u[0]], rate=0.1, terms=3)
    assert len(caught) == 1


def test_growth_by_negative_curvature_or_without_end_is_warned_of() -> None:
    v = torch.ones(2)
    with pytest.warns(DivergenceWarning, match="not convex"):
        neumann_series([v], lambda u: [-u[0]], rate=0.5, terms=3)
    with pytest.warns(DivergenceWarning, match="not finite"):
        neumann_series([v], lambda u: [1e30 * u[0]], rate=1.0, terms=3)
    neumann_series([v], lambda u: [-0.01 * u[0]], rate=0.5, terms=3)
    neumann_series([0 * v], lambda u: [9 * u[0]], rate=1.0, terms=3)


def test_unscaled_series_of_the_thesis_diverges_where_ours_does_not() -> None:
    H, v = torch.diag(torch.tensor([9.0, 1.0])), torch.ones(2)
    ours = neumann_series([v], lambda u: [H @ u[0]], rate=0.1, terms=200)[0]
    torch.testing.assert_close(ours, torch.tensor([1 / 9, 1.0]))
    with pytest.warns(DivergenceWarning):
        theirs = neumann_series([v], lambda u: [H @ u[0]], rate=1.0, terms=10)[0]
    assert theirs.norm() > 1e6


def test_costs_without_curvature() -> None:
    problem = make(mlp(), Linear())
    for scope in ("last", "full"):
        assert relative_error(meta_gradient(problem, scope).gradient, by_autograd(problem, scope)) < 1e-9
    assert ift_gradient(problem).gradient.isfinite().all()


# What a trainer relies on


def features(problem: InnerProblem) -> LastLayerProblem:
    """What a training step has at hand, computed as it would."""
    last, n = problem.last, len(problem.labeled[0])
    with torch.no_grad(), frozen_statistics(last.network):
        with batch_weights(last.network, torch.cat([problem.weights.new_ones(n), problem.weights])):
            hidden, _ = last.hidden_and_logits(torch.cat([problem.labeled[0], problem.consistency.inputs]))
        clean, _ = last.hidden_and_logits(problem.validation[0])
    return LastLayerProblem(
        head=last.head,
        objective=problem.objective,
        consistency=problem.consistency,
        coefficient=problem.coefficient,
        labeled=(hidden[:n], problem.labeled[1]),
        unlabeled=hidden[n:],
        validation=(clean, problem.validation[1]),
        weights=problem.weights,
        rate=problem.rate,
    )


def test_features_of_the_training_step_give_the_same(dtype: torch.dtype) -> None:
    problem = make(mlp("batch"), "vat", dtype=dtype)
    torch.testing.assert_close(meta_gradient_from(features(problem)).gradient, meta_gradient(problem).gradient)
    torch.testing.assert_close(ift_gradient_from(features(problem)).gradient, ift_gradient(problem).gradient)


def test_joint_from_the_very_pass_of_the_training_step() -> None:
    problem = make(mlp("batch"), joint=True)
    problem = replace(problem, validation=problem.labeled)
    network, n = problem.last.network, len(problem.labeled[0])
    statistics = problem.weights.clone().requires_grad_()
    with frozen_statistics(network), batch_weights(network, torch.cat([statistics.new_ones(n), statistics])):
        hidden, logits = problem.last.hidden_and_logits(torch.cat([problem.labeled[0], problem.consistency.inputs]))
    step = replace(
        features(problem), validation=(hidden[:n], problem.labeled[1]), unlabeled=hidden[n:], statistics=statistics
    )
    torch.testing.assert_close(meta_gradient_from(step).gradient, meta_gradient(problem).gradient)
    # The step itself can still go back through its pass.
    logits.sum().backward()


def state(network: nn.Module) -> list[Tensor]:
    gradients = [torch.zeros(0) if each.grad is None else each.grad.clone() for each in network.parameters()]
    return [each.clone() for each in network.state_dict().values()] + gradients


@pytest.mark.parametrize("method", [meta_gradient, ift_gradient])
@pytest.mark.parametrize("scope", ["last", "full"])
@pytest.mark.parametrize("joint", [False, True])
def test_network_is_left_as_it_was(method, scope: str, joint: bool) -> None:
    network = convert_batch_norm(OwnNetwork())
    problem = make(network, joint=joint, weights=torch.rand(8, dtype=torch.float64).requires_grad_())
    network.first.weight.grad = torch.randn_like(network.first.weight)
    network.again.eval()
    before, modes = state(network), [each.training for each in network.modules()]
    tracking, required = network.norm.track_running_stats, [each.requires_grad for each in network.parameters()]
    with torch.no_grad():
        ours = method(problem, scope)
    assert all(torch.equal(old, new) for old, new in zip(before, state(network), strict=True))
    assert [each.training for each in network.modules()] == modes
    assert [each.requires_grad for each in network.parameters()] == required
    assert network.norm.track_running_stats == tracking
    assert network.norm._shares is None
    assert not ours.gradient.requires_grad
    assert not ours.validation_loss.requires_grad
    assert problem.weights.grad is None


@pytest.mark.parametrize("scope", ["last", "full"])
def test_users_own_network(scope: str) -> None:
    problem = make(convert_batch_norm(OwnNetwork()), "fixmatch")
    assert relative_error(meta_gradient(problem, scope).gradient, by_autograd(problem, scope)) < 1e-9


def test_inside_the_weights_of_a_training_step() -> None:
    problem = make(mlp("batch"))
    alone = meta_gradient(problem)
    with batch_weights(problem.last.network, torch.rand(14)):
        inside = meta_gradient(problem)
    assert torch.equal(alone.gradient, inside.gradient)


@pytest.mark.parametrize("scope", ["last", "full"])
def test_images(scope: str) -> None:
    network = convert_batch_norm(LeNet((1, 12, 12), K))
    problem = make(network, "fixmatch", shape=(1, 12, 12), joint=True)
    assert relative_error(meta_gradient(problem, scope).gradient, by_autograd(problem, scope)) < 1e-8


def test_gradient_tells_good_samples_from_bad_ones() -> None:
    # The clean loss falls if samples with right targets count more and those with wrong ones count less.
    network, objective = nn.Linear(K, K), OBJECTIVES["pseudo-label"]()
    x = torch.eye(K).repeat(4, 1)
    targets = torch.cat([torch.eye(K).repeat(2, 1), torch.eye(K).roll(1, 0).repeat(2, 1)])
    consistency = Consistency(x, targets, torch.ones(12))
    labeled = torch.eye(K), torch.arange(K)
    problem = InnerProblem(LastLayer(network), objective, consistency, 1.0, labeled, labeled, torch.ones(12), 0.1)
    for ours in (meta_gradient(problem), ift_gradient(problem)):
        assert (ours.gradient[:6] < 0).all()
        assert (ours.gradient[6:] > 0).all()


def test_prepared_batches_of_every_objective(dtype: torch.dtype) -> None:
    network = mlp("batch").to(dtype)
    x, labeled = torch.randn(8, 4, dtype=dtype), (torch.randn(6, 4, dtype=dtype), classes(6).int())
    for name in OBJECTIVES:
        objective = OBJECTIVES[name]()
        objective.start(network)
        consistency = objective.prepare(network, x, AUGMENTATIONS["vectors"](), labeled=labeled)
        problem = InnerProblem(
            LastLayer(network), objective, consistency, objective.coefficient(0), labeled, labeled, torch.ones(8), 0.01
        )
        for scope in ("last", "full"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DivergenceWarning)
                results: list[HyperGradient] = [meta_gradient(problem, scope), ift_gradient(problem, scope)]
            assert all(ours.gradient.isfinite().all() and ours.gradient.dtype == torch.float32 for ours in results)


@pytest.mark.parametrize("method", [meta_gradient, ift_gradient])
@pytest.mark.parametrize("scope", ["last", "full"])
def test_a_last_layer_with_a_computed_weight_stays_as_it_is(method, scope: str) -> None:
    head = nn.utils.parametrizations.spectral_norm(nn.Linear(5, K))
    problem = make(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), head))
    before = deepcopy(problem.last.network.state_dict())
    method(problem, scope)
    after = problem.last.network.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": torch.ones(7)}, r"weights of shape \(7,\) and 8 samples"),
        ({"weights": torch.ones(8, 1)}, r"weights of shape \(8, 1\)"),
        ({"validation": (torch.ones(0, 4), torch.ones(0).long())}, "validation batch must be at least one sample"),
        ({"labeled": (torch.ones(2, 4), torch.ones(2))}, "class index for each.*float32"),
        ({"labeled": (torch.ones(2, 4), torch.ones(3).long())}, "2 samples and labels of shape"),
        ({"rate": 0.0}, "rate of the inner step must be a number, more than 0"),
        ({"rate": math.nan}, "rate of the inner step"),
        ({"coefficient": -1.0}, "coefficient of the unlabeled loss must be a number, at least 0"),
    ],
)
def test_bad_problems_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(EvidentiaError, match=message):
        make(mlp(), **change)


def test_bad_settings_are_refused() -> None:
    problem = make(mlp())
    with pytest.raises(EvidentiaError, match="scope must be 'last'"):
        meta_gradient(problem, "first")  # type: ignore[arg-type]
    with pytest.raises(EvidentiaError, match="inner_steps must be a whole number"):
        ift_gradient(problem, inner_steps=-1)
    with pytest.raises(EvidentiaError, match="terms must be a whole number"):
        ift_gradient(problem, "full", terms=1.5)  # type: ignore[arg-type]
    with pytest.raises(EvidentiaError, match="nothing to learn"):
        meta_gradient(make(mlp().requires_grad_(False)), "full")

    class Whole(Squares):
        def per_sample(self, logits: Tensor, consistency: Consistency) -> Tensor:
            return super().per_sample(logits, consistency).mean()

    for scope in ("last", "full"):
        with pytest.raises(EvidentiaError, match="one cost a sample"):
            meta_gradient(make(mlp(), Whole()), scope)  # type: ignore[arg-type]
