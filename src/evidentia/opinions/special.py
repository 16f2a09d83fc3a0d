"""Special functions that keep their digits where the textbook expression loses them.

With evidence in the millions, the gamma functions of a Dirichlet are huge numbers whose difference is small. Here the
large parts are cancelled on paper and only what is left is computed.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

# Above this argument the asymptotic series below are exact to float64 rounding.
_SERIES_FROM = 64.0


def scaled_digamma_gap(x: Tensor) -> Tensor:
    r"""$h(x) = x\,(\psi(x + 1) - \ln x)$ for $x \ge 0$, which rises from 0 to 1/2.

    The mutual information of class and class probabilities under a Dirichlet is $(\sum_k h(\alpha_k) - h(S)) / S$.

    Example:
        >>> scaled_digamma_gap(torch.tensor([0.0, 1.0, 1e30]))
        tensor([0.0000, 0.4228, 0.5000])
    """
    small, large, is_large = split_for_series(x)
    direct = small * (torch.digamma(small + 1) - torch.log(small))
    inverse = 1 / large
    square = inverse * inverse
    series = 0.5 - inverse * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240)))
    return torch.where(is_large, series, torch.where(x > 0, direct, torch.zeros_like(x)))


def dirichlet_entropy(alpha: Tensor) -> Tensor:
    r"""The differential entropy of $\mathrm{Dir}(\alpha)$ over the last dimension, in nats.

    With $g(x) = \ln\Gamma(x) - (x - 1)\psi(x) + x$, which grows like $\frac12 \ln x$ only, it is
    $\sum_k g(\alpha_k) - g(S) - (K - 1)\psi(S)$. Where a parameter is 0 or infinite, the distribution has collapsed
    onto a face of the simplex and the entropy is $-\infty$.

    Example:
        >>> dirichlet_entropy(torch.tensor([[1.0, 1.0], [1e30, 1e30]]))
        tensor([  0.0000, -34.1596])
    """
    collapsed = ((alpha == 0) | torch.isinf(alpha)).any(-1)
    alpha = torch.where(collapsed.unsqueeze(-1), torch.ones_like(alpha), alpha)
    strength = alpha.sum(-1)
    parts = _entropy_part(alpha).sum(-1) - _entropy_part(strength)
    spread = parts - (alpha.shape[-1] - 1) * torch.digamma(strength)
    return torch.where(collapsed, torch.full_like(spread, -math.inf), spread)


def log_beta(alpha: Tensor) -> Tensor:
    r"""$\ln B(\alpha) = \sum_k \ln\Gamma(\alpha_k) - \ln\Gamma(S)$ over the last dimension."""
    return torch.lgamma(alpha).sum(-1) - torch.lgamma(alpha.sum(-1))


def _entropy_part(x: Tensor) -> Tensor:
    small, large, is_large = split_for_series(x)
    direct = torch.lgamma(small) - (small - 1) * torch.digamma(small) + small
    inverse = 1 / large
    tail = 1 / 3 + inverse * (1 / 12 + inverse * (1 / 90 - inverse * (1 / 120 + inverse * (1 / 210 - inverse / 252))))
    series = 0.5 * torch.log(large) + (0.5 * math.log(2 * math.pi) + 0.5) - inverse * tail
    return torch.where(is_large, series, direct)


def split_for_series(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Arguments for the direct expression and for the series, each replaced by a harmless one where not used."""
    is_large = x > _SERIES_FROM
    small = torch.where(is_large | (x <= 0), torch.ones_like(x), x)
    large = torch.where(is_large, x, torch.full_like(x, _SERIES_FROM))
    return small, large, is_large


def dirichlet_fisher_log_det(alpha: Tensor) -> Tensor:
    r"""$\ln \det I(\alpha)$ of the Dirichlet's Fisher information $\mathrm{diag}(\psi'(\alpha)) - \psi'(S)\,11^\top$.

    By the matrix determinant lemma it is $\sum_k \ln\psi'(\alpha_k) + \ln(1 - \psi'(S) \sum_k 1/\psi'(\alpha_k))$,
    whose last term cancels to nothing as S grows. With $r(x) = x - 1/\psi'(x)$, which rises to 1/2 only, that term is
    $\ln\psi'(S) + \ln(\sum_k r(\alpha_k) - r(S))$.

    Example:
        >>> dirichlet_fisher_log_det(torch.tensor([[1.0, 1.0], [1e9, 1e9]]))
        tensor([ -0.5378, -63.5561])
    """
    strength = alpha.sum(-1)
    log_trigamma, remainder = _trigamma_parts(alpha)
    log_trigamma_of_sum, remainder_of_sum = _trigamma_parts(strength)
    return log_trigamma.sum(-1) + log_trigamma_of_sum + torch.log(remainder.sum(-1) - remainder_of_sum)


def trigamma(x: Tensor) -> Tensor:
    r"""$\psi'(x) = \zeta(2, x)$, the derivative of the digamma function.

    PyTorch's own `polygamma(1, x)` is good to nine digits only, its Hurwitz zeta function to all.
    """
    value: Tensor = torch.special.zeta(2.0, x)
    return value


def _trigamma_parts(x: Tensor) -> tuple[Tensor, Tensor]:
    """Logarithm of the trigamma function, and x minus its reciprocal."""
    small, large, is_large = split_for_series(x)
    direct = trigamma(small)
    inverse = 1 / large
    excess = trigamma_excess(inverse)
    scaled = 1 + inverse * excess
    return (
        torch.where(is_large, torch.log(scaled) - torch.log(large), torch.log(direct)),
        torch.where(is_large, excess / scaled, small - 1 / direct),
    )


def trigamma_excess(inverse: Tensor) -> Tensor:
    r"""$x (x \psi'(x) - 1)$ of a large x, by its series in 1/x; it falls to 1/2."""
    square = inverse * inverse
    return 0.5 + inverse * (1 / 6 - square * (1 / 30 - square * (1 / 42 - square / 30)))


def quotient(numerator: Tensor, denominator: Tensor, otherwise: Tensor | float = 0.0) -> Tensor:
    """The quotient, and `otherwise` where the denominator is 0, with gradients that are finite there too.

    Example:
        >>> quotient(torch.tensor([1.0, 1.0]), torch.tensor([2.0, 0.0]), otherwise=1.0)
        tensor([0.5000, 1.0000])
    """
    some = denominator > 0
    return torch.where(some, numerator / torch.where(some, denominator, 1.0), otherwise)


def as_double(x: Tensor) -> Tensor:
    """The tensor in float64, where its device has it."""
    return x if x.device.type == "mps" else x.double()
