"""Dropout with few random numbers.

A hundred passes over a graph spend most of their time drawing random numbers, one for every value that may be dropped.
16 random bits a value are enough, so one number of 64 bits serves four values.
"""

from __future__ import annotations

import torch
from torch import Tensor
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
    bits = numbers.view(torch.int16)[: values.numel()].reshape(values.shape)
    kept = bits >= dropped - _LEVELS // 2
    return values * kept.to(values.dtype).mul_(_LEVELS / (_LEVELS - dropped))
