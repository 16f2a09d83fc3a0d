"""Uncertainty mean scan statistics: vacuity rises when something new begins."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from torch import Tensor

from evidentia.events.fusion.base import HEADS, Fusion, PerClass, WindowedHead
from evidentia.events.fusion.phase1 import segment_opinion
from evidentia.events.fusion.state import Windows


@HEADS.register("umss")
class UMSS(WindowedHead):
    r"""The mean vacuity of the window, $\hat u_t = \frac1m \sum_i u_{t-i}$ for each class (thesis eq. 4.9).

    An event is called where it exceeds the threshold, which is meant to be the upper 95% quantile of event-free windows
    (`quiet_thresholds` finds it). Vacuity rises at the onset of any class's event, so this tells well that something
    begins and poorly what: see `OnsetWarning`. The opinion beside the score is that of the present segment.

    Args:
        threshold: what the mean vacuity must exceed, one number or one a class.
        window: m, the number of segments, one number or one a class.

    Example:
        >>> head = UMSS(window=2, threshold=0.3)
        >>> head.fuse(torch.tensor([[1.0], [1.0], [2.0]]), torch.tensor([[19.0], [19.0], [1.0]])).score
        tensor([[0.1000],
                [0.1000],
                [0.3833]])
    """

    name: ClassVar[str] = "umss"
    threshold: PerClass = 0.9

    def _fuse(self, windows: Windows) -> Fusion:
        return Fusion(segment_opinion(*windows.latest()), mean_vacuity(windows))


@HEADS.register("umss-warning")
class OnsetWarning(WindowedHead):
    r"""Something is beginning, of whatever class: the mean vacuity of the window, pooled over all classes.

    The score has shape `(..., T, 1)`. It serves as the `warning` level before another head's `alarm`.

    Args:
        threshold: what the pooled mean vacuity must exceed.
        window: m, the number of segments, one number or one a class.
        pool: `mean` or `max` over the classes, or `geometric` mean, which the class with the least evidence does not
            outweigh.

    Example:
        >>> head = OnsetWarning(window=1, threshold=0.3)
        >>> head.fuse(torch.tensor([[1.0, 3.0]]), torch.tensor([[19.0, 1.0]])).score
        tensor([[0.3000]])
    """

    name: ClassVar[str] = "umss-warning"
    threshold: float = 0.9
    pool: Literal["mean", "max", "geometric"] = "mean"

    def outputs(self, num_classes: int) -> int:
        """One score for all classes."""
        return 1

    def _fuse(self, windows: Windows) -> Fusion:
        vacuity = mean_vacuity(windows)
        if self.pool == "max":
            pooled = vacuity.amax(-1, keepdim=True)
        elif self.pool == "mean":
            pooled = vacuity.mean(-1, keepdim=True)
        else:
            pooled = torch.exp(torch.log(vacuity).mean(-1, keepdim=True))
        return Fusion(segment_opinion(*windows.latest()), pooled)


def mean_vacuity(windows: Windows) -> Tensor:
    """The mean vacuity of the segments in each window, shape `(..., t, K)`."""
    return windows.mean(2 / (windows.alpha + windows.beta))
