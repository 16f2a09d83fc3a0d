"""Normalising a batch by the mean and variance of its samples, each with a weight: the mathematics.

The modules that networks are made of are in `weighted_batch_norm`. Here is the formula twice: written out in torch
operations, which can be differentiated and transformed at will, and as a kernel with its first derivative by hand,
which is what training uses.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from torch.autograd import forward_ad

from evidentia._support.checks import TensorLike, as_float_tensor, validation_enabled
from evidentia._support.errors import EvidentiaError

MIN_TOTAL_WEIGHT = 1e-6
"""Weights that add up to less than this count as no weight at all."""

MIN_FREEDOM = 1e-6
"""A batch that is worth no more than 1 value plus this has no variance."""

_MAX_MEAN_SQUARE = 100.0
"""How many times the variance the squared mean may be, before their difference loses digits that matter."""


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


def weighted_normalise(
    x: Tensor, share: Tensor, scale: Tensor | None, shift: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`standardise` by `moments` in few passes over the data: the output, the mean and the variance.

    Can be differentiated twice, and neither transformed by `torch.func` nor compiled.

    Example:
        >>> y, mean, var = weighted_normalise(torch.tensor([[1.0], [3.0]]), torch.tensor([0.5, 0.5]), None, None, 0.0)
        >>> y, mean, var
        (tensor([[-1.],
                [ 1.]]), tensor([2.]), tensor([1.]))
    """
    return cast(tuple[Tensor, Tensor, Tensor], _Normalisation.apply(x, share, scale, shift, eps))  # type: ignore[no-untyped-call]


class _Normalisation(torch.autograd.Function):
    r"""The kernel of `weighted_normalise`.

    With $\hat{x}$ the normalised input, $m$ positions and $g$ the gradient of the output,

    $$\frac{\partial L}{\partial x_i} = \frac{\gamma}{\sigma} \Big( g_i - \frac{s_i}{m}
      \big(\textstyle\sum g + \hat{x}_i \sum g \hat{x}\big) \Big)$$

    A gradient that is itself to be differentiated is taken of the formula instead.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, share: Tensor, scale: Tensor | None, shift: Tensor | None, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        exact = x.to(statistics_dtype(x.dtype))
        with _full_precision(x):
            mean, var, deviation, square = _fast_moments(exact, share, ctx.needs_input_grad[1])
        # The kernel of evaluation mode is given the statistics, in place of running ones.
        gamma = None if scale is None else scale.to(exact.dtype)
        beta = None if shift is None else shift.to(exact.dtype)
        y = torch.native_batch_norm(exact, gamma, beta, mean, var, False, 0.0, eps)[0]
        ctx.eps = eps
        ctx.save_for_backward(x, share, scale, shift, mean, var, deviation, square)
        ctx.mark_non_differentiable(mean, var)
        ctx.set_materialize_grads(False)
        return y.to(x.dtype), mean, var

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
        if grad is None:
            return (None,) * 5
        x, share, scale, shift, mean, var, deviation, square = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _differentiable_backward(ctx, grad, x, share, scale, shift)
        exact, grad = x.to(mean.dtype), grad.to(mean.dtype)
        rate = (var + ctx.eps).rsqrt()
        slope, total = torch.ops.aten.native_batch_norm_backward(
            grad, exact, None, None, None, mean, rate, True, ctx.eps, [False, True, True]
        )[1:]
        factor = rate if scale is None else rate * scale
        pull, tilt = factor * total, factor * slope
        grad_x = grad_share = None
        if ctx.needs_input_grad[0]:
            part = share / -math.prod(x.shape[2:])
            grad_x = _parts_of_line(exact, mean, rate, tilt, pull, part)
            grad_x = grad_x.addcmul_(grad, factor.view(-1, *(1,) * (x.ndim - 2))).to(x.dtype)
        if ctx.needs_input_grad[1]:
            grad_share = -(deviation * pull + square * (rate * tilt / 2)).sum(1)
        grad_scale = slope.to(scale.dtype) if ctx.needs_input_grad[2] else None
        grad_shift = total.to(shift.dtype) if ctx.needs_input_grad[3] else None
        return grad_x, grad_share, grad_scale, grad_shift, None


def _fast_moments(x: Tensor, share: Tensor, per_sample: bool) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """The `moments`; if `per_sample`, also each sample's mean of `x - mean` and of `(x - mean)^2`."""
    if x.ndim == 2 or _channels_last(x):
        rows = x.movedim(1, -1).flatten(1, -2) if x.ndim > 2 else x.unsqueeze(1)
        # Over the positions of a sample first: a sum of all rows at once would lose digits.
        sample = rows.mean(1)
        mean = torch.mv(sample.t(), share)
        square = (rows - mean).square_().mean(1)
        var = torch.mv(square.t(), share)
        return (mean, var, sample - mean, square) if per_sample else (mean, var, None, None)
    rows = x.flatten(2)
    positions = rows.shape[2]
    part = share / positions
    mean = torch.mv(rows.flatten(1).t(), part).view(rows.shape[1:]).sum(1)
    mean_square = mean.square()
    # The norm is the one sum of squares that needs no memory for the squares.
    squares = torch.linalg.vector_norm(rows, dim=2).square_()
    var = torch.addmv(mean_square, squares.t(), part, beta=-1)
    far = torch.sub(mean_square, var, alpha=_MAX_MEAN_SQUARE).max().item() > 0
    if far:
        squares = torch.linalg.vector_norm(rows - mean[:, None], dim=2).square_()
        var = torch.mv(squares.t(), part)
    if not per_sample:
        return mean, var, None, None
    deviation = rows.mean(2) - mean
    square = squares / positions
    return mean, var, deviation, square if far else square - mean * (2 * deviation + mean)


