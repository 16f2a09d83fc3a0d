"""The causal layers against slow and plain ways to the same numbers."""

from __future__ import annotations

import torch

from evidentia.events.networks import layers
from evidentia.events.networks.layers import CausalAttention, Flow, Recent, RunningNorm


def flow_for(layer, batch, age=0):
    layer.name = "layer"
    cache = torch.zeros(batch, *layer.cache_shape(), dtype=torch.float64)
    return Flow(torch.full((batch,), age, dtype=torch.int64), {"layer": cache})


def test_running_norm_is_the_recursion(monkeypatch):
    layer, x = RunningNorm(3, horizon=5.0), torch.randn(2, 23, 3, dtype=torch.float64) * 2 + 1
    mean, square = torch.zeros(2, 3), torch.ones(2, 3)
    expected = []
    for frame in x.unbind(1):
        mean = 0.8 * mean + 0.2 * frame
        square = 0.8 * square + 0.2 * frame**2
        expected.append((frame - mean) / (square - mean**2).clamp(min=1e-3).sqrt())
    torch.testing.assert_close(layer(x, flow_for(layer, 2)), torch.stack(expected, dim=1))
    monkeypatch.setattr(layers, "_BLOCK", 4)
    torch.testing.assert_close(layer(x, flow_for(layer, 2)), torch.stack(expected, dim=1))


def test_running_norm_forgets_where_a_stream_began():
    layer, x = RunningNorm(1, horizon=20.0), torch.randn(1, 600, 1, dtype=torch.float64)
    drifted = layer(7 * x + 30, flow_for(layer, 1))
    torch.testing.assert_close(drifted[:, 500:], layer(x, flow_for(layer, 1))[:, 500:], atol=1e-5, rtol=1e-5)


def test_running_norm_outlives_a_number_whose_square_is_infinite():
    layer, x = RunningNorm(1, horizon=5.0), torch.randn(1, 600, 1)
    huge = x.clone()
    huge[0, 40] = 1e20
    flow = Flow(torch.zeros(1, dtype=torch.int64), {"layer": torch.zeros(1, *layer.cache_shape())})
    layer.name = "layer"
    found, expected = layer(huge, flow), layer(x, flow)
    assert torch.equal(found[:, :40], expected[:, :40])
    assert bool(found.isfinite().all())
    torch.testing.assert_close(found[:, -1], expected[:, -1], atol=1e-3, rtol=1e-3)


def test_attention_is_a_softmax_over_the_allowed_past():
    torch.manual_seed(3)
    layer = CausalAttention(width=6, heads=2, context=3).double()
    torch.nn.init.normal_(layer.bias)
    x = torch.randn(1, 8, 6, dtype=torch.float64)
    result = layer(x, flow_for(layer, 1))
    query, (key, value) = layer.query(x)[0], layer.key_value(x)[0].chunk(2, dim=-1)
    for t in range(8):
        past = range(max(0, t - 3), t + 1)
        mixed = []
        for head in range(2):
            part = slice(3 * head, 3 * head + 3)
            scores = torch.stack([query[t, part] @ key[s, part] / 3**0.5 + layer.bias[head, t - s] for s in past])
            mixed.append(sum(share * value[s, part] for share, s in zip(scores.softmax(0), past, strict=True)))
        torch.testing.assert_close(result[0, t], layer.out(torch.cat(mixed)))


def test_recent_segments_and_which_of_them_there_are():
    layer = Recent(features=1, length=3)
    x = torch.arange(1.0, 5.0, dtype=torch.float64).view(1, 4, 1)
    flow = flow_for(layer, 1)
    assert layer(x, flow)[0, :, :, 0].tolist() == [[0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4]]
    assert layer.present(flow, 4)[0].sum(1).tolist() == [1, 2, 3, 3]
    assert layer.present(flow_for(layer, 1, age=9), 2)[0].sum(1).tolist() == [3, 3]
    assert flow.kept["layer"].flatten().tolist() == [3, 4]
