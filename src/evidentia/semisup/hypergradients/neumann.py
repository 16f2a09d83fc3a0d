"""The inverse of a Hessian times a vector, by products with the Hessian alone."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

_GROWTH = 1.05
"""How many times the term before it a term may be; a curvature slightly below 0 is common and does no harm."""


class DivergenceWarning(UserWarning):
    """The terms of a Neumann series grow, so that more of them give a worse answer."""


def neumann_series(
    vector: Sequence[Tensor], product: Callable[[Sequence[Tensor]], Sequence[Tensor]], rate: float, terms: int
) -> list[Tensor]:
    r"""$\alpha \sum_{p=0}^{P} (I - \alpha H)^p v$, which tends to $H^{-1} v$ (Lorraine et al., AISTATS 2020).

    What is missing after P terms is $(I - \alpha H)^{P + 1} H^{-1} v$, so it converges as fast as
    $\max_i |1 - \alpha \lambda_i|^P$ does if all eigenvalues of H are between 0 and $2 / \alpha$. The thesis leaves
    out $\alpha$ ("Neumann series approximations", chapter 3); its series diverges for any eigenvalue above 2.

    The norms of the terms are log-convex in p, H being symmetric: terms that grow go on growing. If the last is more
    than 1.05 times the one before, a `DivergenceWarning` says by which eigenvalue, and what rate would do.

    Args:
        vector: v, in any number of tensors.
        product: gives H times what it is given, in the same shapes.
        rate: $\alpha$, that of the inner steps.
        terms: P, how many products are taken.

    Example:
        >>> H, v = torch.tensor([[2.0, 0.0], [0.0, 0.5]]), torch.tensor([1.0, 1.0])
        >>> neumann_series([v], lambda u: [H @ u[0]], rate=0.5, terms=20)[0]
        tensor([0.5000, 1.9952])
    """
    term = list(vector)
    total = list(vector)
    before = term
    for _ in range(terms):
        before = term
        term = [each - rate * bent for each, bent in zip(term, product(term), strict=True)]
        total = [sum_ + each for sum_, each in zip(total, term, strict=True)]
    if terms:
        _warn_of_growth(before, term, rate)
    return [rate * each for each in total]


def _warn_of_growth(before: Sequence[Tensor], term: Sequence[Tensor], rate: float) -> None:
    flat, last = (torch.cat([each.flatten() for each in tensors]) for tensors in (before, term))
    squared, across, grown = torch.stack([flat.dot(flat), flat.dot(last), last.dot(last)]).tolist()
    if squared == 0 or grown <= _GROWTH**2 * squared:
        return
    if not math.isfinite(grown):
        message = "its last term is not finite any more; use a smaller rate"
    elif across < 0:
        curvature = (1 - across / squared) / rate
        message = (
            f"its terms grow, as the inner loss has a curvature of about {_one_digit(curvature):g}, and a rate of "
            f"{rate:.3g} needs one below {2 / rate:.3g}; use a rate below {_one_digit(2 / curvature):g}"
        )
    else:
        message = "its terms grow, as the inner loss is not convex here; use a smaller rate or fewer terms"
    warnings.warn(f"the Neumann series diverges: {message}", DivergenceWarning, stacklevel=4)


def _one_digit(number: float) -> float:
    """Rounded down, so that a training in which every series grows says a few things once, and not a new one each time.

    Example:
        >>> _one_digit(0.0379)
        0.03
    """
    unit = 10.0 ** math.floor(math.log10(number))
    return float(f"{unit * (number // unit):.0e}")
