"""Weighted binomial comultiplication: was the event present in at least one of the latest segments?"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from evidentia.events.fusion.base import HEADS, Fusion, PerClass, UnitPerClass, WindowedHead, check_per_class, gated
from evidentia.events.fusion.state import Windows
from evidentia.opinions import BinomialOpinion

Mode: TypeAlias = Literal["trust", "neutral", "evidence"]
Weighted: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""Of weighted opinions: 1 - b, a u and a."""


class Comultiplied(NamedTuple):
    """Windows fused into one opinion each, before it is made one: a stream needs the score alone."""

    belief: Tensor
    no_belief: Tensor
    """1 - belief, to all its digits."""
    vacuity: Tensor
    base_rate: Tensor
    score: Tensor

    def fusion(self) -> Fusion:
        """Opinions and scores."""
        # Rounding may leave the disbelief a little below 0.
        disbelief = (self.no_belief - self.vacuity).clamp(min=0)
        return Fusion(BinomialOpinion(self.belief, disbelief, self.vacuity, self.base_rate, validate=False), self.score)


@HEADS.register("wbc")
class WBC(WindowedHead):
    r"""Comultiply the opinions of the window's segments, the older ones with less weight (thesis eq. 4.7).

    $\hat\omega^t = c_{m-1}\,\omega^{t-m+1} \oplus \dots \oplus c_0\,\omega^t$ with $c_i = \mathrm{decay}^i$ of age $i$,
    where $\oplus$ is `evidentia.opinions.comultiply`. The thesis leaves $c\,\omega$ open; the mode says what it is:

    | mode | $c\,\omega$ | a segment of weight 0 |
    |---|---|---|
    | `trust` | $b' = cb$, $d' = cd$, $u' = 1 - c(b + d)$: trust discount | is a vacuous opinion |
    | `neutral` | $b' = cb$, $u' = cu$, $a' = ca$, $d' = 1 - c(b + u)$ | leaves the fusion as it is |
    | `evidence` | the evidence is scaled by $c$ | is a vacuous opinion |

    The closed form, over the segments $i$ of the window: $b = 1 - \prod (1 - b_i)$, $a = 1 - \prod (1 - a_i)$,
    $u = (\prod (1 - b_i) - \prod (1 - P_i)) / a$, $d = 1 - b - u$. It is a noisy or: many quiet segments add up, so
    keep windows short (8 or less) and calibrate thresholds.

    Args:
        threshold: what the log odds must exceed; 0 is $b > d$.
        window: m, the number of segments, one number or one a class.
        decay: what a segment loses in weight with each step of age, in [0, 1], one number or one a class.
        mode: what weighting an opinion means.
        max_vacuity: V, one number or one a class.

    Example:
        >>> head = WBC(window=2, decay=0.5, mode="trust")
        >>> fusion = head.fuse(torch.tensor([[1.0], [3.0]]), torch.tensor([[3.0], [1.0]]))
        >>> fusion.opinion[1, 0]
        BinomialOpinion(belief=0.5, disbelief=0.04167, vacuity=0.4583, base_rate=0.75)
    """

    name: ClassVar[str] = "wbc"
    decay: UnitPerClass = 0.8
    mode: Mode = "trust"
    max_vacuity: UnitPerClass = 0.9

    def _fuse(self, windows: Windows) -> Fusion:
        return self._comultiplied(windows).fusion()

    def _score(self, windows: Windows) -> Tensor:
        return self._comultiplied(windows).score

    def _comultiplied(self, windows: Windows) -> Comultiplied:
        return comultiplied(windows, self.decay, self.mode, self.max_vacuity)


