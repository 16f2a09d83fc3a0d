"""From calls in single segments to alarms: enough of the latest segments, and not again too soon."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import Field

from evidentia._support.errors import EvidentiaError
from evidentia._support.settings import Settings
from evidentia.events.state import Array

# The number of a segment long before any stream: no alarm yet.
LONG_AGO = -(2**40)
# Times are multiples of a segment only up to rounding; this share of a segment is taken for none.
_SLACK = 1e-6


class Trigger(Settings):
    """When calls become an alarm.

    A class is on while at least `needed` of its latest `of` segments are called. An alarm is given when it comes on,
    and not again before it has been off. Within the refractory time after an alarm of a class there is no other of it;
    a class that came on in that time and still is at its end is called then.

    Attributes:
        needed: x of x-out-of-y.
        of: y.
        refractory: seconds.

    Example:
        >>> trigger = Trigger(needed=2, of=3, refractory=0.0)
        >>> memory = trigger.start(classes=1)
        >>> fired = []
        >>> for number, call in enumerate([1, 0, 1, 1, 0, 0, 0, 1, 1]):
        ...     now, memory = trigger.fire(np.array([[call > 0]]), memory, np.array([number]), seconds=0.1)
        ...     fired.append(int(now[0, 0]))
        >>> fired
        [0, 0, 1, 0, 0, 0, 0, 0, 1]
    """

    needed: int = Field(1, ge=1, le=1024)
    of: int = Field(1, ge=1, le=1024)
    refractory: float = Field(1.0, ge=0)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        if self.needed > self.of:
            raise EvidentiaError(
                f"no more of the latest segments can be needed than there are: {self.needed} of {self.of}"
            )

    def with_changes(self, changes: Mapping[str, Any]) -> Trigger:
        """The trigger with some settings changed."""
        return Trigger(**{**self.model_dump(), **changes})

    def rest(self, seconds: float) -> int:
        """The refractory time in segments, whole ones; one without end is as long as before a stream's first alarm."""
        return math.ceil(min(self.refractory / seconds, -LONG_AGO) - _SLACK)

    def start(self, classes: int) -> dict[str, Array]:
        """What is remembered of one stream that has not begun."""
        return {
            "recent": np.zeros((1, self.of - 1, classes), dtype=bool),
            "on": np.zeros((1, classes), dtype=bool),
            "last": np.full((1, classes), LONG_AGO, dtype=np.int64),
        }

    def fire(
        self,
        calls: Array,
        memory: Mapping[str, Array],
        number: Array,
        seconds: float,
        alarmed: Array | None = None,
    ) -> tuple[Array, dict[str, Array]]:
        """Which classes give an alarm now.

        Args:
            calls: whether each class is called in this segment, bool, shape `(B, K)`.
            memory: what `start` or the segment before gave.
            number: of this segment, shape `(B,)`.
            seconds: the length of a segment.
            alarmed: of warnings, the segment of the latest alarm of whatever class, shape `(B, 1)`: they rest after it
                as after one of their own.

        Returns:
            Alarms, bool, shape `(B, K)`, and what to remember.
        """
        recent, on, last = memory["recent"], memory["on"], memory["last"]
        last = last if alarmed is None else np.maximum(last, alarmed)
        if self.of > 1:
            window = np.concatenate([recent, calls[:, None]], axis=1)
            recent, active = window[:, 1:], window.sum(1) >= self.needed
        else:
            active = calls
        # Most segments of most streams call nothing.
        if not np.count_nonzero(active):
            return active, {"recent": recent, "on": active, "last": last}
        rest = self.rest(seconds)
        fired = active & ~on & (number[:, None] - last >= rest)
        return fired, {"recent": recent, "on": active & (on | fired), "last": np.where(fired, number[:, None], last)}
