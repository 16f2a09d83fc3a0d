"""Networks that are differentiated twice, against PyTorch's own derivatives of the same networks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad
from torch.nn import functional as F  # noqa: N812

from evidentia import EvidentiaError
from evidentia.learning import frozen_statistics
from evidentia.semisup.hypergradients.twice import differentiated_twice

TOLERANCE = {torch.float32: 3e-6, torch.float64: 1e-12}

CONVOLUTIONS: dict[str, Callable[[], nn.Module]] = {
    "1d": lambda: nn.Conv1d(4, 6, 3, padding=1, groups=2),
    "1d without bias": lambda: nn.Conv1d(4, 6, 2, stride=2, bias=False),
    "2d": lambda: nn.Conv2d(4, 6, 3, stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
    "2d by name": lambda: nn.Conv2d(4, 6, 3, padding="same"),
    "2d reflected": lambda: nn.Conv2d(4, 6, 3, padding=1, padding_mode="reflect"),
    "3d": lambda: nn.Conv3d(4, 6, 2),
}
SHAPES = {1: (5, 4, 9), 2: (5, 4, 9, 8), 3: (5, 4, 4, 5, 4)}


def after(dimensions: int, **options: object) -> list[nn.Module]:
    """What follows a convolution: batch norm, a smooth activation, and another convolution, whose input learns."""
    norms = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
    convolutions = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
    return [norms[dimensions](6, **options), nn.Tanh(), convolutions[dimensions](6, 3, 2)]


def derivatives(network: nn.Module, x: Tensor, how: AbstractContextManager[None]) -> dict[str, Tensor]:
    """Outputs, their derivatives, and derivatives of these, by all parameters that learn."""
    learning = {name: each for name, each in network.named_parameters() if each.requires_grad}
    weight = torch.linspace(0.2, 1, len(x), dtype=x.dtype).requires_grad_()
    with how:
        y = network(x)
        loss = weight @ (y.flatten(1).pow(3).mean(1) + y.flatten(1).square().sum(1))
        slopes = torch.autograd.grad(loss, list(learning.values()), create_graph=True)
        inner = sum((slope * slope.detach().tanh()).sum() + slope.square().sum() for slope in slopes)
        bent = torch.autograd.grad(inner, [weight, *learning.values()], materialize_grads=True)
    found = {"y": y, **{f"slope of {name}": slope for name, slope in zip(learning, slopes, strict=True)}}
    found |= {f"second of {name}": each for name, each in zip(["weights", *learning], bent, strict=True)}
    return {name: value.detach() for name, value in found.items()}


def assert_same_as_native(network: nn.Module, x: Tensor) -> None:
    native = copy.deepcopy(network)
    exact = copy.deepcopy(network).double()
    expected = derivatives(exact, x.double(), frozen_statistics(exact))
    found = derivatives(network, x, differentiated_twice(network))
    for name, value in expected.items():
        # Those of a bias before batch norm are 0, and what rounding leaves of others that are not.
        scale = max(float(each.abs().max()) for like, each in expected.items() if like.split()[0] == name.split()[0])
        assert float((found[name] - value).abs().max()) <= TOLERANCE[x.dtype] * scale, name
    for name, buffer in native.named_buffers():
        torch.testing.assert_close(dict(network.named_buffers())[name], buffer)


@pytest.mark.parametrize("kind", list(CONVOLUTIONS))
@pytest.mark.parametrize("training", [True, False])
def test_networks_with_convolutions_and_batch_norm(kind: str, training: bool, dtype: torch.dtype):
    torch.manual_seed(0)
    first = CONVOLUTIONS[kind]()
    dimensions = first.weight.ndim - 2
    network = nn.Sequential(first, *after(dimensions)).to(dtype).train(training)
    assert_same_as_native(network, torch.randn(SHAPES[dimensions], dtype=dtype))


@pytest.mark.parametrize(
    "options", [{"affine": False}, {"track_running_stats": False}, {"eps": 0.3}, {"momentum": None}], ids=str
)
def test_options_of_batch_norm(options: dict[str, object], dtype: torch.dtype):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(4, 6, 3), *after(2, **options)).to(dtype)
    assert_same_as_native(network, torch.randn(SHAPES[2], dtype=dtype))


@pytest.mark.parametrize("frozen", ["0.weight", "0.bias", "1.weight", "1.bias"])
def test_parameters_that_do_not_learn(frozen: str, dtype: torch.dtype):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(4, 6, 3), *after(2)).to(dtype)
    network.get_parameter(frozen).requires_grad_(False)
    assert_same_as_native(network, torch.randn(SHAPES[2], dtype=dtype))


def test_a_layer_that_sees_constants_and_what_is_learnt(dtype: torch.dtype):
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3)

        def forward(self, x: Tensor) -> Tensor:
            return self.norm(self.conv(torch.tanh(self.norm(self.conv(x)))))

    torch.manual_seed(0)
    assert_same_as_native(Shared().to(dtype), torch.randn(4, 3, 5, 6, dtype=dtype))


def test_channels_last(dtype: torch.dtype):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(4, 6, 3), *after(2)).to(dtype).to(memory_format=torch.channels_last)
    assert_same_as_native(network, torch.randn(SHAPES[2], dtype=dtype).contiguous(memory_format=torch.channels_last))


def test_every_way_to_call_a_convolution():
    x, weight = torch.randn(2, 3, 8, dtype=torch.float64), torch.randn(4, 3, 3, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(4, dtype=torch.float64, requires_grad=True)

    def check(call: Callable[[Tensor, Tensor], Tensor]) -> None:
        with differentiated_twice(nn.Identity()):
            assert torch.autograd.gradcheck(call, (weight, bias))
            assert torch.autograd.gradgradcheck(call, (weight, bias))
            found = call(weight, bias)
        torch.testing.assert_close(found, call(weight, bias))

    check(lambda w, b: F.conv1d(x, w, b, 2, 1))
    check(lambda w, b: F.conv1d(input=x, weight=w, bias=b, padding=(2,), dilation=(2,)).sin())
    check(lambda w, b: F.conv1d(x[0], w, b))
    check(lambda w, _: F.conv1d(x, w))


def test_transforms_of_functions_inside():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2, track_running_stats=False), nn.Tanh())
    x = torch.randn(3, 1, 6, 6)
    parameters = {name: each.detach() for name, each in network.named_parameters()}

    def loss(tensors: dict[str, Tensor]) -> Tensor:
        return functional_call(network, tensors, (x,)).pow(2).sum()

    expected = grad(loss)(parameters)
    with differentiated_twice(network):
        found = grad(loss)(parameters)
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value)


def test_batches_that_have_no_variance_fail_as_ever():
    network = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    for how in (nullcontext(), differentiated_twice(network)):
        with pytest.raises(ValueError, match="more than 1 value per channel"), how:
            network(torch.randn(1, 2))


def test_it_ends_with_the_context():
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    x = torch.randn(3, 1, 6, 6)
    before = network(x).grad_fn
    with differentiated_twice(network):
        inside = network(x).grad_fn
    assert type(network(x).grad_fn) is type(before) is not type(inside)
    assert network[1].num_batches_tracked == 2


def test_a_layer_that_pytorch_differentiates_once_only_is_told():
    class Distances(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.centres = nn.Parameter(torch.randn(3, 2))

        def forward(self, x: Tensor) -> Tensor:
            return torch.cdist(x, self.centres, p=3.0)

    network = Distances()
    with pytest.raises(EvidentiaError, match=r"cannot differentiate a layer of Distances twice .*take scope='last'"):
        derivatives(network, torch.randn(4, 2), differentiated_twice(network))
