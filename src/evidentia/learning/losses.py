"""Losses over Dirichlet parameters, one value a sample; pure functions without reduction.

Targets are class indices of shape `(...)` or class probabilities (one-hot, soft) of shape `(..., K)`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia._support.checks import (
    check_adds_to_one,
    check_class_dim,
    check_nonnegative,
    check_positive,
    check_tensor,
    check_unit_interval,
    validation_enabled,
)
from evidentia._support.errors import EvidentiaError
from evidentia._support.registry import Registry
from evidentia._support.scalars import real_number
from evidentia.learning.divergence import dirichlet_kl
from evidentia.opinions.special import as_double

LOSSES: Registry[Callable[[Tensor, Tensor], Tensor]] = Registry("loss")


@LOSSES.register("squared-error")
def squared_error_risk(alpha: Tensor, target: Tensor) -> Tensor:
    r"""Bayes risk of the squared error under $\mathrm{Dir}(\alpha)$ (thesis eq. loss).

    $\sum_k (y_k - \mathbb{E}[p_k])^2 + \mathrm{Var}(p_k)$ with
    $\mathrm{Var}(p_k) = \mathbb{E}[p_k](1 - \mathbb{E}[p_k])/(S + 1)$.

    Example:
        >>> squared_error_risk(torch.tensor([[1.0, 1.0]]), torch.tensor([0]))
        tensor([0.6667])
    """
    check_alpha(alpha)
    y = as_probabilities(target, alpha)
    strength = alpha.sum(-1, keepdim=True)
    mean = alpha / strength
    return ((y - mean) ** 2 + mean * (1 - mean) / (strength + 1)).sum(-1)


@LOSSES.register("cross-entropy")
def cross_entropy_risk(alpha: Tensor, target: Tensor) -> Tensor:
    r"""Bayes risk of the cross entropy under $\mathrm{Dir}(\alpha)$: $\sum_k y_k (\psi(S) - \psi(\alpha_k))$.

    With two classes it is the Beta loss of early event detection (thesis eq. 4.4 and theorem 4). The difference is
    taken in float64, because with much evidence for the right class it is far smaller than its terms.

    Example:
        >>> cross_entropy_risk(torch.tensor([[3.0, 1.0]]), torch.tensor([0]))
        tensor([0.3333])
    """
    check_alpha(alpha)
    y, exact = as_probabilities(target, alpha), as_double(alpha)
    return (y * (torch.digamma(exact.sum(-1, keepdim=True)) - torch.digamma(exact))).sum(-1).to(alpha.dtype)


@LOSSES.register("type-ii")
def type_ii_likelihood(alpha: Tensor, target: Tensor) -> Tensor:
    r"""Negative log of the marginal (type II) likelihood: $\sum_k y_k (\ln S - \ln \alpha_k)$.

    Example:
        >>> type_ii_likelihood(torch.tensor([[3.0, 1.0]]), torch.tensor([0]))
        tensor([0.2877])
    """
    check_alpha(alpha)
    y, exact = as_probabilities(target, alpha), as_double(alpha)
    return (y * (torch.log(exact.sum(-1, keepdim=True)) - torch.log(exact))).sum(-1).to(alpha.dtype)


@LOSSES.register("prior-network-forward")
def prior_network_forward(alpha: Tensor, target: Tensor, precision: float = 100.0) -> Tensor:
    r"""$\mathrm{KL}[\mathrm{Dir}(\beta) \,\|\, \mathrm{Dir}(\alpha)]$ from the sharp target $\beta = 1 + c\,y$.

    From Malinin and Gales 2018. An all-zero target (an outlier) asks for the flat Dirichlet.

    Example:
        >>> prior_network_forward(torch.tensor([[101.0, 1.0]]), torch.tensor([0]))
        tensor([0.])
    """
    check_alpha(alpha)
    precision = real_number(precision, "precision", 0)
    return dirichlet_kl(1 + precision * as_probabilities(target, alpha, outliers=True), alpha)


@LOSSES.register("prior-network-reverse")
def prior_network_reverse(alpha: Tensor, target: Tensor, precision: float = 100.0) -> Tensor:
    r"""$\mathrm{KL}[\mathrm{Dir}(\alpha) \,\|\, \mathrm{Dir}(\beta)]$ to the sharp target $\beta = 1 + c\,y$.

    From Malinin and Gales 2019. An all-zero target (an outlier) asks for the flat Dirichlet. Unlike the forward form it
    does not reward a spread over several corners of the simplex when the data are noisy.

    Example:
        >>> prior_network_reverse(torch.tensor([[101.0, 1.0]]), torch.tensor([0]))
        tensor([0.])
    """
    check_alpha(alpha)
    precision = real_number(precision, "precision", 0)
    return dirichlet_kl(alpha, 1 + precision * as_probabilities(target, alpha, outliers=True))


def misleading_evidence(evidence: Tensor, target: Tensor, prior: float = 1.0) -> Tensor:
    r"""$\mathrm{KL}[\mathrm{Dir}(\tilde\alpha) \| \mathrm{Dir}(\lambda 1)]$ with $\tilde\alpha = \lambda + (1 - y) e$.

    The penalty on evidence for wrong classes: what is left of the opinion when the evidence for the right class is
    taken away should be no more than the prior.

    Example:
        >>> misleading_evidence(torch.tensor([[9.0, 0.0], [9.0, 1.0]]), torch.tensor([0, 0]))
        tensor([0.0000, 0.1931])
    """
    check_tensor(evidence, "evidence")
    check_class_dim(evidence, "evidence")
    if validation_enabled():
        check_nonnegative(evidence, "evidence")
    prior = real_number(prior, "prior", 0, open_low=True)
    wrong = evidence * (1 - as_probabilities(target, evidence)) + prior
    return dirichlet_kl(wrong, wrong.new_full(wrong.shape[-1:], prior))


def check_alpha(alpha: Tensor) -> None:
    """Raise a clear error unless these are parameters of a Dirichlet: at least two, finite and positive."""
    check_tensor(alpha, "alpha")
    check_class_dim(alpha, "alpha")
    if validation_enabled():
        check_positive(alpha, "alpha")


def check_indices(target: Tensor, count: int, least: int = 0) -> None:
    """Raise a clear error unless every class index lies in `least` to `count - 1`."""
    if validation_enabled() and target.numel():
        low, high = int(target.min()), int(target.max())
        if low < least or high >= count:
            raise EvidentiaError(f"class indices must lie in {least}..{count - 1}, got values from {low} to {high}")


def as_probabilities(target: Tensor, like: Tensor, outliers: bool = False) -> Tensor:
    """Turn class indices into one-hot vectors shaped like `like`; probabilities pass through.

    With `outliers`, the probabilities of a sample may all be 0, which says that it belongs to no class.
    """
    check_tensor(target, "target")
    if target.is_floating_point() and target.shape == like.shape:
        y = target.to(like)
        if validation_enabled():
            check_unit_interval(y, "target probabilities")
            total = y.detach().sum(-1)
            check_adds_to_one(total[total > 0] if outliers else total, like.shape[-1], "target probabilities")
        return y
    if target.is_floating_point() or target.shape != like.shape[:-1]:
        raise EvidentiaError(
            f"targets must be class indices (integers) of shape {tuple(like.shape[:-1])} or class probabilities "
            f"(floating) of shape {tuple(like.shape)}, got {target.dtype} of shape {tuple(target.shape)}"
        )
    check_indices(target, like.shape[-1])
    return F.one_hot(target.long(), like.shape[-1]).to(like)
