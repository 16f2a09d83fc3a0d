"""Actions in video: AVA's csv file, and features of the videos that some network computed before."""

from __future__ import annotations

import math
import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia.events.clips import Clip, Event
from evidentia.events.tables import read_table

_STEP = 1.0
_ENTRY = re.compile(r'name:\s*"([^"]*)"[^{}]*?\b(?:label_)?id:\s*(\d+)', re.DOTALL)


def read_ava(path: str | os.PathLike[str], names: Mapping[int, str] | None = None) -> dict[str, list[Event]]:
    r"""The actions in each video of an AVA csv file (v2.2), whoever does them, in seconds of the video.

    Columns are video id, time of the key frame, four of the person's box, action id and person id, without a header.
    Labels come once a second: an action that is marked at second s counts from s - 0.5 to s + 0.5, and one that is
    marked in seconds in a row is one event. So onsets are known to a second only; delays below that mean little.

    Args:
        path: the csv file.
        names: the name of each action id; the number itself if None.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table = pathlib.Path(folder) / "ava.csv"
        ...     rows = [f"v1,{second:04d},0.1,0.1,0.9,0.9,12,0" for second in (902, 903, 906)]
        ...     _ = table.write_text("\n".join(rows))
        ...     read_ava(table, {12: "stand"})
        {'v1': [Event(label='stand', onset=901.5, offset=903.5), Event(label='stand', onset=905.5, offset=906.5)]}
    """
    marked: dict[tuple[str, str], set[float]] = defaultdict(set)
    videos: dict[str, list[Event]] = {}
    for line, row in read_table(path, ","):
        if len(row) not in (7, 8) or not row[0]:
            raise FileFormatError(
                f"line {line} of {path} must have a video id, a time, a box of four numbers, an action id and a person "
                f"id, got {len(row)} columns"
            )
        videos.setdefault(row[0], [])
        try:
            second, action = float(row[1]), int(row[6]) if row[6] else None
        except ValueError as error:
            raise FileFormatError(f"line {line} of {path} must give a time and an action id, got {row}") from error
        if not 0 <= second < math.inf:
            raise FileFormatError(f"line {line} of {path} has a time of {row[1]} s")
        if action is not None:
            marked[row[0], (names or {}).get(action, str(action))].add(second)
    for (video, label), seconds in marked.items():
        ordered = sorted(seconds)
        begins = [s for s, before in zip(ordered, [-math.inf, *ordered[:-1]], strict=True) if s - before > 1.5 * _STEP]
        ends = [s for s, after in zip(ordered, [*ordered[1:], math.inf], strict=True) if after - s > 1.5 * _STEP]
        videos[video] += [
            Event(label, max(0.0, begin - _STEP / 2), end + _STEP / 2) for begin, end in zip(begins, ends, strict=True)
        ]
    return {video: sorted(events, key=lambda event: (event.onset, event.label)) for video, events in videos.items()}


def read_ava_actions(path: str | os.PathLike[str]) -> dict[int, str]:
    """The name of each action id in AVA's `ava_action_list_v2.2.pbtxt`, or in its list of the 60 that are scored."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path} is not a text file in UTF-8 ({error})") from error
    names = {int(number): name for name, number in _ENTRY.findall(text)}
    if not names:
        raise FileFormatError(f"{path} has no entries with a name and an id, as AVA's list of actions has")
    return names


def load_ava(
    labels: str | os.PathLike[str] | Mapping[str, list[Event]],
    features: str | os.PathLike[str],
    *,
    rate: float,
    start: float = 900.0,
    names: Mapping[int, str] | None = None,
    clip_seconds: float | None = None,
    skip_missing: bool = False,
) -> list[Clip]:
    """Clips of AVA: features of each video as a series of `rate` vectors a second, and its actions.

    Args:
        labels: the csv file, or what `read_ava` made of it.
        features: a folder with a file for each video, named by its id: `.npy` with an array of shape `(T, D)`, or
            `.safetensors` with one such tensor.
        rate: feature vectors a second.
        start: the second of the video that the first vector is at; AVA marks seconds 902 to 1798.
        names: the name of each action id.
        clip_seconds: cut each video in clips of this length; one clip a video if None.
        skip_missing: leave out videos without features.
    """
    table = labels if isinstance(labels, Mapping) else read_ava(labels, names)
    if clip_seconds is not None and round(clip_seconds * rate) < 1:
        raise EvidentiaError(f"clip_seconds must be at least one vector of {1 / rate:g} s, got {clip_seconds}")
    clips: list[Clip] = []
    for video, events in table.items():
        path = feature_file(Path(features), video)
        if path is None:
            if skip_missing:
                continue
            raise FileNotFoundError(f"there are no features of video {video!r} in {features}")
        size = None if clip_seconds is None else round(clip_seconds * rate)
        clips += video_clips(read_features(path), rate, events, video, start=start, size=size)
    return clips


def video_clips(
    series: Tensor, rate: float, events: Sequence[Event], name: str, *, start: float, size: int | None
) -> list[Clip]:
    """Features of a video from second `start` on, in clips of `size` vectors, or in one, with the events in each."""
    length = size or len(series)
    clips = []
    for number, first in enumerate(range(0, len(series), length)):
        part = series[first : first + length]
        begin, seconds = start + first / rate, len(part) / rate
        inside = [
            Event(label, max(0.0, onset - begin), min(seconds, offset - begin))
            for label, onset, offset in events
            if onset - begin < seconds and offset - begin > 0
        ]
        clips.append(Clip(part, rate, tuple(inside), name if size is None else f"{name}#{number}"))
    return clips


def feature_file(folder: Path, video: str) -> Path | None:
    """The file with a video's features, if there is one."""
    if Path(video).name != video or video in (".", ".."):
        raise FileFormatError(f"the video id {video!r} points out of its folder; ids may only name files in it")
    paths = (folder / f"{video}{ending}" for ending in (".npy", ".safetensors"))
    return next((path for path in paths if path.is_file()), None)


def read_features(path: Path) -> Tensor:
    """The features of a video, shape `(T, D)`.

    Raises:
        FileFormatError: if the file is damaged, or holds anything else.
    """
    if path.suffix == ".npy":
        try:
            array: npt.NDArray[np.generic] = np.load(path, allow_pickle=False)
            series = torch.from_numpy(np.array(array, dtype=np.float32))
        except (ValueError, OSError, EOFError, TypeError) as error:
            raise FileFormatError(f"{path} is not an npy file of numbers ({error}); write it again") from error
    else:
        try:
            tensors = load_file(path)
        except SafetensorError as error:
            raise FileFormatError(f"{path} is not a readable safetensors file ({error}); write it again") from error
        if len(tensors) != 1:
            raise FileFormatError(f"{path} must hold one tensor, got {len(tensors)}")
        series = next(iter(tensors.values())).float()
    if series.ndim != 2 or not len(series):
        raise FileFormatError(f"{path} must hold features of shape (T, D), got {tuple(series.shape)}")
    return series
