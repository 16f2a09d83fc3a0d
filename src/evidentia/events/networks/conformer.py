"""A causal conformer: convolution for what is near, attention for what is far, both looking back.

After Miyazaki et al. (DCASE 2020), the thesis' second baseline for sound: a stem of convolutions, then blocks of half a
feed-forward step, attention, convolution and another half feed-forward step, each added to its input, and layer norm
(Gulati et al. 2020). Attention reaches a fixed number of segments back, so that a segment costs the same at any time.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia._support.scalars import whole_number
from evidentia.events.networks.crnn import Stem
from evidentia.events.networks.layers import CausalAttention, CausalConv1d, Flow
from evidentia.events.networks.network import NETWORKS, EventNetwork, Normalisation, Size, check_size


class _Plan(NamedTuple):
    maps: tuple[int, ...]
    width: int
    heads: int
    blocks: int
    expansion: int


_STRIDE, _POOLS = 2, (2, 4, 4, 2)
_PLANS = {
    "dcase": _Plan((16, 32, 32, 64), width=104, heads=4, blocks=3, expansion=4),
    "small": _Plan((16, 16, 32, 32), width=36, heads=4, blocks=2, expansion=2),
}


@NETWORKS.register("conformer")
class Conformer(EventNetwork):
    """The causal conformer.

    Args:
        features: bands a frame.
        num_classes: K.
        size: "dcase", 0.8M parameters as the CRNN of that name, or "small", 60k.
        segment: frames a segment.
        dropout: rate in every block.
        normalisation: of the inputs, "fixed" or "running"; see `EventNetwork`.
        context: how many segments back a block's attention reaches; 96 are 6 s of sound.
        kernel: segments that a block's convolution sees.

    Example:
        >>> import torch
        >>> net = Conformer(features=128, num_classes=10).eval()
        >>> outputs, state = net.step(torch.randn(2, 9, 128), net.start(batch=2))
        >>> outputs.shape, state.pending.shape
        (torch.Size([2, 2, 10, 2]), torch.Size([2, 1, 128]))
    """

    def __init__(
        self,
        features: int,
        num_classes: int,
        size: Size = "small",
        segment: int = 4,
        dropout: float = 0.2,
        normalisation: Normalisation = "fixed",
        context: int = 96,
        kernel: int = 7,
    ) -> None:
        check_size(size)
        super().__init__(features, num_classes, segment, normalisation)
        whole_number(context, "context", 1)
        whole_number(kernel, "kernel", 2)
        plan = _PLANS[size]
        self.stem = Stem(features, segment, plan.maps, _STRIDE, _POOLS, gated=False, dropout=dropout)
        self.project = nn.Linear(self.stem.width, plan.width)
        self.blocks = nn.ModuleList(
            _Block(plan.width, plan.heads, plan.expansion, context, kernel, dropout) for _ in range(plan.blocks)
        )
        self._finish(plan.width)

    def encode(self, x: Tensor, flow: Flow) -> Tensor:
        """The stem and the blocks."""
        hidden: Tensor = self.project(self.stem(x, flow))
        for block in self.blocks:
            hidden = block(hidden, flow)
        return hidden


class FeedForward(nn.Sequential):
    """Layer norm, a wider layer with SiLU, and back."""

    def __init__(self, width: int, expansion: int, dropout: float) -> None:
        wide = expansion * width
        super().__init__(
            nn.LayerNorm(width),
            nn.Linear(width, wide),
            nn.SiLU(),
            nn.Dropout(dropout),
            nn.Linear(wide, width),
            nn.Dropout(dropout),
        )


class _Block(nn.Module):
    """Half feed-forward, attention, convolution, half feed-forward, layer norm."""

    def __init__(self, width: int, heads: int, expansion: int, context: int, kernel: int, dropout: float) -> None:
        super().__init__()
        self.before = FeedForward(width, expansion, dropout)
        self.attention_norm = nn.LayerNorm(width)
        self.attention = CausalAttention(width, heads, context)
        self.convolution = _Convolution(width, kernel)
        self.after = FeedForward(width, expansion, dropout)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, flow: Flow) -> Tensor:
        x = x + self.before(x) / 2
        x = x + self.dropout(self.attention(self.attention_norm(x), flow))
        x = x + self.dropout(self.convolution(x, flow))
        result: Tensor = self.norm(x + self.after(x) / 2)
        return result


class _Convolution(nn.Module):
    """Layer norm, a gated linear unit, a convolution over time for each feature, batch norm, SiLU, a linear layer."""

    def __init__(self, width: int, kernel: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 2 * width)
        self.depthwise = CausalConv1d(width, width, kernel, groups=width, bias=False)
        self.batch_norm = nn.BatchNorm1d(width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, flow: Flow) -> Tensor:
        gated = F.glu(self.expand(self.norm(x)), dim=-1).transpose(1, 2)
        mixed = F.silu(self.batch_norm(self.depthwise(gated, flow))).transpose(1, 2)
        result: Tensor = self.out(mixed)
        return result
