"""Layers that look back only, and say what they keep of the past.

Each is given a `Flow`, takes what it kept of the stream so far from it and leaves there what it will need next. A
stream that begins has caches of zeros, which is what a convolution padded on its left sees: whole sequences and pieces
of them go through the same code.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia.events.networks.gru import run_gru

# Frames whose running means are found by one matrix product.
_BLOCK = 256
# Of a standardised number, in running means.
_LARGEST = 1e6


@dataclass
class Flow:
    """What goes through a network beside the inputs.

    Attributes:
        segments: how many segments each stream had before these, shape `(B,)`.
        caches: what the layers kept, by their names.
        kept: what they keep now.
    """

    segments: Tensor
    caches: Mapping[str, Tensor]
    kept: dict[str, Tensor] = field(default_factory=dict)


class CausalLayer(nn.Module, ABC):
    """A layer with a memory; `name`, given by its network, is where the memory lies in a `Flow`."""

    name: str = ""

    @abstractmethod
    def cache_shape(self) -> tuple[int, ...]:
        """The shape of what is kept of one stream."""

    @abstractmethod
    def forward(self, x: Tensor, flow: Flow) -> Tensor:
        """The outputs for the inputs, given what came before them."""

    def _past(self, flow: Flow) -> Tensor:
        return flow.caches[self.name]

    def _joined(self, x: Tensor, flow: Flow, dim: int) -> Tensor:
        """The kept inputs and the new ones along time; as many of the latest are kept as there were."""
        past = self._past(flow)
        joined = torch.cat([past, x], dim=dim)
        # From the new ones alone where they are enough: if just as many are kept, nothing need be cut.
        source = x if x.shape[dim] >= past.shape[dim] else joined
        flow.kept[self.name] = source.narrow(dim, source.shape[dim] - past.shape[dim], past.shape[dim])
        return joined


class CausalConv1d(CausalLayer):
    """A dilated convolution over time that ends with the present step, `(B, C, T)` to `(B, outputs, T)`.

    Args:
        inputs: channels.
        outputs: channels of the result.
        kernel: steps it looks at.
        dilation: distance of these steps.
        groups: as for `nn.Conv1d`.
        bias: whether there is one.
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int, dilation: int = 1, groups: int = 1, bias: bool = True
    ) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, kernel, dilation=dilation, groups=groups, bias=bias)

    def cache_shape(self) -> tuple[int, ...]:
        """Channels and the steps before the present one."""
        return self.conv.in_channels, (self.conv.kernel_size[0] - 1) * self.conv.dilation[0]

    def forward(self, x: Tensor, flow: Flow) -> Tensor:
        """The convolution."""
        result: Tensor = self.conv(self._joined(x, flow, dim=2))
        return result


class CausalConv2d(CausalLayer):
    """A 3 x 3 convolution over time and bands that looks back in time, `(B, C, T, bands)`.

    Args:
        inputs: channels.
        outputs: channels of the result.
        bands: the size of the last dimension, which is padded on both sides.
        stride: over bands.
    """

    def __init__(self, inputs: int, outputs: int, bands: int, stride: int = 1) -> None:
        super().__init__()
        self.bands = bands
        self.conv = nn.Conv2d(inputs, outputs, 3, stride=(1, stride), padding=(0, 1), bias=False)

    def cache_shape(self) -> tuple[int, ...]:
        """Channels, two steps, bands."""
        return self.conv.in_channels, 2, self.bands

    def forward(self, x: Tensor, flow: Flow) -> Tensor:
        """The convolution."""
        result: Tensor = self.conv(self.joined(x, flow))
        return result

    def joined(self, x: Tensor, flow: Flow) -> Tensor:
        """The kept inputs and the new ones."""
        if not self.training:
            return self._joined(x, flow, dim=2)
        # Maps innermost: in this layout all that follows trains in two thirds of the time.
        past = self._past(flow)
        joined = torch.cat([maps.permute(0, 2, 3, 1) for maps in (past, x)], dim=1).permute(0, 3, 1, 2)
        flow.kept[self.name] = joined[:, :, -past.shape[2] :]
        return joined


class CausalGRU(CausalLayer):
    """A GRU that runs forward in time, `(B, S, inputs)` to `(B, S, hidden)`.

    Args:
        inputs: features of a segment.
        hidden: units.
        layers: number of layers.
    """

    def __init__(self, inputs: int, hidden: int, layers: int = 1) -> None:
        super().__init__()
        self.gru = nn.GRU(inputs, hidden, layers, batch_first=True)

    def cache_shape(self) -> tuple[int, ...]:
        """Layers and units."""
        return self.gru.num_layers, self.gru.hidden_size

    def forward(self, x: Tensor, flow: Flow) -> Tensor:
        """The last layer's units at every segment."""
        outputs, last = run_gru(self.gru, x, self._past(flow).transpose(0, 1).contiguous())
        flow.kept[self.name] = last.transpose(0, 1)
        return outputs


