"""What every registered uncertainty of the pool must keep; a new one is held to it by being registered."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from evidentia import EvidentiaError
from evidentia.semisup import AUGMENTATIONS, MLP, LeNet
from evidentia.semisup.uncertainty import UNCERTAINTIES, PoolUncertainty

CLASSES = 3
# Little training: what is asked here holds for any network.
QUICK = {"pu": {"steps": 3, "repeats": 1, "width": 2}}

every_uncertainty = pytest.mark.parametrize("name", sorted(UNCERTAINTIES))


def estimator(name: str) -> PoolUncertainty:
    return UNCERTAINTIES[name](**QUICK.get(name, {}))


def data(dtype: torch.dtype = torch.float32, scale: float = 1.0) -> tuple[tuple[Tensor, Tensor], Tensor]:
    generator = torch.Generator().manual_seed(3)
    labeled, pool = (scale * torch.randn(n, 4, generator=generator, dtype=dtype) for n in (9, 21))
    return (labeled, torch.arange(9) % CLASSES), pool


def estimated(name: str, net: nn.Module, labeled: tuple[Tensor, Tensor], pool: Tensor, **options: object) -> Tensor:
    torch.manual_seed(5)
    return estimator(name).estimate(net, labeled, pool, CLASSES, AUGMENTATIONS["vectors"](), **options)


@every_uncertainty
@pytest.mark.parametrize("scale", [0.0, 1e-20, 1.0, 1e6])
def test_one_number_in_the_unit_interval_a_sample(name, dtype, scale):
    labeled, pool = data(dtype, scale)
    u = estimated(name, MLP(4, CLASSES).to(dtype), labeled, pool)
    assert u.shape == (len(pool),)
    assert u.dtype == dtype
    assert not u.requires_grad
    assert bool(((u >= 0) & (u <= 1)).all())


@every_uncertainty
def test_images(name):
    x, y = torch.rand(9, 1, 12, 12), torch.arange(9) % CLASSES
    u = estimator(name).estimate(LeNet((1, 12, 12), CLASSES), (x, y), torch.rand(7, 1, 12, 12), CLASSES, images())
    assert u.shape == (7,)


def images():
    return AUGMENTATIONS["images"]()


@every_uncertainty
def test_the_same_seed_gives_the_same_numbers(name):
    labeled, pool = data()
    net = MLP(4, CLASSES)
    assert torch.equal(*(estimated(name, net, labeled, pool) for _ in range(2)))


@every_uncertainty
def test_the_network_and_its_mode_are_left_alone(name):
    labeled, pool = data()
    net = MLP(4, CLASSES, dropout=0.5).train()
    net.body[1].eval()
    before, modes = copy.deepcopy(net.state_dict()), [module.training for module in net.modules()]
    estimated(name, net, labeled, pool)
    assert all(torch.equal(before[key], value) for key, value in net.state_dict().items())
    assert [module.training for module in net.modules()] == modes
    assert all(parameter.grad is None for parameter in net.parameters())
    assert not any(module._forward_hooks for module in net.modules())


@every_uncertainty
def test_it_says_whether_it_is_to_be_estimated_again(name):
    labeled, pool = data()
    first, second = (MLP(4, CLASSES) for _ in range(2))
    same = torch.equal(estimated(name, first, labeled, pool), estimated(name, second, labeled, pool))
    assert same is not estimator(name).refresh


@every_uncertainty
@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda x, y, pool: ((x, y), pool[:, :2]), "of one shape"),
        (lambda x, y, pool: ((x, y), pool[:0]), "n >= 1"),
        (lambda x, y, pool: ((x, y), pool.long()), "floating"),
        (lambda x, y, pool: ((x, y[:-1]), pool), "one a labeled sample"),
        (lambda x, y, pool: ((x, y + 1), pool), "classes from 0 to 2"),
        (lambda x, y, pool: ((x, y), pool * torch.nan), "finite"),
    ],
    ids=["shape", "empty", "integers", "labels", "classes", "nan"],
)
def test_bad_input_is_refused(name, change, match):
    labeled, pool = data()
    with pytest.raises(EvidentiaError, match=match):
        estimated(name, MLP(4, CLASSES), *change(*labeled, pool))
    with pytest.raises(EvidentiaError, match="at least 2"):
        estimator(name).estimate(MLP(4, CLASSES), labeled, pool, 1, images())
