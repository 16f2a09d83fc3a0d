"""Data sets of events by name."""

from __future__ import annotations

import os
from collections.abc import Iterable

from evidentia._support.errors import EvidentiaError
from evidentia.events.clips import Clip
from evidentia.events.data.ava_folder import AVA_SEGMENTS, ava_clips, check_ava, features_version
from evidentia.events.data.sounds import ESC50_ALL, ESC50_SUBSETS, load_esc50
from evidentia.events.data.soundscapes import ESC50_SPLITS, esc50_soundscapes, part_seed
from evidentia.events.data.synthetic import synthetic_clips

DATASETS = (
    "synthetic",
    *(f"esc50-{subset}" for subset in (*ESC50_SUBSETS, ESC50_ALL)),
    *(f"ava-{length}" for length in AVA_SEGMENTS),
)
PARTS = tuple(ESC50_SPLITS)
_SYNTHETIC = {"train": 200, "validation": 50, "test": 50}


def load_clips(
    name: str,
    part: str = "train",
    *,
    count: int | None = None,
    seed: int = 0,
    data_root: str | os.PathLike[str] | None = None,
) -> list[Clip]:
    """Clips of a data set by name.

    | name | clips of train, validation, test | what they are |
    |---|---|---|
    | synthetic | 200, 50, 50 | tones, chirps, bursts and clicks over noise; built in, see `synthetic_clips` |
    | esc50-domestic, -alarm, -liquid, -engine | 2,000, 300, 300 | soundscapes from ESC-50, see `esc50_soundscapes` |
    | esc50-all | 2,000, 300, 300 | the same from all 46 classes that are no background |
    | ava-0.75s, -0.5s, -0.375s, -0.3s, -0.25s, -0.2s | 70,030, 9,536, 9,536 | features of video, see `ava_clips` |

    For DESED and AudioSet-strong there is `load_strong` (for subsets of the latter with `Ontology.names_below`), for
    features of other videos `load_ava`, for a folder of sounds `load_sounds` with `mix_soundscapes`, and for a CSV file
    `read_series`.

    Args:
        name: the name of the data set.
        part: `train`, `validation` or `test`.
        count: how many clips.
        seed: seed of the random numbers; the parts differ for every seed.
        data_root: the folder that ESC-50 or AVA is in.

    Example:
        >>> load_clips("synthetic", "test", count=1)
        [Clip('synthetic-2-0': 10 s at 16000 Hz, ... events)]
    """
    if name not in DATASETS:
        raise EvidentiaError(f"there is no data set of events named {name!r}; choose one of: {', '.join(DATASETS)}")
    if part not in PARTS:
        raise EvidentiaError(f"there is no part named {part!r}; choose one of: {', '.join(PARTS)}")
    if name == "synthetic":
        number = _SYNTHETIC[part] if count is None else count
        return synthetic_clips(number, part_seed(seed, part, PARTS))
    family, _, which = name.partition("-")
    if family == "ava":
        return ava_clips(data_root, AVA_SEGMENTS[which], part, count, seed)
    return esc50_soundscapes(_esc50(data_root), which, part, count, seed)


def check_data(names: Iterable[str], data_root: str | os.PathLike[str] | None = None) -> None:
    """See that the files of data sets are where they are looked for, and load none of them.

    Args:
        names: of `DATASETS`.
        data_root: the folder that ESC-50 or AVA is in.

    Raises:
        EvidentiaError: if there are none, naming what is missing.

    Example:
        >>> check_data(["synthetic"])
        >>> check_data(["esc50-alarm"])
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: soundscapes are mixed from ESC-50; pass data_root...
    """
    for family in dict.fromkeys(name.partition("-")[0] for name in names):
        if family == "ava":
            check_ava(data_root)
        elif family == "esc50":
            load_esc50(_esc50(data_root), labels=())


def _esc50(data_root: str | os.PathLike[str] | None) -> str | os.PathLike[str]:
    if data_root is None:
        raise EvidentiaError(
            "soundscapes are mixed from ESC-50; pass data_root (--data-root), the folder that ESC-50 is in"
        )
    return data_root


def data_version(name: str, data_root: str | os.PathLike[str] | None) -> object:
    """What a data set depends on beside its name: for AVA the features, which are the user's own; else nothing.

    Example:
        >>> data_version("synthetic", None)
    """
    return features_version(data_root) if name.startswith("ava-") else None
