"""The kernel of weighted batch norm: `standardise` by `moments` in few passes over the data, with its derivatives.

The first and the second are by hand: autograd takes two and a half times as long for a gradient that is differentiated
again, which hypergradients need of every batch norm of a network.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import torch
from torch import Tensor

from evidentia.learning.weighted_normalisation import moments, statistics_dtype

_MAX_MEAN_SQUARE = 100.0
"""How many times the variance the squared mean may be, before their difference loses digits that matter."""


def weighted_normalise(
    x: Tensor, share: Tensor, scale: Tensor | None, shift: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`standardise` by `moments`: the output, the mean and the variance.

    Can be differentiated, but neither transformed by `torch.func` nor compiled.

    Example:
        >>> y, mean, var = weighted_normalise(torch.tensor([[1.0], [3.0]]), torch.tensor([0.5, 0.5]), None, None, 0.0)
        >>> y, mean, var
        (tensor([[-1.],
                [ 1.]]), tensor([2.]), tensor([1.]))
    """
    return cast(tuple[Tensor, Tensor, Tensor], _Normalisation.apply(x, share, scale, shift, eps))  # type: ignore[no-untyped-call]


class _Normalisation(torch.autograd.Function):
    """The kernel of `weighted_normalise`."""

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
        x, share, scale, shift, *constants = ctx.saved_tensors
        exact, grad = (each.to(share.dtype) for each in (x, grad))
        gamma = None if scale is None else scale.to(share.dtype)
        found = _Gradient.apply(grad, exact, share, gamma, *constants, ctx.eps, ctx.needs_input_grad[0])  # type: ignore[no-untyped-call]
        pairs = zip(found, (x, share, scale, shift), ctx.needs_input_grad, strict=False)
        return (*(each.to(like.dtype) if needed else None for each, like, needed in pairs), None)


