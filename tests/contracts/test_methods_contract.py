"""What every registered method must keep; a new one is held to it by being registered."""

from __future__ import annotations

import inspect
import itertools

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck

import evidentia as ev
from evidentia import EvidentiaError
from evidentia.learning import METHODS, OUTLIER

CLASSES = 4
# Values for options that have no default, by the name of the option.
REQUIRED = {"sets": [[0, 1], [2, 3]]}
EXTREMES = [0.0, 50.0, -50.0, 1e30, -1e30]

every_method = pytest.mark.parametrize("name", sorted(METHODS))
evidential = pytest.mark.parametrize("name", sorted(set(METHODS) - {"softmax"}))


def options(name):
    parameters = list(inspect.signature(METHODS[name]).parameters.values())
    return {p.name: REQUIRED[p.name] for p in parameters if p.default is p.empty and p.name != "num_classes"}


def build(name, classes=CLASSES):
    return METHODS[name](num_classes=classes, **options(name))


def classifier(name, backbone=None, **kwargs):
    torch.manual_seed(0)
    net = backbone or nn.Sequential(nn.Linear(3, 16), nn.ReLU())
    return ev.EvidentialClassifier(net, CLASSES, method=name, **options(name), **kwargs)


def clusters(count=120, seed=0):
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(CLASSES).repeat(count // CLASSES)
    centres = 4 * torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [-1, -1, -1]])
    return centres[y] + torch.randn(count, 3, generator=generator), y


@every_method
@pytest.mark.parametrize("epoch", [0, 3.5, 100])
def test_losses_and_gradients_are_finite_whatever_the_network_says(name, epoch, dtype):
    method = build(name)
    # Every pattern of extremes in the first two and the last two outputs, with the others alike.
    patterns = torch.tensor(list(itertools.product(EXTREMES, repeat=3)), dtype=dtype)
    first, middle, last = patterns.unbind(-1)
    outputs = middle.unsqueeze(-1).repeat(1, method.num_outputs)
    outputs[:, 0], outputs[:, -1] = first, last
    for target in range(method.num_targets):
        z = outputs.clone().requires_grad_()
        loss = method.loss(z, torch.full((len(z),), target), epoch)
        (gradient,) = torch.autograd.grad(loss.sum(), z)
        assert loss.dtype == dtype
        assert bool(loss.isfinite().all())
        assert bool(gradient.isfinite().all())


@every_method
def test_predictions_are_finite_and_add_up_whatever_the_network_says(name, dtype):
    method = build(name)
    outputs = torch.tensor(EXTREMES, dtype=dtype).unsqueeze(-1) * torch.ones(method.num_outputs, dtype=dtype)
    outputs = torch.cat([outputs, outputs * torch.linspace(-1, 1, method.num_outputs, dtype=dtype)])
    probs = method.probs(outputs)
    assert probs.shape == (len(outputs), CLASSES)
    assert probs.dtype == dtype
    torch.testing.assert_close(probs.sum(-1), torch.ones_like(probs[:, 0]))
    opinion = method.opinion(outputs)
    if opinion is not None:
        torch.testing.assert_close(opinion.belief.sum(-1) + opinion.vacuity, torch.ones_like(opinion.vacuity))
        assert bool((opinion.belief >= 0).all())
        assert bool((opinion.vacuity > 0).all())
        assert all(bool(values.isfinite().all()) for values in ev.uncertainties(opinion).values())


@every_method
@pytest.mark.parametrize("batch", [(), (5,), (2, 3)])
def test_batch_dimensions_are_kept(name, batch, dtype):
    method = build(name)
    outputs = torch.randn(*batch, method.num_outputs, dtype=dtype)
    target = torch.randint(method.num_targets, batch)
    loss = method.loss(outputs, target, 5)
    assert loss.shape == batch
    assert loss.dtype == dtype
    rows = zip(outputs.reshape(-1, method.num_outputs), target.reshape(-1), strict=True)
    torch.testing.assert_close(loss, torch.stack([method.loss(z, t, 5) for z, t in rows]).reshape(batch))
    assert method.probs(outputs).shape == (*batch, CLASSES)
    opinion = method.opinion(outputs)
    assert opinion is None or opinion.shape == batch


