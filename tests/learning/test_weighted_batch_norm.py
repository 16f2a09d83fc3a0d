"""Weighted batch norm against the formula, against `nn.BatchNorm`, and in its limits."""

from __future__ import annotations

import copy
import pickle
import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call, grad, jvp, vmap

from evidentia import EvidentiaError, semisup, validation
from evidentia.learning import (
    WeightedBatchNorm1d,
    WeightedBatchNorm2d,
    WeightedBatchNorm3d,
    batch_weights,
    convert_batch_norm,
    frozen_statistics,
)

SHAPES = {
    "1d": (6, 3),
    "1d long": (6, 3, 5),
    "2d": (6, 3, 4, 2),
    "3d": (6, 3, 2, 2, 3),
}
LAYERS = {"1d": nn.BatchNorm1d, "1d long": nn.BatchNorm1d, "2d": nn.BatchNorm2d, "3d": nn.BatchNorm3d}
TOLERANCE = {torch.float32: {"rtol": 1e-4, "atol": 1e-5}, torch.float64: {"rtol": 1e-9, "atol": 1e-10}}

dtypes = st.sampled_from([torch.float32, torch.float64])
kinds = st.sampled_from(list(SHAPES))
seeds = st.integers(0, 2**31)


@pytest.fixture(params=list(SHAPES))
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def pair(kind: str, dtype: torch.dtype = torch.float32, **options: object) -> tuple[nn.Module, nn.Module]:
    """A plain layer and its weighted copy, with parameters that are not 0 and 1."""
    plain = LAYERS[kind](3, **options).to(dtype)
    for parameter in plain.parameters():
        nn.init.uniform_(parameter, 0.5, 1.5)
    return plain, convert_batch_norm(copy.deepcopy(plain))


