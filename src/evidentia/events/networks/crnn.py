"""Convolutions over time and mel bands, then a GRU: the DCASE baseline made causal, and as it was.

The network of the DCASE challenge's task 4 (Turpault et al. 2019; thesis section 4.7): seven 3 x 3 convolutions of 16,
32, 64, 128, 128, 128, 128 maps, each followed by batch norm, a gate, average pooling that halves the bands (and twice
the frames, hence segments of 4) and dropout, then a GRU of two layers of 128. Here convolutions look back and the GRU
runs forward: 0.8M parameters. The small one has four convolutions, the first of which takes every second band, and 60k
parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia._support.errors import EvidentiaError
from evidentia.events.networks.first_stage import first_stage
from evidentia.events.networks.gru import run_gru
from evidentia.events.networks.layers import CausalConv2d, CausalGRU, Flow
from evidentia.events.networks.network import NETWORKS, EventNetwork, Normalisation, Size, check_size
from evidentia.learning.dropout import Dropout


@dataclass(frozen=True)
class _Plan:
    """Maps of the convolutions, stride over bands of the first, bands that each pools into one, gates, and the GRU."""

    maps: tuple[int, ...]
    stride: int
    pools: tuple[int, ...]
    gated: bool
    hidden: int
    layers: int


_PLANS = {
    "dcase": _Plan((16, 32, 64, 128, 128, 128, 128), 1, (2,) * 7, gated=True, hidden=128, layers=2),
    "small": _Plan((16, 32, 32, 64), 2, (2, 4, 4, 2), gated=False, hidden=64, layers=1),
}


class Stem(nn.Module):
    """Stages of convolution that make one vector of a segment's frames, `(B, S * segment, F)` to `(B, S, width)`.

    Args:
        features: F, the bands of a frame.
        segment: frames a segment, a power of 2: the first stages halve the frames.
        maps: of every stage.
        stride: of the first convolution, over bands.
        pools: how many bands every stage pools into one.
        gated: each stage's relu replaced by a gate, a linear map of the maps times their sigmoids.
        dropout: rate after every stage.
        causal: convolutions look back; otherwise they are centred.
    """

    def __init__(
        self,
        features: int,
        segment: int,
        maps: tuple[int, ...],
        stride: int,
        pools: tuple[int, ...],
        gated: bool,
        dropout: float,
        causal: bool = True,
    ) -> None:
        super().__init__()
        halvings = segment.bit_length() - 1
        if segment != 1 << halvings or halvings > len(maps):
            raise EvidentiaError(
                f"frames are halved by up to {len(maps)} convolutions, so a segment must have a power of 2 of them, 1 "
                f"to {1 << len(maps)}, got {segment}"
            )
        if features < stride * math.prod(pools):
            raise EvidentiaError(
                f"this network pools bands of sound and needs at least {stride * math.prod(pools)} features a frame, "
                f"got {features}; the network 'temporal' takes any series. Average several channels of sound to one, "
                "samples.mean(1)"
            )
        stages, inputs, bands = [], 1, features
        for stage, (outputs, pool) in enumerate(zip(maps, pools, strict=True)):
            step = 1 if stage else stride
            conv = CausalConv2d(inputs, outputs, bands, step) if causal else CentredConv2d(inputs, outputs, step)
            stages.append(_Stage(conv, outputs, (2 if stage < halvings else 1, pool), gated, dropout))
            inputs, bands = outputs, -(-bands // step) // pool
        self.stages = nn.ModuleList(stages)
        # This memory format makes training and batches of streams a quarter faster.
        for weight in self.stages.parameters():
            if weight.ndim == 4:
                weight.data = weight.data.contiguous(memory_format=torch.channels_last)
        self.width = inputs * bands

    def forward(self, x: Tensor, flow: Flow) -> Tensor:
        """One vector a segment."""
        maps = x.unsqueeze(1)
        for stage in self.stages:
            maps = stage(maps, flow)
        return maps.transpose(1, 2).flatten(2)


class _Stage(nn.Module):
    """Convolution, batch norm, gate or relu, pooling, dropout."""

    def __init__(
        self, conv: CausalConv2d | CentredConv2d, outputs: int, pool: tuple[int, int], gated: bool, dropout: float
    ) -> None:
        super().__init__()
        self.conv = conv
        self.norm = nn.BatchNorm2d(outputs)
        self.gate = nn.Conv2d(outputs, outputs, 1) if gated else None
        self.dropout = Dropout(dropout)
        self.pool = nn.AvgPool2d(pool)
        self.pools = pool

    def forward(self, x: Tensor, flow: Flow) -> Tensor:
        # Pooling first: dropout then costs an eighth.
        result: Tensor = self.dropout(self._pooled(x, flow))
        return result

    def _pooled(self, x: Tensor, flow: Flow) -> Tensor:
        plain = self.gate is None and x.is_cpu and not torch.is_autocast_enabled("cpu")
        if self.norm.training and plain and x.shape[1] == 1:
            bands = -(-x.shape[3] // self.conv.conv.stride[1])
            if bands % self.pools[1] == 0:
                return first_stage(self.conv.joined(x, flow), self.conv.conv, self.norm, self.pools)
        maps = self.norm(self.conv(x, flow))
        maps = maps.relu_() if self.gate is None else self.gate(maps) * maps.sigmoid()
        result: Tensor = self.pool(maps)
        return result


class CentredConv2d(nn.Module):
    """A 3 x 3 convolution padded on all sides: it looks one frame ahead."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, stride=(1, stride), padding=(0, 1), bias=False)

    def joined(self, x: Tensor, flow: Flow) -> Tensor:
        """The inputs with a frame of zeros on both sides; there is nothing to remember."""
        return F.pad(x, (0, 0, 1, 1))

    def forward(self, x: Tensor, flow: Flow) -> Tensor:
        """The convolution."""
        result: Tensor = self.conv(self.joined(x, flow))
        return result


