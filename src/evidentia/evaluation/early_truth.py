"""What is true of some clips: which events they hold, of which class, from when to when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from evidentia._support.checks import TensorLike
from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import real_number
from evidentia.evaluation._inputs import as_binary

# Seconds are multiples of a segment only up to rounding; this share of a segment is taken for none.
_SLACK = 1e-6


class Reach(NamedTuple):
    """What a call in each segment would find."""

    event: Tensor
    """The number of the event that a call there hits, or -1, shape `(N, T, K)`; of two that share it, the later."""
    onset_segment: Tensor
    """The segment in which each event begins, shape `(E,)`."""
    late: Tensor
    """The number of the event that a call there is too late for, or -1: false unless that event was hit before."""


@dataclass(frozen=True, eq=False)
class EventTruth:
    """The events of N clips, cut in segments; the truth that early detection is scored against.

    Events of one class that touch or overlap are one event. An event that begins after the last whole segment of its
    clip cannot be seen and is left out.

    A call is made for a segment and class, so it can hit one event. Where two events of a class share a segment, one
    ending and the next beginning within it, a call there hits the later one, and its delay counts from that onset.
    `activity` shows no pause between them, so a run of calls over both is one alarm, and an event all of whose segments
    are shared with later ones cannot be hit: counted by event it is missed, counted by clip its class still is found.
    Take shorter segments where such events are to be told apart, or join them where not.

    Attributes:
        clip: the number of the clip that each event is in, shape `(E,)`, int64, ascending.
        label: its class, 0 to K - 1; ascending within a clip.
        onset: when it begins, in seconds, float64; ascending within a clip and class.
        offset: when it ends.
        lengths: the number of segments of each clip, shape `(N,)`, int64.
        num_classes: K.
        segment: the length of a segment in seconds.

    Example:
        >>> from evidentia.evaluation import EventTruth
        >>> truth = EventTruth.from_events([[(0, 0.1, 0.2)], []], lengths=[4, 4], num_classes=2, segment=0.1)
        >>> truth.activity()[0, :, 0]
        tensor([False,  True, False, False])
    """

    clip: Tensor
    label: Tensor
    onset: Tensor
    offset: Tensor
    lengths: Tensor
    num_classes: int
    segment: float

    @classmethod
    def from_events(
        cls,
        events: Sequence[Sequence[tuple[int, float, float]]],
        lengths: Sequence[int] | Tensor,
        num_classes: int,
        segment: float = 0.064,
    ) -> EventTruth:
        """From a list of events (class, onset in seconds, offset in seconds) for each clip."""
        segment = checked_segment(segment)
        sizes = _whole(lengths)
        if sizes is None or sizes.ndim != 1 or len(sizes) != len(events) or bool((sizes < 0).any()):
            got = repr(lengths)[:80] if sizes is None or sizes.ndim == 0 else tuple(sizes.shape)
            raise EvidentiaError(
                f"lengths must give a whole number of segments, at least 0, for each of {len(events)} clips, got {got}"
            )
        rows: list[tuple[int, int, float, float]] = []
        for number, (found, size) in enumerate(zip(events, sizes.tolist(), strict=True)):
            for label, onset, offset in _merged(found, num_classes, number):
                if onset / segment + _SLACK < size:
                    rows.append((number, label, onset, offset))
        columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
        clip, label_column = (torch.tensor(column, dtype=torch.int64) for column in columns[:2])
        onsets, offsets = (torch.tensor(column, dtype=torch.float64) for column in columns[2:])
        return cls(clip, label_column, onsets, offsets, sizes, int(num_classes), float(segment))

    @classmethod
    def from_activity(
        cls, active: TensorLike, segment: float = 0.064, lengths: Sequence[int] | Tensor | None = None
    ) -> EventTruth:
        """From which classes are active in each segment, 0 or 1, shape `(N, T, K)`: a run of 1s is an event."""
        segment = checked_segment(segment)
        y = as_binary(active, "activity").cpu()
        if y.ndim != 3:
            raise EvidentiaError(f"activity must have shape (clips, segments, classes), got {tuple(y.shape)}")
        sizes = torch.full((len(y),), y.shape[1]) if lengths is None else _whole(lengths)
        if sizes is None or sizes.shape != (len(y),) or bool(((sizes < 0) | (sizes > y.shape[1])).any()):
            raise EvidentiaError(
                f"lengths must give for each of {len(y)} clips a whole number of segments up to {y.shape[1]}"
            )
        y = y & _within(sizes, y.shape[1])
        edge = torch.zeros_like(y[:, :1])
        change = torch.cat([edge, y, edge], 1).to(torch.int8).diff(dim=1).transpose(1, 2)
        clip, label, first = (change == 1).nonzero(as_tuple=True)
        end = (change == -1).nonzero(as_tuple=True)[2]
        return cls(clip, label, first.double() * segment, end.double() * segment, sizes, y.shape[2], float(segment))

    @property
    def minutes(self) -> float:
        """How long all clips are together, in minutes, by their whole segments."""
        return float(self.lengths.sum()) * self.segment / 60

    @property
    def duration(self) -> Tensor:
        """How long each event lasts within its clip, in seconds, shape `(E,)`."""
        return torch.minimum(self.offset, self.lengths[self.clip].double() * self.segment) - self.onset

    def any_class(self) -> EventTruth:
        """The truth of a detector that only says that there is something: one class, active where any is."""
        found: list[list[tuple[int, float, float]]] = [[] for _ in range(len(self.lengths))]
        for clip, onset, offset in zip(self.clip.tolist(), self.onset.tolist(), self.offset.tolist(), strict=True):
            found[clip].append((0, onset, offset))
        return EventTruth.from_events(found, self.lengths, 1, self.segment)

    def activity(self, segments: int | None = None) -> Tensor:
        """Which classes are active in each segment, bool, shape `(N, T, K)`: those with an event that overlaps it."""
        return self.reach(segments).event >= 0

    def valid(self, segments: int | None = None) -> Tensor:
        """Which segments there are, bool, shape `(N, T, 1)`; clips may differ in length."""
        return _within(self.lengths, self._segments(segments))

    def reach(self, segments: int | None = None, *, max_delay: float | None = None, early_collar: float = 0.0) -> Reach:
        """What a call in each segment would hit.

        Args:
            segments: T; the longest clip's number of segments if None.
            max_delay: a call that comes later than this after the onset, in seconds, hits nothing, but is no false one
                either in an event that was hit in time.
            early_collar: how long before the onset, in seconds, a call still counts; not while another event of the
                class is going on.
        """
        real_number(early_collar, "early_collar, in seconds,", 0)
        if max_delay is not None:
            real_number(max_delay, "max_delay, in seconds,", 0)
        size = self._segments(segments)
        begin, whole = self._spans()
        end = whole
        if max_delay is not None:
            # A call in segment t is made at the end of it, (t + 1) segments after the beginning.
            end = torch.minimum(end, torch.floor((self.onset + max_delay) / self.segment + _SLACK).long())
        start = torch.floor((self.onset - early_collar) / self.segment + _SLACK).long().clamp(min=0)
        before, lasting, in_time = (
            self._numbers(size, *span) for span in ((start, torch.minimum(begin, end)), (begin, whole), (begin, end))
        )
        # A collar must not reach into an event that is still going on, be it too late for that one.
        event = torch.where(lasting < 0, before, in_time)
        return Reach(event, begin, torch.where(event < 0, lasting, -1))

    def delay(self, clip: int, segment: int, label: int) -> float | None:
        """How long after its onset a call in a segment hits an event of a class, in seconds; None if it hits none.

        Example:
            >>> truth = EventTruth.from_events([[(0, 0.0, 0.25), (0, 0.27, 0.6)]], [10], num_classes=1, segment=0.1)
            >>> [truth.delay(0, segment, 0) for segment in (1, 2, 6)]  # two events share the segment 2
            [0.2, 0.03, None]
        """
        begin, end = self._spans()
        of_class = (self.clip == clip) & (self.label == label)
        hit = self.onset[of_class & (begin <= segment) & (segment < end)]
        return round(max(0.0, (segment + 1) * self.segment - float(hit[-1])), 9) if len(hit) else None

    def _spans(self) -> tuple[Tensor, Tensor]:
        """The first segment of each event, and the one after its last."""
        begin = torch.floor(self.onset / self.segment + _SLACK).long()
        end = torch.ceil(self.offset / self.segment - _SLACK).long().clamp(max=self.lengths[self.clip])
        return begin, torch.maximum(end, begin + 1)

    def _numbers(self, size: int, first: Tensor, last: Tensor) -> Tensor:
        """Which event is in each segment, shape `(N, T, K)`, or -1; each from its first segment to before its last."""
        event = torch.full((len(self.lengths) * self.num_classes, size), -1)
        row = self.clip * self.num_classes + self.label
        count = (last - first).clamp(min=0)
        number = torch.repeat_interleave(count)
        step = torch.arange(len(number)) - (count.cumsum(0) - count)[number]
        place = row[number] * size + first[number] + step
        event.view(-1).scatter_reduce_(0, place, number, "amax")
        return event.view(len(self.lengths), self.num_classes, size).transpose(1, 2)

    def _segments(self, segments: int | None) -> int:
        longest = int(self.lengths.max()) if len(self.lengths) else 0
        if segments is not None and segments < longest:
            raise EvidentiaError(f"the longest clip has {longest} segments, got {segments}")
        return longest if segments is None else segments


def _merged(found: Sequence[tuple[int, float, float]], num_classes: int, number: int) -> list[tuple[int, float, float]]:
    """Events in order of class and onset, those that touch joined to one."""
    merged: list[tuple[int, float, float]] = []
    for label, onset, offset in sorted(_event(given, number) for given in found):
        if not 0 <= label < num_classes:
            raise EvidentiaError(f"clip {number} has an event of class {label}; classes are 0 to {num_classes - 1}")
        if not 0 <= onset < offset < float("inf"):
            raise EvidentiaError(
                f"clip {number} has an event from {onset} s to {offset} s; an event must begin at 0 s or later and end "
                "after it begins"
            )
        if merged and merged[-1][0] == label and onset <= merged[-1][2]:
            merged[-1] = (label, merged[-1][1], max(offset, merged[-1][2]))
        else:
            merged.append((label, onset, offset))
    return merged


def _event(given: Any, number: int) -> tuple[int, float, float]:
    """A class by its number, an onset and an offset."""
    try:
        label, onset, offset = given
        found = int(label), float(onset), float(offset)
    except (TypeError, ValueError):
        found = None
    if found is None or isinstance(label, str) or found[0] != label:
        raise EvidentiaError(
            f"clip {number}: an event is the number of its class, an onset and an offset in seconds, got {given!r}; "
            "evidentia.events.event_truth takes clips whose classes have names"
        )
    return found


def _whole(given: Any) -> Tensor | None:
    """Whole numbers as int64; None for anything else."""
    try:
        numbers = torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError):
        return None
    whole = numbers.to(torch.int64)
    return whole if bool((whole == numbers).all()) else None


def _within(lengths: Tensor, segments: int) -> Tensor:
    return (torch.arange(segments) < lengths.unsqueeze(-1)).unsqueeze(-1)


def checked_segment(segment: float) -> float:
    """The length of segments, one that time can be divided by."""
    return real_number(segment, "segment, in seconds,", 0, open_low=True)