class Recent(CausalLayer):
    """Every segment with those before it, `(B, S, D)` to `(B, S, length, D)`, oldest first; zeros before the first.

    Args:
        features: D.
        length: how many, the present one with them.
    """

    def __init__(self, features: int, length: int) -> None:
        super().__init__()
        self.features, self.length = features, length

    def cache_shape(self) -> tuple[int, ...]:
        """All but the present segment."""
        return self.length - 1, self.features

    def forward(self, x: Tensor, flow: Flow) -> Tensor:
        """A view of each window of segments."""
        return self._joined(x, flow, dim=1).unfold(1, self.length, 1).transpose(2, 3)

    def present(self, flow: Flow, count: int) -> Tensor:
        """Which entries of the windows of `count` segments are of the stream, `(B, count, length)`, bool."""
        steps = torch.arange(count, device=flow.segments.device)
        ages = torch.arange(self.length - 1, -1, -1, device=flow.segments.device)
        return ages <= (flow.segments[:, None] + steps)[..., None]


class CausalAttention(CausalLayer):
    r"""Attention of every segment over itself and the `context` segments before it, `(B, S, D)`.

    $\mathrm{softmax}(q_t k_s / \sqrt{d} + b_{t-s})\, v_s$ over $t - c \le s \le t$ with a learned bias b for every
    distance and head, so that what a stream gives does not depend on how old it is. Keys and values are kept: a segment
    costs the same at any time of the stream.

    Args:
        width: D.
        heads: they share D.
        context: c.
    """

    def __init__(self, width: int, heads: int, context: int) -> None:
        super().__init__()
        self.heads, self.context, self.width = heads, context, width
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)
        self.bias = nn.Parameter(torch.zeros(heads, context + 1))

    def cache_shape(self) -> tuple[int, ...]:
        """Keys and values, side by side."""
        return self.context, 2 * self.width

    def forward(self, x: Tensor, flow: Flow, memory: Tensor | None = None) -> Tensor:
        """Attention of `x` over itself, or over `memory` of the same shape."""
        keys, values = self._joined(self.key_value(x if memory is None else memory), flow, dim=1).chunk(2, dim=-1)
        query, keys, values = (self._split(part) for part in (self.query(x), keys, values))
        mixed = F.scaled_dot_product_attention(query, keys, values, attn_mask=self._mask(x.shape[1], flow.segments))
        result: Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return result

    def _split(self, x: Tensor) -> Tensor:
        parts: Tensor = x.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return parts

    def _mask(self, count: int, segments: Tensor) -> Tensor:
        """The biases of `count` segments over the kept and the new ones, -inf where they may not look."""
        steps = torch.arange(count, device=segments.device)
        sources = torch.arange(-self.context, count, device=segments.device)
        distance = steps[:, None] - sources
        allowed = (distance >= 0) & (distance <= self.context) & (sources + segments[:, None, None] >= 0)
        bias = self.bias[:, distance.clamp(0, self.context)]
        return torch.where(allowed[:, None], bias, -math.inf)


class RunningNorm(CausalLayer):
    r"""Every feature less its running mean, over its running deviation, of the frames so far.

    $m_t = d\, m_{t-1} + (1 - d)\, x_t$ with $d = 1 - 1 / \text{horizon}$, the mean square likewise, from mean 0 and
    variance 1: inputs are to be standardised on training data first, and this lets them drift, as the gain of a
    microphone does.

    Args:
        features: F.
        horizon: frames after which the past has lost all but 1 / e of its weight.
    """

    def __init__(self, features: int, horizon: float = 625.0) -> None:
        super().__init__()
        self.features = features
        self.decay = 1 - 1 / horizon

    def cache_shape(self) -> tuple[int, ...]:
        """How far mean and mean square are from 0 and 1."""
        return 2, self.features

    def forward(self, x: Tensor, flow: Flow) -> Tensor:
        """The normalised frames, `(B, T, F)`."""
        moments = self._past(flow)
        parts = []
        for block in x.split(_BLOCK, dim=1):
            # An infinite square would be in the means for good, and by 0 times it in those of earlier frames, too.
            counted = block.clamp(-_LARGEST, _LARGEST)
            news = torch.stack([counted, counted.square() - 1], dim=1)
            steps = torch.arange(block.shape[1], device=x.device, dtype=x.dtype)
            age = steps[:, None] - steps
            weight = torch.where(age >= 0, (1 - self.decay) * self.decay ** age.clamp(min=0), 0)
            running = weight @ news + (self.decay ** (steps + 1))[:, None] * moments[:, :, None]
            mean, square = running.unbind(1)
            parts.append((block - mean) / (square + 1 - mean.square()).clamp(min=1e-3).sqrt())
            moments = running[:, :, -1]
        flow.kept[self.name] = moments
        return torch.cat(parts, dim=1)
