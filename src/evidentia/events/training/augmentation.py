r"""Changes of training sounds that leave their events what they are, on log-mel frames.

Frames are decibels, so what happens to sound is simple there: a gain adds a number, an equaliser adds a curve over the
bands, another pitch shifts the bands, and two sounds together have the sum of their powers. Features are computed once
and changed anew in every epoch. All random numbers come from PyTorch's global generator, which training seeds.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia._support.settings import Settings
from evidentia.events.front_end.inputs import Inputs, SoundInputs


class Batch(NamedTuple):
    """Clips to train on."""

    frames: Tensor
    """Shape `(B, S * segment, F)`; after a clip's end its frames begin again."""
    target: Tensor
    """Whether each class is present, 0 or 1, shape `(B, S, K)`."""
    weight: Tensor
    """What each entry counts in the loss; 0 after a clip's end."""
    lengths: Tensor
    """Segments of each clip, shape `(B,)`."""


class Augmentation(Settings):
    """How far training sounds are changed.

    Attributes:
        gain: louder or quieter by up to so many dB.
        equaliser: a smooth curve over the bands of up to so many dB.
        shift: up to so many bands up or down.
        masks: how many runs of bands are replaced by the clip's mean.
        mask_width: up to so many bands each.
        roll: let clips begin anywhere, what comes before at their end.
        mix: the share of clips that another one is added to, with the events of both.
        mix_gain: the other one is louder or quieter by up to so many dB.
        floor: the least value of a band in dB, as the front end has it.

    Example:
        >>> batch = Batch(torch.randn(4, 32, 128) - 40, torch.ones(4, 8, 2), torch.ones(4, 8, 2), torch.full((4,), 8))
        >>> Augmentation()(batch).frames.shape
        torch.Size([4, 32, 128])
    """

    gain: float = Field(default=8.0, ge=0)
    equaliser: float = Field(default=6.0, ge=0)
    shift: int = Field(default=5, ge=0)
    masks: int = Field(default=2, ge=0)
    mask_width: int = Field(default=12, ge=0)
    roll: bool = True
    mix: float = Field(default=0.3, ge=0, le=1)
    mix_gain: float = Field(default=5.0, ge=0)
    floor: float = -100.0

    def __call__(self, batch: Batch) -> Batch:
        """The batch, changed."""
        if self.roll:
            batch = rolled(batch)
        if self.mix:
            batch = mixed(batch, self.mix, self.mix_gain)
        frames = batch.frames
        if self.shift:
            frames = shifted(frames, self.shift)
        change = _uniform(len(frames), 1, 1, most=self.gain) + curves(len(frames), frames.shape[2], self.equaliser)
        frames = (frames + change.to(frames)).clamp(min=self.floor)
        return batch._replace(frames=masked(frames, self.masks, self.mask_width))


class SeriesAugmentation(Settings):
    """How far training series are changed: by noise, since what else leaves an event what it is depends on the series.

    Attributes:
        noise: its deviation, as a share of each channel's in the clip.
    """

    noise: float = Field(default=0.05, ge=0)

    def __call__(self, batch: Batch) -> Batch:
        """The batch, changed."""
        deviation = batch.frames.std(1, keepdim=True, correction=0)
        return batch._replace(frames=batch.frames + self.noise * deviation * torch.randn_like(batch.frames))


def rolled(batch: Batch) -> Batch:
    """Each clip begun at a random segment of it; what was before comes after its end.

    Example:
        >>> steps = torch.arange(4.0).view(1, 4, 1)
        >>> ends = rolled(Batch(steps, steps, steps, torch.tensor([3])))  # the fourth is beyond the clip's end
        >>> sorted(ends.target[0, :3, 0].tolist()), torch.equal(ends.frames, ends.target)
        ([0.0, 1.0, 2.0], True)
    """
    count = batch.target.shape[1]
    size = batch.frames.shape[1] // count
    first = (torch.rand(len(batch.lengths)) * batch.lengths).long()
    segments = torch.arange(count)
    source = torch.where(
        segments < batch.lengths[:, None], (segments + first[:, None]) % batch.lengths[:, None].clamp(min=1), segments
    )
    places = (source.unsqueeze(-1) * size + torch.arange(size)).flatten(1)
    return Batch(
        _taken(batch.frames, places), _taken(batch.target, source), _taken(batch.weight, source), batch.lengths
    )


