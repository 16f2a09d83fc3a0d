"""What holds for one family of networks only."""

from __future__ import annotations

import copy

import pytest
import torch
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia.events import CRNN, DualDNN, TemporalNetwork


@pytest.mark.parametrize("segment", [1, 2, 8])
def test_other_segments_and_bands(segment):
    net = CRNN(features=200, num_classes=1, segment=segment).eval()
    x = torch.randn(1, 8 * segment, 200)
    assert net(x).shape == (1, 8, 1, 2)
    state, outputs = net.start(), []
    for piece in x.split(3, dim=1):
        told, state = net.step(piece, state)
        outputs.append(told)
    torch.testing.assert_close(torch.cat(outputs, dim=1), net(x), atol=1e-5, rtol=0)


def test_the_temporal_network_sees_as_far_as_it_says():
    net = TemporalNetwork(features=2, num_classes=1, blocks=3).double().eval()
    assert net.context == 29
    # Weights above 0 keep all relus open, so that the farthest step gets through.
    for parameter in net.parameters():
        parameter.data.abs_()
    x = torch.rand(1, 60, 2, dtype=torch.float64, requires_grad=True)
    net(x)[:, -1].sum().backward()
    assert (x.grad.abs().sum(2)[0] > 0).tolist() == [False] * 31 + [True] * 29


def test_the_foreground_scales_what_speaks_for_every_class():
    net = DualDNN(features=16, num_classes=3).double().eval()
    x = torch.randn(2, 20, 16, dtype=torch.float64)
    parts = net.parts(x)
    torch.testing.assert_close(parts.outputs, net(x))
    assert bool((parts.distances >= 0).all())
    quiet = copy.deepcopy(net)
    quiet.foreground.bias.data -= 30
    muted = quiet.parts(x)
    expected = F.logsigmoid(muted.foreground) - F.logsigmoid(parts.foreground)
    change = muted.outputs - parts.outputs
    torch.testing.assert_close(change[..., 0], expected[..., None].expand_as(change[..., 0]))
    assert float(change[..., 1].detach().abs().max()) == 0
