"""The column of times of a series: its rate, and where in an even series each row is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.ndimage import uniform_filter1d

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia.events.data.series_table import Numbers

LONGEST_GAP = 1000
"""How many samples a gap in a column of times may miss; a series with a longer one is to be cut there."""

# A step beyond this many usual ones is a gap. Written times are rounded and clocks waver, so two are too many to ask.
_GAP = 1.75
# Times may be off the even grid by less than this share of a step; the grid may drift, as clocks do, so it is one of
# so many rows.
_OFF = 0.5
_NEAR = 31
# If more steps than this share are a unit longer than usual, that is rounding; if more miss samples, there is no usual.
_MANY = 0.2
# A clock begins by so many rows, and each row counts so much against it; with all rows placed it has a better period,
# by which it goes through them again, so many times.
_FIRST, _TRUST, _ROUNDS = 9, 0.1, 3
# How far from the estimate a round rate may be, in standard errors of it; and at least, as a share of it.
_ERRORS = 4.0
_EXACT = 1e-9


def even_rows(times: Numbers, lines: list[int], path: Path, column: str) -> tuple[float, npt.NDArray[np.int64]]:
    """The rate of a series, and which of its evenly spaced samples each row is: one after the other but for gaps.

    Times may be rounded and waver, by less than half a step, and where samples are missing by a quarter of one. After a
    gap rows are put on the nearest sample.

    Args:
        times: in seconds, rising.
        lines: the line of each, for messages.
        path: the file, for messages.
        column: the name of the column.

    Example:
        >>> even_rows(np.array([5.0, 5.5, 6.0, 8.0, 8.5]), [2, 3, 4, 5, 6], Path("pump.csv"), "time")
        (2.0, array([0, 1, 2, 6, 7]))
        >>> even_rows(np.array([0.0, 0.033, 0.067, 0.1, 0.133]), [2, 3, 4, 5, 6], Path("pump.csv"), "time")[0]
        30.0
    """
    if np.isnan(times).any():
        raise FileFormatError(
            f"line {lines[int(np.isnan(times).argmax())]} of {path} has no time in column {column!r}; every sample "
            "needs one, or pass rate="
        )
    if len(times) < 2:
        raise EvidentiaError(f"{path} has a single sample; pass rate=")
    # From the first, because those of a calendar's clock are large numbers.
    times, first = times - times[0], float(times[0])
    steps = np.diff(times)
    if (steps <= 0).any():
        row = int((steps <= 0).argmax())
        raise FileFormatError(
            f"times must rise, but in column {column!r} of {path} line {lines[row + 1]} has "
            f"{first + times[row + 1]:.12g} s after {first + times[row]:.12g} s in line {lines[row]}; sort the rows, "
            "or pass rate="
        )
    usual = float(np.sort(steps)[(len(steps) - 1) // 2])
    gaps = steps > _GAP * usual + _rounding(times, steps, usual)
    period, error, off = _fitted(times, gaps)
    even = off.max() < _OFF * period
    # Where times waver, a step over a missing sample may be no longer than others.
    followed = None if even and not gaps.any() else _followed(times, usual)
    if followed is not None:
        period, error, _ = followed
    elif not even:
        row = int(off.argmax())
        raise FileFormatError(
            f"column {column!r} of {path} must rise evenly; most steps are {usual:g} s, but line {lines[row]} is "
            f"{off[row]:g} s off; resample the series to even times, or pass rate=, by which samples and events count "
            "from 0, whatever the times"
        )
    rate = round_rate(1 / period, _ERRORS * error / period)
    moved = _moved(steps, gaps, rate) if followed is None else followed[2]
    if (moved > LONGEST_GAP + 1).any():
        row = int((moved > LONGEST_GAP + 1).argmax())
        raise FileFormatError(
            f"{path} has a gap of {steps[row]:g} s from line {lines[row]} to {lines[row + 1]}, which misses more "
            f"than {LONGEST_GAP} samples; cut the series in two files there"
        )
    return rate, np.concatenate([[0], moved.cumsum()])


def _moved(steps: Numbers, gaps: npt.NDArray[np.bool_], rate: float) -> npt.NDArray[np.int64]:
    """How many samples each row is on from the one before: one but for gaps."""
    ahead, moved = 0.0, np.ones(len(steps), dtype=np.int64)
    for row in np.flatnonzero(gaps).tolist():
        # What one gap was rounded by is made up for at the next.
        exact = steps[row] * rate + ahead
        moved[row] = max(1, round(exact))
        ahead = exact - moved[row]
    return moved


def _followed(times: Numbers, usual: float) -> tuple[float, float, npt.NDArray[np.int64]] | None:
    """The period, its standard error and how far each row is on, by a clock that follows the times.

    A row is the sample that is nearest to its time. None if two would be the same sample, or if many are missing: then
    times are not even.
    """
    period, first = usual, times[:_FIRST]
    for _ in range(_ROUNDS):
        # When the sample before the first was due, by the first rows.
        due = float(np.median(first - period * np.arange(1, len(first) + 1)))
        places, place = np.zeros(len(times), dtype=np.int64), 0
        for row, time in enumerate(times.tolist()):
            step = round((time - due) / period)
            if row and step < 1:
                return None
            place += step
            due += step * period
            due += _TRUST * (time - due)
            places[row] = place
        x, t = places - places.mean(), times - times.mean()
        total = float(x @ x)
        period = float(x @ t) / total
    moved = np.diff(places)
    if (moved > 1).mean() > _MANY:
        return None
    return period, float((t - period * x).std()) / total**0.5, moved


def round_rate(rate: float, uncertainty: float) -> float:
    """The roundest rate within an uncertainty, which is a share of the rate; the rate itself if none is.

    Whole rates come first, then periods of whole milliseconds, then ever more digits of either.

    Example:
        >>> round_rate(6.99997, 1e-5), round_rate(1 / 0.3, 1e-9), round_rate(6.9937, 1e-6)
        (7.0, 3.3333333333333335, 6.9937)
    """
    allowed = max(uncertainty, _EXACT) * rate
    for digits in range(4):
        for candidate in (round(rate, digits), 1 / max(round(1 / rate, digits + 3), _EXACT)):
            if abs(candidate - rate) <= allowed:
                return float(candidate)
    return rate


def _rounding(times: Numbers, steps: Numbers, usual: float) -> float:
    """By how much rounding lengthens steps that would else look like gaps: 1 and 2 ms are one step at 700 Hz.

    That is the last decimal place that times were written to, if many steps are that much longer than usual; gaps are
    few.
    """
    for digits in range(10):
        unit = 10.0**-digits
        if unit <= 1.01 * usual and np.allclose(times, np.round(times, digits), rtol=0, atol=1e-3 * unit):
            longer = np.abs(steps - usual - unit) < 0.01 * unit
            return unit if longer.mean() > _MANY else 0.0
    return 0.0


def _fitted(times: Numbers, gaps: npt.NDArray[np.bool_]) -> tuple[float, float, Numbers]:
    r"""The period by least squares over all runs between gaps, its standard error, and how far each time is off.

    With $x$ the number of a row and $t$ its time, both less their means in the run, the period is
    $\sum x t / \sum x^2$ and its standard error $\sigma / \sqrt{\sum x^2}$, $\sigma$ that of what is left of $t$.
    """
    run = np.concatenate([[0], gaps.cumsum()])
    size = np.bincount(run)
    x = np.arange(len(times), dtype=np.float64)
    x -= (np.bincount(run, x) / size)[run]
    t = times - (np.bincount(run, times) / size)[run]
    total = float(x @ x)
    period = float(x @ t) / total
    left = t - period * x
    off = np.abs(left - uniform_filter1d(left, _NEAR, mode="nearest"))
    return period, float(left.std()) / total**0.5, off
