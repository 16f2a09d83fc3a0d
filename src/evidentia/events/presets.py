"""The settings of a detector: presets, and the groups that they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evidentia._support.errors import EvidentiaError
from evidentia.events.streams.triggers import Trigger
from evidentia.events.training.fitting import Tuning
from evidentia.events.training.loop import EventTraining

PRESETS: dict[str, dict[str, Any]] = {
    "early": {"onset_weights": True, "augmentation": True, "windows": (1, 2, 3, 4, 6), "decays": (0.5, 0.8, 1.0)},
}


def chosen_settings(preset: str | None, settings: Mapping[str, Any]) -> tuple[EventTraining, Tuning, Trigger]:
    """How to train, what to calibrate to, and for which trigger.

    Args:
        preset: a name of `PRESETS`, or None.
        settings: of any of the three; they go before those of the preset.

    Example:
        >>> training, tuning, trigger = chosen_settings("early", {"decays": (1.0,), "needed": 2, "of": 3})
        >>> training.onset_weights, tuning.decays, trigger
        (True, (1.0,), Trigger(needed=2, of=3, refractory=1.0))
    """
    if preset is not None and preset not in PRESETS:
        raise EvidentiaError(f"there is no preset named {preset!r}; choose one of: {', '.join(PRESETS)}, or None")
    chosen = {**PRESETS.get(preset or "", {}), **settings}
    tuning, trigger = (
        {name: chosen.pop(name) for name in kind.model_fields if name in chosen} for kind in (Tuning, Trigger)
    )
    return EventTraining(**chosen), Tuning(**tuning), Trigger(**trigger)
