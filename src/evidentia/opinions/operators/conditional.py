"""Reasoning through conditionals: deduction from cause to effect, inversion, and abduction back."""

from __future__ import annotations

import torch
from torch import Tensor

from evidentia._support.checks import TensorLike, as_float_tensor, check_unit_interval, validation_enabled
from evidentia.opinions._opinion import broadcast_batch
from evidentia.opinions.binomial import BinomialOpinion
from evidentia.opinions.operators.registry import OPERATORS, masses_from, require
from evidentia.opinions.special import as_double, quotient


@OPERATORS.register("deduce")
def deduce(
    x: BinomialOpinion,
    y_given_x: BinomialOpinion,
    y_given_not_x: BinomialOpinion,
    base_rate: TensorLike | None = None,
) -> BinomialOpinion:
    r"""The opinion about y that follows from an opinion about x and the two conditional opinions.

    The projected probability obeys the law of total probability,
    $P_y = P_x P_{y|x} + (1 - P_x) P_{y|\bar x}$. The vacuity is that of the conditionals, weighted by what is
    believed of x, and where nothing is known of x that of the deduction from a vacuous x:
    $u_y = b_x u_{y|x} + d_x u_{y|\bar x} + u_x \hat u$ (Jøsang 2016, definitions 9.1 and 9.2).

    Args:
        x: the opinion about the parent proposition.
        y_given_x: the opinion about y should x hold.
        y_given_not_x: the opinion about y should x not hold.
        base_rate: the base rate of y; by default the one that x's base rate and the conditionals imply.

    Example:
        >>> import evidentia as ev
        >>> x = ev.BinomialOpinion(0.0, 0.4, 0.6)
        >>> ev.opinions.deduce(x, ev.BinomialOpinion(0.55, 0.3, 0.15), ev.BinomialOpinion(0.1, 0.75, 0.15))
        BinomialOpinion(belief=0.1514, disbelief=0.48, vacuity=0.3686, base_rate=0.3824)
    """
    require(BinomialOpinion, x=x, y_given_x=y_given_x, y_given_not_x=y_given_not_x)
    broadcast_batch(x, y_given_x, y_given_not_x)
    a_x = x.base_rate
    if base_rate is None:
        a_y = marginal_base_rate(a_x, y_given_x, y_given_not_x)
    else:
        a_y = as_float_tensor(base_rate, "base_rate", like=x.belief)
        if validation_enabled():
            check_unit_interval(a_y, "base_rate")
    spare = _spare_vacuity(
        a_x,
        (y_given_x.belief, y_given_not_x.belief),
        (y_given_x.disbelief, y_given_not_x.disbelief),
        a_y,
        1 - a_y,
    )
    return _deduce(x, y_given_x, y_given_not_x, a_y, spare)


def _deduce(
    x: BinomialOpinion, y_given_x: BinomialOpinion, y_given_not_x: BinomialOpinion, a_y: Tensor, spare: Tensor
) -> BinomialOpinion:
    """Deduction, once it is known how much more vacuity than the conditionals' a vacuous x leaves."""
    on_the_line = x.base_rate * y_given_x.vacuity + (1 - x.base_rate) * y_given_not_x.vacuity
    unknown = on_the_line + spare
    vacuity = x.belief * y_given_x.vacuity + x.disbelief * y_given_not_x.vacuity + x.vacuity * unknown
    p_true = y_given_x.belief + a_y * y_given_x.vacuity
    p_false = y_given_not_x.belief + a_y * y_given_not_x.vacuity
    probability = x.projected * p_true + (1 - x.projected) * p_false
    return _from_projection(probability, vacuity, a_y, x.prior_weight)


def _spare_vacuity(
    a_x: Tensor, belief: tuple[Tensor, Tensor], disbelief: tuple[Tensor, Tensor], a_y: Tensor, not_a_y: Tensor
) -> Tensor:
    """The vacuity that a vacuous x adds to the average of the conditionals.

    A vacuous x leaves y anywhere between the conditionals. When one conditional has more of both belief and disbelief
    than the other, that is the straight line between them (definition 9.1, case I) and adds nothing; otherwise it adds
    as much as keeps belief and disbelief above their smaller conditional values.
    """
    more = [first > second for first, second in (belief, disbelief)]
    room = []
    for is_more, (first, second), share in zip(more, (belief, disbelief), (a_y, not_a_y), strict=True):
        gap = torch.where(is_more, a_x, 1 - a_x) * (first - second).abs()
        # x / 0 is infinite here and 0 / 0 is 0.
        room.append(quotient(gap, share, otherwise=torch.where(gap > 0, torch.inf, 0.0)))
    return torch.where(more[0] == more[1], 0.0, torch.minimum(*room))


