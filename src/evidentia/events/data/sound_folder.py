"""Soundscapes from a folder of sounds, a sub-folder a class, with whole sounds held out to calibrate on."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from evidentia._support.errors import EvidentiaError
from evidentia.events.clips import Clip
from evidentia.events.data.audio_files import EXTENSIONS, read_audio
from evidentia.events.data.sounds import Sound, load_sounds
from evidentia.events.data.soundscapes import audible, mix_soundscapes, part_seed

FOLDER_CLIPS = {"train": 1000, "validation": 250, "test": 250}
"""How many clips each part has that is mixed from a folder of sounds."""

# One of so many sounds of a class is held out.
_ONE_IN = 5


def is_sound_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a folder has sub-folders with sound files in them, and neither CSV nor tsv files, which tell more."""
    root = Path(path)
    if not root.is_dir() or any(file.suffix.lower() in (".csv", ".tsv") for file in root.iterdir()):
        return False
    classes = [each for each in root.iterdir() if each.is_dir() and not each.name.startswith(".")]
    return any(file.suffix.lower() in EXTENSIONS for each in classes for file in each.iterdir())


def folder_soundscapes(
    folder: str | os.PathLike[str],
    part: str = "train",
    count: int | None = None,
    seed: int = 0,
    *,
    rate: int = 16_000,
    background: str | os.PathLike[str] | None = None,
) -> list[Clip]:
    """Soundscapes of 10 s from a folder that has a sub-folder of sounds for each class.

    Training clips are mixed from four fifths of the sounds of each class, those for validation from the others, drawn
    by the seed: no sound is in both (see `part_sounds`). Test clips are mixed from all, and tell something only of
    sounds that the detector was not trained on: keep such in a folder of their own. There are 1,000, 250 and 250 clips
    unless `count` says otherwise.

    Args:
        folder: it holds `class/anything.wav`, or flac or ogg.
        part: `train`, `validation` or `test`.
        count: how many clips.
        seed: of the draw and of the mixing, which differs from part to part.
        rate: resample to this rate.
        background: a folder of sounds that go on behind the events, in it or below it, the same for all parts; noise
            only if None.

    Example:
        >>> import soundfile, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Path(folder, "beep").mkdir()
        ...     for n in range(5):
        ...         soundfile.write(f"{folder}/beep/{n}.wav", np.sin(np.arange(8000) / (n + 2)), 16_000)
        ...     clip = folder_soundscapes(folder, count=1)[0]
        >>> clip.duration, {event.label for event in clip.events}
        (10.0, {'beep'})
    """
    if part not in FOLDER_CLIPS:
        raise EvidentiaError(f"there is no part named {part!r}; choose one of: {', '.join(FOLDER_CLIPS)}")
    sounds = load_sounds(folder, rate=rate)
    if part != "test":
        kept, held = part_sounds(sounds, seed)
        sounds = held if part == "validation" else kept
    number, name = FOLDER_CLIPS[part] if count is None else count, f"{Path(folder).resolve().name}-{part}"
    behind = () if background is None else _background(Path(background), rate)
    return mix_soundscapes(sounds, number, part_seed(seed, part, FOLDER_CLIPS), background=behind, name=name)


def part_sounds(sounds: Sequence[Sound], seed: int = 0) -> tuple[list[Sound], list[Sound]]:
    """Sounds to train on and sounds to hold out, a fifth of each class and at least one, drawn by the seed.

    A recording that is there several times, also under several classes, is in one part only. Sounds of which nothing
    can be heard for long enough to be an event are in neither.

    Raises:
        EvidentiaError: if a class has not two recordings, one for each part.

    Example:
        >>> hums = [Sound(np.full(1000, 0.1 * n), 1000, "hum", str(n)) for n in range(1, 6)]
        >>> kept, held = part_sounds([*hums, hums[0]])
        >>> len({sound.name for sound in kept}), len(held), {sound.name for sound in kept} & {held[0].name}
        (4, 1, set())
    """
    recordings: dict[bytes, list[Sound]] = defaultdict(list)
    for sound in sounds:
        if audible(sound):
            recordings[hashlib.sha256(sound.samples.tobytes()).digest()].append(sound)
    groups = list(recordings.values())
    order = np.random.default_rng([seed]).permutation(len(groups)).tolist()
    labels = [{sound.label for sound in group} for group in groups]
    classes = sorted({sound.label for sound in sounds})
    left = {label: sum(label in having for having in labels) for label in classes}
    wanted = {label: max(1, round(count / _ONE_IN)) for label, count in left.items()}
    held: set[int] = set()
    # The rarest first, for which there is least to choose from.
    for label in sorted(classes, key=lambda label: (left[label], label)):
        own = [n for n in order if label in labels[n]]
        lacking = max(0, wanted[label] - sum(n in held for n in own))
        # Looked at one by one, as each that is held leaves less of the classes that it has.
        free = (n for n in own if n not in held and all(left[each] > 1 for each in labels[n]))
        for n in islice(free, lacking):
            held.add(n)
            for each in labels[n]:
                left[each] -= 1
        if held.isdisjoint(own):
            raise EvidentiaError(
                f"class {label!r} needs at least two sounds of its own that can be heard, one to train on and one to "
                "calibrate on, and better ten or more; add some, or leave its folder out"
            )
    return (
        [sound for n, group in enumerate(groups) if n not in held for sound in group],
        [sound for n in sorted(held) for sound in groups[n]],
    )


def _background(folder: Path, rate: int) -> list[Sound]:
    files = sorted(file for file in folder.rglob("*") if file.suffix.lower() in EXTENSIONS)
    if not files:
        raise FileNotFoundError(f"{folder} has no wav, flac or ogg file to go on behind the events")
    return [Sound(read_audio(file, rate)[0].numpy(), rate, "background", file.stem) for file in files]