def mixed(batch: Batch, share: float, most_gain: float) -> Batch:
    r"""Some clips with another one added, $10 \log_{10}(10^{x/10} + 10^{(y + g)/10})$, and the events of both."""
    chosen = (torch.rand(len(batch.lengths)) < share).nonzero().flatten()
    if not len(chosen):
        return batch
    other = torch.randperm(len(batch.lengths))[: len(chosen)]
    gain = _uniform(len(chosen), 1, 1, most=most_gain)
    there = torch.arange(batch.target.shape[1]) < batch.lengths[other, None]
    added = batch.frames[other] + gain
    silent = ~there.repeat_interleave(batch.frames.shape[1] // batch.target.shape[1], dim=1)
    added = added.masked_fill(silent.unsqueeze(-1), -torch.inf)
    scale = 10 / torch.log(torch.tensor(10.0))
    frames = batch.frames.clone()
    frames[chosen] = scale * torch.logaddexp(batch.frames[chosen] / scale, added / scale)
    mine, its = batch.target[chosen] > 0, (batch.target[other] > 0) & there.unsqueeze(-1)
    my_weight, its_weight = batch.weight[chosen], batch.weight[other]
    both = torch.maximum(my_weight, its_weight)
    # The weight of the event where one has it; where neither has, the smaller, as after an event.
    quiet = torch.where(there.unsqueeze(-1), torch.minimum(my_weight, its_weight), my_weight)
    weight = torch.where(mine & its, both, torch.where(mine, my_weight, torch.where(its, its_weight, quiet)))
    within = torch.arange(batch.target.shape[1]) < batch.lengths[chosen, None]
    target, weights = batch.target.clone(), batch.weight.clone()
    target[chosen] = (mine | its).to(target)
    weights[chosen] = weight * within.unsqueeze(-1)
    return Batch(frames, target, weights, batch.lengths)


def shifted(frames: Tensor, most: int) -> Tensor:
    """Bands moved up or down by up to so many, the outermost repeated."""
    move = torch.randint(-most, most + 1, (len(frames), 1))
    source = (torch.arange(frames.shape[2]) - move).clamp(0, frames.shape[2] - 1)
    return frames.gather(2, source.unsqueeze(1).expand_as(frames))


def curves(count: int, bands: int, most: float, points: int = 5) -> Tensor:
    """Smooth random curves over bands, `(count, 1, bands)`: straight between a few points of up to `most`."""
    return F.interpolate(_uniform(count, 1, points, most=most), size=bands, mode="linear", align_corners=True)


def masked(frames: Tensor, count: int, width: int) -> Tensor:
    """Runs of up to `width` bands of each clip replaced by the clip's mean."""
    bands = torch.arange(frames.shape[2])
    hidden = torch.zeros(len(frames), frames.shape[2], dtype=torch.bool)
    for _ in range(count):
        size = torch.randint(0, width + 1, (len(frames), 1))
        first = (torch.rand(len(frames), 1) * (frames.shape[2] - size + 1).clamp(min=1)).long()
        hidden |= (bands >= first) & (bands < first + size)
    return torch.where(hidden.unsqueeze(1), frames.mean((1, 2), keepdim=True), frames)


def _uniform(*shape: int, most: float) -> Tensor:
    return (2 * torch.rand(*shape) - 1) * most


def _taken(values: Tensor, places: Tensor) -> Tensor:
    return values.gather(1, places.unsqueeze(-1).expand(-1, -1, values.shape[2]))


def usual_augmentation(inputs: Inputs) -> Augmentation | SeriesAugmentation:
    """How clips of a kind are changed, if they are to be changed at all."""
    return Augmentation() if isinstance(inputs, SoundInputs) else SeriesAugmentation()
