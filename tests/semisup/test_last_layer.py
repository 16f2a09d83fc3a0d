"""The last linear layer of any network."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad

from evidentia import EvidentiaError
from evidentia.semisup import MLP, LastLayer, LeNet, WideResNet
from evidentia.semisup.networks.last_layer import Undivided


class Twisted(nn.Module):
    """Layers registered in another order than they run in, one of them shared, and a head inside a part."""

    def __init__(self) -> None:
        super().__init__()
        self.part = nn.ModuleDict({"head": nn.Linear(6, 3)})
        self.shared = nn.Linear(6, 6)
        self.first = nn.Linear(4, 6)
        self.unused = nn.Linear(6, 3)

    def forward(self, x):
        return self.part["head"](self.shared(self.shared(self.first(x)).relu()).relu())


class Ending(nn.Module):
    def __init__(self, ending) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.ending = ending

    def forward(self, x):
        return self.ending(self.linear(x))


@pytest.mark.parametrize(
    ("net", "shape", "name"),
    [
        (Twisted(), (4,), "part.head"),
        (nn.Linear(4, 3), (4,), ""),
        (nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 3))), (4,), "2.0"),
        (MLP(4, 3, norm="none"), (4,), "head"),
        (LeNet((1, 28, 28), 10, norm="none"), (1, 28, 28), "head"),
        (WideResNet((3, 8, 8), 10, depth=10, width=1), (3, 8, 8), "head"),
    ],
    ids=["twisted", "linear", "sequential", "mlp", "lenet", "wrn"],
)
def test_any_network_is_split_without_being_changed(net, shape, name):
    net.eval()
    x, last = torch.randn(5, *shape), LastLayer(net)
    for _ in range(2):
        hidden, logits = last.hidden_and_logits(x)
        assert torch.equal(logits, net(x))
        assert torch.equal(last.head(hidden), logits)
    assert last.name == name
    assert net.get_submodule(name) is last.head
    assert not any(module._forward_hooks for module in net.modules())


def test_features_are_those_of_our_networks():
    net, x = MLP(4, 3).eval(), torch.randn(5, 4)
    assert torch.equal(LastLayer(net).hidden_and_logits(x)[0], net.features(x))


def test_other_parameters_and_transforms():
    net, x, y = Twisted(), torch.randn(5, 4), torch.tensor([0, 1, 2, 0, 1])
    last = LastLayer(net)
    tensors = {name: value.detach() + 0.1 for name, value in net.named_parameters()}

    def loss(given):
        return nn.functional.cross_entropy(last.hidden_and_logits(x, given)[1], y)

    torch.testing.assert_close(last.hidden_and_logits(x, tensors)[1], functional_call(net, tensors, (x,)))
    hidden, logits = last.hidden_and_logits(x, tensors)
    error = logits.softmax(-1) - nn.functional.one_hot(y, 3)
    # The closed form of the gradient of the last layer, on which fast reweighting rests.
    torch.testing.assert_close(grad(loss)(tensors)["part.head.weight"], error.T @ hidden / 5)


def test_gradients_reach_everything_before_the_last_layer():
    net = Twisted()
    hidden, _ = LastLayer(net).hidden_and_logits(torch.randn(5, 4))
    hidden.sum().backward()
    assert net.first.weight.grad is not None


@pytest.mark.parametrize(
    "ending",
    [nn.Softmax(-1), nn.ReLU(inplace=True), nn.Flatten(0), lambda z: z[:, :2], lambda z: z.clone()],
    ids=["softmax", "in place", "reshaped", "cut", "copied"],
)
def test_a_network_with_another_ending_is_refused(ending):
    net = Ending(ending)
    with pytest.raises(EvidentiaError, match=r"must end in an nn\.Linear"):
        LastLayer(net).hidden_and_logits(torch.randn(5, 4))
    assert not net.linear._forward_hooks


def test_other_refusals():
    with pytest.raises(EvidentiaError, match=r"has no nn\.Linear"):
        LastLayer(nn.Conv2d(1, 1, 3))
    with pytest.raises(EvidentiaError, match="one vector a sample"):
        LastLayer(nn.Linear(4, 3)).hidden_and_logits(torch.randn(5, 2, 4))
    with pytest.raises(EvidentiaError, match="found by a call"):
        _ = LastLayer(nn.Linear(4, 3)).head

    class Idle(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 3)

        def forward(self, x):
            return x

    with pytest.raises(EvidentiaError, match=r"no nn\.Linear was run"):
        LastLayer(Idle()).hidden_and_logits(torch.randn(5, 4))


def test_an_error_of_the_network_leaves_no_hook():
    net = nn.Sequential(nn.Linear(4, 3))
    with pytest.raises(RuntimeError):
        LastLayer(net).hidden_and_logits(torch.randn(5, 2))
    assert not net[0]._forward_hooks


def test_a_network_that_gives_a_pair_is_told_so():
    with pytest.raises(EvidentiaError, match="must give a tensor of logits, in training mode too, got tuple"):
        LastLayer(Ending(lambda z: (z, z))).hidden_and_logits(torch.randn(5, 4))


def test_a_linear_layer_with_a_forward_of_its_own_is_no_last_layer():
    class Cosine(nn.Linear):
        def forward(self, x):
            return nn.functional.linear(nn.functional.normalize(x), nn.functional.normalize(self.weight))

    with pytest.raises(EvidentiaError, match=r"the last nn\.Linear to run is '0'"):
        LastLayer(nn.Sequential(nn.Linear(4, 8), Cosine(8, 3))).hidden_and_logits(torch.randn(5, 4))


def test_a_network_that_works_in_place_leaves_its_inputs():
    class InPlace(nn.Linear):
        def forward(self, x):
            return super().forward(x.sub_(5.0))

    network, x = nn.Sequential(InPlace(4, 4), nn.Linear(4, 3)), torch.randn(5, 4)
    before = x.clone()
    LastLayer(network).hidden_and_logits(x)
    Undivided(network).hidden_and_logits(x)
    assert torch.equal(x, before)