def invert(
    y_given_x: BinomialOpinion, y_given_not_x: BinomialOpinion, base_rate: TensorLike
) -> tuple[BinomialOpinion, BinomialOpinion]:
    r"""Bayes' theorem for opinions: from opinions about y given x to opinions about x given y.

    The projected probabilities are those of Bayes,
    $P(x \mid y) = a_x P(y \mid x) / (a_x P(y \mid x) + (1 - a_x) P(y \mid \bar x))$. The vacuity is the largest that
    leaves room for them, times how unsure or how irrelevant the conditionals are:
    $u_{x|y} = u^{\max}_{x|y} (w + r - w r)$ with $w$ the conditionals' vacuity relative to its maximum and
    $r = 1 - |P(y \mid x) - P(y \mid \bar x)|$ (Jøsang 2016, chapter 10).

    Args:
        y_given_x: the opinion about y should x hold.
        y_given_not_x: the opinion about y should x not hold.
        base_rate: the base rate of x.

    Returns:
        The opinions about x given y, and about x given not y.

    Example:
        >>> import evidentia as ev
        >>> x_given_y, x_given_not_y = ev.opinions.invert(
        ...     ev.BinomialOpinion(0.8, 0.2, 0.0), ev.BinomialOpinion(0.2, 0.8, 0.0), base_rate=0.5)
        >>> x_given_y
        BinomialOpinion(belief=0.72, disbelief=0.12, vacuity=0.16, base_rate=0.5)
    """
    a_x, inverted = _invert(y_given_x, y_given_not_x, base_rate)
    x_given_y, x_given_not_y = (_from_relative(*parts, a_x, y_given_x.prior_weight) for parts in inverted)
    dtype = torch.promote_types(y_given_x.dtype, y_given_not_x.dtype)
    return x_given_y.to(dtype), x_given_not_y.to(dtype)


def _invert(
    y_given_x: BinomialOpinion, y_given_not_x: BinomialOpinion, base_rate: TensorLike
) -> tuple[Tensor, list[tuple[Tensor, Tensor, Tensor]]]:
    """The base rate of x; then given y and given not y: belief / a, disbelief / (1 - a), and vacuity; in float64.

    Relative to the base rate, belief has a limit of its own as the base rate goes to 0 or 1. Its slope is out of the
    range of float32 long before.
    """
    require(BinomialOpinion, y_given_x=y_given_x, y_given_not_x=y_given_not_x)
    broadcast_batch(y_given_x, y_given_not_x)
    y_given_x, y_given_not_x = _in_double(y_given_x), _in_double(y_given_not_x)
    a_x = as_float_tensor(base_rate, "base_rate", like=y_given_x.belief)
    if validation_enabled():
        check_unit_interval(a_x, "base_rate")
    a_y = marginal_base_rate(a_x, y_given_x, y_given_not_x)
    p_true = y_given_x.belief + a_y * y_given_x.vacuity
    p_false = y_given_not_x.belief + a_y * y_given_not_x.vacuity

    doubt = y_given_x.vacuity + y_given_not_x.vacuity
    relative = [
        quotient(given.vacuity * quotient(given.vacuity, _largest_vacuity(p, a_y)), doubt)
        for given, p in ((y_given_x, p_true), (y_given_not_x, p_false))
    ]
    doubtful = (relative[0] + relative[1]).clamp(0, 1)
    irrelevant = 1 - (p_true - p_false).abs()
    share = doubtful + irrelevant - doubtful * irrelevant

    inverted = []
    for if_true, if_false in ((p_true, p_false), (1 - p_true, 1 - p_false)):
        total = a_x * if_true + (1 - a_x) * if_false
        # P / a and (1 - P) / (1 - a). An observation that cannot happen says nothing: the base rate stays.
        # An infinite gain, of a base rate that is all but 0, would leave no masses to normalise.
        most = torch.finfo(total.dtype).max
        gain, loss = (quotient(p, total, otherwise=1.0).clamp(max=most) for p in (if_true, if_false))
        vacuity = torch.minimum(gain, loss) * share
        inverted.append((gain - vacuity, loss - vacuity, vacuity))
    return a_x, inverted


