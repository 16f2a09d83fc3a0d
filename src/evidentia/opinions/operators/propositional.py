"""Not, and, or, and the union of disjoint propositions, for binomial opinions."""

from __future__ import annotations

import torch
from torch import Tensor

from evidentia._support.checks import mass_tolerance, validation_enabled
from evidentia._support.errors import EvidentiaError
from evidentia.opinions.binomial import BinomialOpinion
from evidentia.opinions.operators.registry import OPERATORS, gather, masses_from, require
from evidentia.opinions.special import quotient


@OPERATORS.register("complement")
def complement(opinion: BinomialOpinion) -> BinomialOpinion:
    """The opinion that the proposition is false: belief and disbelief swap, a becomes 1 - a.

    Example:
        >>> import evidentia as ev
        >>> ev.opinions.complement(ev.BinomialOpinion(0.6, 0.1, 0.3, base_rate=0.2))
        BinomialOpinion(belief=0.1, disbelief=0.6, vacuity=0.3, base_rate=0.8)
    """
    require(BinomialOpinion, opinion=opinion)
    return BinomialOpinion(
        opinion.disbelief,
        opinion.belief,
        opinion.vacuity,
        1 - opinion.base_rate,
        opinion.prior_weight,
        validate=False,
    )


@OPERATORS.register("add")
def add(x: BinomialOpinion, y: BinomialOpinion) -> BinomialOpinion:
    r"""The opinion about "x or y" for propositions that exclude each other.

    $b = b_x + b_y$, $a = a_x + a_y$, $u = (a_x u_x + a_y u_y) / a$ and $d = 1 - b - u$, so that
    $P = P_x + P_y$. Two base rates of 0 count as equally small.

    Raises:
        EvidentiaError: if the two cannot exclude each other, because beliefs or base rates add up to more than 1.

    Example:
        >>> import evidentia as ev
        >>> x, y = ev.BinomialOpinion(0.2, 0.6, 0.2, 0.25), ev.BinomialOpinion(0.3, 0.5, 0.2, 0.25)
        >>> ev.opinions.add(x, y)
        BinomialOpinion(belief=0.5, disbelief=0.3, vacuity=0.2, base_rate=0.5)
    """
    both = gather((x, y), None, BinomialOpinion)
    base_rate = both.base_rate.sum(0)
    share = _shares(both.base_rate)
    belief = both.belief.sum(0)
    vacuity = (share * both.vacuity).sum(0)
    disbelief = 1 - belief - vacuity
    if validation_enabled():
        slack = mass_tolerance(both.dtype, 6)
        if bool((base_rate > 1 + slack).any()) or bool((disbelief < -slack).any()):
            raise EvidentiaError(
                "addition needs propositions that exclude each other; here base rates add up to as much as "
                f"{float(base_rate.max()):.4g} and belief with vacuity to {float((belief + vacuity).max()):.4g}; "
                "use comultiply for propositions that may hold together"
            )
    vacuity, belief, disbelief = masses_from(vacuity, belief, disbelief)
    return BinomialOpinion(belief, disbelief, vacuity, base_rate.clamp(max=1), both.prior_weight, validate=False)


@OPERATORS.register("multiply")
def multiply(*opinions: BinomialOpinion, dim: int | None = None) -> BinomialOpinion:
    r"""The opinion that all of several independent propositions hold.

    The closed form for any number of them: $d = 1 - \prod (1 - d_i)$, $a = \prod a_i$,
    $u = \frac{\prod (1 - d_i) - \prod P_i}{1 - a}$, $b = 1 - d - u$; the projected probability is $\prod P_i$.
    Base rates that are all 1 count as equally close to 1.

    Args:
        opinions: two or more opinions, or one batch together with `dim`.
        dim: the batch dimension of one batch to combine along.

    Example:
        >>> import evidentia as ev
        >>> x, y = ev.BinomialOpinion(0.75, 0.15, 0.10, 0.5), ev.BinomialOpinion(0.10, 0.0, 0.90, 0.2)
        >>> ev.opinions.multiply(x, y)
        BinomialOpinion(belief=0.1544, disbelief=0.15, vacuity=0.6956, base_rate=0.1)
    """
    # x and y is not (not x or not y).
    batch = gather(opinions, dim, BinomialOpinion)
    either = _comultiply(complement(batch))
    # 1 - (1 - a) would lose the digits of a small base rate.
    base_rate = batch.base_rate.prod(0)
    return BinomialOpinion(
        either.disbelief, either.belief, either.vacuity, base_rate, batch.prior_weight, validate=False
    )


