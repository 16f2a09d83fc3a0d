"""Between clips and a trained network: what is held out, how long clips are cut, and what the network says of clips."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from os import PathLike, fspath
from typing import Annotated, Any, NamedTuple

import torch
from pydantic import Field
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia._support.settings import Settings
from evidentia.evaluation import EventTruth
from evidentia.events.calibration import Calibration, calibrate, given_target
from evidentia.events.clips import Clip, Event, event_truth
from evidentia.events.evidence import Activation, Loss, beta_parameters
from evidentia.events.front_end.inputs import Inputs, SoundInputs
from evidentia.events.front_end.missing import completed, usual_numbers
from evidentia.events.fusion import FusionHead, OnsetWarning, WindowedHead
from evidentia.events.networks.network import EventNetwork
from evidentia.events.streams.triggers import Trigger
from evidentia.events.training.held_out import hold_out
from evidentia.events.training.loop import EventTraining, Examples
from evidentia.events.training.onsets import onset_weights

# Clips that a network sees at once, and the segments of each that it does.
_BATCH = 16
_STRETCH = 4096
# With fewer held-out events a class than this, all classes share their settings.
_ENOUGH = 20


class Tuning(Settings):
    """What the detector's head is calibrated to on held-out clips, see `calibrate`.

    Attributes:
        false_alarms_per_minute: macro F1 as large as it gets with at most so many, every alarm that a stream would give
            for nothing counted; 2 if there is no other target.
        delay: macro F1 as large as it gets with a mean delay of at most so many seconds; with both, within both.
        macro_f1: the smallest delay at this macro F1 or more; by itself.
        windows: windows to choose from; that of the head if none.
        decays: decays to choose from; that of the head if none.
        per_class: choose for each class; by default if there are 20 held-out events a class.
        warnings_per_minute: how many false warnings that something is beginning there may be.
        max_delay: alarms later than this after the onset, in seconds, count as false; see `early_scores`.
        early_collar: alarms up to this long before the onset, in seconds, count as hits.
    """

    false_alarms_per_minute: float | None = Field(None, ge=0)
    delay: float | None = Field(None, ge=0)
    macro_f1: float | None = Field(None, ge=0, le=1)
    windows: tuple[Annotated[int, Field(ge=1, le=1024)], ...] = ()
    decays: tuple[Annotated[float, Field(ge=0, le=1)], ...] = ()
    per_class: bool | None = None
    warnings_per_minute: float = Field(3.0, ge=0)
    max_delay: float | None = Field(None, ge=0)
    early_collar: float = Field(0.0, ge=0)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.target()

    def target(self) -> dict[str, float]:
        """What is asked for by its names."""
        given = given_target(self.false_alarms_per_minute, self.delay, self.macro_f1)
        return given or {"false_alarms_per_minute": 2.0}


class SegmentBeta(NamedTuple):
    """Beta parameters of each segment and class of N clips, 1 after a clip's end."""

    alpha: Tensor
    """Evidence for plus 1, shape `(N, T, K)`."""
    beta: Tensor
    """Evidence against plus 1."""
    lengths: Tensor
    """Segments of each clip, shape `(N,)`."""


def listed(clips: Any, name: str) -> list[Clip]:
    """A list of one clip or of several."""
    if isinstance(clips, str | PathLike):
        raise EvidentiaError(
            f"{name} must be a Clip or a list of them, got the path {fspath(clips)}; load_series(path) reads CSV "
            "files, load_strong(tsv, folder) sounds"
        )
    # A table is iterable, by the names of its columns.
    if not isinstance(clips, Clip) and (not isinstance(clips, Iterable) or hasattr(clips, "columns")):
        raise EvidentiaError(
            f"{name} must be a Clip or a list of them, got {type(clips).__name__}; Clip(samples, rate, events) "
            "makes one"
        )
    found = list(clips) if not isinstance(clips, Clip) else [clips]
    if not found or not all(isinstance(clip, Clip) for clip in found):
        kinds = ", ".join(sorted({type(clip).__name__ for clip in found})) or "none"
        raise EvidentiaError(f"{name} must be at least one Clip, got {kinds}")
    return found


