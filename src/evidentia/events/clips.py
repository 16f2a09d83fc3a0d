"""Clips: a piece of a stream, and the events in it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from evidentia._support.checks import TensorLike, as_float_tensor, check_finite
from evidentia._support.columns import table_columns
from evidentia._support.errors import EvidentiaError
from evidentia.evaluation import EventTruth
from evidentia.evaluation.early_truth import checked_segment
from evidentia.events.front_end.chunks import unmasked

ANY = "*"
"""The label of a detection that is of no class in particular: something is beginning."""

SEGMENT = 0.064
"""The length of a segment of sound in seconds: 4 frames of 256 samples at 16 kHz."""

OVERHANG = 0.1
"""Annotations round; an event may end this long after its clip, in seconds, and is cut there."""


class Event(NamedTuple):
    """Something that happens in a clip."""

    label: str
    """Its class."""
    onset: float
    """When it begins, in seconds from the beginning of the clip."""
    offset: float
    """When it ends."""


@dataclass(frozen=True, eq=False)
class Clip:
    """Samples of sound, or of any series, and the events in them.

    Attributes:
        samples: float32, shape `(n,)` for sound, `(n, channels)` for a multivariate series; arrays and lists of floats
            are converted. Numbers of shape `(n, channels)` may be missing, as NaN; see `EventDetector`.
        rate: samples a second.
        events: labelled intervals in order of their onsets; events of one class may overlap.
        name: what to call the clip in messages.
        columns: the names of the channels of shape `(n, channels)`, by which a detector puts them in order; those of
            samples that are a table with names, such as a `DataFrame`, if empty.

    Example:
        >>> from evidentia.events import Clip
        >>> clip = Clip([0.0] * 16000, rate=16000, events=[("beep", 0.25, 0.5)], name="demo")
        >>> clip.duration, clip.events[0].label
        (1.0, 'beep')
    """

    samples: Tensor
    rate: float
    events: tuple[Event, ...] = ()
    name: str = "clip"
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise EvidentiaError(f"the name of a clip must be a text that is not empty, got {self.name!r}")
        given: Any = self.rate
        rate = as_number(given)
        if not 0 < rate < math.inf:
            raise EvidentiaError(f"{self.name}: rate must be a positive number of samples a second, got {given!r}")
        samples = _samples(self.samples, self.name)
        if not isinstance(self.events, Iterable):
            raise EvidentiaError(
                f"{self.name}: events must be a list of labels with onset and offset, empty if there are none, got "
                f"{self.events!r}"
            )
        events = sorted(
            (as_event(event, self.name, samples.shape[0] / rate) for event in self.events),
            key=lambda event: (event.onset, event.offset, event.label),
        )
        columns = tuple(self.columns) or table_columns(self.samples)
        if columns and (samples.ndim != 2 or len(set(columns)) != len(columns) or len(columns) != samples.shape[1]):
            raise EvidentiaError(
                f"{self.name}: columns must name each of the channels once, got {', '.join(map(str, columns))} for "
                f"samples of shape {tuple(samples.shape)}"
            )
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "samples", samples)
        object.__setattr__(self, "rate", int(given) if isinstance(given, Integral) else rate)
        object.__setattr__(self, "events", tuple(events))

    @property
    def duration(self) -> float:
        """How long the clip is, in seconds."""
        return len(self.samples) / self.rate

    @property
    def channels(self) -> int:
        """The number of channels; 1 for sound."""
        return 1 if self.samples.ndim == 1 else self.samples.shape[1]

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes of its events, in alphabetical order."""
        return tuple(sorted({event.label for event in self.events}))

    def __repr__(self) -> str:
        shape = f"{self.duration:g} s at {self.rate:g} Hz" + (
            f", {self.channels} channels" if self.channels > 1 else ""
        )
        return f"Clip({self.name!r}: {shape}, {len(self.events)} events)"


def as_number(given: Any) -> float:
    """A number of Python or NumPy as a float; NaN for whatever is none, which is within no limits."""
    return float(given) if not isinstance(given, bool) and isinstance(given, Real) else math.nan