@NETWORKS.register("crnn")
class CRNN(EventNetwork):
    """The causal CRNN.

    Args:
        features: bands a frame, 128 in the thesis.
        num_classes: K.
        size: "dcase", 0.8M parameters, or "small", 60k.
        segment: frames a segment.
        dropout: rate after every convolution and after the GRU.
        normalisation: of the inputs, "fixed" or "running"; see `EventNetwork`.

    Example:
        >>> net = CRNN(features=128, num_classes=10).eval()
        >>> frames = torch.randn(2, 16, 128)
        >>> outputs = net(frames)
        >>> outputs.shape
        torch.Size([2, 4, 10, 2])
        >>> first, state = net.step(frames[:, :10], net.start(batch=2))
        >>> rest, state = net.step(frames[:, 10:], state)
        >>> torch.allclose(torch.cat([first, rest], dim=1), outputs, atol=1e-5)
        True
    """

    def __init__(
        self,
        features: int,
        num_classes: int,
        size: Size = "small",
        segment: int = 4,
        dropout: float = 0.2,
        normalisation: Normalisation = "fixed",
    ) -> None:
        check_size(size)
        super().__init__(features, num_classes, segment, normalisation)
        plan = _PLANS[size]
        self.stem = Stem(features, segment, plan.maps, plan.stride, plan.pools, plan.gated, dropout)
        self.gru = CausalGRU(self.stem.width, plan.hidden, plan.layers)
        self.dropout = Dropout(dropout)
        self._finish(plan.hidden)

    def encode(self, x: Tensor, flow: Flow) -> Tensor:
        """The GRU over one vector a segment."""
        hidden: Tensor = self.dropout(self.gru(self.stem(x, flow), flow))
        return hidden


@NETWORKS.register("crnn-offline")
class OfflineCRNN(EventNetwork):
    """The CRNN of the DCASE baseline as it was, an offline baseline: centred convolutions, a GRU in both directions.

    Every output depends on the whole clip; `start` and `step` say so in an error. 1.1M parameters at size "dcase".
    Arguments are as for `CRNN`, without the choice of normalisation. It is meant for `LogMel.centred`.

    Example:
        >>> OfflineCRNN(features=128, num_classes=10)(torch.randn(2, 626, 128)).shape
        torch.Size([2, 156, 10, 2])
    """

    streaming: ClassVar[bool] = False

    def __init__(
        self, features: int, num_classes: int, size: Size = "small", segment: int = 4, dropout: float = 0.2
    ) -> None:
        check_size(size)
        super().__init__(features, num_classes, segment)
        plan = _PLANS[size]
        self.stem = Stem(features, segment, plan.maps, plan.stride, plan.pools, plan.gated, dropout, causal=False)
        self.gru = nn.GRU(self.stem.width, plan.hidden, plan.layers, batch_first=True, bidirectional=True)
        self.dropout = Dropout(dropout)
        self._finish(2 * plan.hidden)

    def encode(self, x: Tensor, flow: Flow) -> Tensor:
        """Both directions of the GRU, side by side."""
        inputs = self.stem(x, flow)
        first = inputs.new_zeros(2 * self.gru.num_layers, len(x), self.gru.hidden_size)
        hidden: Tensor = self.dropout(run_gru(self.gru, inputs, first)[0])
        return hidden
