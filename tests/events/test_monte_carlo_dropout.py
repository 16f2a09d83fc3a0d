"""Monte Carlo dropout of event networks."""

from __future__ import annotations

import pytest
import torch

from evidentia import EvidentiaError
from evidentia.events import EpistemicFilter, dropout_samples, make_network
from evidentia.events.training.fitting import segment_beta

FRAMES = [torch.randn(24, 128, generator=torch.Generator().manual_seed(n)) for n in range(2)]
LENGTHS = torch.tensor([6, 6])


def test_samples_differ_by_dropout_only_and_follow_from_the_seed() -> None:
    net = make_network("crnn", 128, 3)
    net.head.eval()  # frozen by its owner
    modes = [module.training for module in net.modules()]
    found = dropout_samples(net, FRAMES, LENGTHS, samples=4, seed=1)
    assert found.shape == (4, 2, 6, 3)
    assert not torch.equal(found[0], found[1])
    assert torch.equal(found, dropout_samples(net, FRAMES, LENGTHS, samples=4, seed=1))
    assert not torch.equal(found, dropout_samples(net, FRAMES, LENGTHS, samples=4, seed=2))
    assert [module.training for module in net.modules()] == modes


def test_batch_norm_learns_nothing_from_samples() -> None:
    net = make_network("crnn", 128, 3)
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    dropout_samples(net, FRAMES, LENGTHS, samples=2)
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())


def test_many_samples_scatter_around_the_network_without_dropout() -> None:
    net = make_network("crnn", 128, 3, dropout=0.05).eval()
    alpha, beta, _ = segment_beta(net, FRAMES, LENGTHS, "sigmoid", "exp")
    mean = dropout_samples(net, FRAMES, LENGTHS, samples=40).mean(0)
    assert torch.allclose(mean, alpha / (alpha + beta), atol=0.02)


def test_filters_decide_by_samples() -> None:
    """With the least limit nothing is called, with the largest all that is likely."""
    net = make_network("crnn", 128, 3, dropout=0.5)
    net.head.bias.data[::2] += 1
    found = dropout_samples(net, FRAMES, LENGTHS, samples=8)
    calls = [head.calls(head.fuse_samples(found)) for head in (EpistemicFilter(max_uncertainty=u) for u in (0.0, 1.0))]
    assert not calls[0].any()
    assert torch.equal(calls[1], found.mean(0) > 0.5)
    assert calls[1].any()


def test_without_dropout_or_samples_there_is_nothing_to_sample() -> None:
    with pytest.raises(EvidentiaError, match="needs a network with dropout"):
        dropout_samples(make_network("crnn", 128, 3, dropout=0.0), FRAMES, LENGTHS)
    with pytest.raises(EvidentiaError, match="at least 1, got 0"):
        dropout_samples(make_network("crnn", 128, 3), FRAMES, LENGTHS, samples=0)
