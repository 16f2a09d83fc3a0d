"""Synthetic sound as a live stream: what does fusing the opinions of neighbouring segments change?

One network a seed, trained once. A head that lets each segment decide for itself, and one that fuses the opinions of
the latest segments, are calibrated on the same clips to the same rate of false alarms, and scored on others. The
target and the thresholds' form were chosen on other seeds (100 and on), the network also on these seeds with other
clips. Three seeds show what a detector does; they are too few to say that one way is better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evidentia.events import Clip, Detection, EventDetector, PhaseI, synthetic_clips

HEADER = ("decision", "macro F1", "delay, s", "misses too, s", "false a minute")

_SOUNDS: dict[str, Any] = {"labels": ("siren", "clicks", "tone", "chirp_up"), "length": (0.5, 2.0), "snr": (3.0, 15.0)}
_CLIPS: dict[str, Any] = {**_SOUNDS, "duration": 5.0, "events": (1, 3)}
_TRAINED, _HELD, _TESTED = 60, 60, 100
_TARGET: dict[str, Any] = {"false_alarms_per_minute": 1.0}
# Frames are pooled into segments of 64 ms, as for the larger networks; four blocks see a second of sound.
_NETWORK: dict[str, Any] = {"network": "temporal", "network_settings": {"segment": 4, "blocks": 4}}
_CHUNK = 800
_FIGURES = ("macro_f1", "delay", "censored_delay", "false_alarms_per_minute")


@dataclass(frozen=True)
class EventsDemo:
    """What all seeds gave.

    Attributes:
        rows: a row a decision, under `HEADER`: mean and standard deviation over the seeds.
        detector: the detector of the first seed, which fuses.
        clip: a clip it has not seen.
        detections: what its live stream gave, the clip pushed in chunks of 50 ms.
    """

    rows: list[tuple[str, ...]]
    detector: EventDetector
    clip: Clip
    detections: list[Detection]


def events_demo(seeds: Sequence[int], after_each: Callable[[], None] | None = None) -> EventsDemo:
    """Train a detector for every seed, score it with and without fusion, and let the first one listen."""
    found: dict[str, list[list[float]]] = {"each segment": [], "fused": []}
    detectors = []
    for seed in seeds:
        trained, held, tested = (
            synthetic_clips(count, seed=3 * seed + part, **_CLIPS)
            for part, count in enumerate((_TRAINED, _HELD, _TESTED))
        )
        fused = EventDetector(**_NETWORK, epochs=8, seed=seed, progress=False, **_TARGET).fit(trained, held)
        alone = EventDetector.assemble(
            fused.network_, fused.labels_, fused.inputs_, PhaseI(max_vacuity=1.0), **_TARGET
        ).calibrate(held)
        for figures, detector in zip(found.values(), (alone, fused), strict=True):
            scores = detector.evaluate(tested).summary()
            figures.append([np.nan if scores[name] is None else scores[name] for name in _FIGURES])
        detectors.append(fused)
        if after_each is not None:
            after_each()
    clip = synthetic_clips(1, seed=3 * max(seeds) + 3, **_SOUNDS, duration=12.0, events=(4, 5))[0]
    stream = detectors[0].stream(events=clip.events)
    detections = [each for chunk in clip.samples.split(_CHUNK) for each in stream.push(chunk)]
    return EventsDemo([_row(name, figures) for name, figures in found.items()], detectors[0], clip, detections)


def events_steps(seeds: Sequence[int]) -> int:
    """How many trainings `events_demo` does."""
    return len(seeds)


def _row(name: str, figures: list[list[float]]) -> tuple[str, ...]:
    mean, spread = np.mean(figures, axis=0), np.std(figures, axis=0, ddof=1)
    return (name, *(f"{m:.2f} ± {s:.2f}" for m, s in zip(mean, spread, strict=True)))
