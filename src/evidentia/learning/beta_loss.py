"""The loss of a multi-label evidential network: one Beta distribution a label."""

from __future__ import annotations

import torch
from torch import Tensor

from evidentia._support.checks import check_positive, check_tensor, check_unit_interval, validation_enabled
from evidentia._support.errors import EvidentiaError
from evidentia.opinions.special import as_double


def beta_risk(alpha: Tensor, beta: Tensor, target: Tensor) -> Tensor:
    r"""Bayes risk of the binary cross entropy under $\mathrm{Beta}(\alpha, \beta)$ (thesis eq. 4.4).

    $$\int \mathrm{BCE}(y, p)\, \mathrm{Beta}(p; \alpha, \beta)\, dp
      = y\,(\psi(\alpha + \beta) - \psi(\alpha)) + (1 - y)\,(\psi(\alpha + \beta) - \psi(\beta))$$

    With one label it is `cross_entropy_risk` over two classes (theorem 4), and as evidence grows it becomes the binary
    cross entropy at the mean $\alpha / (\alpha + \beta)$ (theorem 3). The difference is taken in float64, because with
    much evidence for the truth it is far smaller than its terms.

    Args:
        alpha: evidence for each label plus 1, any shape, positive.
        beta: evidence against it plus 1, of the same shape.
        target: 1 where the label holds and 0 where not, or a probability between; it broadcasts to that shape.

    Returns:
        The risk of each label, not reduced.

    Example:
        >>> beta_risk(torch.tensor([3.0, 3.0]), torch.tensor([1.0, 1.0]), torch.tensor([1.0, 0.0]))
        tensor([0.3333, 1.8333])
    """
    for name, given in (("alpha", alpha), ("beta", beta), ("target", target)):
        check_tensor(given, name)
    if alpha.shape != beta.shape:
        raise EvidentiaError(f"alpha and beta must have one shape, got {tuple(alpha.shape)} and {tuple(beta.shape)}")
    try:
        y = target.to(alpha).expand_as(alpha)
    except RuntimeError as error:
        raise EvidentiaError(
            f"targets must have the shape of alpha, {tuple(alpha.shape)}, or broadcast to it, got {tuple(target.shape)}"
        ) from error
    if validation_enabled():
        check_unit_interval(y, "targets")
        check_positive(alpha, "alpha")
        check_positive(beta, "beta")
    a, b = as_double(alpha), as_double(beta)
    risk = torch.digamma(a + b) - y * torch.digamma(a) - (1 - y) * torch.digamma(b)
    return risk.to(alpha.dtype)
