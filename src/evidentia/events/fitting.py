"""Between clips and a trained network: what is held out, how long clips are cut, and what the network says of clips."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NamedTuple

import torch
from pydantic import Field
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia._support.settings import Settings
from evidentia.evaluation import EventTruth
from evidentia.events.calibration import Calibration, calibrate
from evidentia.events.clips import Clip, Event, event_truth
from evidentia.events.evidence import Activation, Loss, beta_parameters
from evidentia.events.fusion import FusionHead, OnsetWarning, WindowedHead
from evidentia.events.inputs import Inputs, SoundInputs
from evidentia.events.network import EventNetwork
from evidentia.events.training import Examples
from evidentia.learning.seeding import seeded

# Clips that a network sees at once, and the segments of each that it does.
_BATCH = 16
_STRETCH = 4096
# With fewer held-out events a class than this, all classes share their settings.
_ENOUGH = 20


class Tuning(Settings):
    """What the detector's head is calibrated to on held-out clips, see `calibrate`; at most one target.

    Attributes:
        false_alarms_per_minute: macro F1 as large as it gets with at most so many, every alarm that a stream would give
            for nothing counted; 2 if there is no other target.
        delay: macro F1 as large as it gets with a mean delay of at most so many seconds.
        macro_f1: the smallest delay at this macro F1 or more.
        windows: windows to choose from; that of the head if none.
        decays: decays to choose from; that of the head if none.
        per_class: choose for each class; by default if there are 20 held-out events a class.
        warnings_per_minute: how many false warnings that something is beginning there may be.
    """

    false_alarms_per_minute: float | None = Field(None, ge=0)
    delay: float | None = Field(None, ge=0)
    macro_f1: float | None = Field(None, ge=0, le=1)
    windows: tuple[Annotated[int, Field(ge=1, le=1024)], ...] = ()
    decays: tuple[Annotated[float, Field(ge=0, le=1)], ...] = ()
    per_class: bool | None = None
    warnings_per_minute: float = Field(3.0, ge=0)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        given = [name for name in ("false_alarms_per_minute", "delay", "macro_f1") if getattr(self, name) is not None]
        if len(given) > 1:
            raise EvidentiaError(f"one target can be met at a time, got {' and '.join(given)}")

    def target(self) -> dict[str, float]:
        """The target by its name."""
        given = {name: getattr(self, name) for name in ("false_alarms_per_minute", "delay", "macro_f1")}
        return {name: value for name, value in given.items() if value is not None} or {"false_alarms_per_minute": 2.0}


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
    if not isinstance(clips, Iterable) and not isinstance(clips, Clip):
        raise EvidentiaError(f"{name} must be a Clip or a list of them, got {type(clips).__name__}")
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
    pieces = []
    for clip in clips:
        if len(clip.samples) <= samples:
            pieces.append(clip)
            continue
        for first in range(0, len(clip.samples), samples):
            part = clip.samples[first : first + samples]
            begin, end = first / clip.rate, (first + len(part)) / clip.rate
            inside = [
                Event(event.label, max(event.onset, begin) - begin, min(event.offset, end) - begin)
                for event in clip.events
                if min(event.offset, end) - max(event.onset, begin) > 1e-6
            ]
            pieces.append(Clip(part, clip.rate, tuple(inside), f"{clip.name} from {begin:g} s"))
    return pieces


def pieces(clips: Sequence[Clip], inputs: Inputs, segments: int | None) -> list[Clip]:
    """The clips, cut in pieces of so many segments; about 10 s of sound, or 512 segments of a series, if None."""
    return cut(clips, inputs.step * (segments or (160 if isinstance(inputs, SoundInputs) else 512)))


def hold_out(clips: Sequence[Clip], seed: int) -> tuple[list[Clip], list[Clip]]:
    """Four fifths of the clips to train on, one to calibrate on, drawn at random."""
    if len(clips) < 2:
        raise EvidentiaError(
            "a fifth of the clips is held out to calibrate on, which needs at least 2 of them (or one that is long "
            f"enough to be cut in 2), got {len(clips)}; give more, or validation="
        )
    with seeded(seed, -3):
        order = torch.randperm(len(clips)).tolist()
    count = math.ceil(len(clips) / 5)
    kept, held = sorted(order[count:]), sorted(order[:count])
    return [clips[n] for n in kept], [clips[n] for n in held]


def prepared(clips: Sequence[Clip], labels: Sequence[str], inputs: Inputs, weigh_onsets: bool) -> Examples:
    """Frames, truth and weights of clips; those shorter than a segment are left out."""
    long_enough = [clip for clip in clips if len(clip.samples) >= inputs.step]
    if not long_enough:
        raise EvidentiaError(f"every clip is shorter than a segment of {inputs.seconds:g} s; give longer ones")
    truth = event_truth(long_enough, labels, inputs.seconds, ignore_others=True)
    return Examples.of((inputs.frames(clip) for clip in long_enough), truth, inputs.segment, weigh_onsets)


@torch.no_grad()
def segment_beta(
    network: EventNetwork, frames: Sequence[Tensor], lengths: Tensor, loss: Loss, activation: Activation
) -> SegmentBeta:
    """What a network in evaluation mode says of whole clips, from the frames `(T, F)` of each."""
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
    head: FusionHead, parameters: SegmentBeta, truth: EventTruth, tuning: Tuning, unsettled: int = 0
) -> tuple[Calibration, Calibration]:
    """Calibrate a head to its target, and the head that warns to a rate of false warnings.

    Segments at the beginning of a stream in which the front end is not settled yet do not warn.
    """
    enough = len(truth.clip) >= _ENOUGH * truth.num_classes
    pooled = head.outputs(truth.num_classes) < truth.num_classes
    options: dict[str, Any] = {
        **tuning.target(),
        "windows": tuning.windows if isinstance(head, WindowedHead) else (),
        "decays": tuning.decays if "decay" in type(head).model_fields else (),
        "per_class": enough if tuning.per_class is None else tuning.per_class,
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