def batch(kind: str, seed: int = 0, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(SHAPES[kind], generator=generator, dtype=dtype) * 2 + 1
    return x, 0.05 + torch.rand(len(x), generator=generator, dtype=dtype)


def run(layer: nn.Module, x: Tensor, weight: Tensor | None = None) -> dict[str, Tensor]:
    """Output, all gradients of some loss, and the buffers after it."""
    x = x.clone().requires_grad_()
    y = layer(x) if weight is None else layer(x, weight)
    slopes = torch.linspace(-1, 2, y[0].numel(), dtype=y.dtype).view(y.shape[1:])
    loss = (y.square() * slopes).sum() / len(y)
    inputs = {"x": x, **dict(layer.named_parameters())}
    grads = torch.autograd.grad(loss, list(inputs.values()))
    named = {f"gradient of {name}": value for name, value in zip(inputs, grads, strict=True)}
    return {"y": y.detach(), **named, **{name: buffer.clone() for name, buffer in layer.named_buffers()}}


def assert_same(left: dict[str, Tensor], right: dict[str, Tensor], dtype: torch.dtype = torch.float32) -> None:
    for name, value in left.items():
        torch.testing.assert_close(
            value, right[name], **TOLERANCE[dtype], msg=lambda text, name=name: f"{name}: {text}"
        )


def slightly(weight: Tensor) -> Tensor:
    """Equal but for rounding, so that the weighted kernel and not the native one is used."""
    return torch.cat([weight[:1] * (1 + 4 * torch.finfo(weight.dtype).eps), weight[1:]])


# What the formula says.


@given(kind=kinds, dtype=dtypes, seed=seeds)
def test_formula(kind: str, dtype: torch.dtype, seed: int):
    x, weight = batch(kind, seed, dtype)
    _, layer = pair(kind, dtype)
    y = layer(x, weight)
    flat = x.transpose(0, 1).flatten(1).double()
    positions = flat.shape[1] // len(x)
    w = weight.double().repeat_interleave(positions)
    mean = (w * flat).sum(1) / w.sum()
    var = (w * (flat - mean[:, None]).square()).sum(1) / w.sum()
    effective = w.sum() ** 2 / w.square().sum()
    broadcast = (-1, *(1,) * (x.ndim - 2))
    expected = (x - mean.view(broadcast)) / (var.view(broadcast) + layer.eps).sqrt()
    expected = expected * layer.weight.view(broadcast) + layer.bias.view(broadcast)
    torch.testing.assert_close(y, expected.to(dtype), **TOLERANCE[dtype])
    torch.testing.assert_close(layer.running_mean, (0.1 * mean).to(dtype), **TOLERANCE[dtype])
    unbiased = var * effective / (effective - 1)
    torch.testing.assert_close(layer.running_var, (0.9 + 0.1 * unbiased).to(dtype), **TOLERANCE[dtype])


@given(kind=kinds, dtype=dtypes, seed=seeds, level=st.floats(1e-2, 1e2))
def test_equal_weights_are_plain_batch_norm(kind: str, dtype: torch.dtype, seed: int, level: float):
    x, _ = batch(kind, seed, dtype)
    for change in (lambda w: w, slightly):
        plain, weighted = pair(kind, dtype)
        weight = change(torch.full((len(x),), level, dtype=dtype))
        assert_same(run(plain, x), run(weighted, x, weight), dtype)


@given(kind=kinds, dtype=dtypes, seed=seeds, factor=st.floats(1e-3, 1e6))
def test_only_ratios_matter(kind: str, dtype: torch.dtype, seed: int, factor: float):
    x, weight = batch(kind, seed, dtype)
    (_, one), (_, other) = pair(kind, dtype), pair(kind, dtype)
    other.load_state_dict(one.state_dict())
    assert_same(run(one, x, weight), run(other, x, weight * factor), dtype)


@given(kind=kinds, dtype=dtypes, seed=seeds)
def test_proposition_3_weight_zero_leaves_a_sample_out(kind: str, dtype: torch.dtype, seed: int):
    inside, _ = batch(kind, seed, dtype)
    outside = batch(kind, seed + 1, dtype)[0] + 50
    plain, weighted = pair(kind, dtype)
    both = torch.cat([inside, outside])
    weight = torch.cat([torch.ones(len(inside)), torch.zeros(len(outside))]).to(dtype)

    axes = [0, *range(2, inside.ndim)]
    gap = (outside.mean(axes) - inside.mean(axes)).norm()
    # The mean of both lies half way (the thesis has > L / 2 for a distance > L).
    torch.testing.assert_close((both.mean(axes) - inside.mean(axes)).norm(), gap / 2, **TOLERANCE[dtype])

    y = weighted(both, weight)[: len(inside)]
    mixed = copy.deepcopy(plain)(both)[: len(inside)]
    expected = plain(inside)
    torch.testing.assert_close(y, expected, **TOLERANCE[dtype])
    assert not torch.allclose(mixed, expected, atol=0.1)
    torch.testing.assert_close(weighted.running_mean, plain.running_mean, **TOLERANCE[dtype])
    torch.testing.assert_close(weighted.running_var, plain.running_var, **TOLERANCE[dtype])


def test_without_weights_it_is_the_native_layer_to_the_bit(kind: str):
    x, weight = batch(kind)
    plain, weighted = pair(kind)
    assert all(torch.equal(*values) for values in zip(run(plain, x).values(), run(weighted, x).values(), strict=True))
    plain.eval(), weighted.eval()
    assert torch.equal(plain(x), weighted(x, weight))


@pytest.mark.parametrize("offset", [0.0, 10.0, 1e3, -1e4])
def test_far_from_zero_no_digits_are_lost_beyond_those_of_the_native_layer(offset: float, kind: str):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn((64, *SHAPES[kind][1:]), generator=generator) + offset
    weight = torch.rand(64, generator=generator)
    _, layer = pair(kind)
    exact = copy.deepcopy(layer).double()
    torch.testing.assert_close(
        layer(x, weight).double(), exact(x.double(), weight.double()), rtol=0, atol=1e-5 + 1e-6 * abs(offset)
    )
    torch.testing.assert_close(layer.running_var.double(), exact.running_var, rtol=1e-4, atol=0)


# Gradients.


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_gradients_once_and_twice(kind: str, affine: bool, offset: float):
    x, weight = batch(kind, dtype=torch.float64)
    x = x[:4] + offset
    _, layer = pair(kind, torch.float64, affine=affine, track_running_stats=False)
    parameters = dict(layer.named_parameters())

    def call(x: Tensor, weight: Tensor, *values: Tensor) -> Tensor:
        return functional_call(layer, dict(zip(parameters, values, strict=True)), (x, weight))

    inputs = tuple(each.detach().clone().requires_grad_() for each in (x, weight[:4], *parameters.values()))
    assert torch.autograd.gradcheck(call, inputs, check_forward_ad=True, atol=1e-4, rtol=1e-3)
    assert torch.autograd.gradgradcheck(call, inputs, atol=1e-4, rtol=1e-3)


def test_only_the_gradients_that_are_asked_for(kind: str):
    x, weight = batch(kind)
    _, layer = pair(kind)
    layer.requires_grad_(False)
    assert not layer(x, weight).requires_grad
    weight.requires_grad_()
    layer(x, weight).square().mul(torch.arange(len(x)).view(-1, *(1,) * (x.ndim - 1))).sum().backward()
    assert x.grad is None
    assert weight.grad.abs().sum() > 0
    # Only ratios matter, so moving along the weights themselves changes nothing.
    torch.testing.assert_close(weight.grad @ weight.detach(), torch.tensor(0.0), atol=1e-3, rtol=0)


def test_torch_func(kind: str):
    x, weight = batch(kind, dtype=torch.float64)
    _, layer = pair(kind, torch.float64)
    state = {name: value.detach() for name, value in layer.named_parameters()}

    def loss(weight: Tensor, x: Tensor) -> Tensor:
        with batch_weights(layer, weight):
            return functional_call(layer, state, (x,)).pow(3).sum()

    with frozen_statistics(layer):
        leaf = weight.clone().requires_grad_()
        (expected,) = torch.autograd.grad(loss(leaf, x), leaf)
        torch.testing.assert_close(grad(loss)(weight, x), expected)
        _, slope = jvp(lambda w: loss(w, x), (weight,), (torch.ones_like(weight),))
        torch.testing.assert_close(slope, expected.sum())
        many = torch.stack([weight, weight.flip(0), torch.zeros_like(weight)])
        together = vmap(loss, (0, None))(many, x)
        torch.testing.assert_close(together, torch.stack([loss(each, x) for each in many]))
        torch.testing.assert_close(vmap(grad(loss), (0, None))(many, x)[0], expected)
        with batch_weights(layer, weight):
            inputs = vmap(grad(lambda each, x: functional_call(layer, each, (x,)).sum()), (None, 0))(state, x[None])
        assert inputs["weight"].shape == (1, 3)
    assert layer.num_batches_tracked == 0


@pytest.mark.parametrize("momentum", [0.1, None])
def test_running_statistics_under_forward_mode_differentiation(kind: str, momentum: float | None):
    x, weight = batch(kind)
    _, layer = pair(kind, momentum=momentum)
    other = copy.deepcopy(layer)
    for w in (weight, torch.zeros_like(weight), weight.flip(0)):
        y = layer(x, w)
        with forward_ad.dual_level():
            z = other(forward_ad.make_dual(x, torch.ones_like(x)), w)
            torch.testing.assert_close(forward_ad.unpack_dual(z).primal, y)
    assert_same(dict(layer.named_buffers()), dict(other.named_buffers()))
    assert layer.num_batches_tracked == 2


def test_compiled_and_eager_agree():
    x, weight = batch("2d")
    _, eager = pair("2d")
    compiled_layer = copy.deepcopy(eager)
    compiled = torch.compile(compiled_layer, backend="eager")
    for w in (weight, torch.zeros_like(weight)):
        torch.testing.assert_close(compiled(x, w), eager(x, w))
    assert_same(dict(eager.named_buffers()), dict(compiled_layer.named_buffers()))


def test_a_network_is_compiled_once_for_the_weights_of_all_batches():
    x, _ = batch("2d")
    _, layer = pair("2d")
    graphs = []

    def count(graph, _):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(layer, backend=count)
    for seed in range(4):
        weight = torch.rand(len(x), generator=torch.Generator().manual_seed(seed), dtype=x.dtype)
        with batch_weights(layer, weight):
            compiled(x)
    assert len(graphs) == 1


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_a_copy_that_is_made_inside_batch_weights_has_none_of_them(copied):
    x, weight = batch("2d")
    native, layer = pair("2d")
    with batch_weights(layer, weight):
        other = copied(layer)
    torch.testing.assert_close(other(x), native(x))


# Options of the native layer.


@pytest.mark.parametrize(
    "options", [{"momentum": None}, {"affine": False}, {"track_running_stats": False}, {"momentum": 0.3, "eps": 0.1}]
)
@pytest.mark.parametrize("training", [True, False])
def test_options(kind: str, options: dict[str, object], training: bool):
    x, _ = batch(kind)
    plain, weighted = pair(kind, **options)
    plain.train(training), weighted.train(training)
    for step in range(3):
        weight = slightly(torch.ones(len(x)))
        assert_same(run(plain, x * (step + 1)), run(weighted, x * (step + 1), weight))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("module_too", [False, True])
def test_half_precision(kind: str, dtype: torch.dtype, module_too: bool):
    x, weight = batch(kind)
    plain, weighted = pair(kind)
    reference = run(copy.deepcopy(weighted), x.to(dtype).float(), weight)
    if module_too:
        plain, weighted = plain.to(dtype), weighted.to(dtype)
    theirs, ours = run(plain, x.to(dtype)), run(weighted, x.to(dtype), weight)
    for name, value in ours.items():
        assert value.dtype == theirs[name].dtype, name
        torch.testing.assert_close(value.float(), reference[name].float(), rtol=0.05, atol=0.1)


def test_autocast_leaves_statistics_in_single_precision():
    x, weight = batch("2d")
    _, layer = pair("2d")
    expected = run(copy.deepcopy(layer), x + 100, weight)
    with torch.autocast("cpu", torch.bfloat16):
        assert_same(expected, run(layer, x + 100, weight))
        assert layer(x.bfloat16(), weight).dtype == torch.bfloat16


@given(kind=kinds, innermost=st.sampled_from([1, 2]), dtype=dtypes, seed=seeds, far=st.sampled_from([0, 100]))
def test_memory_order_makes_no_difference(kind: str, innermost: int, dtype: torch.dtype, seed: int, far: float):
    x, weight = batch(kind, seed, dtype)
    x = x + far
    other = x.movedim(innermost % x.ndim, -1).contiguous().movedim(-1, innermost % x.ndim)
    _, layer = pair(kind, dtype)
    results = [run(copy.deepcopy(layer), each, weight) for each in (x, other)]
    weight.requires_grad_()
    for each, result in zip((x, other), results, strict=True):
        inputs = [each.clone().requires_grad_(), weight]
        loss = layer(*inputs).pow(3).mean()
        first = torch.autograd.grad(loss, inputs, create_graph=True)
        second = torch.autograd.grad(sum(slope.square().sum() for slope in first), inputs)
        result |= {f"derivative {index}": value.detach() for index, value in enumerate([*first, *second])}
    # A second derivative of inputs far from 0 loses digits in any order.
    tolerance = {"rtol": 1e-2, "atol": 1e-3} if far else TOLERANCE[dtype]
    for name, value in results[0].items():
        torch.testing.assert_close(value, results[1][name], **tolerance)


def test_memory_order_is_kept():
    x, weight = batch("2d")
    _, layer = pair("2d")
    other = x.contiguous(memory_format=torch.channels_last).requires_grad_()
    y = layer(other, weight)
    (slope,) = torch.autograd.grad(y.square().sum(), other)
    assert y.is_contiguous(memory_format=torch.channels_last)
    assert slope.is_contiguous(memory_format=torch.channels_last)


def test_outputs_may_be_changed_in_place(kind: str):
    x, weight = batch(kind)
    x.requires_grad_()
    _, layer = pair(kind)
    nn.Sequential(nn.Identity(), nn.ReLU(inplace=True))(layer(x, weight)).sum().backward()
    assert x.grad is not None


# Weights that cannot serve.


@pytest.mark.parametrize("value", [0.0, 1e-9])
@pytest.mark.parametrize("tracking", [True, False])
def test_weights_that_add_up_to_nothing(kind: str, value: float, tracking: bool):
    x, _ = batch(kind)
    plain, layer = pair(kind, track_running_stats=tracking)
    if tracking:
        for each in (plain, layer):
            each.running_mean.fill_(0.5)
            each.running_var.fill_(2.0)
    before = {name: buffer.clone() for name, buffer in layer.named_buffers()}
    weight = torch.full((len(x),), value).requires_grad_()
    x.requires_grad_()
    y = layer(x, weight)
    torch.testing.assert_close(y, plain.train(not tracking)(x))
    grads = torch.autograd.grad(y.pow(2).sum(), [x, weight, layer.weight, layer.bias], create_graph=True)
    assert all(bool(each.isfinite().all()) for each in grads)
    assert grads[1].abs().sum() == 0
    assert_same(before, dict(layer.named_buffers()))


def test_a_single_value_has_no_variance():
    x = torch.randn(3, 2)
    layer = WeightedBatchNorm1d(2)
    for weight in (torch.tensor([0.0, 2.0, 0.0]), torch.tensor([0.0, 2.0, 1e-8])):
        torch.testing.assert_close(layer(x, weight), layer.eval()(x))
        layer.train()
    torch.testing.assert_close(layer(x[:1], torch.ones(1)), layer.eval()(x[:1]))
    assert layer.num_batches_tracked == 0
    assert layer(x[:0], torch.ones(0)).shape == (0, 2)
    # With several positions, one sample is enough.
    wide = WeightedBatchNorm2d(2)
    values = torch.randn(2, 2, 3, 3)
    torch.testing.assert_close(wide(values, [1, 0])[:1], nn.BatchNorm2d(2)(values[:1]))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, -0.5, 1.0], "at least 0, got -0.5"),
        ([1.0, float("nan"), 1.0], "finite.*NaN"),
        ([1.0, float("inf"), 1.0], "finite.*largest weight of inf"),
        ([1.0, 1.0], "2 weights and 3 samples; a network that makes several rows of a sample takes plain"),
        ([[1.0, 1.0, 1.0]], r"shape \(B,\), got shape \(1, 3\)"),
        ("heavy", "must be a tensor"),
    ],
)
def test_bad_weights(weight: object, message: str):
    layer = WeightedBatchNorm1d(2)
    with pytest.raises(EvidentiaError, match=message):
        layer(torch.randn(3, 2), weight)
    with pytest.raises(EvidentiaError, match=message), batch_weights(layer, weight):
        layer(torch.randn(3, 2))
    assert layer._shares is None
    assert layer.num_batches_tracked == 0


