"""Sound files (wav, flac, ogg) by soundfile; truncated and hostile ones are refused."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.signal import resample_poly
from torch import Tensor

from evidentia._support.errors import EvidentiaError, FileFormatError, MissingExtraError

EXTENSIONS = (".wav", ".flac", ".ogg")
_FORMATS = {"WAV", "WAVEX", "RF64", "FLAC", "OGG"}
# Four hours of 16 kHz sound; more is to be pushed through a stream rather than held in memory.
_MOST_SAMPLES = 4 * 3600 * 16_000


def read_audio(path: str | os.PathLike[str], rate: int | None = None) -> tuple[Tensor, int]:
    """Read a sound file as float32 samples in [-1, 1], one channel, and its rate.

    Channels are averaged to one. With `rate`, the sound is resampled to it.

    Raises:
        FileNotFoundError: if there is no such file.
        FileFormatError: if it is no wav, flac or ogg file, is truncated or damaged, or too long to be held in memory.

    Example:
        >>> import tempfile, soundfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     soundfile.write(f"{folder}/beep.wav", [0.0, 0.5, 0.0, -0.5], 8000)
        ...     read_audio(f"{folder}/beep.wav")
        (tensor([ 0.0000,  0.5000,  0.0000, -0.5000]), 8000)
    """
    with opened(path) as file:
        if file.frames * file.channels > _MOST_SAMPLES:
            raise FileFormatError(
                f"{path} announces {file.frames} samples of {file.channels} channels; cut it in pieces of at most "
                f"{_MOST_SAMPLES} samples, or push it through a stream in chunks"
            )
        found, (mono,) = int(file.samplerate), mono_blocks(file, file.frames, path)
    if not np.isfinite(mono).all():
        raise FileFormatError(f"{path} holds samples that are NaN or infinite; write it again with finite ones")
    if rate is not None and rate != found:
        mono, found = resample(mono, found, rate), int(rate)
    return torch.from_numpy(np.ascontiguousarray(mono, dtype=np.float32)), found


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Any]:
    """A sound file, checked to be one and whole, as an open `soundfile.SoundFile`; errors of reading are sentences."""
    soundfile = _soundfile()
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with path.open("rb") as handle:
            _check_whole(handle, path)
            handle.seek(0)
            with soundfile.SoundFile(handle) as file:
                _check_header(file, path)
                yield file
    except (soundfile.SoundFileError, RuntimeError, TypeError) as error:
        raise FileFormatError(
            f"{path} cannot be read as wav, flac or ogg ({error}); it may be truncated, fetch or write it again"
        ) from error


def mono_blocks(file: Any, size: int, path: str | os.PathLike[str]) -> Iterator[npt.NDArray[np.float32]]:
    """The samples of an `opened` file, so many at a time, channels averaged to one; the path is for messages."""
    for first in range(0, file.frames, size):
        wanted = min(size, file.frames - first)
        samples = file.read(wanted, dtype="float32", always_2d=True)
        if len(samples) != wanted:
            raise FileFormatError(
                f"{path} announces {file.frames} samples and has {first + len(samples)}: it is truncated or damaged"
            )
        yield samples.mean(1) if samples.shape[1] > 1 else samples[:, 0]


def resample(samples: npt.NDArray[np.float32], rate: int, wanted: float) -> npt.NDArray[np.float32]:
    """Bring sound to another rate, by a polyphase filter."""
    if wanted != int(wanted) or not 1 <= wanted <= 1_000_000:
        raise EvidentiaError(f"a rate must be a whole number of samples a second up to a million, got {wanted}")
    common = math.gcd(int(rate), int(wanted))
    resampled = resample_poly(samples.astype(np.float64), int(wanted) // common, int(rate) // common)
    return np.asarray(resampled, dtype=np.float32)


def audio_file(folder: str | os.PathLike[str], name: str) -> Path:
    """The sound file of that name in a folder; an ending that is not there is looked for.

    Names come from annotation files, so one that points out of the folder is refused.
    """
    root = Path(folder)
    if not name or Path(name).is_absolute() or ".." in Path(name).parts or "\x00" in name:
        raise FileFormatError(f"the file name {name!r} points out of its folder; annotations may only name files in it")
    given = root / name
    for path in (given, *(given.with_name(given.name + ending) for ending in EXTENSIONS)):
        if path.is_file():
            return path
    for ending in EXTENSIONS:
        if given.suffix.lower() in EXTENSIONS and (path := given.with_suffix(ending)).is_file():
            return path
    raise FileNotFoundError(f"there is no sound file {name!r} in {root}")


def _check_header(file: Any, path: Path) -> None:
    if file.format not in _FORMATS:
        raise FileFormatError(f"{path} is of format {file.format}; wav, flac and ogg are read")
    if not file.frames:
        raise FileFormatError(f"{path} has no samples: it is empty or truncated")
    if not 1 <= file.channels <= 64 or not 1 <= file.samplerate <= 1_000_000:
        raise FileFormatError(f"{path} announces {file.channels} channels at {file.samplerate} Hz: it is damaged")


def _check_whole(handle: Any, path: Path) -> None:
    """Refuse wav and ogg files that end too early, which soundfile would read as if they were shorter."""
    size = handle.seek(0, os.SEEK_END)
    handle.seek(0)
    start = handle.read(12)
    if start[:4] == b"RIFF" and start[8:12] == b"WAVE":
        position = 12
        while position + 8 <= size:
            handle.seek(position)
            chunk = handle.read(8)
            length = int.from_bytes(chunk[4:], "little")
            # Programs that write to a pipe cannot know the length, and announce the largest there is.
            if chunk[:4] == b"data" and length < 0xFFFFFF00 and position + 8 + length > size:
                raise FileFormatError(
                    f"{path} announces {length} bytes of sound and has {size - position - 8}: it is truncated, "
                    "fetch or write it again"
                )
            position += 8 + length + length % 2
    elif start[:4] == b"OggS":
        handle.seek(max(0, size - 66_000))  # a page has at most 65,307 bytes
        tail = handle.read()
        page = tail[tail.rfind(b"OggS") :] if b"OggS" in tail else b""
        # A page: 27 bytes, the last of which counts its packets' pieces, the length of each piece, and the pieces.
        whole = len(page) >= 27 and len(page) >= 27 + page[26] + sum(page[27 : 27 + page[26]])
        if not whole or not page[5] & 0x04:
            raise FileFormatError(f"{path} lacks the last page of its sound: it is truncated, fetch or write it again")


def _soundfile() -> Any:
    try:
        import soundfile
    except (ImportError, OSError) as error:  # OSError: the package is there and its C library is not
        raise MissingExtraError("soundfile", "events", "Reading sound files") from error
    return soundfile
