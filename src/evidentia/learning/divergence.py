"""The divergence between two Dirichlets, accurate from no evidence to all the evidence there can be."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from evidentia._support.checks import check_tensor
from evidentia.opinions.special import as_double, scaled_digamma_gap, split_for_series, trigamma_excess

# Below this distance from 1 the series of t ln t - t + 1 is exact to float64 rounding.
_SERIES_WITHIN = 0.01


def dirichlet_kl(alpha: Tensor, other: Tensor) -> Tensor:
    r"""$\mathrm{KL}[\mathrm{Dir}(\alpha) \,\|\, \mathrm{Dir}(\hat\alpha)]$ in closed form (thesis appendix).

    $\ln\frac{B(\hat\alpha)}{B(\alpha)} + \sum_k (\alpha_k - \hat\alpha_k)(\psi(\alpha_k) - \psi(S))$. Its terms are
    huge and nearly cancel, so the huge part is cancelled on paper: with the means $\mu = \alpha / S$ and
    $\hat\mu = \hat\alpha / \hat S$, and $g(x) = \ln\Gamma(x) - x \ln x + x$, which changes like $-\frac12 \ln x$ only,
    the divergence is

    $\hat S \sum_k \big(\hat\mu_k \ln\frac{\hat\mu_k}{\mu_k} - \hat\mu_k + \mu_k\big) + \sum_k G(\alpha_k, \hat\alpha_k)
    - G(S, \hat S)$ with $G(x, y) = g(y) - g(x) - g'(x)(y - x)$,

    evaluated in float64. It is exactly 0 for equal parameters.

    Args:
        alpha: parameters, shape `(..., K)`, positive.
        other: those of the other Dirichlet, of a shape that broadcasts with it.

    Example:
        >>> dirichlet_kl(torch.tensor([2.0, 1.0]), torch.tensor([1.0, 1.0]))
        tensor(0.1931)
    """
    check_tensor(alpha, "alpha")
    check_tensor(other, "other")
    divergence: Tensor = _DirichletKL.apply(as_double(alpha), as_double(other))  # type: ignore[no-untyped-call]
    return divergence.to(alpha.dtype)


class _DirichletKL(torch.autograd.Function):
    """The divergence with its derivatives written out: cheaper than to derive them from the value, and as exact."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, y: Tensor) -> Tensor:
        total, other_total = x.sum(-1, keepdim=True), y.sum(-1, keepdim=True)
        growth = other_total / total
        # The ratio of the two means of a class, and how far it is from 1: by differences where these are exact.
        ratio = y / x / growth
        difference = ((y - x) / x - (y - x).sum(-1, keepdim=True) / total) / growth
        excess = torch.where((growth - 1).abs() < 0.5, difference, ratio - 1)
        means = (x * growth * _relative_entropy(ratio, excess)).sum(-1)
        spread = _spread(x, y).sum(-1) - _spread(total, other_total).squeeze(-1)
        return (means + spread).clamp(min=0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, y = ctx.saved_tensors
        total, other_total = x.sum(-1, keepdim=True), y.sum(-1, keepdim=True)
        outer = gradient.unsqueeze(-1)
        of_x, of_y = None, None
        if ctx.needs_input_grad[0]:
            of_x = (outer * (_slope(x, y) - _slope(total, other_total))).sum_to_size(x.shape)
        if ctx.needs_input_grad[1]:
            change = torch.log(y / x) + _log_rest(y) - _log_rest(x)
            of_total = torch.log(other_total / total) + _log_rest(other_total) - _log_rest(total)
            of_y = (outer * (change - of_total)).sum_to_size(y.shape)
        return of_x, of_y


def _slope(x: Tensor, y: Tensor) -> Tensor:
    """The derivative psi'(x) (x - y) less 1: with h(x) = x psi'(x) - 1, it is h - (1 + h) y / x."""
    small, large, is_large = split_for_series(x)
    inverse = 1 / large
    h = torch.where(is_large, inverse * trigamma_excess(inverse), small * torch.polygamma(1, small) - 1)
    return h - (1 + h) * (y / x)


def _log_rest(x: Tensor) -> Tensor:
    """The derivative of g, psi(x) - ln x."""
    return (scaled_digamma_gap(x) - 1) / x


def _relative_entropy(ratio: Tensor, excess: Tensor) -> Tensor:
    """The function t ln t - t + 1 for t = 1 + excess."""
    near = excess.abs() < _SERIES_WITHIN
    d = torch.where(near, excess, torch.zeros_like(excess))
    tail = 1 / 12 - d * (1 / 20 - d * (1 / 30 - d * (1 / 42 - d / 56)))
    series = d * d * (1 / 2 - d * (1 / 6 - d * tail))
    t = torch.where(near, torch.ones_like(ratio), ratio)
    return torch.where(near, series, torch.xlogy(t, t) - t + 1)


def _spread(x: Tensor, y: Tensor) -> Tensor:
    """G(x, y)."""
    return _log_gamma_rest(y) - _log_gamma_rest(x) - _log_rest(x) * (y - x)


def _log_gamma_rest(x: Tensor) -> Tensor:
    """g(x) = ln Gamma(x) - x ln x + x."""
    small, large, is_large = split_for_series(x)
    inverse = 1 / large
    square = inverse * inverse
    tail = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    series = 0.5 * math.log(2 * math.pi) - 0.5 * torch.log(large) + tail
    return torch.where(is_large, series, torch.lgamma(small) - torch.xlogy(small, small) + small)
