r"""Fusion: one opinion from the opinions of many sources about the same thing.

Which one fits depends on how the sources relate. Independent evidence adds up (cumulative); the same evidence seen by
many is averaged (averaging), or averaged with more say for the more certain (weighted); sources that will accept
nothing but agreement compromise (constraint).

All take binomial or multinomial opinions and any number of sources. With $u_i$ the vacuities, the textbook forms divide
by products of vacuities; here every source has the weight $m_i = \min_j u_j / u_i$ instead, which is the same after
cancelling, needs no special case for dogmatic sources ($m = 1$ for them and 0 for all others, as the limit has it) and
cannot underflow.
"""

from __future__ import annotations

from typing import TypeVar, cast

import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia.opinions.binomial import BinomialOpinion
from evidentia.opinions.hyper import HyperOpinion
from evidentia.opinions.multinomial import MultinomialOpinion
from evidentia.opinions.operators.registry import OPERATORS, gather, masses_from
from evidentia.opinions.special import quotient

OpinionT = TypeVar("OpinionT", bound="BinomialOpinion | MultinomialOpinion")


@OPERATORS.register("cumulative_fusion")
def cumulative_fusion(*opinions: OpinionT, dim: int | None = None) -> OpinionT:
    r"""Fuse sources with independent evidence: their evidence adds up (aleatory cumulative fusion).

    $b = \frac{\sum_i b_i m_i}{\sum_i m_i - (N - 1) \min u}$, $u = \frac{\min u}{\sum_i m_i - (N - 1) \min u}$;
    base rates are averaged in proportion to the evidence. Dogmatic sources outweigh all others and are averaged.

    Example:
        >>> import evidentia as ev
        >>> once = ev.BinomialOpinion.from_evidence(2.0, 1.0)
        >>> ev.opinions.cumulative_fusion(once, once).allclose(ev.BinomialOpinion.from_evidence(4.0, 2.0))
        True
    """
    sources, kind = _multinomial(opinions, dim)
    weight, least = _weights(sources.vacuity)
    # The denominator is the sum of the two numerators, which _finish divides by: nothing to cancel.
    belief = (weight.unsqueeze(-1) * sources.belief).sum(0)
    return _finish(kind, sources, belief, least, say=weight * sources.belief.sum(-1))


@OPERATORS.register("averaging_fusion")
def averaging_fusion(*opinions: OpinionT, dim: int | None = None) -> OpinionT:
    r"""Fuse sources that saw the same evidence: their evidence is averaged.

    $b = \sum_i b_i m_i / \sum_i m_i$, $u = N \min u / \sum_i m_i$; base rates are averaged.

    Example:
        >>> import evidentia as ev
        >>> w = ev.BinomialOpinion.from_evidence(2.0, 1.0)
        >>> ev.opinions.averaging_fusion(w, w).allclose(w)
        True
    """
    sources, kind = _multinomial(opinions, dim)
    weight, least = _weights(sources.vacuity)
    belief = (weight.unsqueeze(-1) * sources.belief).sum(0)
    return _finish(kind, sources, belief, len(sources) * least, say=torch.ones_like(weight))


@OPERATORS.register("weighted_fusion")
def weighted_fusion(*opinions: OpinionT, dim: int | None = None) -> OpinionT:
    r"""Fuse like averaging, but with each source weighted by its confidence $c_i = 1 - u_i$.

    $b = \frac{\sum_i b_i c_i m_i}{\sum_i c_i m_i}$, $u = \frac{\min u \sum_i c_i}{\sum_i c_i m_i}$; base rates are
    averaged by confidence. A vacuous source changes nothing; vacuous sources alone give a vacuous opinion.

    Example:
        >>> import evidentia as ev
        >>> w = ev.BinomialOpinion.from_evidence(2.0, 1.0)
        >>> ev.opinions.weighted_fusion(w, ev.BinomialOpinion(0.0, 0.0, 1.0)).allclose(w)
        True
    """
    sources, kind = _multinomial(opinions, dim)
    weight, least = _weights(sources.vacuity)
    confidence = sources.belief.sum(-1)
    belief = ((confidence * weight).unsqueeze(-1) * sources.belief).sum(0)
    total = confidence.sum(0)
    vacuity = torch.where(total > 0, least * total, torch.ones_like(least))
    return _finish(kind, sources, belief, vacuity, say=confidence)


