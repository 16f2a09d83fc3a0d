"""The clock of a live series: whether the next sample comes in its turn, after a gap, or was there before."""

from __future__ import annotations

# A time counts so much against the even grid so far: jitter is smoothed, and a clock that runs a hundredth too fast or
# too slow is followed at a tenth of a step.
_TRUST = 0.1
# A sample may be so many steps early or late in its turn.
_SLACK = 0.75


class Clock:
    """The time at which a series stands, by the times that come with its samples.

    Args:
        rate: samples a second.
        end: the time at the end of the last sample, from which to go on; None before the first.

    Attributes:
        end: the time at the end of the last sample.

    Example:
        >>> clock = Clock(rate=10)
        >>> clock.step(5.0)
        >>> clock.ahead(5.1), clock.ahead(5.13), clock.ahead(5.4), clock.ahead(5.0)
        (0, 0, 3, -1)
    """

    def __init__(self, rate: float, end: float | None = None) -> None:
        self.rate = rate
        self.end = end

    def ahead(self, time: float, slack: float = _SLACK) -> int:
        """How many samples are missing before one at that time; less than 0 if its turn has been before."""
        if self.end is None:
            return 0
        steps = (time - self.end) * self.rate
        return 0 if abs(steps) < slack else round(steps) or (1 if steps > 0 else -1)

    def skip(self, samples: int) -> None:
        """Go on by samples that are missing."""
        if self.end is not None:
            self.end += samples / self.rate

    def step(self, time: float | None) -> None:
        """Go on by a sample at that time; None if it has come without one."""
        if self.end is None:
            self.end = time
        elif time is not None:
            self.end += _TRUST * (time - self.end)
        if self.end is not None:
            self.end += 1 / self.rate
