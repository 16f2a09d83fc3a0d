"""The sounds of the synthetic generator: each a function of its length, one class apiece, told apart by ear."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

from evidentia._support.registry import Registry

Wave: TypeAlias = npt.NDArray[np.float32]
Waveform: TypeAlias = Callable[[int, int, np.random.Generator], npt.NDArray[np.floating]]

WAVEFORMS: Registry[Waveform] = Registry("waveform")
"""A waveform takes a number of samples, the rate and a generator of random numbers, and gives sound of any level."""


@WAVEFORMS.register("tone")
def _tone(size: int, rate: int, draw: np.random.Generator) -> npt.NDArray[np.floating]:
    """A steady note with a few overtones."""
    pitch = draw.uniform(300, 500)
    return sum(np.sin(_phase(np.full(size, pitch * n), rate)) / n for n in (1, 2, 3))  # type: ignore[return-value]


@WAVEFORMS.register("beeps")
def _beeps(size: int, rate: int, draw: np.random.Generator) -> npt.NDArray[np.floating]:
    """A high tone, switched on and off some times a second: an alarm clock."""
    on = (_time(size, rate) * draw.uniform(4, 6)) % 1 < 0.6
    return np.sin(_phase(np.full(size, draw.uniform(1800, 2400)), rate)) * on


@WAVEFORMS.register("chirp_up")
def _chirp_up(size: int, rate: int, draw: np.random.Generator) -> npt.NDArray[np.floating]:
    """A tone that rises again and again."""
    return _chirp(size, rate, draw, falling=False)


@WAVEFORMS.register("chirp_down")
def _chirp_down(size: int, rate: int, draw: np.random.Generator) -> npt.NDArray[np.floating]:
    """A tone that falls again and again."""
    return _chirp(size, rate, draw, falling=True)


@WAVEFORMS.register("siren")
def _siren(size: int, rate: int, draw: np.random.Generator) -> npt.NDArray[np.floating]:
    """A tone that wails up and down."""
    swing = np.sin(2 * np.pi * draw.uniform(1.5, 2.5) * _time(size, rate) + draw.uniform(0, 6.28))
    return np.sin(_phase(900 + 350 * swing, rate))


@WAVEFORMS.register("hiss")
def _hiss(size: int, rate: int, draw: np.random.Generator) -> npt.NDArray[np.floating]:
    """High noise: steam."""
    return np.diff(_noise(size + 2, draw), n=2)


@WAVEFORMS.register("rumble")
def _rumble(size: int, rate: int, draw: np.random.Generator) -> npt.NDArray[np.floating]:
    """Low noise that throbs: an engine."""
    throb = 1 + 0.8 * np.sin(2 * np.pi * draw.uniform(8, 14) * _time(size, rate))
    return _lowpass(_noise(size, draw), 160, rate) * throb


@WAVEFORMS.register("clicks")
def _clicks(size: int, rate: int, draw: np.random.Generator) -> npt.NDArray[np.floating]:
    """Single clicks in a quick row."""
    pulses = np.zeros(size, dtype=np.float32)
    pulses[:: max(1, int(rate / draw.uniform(18, 26)))] = 1
    return _ringing(pulses, draw.uniform(3000, 4000), 0.002, rate)


@WAVEFORMS.register("knocks")
def _knocks(size: int, rate: int, draw: np.random.Generator) -> npt.NDArray[np.floating]:
    """Dull knocks, some a second."""
    pulses = np.zeros(size, dtype=np.float32)
    pulses[:: max(1, int(rate / draw.uniform(4, 6)))] = 1
    return _ringing(pulses, draw.uniform(150, 250), 0.04, rate)


@WAVEFORMS.register("burst")
def _burst(size: int, rate: int, draw: np.random.Generator) -> npt.NDArray[np.floating]:
    """Noise around one frequency: a rush of air."""
    return _ringing(_noise(size, draw), draw.uniform(1000, 1400), 0.004, rate)


def coloured_noise(size: int, rate: int, draw: np.random.Generator) -> Wave:
    """Background noise, from white to brown, of root mean square 1."""
    share = draw.uniform(0.3, 0.9)
    white = _noise(size, draw)
    low = _lowpass(white, draw.uniform(200, 800), rate)
    return with_level(share * low / max(_rms(low), 1e-12) + (1 - share) * white, 1.0)


def with_level(samples: npt.NDArray[np.floating], level: float) -> Wave:
    """The sound at a root mean square of `level`; silence stays silence."""
    loudness = _rms(samples)
    return np.asarray(samples * (level / loudness if loudness > 0 else 0.0), dtype=np.float32)


def faded(samples: npt.NDArray[np.floating], rate: int, seconds: float = 0.005) -> npt.NDArray[np.floating]:
    """The sound with its first and last milliseconds faded, so that it does not click."""
    size = min(len(samples) // 2, int(seconds * rate))
    if size < 1:
        return samples
    ramp = np.linspace(0, 1, size + 1, dtype=np.float32)[1:]
    shape = np.ones(len(samples), dtype=np.float32)
    shape[:size], shape[-size:] = ramp, ramp[::-1]
    return samples * shape


def _chirp(size: int, rate: int, draw: np.random.Generator, falling: bool) -> npt.NDArray[np.floating]:
    place = (_time(size, rate) * draw.uniform(2, 3)) % 1
    low, high = draw.uniform(500, 700), draw.uniform(2500, 3500)
    return np.sin(_phase(low * (high / low) ** (1 - place if falling else place), rate))


def _ringing(pulses: npt.NDArray[np.floating], frequency: float, decay: float, rate: int) -> npt.NDArray[np.floating]:
    """The answer of a resonance to pulses."""
    radius, angle = np.exp(-1 / (decay * rate)), 2 * np.pi * min(frequency, 0.45 * rate) / rate
    return np.asarray(lfilter([1.0], [1.0, -2 * radius * np.cos(angle), radius**2], pulses))


def _lowpass(samples: npt.NDArray[np.floating], frequency: float, rate: int) -> npt.NDArray[np.floating]:
    keep = np.exp(-2 * np.pi * frequency / rate)
    # Coefficients of float32, so that the filter runs in it.
    taps = np.array([1 - keep], dtype=np.float32), np.array([1.0, -keep], dtype=np.float32)
    return np.asarray(lfilter(*taps, samples))


def _noise(size: int, draw: np.random.Generator) -> Wave:
    return draw.standard_normal(size, dtype=np.float32)


def _time(size: int, rate: int) -> npt.NDArray[np.float64]:
    return np.arange(size) / rate


def _phase(frequency: npt.NDArray[np.floating], rate: int) -> npt.NDArray[np.float64]:
    return 2 * np.pi * np.cumsum(np.minimum(frequency, 0.45 * rate)) / rate


def _rms(samples: npt.NDArray[np.floating]) -> float:
    return float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) if len(samples) else 0.0
