"""Labelled sounds, the material of soundscapes: a folder a class, or ESC-50."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia.events.data.audio_files import EXTENSIONS, audio_file, read_audio
from evidentia.events.data.tables import read_table

ESC50_SUBSETS: dict[str, tuple[str, ...]] = {
    "domestic": (
        *("cat", "clock_alarm", "crying_baby", "dog", "door_wood_knock", "glass_breaking", "keyboard_typing"),
        *("toilet_flush", "vacuum_cleaner", "washing_machine"),
    ),
    "alarm": ("car_horn", "church_bells", "clock_alarm", "crying_baby", "fireworks", "glass_breaking", "siren"),
    "liquid": (
        *("drinking_sipping", "pouring_water", "rain", "sea_waves", "toilet_flush", "washing_machine", "water_drops"),
    ),
    "engine": (
        *("airplane", "chainsaw", "engine", "hand_saw", "helicopter", "train", "vacuum_cleaner", "washing_machine"),
    ),
}
"""The classes of ESC-50 in each of our four benchmarks."""

ESC50_ALL = "all"
"""The name of all classes of ESC-50 but its backgrounds: what a network can learn to listen by, before it is trained on
sounds of one's own."""

ESC50_BACKGROUND = ("chirping_birds", "crickets", "insects", "wind")
"""Classes of ESC-50 that sound on and on, and that are in none of the subsets."""

_COLUMNS = ("filename", "fold", "category")


@dataclass(frozen=True, eq=False)
class Sound:
    """One labelled sound.

    Attributes:
        samples: float32, shape `(n,)`.
        rate: samples a second.
        label: its class.
        name: where it comes from.
    """

    samples: npt.NDArray[np.float32]
    rate: int
    label: str
    name: str = "sound"

    def __post_init__(self) -> None:
        samples = np.asarray(self.samples, dtype=np.float32)
        if samples.ndim != 1 or not len(samples) or not np.isfinite(samples).all():
            raise EvidentiaError(
                f"{self.name}: a sound needs one channel of finite samples, got shape {tuple(samples.shape)}"
            )
        if not isinstance(self.label, str) or not self.label or self.rate < 1:
            raise EvidentiaError(
                f"{self.name}: a sound needs a label and a positive rate, got {self.label!r} and {self.rate!r}"
            )
        object.__setattr__(self, "samples", samples)


def load_sounds(
    folder: str | os.PathLike[str], labels: Iterable[str] | None = None, *, rate: int = 16_000
) -> list[Sound]:
    """All sound files of a folder that has a folder for each class.

    Args:
        folder: it holds `class/anything.wav`, or flac or ogg.
        labels: load these classes only, each of which must have sounds; all that have any if None.
        rate: resample to this rate.

    Example:
        >>> import soundfile, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Path(folder, "beep").mkdir()
        ...     soundfile.write(f"{folder}/beep/one.wav", np.sin(np.arange(8000)), 16_000)
        ...     [(sound.label, len(sound.samples)) for sound in load_sounds(folder)]
        [('beep', 8000)]
    """
    if isinstance(labels, str):
        raise EvidentiaError(f"labels must be a list of classes, such as [{labels!r}], got {labels!r}")
    root = Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(f"there is no folder {root}")
    wanted = None if labels is None else tuple(labels)
    there = sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
    if missing := [label for label in wanted or () if label not in {path.name for path in there}]:
        raise FileNotFoundError(f"{root} has no folder for class {', '.join(missing)}")
    sounds, empty = [], []
    for path in there:
        if wanted is None or path.name in wanted:
            files = sorted(file for file in path.iterdir() if file.suffix.lower() in EXTENSIONS)
            sounds += [_load(file, path.name, rate) for file in files]
            if not files:
                empty.append(path.name)
    # Named folders must have sounds; others, such as one of notes, need not be classes.
    if empty and (wanted is not None or sounds):
        told = f"{root} has no wav, flac or ogg file right in its folder {', '.join(empty)}"
        if wanted is not None:
            raise FileNotFoundError(f"{told}; convert the sounds, or move them up to there")
        warnings.warn(
            f"{told}, so there is no class of that name; convert sounds, or move them up to there", stacklevel=2
        )
    if not sounds:
        raise FileNotFoundError(f"{root} has no folders with wav, flac or ogg files; it needs one for each class")
    return sounds


