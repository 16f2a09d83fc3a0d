"""Where events go in a clip."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import real_number, whole_number
from evidentia.events.clips import Event

# How long two events of one class are kept apart, in seconds.
_APART = 0.25


def place_events(
    labels: Sequence[str],
    duration: float,
    events: tuple[int, int],
    length: tuple[float, float],
    draw: np.random.Generator,
) -> list[Event]:
    """Some events of random classes, lengths and times; those of one class do not touch, others may overlap.

    Where no room is found for one in twenty tries, there is one less.
    """
    placed: list[Event] = []
    for _ in range(int(draw.integers(events[0], events[1] + 1))):
        label = labels[int(draw.integers(len(labels)))]
        size = min(float(draw.uniform(*length)), duration)
        for _ in range(20):
            onset = float(draw.uniform(0, duration - size))
            others = [event for event in placed if event.label == label]
            if all(onset > other.offset + _APART or onset + size < other.onset - _APART for other in others):
                placed.append(Event(label, onset, onset + size))
                break
    return placed


def check_mixing(
    count: int,
    seed: int,
    duration: float,
    rate: int,
    events: tuple[int, int],
    length: tuple[float, float],
    snr: tuple[float, float],
) -> None:
    """Require settings that clips can be made of."""
    whole_number(count, "count", 0)
    whole_number(seed, "seed", 0)
    if isinstance(rate, bool) or not isinstance(rate, int) or not 1000 <= rate <= 1_000_000:
        raise EvidentiaError(f"rate must be a whole number of samples a second from 1,000 to a million, got {rate!r}")
    real_number(duration, "duration, in seconds,", 0.1, 3600)
    if not _is_pair(events) or not 0 <= events[0] <= events[1]:
        raise EvidentiaError(f"events must be the least and the largest number of events in a clip, got {events}")
    if not _is_pair(length) or not 0.01 <= length[0] <= length[1] < float("inf"):
        raise EvidentiaError(
            f"length must be the least and the largest length of an event, from 0.01 s on, got {length}"
        )
    if not _is_pair(snr) or not -100 <= snr[0] <= snr[1] <= 100:
        raise EvidentiaError(f"snr must be the least and the largest level over the background in dB, got {snr}")


def _is_pair(given: Any) -> bool:
    try:
        least, largest = given
    except (TypeError, ValueError):
        return False
    return isinstance(least, Real) and isinstance(largest, Real)
