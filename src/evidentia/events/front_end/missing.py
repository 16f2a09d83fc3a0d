"""Numbers of a series that did not come: the channel's last good one stands for them, at first its mean in training.

What instruments and file formats write in their place counts as missing with NaN and infinity: 9.9e37 for an overload,
the largest float, 1e20 and their like. In a network they would become infinite, and then NaN for good.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia.events.clips import Clip

# Beyond this nothing is measured.
LARGEST = 1e15


def hold_last(block: Tensor, last: Tensor) -> Tensor:
    """Samples in which missing numbers hold the channel's last good value.

    Args:
        block: shape `(B, n, channels)`.
        last: the good values before them, shape `(B, channels)`.

    Example:
        >>> hold_last(torch.tensor([[[torch.nan], [3.0], [torch.nan]]]), torch.tensor([[1.0]])).flatten()
        tensor([1., 3., 3.])
    """
    good = _good(block)
    known = torch.cat([last.unsqueeze(1), torch.where(good, block, 0)], dim=1)
    steps = torch.arange(1, known.shape[1]).view(1, -1, 1)
    latest = torch.where(good, steps, 0).cummax(1).values
    return known.gather(1, latest)


def completed(clips: Sequence[Clip], usual: Callable[[], Tensor]) -> list[Clip]:
    """The clips without missing numbers, filled as a stream of them fills them; those that miss none as they are.

    Args:
        clips: sound, or series in which numbers may be missing.
        usual: gives what stands for numbers that are missing at the beginning of a clip, shape `(channels,)`: the means
            of training. It is asked only where a number is missing.

    Example:
        >>> clip = Clip([[torch.nan, 1.0], [4.0, torch.nan], [6.0, 3.0]], rate=10)
        >>> completed([clip], lambda: usual_numbers([clip]))[0].samples
        tensor([[5., 1.],
                [4., 1.],
                [6., 3.]])
    """
    # Only a series of shape `(n, channels)` can miss numbers, so that sound is not looked through.
    lacking = {n for n, clip in enumerate(clips) if clip.samples.ndim == 2 and not bool(_good(clip.samples).all())}
    if not lacking:
        return list(clips)
    first = usual().unsqueeze(0)
    return [
        replace(clip, samples=hold_last(clip.samples.unsqueeze(0), first)[0]) if n in lacking else clip
        for n, clip in enumerate(clips)
    ]


def usual_numbers(clips: Sequence[Clip]) -> Tensor:
    """The mean of each channel over all clips, shape `(channels,)`; every channel must have a number somewhere."""
    numbers = torch.cat([clip.samples.reshape(len(clip.samples), -1) for clip in clips])
    means = torch.where(_good(numbers), numbers, torch.nan).nanmean(0)
    if bool(means.isnan().any()):
        names = clips[0].columns or tuple(map(str, range(len(means))))
        silent = [name for name, mean in zip(names, means.tolist(), strict=True) if math.isnan(mean)]
        raise EvidentiaError(
            f"no clip has a number in channel {', '.join(silent)}, so that nothing can be learned of it; leave it out"
        )
    return means


def _good(numbers: Tensor) -> Tensor:
    # NaN is not at most anything.
    return numbers.abs() <= LARGEST
