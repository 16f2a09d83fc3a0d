"""Quantiles of any number of values."""

from __future__ import annotations

from torch import Tensor


def quantiles(values: Tensor, shares: Tensor) -> Tensor:
    """The quantiles of the finite values at shares in [0, 1], in float64; none if there are no values.

    As `torch.quantile` gives them, which takes no more than 16 million values.

    Example:
        >>> import torch
        >>> quantiles(torch.tensor([3.0, 1.0, torch.inf]), torch.tensor([0.0, 0.5, 1.0]).double())
        tensor([1., 2., 3.], dtype=torch.float64)
    """
    finite = values[values.isfinite()].double().sort().values
    if not len(finite):
        return finite
    place = shares * (len(finite) - 1)
    below = place.long()
    return finite[below].lerp(finite[place.ceil().long()], place - below)
