"""What `evidentia events train` and `evaluate` are given: clips by name, from files, or mixed from a folder."""

from __future__ import annotations

from pathlib import Path

from evidentia._support.errors import EvidentiaError
from evidentia.cli.events_sources import TIME, told_as_options
from evidentia.events import Clip, load_clips, load_series, load_strong
from evidentia.events.data.by_name import DATASETS
from evidentia.events.data.sound_folder import folder_soundscapes, is_sound_folder

SOUND_RATE = 16_000
"""Sounds are resampled to it where no detector says otherwise."""


def read_clips(
    data: str,
    part: str,
    *,
    count: int | None = None,
    seed: int = 0,
    data_root: Path | None = None,
    rate: int = SOUND_RATE,
    series_rate: float | None = None,
    time_column: str | None = None,
    background: Path | None = None,
) -> list[Clip]:
    """Clips of a data set by name, of a tsv file of events, of a folder with one, with series, or with sounds to mix.

    Args:
        data: the name, or the path.
        part: of a data set by name, or of a folder of sounds; files are taken whole.
        count: how many clips at most.
        seed: of clips that are mixed.
        data_root: the folder that ESC-50, AVA, or the sounds of a tsv file, are in; else they lie beside the tsv file.
        rate: sounds are resampled to it.
        series_rate: of series in files without a column of times.
        time_column: the name of that column; else it is named time.
        background: a folder of sounds that go on behind those of a folder of sounds.
    """
    path = Path(data)
    if data in DATASETS:
        return load_clips(data, part, count=count, seed=seed, data_root=data_root)
    if not path.exists():
        raise EvidentiaError(
            f"there is no data set of events named {data!r}, and no such file; choose one of: {', '.join(DATASETS)}, "
            "or give a tsv file of events, a CSV file of a series, or a folder"
        )
    if is_series(data):
        with told_as_options():
            return load_series(path, rate=series_rate, time=time_column or TIME, limit=count)
    if is_sound_folder(path):
        return _mixed(path, part, count, seed, rate, background)
    if path.is_dir():
        tables = sorted(path.glob("*.tsv"))
        if len(tables) != 1:
            raise EvidentiaError(
                f"{path} must hold one tsv file of events, got {len(tables)}, or CSV files of series, or a sub-folder "
                "of wav, flac or ogg files for each class; give the file itself, or such a folder"
            )
        path = tables[0]
    clips = load_strong(path, data_root or path.parent, rate=rate, limit=count)
    if not clips:
        raise EvidentiaError(f"{path} lists no sound file; it needs a line for each event")
    return clips


def check_background(data: str, background: Path | None) -> None:
    """Require that clips are mixed if there is something to mix them over."""
    if background is not None and not is_sound_folder(data):
        raise EvidentiaError(
            f"--background is what clips are mixed over, and those of {data} are not mixed; give a folder with a "
            "sub-folder of sounds for each class, or leave --background out"
        )


def has_parts(data: str) -> bool:
    """Whether data have a part to calibrate on, of other sounds or videos than the part to train on."""
    return data in DATASETS or is_sound_folder(data)


def is_series(data: str) -> bool:
    """Whether data are features of AVA's videos, a CSV file, or a folder with some and no tsv file."""
    path = Path(data)
    if data in DATASETS:
        return data.startswith("ava-")
    if not path.is_dir():
        return path.suffix.lower() == ".csv"
    return any(path.glob("*.csv")) and not any(path.glob("*.tsv"))


def _mixed(folder: Path, part: str, count: int | None, seed: int, rate: int, background: Path | None) -> list[Clip]:
    """Clips from a folder of sounds; what there is to say of it is said once, with the part to train on."""
    with told_as_options(quiet=part == "validation"):
        return folder_soundscapes(folder, part, count, seed, rate=rate, background=background)
