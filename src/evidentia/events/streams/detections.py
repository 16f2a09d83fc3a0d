"""What a detector says: that an event of some class is there, since when, how sure it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from evidentia._support.errors import EvidentiaError
from evidentia.evaluation import EventTruth
from evidentia.events.clips import ANY, Event, as_event, check_names
from evidentia.opinions import BinomialOpinion, comultiply

Level: TypeAlias = Literal["warning", "alarm"]

# Of a stream that has no end, in segments.
_ENDLESS = 2**40


@dataclass(frozen=True, eq=False)
class Detection:
    """One call.

    Attributes:
        label: the class, or `ANY` ("*") for something of whatever class.
        time: when the call is made, at the end of its segment, in seconds from the beginning of the stream.
        segment: the segment's number, from 0.
        level: "alarm" for an event of the class, or "warning": something is beginning.
        opinion: that the class is present; of a warning, that any class is.
        delay: how long after the event's onset the call comes, in seconds, if the truth is known and the call is right.
    """

    label: str
    time: float
    segment: int
    level: Level
    opinion: BinomialOpinion
    delay: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers and texts, ready for JSON."""
        opinion = self.opinion
        return {
            "label": self.label,
            "time": self.time,
            "segment": self.segment,
            "level": self.level,
            "belief": float(opinion.belief),
            "disbelief": float(opinion.disbelief),
            "vacuity": float(opinion.vacuity),
            "base_rate": float(opinion.base_rate),
            "probability": float(opinion.projected),
            "delay": self.delay,
        }

    def __repr__(self) -> str:
        late = "" if self.delay is None else f", {self.delay:.3f} s after its onset"
        return (
            f"Detection({self.level} {self.label!r} at {self.time:.3f} s, P={float(self.opinion.projected):.3f}{late})"
        )


class Fired(NamedTuple):
    """What one segment of B streams gave."""

    alarms: npt.NDArray[np.bool_]
    """Shape `(B, K)`, or `(B, 1)` for a head of no class in particular."""
    opinion: Callable[[], BinomialOpinion]
    """Gives those behind the alarms, of shape `(B, K)`."""
    warnings: npt.NDArray[np.bool_] | None
    """Shape `(B, 1)`; None without warnings."""
    segment_opinion: Callable[[], BinomialOpinion] | None
    """Behind the warnings, of the same shape."""
    numbers: npt.NDArray[np.int64]
    """Of the segment, shape `(B,)`."""

    def rows(self) -> list[int]:
        """The streams in which anything fired; most segments of most streams give nothing, and are told by a count."""
        levels = [self.alarms] if self.warnings is None else [self.alarms, self.warnings]
        return sorted({row for level in levels if np.count_nonzero(level) for row in level.nonzero()[0].tolist()})


class Announcer:
    """Puts what fired in one stream into detections.

    Args:
        labels: the classes of the detector.
        outputs: how many classes its head decides about: all of them, or 1, that there is something.
        seconds: the length of a segment.
        wanted: announce these classes only; all if None. Calls of no class in particular are announced all the same.
        events: what is known to happen in the stream, by which detections get a delay.
    """

    def __init__(
        self,
        labels: Sequence[str],
        outputs: int,
        seconds: float,
        wanted: Sequence[str] | None = None,
        events: Sequence[Event] | None = None,
    ) -> None:
        check_names(labels)
        if wanted is not None and (isinstance(wanted, str) or not set(wanted) <= set(labels)):
            raise EvidentiaError(f"labels must be a list of some of {', '.join(labels)}; got {wanted!r}")
        # A head with one output for several classes speaks of all of them together.
        self.pooled = outputs < len(labels)
        self.names = (ANY,) if self.pooled else tuple(labels)
        self.seconds = seconds
        self.wanted = None if wanted is None else frozenset([*wanted, ANY])
        self.events = None if events is None else [as_event(event, "the events of the stream") for event in events]
        self._truths: dict[str, EventTruth] = {}
        if self.events is not None:
            # Delays are those of the scores, which know no events of other classes.
            known = [(labels.index(label), begin, end) for label, begin, end in self.events if label in labels]
            truth = EventTruth.from_events([known], [_ENDLESS], len(labels), seconds)
            self._truths = {ANY: truth.any_class(), **dict.fromkeys(labels, truth)}

    def detections(self, fired: Fired, row: int) -> list[Detection]:
        """Of one stream in one segment: its alarms, or if there is none its warning."""
        found = []
        for k in fired.alarms[row].nonzero()[0].tolist():
            if self.wanted is None or self.names[k] in self.wanted:
                opinion = _opinion(fired.opinion(), row)
                opinion = comultiply(opinion, dim=0) if self.pooled else opinion[k]
                found.append(self._detection(self.names[k], int(fired.numbers[row]), "alarm", opinion))
        if not found and fired.warnings is not None and fired.segment_opinion is not None and fired.warnings[row, 0]:
            opinion = comultiply(_opinion(fired.segment_opinion(), row), dim=0)
            found.append(self._detection(ANY, int(fired.numbers[row]), "warning", opinion))
        return found

    def _detection(self, label: str, number: int, level: Level, opinion: BinomialOpinion) -> Detection:
        place = 0 if label == ANY else self.names.index(label)
        delay = self._truths[label].delay(0, number, place) if self._truths else None
        time = round((number + 1) * self.seconds, 9)
        return Detection(label, time, number, level, opinion, delay)


def _opinion(opinion: BinomialOpinion, row: int) -> BinomialOpinion:
    """The opinions of one stream; copies, lest a detection that is kept hold the whole batch in memory."""
    fields = (opinion.belief, opinion.disbelief, opinion.vacuity, opinion.base_rate)
    belief, disbelief, vacuity, base_rate = (field[row].clone() for field in fields)
    return BinomialOpinion(belief, disbelief, vacuity, base_rate, validate=False)
