"""The networks: shapes, sizes, and that each is features and a head."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from evidentia import EvidentiaError
from evidentia.learning import batch_weights, convert_batch_norm
from evidentia.semisup import MLP, NETWORKS, LeNet, WideResNet

CASES = {
    "mlp": ((20,), {}, 100),
    "lenet": ((1, 28, 28), {}, 84),
    "wrn": ((3, 16, 16), {"depth": 10, "width": 1}, 64),
    "wrn-10-1": ((3, 16, 16), {}, 64),
}
every_network = pytest.mark.parametrize("name", sorted(NETWORKS))
every_norm = pytest.mark.parametrize("norm", ["none", "batch"])


def build(name, **options):
    shape, settings, _ = CASES[name]
    return NETWORKS[name](shape, 5, **settings, **options), torch.randn(4, *shape)


def size(net):
    return sum(parameter.numel() for parameter in net.parameters())


@every_network
@every_norm
def test_a_network_is_its_features_and_its_head(name, norm):
    net, x = build(name, norm=norm)
    net.eval()
    hidden = net.features(x)
    assert hidden.shape == (4, CASES[name][2])
    assert isinstance(net.head, nn.Linear)
    assert torch.equal(net(x), net.head(hidden))
    assert net(x).shape == (4, 5)
    norms = [layer for layer in net.modules() if isinstance(layer, nn.modules.batchnorm._BatchNorm)]
    assert bool(norms) is (norm == "batch")


@every_network
@every_norm
def test_everything_is_trained(name, norm):
    net, x = build(name, norm=norm)
    if name.startswith("wrn") and norm == "none":
        # Blocks start as the identity; only after a step is there a way through them.
        for parameter in net.parameters():
            nn.init.normal_(parameter, std=0.1)
    net(x).square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for key, parameter in net.named_parameters() if "bias" not in key)
    assert all(torch.isfinite(parameter.grad).all() for parameter in net.parameters())


@every_network
def test_batch_norm_can_be_converted(name):
    net, x = build(name, norm="batch")
    convert_batch_norm(net)
    with batch_weights(net, [1.0, 0.5, 0.2, 0.0]):
        assert torch.isfinite(net(x)).all()


@every_network
def test_dropout_is_on_in_training_only(name):
    net, x = build(name, norm="none", dropout=0.5)
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.1)
    assert not torch.equal(net(x), net(x))
    net.eval()
    assert torch.equal(net(x), net(x))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("side", [28, 32])
def test_lenet_is_of_the_published_size(channels, side):
    net = LeNet((channels, side, side), 10, norm="none")
    shapes = [tuple(layer.weight.shape) for layer in net.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]
    assert shapes == [(6, channels, 5, 5), (16, 6, 5, 5), (120, 400), (84, 120), (10, 84)]
    assert net(torch.randn(2, channels, side, side)).shape == (2, 10)


def test_lenet_has_batch_norm_after_each_layer():
    layers = [type(layer) for layer in LeNet((1, 28, 28), 10, norm="batch").body]
    after = [layers[index + 1] for index, layer in enumerate(layers) if layer in (nn.Conv2d, nn.Linear)]
    assert after == [nn.BatchNorm2d, nn.BatchNorm2d, nn.BatchNorm1d, nn.BatchNorm1d]


def test_lenet_takes_images_that_are_not_square():
    assert LeNet((1, 12, 40), 3)(torch.randn(2, 1, 12, 40)).shape == (2, 3)


def test_wrn_28_2_is_of_the_published_size():
    net = WideResNet((3, 32, 32), 10)
    assert size(net) == pytest.approx(1.47e6, rel=0.005)
    assert sum(isinstance(layer, nn.Conv2d) for layer in net.modules()) == 28
    assert net.head.in_features == 128
    assert size(WideResNet((3, 32, 32), 10, depth=28, width=10)) == pytest.approx(36.5e6, rel=0.005)


def test_wrn_without_norm_does_not_blow_up_with_depth():
    net, x = WideResNet((3, 16, 16), 10, depth=28, width=1, norm="none"), torch.randn(8, 3, 16, 16)
    assert 0.05 < net(x).std() < 20


def test_mlp_takes_any_shape():
    assert MLP((1, 8, 8), 3, hidden=(5,))(torch.randn(2, 1, 8, 8)).shape == (2, 3)
    assert [layer.out_features for layer in MLP(2, 2).modules() if isinstance(layer, nn.Linear)] == [100, 100, 2]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: MLP(2, 1), "num_classes must be a whole number of at least 2"),
        (lambda: MLP(2, 2, norm="layer"), "norm must be 'none' or 'batch'"),
        (lambda: MLP(2, 2, norm="weighted"), "convert a network"),
        (lambda: MLP(2, 2, hidden=()), "at least one hidden layer"),
        (lambda: MLP(2, 2, dropout=1.0), "dropout must be a number, at least 0 and less than 1, got 1.0"),
        (lambda: LeNet((1, 8, 8), 10), "at least 12 x 12"),
        (lambda: LeNet((28, 28), 10), "channels, height, width"),
        (lambda: WideResNet((3, 32, 32), 10, depth=27), "depth"),
        (lambda: WideResNet((3, 32, 32), 10, width=0), "width"),
        (lambda: LeNet((1, 28, 28), 10)(torch.randn(2, 3, 28, 28)), "made for samples of shape"),
        (lambda: NETWORKS["resnet"], "no network named 'resnet'"),
    ],
)
def test_what_cannot_be_built_is_said(build, message):
    with pytest.raises(EvidentiaError, match=message):
        build()