def test_checks_of_values_can_be_switched_off():
    layer = WeightedBatchNorm1d(2)
    with validation(False):
        layer(torch.randn(3, 2), [1.0, -0.5, 1.0])


def test_masks_and_whole_numbers_are_weights():
    x = torch.randn(4, 2)
    mask = torch.tensor([True, True, True, False])
    layer = WeightedBatchNorm1d(2)
    torch.testing.assert_close(layer(x, mask), layer(x, [1, 1, 1, 0]))


# Whole networks.


def network() -> nn.Module:
    shared = nn.BatchNorm2d(4)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), shared, nn.ReLU(inplace=True), nn.Conv2d(4, 4, 1), shared, nn.Flatten(), nn.Linear(16, 5),
        nn.Sequential(nn.BatchNorm1d(5, momentum=None), nn.Dropout()), nn.BatchNorm1d(5, affine=False).eval(),
    )  # fmt: skip


@pytest.mark.parametrize("model", ["x", None, nn.BatchNorm1d])
def test_only_a_network_is_converted(model):
    with pytest.raises(EvidentiaError, match=r"only a network can be given weighted batch norms, an nn\.Module, got"):
        convert_batch_norm(model)


def test_conversion_keeps_everything():
    model = network()
    parameters, modes = list(model.parameters()), [each.training for each in model.modules()]
    state = {name: value.clone() for name, value in model.state_dict().items()}
    calls = []
    model[1].register_forward_hook(lambda *_: calls.append(1))
    converted = convert_batch_norm(model)
    assert converted is model
    assert all(old is new for old, new in zip(parameters, model.parameters(), strict=True))
    assert modes == [each.training for each in model.modules()]
    assert model[1] is model[4]
    assert type(model[1]) is WeightedBatchNorm2d
    assert isinstance(model[1], nn.BatchNorm2d)
    assert model[7][0].momentum is None
    assert state.keys() == model.state_dict().keys()
    network().load_state_dict(model.state_dict())
    model.load_state_dict(network().state_dict())
    assert convert_batch_norm(model) is model
    model(torch.randn(2, 1, 4, 4))
    assert len(calls) == 2
    twin = copy.deepcopy(model)
    assert type(twin[1]) is WeightedBatchNorm2d
    assert type(convert_batch_norm(nn.BatchNorm3d(2))) is WeightedBatchNorm3d


