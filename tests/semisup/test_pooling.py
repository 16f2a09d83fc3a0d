"""Max pooling by slices is PyTorch's, and can be differentiated as often."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.func import functional_call, grad, hessian, jvp, vmap
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia.semisup.networks.models import LeNet
from evidentia.semisup.networks.pooling import HalvingMaxPool

pool = HalvingMaxPool()
sides = st.integers(2, 9)


def images(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(height=sides, width=sides, seed=st.integers(0, 99))
def test_outputs_and_gradients_are_those_of_pytorch(height: int, width: int, seed: int, dtype: torch.dtype) -> None:
    x = images(2, 3, height, width, seed=seed, dtype=dtype).requires_grad_()
    ours, theirs = pool(x), F.max_pool2d(x, 2)
    assert torch.equal(ours, theirs)
    assert torch.equal(pool(x.detach()), theirs)
    slope = torch.randn_like(theirs)
    assert torch.equal(*(torch.autograd.grad(y, x, slope)[0] for y in (ours, theirs)))


def test_the_gradient_of_equal_pixels_is_handed_on_whole() -> None:
    x = torch.ones(1, 1, 4, 4, requires_grad=True)
    (slope,) = torch.autograd.grad(pool(x).sum(), x)
    assert torch.equal(F.avg_pool2d(slope, 2, divisor_override=1), torch.ones(1, 1, 2, 2))


def test_first_and_second_derivatives() -> None:
    x = images(1, 2, 5, 4).requires_grad_()
    assert torch.autograd.gradcheck(pool, x)
    assert torch.autograd.gradgradcheck(lambda x: pool(x).square(), x)


def test_torch_func_goes_through_it() -> None:
    x, v = images(3, 2, 4, 4), images(3, 2, 4, 4, seed=1)

    def loss(x: torch.Tensor) -> torch.Tensor:
        return pool(x).square().sum()

    def known(x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(x, 2).square().sum()

    torch.testing.assert_close(grad(loss)(x), grad(known)(x))
    torch.testing.assert_close(vmap(grad(loss))(x), vmap(grad(known))(x))
    torch.testing.assert_close(jvp(loss, (x,), (v,)), jvp(known, (x,), (v,)))
    torch.testing.assert_close(hessian(loss)(x), hessian(known)(x))


def test_lenet_is_what_it_is_with_the_pooling_of_pytorch() -> None:
    torch.manual_seed(0)
    network = LeNet((1, 28, 28), num_classes=10, norm="none").double()
    x = images(4, 1, 28, 28)
    parameters = dict(network.named_parameters())
    ours = grad(lambda p: functional_call(network, p, (x,)).square().sum())(parameters)
    for place, layer in enumerate(network.body):  # type: ignore[arg-type]
        if isinstance(layer, HalvingMaxPool):
            network.body[place] = torch.nn.MaxPool2d(2)  # type: ignore[operator]
    theirs = grad(lambda p: functional_call(network, p, (x,)).square().sum())(parameters)
    for name, slope in ours.items():
        torch.testing.assert_close(slope, theirs[name])