def clip_labels(clips: Iterable[Clip]) -> tuple[str, ...]:
    """All classes of some clips, in alphabetical order.

    Example:
        >>> clip_labels([Clip([0.0] * 10, 10, [("b", 0, 0.5)]), Clip([0.0] * 10, 10, [("a", 0, 0.5)])])
        ('a', 'b')
    """
    return tuple(sorted({event.label for clip in clips for event in clip.events}))


def event_truth(
    clips: Sequence[Clip], labels: Sequence[str] | None = None, segment: float = SEGMENT, *, ignore_others: bool = False
) -> EventTruth:
    """The events of clips as the truth that detectors are trained on and scored against.

    Args:
        clips: the clips.
        labels: the classes, in the order of the network's outputs; all that occur, in alphabetical order, if None.
        segment: the length of a segment in seconds; a clip has as many as fit whole.
        ignore_others: leave out events of other classes, which are an error otherwise.

    Example:
        >>> truth = event_truth([Clip([0.0] * 1000, 1000, [("beep", 0.2, 0.5)])], segment=0.1)
        >>> truth.activity()[0, :, 0].long()
        tensor([0, 0, 1, 1, 1, 0, 0, 0, 0, 0])
    """
    names = clip_labels(clips) if labels is None else tuple(labels)
    if len(set(names)) != len(names):
        raise EvidentiaError(f"every class may be named once, got {names}")
    number = {label: k for k, label in enumerate(names)}
    for clip in clips:
        others = [label for label in clip.labels if label not in number]
        if others and not ignore_others:
            raise EvidentiaError(
                f"{clip.name} has events of class {', '.join(others)}, which is not one of {', '.join(names)}; "
                "add the class, or pass ignore_others=True"
            )
    events = [
        [(number[label], onset, offset) for label, onset, offset in clip.events if label in number] for clip in clips
    ]
    segment = checked_segment(segment)
    lengths = [int(clip.duration / segment + 1e-6) for clip in clips]
    return EventTruth.from_events(events, lengths, len(names), segment)


def _samples(given: TensorLike, name: str) -> Tensor:
    given = unmasked(given)
    samples = as_float_tensor(given, f"{name}: samples")
    whole = isinstance(given, np.ndarray) and given.dtype.kind in "iub"
    if whole or (isinstance(given, Tensor) and not given.is_floating_point()):
        raise EvidentiaError(
            f"{name}: samples must be floats, in [-1, 1] for sound, got whole numbers; divide 16-bit samples by 32768"
        )
    if samples.ndim not in (1, 2) or samples.numel() == 0:
        raise EvidentiaError(
            f"{name}: samples must have shape (n,) or (n, channels) with at least one sample, "
            f"got {tuple(samples.shape)}"
        )
    # A series may miss numbers; sound may not, because where it is silent it has zeros.
    check_finite(samples if samples.ndim == 1 else samples[~samples.isnan()], f"{name}: samples")
    return samples.detach().to(torch.float32)


def check_names(labels: Iterable[str]) -> None:
    """Require that no class has the name of all of them."""
    if ANY in labels:
        raise EvidentiaError(
            f"no class may be named {ANY!r}, which is the label of detections of no class in particular; give the "
            "class another name"
        )


def as_event(given: Any, name: str, duration: float = math.inf, earliest: float = 0.0) -> Event:
    """An event from a label, an onset and an offset, cut at the end of its clip; `name` is for messages."""
    try:
        label, onset, offset = given
        onset, offset = float(onset), float(offset)
    except (TypeError, ValueError) as error:
        raise EvidentiaError(
            f"{name}: an event is a label, an onset and an offset in seconds, got {given!r}"
        ) from error
    if not isinstance(label, str) or not label:
        raise EvidentiaError(f"{name}: the label of an event must be a text that is not empty, got {label!r}")
    check_names([label])
    if not earliest <= onset < offset < math.inf or onset >= duration or offset > duration + OVERHANG:
        raise EvidentiaError(
            f"{name}: {label!r} lasts from {onset:g} s to {offset:g} s; an event must end after it begins"
            + (f", at {earliest:g} s or later" if earliest > -math.inf else "")
            + (f", and lie within the clip, which lasts {duration:g} s" if duration < math.inf else "")
        )
    return Event(label, onset, min(offset, duration))
