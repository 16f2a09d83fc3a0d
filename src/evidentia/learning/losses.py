"""Losses over Dirichlet parameters, one value a sample; pure functions without reduction.

Targets are class indices of shape `(...)` or class probabilities (one-hot, soft) of shape `(..., K)`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia._support.checks import validation_enabled
from evidentia._support.errors import EvidentiaError
from evidentia._support.registry import Registry
from evidentia.opinions.special import as_double, dirichlet_entropy, log_beta

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
    y = as_probabilities(target, alpha)
    strength = alpha.sum(-1, keepdim=True)
    mean = alpha / strength
    return ((y - mean) ** 2 + mean * (1 - mean) / (strength + 1)).sum(-1)


@LOSSES.register("cross-entropy")
def cross_entropy_risk(alpha: Tensor, target: Tensor) -> Tensor:
    r"""Bayes risk of the cross entropy under $\mathrm{Dir}(\alpha)$: $\sum_k y_k (\psi(S) - \psi(\alpha_k))$.

    With two classes it is the Beta loss of early event detection (thesis eq. 4.4 and theorem 4).

    Example:
        >>> cross_entropy_risk(torch.tensor([[3.0, 1.0]]), torch.tensor([0]))
        tensor([0.3333])
    """
    y = as_probabilities(target, alpha)
    return (y * (torch.digamma(alpha.sum(-1, keepdim=True)) - torch.digamma(alpha))).sum(-1)


@LOSSES.register("type-ii")
def type_ii_likelihood(alpha: Tensor, target: Tensor) -> Tensor:
    r"""Negative log of the marginal (type II) likelihood: $\sum_k y_k (\ln S - \ln \alpha_k)$.

    Example:
        >>> type_ii_likelihood(torch.tensor([[3.0, 1.0]]), torch.tensor([0]))
        tensor([0.2877])
    """
    y = as_probabilities(target, alpha)
    return (y * (torch.log(alpha.sum(-1, keepdim=True)) - torch.log(alpha))).sum(-1)


@LOSSES.register("prior-network-forward")
def prior_network_forward(alpha: Tensor, target: Tensor, precision: float = 100.0) -> Tensor:
    r"""$\mathrm{KL}[\mathrm{Dir}(\beta) \,\|\, \mathrm{Dir}(\alpha)]$ from the sharp target $\beta = 1 + c\,y$.

    From Malinin and Gales 2018. An all-zero target (an outlier) asks for the flat Dirichlet.

    Example:
        >>> prior_network_forward(torch.tensor([[101.0, 1.0]]), torch.tensor([0]))
        tensor([0.])
    """
    return dirichlet_kl(1 + precision * as_probabilities(target, alpha), alpha)


@LOSSES.register("prior-network-reverse")
def prior_network_reverse(alpha: Tensor, target: Tensor, precision: float = 100.0) -> Tensor:
    r"""$\mathrm{KL}[\mathrm{Dir}(\alpha) \,\|\, \mathrm{Dir}(\beta)]$ to the sharp target $\beta = 1 + c\,y$.

    From Malinin and Gales 2019. An all-zero target (an outlier) asks for the flat Dirichlet. Unlike the forward form it
    does not reward a spread over several corners of the simplex when the data are noisy.

    Example:
        >>> prior_network_reverse(torch.tensor([[101.0, 1.0]]), torch.tensor([0]))
        tensor([0.])
    """
    return dirichlet_kl(alpha, 1 + precision * as_probabilities(target, alpha))


def dirichlet_kl(alpha: Tensor, other: Tensor) -> Tensor:
    r"""$\mathrm{KL}[\mathrm{Dir}(\alpha) \,\|\, \mathrm{Dir}(\hat\alpha)]$ in closed form (thesis appendix).

    $\ln\frac{B(\hat\alpha)}{B(\alpha)} + \sum_k (\alpha_k - \hat\alpha_k)(\psi(\alpha_k) - \psi(S))$, computed in
    float64 from the differential entropy, because its terms are large and nearly cancel.

    Example:
        >>> dirichlet_kl(torch.tensor([2.0, 1.0]), torch.tensor([1.0, 1.0]))
        tensor(0.1931)
    """
    exact, reference = as_double(alpha), as_double(other)
    expected_log = torch.digamma(exact) - torch.digamma(exact.sum(-1, keepdim=True))
    cross = log_beta(reference) - ((reference - 1) * expected_log).sum(-1)
    return (cross - dirichlet_entropy(exact)).clamp(min=0).to(alpha.dtype)


def misleading_evidence(evidence: Tensor, target: Tensor, prior: float = 1.0) -> Tensor:
    r"""$\mathrm{KL}[\mathrm{Dir}(\tilde\alpha) \| \mathrm{Dir}(\lambda 1)]$ with $\tilde\alpha = \lambda + (1 - y) e$.

    The penalty on evidence for wrong classes: what is left of the opinion when the evidence for the right class is
    taken away should be no more than the prior.

    Example:
        >>> misleading_evidence(torch.tensor([[9.0, 0.0], [9.0, 1.0]]), torch.tensor([0, 0]))
        tensor([0.0000, 0.1931])
    """
    wrong = evidence * (1 - as_probabilities(target, evidence)) + prior
    return dirichlet_kl(wrong, torch.full_like(wrong, prior))


def as_probabilities(target: Tensor, like: Tensor) -> Tensor:
    """Turn class indices into one-hot vectors shaped like `like`; probabilities pass through."""
    if target.shape == like.shape and target.is_floating_point():
        return target.to(like)
    if target.is_floating_point() or target.shape != like.shape[:-1]:
        raise EvidentiaError(
            f"targets must be class indices of shape {tuple(like.shape[:-1])} or class probabilities of shape "
            f"{tuple(like.shape)}, got {target.dtype} of shape {tuple(target.shape)}"
        )
    classes = like.shape[-1]
    if validation_enabled() and target.numel() and bool(((target < 0) | (target >= classes)).any()):
        raise EvidentiaError(
            f"class indices must lie in 0..{classes - 1}, got values from {int(target.min())} to {int(target.max())}"
        )
    return F.one_hot(target.long(), classes).to(like)
