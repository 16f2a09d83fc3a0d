"""The networks that tell labeled from unlabeled samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

_DROPOUT = 0.5
_FARTHER = 20.0


class Limits(NamedTuple):
    """Where samples might be, in every channel of images, every entry of anything else.

    A single number such as -9999, written where there was none, would otherwise leave no difference between all others,
    and networks say anything of samples so far from all that they have seen.

    Example:
        >>> limits = Limits.of(torch.tensor([[1.0, 7.0], [3.0, 7.0]]))
        >>> limits.low, limits.high
        (tensor([[-18., -inf]]), tensor([[22., inf]]))
        >>> limits.broken(torch.tensor([[5.0, 8.0], [-9999.0, 7.0]]))
        tensor([False,  True])
    """

    low: Tensor
    high: Tensor

    @classmethod
    def of(cls, labeled: Tensor) -> Limits:
        """As far as labeled samples reach from their mean, and `_FARTHER` times that; none where all are the same."""
        across = _across(labeled)
        centre = labeled.mean(across, keepdim=True)
        reach = _FARTHER * (labeled - centre).abs().amax(across, keepdim=True)
        reach = torch.where(_constant(labeled), torch.full_like(reach, math.inf), reach)
        return cls(centre - reach, centre + reach)

    def broken(self, x: Tensor) -> Tensor:
        """Which samples have values beyond them, bool, shape `(n,)`."""
        return ((x < self.low) | (x > self.high)).flatten(1).any(1)


class Standardise(nn.Module):
    """Samples with mean 0 and standard deviation 1 in every channel of images, every entry of anything else.

    Args:
        x: the samples that mean and deviation are of.
        limits: where values beyond them are put, before anything else is done.
    """

    mean: Tensor
    deviation: Tensor
    low: Tensor
    high: Tensor

    def __init__(self, x: Tensor, limits: Limits) -> None:
        super().__init__()
        self.register_buffer("low", limits.low)
        self.register_buffer("high", limits.high)
        limited = x.clamp(limits.low, limits.high)
        deviation = limited.std(_across(x), correction=0, keepdim=True)
        self.register_buffer("mean", limited.mean(_across(x), keepdim=True))
        self.register_buffer("deviation", torch.where(_constant(limited), torch.ones_like(deviation), deviation))

    def forward(self, x: Tensor) -> Tensor:
        """The samples, standardised."""
        return (x.clamp(self.low, self.high) - self.mean) / self.deviation


def _across(x: Tensor) -> tuple[int, ...]:
    return (0, 2, 3) if x.ndim == 4 else (0,)


def _constant(x: Tensor) -> Tensor:
    """What is the same in all samples but for rounding."""
    deviation = x.std(_across(x), correction=0, keepdim=True)
    return deviation <= torch.finfo(x.dtype).eps * x.abs().amax(_across(x), keepdim=True)


def default_discriminator(shape: Sequence[int], width: int) -> nn.Module:
    """Two convolutions and a hidden layer for images of at least 4 x 4 pixels, else two hidden layers; with dropout.

    Small and with dropout, as it is to tell kinds of samples apart and not to remember the few labeled ones.

    Args:
        shape: of one sample.
        width: maps of the first convolution; there are 8 times as many hidden units.

    Example:
        >>> default_discriminator((1, 28, 28), 16)(torch.zeros(5, 1, 28, 28)).shape
        torch.Size([5, 1])
        >>> default_discriminator((2,), 16)(torch.zeros(5, 2)).shape
        torch.Size([5, 1])
    """
    hidden = 8 * width
    if len(shape) == 3 and min(shape[1:]) >= 4:
        channels, height, across = shape
        quarter = math.ceil(height / 4) * math.ceil(across / 4)
        # Strides in place of pooling, which on a CPU takes longer than the convolutions.
        return nn.Sequential(
            *(nn.Conv2d(channels, width, 5, stride=2, padding=2), nn.ReLU()),
            *(nn.Conv2d(width, 2 * width, 5, stride=2, padding=2), nn.ReLU(), nn.Flatten(), nn.Dropout(_DROPOUT)),
            *(nn.Linear(2 * width * quarter, hidden), nn.ReLU(), nn.Dropout(_DROPOUT), nn.Linear(hidden, 1)),
        )
    return nn.Sequential(
        *(nn.Flatten(), nn.Linear(math.prod(shape), hidden), nn.ReLU(), nn.Dropout(_DROPOUT)),
        *(nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(_DROPOUT), nn.Linear(hidden, 1)),
    )
