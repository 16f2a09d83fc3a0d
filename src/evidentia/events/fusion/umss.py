"""Uncertainty mean scan statistics: vacuity rises when something new begins."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from evidentia.events.fusion.base import HEADS, Fusion, PerClass, WindowedHead, per_class
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
        return Fusion(segment_opinion(*windows.latest()), self._score(windows))

    def _score(self, windows: Windows) -> Tensor:
        return mean_vacuity(windows)


@HEADS.register("umss-warning")
class OnsetWarning(WindowedHead):
    r"""Something is beginning, of whatever class: the mean vacuity of the window, pooled over all classes.

    The score has shape `(..., T, 1)`. It serves as the `warning` level before another head's `alarm`.

    At the beginning of a stream everything is new: the front end's window still holds the silence before it, and a mean
    over fewer segments than m scatters more than the threshold was set for. So the first `skip` segments never count,
    and the score is minus infinity until m others have been seen.

    Args:
        threshold: what the pooled mean vacuity must exceed.
        window: m, the number of segments, one number or one a class.
        skip: how many segments at the beginning of a stream do not count.
        pool: `mean` or `max` over the classes, or `geometric` mean, which the class with the least evidence does not
            outweigh.

    Example:
        >>> head = OnsetWarning(window=1, threshold=0.3)
        >>> head.fuse(torch.tensor([[1.0, 3.0]]), torch.tensor([[19.0, 1.0]])).score
        tensor([[0.3000]])
        >>> head = OnsetWarning(window=2, skip=1)
        >>> head.fuse(torch.tensor([[1.0], [1.0], [2.0]]), torch.tensor([[1.0], [19.0], [1.0]])).score.flatten()
        tensor([  -inf,   -inf, 0.3833])
    """

    name: ClassVar[str] = "umss-warning"
    threshold: float = 0.9
    pool: Literal["mean", "max", "geometric"] = "mean"
    skip: int = Field(default=0, ge=0, le=1024)

    @property
    def span(self) -> int:
        """How many segments the head looks at; more than one, if it has to know how many there have been."""
        return max(super().span, 2 if self.skip else 1)

    @property
    def unsettled(self) -> int:
        """The segments to skip."""
        return self.skip

    def outputs(self, num_classes: int) -> int:
        """One score for all classes."""
        return 1

    def _fuse(self, windows: Windows) -> Fusion:
        return Fusion(segment_opinion(*windows.latest()), self._score(windows))

    def _score(self, windows: Windows) -> Tensor:
        vacuity = mean_vacuity(windows)
        if self.pool == "max":
            pooled = vacuity.amax(-1, keepdim=True)
        elif self.pool == "mean":
            pooled = vacuity.mean(-1, keepdim=True)
        else:
            pooled = torch.exp(torch.log(vacuity).mean(-1, keepdim=True))
        if windows.present is not None:
            count = windows.present.sum(-1)
            full = count >= per_class(self.window, vacuity.shape[-1], count)
            pooled = torch.where(full.all(-1, keepdim=True), pooled, -torch.inf)
        return pooled


def mean_vacuity(windows: Windows) -> Tensor:
    """The mean vacuity of the segments in each window, shape `(..., t, K)`."""
    return 2 * windows.mean((windows.alpha + windows.beta).reciprocal())