def cut(clips: Sequence[Clip], samples: int) -> list[Clip]:
    """The clips, those longer than so many samples in pieces; an event on an edge is one in both.

    Example:
        >>> [piece.duration for piece in cut([Clip([0.0] * 25, 10, [("beep", 0.5, 1.5)])], 10)]
        [1.0, 1.0, 0.5]
    """
    return [piece for clip in clips for piece in _cut_at(clip, list(range(samples, len(clip.samples), samples)))]


def cut_in_quiet(clips: Sequence[Clip], samples: int, step: int = 1) -> list[Clip]:
    """The clips, cut as `cut` does, but a piece in whose end an event would be cut lasts until all events are over.

    So every event has the onset that it has in the whole clip, by which delays are counted.

    Args:
        clips: the clips.
        samples: how long pieces are that end in quiet.
        step: a piece is longer by a multiple of this.

    Example:
        >>> [piece.duration for piece in cut_in_quiet([Clip([0.0] * 45, 10, [("beep", 0.5, 1.5)])], 10)]
        [1.5, 1.0, 1.0, 1.0]
    """
    found = []
    for clip in clips:
        events = sorted((event.onset * clip.rate, event.offset * clip.rate) for event in clip.events)
        edges = [0]
        while (edge := edges[-1] + samples) < len(clip.samples):
            for onset, offset in events:
                if onset < edge < offset:
                    edge += step * math.ceil((offset - edge) / step - 1e-6)
            edges.append(edge)
        found += _cut_at(clip, edges[1:])
    return found


def _cut_at(clip: Clip, edges: Sequence[int]) -> list[Clip]:
    """The pieces between edges, in samples; the clip itself if there are none."""
    inner = [edge for edge in edges if edge < len(clip.samples)]
    if not inner:
        return [clip]
    found = []
    for first, last in pairwise([0, *inner, len(clip.samples)]):
        begin, end = first / clip.rate, last / clip.rate
        inside = [
            Event(event.label, max(event.onset, begin) - begin, min(event.offset, end) - begin)
            for event in clip.events
            if min(event.offset, end) - max(event.onset, begin) > 1e-6
        ]
        found.append(
            Clip(clip.samples[first:last], clip.rate, tuple(inside), f"{clip.name} from {begin:g} s", clip.columns)
        )
    return found


def pieces(clips: Sequence[Clip], inputs: Inputs, segments: int | None, *, quiet: bool = False) -> list[Clip]:
    """The clips, cut in pieces of so many segments; about 10 s of sound, or 512 segments of a series, if None.

    Args:
        clips: the clips.
        inputs: of the detector.
        segments: of a piece.
        quiet: cut where no event is going on, to calibrate on; pieces to train on are best of one length.
    """
    samples = inputs.step * (segments or (160 if isinstance(inputs, SoundInputs) else 512))
    return cut_in_quiet(clips, samples, inputs.step) if quiet else cut(clips, samples)


def parted(
    clips: Sequence[Clip], validation: Sequence[Clip] | None, inputs: Inputs, settings: EventTraining
) -> tuple[list[Clip], list[Clip]]:
    """What to train on and what to calibrate on, with missing numbers filled; a part is held out if there is none."""
    if validation is not None:
        usual = partial(usual_numbers, clips)
        return completed(clips, usual), completed(validation, usual)

    def drawn(whole: Sequence[Clip]) -> tuple[list[Clip], list[Clip]]:
        return hold_out(whole if len(whole) > 1 else pieces(whole, inputs, settings.piece, quiet=True), settings.seed)

    # Filled before anything is cut, as a piece does not know the last good numbers of the one before it; and drawn
    # twice, alike as it does not hang on numbers, because streams know the means of what is trained on.
    return drawn(completed(clips, lambda: usual_numbers(drawn(clips)[0])))


def check_lengths(clips: Sequence[Clip], inputs: Inputs) -> None:
    """Require a clip of at least one segment; among others, clips that are shorter count for nothing.

    Example:
        >>> check_lengths([Clip([0.0] * 800, 16_000, name="click.wav")], SoundInputs())
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: click.wav lasts 0.05 s and a segment 0.064 s, 1024 samples at ...
    """
    longest = max(clips, key=lambda clip: len(clip.samples))
    if len(longest.samples) < inputs.step:
        which = longest.name if len(clips) == 1 else f"the longest of {len(clips)} clips, {longest.name},"
        raise EvidentiaError(
            f"{which} lasts {longest.duration:g} s and a segment {inputs.seconds:g} s, {inputs.step} samples at "
            f"{inputs.sample_rate:g} a second; nothing can be called in less than a segment: give longer clips, or "
            "join short ones"
        )


