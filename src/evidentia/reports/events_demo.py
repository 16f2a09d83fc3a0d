"""The picture of the events part of the demo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.experiments.events_demo import EventsDemo
from evidentia.reports.events import clip_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def events_figures(demo: EventsDemo) -> dict[str, tuple[Figure, str]]:
    """The streamed clip: a figure with its caption by file name."""
    return {
        "stream": (
            clip_picture(demo.detector, demo.clip),
            "A clip that the detector of the first seed has not seen: its spectrogram, what is there and when it was "
            "called (with the delay), and belief, disbelief and vacuity of each class after fusion.",
        )
    }
