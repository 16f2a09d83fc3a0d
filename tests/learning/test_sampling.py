"""MC dropout and ensembles: one interface, for every task, with or without opinions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.distributions import Dirichlet

import evidentia as ev
from evidentia import EvidentiaError
from evidentia.learning import Ensemble, MCDropout, match_moments

X = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
TASKS = {"multiclass": 3, "binary": 2, "multilabel": 5}


def model(seed=0, dropout=0.5, task="multiclass", method="edl", **options):
    torch.manual_seed(seed)
    layers = [nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU()] + ([nn.Dropout(dropout)] if dropout else [])
    made = ev.EvidentialClassifier(nn.Sequential(*layers), TASKS[task], method=method, task=task, **options)
    made(X)
    return made


def same(first, second):
    return torch.equal(first.probs, second.probs) and all(
        torch.equal(values, second[name]) for name, values in first.uncertainties.items()
    )


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("method", ["edl", "softmax", "f-edl"])
def test_mc_dropout_repeats_by_its_seed_and_leaves_everything_as_it_was(task, method):
    net = model(task=task, method=method)
    net.backbone[1].eval()  # frozen by its owner
    modes = [module.training for module in net.modules()]
    state = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    random = torch.get_rng_state()
    first = MCDropout(net, samples=5, seed=3).predict(X)
    assert torch.equal(torch.get_rng_state(), random)
    assert [module.training for module in net.modules()] == modes
    assert all(torch.equal(tensor, state[name]) for name, tensor in net.state_dict().items())
    torch.manual_seed(99)
    assert same(first, MCDropout(net, samples=5, seed=3).predict(X))
    assert not torch.equal(first.probs, MCDropout(net, samples=5, seed=4).predict(X).probs)
    assert (first.opinion is None) == (method == "softmax")
    assert first.task == task
    assert first.labels.shape == net.predict(X).labels.shape


def test_mc_dropout_is_the_mean_over_samples_and_the_opinion_of_the_mean_output():
    net = model()
    sampled = MCDropout(net, samples=7)
    outputs = sampled.sample(X)
    assert outputs.shape == (7, 30, 3)
    pred = sampled.predict(X)
    probs = net.method.probs(outputs)
    torch.testing.assert_close(pred.probs, probs.mean(0))
    torch.testing.assert_close(pred["epistemic"], ev.epistemic(probs))
    torch.testing.assert_close(pred["aleatoric"], ev.aleatoric(probs))
    assert pred.opinion.allclose(net.method.opinion(outputs.mean(0)))


def test_without_a_seed_mc_dropout_follows_the_global_random_state():
    sampled = MCDropout(model(), samples=3, seed=None)
    torch.manual_seed(1)
    first, second = sampled.predict(X), sampled.predict(X)
    assert not same(first, second)
    torch.manual_seed(1)
    assert same(first, sampled.predict(X))


def test_epistemic_uncertainty_is_how_much_dropout_matters():
    barely, much = (MCDropout(model(dropout=p), samples=10).predict(X)["epistemic"] for p in (1e-12, 0.5))
    assert float(barely.max()) < 1e-6
    assert float(much.mean()) > 1e-3


def test_an_error_inside_the_network_leaves_modes_as_they_were():
    net = model().train()
    net.backbone[3].register_forward_hook(lambda *_: 1 / 0)
    for broken in (MCDropout(net).predict, Ensemble([net]).predict, net.predict):
        with pytest.raises(ZeroDivisionError):
            broken(X)
        assert all(module.training for module in net.modules())


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("method", ["edl", "softmax"])
def test_an_ensemble_is_the_mean_over_its_members(task, method):
    members = [model(seed, task=task, method=method) for seed in range(3)]
    members[1].eval()
    pred = Ensemble(members).predict(X, batch_size=7)
    assert [member.training for member in members] == [True, False, True]
    alone = [member.predict(X) for member in members]
    torch.testing.assert_close(pred.probs, torch.stack([p.probs for p in alone]).mean(0))
    assert pred.labels.shape == alone[0].labels.shape
    assert float(pred["epistemic"].mean()) > 0
    if method == "softmax":
        assert pred.opinion is None
    else:
        assert type(pred.opinion) is type(alone[0].opinion)


@pytest.mark.parametrize("task", TASKS)
def test_identical_members_give_the_members_own_prediction(task):
    member = model(task=task)
    alone, pred = member.predict(X), Ensemble([member, member]).predict(X)
    torch.testing.assert_close(pred.probs, alone.probs)
    assert pred.opinion.allclose(alone.opinion, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(pred["epistemic"], torch.zeros_like(pred["epistemic"]), atol=1e-6, rtol=0)


def test_moment_matching_has_the_mean_and_total_variance_of_the_mixture():
    alpha = torch.tensor([[8.0, 2.0, 1.0], [3.0, 5.0, 2.0], [10.0, 9.0, 1.0]], dtype=torch.float64)
    matched = Dirichlet(match_moments(alpha))
    p = Dirichlet(alpha).sample((200_000,)).reshape(-1, 3)
    assert bool(((p.mean(0) - matched.mean).abs() < 5 * p.std(0) / len(p) ** 0.5).all())
    spread = (p - matched.mean).square().sum(-1)
    assert abs(float(spread.mean() - matched.variance.sum())) < 5 * float(spread.std()) / len(p) ** 0.5


@pytest.mark.parametrize("evidence", [0.0, 1.0, 1e6, 1e15, 1e30])
def test_moment_matching_of_identical_members_keeps_every_digit(evidence, dtype):
    alpha = torch.tensor([[evidence + 1, 1.0, 3.0]], dtype=dtype)
    torch.testing.assert_close(match_moments(alpha.repeat(4, 1)), alpha[0], rtol=1e-6, atol=0)


def test_members_that_contradict_each_other_leave_little_evidence():
    one, other = torch.tensor([[900.0, 1, 1]]), torch.tensor([[1.0, 900, 1]])
    matched = match_moments(torch.stack([one, other]))
    assert float(matched.sum()) < 2
    agreeing = match_moments(torch.stack([one, 1.1 * one]))
    assert float(agreeing.sum()) > 700


def test_members_have_their_own_density():
    members = [model(seed, method="daedl") for seed in range(2)]
    for member in members:
        member.fit(X, torch.arange(30) % 3, epochs=1, progress=False)
    far = Ensemble(members).predict(1000 + X)
    assert float(far["vacuity"].min()) > 0.99


def test_what_does_not_fit_is_refused_in_a_sentence():
    with pytest.raises(EvidentiaError, match="an ensemble needs at least one model"):
        Ensemble([])
    with pytest.raises(EvidentiaError, match="must share their task, got multiclass and binary"):
        Ensemble([ev.EvidentialClassifier(nn.Linear(4, 4), 2, task=task) for task in ("multiclass", "binary")])
    with pytest.raises(EvidentiaError, match="must share their num_classes, got 3 and 5"):
        Ensemble([ev.EvidentialClassifier(nn.Linear(4, 4), classes) for classes in (3, 5)])
    with pytest.raises(EvidentiaError, match="must share their method, got edl and r-edl"):
        Ensemble([model(), model(method="r-edl")])
    with pytest.raises(EvidentiaError, match="must share their method_options"):
        Ensemble([model(method="r-edl"), model(method="r-edl", prior=0.5)])
    with pytest.raises(EvidentiaError, match="must share their class_names"):
        Ensemble([model(), model(class_names=["a", "b", "c"])])
    with pytest.raises(EvidentiaError, match="hyper-evidential networks has no single opinion"):
        Ensemble([model(method="hyper", sets=[[0, 1]])]).predict(X)
    with pytest.raises(EvidentiaError, match="samples must be a whole number of at least 1, got 0"):
        MCDropout(model(), samples=0)
    with pytest.raises(EvidentiaError, match="needs a network with dropout layers, and this one has none"):
        MCDropout(model(dropout=None))
    with pytest.raises(EvidentiaError, match=r"seed must be a whole number of at least 0, got 1\.5"):
        MCDropout(model(), seed=1.5)
    for build in (MCDropout, lambda net: Ensemble([net]), lambda net: Ensemble([model(), net])):
        with pytest.raises(EvidentiaError, match="sampled from EvidentialClassifiers, got Sequential; wrap"):
            build(nn.Sequential(nn.Linear(4, 4), nn.Dropout()))
    with pytest.raises(EvidentiaError, match="inputs must be finite"):
        MCDropout(model()).predict(X / 0)


def test_threads_that_share_a_network_get_what_each_would_get_alone():
    net = model().eval()
    sampled = MCDropout(net, samples=5)
    calls = [lambda: sampled.predict(X), lambda: net.predict(X)] * 100
    alone = [call() for call in calls[:2]]
    with ThreadPoolExecutor(8) as pool:
        found = [future.result() for future in [pool.submit(call) for call in calls]]
    assert all(same(prediction, alone[index % 2]) for index, prediction in enumerate(found))
    assert not any(module.training for module in net.modules())
