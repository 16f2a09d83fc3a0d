r"""The log-mel front end: sound to frames, causal, and the same whether a stream comes whole or in pieces.

Frame j is $10 \log_{10} \max(\sum_f M_{fm} |\mathrm{FFT}(h \odot x_j)_f|^2, 10^{-10})$ with a periodic Hann window h of
2,048 samples, Slaney's mel filters M with unit area (128, 0 Hz to half the rate) and a hop of 256 samples at 16 kHz
(thesis section 4.7, "Features"). $x_j$ are the 2,048 samples that *end* with hop j, silence before the first: a frame
is complete as soon as its hop is, and 10 s give 625 frames. Nothing refers to the clip as a whole (no largest value,
no mean), so no frame depends on samples after it.

The usual centred frames (626 for 10 s) are these, three hops of look-ahead earlier; `LogMel.centred` gives them to
networks that are not meant for streams.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from evidentia._support.checks import check_finite, validation_enabled
from evidentia._support.errors import EvidentiaError
from evidentia.events.state import FrontEndState

# Windows that are transformed at once: they and their spectra stay in a core's cache, and in memory that is at hand.
_BLOCK = 256
# From so many windows on, the mel matrix is applied in blocks.
_MANY = 64


def mel_filters(
    sample_rate: int = 16_000, window: int = 2048, mels: int = 128, f_min: float = 0.0, f_max: float | None = None
) -> Tensor:
    r"""Slaney's mel filters, shape `(window // 2 + 1, mels)`, float64.

    Filter m is a triangle over the frequencies $f_m, f_{m+1}, f_{m+2}$ of height $2 / (f_{m+2} - f_m)$, so of area 1.
    The frequencies are evenly spaced in mel: $3 f / 200$ up to 1 kHz, from there $15 + 27 \ln(f / 1000) / \ln 6.4$
    (Slaney's Auditory Toolbox, 1998).

    Example:
        >>> filters = mel_filters()
        >>> filters.shape, f"{(filters == 0).double().mean():.3f} of it zero"
        (torch.Size([1025, 128]), '0.985 of it zero')
    """
    top = sample_rate / 2 if f_max is None else f_max
    if not 0 <= f_min < top <= sample_rate / 2:
        raise EvidentiaError(
            f"mel filters need 0 <= f_min < f_max <= half the sample rate ({sample_rate / 2:g} Hz), got f_min "
            f"{f_min:g} and f_max {top:g}"
        )
    edges = _hertz(np.linspace(_mel(f_min), _mel(top), mels + 2))
    bins = np.linspace(0, sample_rate / 2, window // 2 + 1)[:, None]
    low, peak, high = edges[:-2], edges[1:-1], edges[2:]
    triangles = np.minimum((bins - low) / (peak - low), (high - bins) / (high - peak)).clip(min=0)
    return torch.from_numpy(triangles * 2 / (high - low))


def filter_at(
    hertz: float, sample_rate: int = 16_000, mels: int = 128, f_min: float = 0.0, f_max: float | None = None
) -> float:
    """Which filter of `mel_filters` peaks at a frequency, counted from 0; between two filters a number between theirs.

    Example:
        >>> peak = int(mel_filters()[:, 60].argmax()) * 16_000 / 2048
        >>> f"{peak:.1f} Hz, filter {filter_at(peak):.1f}"
        '1554.7 Hz, filter 60.1'
    """
    low, top = _mel(f_min), _mel(sample_rate / 2 if f_max is None else f_max)
    return (_mel(hertz) - low) / (top - low) * (mels + 1) - 1


class LogMel(nn.Module):
    """Log-mel frames in dB of sound, offline (`forward`, `centred`) and of live streams (`start`, `step`).

    Samples are brought to the dtype of the front end. Windows are transformed one by one, so that a stream in pieces
    gives what it gives whole, to the rounding of the matrix product. A transform in float32 is exact relative to its
    largest value: bands within 60 dB of their frame's loudest are exact to 0.0005 dB, bands 100 dB below it to some
    0.05. Take float64 where that matters.

    Args:
        sample_rate: samples a second.
        mels: number of filters.
        window: samples a frame looks at.
        hop: samples from frame to frame.
        f_min: lowest frequency in Hz.
        f_max: highest frequency, by default half the sample rate.
        floor: least power of a band; 1e-10 is -100 dB.
        dtype: of window and filters, by default torch's default.

    Attributes:
        blocks: neighbouring filters, from and to, after the frequencies, from and to, beyond which they are zero.

    Example:
        >>> front = LogMel()
        >>> sound = torch.randn(2, 160_000)
        >>> front(sound).shape, front.centred(sound).shape
        (torch.Size([2, 625, 128]), torch.Size([2, 626, 128]))
        >>> frames, state = front.step(sound[:, :1000], front.start(batch=2))
        >>> frames.shape
        torch.Size([2, 3, 128])
        >>> frames, state = front.step(sound[:, 1000:1024], state)
        >>> torch.allclose(frames, front(sound)[:, 3:4], atol=1e-4)
        True
    """

    window: Tensor
    filters: Tensor

    def __init__(
        self,
        sample_rate: int = 16_000,
        mels: int = 128,
        window: int = 2048,
        hop: int = 256,
        f_min: float = 0.0,
        f_max: float | None = None,
        floor: float = 1e-10,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if min(sample_rate, mels, hop) < 1 or not hop <= window:
            raise EvidentiaError(
                "sample_rate, mels and hop must be at least 1, and the window no shorter than the hop, got "
                f"sample_rate {sample_rate}, mels {mels}, hop {hop}, window {window}"
            )
        if not 0 < floor < math.inf:
            raise EvidentiaError(f"the floor is a least power and must be positive, got {floor}")
        self.sample_rate, self.mels, self.hop, self.floor = sample_rate, mels, hop, floor
        kind = torch.get_default_dtype() if dtype is None else dtype
        hann = torch.hann_window(window, periodic=True, dtype=torch.float64)
        # Both follow from the settings: files of weights need not hold them.
        self.register_buffer("window", hann.to(kind), persistent=False)
        self.register_buffer("filters", mel_filters(sample_rate, window, mels, f_min, f_max).to(kind), persistent=False)
        self.blocks = [_extent(self.filters, first, min(first + 32, mels)) for first in range(0, mels, 32)]

    def forward(self, samples: Tensor) -> Tensor:
        """Causal frames of whole sounds, shape `(..., samples)` to `(..., samples // hop, mels)`."""
        samples = self._checked(samples)
        return self._frames(nn.functional.pad(samples, (self._overlap, 0)))

    def centred(self, samples: Tensor) -> Tensor:
        """Frames centred on every hop, `1 + samples // hop` of them: each looks half a window ahead; offline only."""
        samples = self._checked(samples)
        half = len(self.window) // 2
        return self._frames(nn.functional.pad(samples, (half, half)))

    def start(self, batch: int = 1) -> FrontEndState:
        """The state of streams that have not begun: silence before them."""
        if batch < 1:
            raise EvidentiaError(f"a batch must hold at least 1 stream, got {batch}")
        frames = torch.zeros(batch, dtype=torch.int64, device=self.window.device)
        return FrontEndState(self.window.new_zeros(batch, self._overlap), frames)

    @torch.no_grad()
    def step(self, samples: Tensor, state: FrontEndState) -> tuple[Tensor, FrontEndState]:
        """The frames that a piece of each stream completes, and the state after it.

        Args:
            samples: the next samples of every stream, shape `(B, n)`, any n, also 0.
            state: what `start` or the step before gave.

        Returns:
            Frames of shape `(B, T, mels)`, where T may be 0, and the new state.
        """
        samples = self._checked(samples)
        if samples.ndim != 2 or samples.shape[0] != state.batch:
            raise EvidentiaError(
                f"samples must be of shape ({state.batch}, n), a row for each stream of the state, got "
                f"{tuple(samples.shape)}; start(batch) makes a state for another number of streams"
            )
        if not self._overlap <= state.tail.shape[1] < self._overlap + self.hop:
            raise EvidentiaError(
                f"the state of this front end has a tail of {self._overlap} to {self._overlap + self.hop - 1} samples "
                f"a stream, got {state.tail.shape[1]}; it comes from other settings of window or hop"
            )
        joined = torch.cat([state.tail, samples], dim=1)
        count = (joined.shape[1] - self._overlap) // self.hop
        frames = self._frames(joined) if count else joined.new_zeros(len(joined), 0, self.mels)
        return frames, FrontEndState(joined[:, count * self.hop :], state.frames + count).compact()

    @property
    def _overlap(self) -> int:
        return len(self.window) - self.hop

    def _checked(self, samples: Tensor) -> Tensor:
        if not isinstance(samples, Tensor) or not samples.is_floating_point() or samples.ndim < 1:
            got = f"a tensor of {samples.dtype}" if isinstance(samples, Tensor) else type(samples).__name__
            raise EvidentiaError(
                f"samples must be a floating tensor with time as its last dimension, got {got}; divide 16-bit samples "
                "by 32,768"
            )
        if validation_enabled():
            check_finite(samples, "samples")
        return samples.to(self.window)

    def _frames(self, padded: Tensor) -> Tensor:
        if padded.shape[-1] < len(self.window):
            return padded.new_zeros(*padded.shape[:-1], 0, self.mels)
        windows = padded.unfold(-1, len(self.window), self.hop)
        block = max(1, _BLOCK // max(1, windows.shape[:-2].numel()))
        parts = [self._log_mel(part) for part in windows.split(block, dim=-2)]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-2)

    def _log_mel(self, windows: Tensor) -> Tensor:
        spectrum = torch.fft.rfft(windows * self.window)
        power = torch.addcmul(spectrum.real.square(), spectrum.imag, spectrum.imag)
        return 10 * torch.log10(self._mel_power(power).clamp(min=self.floor))

    def _mel_power(self, power: Tensor) -> Tensor:
        if power.shape[:-1].numel() < _MANY:
            return power @ self.filters
        # Almost all of the matrix is zeros: neighbouring filters look at few neighbouring frequencies.
        parts = [power[..., low:high] @ self.filters[low:high, first:last] for low, high, first, last in self.blocks]
        return torch.cat(parts, dim=-1)


def _extent(filters: Tensor, first: int, last: int) -> tuple[int, int, int, int]:
    """The frequencies, from and to, that the filters from `first` to `last` look at; and these two."""
    bins = filters[:, first:last].any(1).nonzero().flatten().tolist() or [0]
    return bins[0], bins[-1] + 1, first, last


def _mel(hertz: float) -> float:
    return 3 * hertz / 200 if hertz < 1000 else 15 + 27 * math.log(hertz / 1000) / math.log(6.4)


def _hertz(mel: np.ndarray) -> np.ndarray:
    return np.where(mel < 15, 200 * mel / 3, 1000 * np.exp(math.log(6.4) / 27 * (mel - 15)))
