"""Trust discount: an opinion as seen through how far its source is trusted."""

from __future__ import annotations

from typing import TypeVar

from evidentia.opinions._opinion import Opinion, broadcast_batch
from evidentia.opinions.binomial import BinomialOpinion
from evidentia.opinions.operators.registry import OPERATORS, require

OpinionT = TypeVar("OpinionT", bound=Opinion)


@OPERATORS.register("discount")
def discount(trust: BinomialOpinion, opinion: OpinionT) -> OpinionT:
    r"""The opinion to hold when a source trusted by `trust` holds `opinion`.

    Every belief mass is scaled by the projected trust $p = b_t + a_t u_t$; what is taken away becomes vacuity:
    $b' = p\,b$, $u' = 1 - p\,(1 - u)$, $a' = a$. Full trust changes nothing, no trust leaves a vacuous opinion.

    Args:
        trust: the opinion that the source is reliable; its batch shape broadcasts with that of `opinion`.
        opinion: the source's opinion, of any kind.

    Example:
        >>> import evidentia as ev
        >>> trust = ev.BinomialOpinion(0.2, 0.4, 0.4, base_rate=0.75)
        >>> ev.opinions.discount(trust, ev.BinomialOpinion(0.45, 0.35, 0.20, base_rate=0.25))
        BinomialOpinion(belief=0.225, disbelief=0.175, vacuity=0.6, base_rate=0.25)
    """
    require(BinomialOpinion, trust=trust)
    require(Opinion, opinion=opinion)
    shape = broadcast_batch(trust, opinion)
    factor = trust.projected.to(opinion.dtype).expand(shape)
    opinion = opinion.expand(*shape)
    # 1 - p (1 - u), without the cancellation.
    changed = {"vacuity": opinion.vacuity * factor + (1 - factor)}
    for name in {"belief", "disbelief"} & opinion._fields.keys():
        changed[name] = getattr(opinion, name) * factor[(...,) + (None,) * opinion._fields[name]]
    return opinion._with({**{name: getattr(opinion, name) for name in opinion._fields}, **changed})