@HEADS.register("bc")
class BC(WindowedHead):
    r"""Comultiply the opinions of the window's segments, all with the same weight (thesis eq. 4.6).

    It is `WBC` with decay 1, where the three modes are one.

    Args:
        threshold: what the log odds must exceed; 0 is $b > d$.
        window: m, the number of segments, one number or one a class.
        max_vacuity: V, one number or one a class.

    Example:
        >>> fusion = BC(window=2).fuse(torch.tensor([[1.0], [3.0]]), torch.tensor([[3.0], [1.0]]))
        >>> fusion.opinion.projected[1]  # 1 - (1 - 1/4) (1 - 3/4)
        tensor([0.8125])
    """

    name: ClassVar[str] = "bc"
    max_vacuity: UnitPerClass = 0.9

    def _fuse(self, windows: Windows) -> Fusion:
        return self._comultiplied(windows).fusion()

    def _score(self, windows: Windows) -> Tensor:
        return self._comultiplied(windows).score

    def _comultiplied(self, windows: Windows) -> Comultiplied:
        return comultiplied(windows, 1.0, "evidence", self.max_vacuity)


def comultiplied(windows: Windows, decay: PerClass, mode: Mode, max_vacuity: PerClass) -> Comultiplied:
    r"""The closed form of weighted comultiplication, from logarithms that lose no digits.

    With $n_i = 1 - b_i$ and $g_i = P_i - b_i = a_i u_i$ of the weighted opinions, $b = 1 - e^N$ for
    $N = \sum \ln n_i$, and $\prod (1 - b_i) - \prod (1 - P_i) = e^N (1 - e^R)$ for $R = \sum \ln(1 - g_i / n_i)$, in
    which $g_i / n_i$ is at most 1/2. The odds need $d + u/2 = e^N (e^R + (1 - e^R)(1 - 1/(2a)))$: a sum of positive
    terms, because the present segment has weight 1 and so $a \ge 1/2$. A segment that does not count has no evidence,
    so $n_i = 1$; its $g_i$ and $a_i$ are set to 0.
    """
    alpha, beta = windows.alpha, windows.beta
    no_belief, gap, base_rate = _WEIGHTINGS[mode](
        alpha, beta, _weights(decay, *alpha.shape[-2:], alpha.dtype, alpha.device)
    )
    log_no_belief = torch.log(no_belief).sum(-1)
    log_rest = torch.log1p(-windows.where_present(gap) / no_belief).sum(-1)
    rate = -torch.expm1(torch.log1p(-windows.where_present(base_rate)).sum(-1))
    none, missing, rest = torch.exp(log_no_belief), -torch.expm1(log_rest), torch.exp(log_rest)
    belief, vacuity = -torch.expm1(log_no_belief), none * missing / rate
    against = log_no_belief + torch.log(rest + missing * (1 - 0.5 / rate))
    score = gated(torch.log(belief + 0.5 * vacuity) - against, vacuity, max_vacuity)
    return Comultiplied(belief, none, vacuity, rate, score)


@lru_cache(maxsize=256)
def _weights(decay: PerClass, classes: int, size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    r"""The weights $c_i = \mathrm{decay}^i$ of a window, the oldest segment first, shape `(K, size)`."""
    if isinstance(decay, tuple):
        check_per_class(decay, classes)
    with torch.inference_mode(False):
        age = torch.arange(size - 1, -1, -1, dtype=dtype, device=device)
        weight = torch.tensor(decay, dtype=dtype, device=device).unsqueeze(-1) ** age
        # For all classes even if they are alike: engines are slow at repeating the few numbers of a window.
        return weight.expand(classes, size).contiguous()


def _trust(alpha: Tensor, beta: Tensor, c: Tensor) -> Weighted:
    share = c / (alpha + beta)
    return (1 - c) + (beta + 1) * share, 0.5 * (1 - c) + share, torch.full_like(c, 0.5)


def _neutral(alpha: Tensor, beta: Tensor, c: Tensor) -> Weighted:
    share = c / (alpha + beta)
    return (1 - c) + (beta + 1) * share, c * share, 0.5 * c


def _evidence(alpha: Tensor, beta: Tensor, c: Tensor) -> Weighted:
    against = c * (beta - 1)
    strength = c * (alpha - 1) + against + 2
    return (against + 2) / strength, 1 / strength, torch.full_like(c, 0.5)


_WEIGHTINGS: dict[Mode, Callable[[Tensor, Tensor, Tensor], Weighted]] = {
    "trust": _trust,
    "neutral": _neutral,
    "evidence": _evidence,
}
