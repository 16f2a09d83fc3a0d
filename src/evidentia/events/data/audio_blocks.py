"""Sound files of any length, a block at a time: the same samples as `read_audio` gives, never all of them in memory."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from evidentia.events.data.audio_files import mono_blocks, opened, resample

Block: TypeAlias = npt.NDArray[np.float32]

# Frames that are read at a time: about a second, and a few hundred kilobytes.
_FRAMES = 32_768
# How far the filter of `resample_poly` reaches to each side, in samples of the slower of both rates.
_REACH = 10


def audio_blocks(path: str | os.PathLike[str], rate: float) -> Iterator[Block]:
    """Read a sound file in blocks of float32 samples in [-1, 1], one channel, resampled to a rate, a whole number.

    Put together, the blocks are what `read_audio` gives, but a file may be of any length, and samples that are NaN or
    infinite, in which a stream hears silence, stay as they are, with those beside them if the file is resampled.

    Raises:
        FileNotFoundError: if there is no such file.
        FileFormatError: if it is no wav, flac or ogg file, or as soon as it is found to be truncated or damaged.

    Example:
        >>> import tempfile, soundfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     soundfile.write(f"{folder}/hum.wav", np.zeros(100_000), 8000)
        ...     [len(block) for block in audio_blocks(f"{folder}/hum.wav", 8000)]
        [32768, 32768, 32768, 1696]
    """
    # A file that cannot be read is told at once, and not with the first block.
    with opened(path):
        return _blocks(path, rate)


def _blocks(path: str | os.PathLike[str], rate: float) -> Iterator[Block]:
    with opened(path) as file:
        blocks = mono_blocks(file, _FRAMES, path)
        yield from blocks if file.samplerate == rate else resampled(blocks, int(file.samplerate), rate)


def resampled(blocks: Iterable[Block], rate: int, wanted: float) -> Iterator[Block]:
    """Bring sound to another rate as it comes; put together, what `resample` gives of the whole.

    A block is resampled with as much of the sound before and after it as the filter reaches, and what that gives is
    cut off. Cuts are where samples of both rates fall together.

    Example:
        >>> sound = np.sin(np.arange(30_000, dtype=np.float32))
        >>> joined = np.concatenate(list(resampled(np.split(sound, 10), 44_100, 16_000)))
        >>> np.array_equal(joined, resample(sound, 44_100, 16_000))
        True
    """
    common = math.gcd(rate, int(wanted))
    up, down = int(wanted) // common, rate // common
    margin = down * math.ceil(_REACH * max(up, down) / up / down)
    held, before = np.zeros(0, dtype=np.float32), 0
    for block in blocks:
        held = np.concatenate([held, block])
        end = before + (len(held) - before - margin) // down * down
        if end > before:
            yield resample(held[: end + margin], rate, wanted)[before // down * up : end // down * up]
            first = max(0, end - margin)
            held, before = held[first:], end - first
    if len(held) > before:
        yield resample(held, rate, wanted)[before // down * up :]