class _Gradient(torch.autograd.Function):
    r"""The gradient of `standardise` by `moments`, given that of the output.

    With $z$ the normalised input, $r = (\sigma^2 + \epsilon)^{-1/2}$, $g$ the gradient of the output, $q = s_i / m$
    what a position of sample $i$ counts for in the statistics, $A = \sum g$ and $B = \sum g z$, each channel has

    $$\frac{\partial L}{\partial x} = \gamma r \big(g - q (A + z B)\big), \qquad
      \frac{\partial L}{\partial s_i} = -\gamma \big(\bar z_i A + \tfrac{1}{2} \overline{z^2_i} B\big), \qquad
      \frac{\partial L}{\partial \gamma} = B, \qquad \frac{\partial L}{\partial \beta} = A$$

    up to a number that the shares of all samples have in common; shares that add up to 1 cannot move along it.
    """

    @staticmethod
    def forward(
        ctx: Any,
        grad: Tensor,
        x: Tensor,
        share: Tensor,
        scale: Tensor | None,
        mean: Tensor,
        var: Tensor,
        deviation: Tensor | None,
        square: Tensor | None,
        eps: float,
        of_inputs: bool,
    ) -> tuple[Tensor | None, ...]:
        rate = (var + eps).rsqrt()
        slope, total = torch.ops.aten.native_batch_norm_backward(
            grad, x, None, None, None, mean, rate, True, eps, [False, True, True]
        )[1:]
        factor = rate if scale is None else rate * scale
        pull, tilt = factor * total, factor * slope
        grad_x = grad_share = None
        if of_inputs:
            part = share / -math.prod(x.shape[2:])
            grad_x = _parts_of_line(x, mean, rate, tilt, pull, part).addcmul_(grad, _spread(factor, x))
        if deviation is not None and square is not None:
            grad_share = -(deviation * pull + square * (rate * tilt / 2)).sum(1)
        ctx.eps = eps
        ctx.save_for_backward(grad, x, share, scale, mean, var)
        ctx.set_materialize_grads(False)
        return grad_x, grad_share, slope, total

    @staticmethod
    def backward(ctx: Any, *along: Tensor | None) -> tuple[Tensor | None, ...]:
        r"""The derivatives of the gradients' product with `along`, by operations that have derivatives themselves.

        With $c$ along the gradient by $x$ and $k$ a position's part of what is along that by $s$, a channel of it is

        $$\gamma r X - \gamma (A K_1 + B K_2) + c_\gamma B + c_\beta A, \qquad X = \sum c g - A C_0 - B C_1$$

        where $C_n = \sum q z^n c$ and $K_n = \sum k z^n / n$. `by_total` and `by_slope` are its derivatives by $A$ and
        $B$, `sum_0` the sum of those by $z$, and `sum_1` their sum times $z$ with what there is by $r$.
        """
        grad, x, share, scale, mean, var = ctx.saved_tensors
        along_x, along_share, along_scale, along_shift = along
        if torch.is_grad_enabled():
            mean, var = moments(x, share)
        rate = (var + ctx.eps).rsqrt()
        gamma = torch.ones_like(rate) if scale is None else scale
        factor, positions = gamma * rate, math.prod(x.shape[2:])
        z = (x - _spread(mean, x)) * _spread(rate, x)
        c = torch.zeros_like(x) if along_x is None else along_x
        q, k = share[:, None] / positions, (0 * share if along_share is None else along_share)[:, None] / positions

        total, slope = _by_sample(grad).sum(0), _by_sample(grad * z).sum(0)
        sum_c, sum_cz = _by_sample(c), _by_sample(c * z)
        c0, c1 = (q * sum_c).sum(0), (q * sum_cz).sum(0)
        of_shares = along_share is not None or ctx.needs_input_grad[2]
        sum_z, sum_zz = (_by_sample(z), _by_sample(z * z)) if of_shares else (0 * q, 0 * q)
        k0, k1, k2 = k.sum() * positions, (k * sum_z).sum(0), (k * sum_zz).sum(0) / 2
        inner = _by_sample(c * grad).sum(0) - total * c0 - slope * c1

        by_total = (0 if along_shift is None else along_shift) - factor * c0 - gamma * k1
        by_slope = (0 if along_scale is None else along_scale) - factor * c1 - gamma * k2
        sum_0 = by_slope * total - slope * (factor * c0 + gamma * k1) - gamma * total * k0
        sum_1 = by_slope * slope - slope * (factor * c1 + 2 * gamma * k2) - gamma * total * k1 + factor * inner

        found: list[Tensor | None] = [None] * 10
        if ctx.needs_input_grad[0]:
            line = torch.addcmul(_spread(by_total, x), z, _spread(by_slope, x))
            found[0] = line.addcmul_(c, _spread(factor, x))
        if ctx.needs_input_grad[1]:
            offset, tilt = q * sum_0 + gamma * total * k, q * sum_1 + gamma * slope * k
            line = torch.addcmul(_spread(-rate * offset, x), z, _spread(-rate * tilt, x))
            line = line.addcmul_(grad, _spread(rate * by_slope, x))
            found[1] = line.addcmul_(c, _spread(-rate * factor * slope * q, x))
        if ctx.needs_input_grad[2]:
            parts = factor * (total * sum_c + slope * sum_cz) + sum_z * sum_0 + sum_zz * (sum_1 / 2)
            found[2] = -parts.sum(1) / positions
        if ctx.needs_input_grad[3]:
            found[3] = rate * inner - (total * k1 + slope * k2)
        return tuple(found)


def _by_sample(values: Tensor) -> Tensor:
    """The sum over the positions of every sample and channel, shape `(B, C)`."""
    return values.flatten(2).sum(2) if values.ndim > 2 else values


def _spread(values: Tensor, x: Tensor) -> Tensor:
    """One number a channel, or one a sample and channel, beside the positions of a batch."""
    return values.view(*values.shape, *(1,) * (x.ndim - 2))


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
    return torch.addcmul(_spread(offset, x), x, _spread(slope, x))


def _channels_last(x: Tensor) -> bool:
    """Whether the channels of a position lie side by side in memory."""
    return x.ndim > 2 and not x.is_contiguous() and x.movedim(1, -1).is_contiguous()


def _full_precision(x: Tensor) -> AbstractContextManager[Any]:
    """Autocast would compute the sums in half precision."""
    if torch.is_autocast_enabled(x.device.type):
        return torch.autocast(x.device.type, enabled=False)
    return nullcontext()
