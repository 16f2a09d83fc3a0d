"""Dropout with few random numbers.

A hundred passes over a graph spend most of their time drawing random numbers, one for every value that may be dropped,
and a small network over spectrograms a seventh of its training. 16 random bits a value are enough, so one number of 64
bits serves four values.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (its usual name)

_LEVELS = 1 << 16


def dropout(values: Tensor, rate: float) -> Tensor:
    """Set values to 0 with probability `rate` and scale up the others, so that the mean stays.

    On the CPU the rate is rounded to a multiple of 2^-16; the scale is that of the rounded rate.

    Example:
        >>> _ = torch.manual_seed(1)
        >>> dropout(torch.ones(8), 0.5)
        tensor([0., 0., 0., 2., 2., 0., 2., 0.])
    """
    if values.device.type != "cpu":
        return F.dropout(values, rate)
    dropped = round(rate * _LEVELS)
    if dropped in (0, _LEVELS):
        return values * (dropped == 0)
    numbers = torch.empty(-(-values.numel() // 4), dtype=torch.int64).random_(-(1 << 63), None)
    # In the order in which the values lie in memory, or all that follows gets slow.
    order = torch.empty_like(values, dtype=torch.int16).stride()
    bits = numbers.view(torch.int16)[: values.numel()].as_strided(values.shape, order)
    kept = bits >= dropped - _LEVELS // 2
    return values * kept.to(values.dtype).mul_(_LEVELS / (_LEVELS - dropped))


class Dropout(nn.Dropout):
    """The same as a layer: `nn.Dropout`, faster on the CPU."""

    def forward(self, x: Tensor) -> Tensor:
        """Values dropped while training, and only then."""
        return dropout(x, self.p) if self.training else x
