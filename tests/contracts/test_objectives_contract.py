"""What every registered semi-supervised objective must keep; a new one is held to it by being registered."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.func import functional_call

from evidentia import EvidentiaError
from evidentia.learning import batch_weights, convert_batch_norm
from evidentia.semisup import AUGMENTATIONS, MLP, OBJECTIVES, Consistency, LeNet, Objective
from evidentia.semisup.objectives import MeanTeacher

CLASSES = 3
SAMPLES = 7

every_objective = pytest.mark.parametrize("name", sorted(OBJECTIVES))
every_norm = pytest.mark.parametrize("norm", ["none", "batch", "weighted"])


def network(norm: str = "none", dtype: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(1)
    net = MLP(4, CLASSES, hidden=(8, 8), norm="none" if norm == "none" else "batch").to(dtype)
    # Sure of something, so that no confidence threshold leaves everything out.
    net.head.weight.data *= 20
    return convert_batch_norm(net) if norm == "weighted" else net


def samples(count: int = SAMPLES, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(count, 4, generator=torch.Generator().manual_seed(2), dtype=dtype)


def labeled(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    return samples(5, dtype) + 1, torch.tensor([0, 1, 2, 1, 0])


def started(name: str, net: nn.Module) -> Objective:
    objective = OBJECTIVES[name]()
    objective.start(net)
    return objective


def prepared(objective: Objective, net: nn.Module, x: Tensor, seed: int = 3, **options: object) -> Consistency:
    torch.manual_seed(seed)
    return objective.prepare(net, x, AUGMENTATIONS["vectors"](), **options)


def weights_for(net: nn.Module, norm: str, weight: Tensor):
    return batch_weights(net, weight) if norm == "weighted" else nullcontext()


def train(objective: Objective, net: nn.Module, steps: range) -> None:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for step in steps:
        consistency = prepared(objective, net, samples(), seed=step)
        loss = objective.per_sample(net(consistency.inputs), consistency).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        objective.after_step(net)


@every_objective
@every_norm
def test_shapes_dtypes_and_finite_gradients(name, norm, dtype):
    net, x = network(norm, dtype), samples(dtype=dtype)
    objective = started(name, net)
    with weights_for(net, norm, torch.linspace(0, 1, SAMPLES)):
        consistency = prepared(objective, net, x, labeled=labeled(dtype))
        costs = objective.per_sample(net(consistency.inputs), consistency)
    assert consistency.inputs.shape == x.shape
    assert consistency.inputs.dtype == dtype
    assert consistency.counts.shape == costs.shape == (SAMPLES,)
    assert costs.dtype == dtype
    assert (costs > -1e-5).all()
    assert ((consistency.counts >= 0) & (consistency.counts <= 1)).all()
    if consistency.targets is not None:
        assert consistency.targets.shape == (SAMPLES, CLASSES)
        torch.testing.assert_close(consistency.targets.sum(-1), torch.ones(SAMPLES, dtype=dtype))
    gradients = torch.autograd.grad(costs.sum(), net.parameters())
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


@every_objective
@every_norm
@pytest.mark.parametrize("mode", [True, False], ids=["training", "evaluation"])
def test_preparing_leaves_the_network_as_it_is(name, norm, mode):
    net = network(norm).train(mode)
    objective = started(name, net)
    before = copy.deepcopy(net.state_dict())
    with weights_for(net, norm, torch.linspace(0, 1, SAMPLES)):
        consistency = prepared(objective, net, samples(), labeled=labeled())
    assert all(torch.equal(before[key], value) for key, value in net.state_dict().items())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in net.parameters())
    assert all(module.training is mode for module in net.modules())
    parts = [consistency.inputs, consistency.targets, consistency.counts]
    assert not any(part.requires_grad for part in parts if part is not None)


@every_objective
def test_preparing_works_where_gradients_are_off(name):
    net = network()
    with torch.no_grad():
        consistency = prepared(started(name, net), net, samples())
    assert torch.equal(consistency.inputs, prepared(started(name, net), net, samples()).inputs)


@every_objective
def test_a_seed_repeats_everything(name):
    first, second = (prepared(started(name, net), net, samples()) for net in (network(), network()))
    for one, other in zip(dataclasses.astuple(first), dataclasses.astuple(second), strict=True):
        assert one is other is None or torch.equal(one, other)


@every_objective
def test_samples_do_not_matter_to_each_other_in_evaluation_mode(name):
    net = network("batch").eval()
    objective, x = started(name, net), samples()
    consistency = prepared(objective, net, x)
    costs = objective.per_sample(net(consistency.inputs), consistency)
    targets = consistency.targets
    for j in range(SAMPLES):
        alone = Consistency(consistency.inputs[[j]], None if targets is None else targets[[j]], consistency.counts[[j]])
        torch.testing.assert_close(objective.per_sample(net(alone.inputs), alone)[0], costs[j])
    slopes = torch.autograd.functional.jacobian(
        lambda inputs: objective.per_sample(net(inputs), consistency), consistency.inputs
    )
    for i, j in itertools.permutations(range(SAMPLES), 2):
        assert (slopes[i, j] == 0).all()


@every_objective
def test_gradients_in_the_logits_are_right_and_independent(name):
    net = network(dtype=torch.float64)
    objective = started(name, net)
    consistency = prepared(objective, net, samples(dtype=torch.float64))
    logits = torch.randn(SAMPLES, CLASSES, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda z: objective.per_sample(z, consistency), logits)


@every_objective
def test_costs_and_gradients_are_finite_whatever_the_network_says(name, dtype):
    extremes = torch.tensor(list(itertools.product([0.0, 50.0, -50.0, 1e30, -1e30], repeat=CLASSES)), dtype=dtype)
    objective = started(name, nn.Identity())
    consistency = prepared(objective, nn.Identity(), extremes)
    logits = extremes.clone().requires_grad_()
    costs = objective.per_sample(logits, consistency)
    (gradient,) = torch.autograd.grad(costs.sum(), logits)
    assert torch.isfinite(costs).all()
    assert torch.isfinite(gradient).all()


@every_objective
def test_a_stopped_run_resumes_identically(name):
    whole = network("batch")
    objective = started(name, whole)
    train(objective, whole, range(6))

    stopped = network("batch")
    before = started(name, stopped)
    train(before, stopped, range(3))
    saved, tensors = copy.deepcopy(stopped.state_dict()), before.state_dict()
    assert all(isinstance(tensor, Tensor) for tensor in tensors.values())
    # What was saved must not follow what is trained on.
    train(before, stopped, range(3, 5))

    resumed = network("batch")
    resumed.load_state_dict(saved)
    after = started(name, resumed)
    after.load_state_dict(tensors)
    train(after, resumed, range(3, 6))
    assert all(torch.equal(value, resumed.state_dict()[key]) for key, value in whole.state_dict().items())
    ours = after.state_dict()
    assert all(torch.equal(value, ours[key]) for key, value in objective.state_dict().items())


@every_objective
def test_the_loss_can_be_taken_with_other_parameters(name):
    net = network("weighted")
    objective = started(name, net)
    with batch_weights(net, torch.linspace(0, 1, SAMPLES)):
        consistency = prepared(objective, net, samples())
        tensors = {key: value + 0.1 for key, value in net.named_parameters()}
        costs = objective.per_sample(functional_call(net, tensors, (consistency.inputs,)), consistency)
    gradients = torch.autograd.grad(costs.sum(), list(tensors.values()))
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


@every_objective
def test_samples_of_weight_0_do_not_matter_to_the_others(name):
    """Proposition 3 for everything that `prepare` runs: the teacher and the perturbed passes too."""
    net, x = network("weighted"), samples()
    weight = torch.tensor([1.0, 1, 1, 1, 0, 0, 0])
    far = torch.where(weight[:, None] == 0, x + 100, x)
    options = {"alpha": 0.0} if name == "mixmatch" else {}
    objective = OBJECTIVES[name](**options)
    objective.start(net)
    found = []
    for batch in (x, far):
        with batch_weights(net, weight):
            consistency = prepared(objective, net, batch)
            found.append(objective.per_sample(net(consistency.inputs), consistency)[:4])
    torch.testing.assert_close(found[0], found[1], rtol=1e-3, atol=1e-5)


@every_objective
def test_images(name):
    net, x = LeNet((1, 28, 28), CLASSES, norm="batch"), torch.rand(4, 1, 28, 28)
    objective = started(name, net)
    consistency = objective.prepare(net, x, AUGMENTATIONS["images"]())
    assert consistency.inputs.shape == x.shape
    assert objective.per_sample(net(consistency.inputs), consistency).shape == (4,)


@every_objective
def test_networks_that_give_no_logits_are_refused(name):
    net = nn.Flatten(0)
    objective = started(name, net)
    with pytest.raises(EvidentiaError, match=r"logits of shape \(7, K\)"):
        objective.per_sample(net(samples()), prepared(objective, net, samples()))


@every_objective
def test_the_coefficient_is_that_of_the_table_and_can_ramp_up(name):
    assert OBJECTIVES[name]().coefficient(0) == OBJECTIVES[name]().weight
    ramped = OBJECTIVES[name](weight=2.0, rampup=10)
    values = [ramped.coefficient(step) for step in range(15)]
    assert values == sorted(values)
    assert values[0] == pytest.approx(2 * 0.006738, rel=1e-3)
    assert values[10] == 2.0


@every_objective
def test_settings_out_of_range_are_refused(name):
    wrong = {
        "weight": [-1, float("nan"), float("inf"), "1"],
        "rampup": [-1],
        "threshold": [-0.1, 1.1],
        "temperature": [0, -1],
        "decay": [1.0, -0.1],
        "view": ["other"],
        "views": [0, 1.5],
        "alpha": [-1],
        "epsilon": [-1],
        "xi": [0],
        "iterations": [0],
    }
    settings = [field.name for field in dataclasses.fields(OBJECTIVES[name]) if field.init]
    for setting in settings:
        for value in wrong[setting]:
            with pytest.raises(EvidentiaError, match=setting):
                OBJECTIVES[name](**{setting: value})


@every_objective
def test_the_state_of_another_objective_is_refused(name):
    net = network()
    with pytest.raises(EvidentiaError, match="state"):
        started(name, net).load_state_dict({"other": torch.zeros(1)})


def test_every_objective_is_known_by_its_name():
    assert sorted(OBJECTIVES) == [
        "entropy", "fixmatch", "mean-teacher", "mixmatch", "pi-model", "pseudo-label", "uda", "vat",
    ]  # fmt: skip
    assert OBJECTIVES["mean-teacher"] is MeanTeacher
