"""The networks that tell labeled from unlabeled samples."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

_DROPOUT = 0.5


class Standardise(nn.Module):
    """Samples with mean 0 and standard deviation 1 in every channel of images, every entry of anything else.

    Args:
        x: the samples that mean and deviation are of.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, x: Tensor) -> None:
        super().__init__()
        across = (0, 2, 3) if x.ndim == 4 else (0,)
        deviation = x.std(across, correction=0, keepdim=True)
        constant = deviation <= torch.finfo(x.dtype).eps * x.abs().amax(across, keepdim=True)
        self.register_buffer("mean", x.mean(across, keepdim=True))
        self.register_buffer("deviation", torch.where(constant, torch.ones_like(deviation), deviation))

    def forward(self, x: Tensor) -> Tensor:
        """The samples, standardised."""
        return (x - self.mean) / self.deviation


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
