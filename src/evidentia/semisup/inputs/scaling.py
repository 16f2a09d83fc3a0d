"""Features of any scale, brought to mean 0 and deviation 1; and a word to those who leave theirs far from it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

# Weak noise on vectors is 0.05: samples that vary by less drown in it. At ten times the scale that augmentations and
# networks are made for, two moons are told apart no better than by the labels alone.
_SMALLEST_SPREAD, _LARGEST_SIZE = 0.05, 10.0
# Samples whose squares are held at once, in float64.
_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Scale:
    """Mean and deviation of every feature of vectors, of every channel of images.

    Attributes:
        mean: in float64, of a shape that goes with samples: `(1, ...)`.
        deviation: likewise; 1 for what is constant, which is centred only.

    Example:
        >>> scale = Scale.of(torch.tensor([[1e4, 7.0], [3e4, 7.0]]), torch.tensor([[-9999.0, 7.0]]))
        >>> scale.applied(torch.tensor([[4e4, 7.0]]))
        tensor([[2., 0.]])
    """

    mean: Tensor
    deviation: Tensor

    @classmethod
    def of(cls, labeled: Tensor, pool: Tensor) -> Scale:
        """The scale of labeled samples; what is the same in all of them has that of the pool's samples.

        Not of both together: what belongs to no class may be anywhere, and would set the scale of what does.
        """
        (mean, deviation), (pool_mean, pool_deviation) = _statistics(labeled), _statistics(pool)
        mean = torch.where(deviation > 0, mean, pool_mean)
        deviation = torch.where(deviation > 0, deviation, pool_deviation)
        return cls(mean, torch.where(deviation > 0, deviation, torch.ones_like(deviation)))

    def applied(self, x: Tensor) -> Tensor:
        """Samples in this scale, as a new tensor."""
        return (x - self.mean.to(x)) / self.deviation.to(x)


def _statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation, which is 0 for what is constant."""
    mean = _mean_power(x, 1)
    deviation = _mean_power(x, 2, mean).sqrt()
    # A constant that is no binary fraction has a mean, and so a deviation, of rounding errors.
    constant = deviation <= torch.finfo(x.dtype).eps * mean.abs()
    return mean, torch.where(constant, torch.zeros_like(deviation), deviation)


def warn_of_scale(x: Tensor) -> None:
    """Warn if samples are far from the scale that augmentations and networks are made for.

    That is if their root mean square is above 10, or if they vary by less than 0.05: the root mean square, over
    features of vectors or channels of images, of the standard deviation. Samples that are all alike have no scale.

    Args:
        x: labeled samples as the network is to see them, shape `(n, ...)`.
    """
    size = float(_mean_power(x, 2).mean().sqrt())
    spread = float(_mean_power(x, 2, _mean_power(x, 1)).mean().sqrt())
    if size > _LARGEST_SIZE or 0 < spread < _SMALLEST_SPREAD:
        warnings.warn(
            f"the labeled samples have values of size {size:.2g} (root mean square) that vary by {spread:.2g} "
            "(standard deviation), far from the 1 that augmentations and networks are made for; give standardise=True, "
            "or scale the samples yourself",
            stacklevel=4,
        )


def _mean_power(x: Tensor, power: int, centre: Tensor | float = 0.0) -> Tensor:
    """The mean of (x - centre) to a power, in every channel of images, every entry of anything else."""
    across = (0, 2, 3) if x.ndim == 4 else (0,)
    sums = [(rows.double() - centre).pow(power).sum(across, keepdim=True) for rows in x.split(_ROWS)]
    total = torch.stack(sums).sum(0)
    return total / (x.numel() / total.numel())
