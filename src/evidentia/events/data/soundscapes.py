"""Soundscapes: strongly labelled clips, mixed from any labelled sounds over a background."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from evidentia._support.errors import EvidentiaError
from evidentia.events.clips import Clip, Event
from evidentia.events.data.placing import check_mixing, place_events
from evidentia.events.data.sounds import ESC50_ALL, ESC50_BACKGROUND, ESC50_SUBSETS, Sound, bouts, load_esc50
from evidentia.events.data.synthetic import limited
from evidentia.events.data.waveforms import coloured_noise, faded, with_level

ESC50_SPLITS: dict[str, tuple[tuple[int, ...], int]] = {
    "train": ((1, 2, 3), 2000),
    "validation": ((4,), 300),
    "test": ((5,), 300),
}
"""The folds of ESC-50 that each part is mixed from, and how many clips it has."""

# A click of some milliseconds is no event that one could call early.
_SHORTEST = 0.1


def mix_soundscapes(
    sounds: Sequence[Sound],
    count: int,
    seed: int = 0,
    *,
    background: Sequence[Sound] = (),
    duration: float = 10.0,
    events: tuple[int, int] = (1, 4),
    length: tuple[float, float] = (0.5, 4.0),
    snr: tuple[float, float] = (6.0, 30.0),
    name: str = "soundscape",
) -> list[Clip]:
    """Mix clips with known events from labelled sounds.

    An event is a bout of one sound (see `bouts`), from its beginning on, so that its onset is true; classes are equally
    likely, then the sounds of a class. Events of one class do not touch, others may overlap. Clip i depends on the seed
    and on i only.

    Args:
        sounds: what events are made of, all of one rate.
        count: how many clips.
        seed: seed of the random numbers.
        background: what goes on behind them, one of these in each clip, repeated, with some noise; noise only if none.
        duration: how long each clip is, in seconds.
        events: the least and the largest number of events in a clip.
        length: the most an event may last, drawn between these, in seconds; sounds may be shorter.
        snr: how loud an event is over the background, in dB, from and to.
        name: what the clips are called.

    Example:
        >>> import numpy as np
        >>> wave = np.sin(np.arange(8000) / 3).astype(np.float32)
        >>> clips = mix_soundscapes([Sound(wave, 8000, "hum")], count=2, events=(2, 2))
        >>> clips[0], {event.label for event in clips[0].events}
        (Clip('soundscape-0-0': 10 s at 8000 Hz, 2 events), {'hum'})
    """
    _check_sounds("sounds", sounds)
    _check_sounds("background", background)
    if not sounds:
        raise EvidentiaError("there are no sounds to mix, got an empty list")
    rates = {sound.rate for sound in (*sounds, *background)}
    if len(rates) > 1:
        raise EvidentiaError(
            f"all sounds must have one rate, got {', '.join(map(str, sorted(rates)))} Hz; resample them"
        )
    rate = rates.pop()
    check_mixing(count, seed, duration, rate, events, length, snr)
    stock = _stock(sounds)
    clips = []
    for number in range(count):
        draw = np.random.default_rng([seed, number])
        level = 10 ** (draw.uniform(-45, -30) / 20)
        samples = _background(background, round(duration * rate), rate, draw) * np.float32(level)
        placed = []
        for label, onset, offset in place_events(tuple(stock), duration, events, length, draw):
            bout = stock[label][int(draw.integers(len(stock[label])))]
            first = round(onset * rate)
            # Only the end is faded out: the beginning is the sound's own.
            sound = bout[: min(round(offset * rate), len(samples)) - first]
            if len(sound) < len(bout):
                sound = np.concatenate([sound[: len(sound) // 2], faded(sound, rate, 0.02)[len(sound) // 2 :]])
            samples[first : first + len(sound)] += with_level(sound, level * 10 ** (draw.uniform(*snr) / 20))
            placed.append(Event(label, first / rate, (first + len(sound)) / rate))
        clips.append(Clip(torch.from_numpy(limited(samples)), rate, tuple(placed), f"{name}-{seed}-{number}"))
    return clips


def esc50_soundscapes(
    root: str | os.PathLike[str], subset: str, part: str = "train", count: int | None = None, seed: int = 0
) -> list[Clip]:
    """Our benchmark of real sound: 10 s soundscapes from ESC-50, which is in the folder `root`.

    Training clips are mixed from folds 1 to 3, validation from fold 4, the test from fold 5: no recording is in two
    parts. There are 2,000, 300 and 300 clips unless `count` says otherwise.

    Args:
        root: the folder of ESC-50, or the one that it is in.
        subset: `domestic`, `alarm`, `liquid` or `engine`, see `ESC50_SUBSETS`, or `all`, see `ESC50_ALL`.
        part: `train`, `validation` or `test`.
        count: how many clips.
        seed: seed of the random numbers.

    Example:
        >>> esc50_soundscapes("nowhere", "domestic")
        Traceback (most recent call last):
        FileNotFoundError: there is no file nowhere/meta/esc50.csv
    """
    for kind, given, known in (("subset", subset, [*ESC50_SUBSETS, ESC50_ALL]), ("part", part, ESC50_SPLITS)):
        if given not in known:
            raise EvidentiaError(f"there is no {kind} named {given!r}; choose one of: {', '.join(known)}")
    folds, usual = ESC50_SPLITS[part]
    sounds = load_esc50(root, ESC50_SUBSETS.get(subset), folds)
    if subset == ESC50_ALL:
        sounds = [sound for sound in sounds if sound.label not in ESC50_BACKGROUND]
    background = load_esc50(root, ESC50_BACKGROUND, folds)
    number, own = usual if count is None else count, part_seed(seed, part, ESC50_SPLITS)
    return mix_soundscapes(sounds, number, own, background=background, name=f"{subset}-{part}")


def part_seed(seed: int, part: str, parts: Iterable[str]) -> int:
    """Another seed for each part, lest their events lie at the same places."""
    names = list(parts)
    return len(names) * seed + names.index(part)


def audible(sound: Sound) -> list[npt.NDArray[np.float32]]:
    """The bouts of a sound that are long enough to be an event."""
    return [sound.samples[a:b] for a, b in bouts(sound) if b - a >= _SHORTEST * sound.rate]


def _check_sounds(name: str, given: Any) -> None:
    """Require a list of sounds, and none of paths."""
    several = isinstance(given, Sequence) and not isinstance(given, str)
    wrong = [each for each in given if not isinstance(each, Sound)] if several else [given]
    if wrong:
        raise EvidentiaError(
            f"{name} must be a list of Sound, got {type(wrong[0]).__name__} {str(wrong[0])[:80]!r}; "
            "load_sounds(folder) reads files, and Sound(samples, rate, label) makes one"
        )


def _stock(sounds: Sequence[Sound]) -> dict[str, list[npt.NDArray[np.float32]]]:
    """The bouts of each class."""
    stock: dict[str, list[npt.NDArray[np.float32]]] = defaultdict(list)
    for sound in sounds:
        stock[sound.label] += audible(sound)
    for label in {sound.label for sound in sounds}:
        if not stock[label]:
            raise EvidentiaError(f"no sound of class {label!r} can be heard for {_SHORTEST} s or more")
    return dict(sorted(stock.items()))


def _background(sounds: Sequence[Sound], size: int, rate: int, draw: np.random.Generator) -> npt.NDArray[np.float32]:
    """A background of root mean square 1: noise, and one of the sounds, begun somewhere and repeated."""
    noise = coloured_noise(size, rate, draw)
    if not sounds:
        return noise
    samples = sounds[int(draw.integers(len(sounds)))].samples
    turned = np.roll(samples, int(draw.integers(len(samples))))
    repeated = with_level(np.resize(turned, size), 1.0)
    return with_level(repeated + np.float32(10 ** (draw.uniform(-20, -5) / 20)) * noise, 1.0)