@OPERATORS.register("comultiply")
def comultiply(*opinions: BinomialOpinion, dim: int | None = None) -> BinomialOpinion:
    r"""The opinion that at least one of several independent propositions holds (thesis eq. coproduct).

    The closed form for any number of them: $b = 1 - \prod (1 - b_i)$, $a = 1 - \prod (1 - a_i)$,
    $u = \frac{\prod (1 - b_i) - \prod (1 - P_i)}{a}$, $d = 1 - b - u$; the projected probability is
    $1 - \prod (1 - P_i)$. Base rates that are all 0 count as equally small.

    Args:
        opinions: two or more opinions, or one batch together with `dim`.
        dim: the batch dimension of one batch to combine along.

    Example:
        >>> import evidentia as ev
        >>> x, y = ev.BinomialOpinion(0.75, 0.15, 0.10, 0.5), ev.BinomialOpinion(0.35, 0.0, 0.65, 0.2)
        >>> ev.opinions.comultiply(x, y)
        BinomialOpinion(belief=0.8375, disbelief=0.065, vacuity=0.0975, base_rate=0.6)
    """
    return _comultiply(gather(opinions, dim, BinomialOpinion))


def _comultiply(batch: BinomialOpinion) -> BinomialOpinion:
    """Combine along the first batch dimension."""
    no_belief = batch.disbelief + batch.vacuity
    not_projected = batch.disbelief + (1 - batch.base_rate) * batch.vacuity
    not_base_rate, one = 1 - batch.base_rate, torch.ones_like(batch.base_rate)
    share = _shares(batch.base_rate)
    # prod (1 - b_i) - prod (1 - P_i) telescopes into terms that are all positive, because their factors differ by
    # a_i u_i; so do a = 1 - prod (1 - a_i) and b = 1 - prod (1 - b_i). With the common factor sum(a) taken out of
    # numerator and denominator, the quotient keeps its digits, and its limit, however small the base rates are.
    numerator = _telescope(share * batch.vacuity, before=not_projected, after=no_belief)
    denominator = _telescope(share, before=not_base_rate, after=one)
    base_rate = _telescope(batch.base_rate, before=not_base_rate, after=one).clamp(max=1)
    belief = _telescope(batch.belief, before=no_belief, after=one)
    vacuity = numerator / denominator
    vacuity, belief, disbelief = masses_from(vacuity, belief, no_belief.prod(0) - vacuity)
    return BinomialOpinion(belief, disbelief, vacuity, base_rate, batch.prior_weight, validate=False)


def _shares(base_rate: Tensor) -> Tensor:
    """Base rates divided by their sum along the first dimension, equal shares where all are 0."""
    return quotient(base_rate, base_rate.sum(0), otherwise=1 / base_rate.shape[0])


def _telescope(difference: Tensor, before: Tensor, after: Tensor) -> Tensor:
    """Sum over i of prod_{j<i} before_j * difference_i * prod_{j>i} after_j."""
    first = torch.ones_like(before[:1])
    prefix = torch.cat([first, before[:-1].cumprod(0)])
    suffix = torch.cat([after[1:].flip(0).cumprod(0).flip(0), first])
    return (prefix * difference * suffix).sum(0)
