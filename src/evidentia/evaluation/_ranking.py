"""One sort that all rankings share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class Ranking(NamedTuple):
    """The order of some values, and where each run of equal ones ends in it."""

    order: Tensor
    """Indices that sort the values."""
    last: Tensor
    """The position, in that order, of the last value of each run of ties; int64."""


def rank(values: Tensor, *, descending: bool = False) -> Ranking:
    """Sort a vector, and find its ties.

    Within ties the order is arbitrary: whoever uses it must look at whole runs only.
    """
    # On the CPU numpy sorts with SIMD instructions, two to three times as fast as torch.
    order = torch.from_numpy(np.argsort(values.numpy())) if values.device.type == "cpu" else values.argsort()
    if descending:
        order = order.flip(0)
    ordered = values.index_select(0, order)
    is_last = torch.ones(len(values), dtype=torch.bool, device=values.device)
    torch.ne(ordered[1:], ordered[:-1], out=is_last[:-1])
    return Ranking(order, is_last.nonzero().squeeze(1))
