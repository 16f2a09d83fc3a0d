"""AVA as a data set by name: its annotations and features in a folder, cut in clips as the thesis has them."""

from __future__ import annotations

import os
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia.events.clips import Clip
from evidentia.events.data.ava import feature_file, read_ava, read_ava_actions, read_features, video_clips

AVA_SEGMENTS = {f"{3 / count:g}s": count for count in (4, 6, 8, 10, 12, 15)}
"""How many segments a clip of three seconds has, by their length."""

# AVA's test labels are not public, so that its validation videos serve for both, every other one for each.
_TABLES = {
    "train": ("ava_train_v2.2.csv", slice(None)),
    "validation": ("ava_val_v2.2.csv", slice(0, None, 2)),
    "test": ("ava_val_v2.2.csv", slice(1, None, 2)),
}
# The 60 of its 80 actions that AVA is scored by, and the thesis too.
_ACTIONS = "ava_action_list_v2.2_for_activitynet_2019.pbtxt"
_FILES = (*dict.fromkeys(table for table, _ in _TABLES.values()), _ACTIONS)

# What of a video has features, in seconds, and the length of a clip.
_START, _SECONDS, _CLIP = 900, 900, 3
_CLIPS = _SECONDS // _CLIP
# Without the first and the last one: labels are of seconds 902 to 1798.
_LABELLED = range(1, _CLIPS - 1)


def check_ava(data_root: str | os.PathLike[str] | None) -> None:
    """See that all files are there, and read the annotations only.

    Raises:
        EvidentiaError: naming what is missing, and where it belongs.

    Example:
        >>> check_ava("nowhere")
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: nowhere/AVA lacks ava_train_v2.2.csv, ava_val_v2.2.csv, ...
    """
    folder = _folder(data_root)
    missing = [name for name in _FILES if not (folder / name).is_file()]
    features = folder / "features"
    if not missing:
        videos = {video for name in _FILES[:-1] for video in read_ava(folder / name)}
        missing = [f"features/{video}.npy" for video in sorted(videos) if feature_file(features, video) is None]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise EvidentiaError(
            f"{folder} lacks {', '.join(missing[:3])}{more}; put AVA's annotations there (v2.2, from "
            "https://research.google.com/ava), and for each video in features/ID.npy or .safetensors an array of shape "
            f"(vectors, width), evenly spaced from second {_START} to {_START + _SECONDS} of it, at least 5 a second"
        )


def features_version(data_root: str | os.PathLike[str] | None) -> list[tuple[str, int, int]]:
    """What tells features from others: names, sizes and times of their files."""
    files = sorted(_folder(data_root).glob("features/*"))
    return [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]


def ava_clips(
    data_root: str | os.PathLike[str] | None,
    segments: int,
    part: str = "train",
    count: int | None = None,
    seed: int = 0,
) -> list[Clip]:
    """Clips of three seconds from AVA, each a series of so many feature vectors, with the actions in it.

    The thesis cuts 91 frames of video in 4 to 15 segments. Here a segment is the mean of the feature vectors that end
    in it. Labels come once a second and count half a second to either side (see `read_ava`): sub-second onsets are not
    in the data, so that delays below a second mean little, however short a segment is.

    `data_root` has the folder `AVA`, and in it:

    | file | what |
    |---|---|
    | `ava_train_v2.2.csv`, `ava_val_v2.2.csv` | AVA's annotations; every other video of the latter is for the test |
    | `ava_action_list_v2.2_for_activitynet_2019.pbtxt` | the 60 actions that count |
    | `features/ID.npy` or `features/ID.safetensors` | of each video, shape `(vectors, width)`, by any network |

    Vectors are evenly spaced from second 900 to 1800 of the video, at least one a segment: 5 a second for the shortest.
    Detectors are causal only if these are: a vector may tell of what came before it ends, and of nothing after.

    Args:
        data_root: the folder that `AVA` is in.
        segments: segments of a clip.
        part: `train`, `validation` or `test`.
        count: how many clips, drawn at random; all if there are not more, or if None.
        seed: of the draw.

    Example:
        >>> ava_clips(None, segments=4)
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: AVA's videos have no features to download; pass data_root ...
    """
    folder = _folder(data_root)
    table, share = _TABLES[part]
    names = read_ava_actions(folder / _ACTIONS)
    counted = set(names.values())
    actions = read_ava(folder / table, names)
    videos = sorted(actions)[share]
    places = [(video, clip) for video in videos for clip in _LABELLED]
    drawn = np.random.default_rng([seed, list(_TABLES).index(part)]).permutation(len(places))[:count]
    clips: list[Clip] = []
    for video, chosen in groupby((places[place] for place in sorted(drawn)), key=itemgetter(0)):
        path = feature_file(folder / "features", video)
        if path is None:
            raise FileNotFoundError(f"there are no features of video {video!r} in {folder / 'features'}")
        series = _segment_means(read_features(path), _CLIPS * segments, path)
        events = [event for event in actions[video] if event.label in counted]
        found = video_clips(series, segments / _CLIP, events, video, start=_START, size=segments)
        clips += [found[clip] for _, clip in chosen]
    return clips


def _folder(data_root: str | os.PathLike[str] | None) -> Path:
    if data_root is None:
        raise EvidentiaError(
            f"AVA's videos have no features to download; pass data_root (--data-root), a folder with AVA/{_FILES[0]}, "
            f"AVA/{_FILES[1]}, AVA/{_ACTIONS} and AVA/features/ID.npy for each video"
        )
    return Path(data_root) / "AVA"


def _segment_means(series: Tensor, count: int, path: Path) -> Tensor:
    """The mean of the vectors that end in each of so many segments of a video."""
    if len(series) < count:
        raise FileFormatError(
            f"{path} has {len(series):,} vectors for {_SECONDS} s, and segments of {_SECONDS / count:g} s need "
            f"{count:,} or more; compute them more densely, or take longer segments"
        )
    segment = (torch.arange(1, len(series) + 1) * count - 1) // len(series)
    total = torch.zeros(count, series.shape[1]).index_add_(0, segment, series)
    return total / torch.bincount(segment, minlength=count).unsqueeze(1)