def test_what_cannot_be_converted_is_refused_before_anything_changes():
    class Own(nn.BatchNorm2d):
        pass

    for layer, message in (
        (nn.SyncBatchNorm(3), "'1'.*SyncBatchNorm.*several processes"),
        (nn.LazyBatchNorm2d(), "'1'.*pass a batch through"),
        (Own(3), "'1'.*of its own kind"),
    ):
        model = nn.Sequential(nn.BatchNorm1d(3), layer)
        with pytest.raises(EvidentiaError, match=message):
            convert_batch_norm(model)
        assert type(model[0]) is nn.BatchNorm1d


def test_a_converted_network_is_deployed_as_any_other():
    plain = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    converted, x = convert_batch_norm(copy.deepcopy(plain)), torch.randn(6, 3)
    with batch_weights(converted, torch.rand(6)):
        converted(x)
    expected = converted.eval()(x)
    assert torch.equal(torch.export.export(converted, (x,)).module()(x), expected)
    plain.load_state_dict(converted.state_dict())
    with warnings.catch_warnings():
        # TorchScript itself is deprecated.
        warnings.simplefilter("ignore")
        assert torch.equal(torch.jit.trace(converted, x)(x), expected)
        assert torch.equal(torch.jit.script(plain.eval())(x), expected)