def load_esc50(
    root: str | os.PathLike[str],
    labels: Iterable[str] | None = None,
    folds: Sequence[int] = (1, 2, 3, 4, 5),
    *,
    rate: int = 16_000,
) -> list[Sound]:
    r"""Sounds of ESC-50: `meta/esc50.csv` and `audio/`, in any of the three formats.

    Args:
        root: the folder of ESC-50, or the one that it is in.
        labels: load these of its 50 classes only.
        folds: load these of its five folds only.
        rate: resample to this rate.

    Example:
        >>> import soundfile, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for part in ("meta", "audio"):
        ...         Path(folder, part).mkdir()
        ...     _ = Path(folder, "meta", "esc50.csv").write_text("filename,fold,category\n1-dog.wav,1,dog\n")
        ...     soundfile.write(f"{folder}/audio/1-dog.wav", np.sin(np.arange(8000)), 16_000)
        ...     [(sound.label, len(sound.samples)) for sound in load_esc50(folder)]
        [('dog', 8000)]
    """
    folder = Path(root)
    if not (folder / "meta").is_dir() and (folder / "ESC-50" / "meta").is_dir():
        folder = folder / "ESC-50"
    table = folder / "meta" / "esc50.csv"
    rows = read_table(table, ",")
    header = rows[0][1]
    if missing := [name for name in _COLUMNS if name not in header]:
        raise FileFormatError(f"{table} lacks the column {', '.join(missing)}")
    place = [header.index(name) for name in _COLUMNS]
    listed = []
    for line, row in rows[1:]:
        if len(row) != len(header) or not row[place[1]].isdecimal():
            raise FileFormatError(f"line {line} of {table} must have {len(header)} columns and a fold, got {row}")
        listed.append((row[place[0]], int(row[place[1]]), row[place[2]]))
    wanted = {category for _, _, category in listed} if labels is None else set(labels)
    if unknown := wanted - {category for _, _, category in listed}:
        raise EvidentiaError(f"ESC-50 has no class {', '.join(sorted(unknown))}")
    return [
        _load(audio_file(folder / "audio", name), category, rate)
        for name, fold, category in listed
        if category in wanted and fold in folds
    ]


def bouts(sound: Sound, *, below_peak: float = 30.0, pause: float = 0.3) -> list[tuple[int, int]]:
    """Where a sound is to be heard: runs of samples, apart by a pause.

    Recordings begin and end with silence, and hold several barks or knocks. In steps of 10 ms, what is less than
    `below_peak` dB below the loudest step is heard; a pause of more than `pause` seconds ends a bout.

    Example:
        >>> quiet, loud = np.zeros(500), np.ones(500)
        >>> bouts(Sound(np.concatenate([quiet, loud, quiet, loud]), rate=1000, label="knock"))
        [(500, 1000), (1500, 2000)]
    """
    step = max(1, sound.rate // 100)
    size = -(-len(sound.samples) // step)
    padded = np.zeros(size * step)
    padded[: len(sound.samples)] = sound.samples
    power = np.square(padded).reshape(size, step).mean(1)
    heard = np.flatnonzero(power > power.max() * 10 ** (-below_peak / 10))
    if not len(heard):
        return []
    breaks = np.flatnonzero(np.diff(heard) * step > pause * sound.rate + step)
    first, last = heard[np.r_[0, breaks + 1]], heard[np.r_[breaks, len(heard) - 1]]
    return [(int(a) * step, min((int(b) + 1) * step, len(sound.samples))) for a, b in zip(first, last, strict=True)]


def _load(path: Path, label: str, rate: int) -> Sound:
    samples, found = read_audio(path, rate)
    return Sound(samples.numpy(), found, label, f"{label}/{path.stem}")