@every_method
def test_the_loss_is_deterministic_and_differentiable(name):
    method = build(name)
    outputs = torch.randn(3, method.num_outputs, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([0, 3, 1])
    assert torch.equal(method.loss(outputs, target, 5), method.loss(outputs, target, 5))
    assert gradcheck(lambda z: method.loss(z, target, 5), (outputs,), rtol=1e-4)


@every_method
def test_probabilities_are_those_of_the_opinion(name):
    method = build(name)
    outputs = torch.randn(6, method.num_outputs)
    opinion = method.opinion(outputs)
    if opinion is not None:
        torch.testing.assert_close(method.probs(outputs), opinion.projected)


@every_method
def test_wrong_targets_are_refused_in_a_sentence(name):
    method = build(name)
    outputs, least = torch.randn(2, method.num_outputs), OUTLIER if method.learns_from_outliers else 0
    for bad in (method.num_targets, least - 1):
        with pytest.raises(EvidentiaError, match=r"class indices must lie in .*got values from"):
            method.loss(outputs, torch.tensor([0, bad]), 0)
        with pytest.raises(EvidentiaError, match=rf"class indices must lie in {least}\.\.{method.num_targets - 1}"):
            method.check_labels(torch.tensor([0, bad]))
    for wrong in (torch.zeros(3, dtype=torch.long), torch.zeros(2), torch.zeros(2, 3)):
        with pytest.raises(EvidentiaError):
            method.loss(outputs, wrong, 0)
    for wrong in (torch.zeros(2, 1, dtype=torch.long), torch.zeros(2), torch.zeros(2, 3)):
        with pytest.raises(EvidentiaError):
            method.check_labels(wrong)
    method.check_labels(torch.tensor([least, 0, method.num_targets - 1]))


@every_method
def test_too_few_classes_and_unknown_options_are_refused_in_a_sentence(name):
    with pytest.raises(EvidentiaError, match="num_classes must be a whole number of at least 2, got 1"):
        build(name, classes=1)
    with pytest.raises(EvidentiaError, match=f"method '{name}' cannot be built with the options .*nonsense"):
        ev.EvidentialClassifier(nn.Linear(3, 8), CLASSES, method=name, nonsense=1, **options(name))
    numbers = [p.name for p in inspect.signature(METHODS[name]).parameters.values() if isinstance(p.default, float)]
    for number in numbers:
        for bad in (-1.0, float("nan"), float("inf")):
            with pytest.raises(EvidentiaError, match=rf"{number} must be .*, got {bad}"):
                METHODS[name](num_classes=CLASSES, **options(name) | {number: bad})
    words = [p.name for p in inspect.signature(METHODS[name]).parameters.values() if isinstance(p.default, str)]
    for word in words:
        with pytest.raises(EvidentiaError, match="nonsense"):
            METHODS[name](num_classes=CLASSES, **options(name) | {word: "nonsense"})


@every_method
def test_it_learns_clusters(name):
    x, y = clusters()
    model = classifier(name).fit(x, y, epochs=40, learning_rate=0.02, batch_size=30, progress=False)
    test_x, test_y = clusters(seed=1)
    pred = model.predict(test_x)
    assert float((pred.labels == test_y).float().mean()) > 0.9
    assert model.history[-1]["loss"] < model.history[0]["loss"]


@evidential
def test_saving_keeps_every_bit_of_the_predictions(name, tmp_path):
    x, y = clusters()
    model = classifier(name).fit(x, y, epochs=2, progress=False)
    model.save(tmp_path / "model")
    other = ev.EvidentialClassifier.load(tmp_path / "model", nn.Sequential(nn.Linear(3, 16), nn.ReLU()))
    mine, its = model.predict(x), other.predict(x)
    assert torch.equal(mine.probs, its.probs)
    for measure, values in mine.uncertainties.items():
        assert torch.equal(values, its[measure])


# Sets of classes need a multi-class task.
@pytest.mark.parametrize("name", [name for name in sorted(METHODS) if "sets" not in options(name)])
@pytest.mark.parametrize("task", ["binary", "multilabel"])
def test_it_serves_binary_and_multi_label_tasks_too(name, task):
    x, y = clusters()
    classes = 2 if task == "binary" else 3
    labels = (y > 1).long() if task == "binary" else torch.stack([y == 0, y > 1, y % 2 == 0], -1).long()
    model = ev.EvidentialClassifier(nn.Sequential(nn.Linear(3, 16), nn.ReLU()), classes, method=name, task=task)
    pred = model.fit(x, labels, epochs=30, learning_rate=0.02, batch_size=30, progress=False).predict(x)
    assert pred.labels.shape == labels.shape
    assert float((pred.labels == labels).float().mean()) > 0.85