def test_the_name_in_the_room_of_semi_supervised_learning():
    assert semisup.convert is convert_batch_norm


def test_weights_reach_every_layer_and_leave_with_the_block():
    model = convert_batch_norm(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.BatchNorm1d(4)))
    plain = copy.deepcopy(model)
    x = torch.randn(6, 3)
    with batch_weights(model, [1, 1, 1, 1, 0, 0]):
        torch.testing.assert_close(model(x)[:4], plain(x[:4]))
        with batch_weights(model, None):
            torch.testing.assert_close(model(x), plain(x))
        with batch_weights(model, torch.tensor([0.0, 0, 1, 1, 1, 1])):
            torch.testing.assert_close(functional_call(model, {}, (x,))[2:], plain(x[2:]))
        torch.testing.assert_close(model(x)[:4], plain(x[:4]))
    assert_same(dict(plain.named_buffers()), dict(model.named_buffers()))
    torch.testing.assert_close(model(x), plain(x))
    with pytest.raises(ZeroDivisionError), batch_weights(model, torch.ones(6)):
        raise ZeroDivisionError
    assert model[1]._shares is None


def test_weights_need_a_converted_network():
    message = r"'0' \(BatchNorm1d\) takes no weights; call convert_batch_norm"
    with pytest.raises(EvidentiaError, match=message), batch_weights(nn.Sequential(nn.BatchNorm1d(3)), torch.ones(2)):
        pass
    with batch_weights(nn.Linear(3, 3), torch.ones(2)):  # no statistics, nothing to weigh
        pass
    with batch_weights(nn.BatchNorm1d(3), None):
        pass


