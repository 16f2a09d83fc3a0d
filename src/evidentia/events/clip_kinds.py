"""What clips ask of a detector: which classes there are in them, sound or a series, and the network for it."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evidentia._support.errors import EvidentiaError
from evidentia.events.clips import Clip, Event, clip_labels
from evidentia.events.front_end.inputs import Inputs, SeriesInputs, SoundInputs
from evidentia.events.networks.by_name import NETWORKS, EventNetwork, make_network
from evidentia.learning.seeding import seeded

# So many samples beyond full scale are loud moments; with more, the clip has another scale.
_LOUD = 0.01
# A core comes to so many decisions a second at best.
_DECISIONS = 2000


def check_choices(network: Any, labels: Any, sound: Any) -> None:
    """Require a network by name or of its class, a list of classes or None, and True, False or None for sound."""
    if isinstance(network, str):
        NETWORKS[network]  # an error if there is none of that name
    elif not isinstance(network, EventNetwork):
        raise EvidentiaError(f"network must be a name or an EventNetwork, got {type(network).__name__}")
    if isinstance(labels, str) or (labels is not None and len(set(labels)) != len(labels)):
        raise EvidentiaError(f"labels must be a list of classes, each once, got {labels!r}")
    if not (sound is None or isinstance(sound, bool)):
        raise EvidentiaError(f"sound must be True, False or None, got {sound!r}")


def chosen_labels(wanted: Sequence[str] | None, clips: Sequence[Clip], held: Sequence[Clip]) -> tuple[str, ...]:
    """The classes to learn.

    Args:
        wanted: those that were asked for, each of which must be in the clips; all that are in them if None.
        clips: what to train on.
        held: what to calibrate on; classes that only these have are left out, with a warning that names them.

    Example:
        >>> clip = Clip([0.0] * 10, 10, [("beep", 0.2, 0.5)])
        >>> chosen_labels(["Beep"], [clip], [])
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: no training clip has an event of 'Beep'; there are events of: beep...
    """
    found = clip_labels(clips)
    labels = found if wanted is None else tuple(wanted)
    if not labels or not found:
        raise EvidentiaError("there is no event in any clip, so there is nothing to learn; give clips with events")
    missing = [label for label in wanted or () if label not in found]
    if missing:
        raise EvidentiaError(
            f"no training clip has an event of {', '.join(map(repr, missing))}; there are events of: "
            f"{', '.join(found)}. Name classes as the clips do, or give clips with events of them"
        )
    unlearned = [label for label in clip_labels(held) if label not in found]
    if wanted is None and unlearned:
        warnings.warn(
            f"no training clip has an event of {', '.join(unlearned)}, which only validation clips have: it is not "
            "learned, and left out; train on clips with events of it as well",
            stacklevel=3,
        )
    return labels


def inputs_for(
    clips: Sequence[Clip], network: str | EventNetwork, settings: Mapping[str, Any], sound: bool | None
) -> SoundInputs | SeriesInputs:
    """The inputs of a network for clips, all of which must be like the first.

    Args:
        clips: all clips that there are.
        network: the network or its name.
        settings: of the network, if it is a name.
        sound: whether the clips are sound; see `Inputs.for_clip`.
    """
    streaming = getattr(NETWORKS[network] if isinstance(network, str) else network, "streaming", True)
    segment = settings.get("segment") if isinstance(network, str) else network.segment
    inputs = Inputs.for_clip(clips[0], segment, centred=not streaming, sound=sound)
    for clip in clips:
        inputs.check_clip(clip)
    return inputs


def warn_of_pace(inputs: Inputs) -> None:
    """Warn of more decisions a second than a live stream can keep up with."""
    if inputs.seconds * _DECISIONS < 1:
        stereo = " If this is sound, average its channels: samples.mean(1)" if inputs.features > 1 else ""
        warnings.warn(
            f"there are {1 / inputs.seconds:,.0f} segments a second, each with a decision, and a core follows some "
            f'hundreds in a live stream; let more samples share one: network_settings={{"segment": 64}}.{stereo}',
            stacklevel=3,
        )


def in_step(clips: Sequence[Clip], inputs: Inputs) -> list[Clip]:
    """The clips by the clock of a detector: of a series at about its rate, samples and the events at them count.

    Example:
        >>> in_step([Clip([[0.0]] * 505, 10.1, [("jam", 20.0, 30.0)])], SeriesInputs(rate=10.0, channels=1))[0].events
        (Event(label='jam', onset=20.2, offset=30.3),)
    """
    rate, result = inputs.sample_rate, []
    for clip in clips:
        inputs.check_clip(clip)
        # Rounded, so that no event ends after its clip for the last bit of a product.
        pace = clip.rate / rate
        events = [Event(label, round(onset * pace, 9), round(offset * pace, 9)) for label, onset, offset in clip.events]
        result.append(clip if clip.rate == rate else replace(clip, rate=rate, events=tuple(events)))
    return result


def network_for(
    given: str | EventNetwork, features: int, classes: int, settings: Mapping[str, Any], seed: int
) -> EventNetwork:
    """A new network by its name, with weights drawn by the seed, or a copy of the given one, which must fit."""
    if isinstance(given, str):
        with seeded(seed, -2):
            return make_network(given, features, classes, **settings)
    if (given.features, given.num_classes) != (features, classes):
        raise EvidentiaError(
            f"the clips need a network for {features} features and {classes} classes, got one for {given.features} and "
            f"{given.num_classes}"
        )
    return copy.deepcopy(given)


def check_levels(clips: Sequence[Clip], inputs: Inputs) -> None:
    """Require sound in [-1, 1] but for a few loud moments, which are limited to it; a series may have any numbers."""
    for clip in clips if isinstance(inputs, SoundInputs) else ():
        size = clip.samples.abs()
        share = float((size > 1).float().mean())
        if share > _LOUD:
            raise EvidentiaError(
                f"{clip.name} is taken for sound, and {share:.0%} of its samples are beyond [-1, 1], up to "
                f"{float(size.max()):g}; divide 16-bit samples by 32768, others by their full scale, or train with "
                "sound=False if they are a sensor's numbers"
            )
