"""What every registered loss must keep; a new one is held to it by being registered."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.autograd import gradcheck

import evidentia as ev
from evidentia import EvidentiaError
from evidentia.learning import LOSSES

every_loss = pytest.mark.parametrize("name", sorted(LOSSES))
EVIDENCE = [0.0, 1e-30, 1.0, 1e6, 1e30]


@every_loss
@pytest.mark.parametrize("prior", [1.0, 0.1])
def test_values_and_gradients_are_finite_at_any_evidence(name, prior, dtype):
    rows = torch.tensor(list(itertools.product(EVIDENCE, repeat=3)), dtype=dtype)
    for target in range(3):
        alpha = (rows + prior).requires_grad_()
        loss = LOSSES[name](alpha, torch.full((len(rows),), target))
        (gradient,) = torch.autograd.grad(loss.sum(), alpha)
        assert loss.dtype == dtype
        assert bool(loss.isfinite().all())
        assert bool((loss >= 0).all())
        assert bool(gradient.isfinite().all())


@every_loss
@pytest.mark.parametrize("batch", [(), (4,), (2, 3), (2, 1, 3)])
def test_one_value_a_sample_whatever_the_batch_dimensions(name, batch, dtype):
    alpha = 1 + 9 * torch.rand(*batch, 5, dtype=dtype)
    target = torch.randint(5, batch)
    loss = LOSSES[name](alpha, target)
    assert loss.shape == batch
    assert loss.dtype == dtype
    flat = torch.stack(
        [LOSSES[name](a, t) for a, t in zip(alpha.reshape(-1, 5), target.reshape(-1), strict=True)]
    ).reshape(batch)
    torch.testing.assert_close(loss, flat)


@every_loss
def test_an_empty_batch_has_no_losses(name):
    assert LOSSES[name](torch.ones(0, 3), torch.zeros(0, dtype=torch.long)).shape == (0,)


@every_loss
@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.int16, torch.uint8])
def test_index_and_one_hot_targets_agree(name, kind, dtype):
    alpha, target = 1 + torch.rand(6, 4, dtype=dtype), torch.randint(4, (6,))
    one_hot = torch.nn.functional.one_hot(target, 4).to(dtype)
    assert torch.equal(LOSSES[name](alpha, target.to(kind)), LOSSES[name](alpha, one_hot))


@every_loss
def test_soft_targets_are_welcome_and_the_loss_is_continuous_in_them(name):
    alpha = 1 + torch.rand(6, 4, dtype=torch.float64)
    soft, step = torch.rand(6, 4, dtype=torch.float64).softmax(-1), torch.tensor([1e-7, -1e-7, 0, 0])
    torch.testing.assert_close(LOSSES[name](alpha, soft), LOSSES[name](alpha, soft + step), rtol=1e-4, atol=1e-4)


@every_loss
def test_it_depends_on_the_order_of_classes_through_the_label_only(name):
    alpha, target = 1 + 5 * torch.rand(8, 4, dtype=torch.float64), torch.randint(4, (8,))
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(LOSSES[name](alpha, target), LOSSES[name](alpha[:, order], order.argsort()[target]))


@every_loss
def test_evidence_for_the_right_class_is_better_than_none_and_than_the_same_for_a_wrong_one(name):
    right, none, wrong = LOSSES[name](
        torch.tensor([[40.0, 1, 1], [1, 1, 1], [1, 40, 1]]), torch.zeros(3, dtype=torch.long)
    )
    assert right < none < wrong


@every_loss
def test_calling_it_again_gives_the_same_bits(name):
    alpha, target = 1 + torch.rand(6, 4), torch.randint(4, (6,))
    assert torch.equal(LOSSES[name](alpha, target), LOSSES[name](alpha, target))


@every_loss
def test_gradients(name):
    alpha = torch.tensor([[0.4, 2.0, 63.0], [66.0, 1.0, 300.0]], dtype=torch.float64, requires_grad=True)
    target = torch.tensor([1, 2])
    assert gradcheck(lambda alpha: LOSSES[name](alpha, target), (alpha,), rtol=1e-4)


@every_loss
def test_bad_input_is_refused_in_a_sentence(name):
    loss, alpha = LOSSES[name], torch.ones(2, 3)
    good = torch.tensor([0, 1])
    for bad, message in {
        float("nan"): "alpha must be finite, got NaN",
        float("inf"): "alpha must be finite, got infinite",
        0.0: "alpha must be positive everywhere, got a smallest value of 0",
        -1.0: "alpha must be positive everywhere, got a smallest value of -1",
    }.items():
        broken = alpha.clone()
        broken[0, 1] = bad
        with pytest.raises(EvidentiaError, match=message):
            loss(broken, good)
    with pytest.raises(EvidentiaError, match=r"alpha needs a last dimension .*at least 2 classes, got shape \(2, 1\)"):
        loss(torch.ones(2, 1), good)
    with pytest.raises(EvidentiaError, match=r"class indices must lie in 0\.\.2, got values from 0 to 3"):
        loss(alpha, torch.tensor([0, 3]))
    with pytest.raises(EvidentiaError, match=r"class indices must lie in 0\.\.2, got values from -1 to 1"):
        loss(alpha, torch.tensor([-1, 1]))
    for wrong in (torch.zeros(3, dtype=torch.long), torch.zeros(2, 3, dtype=torch.long), torch.zeros(2)):
        with pytest.raises(EvidentiaError, match=r"targets must be class indices \(integers\) of shape \(2,\) or"):
            loss(alpha, wrong)
    with pytest.raises(EvidentiaError, match=r"target probabilities must add up to 1, got a sum of 1\.5"):
        loss(alpha, torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0.5]]))
    with pytest.raises(EvidentiaError, match=r"target probabilities must lie in \[0, 1\]"):
        loss(alpha, torch.tensor([[1.0, 0, 0], [1.5, -0.5, 0]]))
    with pytest.raises(EvidentiaError, match="target probabilities must be finite"):
        loss(alpha, torch.full((2, 3), float("nan")))


@every_loss
def test_checks_of_values_can_be_switched_off(name):
    with ev.validation(False):
        assert bool(LOSSES[name](torch.full((2, 3), float("nan")), torch.tensor([0, 1])).isnan().all())