def test_frozen_statistics():
    model = convert_batch_norm(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)))
    model.append(nn.BatchNorm1d(4))
    free = copy.deepcopy(model)
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    x, weight = torch.randn(6, 3), torch.rand(6)
    with frozen_statistics(model):
        torch.testing.assert_close(model[:2](x), free[:2](x))
        with batch_weights(model[:2], weight), batch_weights(free[:2], weight):
            torch.testing.assert_close(model(x), free(x))
            assert torch.isfinite(functional_call(model, dict(model.named_parameters()), (x,))).all()
        with batch_weights(model[:2], torch.zeros(6)):
            # Running statistics are still there to fall back on.
            torch.testing.assert_close(model[:2](x), copy.deepcopy(model[:2]).eval()(x))
    assert_same(before, dict(model.named_buffers()))
    with pytest.raises(ZeroDivisionError), frozen_statistics(model, free):
        raise ZeroDivisionError
    assert all(layer.track_running_stats for layer in (*model[1:], *free[1:]))


def test_a_gradient_that_is_differentiated_again_counts_layers_that_share_weights_once():
    torch.manual_seed(0)
    layers = [nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)]
    network = convert_batch_norm(nn.Sequential(*layers)).double()
    weight = torch.rand(7, dtype=torch.float64, requires_grad=True)
    with batch_weights(network, weight):
        loss = network(torch.randn(7, 3, dtype=torch.float64)).square()[:, 0].mean()
    once = torch.autograd.grad(loss, weight, retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(loss, weight, create_graph=True), once)


