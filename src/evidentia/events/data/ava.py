"""Actions in video: AVA's csv file, and features of the videos that some network computed before."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia.events.clips import Clip, Event, as_number
from evidentia.events.data.tables import read_table, read_text

_STEP = 1.0
# A larger share of what is labelled than this does not lie outside of the features by chance.
_MOST_OUTSIDE = 0.1
# What is left of an event where a clip is cut at its end, by times that are rounded, is none.
_ROUNDING = 1e-6
_Table: TypeAlias = Mapping[str, Sequence[Event]]
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
    needed = "a video id, a time, a box of four numbers, an action id and a person id"
    for line, row in read_table(path, ",", needed=f"each action needs a line with {needed}"):
        if len(row) not in (7, 8) or not row[0]:
            raise FileFormatError(f"line {line} of {path} must have {needed}, got {len(row)} columns")
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
    r"""The name of each action id in AVA's `ava_action_list_v2.2.pbtxt`, or in its list of the 60 that are scored.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "actions.pbtxt"
        ...     _ = path.write_text('label {\n  name: "stand"\n  label_id: 12\n}')
        ...     read_ava_actions(path)
        {12: 'stand'}
    """
    names = {int(number): name for name, number in _ENTRY.findall(read_text(path))}
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
        skip_missing: leave out videos without features, as long as there are any.

    Raises:
        EvidentiaError: if no label lies within the seconds that features cover, as with a wrong `rate` or `start`;
            where a tenth of what is labelled lies outside, or all of a video's, there is a warning.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(f"{folder}/v1.npy", np.zeros((900, 8), dtype=np.float32))
        ...     load_ava({"v1": [Event("stand", 901.5, 905.5)]}, folder, rate=1.0)
        [Clip('v1': 900 s at 1 Hz, 8 channels, 1 events)]
    """
    _check_pace(rate, start, clip_seconds)
    table = labels if isinstance(labels, Mapping) else read_ava(labels, names)
    size = None if clip_seconds is None else round(clip_seconds * rate)
    clips: list[Clip] = []
    ends: dict[str, float] = {}
    for video, events in table.items():
        path = feature_file(Path(features), video)
        if path is None:
            if skip_missing:
                continue
            raise FileNotFoundError(f"there are no features of video {video!r} in {features}")
        series = read_features(path)
        ends[video] = start + len(series) / rate
        clips += video_clips(series, rate, events, video, start=start, size=size)
    if table and not ends:
        raise FileNotFoundError(f"there are no features of any of the {len(table)} videos in {features}")
    _check_covered(clips, {video: table[video] for video in ends if table[video]}, start, ends)
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
            if min(seconds, offset - begin) - max(0.0, onset - begin) > _ROUNDING
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


def _check_pace(rate: Any, start: Any, clip_seconds: Any) -> None:
    """Require numbers that features can be placed by."""
    if not 0 < as_number(rate) < math.inf:
        raise EvidentiaError(f"rate must be a positive number of feature vectors a second, got {rate!r}")
    if not math.isfinite(as_number(start)):
        raise EvidentiaError(f"start must be the second of the video that the first vector is at, got {start!r}")
    # What does not round to one vector is too short, and NaN is no length.
    if clip_seconds is not None and not 0.5 < as_number(clip_seconds) * rate < math.inf:
        raise EvidentiaError(
            f"clip_seconds must be a number of seconds of at least one vector, {1 / rate:g} s, or None, got "
            f"{clip_seconds!r}"
        )


def _check_covered(clips: Sequence[Clip], table: _Table, start: float, ends: Mapping[str, float]) -> None:
    """Refuse features that no label is of, and warn of those that many labels lie outside of.

    Args:
        clips: what the features became.
        table: the events of each video that has features and any events.
        start: the second at which features begin.
        ends: the second of each video at which they end.
    """
    if not table:
        return
    total, outside = 0.0, {}
    for video, events in table.items():
        # A label counts half a step to either side of its second, and only that must be covered.
        first, last = start - _STEP / 2, ends[video] + _STEP / 2
        length = sum(offset - onset for _, onset, offset in events)
        lost = length - sum(max(0.0, min(offset, last) - max(onset, first)) for _, onset, offset in events)
        total += length
        if lost > 0:
            outside[video] = (lost / length, lost)
    share = sum(lost for _, lost in outside.values()) / total
    no_events = not any(clip.events for clip in clips)
    if not no_events and share <= _MOST_OUTSIDE and all(part < 1 for part, _ in outside.values()):
        return
    # The video that tells most: of which the largest share is lost, and of those the most.
    video = max(outside or table, key=lambda name: outside.get(name, (0.0, 0.0)))
    first, last = min(event.onset for event in table[video]), max(event.offset for event in table[video])
    told = (
        f"features of video {video!r} cover seconds {start:g} to {ends[video]:g}, and its labels lie between {first:g} "
        f"and {last:g}; are rate= and start= those of the features?"
    )
    if no_events:
        raise EvidentiaError(f"no label lies within the features: {told}")
    warnings.warn(f"{share:.0%} of what is labelled lies outside of the features and is lost: {told}", stacklevel=3)
