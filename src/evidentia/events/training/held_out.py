"""What is held out of the training clips to calibrate on, and whether that will do."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Sequence

import torch

from evidentia._support.errors import EvidentiaError
from evidentia.evaluation import EventTruth
from evidentia.events.clips import Clip, clip_labels
from evidentia.learning.seeding import seeded


def hold_out(clips: Sequence[Clip], seed: int) -> tuple[list[Clip], list[Clip]]:
    """Four fifths of the clips to train on, one to calibrate on, drawn at random; whole clips, each in one of them.

    Clips of one length are counted; where the draw would leave a class without an event to train on, the next ones of
    the drawn order that do not are held out. Of clips that differ in length, a fifth of the length is held out as
    nearly as the drawn order has it, and where clips allow both parts have an event of each class.

    Example:
        >>> clips = [Clip([0.0] * length, 10, name=str(length)) for length in (900, 10, 20, 30, 200)]
        >>> [clip.name for clip in hold_out(clips, seed=0)[1]]
        ['10', '20', '200']
    """
    if len(clips) < 2:
        raise EvidentiaError(
            "a fifth of the clips is held out to calibrate on, which needs at least 2 of them (or one that is long "
            f"enough to be cut in 2), got {len(clips)}; give more, or validation="
        )
    with seeded(seed, -3):
        order = torch.randperm(len(clips)).tolist()
    alike = len({len(clip.samples) for clip in clips}) == 1
    held = _fifth_by_number(clips, order) if alike else _fifth_by_length(clips, order)
    return [clip for n, clip in enumerate(clips) if n not in held], [clips[n] for n in sorted(held)]


def warn_missing(truth: EventTruth, labels: Sequence[str]) -> list[str]:
    """The classes without an event to calibrate on, with a warning that names them."""
    counts = torch.bincount(truth.label, minlength=len(labels)).tolist()
    missing = [label for label, count in zip(labels, counts, strict=True) if not count]
    if len(missing) == len(labels):
        warnings.warn(
            "the clips to calibrate on have no event at all, so that thresholds rest on false alarms alone and no "
            "target counts as met; give clips with events, as validation= or to calibrate",
            stacklevel=3,
        )
    elif missing:
        warnings.warn(
            f"the clips to calibrate on have no event of {', '.join(missing)}, so that nothing is known of when to "
            "call it; give clips with events of every class, as validation= or to calibrate",
            stacklevel=3,
        )
    return missing


def _fifth_by_number(clips: Sequence[Clip], order: Sequence[int]) -> set[int]:
    """The first fifth of a drawn order, or the first that leave each class an event to train on."""
    count = math.ceil(len(clips) / 5)
    plain, held = set(order[:count]), set[int]()
    if clip_labels(clips[n] for n in order[count:]) == clip_labels(clips):
        return plain
    left = Counter(label for clip in clips for label in clip.labels)
    for n in order:
        if len(held) < count and all(left[label] > 1 for label in clips[n].labels):
            held.add(n)
            left.subtract(clips[n].labels)
    return held or plain


def _fifth_by_length(clips: Sequence[Clip], order: Sequence[int]) -> set[int]:
    """Clips of about a fifth of the length, the first that fit of a drawn order."""
    sizes = [len(clip.samples) for clip in clips]
    wanted, length, held = sum(sizes) / 5, 0, set[int]()
    left = Counter(label for clip in clips for label in clip.labels)

    def take(n: int, most: float) -> None:
        """Hold out a clip that is short enough, if it leaves an event of each of its classes to train on."""
        nonlocal length
        if n not in held and sizes[n] <= most and all(left[label] > 1 for label in clips[n].labels):
            held.add(n)
            left.subtract(clips[n].labels)
            length += sizes[n]

    # The rarest first, for which there is least to choose from; up to twice the length for the sake of a class.
    for label in sorted(left, key=lambda label: (left[label], label)):
        having = [n for n in order if label in clips[n].labels]
        for n in having:
            if held.isdisjoint(having):
                take(n, 2 * wanted - length)
    # Then what a fifth has room for, and in the end whatever brings the length nearer to it.
    for room in (1, 2):
        for n in order:
            take(n, room * (wanted - length))
    return held or {min(order, key=lambda n: sizes[n])}