@OPERATORS.register("abduce")
def abduce(
    y: BinomialOpinion, y_given_x: BinomialOpinion, y_given_not_x: BinomialOpinion, base_rate: TensorLike
) -> BinomialOpinion:
    """The opinion about x that an opinion about its effect y suggests: invert the conditionals, then deduce.

    Args:
        y: the opinion about the observed proposition.
        y_given_x: the opinion about y should x hold.
        y_given_not_x: the opinion about y should x not hold.
        base_rate: the base rate of x.

    Example:
        >>> import evidentia as ev
        >>> positive = ev.BinomialOpinion(1.0, 0.0, 0.0)
        >>> sick, healthy = ev.BinomialOpinion(0.9, 0.05, 0.05), ev.BinomialOpinion(0.05, 0.9, 0.05)
        >>> round(float(ev.opinions.abduce(positive, sick, healthy, base_rate=0.01).projected), 2)
        0.15
    """
    require(BinomialOpinion, y=y)
    a_x, inverted = _invert(y_given_x, y_given_not_x, base_rate)
    dtype = torch.promote_types(y.dtype, torch.promote_types(y_given_x.dtype, y_given_not_x.dtype))
    x_given_y, x_given_not_y = (_from_relative(*parts, a_x, y.prior_weight) for parts in inverted)
    a_y = marginal_base_rate(a_x, _in_double(y_given_x), _in_double(y_given_not_x))
    y = _in_double(y)
    observed = BinomialOpinion(y.belief, y.disbelief, y.vacuity, a_y, y.prior_weight, validate=False)
    (belief, disbelief, _), (other_belief, other_disbelief, _) = inverted
    one = torch.ones_like(a_x)
    spare = _spare_vacuity(a_y, (belief, other_belief), (disbelief, other_disbelief), one, one)
    return _deduce(observed, x_given_y, x_given_not_y, a_x, spare).to(dtype)


def marginal_base_rate(a_x: Tensor, y_given_x: BinomialOpinion, y_given_not_x: BinomialOpinion) -> Tensor:
    """The base rate of y that the conditionals imply; their own mean base rate if both are vacuous."""
    believed = a_x * y_given_x.belief + (1 - a_x) * y_given_not_x.belief
    disbelieved = a_x * y_given_x.disbelief + (1 - a_x) * y_given_not_x.disbelief
    settled = believed + disbelieved
    given = a_x * y_given_x.base_rate + (1 - a_x) * y_given_not_x.base_rate
    return quotient(believed, settled, otherwise=given).clamp(0, 1)


def _in_double(opinion: BinomialOpinion) -> BinomialOpinion:
    return opinion.to(as_double(opinion.belief).dtype)


def _from_relative(
    belief: Tensor, disbelief: Tensor, vacuity: Tensor, base_rate: Tensor, prior_weight: float
) -> BinomialOpinion:
    vacuity, belief, disbelief = masses_from(vacuity, base_rate * belief, (1 - base_rate) * disbelief)
    return BinomialOpinion(belief, disbelief, vacuity, base_rate, prior_weight, validate=False)


def _from_projection(probability: Tensor, vacuity: Tensor, base_rate: Tensor, prior_weight: float) -> BinomialOpinion:
    belief = probability - base_rate * vacuity
    disbelief = (1 - probability) - (1 - base_rate) * vacuity
    vacuity, belief, disbelief = masses_from(vacuity, belief, disbelief)
    return BinomialOpinion(belief, disbelief, vacuity, base_rate, prior_weight, validate=False)


def _largest_vacuity(probability: Tensor, base_rate: Tensor) -> Tensor:
    """The largest u that leaves belief and disbelief at least 0: min(P / a, (1 - P) / (1 - a))."""
    return torch.minimum(
        quotient(probability, base_rate, otherwise=1.0),
        quotient(1 - probability, 1 - base_rate, otherwise=1.0),
    ).clamp(max=1)