def prepared(
    clips: Sequence[Clip], labels: Sequence[str], inputs: Inputs, segments: int | None, weigh_onsets: bool
) -> Examples:
    """Frames, truth and weights of clips in pieces of so many segments; those shorter than a segment are left out."""
    check_lengths(clips, inputs)
    parts: list[Clip] = []
    weights: list[Tensor] = []
    for clip in clips:
        long_enough = [part for part in pieces([clip], inputs, segments) if len(part.samples) >= inputs.step]
        parts += long_enough
        if weigh_onsets and long_enough:
            # Of the clip before it is cut: an event that goes on at an edge does not begin there.
            whole = onset_weights(_truth([clip], labels, inputs))[0]
            weights += whole.split(len(long_enough[0].samples) // inputs.step)
    truth, frames = _truth(parts, labels, inputs), (inputs.frames(part) for part in parts)
    return Examples.of(frames, truth, inputs.segment, weights if weigh_onsets else None)


def _truth(clips: Sequence[Clip], labels: Sequence[str], inputs: Inputs) -> EventTruth:
    return event_truth(clips, labels, inputs.seconds, ignore_others=True)


@torch.no_grad()
def segment_beta(
    network: EventNetwork, frames: Sequence[Tensor], lengths: Tensor, loss: Loss, activation: Activation
) -> SegmentBeta:
    """What a network in evaluation mode says of whole clips, from the frames `(T, F)` of each."""
    network.check_evaluating()
    longest = int(lengths.max()) if len(lengths) else 0
    alpha = torch.ones(len(frames), longest, network.num_classes)
    beta = alpha.clone()
    # Clips of one length go together, so that no clip is followed by frames that are not its own.
    order = sorted(range(len(frames)), key=lambda n: int(lengths[n]))
    while order:
        size = int(lengths[order[0]])
        alike = sum(int(lengths[n]) == size for n in order[:_BATCH])
        rows, order = order[:alike], order[alike:]
        if size:
            batch = torch.stack([frames[n][: size * network.segment] for n in rows])
            outputs = _outputs(network, batch)
            alpha[rows, :size], beta[rows, :size] = beta_parameters(outputs, loss, activation)
    return SegmentBeta(alpha, beta, lengths)


def tune(
    head: FusionHead,
    parameters: SegmentBeta,
    truth: EventTruth,
    tuning: Tuning,
    trigger: Trigger,
    unsettled: int = 0,
) -> tuple[Calibration, Calibration]:
    """Calibrate a head to its target, and the head that warns to a rate of false warnings, both for streams' trigger.

    Segments at the beginning of a stream in which the front end is not settled yet do not warn.
    """
    enough = int(torch.bincount(truth.label, minlength=truth.num_classes).min()) >= _ENOUGH
    pooled = head.outputs(truth.num_classes) < truth.num_classes
    options: dict[str, Any] = {
        **tuning.target(),
        "windows": tuning.windows if isinstance(head, WindowedHead) else (),
        "decays": tuning.decays if "decay" in type(head).model_fields else (),
        "per_class": enough if tuning.per_class is None else tuning.per_class,
        "max_delay": tuning.max_delay,
        "early_collar": tuning.early_collar,
        "trigger": trigger,
    }
    alpha, beta = parameters.alpha, parameters.beta
    alarm = calibrate(head, alpha, beta, truth.any_class() if pooled else truth, **options)
    warning = calibrate(
        OnsetWarning(pool="geometric", skip=unsettled),
        alpha,
        beta,
        truth.any_class(),
        false_alarms_per_minute=tuning.warnings_per_minute,
        windows=(1, 2, 4),
        per_class=False,
        trigger=trigger,
    )
    return alarm, warning


def _outputs(network: EventNetwork, frames: Tensor) -> Tensor:
    """The outputs of whole sequences; long ones in stretches, if the network can."""
    if frames.shape[1] <= _STRETCH * network.segment or not network.streaming:
        outputs: Tensor = network(frames)
        return outputs
    parts, state = [], network.start(len(frames))
    for stretch in frames.split(_STRETCH * network.segment, dim=1):
        part, state = network.step(stretch, state)
        parts.append(part)
    return torch.cat(parts, dim=1)
