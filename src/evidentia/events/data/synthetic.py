"""Built-in sound with known events, for the demo and for tests: no download."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from evidentia._support.errors import EvidentiaError
from evidentia.events.clips import Clip, Event
from evidentia.events.data.placing import check_mixing, place_events
from evidentia.events.data.waveforms import WAVEFORMS, coloured_noise, faded, with_level


def synthetic_clips(
    count: int,
    seed: int = 0,
    *,
    labels: Sequence[str] | None = None,
    duration: float = 10.0,
    rate: int = 16_000,
    events: tuple[int, int] = (1, 4),
    length: tuple[float, float] = (0.5, 3.0),
    snr: tuple[float, float] = (6.0, 24.0),
) -> list[Clip]:
    """Clips of tones, chirps, bursts and clicks over noise, several of which may sound at once.

    Clip i depends on the seed and on i only: a longer list begins with the shorter one.

    Args:
        count: how many clips.
        seed: seed of the random numbers.
        labels: classes to draw from, of those in `WAVEFORMS`; all ten if None.
        duration: how long each clip is, in seconds.
        rate: samples a second.
        events: the least and the largest number of events in a clip.
        length: the least and the largest length of an event, in seconds.
        snr: how loud an event is over the background, in dB, from and to.

    Example:
        >>> from evidentia.events import synthetic_clips
        >>> clips = synthetic_clips(3, seed=1, labels=["siren", "clicks"])
        >>> clips[0]
        Clip('synthetic-1-0': 10 s at 16000 Hz, 3 events)
        >>> sorted({event.label for clip in clips for event in clip.events})
        ['clicks', 'siren']
    """
    check_mixing(count, seed, duration, rate, events, length, snr)
    names = tuple(WAVEFORMS) if labels is None else tuple(labels)
    if not names or len(set(names)) != len(names):
        raise EvidentiaError(f"labels must be one or more classes, each once, got {names}")
    waves = {name: WAVEFORMS[name] for name in names}
    clips = []
    for number in range(count):
        draw = np.random.default_rng([seed, number])
        size = round(duration * rate)
        level = 10 ** (draw.uniform(-40, -30) / 20)
        samples = coloured_noise(size, rate, draw) * np.float32(level)
        placed = []
        for label, onset, offset in place_events(names, duration, events, length, draw):
            first, last = round(onset * rate), round(offset * rate)
            loudness = level * 10 ** (draw.uniform(*snr) / 20)
            samples[first:last] += with_level(faded(waves[label](last - first, rate, draw), rate), loudness)
            placed.append(Event(label, first / rate, last / rate))
        clips.append(Clip(torch.from_numpy(limited(samples)), rate, tuple(placed), f"synthetic-{seed}-{number}"))
    return clips


def limited(
    samples: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """The sound made quieter as a whole if it would be clipped."""
    peak = float(np.abs(samples).max(initial=0.0))
    return samples if peak <= 0.99 else np.asarray(samples * np.float32(0.99 / peak), dtype=np.float32)