@OPERATORS.register("constraint_fusion")
def constraint_fusion(*opinions: OpinionT, dim: int | None = None) -> OpinionT:
    r"""Fuse sources that insist on agreement (belief constraint fusion, Dempster's rule on opinions).

    $b(x) \propto \prod_i (b_i(x) + u_i) - \prod_i u_i$, $u \propto \prod_i u_i$, normalised to 1; base rates are
    averaged by confidence. Sources in total conflict leave nothing to normalise: then the limit is taken in which all
    dogmatic ones are equally little unsure, which for two sources certain of different classes is the average.

    Example:
        >>> import evidentia as ev
        >>> x, y = ev.BinomialOpinion(0.6, 0.1, 0.3), ev.BinomialOpinion(0.5, 0.2, 0.3)
        >>> ev.opinions.constraint_fusion(x, y)
        BinomialOpinion(belief=0.759, disbelief=0.1325, vacuity=0.1084, base_rate=0.5)
    """
    sources, kind = _multinomial(opinions, dim)
    belief, vacuity = sources.belief[0], sources.vacuity[0].unsqueeze(-1)
    for i in range(1, len(sources)):
        next_belief, next_vacuity = sources.belief[i], sources.vacuity[i].unsqueeze(-1)
        # All terms are positive, so nothing cancels; normalising at each step keeps long products in range.
        belief = belief * (next_belief + next_vacuity) + vacuity * next_belief
        vacuity = vacuity * next_vacuity
        total = belief.sum(-1, keepdim=True) + vacuity
        divisor = torch.where(total > 0, total, torch.ones_like(total))
        belief, vacuity = belief / divisor, vacuity / divisor
    conflict = (belief.sum(-1, keepdim=True) + vacuity) == 0
    belief = torch.where(conflict, _total_conflict(sources), belief)
    return _finish(kind, sources, belief, vacuity.squeeze(-1), say=sources.belief.sum(-1))


def _total_conflict(sources: MultinomialOpinion) -> Tensor:
    """The limit for zero vacuities that leave zero together: of the classes that most sources allow, prod (b + u)."""
    allowed = sources.belief + sources.vacuity.unsqueeze(-1)
    supporters = (allowed > 0).sum(0)
    most = supporters == supporters.amax(-1, keepdim=True)
    # A sum of logarithms, for the product over many sources would underflow.
    log_product = torch.log(torch.where(allowed > 0, allowed, torch.ones_like(allowed))).sum(0)
    return torch.softmax(log_product.masked_fill(~most, -torch.inf), -1)


def _weights(vacuity: Tensor) -> tuple[Tensor, Tensor]:
    """m_i = min u / u_i along the first dimension, 1 for dogmatic sources; and min u."""
    least = vacuity.amin(0)
    return quotient(least, vacuity, otherwise=1.0), least


def _multinomial(opinions: tuple[OpinionT, ...], dim: int | None) -> tuple[MultinomialOpinion, type[OpinionT]]:
    if any(isinstance(opinion, HyperOpinion) for opinion in opinions):
        raise EvidentiaError(
            "fusion takes binomial or multinomial opinions, got HyperOpinion; project it with to_multinomial() first"
        )
    batch = gather(opinions, dim, BinomialOpinion, MultinomialOpinion)
    sources = batch.to_multinomial() if isinstance(batch, BinomialOpinion) else batch
    return sources, type(opinions[0])


def _finish(
    kind: type[OpinionT], sources: MultinomialOpinion, belief: Tensor, vacuity: Tensor, say: Tensor
) -> OpinionT:
    """Build the fused opinion from masses yet to be normalised; base rates are averaged by each source's `say`."""
    share = quotient(say, say.sum(0), otherwise=1 / len(sources))
    base_rate = (share.unsqueeze(-1) * sources.base_rate).sum(0).clamp(max=1)
    vacuity, belief = masses_from(vacuity, belief)
    fused = MultinomialOpinion(belief, vacuity, base_rate, sources.prior_weight, validate=False)
    if kind is BinomialOpinion:
        return cast("OpinionT", BinomialOpinion.from_multinomial(fused))
    return cast("OpinionT", fused)
