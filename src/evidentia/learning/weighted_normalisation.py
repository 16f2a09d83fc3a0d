"""Normalising a batch by the mean and variance of its samples, each with a weight: the mathematics.

The modules that networks are made of are in `weighted_batch_norm`. Here the formula is written out in torch operations,
which can be differentiated and transformed at will; what training uses is in `normalisation_kernel`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad

from evidentia._support.checks import TensorLike, as_float_tensor, validation_enabled
from evidentia._support.errors import EvidentiaError

MIN_TOTAL_WEIGHT = 1e-6
"""Weights that add up to less than this count as no weight at all."""

MIN_FREEDOM = 1e-6
"""A batch that is worth no more than 1 value plus this has no variance."""


class Shares(NamedTuple):
    r"""The weights of a batch, ready for use by any number of layers.

    Attributes:
        share: $w_i / \sum_j w_j$, shape `(B,)`; all 0 if the weights are not usable.
        squares: $\sum_i s_i^2$ of those: one over the effective number of samples.
        usable: whether the weights add up to enough to divide by.
        equal: whether all weights are the same and constant, so that plain batch norm gives the same.
    """

    share: Tensor
    squares: Tensor | float
    usable: Tensor | bool
    equal: bool

    @classmethod
    def of(cls, weight: TensorLike) -> Shares:
        """Check weights and divide them by their sum.

        Example:
            >>> Shares.of([1.0, 3.0, 0.0]).share
            tensor([0.2500, 0.7500, 0.0000])
        """
        given = as_float_tensor(weight, "the weights of a batch")
        if given.ndim != 1:
            raise EvidentiaError(
                f"the weights of a batch must be one number a sample, shape (B,), got shape {tuple(given.shape)}"
            )
        given = given.to(statistics_dtype(given.dtype))
        if transforming(given):
            # No value can be read here, so the checks are left out and the choice is made by tensors.
            total = given.sum()
            usable = total >= MIN_TOTAL_WEIGHT
            share = torch.where(usable, given / torch.where(usable, total, 1), 0 * given)
            return cls(share, share.detach().square().sum(), usable, equal=False)
        if len(given) == 0:
            return cls(given, 0.0, usable=False, equal=False)
        values = given.detach()
        # All four in one reading, since on an accelerator each waits for the device.
        numbers = torch.stack([values.sum(), values.dot(values), *values.aminmax()]).tolist()
        total, squares, low, high = numbers
        if validation_enabled() and not (low >= 0 and math.isfinite(squares)):
            raise EvidentiaError(_complaint(low, high))
        if not total >= MIN_TOTAL_WEIGHT:
            return cls(0 * given, 0.0, usable=False, equal=False)
        share = given / (given.sum() if given.requires_grad else total)
        return cls(share, squares / total**2, usable=True, equal=low == high and not given.requires_grad)


def _complaint(low: float, high: float) -> str:
    if low < 0:
        return f"the weights of a batch must be at least 0, got {low:.6g}; clamp them first"
    kind = "NaN" if math.isnan(low) or math.isnan(high) else f"a largest weight of {high:.6g}"
    return f"the weights of a batch must be finite and of finite square, got {kind}; weights in [0, 1] are the custom"


def statistics_dtype(dtype: torch.dtype) -> torch.dtype:
    """Statistics of half precision are kept in single precision, as batch norm does."""
    return dtype if dtype in (torch.float32, torch.float64) else torch.float32


def transforming(*tensors: Tensor | None) -> bool:
    """Whether a compiler, `torch.func` or forward-mode differentiation looks on, for whom values cannot be read."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return True
    return any(tensor is not None and forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors)


def moments(x: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    r"""Weighted mean and variance of every channel, the algorithm of weighted batch normalisation in chapter 3.

    $$\mu = \sum_i s_i \bar{x}_i, \qquad \sigma^2 = \sum_i s_i \overline{(x_i - \mu)^2}$$

    where the bar is the mean over a sample's positions.

    Args:
        x: inputs, shape `(B, C, ...)`.
        share: weights that add up to 1, shape `(B,)`.

    Example:
        >>> moments(torch.tensor([[1.0], [3.0], [99.0]]), torch.tensor([0.5, 0.5, 0.0]))
        (tensor([2.]), tensor([1.]))
    """
    rows = x.flatten(2) if x.ndim > 2 else x.unsqueeze(2)
    weight = share[:, None, None]
    mean = (rows * weight).sum(0).mean(1)
    return mean, ((rows - mean[:, None]).square() * weight).sum(0).mean(1)


def standardise(x: Tensor, mean: Tensor, var: Tensor, scale: Tensor | None, shift: Tensor | None, eps: float) -> Tensor:
    r"""$\gamma (x - \mu) / \sqrt{\sigma^2 + \epsilon} + \beta$ for every channel."""

    def spread(values: Tensor) -> Tensor:
        return values.view(-1, *(1,) * (x.ndim - 2))

    result = (x - spread(mean)) * spread((var + eps).rsqrt())
    if scale is not None:
        result = result * spread(scale)
    return result if shift is None else result + spread(shift)
