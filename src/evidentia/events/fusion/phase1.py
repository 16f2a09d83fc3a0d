"""Phase I: no fusion, each segment decides for itself."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from evidentia.events.fusion.base import HEADS, Fusion, FusionHead, UnitPerClass, gated
from evidentia.events.fusion.state import Windows
from evidentia.opinions import BinomialOpinion


@HEADS.register("phase1")
class PhaseI(FusionHead):
    r"""The opinion of the present segment alone (thesis section 4.5, MTENN phase I).

    $b = (\alpha - 1) / S$, $d = (\beta - 1) / S$, $u = 2 / S$ with $S = \alpha + \beta$; the score is
    $\ln \alpha - \ln \beta$ where $u < V$. With `max_vacuity=1` it is a plain threshold on the probability.

    Args:
        threshold: what the log odds must exceed; 0 is $b > d$.
        max_vacuity: V, one number or one a class.

    Example:
        >>> head = PhaseI(max_vacuity=0.5)
        >>> head.calls(head.fuse(torch.tensor([[2.0], [9.0]]), torch.tensor([[1.0], [1.0]])))
        tensor([[False],
                [ True]])
    """

    name: ClassVar[str] = "phase1"
    max_vacuity: UnitPerClass = 0.9

    def _fuse(self, windows: Windows) -> Fusion:
        return decided(*windows.latest(), self.max_vacuity)


def segment_opinion(alpha: Tensor, beta: Tensor) -> BinomialOpinion:
    """The opinion of Beta parameters that are known to be at least 1."""
    strength = alpha + beta
    return BinomialOpinion((alpha - 1) / strength, (beta - 1) / strength, 2 / strength, 0.5, validate=False)


def decided(alpha: Tensor, beta: Tensor, max_vacuity: float | tuple[float, ...]) -> Fusion:
    """The opinion of Beta parameters, and its log odds where it is certain enough."""
    opinion = segment_opinion(alpha, beta)
    return Fusion(opinion, gated(torch.log(alpha) - torch.log(beta), opinion.vacuity, max_vacuity))