def _differentiable_backward(
    ctx: Any, grad: Tensor, x: Tensor, share: Tensor, scale: Tensor | None, shift: Tensor | None
) -> tuple[Tensor | None, ...]:
    # Of views, because the input of a layer comes from layers before it that share its weights: a gradient of the
    # weights themselves would go back through all of those and count them twice.
    x, share = x.view_as(x), share.view_as(share)
    scale, shift = (None if each is None else each.view_as(each) for each in (scale, shift))
    exact = x.to(share.dtype)
    y = standardise(exact, *moments(exact, share), scale, shift, ctx.eps).to(x.dtype)
    needed = [index for index in range(4) if ctx.needs_input_grad[index]]
    inputs = [cast(Tensor, (x, share, scale, shift)[index]) for index in needed]
    found = torch.autograd.grad(y, inputs, grad, create_graph=True)
    grads: list[Tensor | None] = [None] * 5
    for index, value in zip(needed, found, strict=True):
        grads[index] = value
    return tuple(grads)


def _parts_of_line(x: Tensor, mean: Tensor, rate: Tensor, slope: Tensor, offset: Tensor, part: Tensor) -> Tensor:
    """`part * (slope * rate * (x - mean) + offset)` with `part` one a sample and the others one a channel."""
    slope = slope * rate
    offset = torch.addcmul(offset, slope, mean, value=-1)
    slope, offset = torch.outer(part, slope), torch.outer(part, offset)
    if x.ndim > 2 and x.is_contiguous() and x.device.type == "cpu":
        # The kernel of evaluation mode is a fused x * a + b, if every channel of every sample counts as a channel.
        slope, offset = slope.view(-1), offset.view(-1)
        rows = x.view(1, slope.numel(), -1)
        zeros, ones = torch.zeros_like(slope), torch.ones_like(slope)
        return torch.native_batch_norm(rows, slope, offset, zeros, ones, False, 0.0, 0.0)[0].view(x.shape)
    spread = (*slope.shape, *(1,) * (x.ndim - 2))
    return torch.addcmul(offset.view(spread), x, slope.view(spread))


def _channels_last(x: Tensor) -> bool:
    """Whether the channels of a position lie side by side in memory."""
    return x.ndim > 2 and not x.is_contiguous() and x.movedim(1, -1).is_contiguous()


def _full_precision(x: Tensor) -> AbstractContextManager[Any]:
    """Autocast would compute the sums in half precision."""
    if torch.is_autocast_enabled(x.device.type):
        return torch.autocast(x.device.type, enabled=False)
    return nullcontext()
