"""Features that float32 cannot hold: small differences far from 0, as between times in seconds since 1970."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from evidentia._support.checks import validation_enabled
from evidentia._support.errors import EvidentiaError
from evidentia.learning.data import dtype_of
from evidentia.semisup.networks.models import SMALLEST_IMAGE
from evidentia.semisup.pool import SemiSupervisedData

WIDE = (torch.float64, torch.int32, torch.int64, torch.uint32, torch.uint64)
"""The dtypes whose numbers float32 does not hold as they are."""
# The largest rounding error of float32, and the smallest deviation that is no rounding error of float64: what is
# computed to be a constant varies a little. The first is in deviations, the second in sizes of the feature.
_LARGEST_ERROR, _SMALLEST_DEVIATION = 1e-3, 1e-12
# Entries that are looked at once, so that it takes no memory to speak of.
_ENTRIES = 2**18


class Precision:
    """Sees samples before they become float32, part by part, and says which features do not survive it.

    A feature is an entry of vectors, a channel of images. It is lost if the root mean square of what rounding changes
    is more than a thousandth of its standard deviation, over all samples seen.

    Example:
        >>> seen = Precision()
        >>> seen.see(torch.tensor([[1.7e9, 1.0], [1.7e9 + 40, 2.0]], dtype=torch.float64))
        >>> seen.check(("time", "flow"))
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: column 'time' has values of about 1.7e+09 that vary by 20 (standard
        deviation), and float32, in which networks are trained, changes them by 28; subtract an offset from it ...
    """

    def __init__(self) -> None:
        self._count = 0
        self._centre: Tensor | None = None
        self._sums: Tensor | None = None

    def see(self, x: Tensor) -> None:
        """Look at samples of shape `(n, ...)` in the dtype that they were given in."""
        # Grey images without a channel: pixels at their rims may be all but constant.
        if x.ndim == 3 and min(x.shape[1:]) >= SMALLEST_IMAGE:
            x = x.unsqueeze(1)
        if x.ndim < 2 or not x.numel():
            return
        across = (0, 2, 3) if x.ndim == 4 else (0,)
        for rows in x.split(max(1, _ENTRIES // math.prod(x.shape[1:]))):
            exact = rows.double()
            if self._centre is None or self._sums is None:
                self._centre = exact.mean(across, keepdim=True)
                self._sums = self._centre.new_zeros(3, *self._centre.shape)
            elif exact.ndim != self._centre.ndim or exact.shape[1:2] != self._centre.shape[1:2]:
                # Parts that do not fit each other are told of when they are put together.
                return
            away, change = exact - self._centre, exact - exact.float()
            sums = [value.sum(across, keepdim=True) for value in (away, away.square(), change.square())]
            self._sums += torch.stack(sums)
            self._count += exact.numel() // self._centre.numel()

    def check(self, columns: Sequence[str] = ()) -> None:
        """Raise an `EvidentiaError` if a feature is lost.

        Args:
            columns: names of the features, if they have any.
        """
        if self._centre is None or self._sums is None:
            return
        away, square, change = self._sums / self._count
        size, deviation, error = (
            (self._centre + away).abs(),
            (square - away.square()).clamp(min=0).sqrt(),
            change.sqrt(),
        )
        lost = (error > _LARGEST_ERROR * deviation) & (deviation > _SMALLEST_DEVIATION * size)
        # Numbers past float32 become infinite, which no offset mends and which is told of as such.
        lost &= error.isfinite()
        if not bool(lost.any()):
            return
        place = int(lost.flatten().nonzero()[0])
        what = "channel" if size.ndim == 4 else "column"
        others = int(lost.sum()) - 1
        values, spread, rounding = (float(each.flatten()[place]) for each in (size, deviation, error))
        raise EvidentiaError(
            f"{what} {repr(columns[place]) if columns else place} has values of about {values:.2g} that vary by "
            f"{spread:.2g} (standard deviation), and float32, in which networks are trained, changes them by "
            f"{rounding:.2g}{f', and so with {others} more' if others else ''}; subtract an offset from it first, such "
            f"as its mean, in training and in prediction (standardise=True comes after the rounding), or give the "
            "samples in float32 if this does not matter"
        )


def check_precision(data: SemiSupervisedData, network: nn.Module | str | None) -> None:
    """Require features that survive a network's dtype; those of `from_arrays` are float32, and were checked there."""
    if data.x_labeled.dtype == torch.float32 or not validation_enabled():
        return
    if not isinstance(network, nn.Module) or dtype_of(network) == torch.float32:
        precision = Precision()
        precision.see(data.x_labeled)
        precision.see(data.x_unlabeled)
        precision.check(data.columns)
