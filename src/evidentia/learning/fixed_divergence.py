"""The divergence to Dirichlets that stay the same, which a network in training asks for again and again."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from evidentia._support.errors import EvidentiaError
from evidentia.learning.divergence import dirichlet_kl
from evidentia.opinions.special import as_double, log_beta


class DivergenceTo:
    r"""`dirichlet_kl` to Dirichlets that stay the same while a network learns, several times as fast in float32.

    What depends on them alone is computed once. With $g(x) = \ln\Gamma(x) - x \ln x + x$ the divergence is
    $\ln B(\hat\alpha) - \sum_k F(\alpha_k, \hat\alpha_k) + F(S, \hat S)$ where
    $F(x, y) = y \ln x + g(x) + g'(x)(y - x)$, and none of these is much larger than $\hat\alpha \ln \alpha$: float32
    keeps six digits of it however much evidence there is, and as many of the gradient. Parameters in float64 go to
    `dirichlet_kl` itself.

    Args:
        other: parameters of the Dirichlets to measure from, shape `(..., K)`. In float32 these and those measured must
            be at least 1e-6, which evidence plus 1 always is.

    Example:
        >>> divergence = DivergenceTo(torch.tensor([[1.0, 1.0], [1.0, 3.0]]))
        >>> divergence(torch.tensor([[2.0, 1.0], [4.0, 3.0]]))
        tensor([0.1931, 1.1457])
    """

    def __init__(self, other: Tensor) -> None:
        self._other = other
        exact = as_double(other)
        # The total is one more column, with the opposite sign: half as many calls.
        self._columns = torch.cat([exact, exact.sum(-1, keepdim=True)], -1).float()
        self._signs = self._columns.new_ones(other.shape[-1] + 1)
        self._signs[-1] = -1
        self._constant = (log_beta(exact) - _CONSTANT * self._signs.sum()).float()

    def __call__(self, alpha: Tensor) -> Tensor:
        """The divergence of each row of `alpha`, of the same shape as the other parameters."""
        if alpha.shape != self._other.shape:
            raise EvidentiaError(
                f"alpha must have the shape of the parameters to measure from, {tuple(self._other.shape)}, "
                f"got {tuple(alpha.shape)}"
            )
        if alpha.dtype == torch.float64:
            return dirichlet_kl(alpha, self._other)
        divergence: Tensor = _FixedDivergence.apply(  # type: ignore[no-untyped-call]
            alpha.float(), self._columns, self._constant, self._signs
        )
        return divergence.to(alpha.dtype)


class _FixedDivergence(torch.autograd.Function):
    """The divergence with its derivative, which is made of the same parts and computed along with it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, constant: Tensor, signs: Tensor) -> Tensor:
        parts, slopes = _parts(torch.cat([x, x.sum(-1, keepdim=True)], -1), y)
        ctx.save_for_backward(slopes)
        return (constant - (parts * signs).sum(-1)).clamp(min=0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        (slopes,) = ctx.saved_tensors
        return gradients[0].unsqueeze(-1) * (slopes[..., :-1] - slopes[..., -1:]), None, None, None


# What is left out of g by `_parts`.
_CONSTANT = 0.5 * math.log(2 * math.pi) - 4


def _parts(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    r"""F(x, y) but for a constant, and $\psi'(x)(x - y) - 1$, to float32 rounding.

    The gamma functions at x + 4 are their asymptotic series, which are good there. Four steps of their recurrences lead
    to x, with $P = x(x + 1)(x + 2)(x + 3)$: $\ln\Gamma(x) = \ln\Gamma(x + 4) - \ln P$; likewise its derivatives, with
    $P'/P$ and $P''/P$. All of it is written in u = 1 / x, whose powers are finite however large x is.
    """
    u = 1 / x
    square = u * u
    near = 1 + 3 * u  # x (x + 3) / x²
    far = near + u  # (x + 4) / x
    product = near * (near + 2 * square)  # P / x⁴
    inner, outer = 2 + 3 * u, 2 * (near + square)  # the derivative of x (x + 3) by x, and of P by it
    steps = inner * outer / product  # x P' / P
    v = u / far  # 1 / (x + 4)
    w = v * v
    log_x, log_far = torch.log(x), torch.log(far)
    g = (x + 3.5) * log_far - torch.log(product) - 0.5 * log_x + v * (1 / 12 - w * (1 / 360 - w / 1260))
    slope_of_g = log_far - v * (0.5 + v * (1 / 12 - w * (1 / 120 - w / 252))) - u * steps
    # x psi'(x) - 1, with what cancels for large x left out: it falls like 1 / (2 x).
    series = (v * (0.5 + v * (1 / 6 - w * (1 / 30 - w / 42))) - 4 * u) / far
    excess = series + u * (steps * steps - 2 * (outer + inner * inner) / product)
    return y * log_x + g + slope_of_g * (y - x), excess - (1 + excess) * u * y
