"""What a detector takes in: sound, through the log-mel front end, or any multivariate series as it is.

Both give frames of whole clips (`frames`) and of streams (`start`, `advance`). A stream is always advanced by exactly
one segment of samples, whatever the pieces it came in, so that not even rounding depends on them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia._support.settings import Settings
from evidentia.events.clips import Clip
from evidentia.events.front_end.chunks import Cleaned, Samples, series_samples, sound_samples
from evidentia.events.front_end.live_log_mel import live_log_mel
from evidentia.events.front_end.log_mel import LogMel
from evidentia.events.front_end.missing import LARGEST, hold_last
from evidentia.events.state import Arrays

NEAR_RATE = 0.01
"""By which share of it the rate of a series may differ from that of the detector."""


class Inputs(Settings, ABC):
    """What sound and series have in common."""

    segment: int = Field(default=4, ge=1, le=4096)

    @property
    @abstractmethod
    def features(self) -> int:
        """Numbers a frame."""

    @property
    @abstractmethod
    def hop(self) -> int:
        """Samples from frame to frame."""

    @property
    @abstractmethod
    def sample_rate(self) -> float:
        """Samples a second."""

    @property
    @abstractmethod
    def sample_shape(self) -> tuple[int, ...]:
        """The shape of one sample: `()` for sound, `(channels,)` for a series."""

    @abstractmethod
    def frames(self, clip: Clip) -> Tensor:
        """The frames of a whole clip, `(T, features)`, float32; offline."""

    @abstractmethod
    def start(self, usual: Tensor) -> Arrays:
        """What is remembered of one stream that has not begun; `usual` is the mean frame of training, `(features,)`."""

    @abstractmethod
    def clean(self, block: Samples, memory: Arrays) -> Cleaned:
        """A segment of some streams without NaN, infinite or out-of-scale samples."""

    @abstractmethod
    def advance(self, block: Samples, memory: Arrays) -> tuple[Samples, Arrays]:
        """The frames `(B, segment, features)` of one cleaned segment of B streams, and what to remember of it."""

    @abstractmethod
    def as_samples(self, given: Any) -> Samples:
        """A chunk as float32 samples, `(n,)` or `(n, channels)`, from arrays, tensors or lists."""

    @property
    def step(self) -> int:
        """Samples a segment."""
        return self.segment * self.hop

    @property
    def unsettled(self) -> int:
        """How many segments at the beginning of a stream have frames that reach back before it."""
        return 0

    @property
    def seconds(self) -> float:
        """The length of a segment."""
        return self.step / self.sample_rate

    @abstractmethod
    def check_clip(self, clip: Clip) -> None:
        """Require a clip of this rate, and of these channels."""

    @classmethod
    def for_clip(
        cls, clip: Clip, segment: int | None, centred: bool, sound: bool | None = None
    ) -> SoundInputs | SeriesInputs:
        """The usual inputs for clips like this one: sound if it has one channel at 4 kHz or more."""
        is_sound = clip.channels == 1 and clip.rate >= 4000 if sound is None else sound
        if is_sound:
            if clip.rate != int(clip.rate):
                raise EvidentiaError(f"sound needs a whole number of samples a second, got {clip.rate:g}")
            # A segment is as long in seconds at any rate: 64 ms.
            hop = max(1, round(256 * clip.rate / 16_000))
            size = 4 if segment is None else segment
            return SoundInputs(rate=int(clip.rate), window=8 * hop, frame_hop=hop, centred=centred, segment=size)
        return SeriesInputs(rate=clip.rate, channels=clip.channels, segment=1 if segment is None else segment)

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> SoundInputs | SeriesInputs:
        """The inputs that `model_dump` described."""
        kinds: dict[str, type[SoundInputs | SeriesInputs]] = {"sound": SoundInputs, "series": SeriesInputs}
        return kinds[content["kind"]](**content)


class SoundInputs(Inputs):
    """Sound of one channel through the log-mel front end; see `LogMel`.

    Samples are floats in [-1, 1], or whole numbers of 8, 16 or 32 bits as sound cards give them. Several channels are
    averaged. NaN and infinite samples count as silence, and samples beyond full scale are limited to it.

    Example:
        >>> inputs = SoundInputs()
        >>> inputs.step, inputs.seconds, inputs.features
        (1024, 0.064, 128)
    """

    kind: Literal["sound"] = "sound"
    rate: int = Field(default=16_000, ge=1)
    mels: int = Field(default=128, ge=1, le=1024)
    window: int = Field(default=2048, ge=1, le=2**18)
    frame_hop: int = Field(default=256, ge=1)
    centred: bool = False

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        if self.frame_hop > self.window:
            raise EvidentiaError(f"frame_hop must be at most the window, {self.window}, got {self.frame_hop}")

    @property
    def features(self) -> int:
        """Mel bands."""
        return self.mels

    @property
    def hop(self) -> int:
        """Samples from frame to frame."""
        return self.frame_hop

    @property
    def sample_rate(self) -> float:
        """Samples a second."""
        return self.rate

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """A sample is a number."""
        return ()

    @property
    def unsettled(self) -> int:
        """How many segments it takes to fill the window."""
        return math.ceil((self.window - self.frame_hop) / self.step)

    @property
    def front_end(self) -> LogMel:
        """The front end, made once for these settings."""
        return _front_end(self.rate, self.mels, self.window, self.frame_hop)

    def check_clip(self, clip: Clip) -> None:
        """Require sound of this rate and one channel."""
        if not math.isclose(clip.rate, self.rate, rel_tol=1e-6):
            raise EvidentiaError(
                f"{clip.name} has {clip.rate:g} samples a second and the detector takes {self.rate:g}; resample it "
                "first, as read_audio does with sound files"
            )
        if clip.channels > 1:
            raise EvidentiaError(
                f"{clip.name} has {clip.channels} channels and the detector takes sound of one; average them first"
            )
        if clip.samples.ndim == 2 and bool(clip.samples.isnan().any()):
            raise EvidentiaError(
                f"{clip.name} is taken for sound and misses {int(clip.samples.isnan().sum())} samples; put 0 in their "
                "place, or train with sound=False if they are a sensor's numbers"
            )

    def frames(self, clip: Clip) -> Tensor:
        """Log-mel frames, causal unless `centred`."""
        self.check_clip(clip)
        sound = clip.samples.flatten().clamp(-1, 1)
        return self.front_end.centred(sound) if self.centred else self.front_end(sound)

    def start(self, usual: Tensor) -> Arrays:
        """Silence before the stream."""
        return {"tail": np.zeros((1, self.window - self.frame_hop), dtype=np.float32)}

    def clean(self, block: Samples, memory: Arrays) -> Cleaned:
        """NaN and infinite samples become 0, samples beyond full scale are limited to it."""
        # All is well in most segments: a NaN is not at most 1 either.
        if np.count_nonzero(np.abs(block) <= 1) == block.size:
            return Cleaned(block, None, None)
        finite = np.isfinite(block)
        silenced = np.where(finite, block, np.float32(0))
        return Cleaned(silenced.clip(-1, 1), (~finite).sum(1), (np.abs(silenced) > 1).sum(1))

    def advance(self, block: Samples, memory: Arrays) -> tuple[Samples, Arrays]:
        """The frames that the segment completes."""
        frames, tail = live_log_mel(self.front_end).advance(block, memory["tail"])
        return frames, {"tail": tail}

    def as_samples(self, given: Any) -> Samples:
        """Floats as they are, whole numbers by their full scale, channels averaged."""
        return sound_samples(given)


class SeriesInputs(Inputs):
    """A multivariate series, each sample a frame.

    NaN, infinite numbers and those beyond 1e15, which stand for none, are replaced by the channel's last good one, or
    by its mean in training if there was none yet.

    Example:
        >>> inputs = SeriesInputs(rate=10, channels=3)
        >>> inputs.step, inputs.seconds, inputs.features
        (1, 0.1, 3)
    """

    kind: Literal["series"] = "series"
    segment: int = Field(default=1, ge=1, le=4096)
    rate: float = Field(gt=0)
    channels: int = Field(ge=1)

    @property
    def features(self) -> int:
        """Channels."""
        return self.channels

    @property
    def hop(self) -> int:
        """Every sample is a frame."""
        return 1

    @property
    def sample_rate(self) -> float:
        """Samples a second."""
        return self.rate

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """A sample is a number a channel."""
        return (self.channels,)

    def check_clip(self, clip: Clip) -> None:
        """Require a series of these channels and about this rate, of which clocks are never quite sure."""
        if not math.isclose(clip.rate, self.rate, rel_tol=NEAR_RATE):
            raise EvidentiaError(
                f"{clip.name} has {clip.rate:g} samples a second and the detector takes {self.rate:g}, within "
                f"{NEAR_RATE:.0%}; resample the series first, or train on series of its rate"
            )
        if clip.channels != self.channels:
            raise EvidentiaError(f"{clip.name} has {clip.channels} channels and the detector takes {self.channels}")

    def frames(self, clip: Clip) -> Tensor:
        """The samples."""
        self.check_clip(clip)
        return clip.samples.reshape(-1, self.channels)

    def start(self, usual: Tensor) -> Arrays:
        """The mean of training stands for numbers that have not come yet."""
        return {"last": usual.reshape(1, self.channels).numpy().copy()}

    def clean(self, block: Samples, memory: Arrays) -> Cleaned:
        """Numbers that are none hold the channel's last good value."""
        good = np.abs(block) <= LARGEST
        if np.count_nonzero(good) == good.size:
            return Cleaned(block, None, None)
        held = hold_last(torch.from_numpy(block), torch.from_numpy(memory["last"]))
        return Cleaned(held.numpy(), (~good).sum((1, 2)), None)

    def advance(self, block: Samples, memory: Arrays) -> tuple[Samples, Arrays]:
        """The samples are the frames."""
        # An array of its own: how a piece of the caller's memory is aligned can change the last bit of a sum.
        return block.copy(), {"last": block[:, -1].copy()}

    def as_samples(self, given: Any) -> Samples:
        """Numbers of shape `(n, channels)`, or `(n,)` with one channel."""
        return series_samples(given, self.channels)


@lru_cache(maxsize=16)
def _front_end(rate: int, mels: int, window: int, hop: int) -> LogMel:
    with torch.inference_mode(False):
        return LogMel(rate, mels, window, hop, dtype=torch.float32)