def test_so_it_does_for_a_layer_that_is_used_twice():
    torch.manual_seed(0)
    norm = convert_batch_norm(nn.BatchNorm1d(3)).double()
    x, weight = torch.randn(7, 3, dtype=torch.float64), torch.rand(7, dtype=torch.float64)
    with batch_weights(norm, weight):
        loss = torch.tanh(norm(torch.tanh(norm(x)))).square().mean()
    once = torch.autograd.grad(loss, norm.weight, retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(loss, norm.weight, create_graph=True), once)


def test_two_passes_may_come_before_one_backward() -> None:
    norm = WeightedBatchNorm1d(3)
    first, second = torch.randn(8, 3, requires_grad=True), torch.randn(8, 3)
    # Without weights the first is plain batch norm, whose backward holds the running statistics that the second moves.
    total = norm(first).pow(3).sum() + norm(second, weight=torch.rand(8)).pow(3).sum()
    total.backward()
    assert first.grad is not None
    assert bool(first.grad.isfinite().all())


@pytest.mark.parametrize("weight", [torch.ones(4), torch.arange(4.0)])
def test_inputs_that_do_not_fit_are_told(weight):
    norm = WeightedBatchNorm2d(3)
    with pytest.raises(EvidentiaError, match=r"WeightedBatchNorm2d\(3\) needs inputs of 3 channels, got 2 in shape"):
        norm(torch.randn(4, 2, 5, 5), weight)
    with pytest.raises(EvidentiaError, match=r"needs floating numbers, got torch.int64; call .float\(\)"):
        norm(torch.ones(4, 3, 5, 5, dtype=torch.int64), weight)
