r"""Dilated causal convolutions over any multivariate series: sensors, machines, markets, vital signs.

Blocks of two convolutions of 3 steps, with dilation 1, 2, 4, ... and a shortcut (Bai et al. 2018): B blocks see
$1 + 4 (2^B - 1)$ steps back. The mean over the steps of a segment is read.
"""

from __future__ import annotations

from torch import Tensor, nn

from evidentia._support.scalars import whole_number
from evidentia.events.networks.layers import CausalConv1d, Flow
from evidentia.events.networks.network import NETWORKS, EventNetwork, Normalisation, Size, check_size

_WIDTHS = {"dcase": 148, "small": 40}


@NETWORKS.register("temporal")
class TemporalNetwork(EventNetwork):
    """The network for series without an order among their features.

    Args:
        features: numbers a step.
        num_classes: K.
        size: "dcase", 0.8M parameters, or "small", 60k, with few features.
        segment: steps that share one output; 1 for an output at every step.
        dropout: rate after every convolution.
        normalisation: of the inputs, "fixed" or "running"; see `EventNetwork`.
        blocks: their number; 6 see 253 steps.

    Example:
        >>> import torch
        >>> net = TemporalNetwork(features=3, num_classes=2).eval()
        >>> net(torch.randn(5, 40, 3)).shape
        torch.Size([5, 40, 2, 2])
    """

    def __init__(
        self,
        features: int,
        num_classes: int,
        size: Size = "small",
        segment: int = 1,
        dropout: float = 0.2,
        normalisation: Normalisation = "fixed",
        blocks: int = 6,
    ) -> None:
        check_size(size)
        super().__init__(features, num_classes, segment, normalisation)
        whole_number(blocks, "blocks", 1)
        width = _WIDTHS[size]
        self.project = nn.Linear(features, width)
        self.blocks = nn.ModuleList(_Block(width, 2**block, dropout) for block in range(blocks))
        self._finish(width)

    @property
    def context(self) -> int:
        """How many steps an output depends on, the present one with them."""
        return 1 + 4 * ((1 << len(self.blocks)) - 1)

    def encode(self, x: Tensor, flow: Flow) -> Tensor:
        """The blocks, and the mean of each segment."""
        steps = self.project(x).transpose(1, 2)
        for block in self.blocks:
            steps = block(steps, flow)
        hidden: Tensor = steps.unflatten(2, (-1, self.segment)).mean(3).transpose(1, 2)
        return hidden


class _Block(nn.Module):
    """Convolution, batch norm, relu and dropout, twice, beside a shortcut."""

    def __init__(self, width: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.first = CausalConv1d(width, width, 3, dilation, bias=False)
        self.first_norm = nn.BatchNorm1d(width)
        self.second = CausalConv1d(width, width, 3, dilation, bias=False)
        self.second_norm = nn.BatchNorm1d(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, flow: Flow) -> Tensor:
        change = self.dropout(self.first_norm(self.first(x, flow)).relu())
        change = self.dropout(self.second_norm(self.second(change, flow)).relu())
        result: Tensor = x + change
        return result
