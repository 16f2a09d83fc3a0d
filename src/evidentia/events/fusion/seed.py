"""SEED, as far as it is known: the evidence of neighbouring segments, averaged."""

from __future__ import annotations

from typing import ClassVar

from evidentia.events.fusion.base import HEADS, Fusion, UnitPerClass, WindowedHead
from evidentia.events.fusion.phase1 import decided
from evidentia.events.fusion.state import Windows


@HEADS.register("seed")
class Seed(WindowedHead):
    r"""Average the evidence of the window's segments, then decide by belief and vacuity (Zhao et al., ICASSP 2022).

    What is known of SEED here (its abstract; the thesis names it as a baseline without a formula): a network that gives
    Beta parameters, and at inference "backtrack", which uses the *features* of an ongoing event both before and after
    the segment in question. This head is our reading of it for any causal network, not the authors' code. The network
    has the features before a segment in its memory already; those after it have to be waited for, so the decision about
    segment $t - n$ is made at $t$ and counted as made at $t$, from the mean evidence of the window, which is averaging
    fusion of the opinions: $\bar\alpha = \frac1m \sum_i \alpha_i$, $\bar\beta = \frac1m \sum_i \beta_i$. With
    `window=1` it is such a network without backtrack.

    Args:
        threshold: what the log odds must exceed; 0 is $b > d$.
        window: backward steps, forward steps and the segment itself, one number or one a class.
        max_vacuity: V, one number or one a class.

    Example:
        >>> import torch
        >>> fusion = Seed(window=2).fuse(torch.tensor([[1.0], [7.0]]), torch.tensor([[3.0], [1.0]]))
        >>> fusion.opinion[1, 0]
        BinomialOpinion(belief=0.5, disbelief=0.1667, vacuity=0.3333, base_rate=0.5)
    """

    name: ClassVar[str] = "seed"
    max_vacuity: UnitPerClass = 0.9

    def _fuse(self, windows: Windows) -> Fusion:
        return decided(windows.mean(windows.alpha), windows.mean(windows.beta), self.max_vacuity)
