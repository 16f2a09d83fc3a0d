"""A clip through a detector in one picture: what was heard, what was there, what was believed, what was called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from evidentia._support.errors import EvidentiaError
from evidentia.events import ANY, Clip, Detection, EventDetector, SoundInputs
from evidentia.events.clip_kinds import in_step
from evidentia.events.front_end.channels import arranged
from evidentia.events.front_end.log_mel import filter_at
from evidentia.reports.events_series import NOTE_SIZE, draw_series
from evidentia.reports.style import blue, colour, ink, pale, paper, plain_text, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# More classes than this are not readable beneath each other.
_MOST_CLASSES = 8
_WIDTH, _SOUND_HEIGHT, _ROW_HEIGHT, _CLASS_HEIGHT, _REST = 8.0, 1.9, 0.24, 0.95, 1.5
# So many dB below the loudest are drawn.
_RANGE = 70.0
_KILOHERTZ = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


@plain_text()
def clip_picture(detector: EventDetector, clip: Clip, labels: Sequence[str] | None = None, **trigger: Any) -> Figure:
    """Draw a clip: its spectrogram, the truth with the calls, and belief, disbelief and vacuity of classes.

    The opinions are those of the detector's head, after fusion, on which it decides. A right alarm is a filled
    triangle, with its delay, a false one a cross; warnings that something is beginning are marked above the sound.

    Args:
        detector: a trained detector.
        clip: what to draw; a series is drawn as lines in place of the spectrogram, in the detector's order of channels
            and by its clock, from which the rate of a series may differ by 1%. Channels of units so different that some
            would be flat have a lane each, over their own range.
        labels: the classes to show; those that are in the clip or are called by default, at most 8.
        trigger: `needed`, `of` and `refractory` of the alarms; those of the detector if not given.

    Example:
        >>> from evidentia.events import synthetic_clips
        >>> clips = synthetic_clips(6, seed=1, labels=["siren", "clicks"], duration=2.0)
        >>> detector = EventDetector(epochs=1, progress=False).fit(clips)
        >>> len(clip_picture(detector, clips[0], ["siren"]).axes)  # the sound, the truth, a class
        3
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    if not isinstance(clip, Clip):
        raise EvidentiaError(f"the picture is of a Clip, got {type(clip).__name__}")
    found = detector.beta([clip])
    # All that is drawn is by one clock, that of the detector's segments.
    (clip,) = in_step(arranged([clip], detector.columns_), detector.inputs_)
    if clip.duration < detector.inputs_.seconds:
        raise EvidentiaError(
            f"{clip.name} is shorter than a segment of {detector.inputs_.seconds:g} s; give a longer one"
        )
    with torch.no_grad():
        opinion = detector.head_.fuse(found.alpha, found.beta).opinion
    detections = detector.detect(clip, **trigger)
    shown = _classes(detector, clip, detections, opinion.belief[0], labels)
    heights = [_SOUND_HEIGHT, 0.26 + _ROW_HEIGHT * len(shown), *([_CLASS_HEIGHT] * len(shown))]
    figure = Figure(figsize=(_WIDTH, sum(heights) + _REST), layout="constrained")
    axes = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
    if isinstance(detector.inputs_, SoundInputs):
        _draw_sound(axes[0], detector.inputs_, clip)
    else:
        draw_series(axes[0], clip)
    _draw_warnings(axes[0], detections)
    _draw_truth(axes[1], clip, shown, detections)
    for ax, label in zip(axes[2:], shown, strict=True):
        k = detector.labels_.index(label)
        masses = [part[0, :, k].double().numpy() for part in (opinion.belief, opinion.vacuity, opinion.disbelief)]
        _draw_opinion(ax, masses, detector.inputs_.seconds, label)
        for event in clip.events:
            if event.label == label:
                for edge in (event.onset, event.offset):
                    ax.axvline(edge, color=ink(), linewidth=1.0, linestyle=(0, (2, 2)))
        _draw_alarms(ax, _of_class(detections, label), 1.0)
    axes[0].set_xlim(0, clip.duration)
    axes[-1].set_xlabel("time in seconds", fontsize=10)
    axes[0].set_title(f"{clip.name}: {detector.head_.name}", fontsize=11, loc="left", pad=14)
    _legend(figure)
    return figure


def _classes(
    detector: EventDetector, clip: Clip, detections: Sequence[Detection], belief: torch.Tensor, given: Any
) -> list[str]:
    known = detector.labels_
    if given is not None:
        if isinstance(given, str) or not given or not set(given) <= set(known):
            raise EvidentiaError(f"labels must be a list of some of {', '.join(known)}; got {given!r}")
        return list(dict.fromkeys(given))
    present = [label for label in known if label in clip.labels]
    calls = {call.label for call in detections}
    called = [label for label in known if label in calls]
    chosen = list(dict.fromkeys([*present, *called]))[:_MOST_CLASSES]
    # With nothing there and nothing called, what was believed most.
    return chosen or [known[int(belief.amax(0).argmax())]]


def _draw_sound(ax: Axes, inputs: SoundInputs, clip: Clip) -> None:
    with torch.no_grad():
        frames = inputs.frames(clip).T.numpy()
    top = float(frames.max())
    seconds = frames.shape[1] * inputs.hop / inputs.rate
    ax.imshow(
        frames,
        origin="lower",
        aspect="auto",
        extent=(0, seconds, -0.5, inputs.mels - 0.5),
        cmap="magma",
        vmin=max(top - _RANGE, float(np.quantile(frames, 0.02))),
        vmax=top,
        interpolation="nearest",
    )
    ticks = [hertz for hertz in _KILOHERTZ if 1000 * hertz <= inputs.rate / 2]
    places = [filter_at(1000 * each, inputs.rate, inputs.mels) for each in ticks]
    ax.set_yticks(places, [f"{each:g}" for each in ticks])
    ax.set_ylim(-0.5, inputs.mels - 0.5)
    ax.set_ylabel("kHz", fontsize=9)
    ax.tick_params(labelsize=NOTE_SIZE)


def _draw_warnings(ax: Axes, detections: Sequence[Detection]) -> None:
    times = [call.time for call in detections if call.level == "warning"]
    _mark(ax, times, 1.05, {**_warning_look(), "transform": ax.get_xaxis_transform()})


def _draw_truth(ax: Axes, clip: Clip, shown: Sequence[str], detections: Sequence[Detection]) -> None:
    for row, label in enumerate(shown):
        spans = [(event.onset, event.offset - event.onset) for event in clip.events if event.label == label]
        ax.broken_barh(spans, (row - 0.32, 0.64), facecolor=_truth_colour(), linewidth=0)
        calls = _of_class(detections, label)
        _draw_alarms(ax, calls, row)
        # Beside the event; of several alarms in it, the delay of the first counts.
        first: dict[float, float] = {}
        for call in calls:
            ends = [event.offset for event in clip.events if event.label == label and event.onset <= call.time]
            if call.delay is not None and ends:
                first.setdefault(max(ends), call.delay)
        for end, delay in first.items():
            look: dict[str, Any] = {"va": "center", "fontsize": NOTE_SIZE - 1, "color": ink()}
            ax.annotate(f"{delay:.2f} s", (end, row), (3, 0), textcoords="offset points", **look)
    ax.set_yticks(range(len(shown)), shown)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.tick_params(labelsize=NOTE_SIZE, left=False)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _of_class(detections: Sequence[Detection], label: str) -> list[Detection]:
    """The alarms of a class; those of no class in particular are of every one."""
    return [call for call in detections if call.level == "alarm" and call.label in (label, ANY)]


def _draw_opinion(ax: Axes, masses: Sequence[npt.NDArray[Any]], seconds: float, label: str) -> None:
    """Belief from below, disbelief from above, and between them what is not known."""
    edges = seconds * np.arange(len(masses[0]) + 1)
    low = np.zeros(len(edges))
    for mass, (_, shade) in zip(masses, _masses(), strict=True):
        high = low + np.append(mass, mass[-1])
        ax.fill_between(edges, low, high, step="post", color=shade, linewidth=0)
        low = high
    ax.set_ylim(0, 1)
    ax.set_yticks([0, 0.5, 1], ["0", "", "1"])
    ax.set_ylabel(label, fontsize=NOTE_SIZE, rotation=0, ha="right", va="center")
    ax.tick_params(labelsize=NOTE_SIZE)
    ax.spines[["top", "right"]].set_visible(False)


def _draw_alarms(ax: Axes, calls: Sequence[Detection], height: float) -> None:
    for right in (True, False):
        times = [call.time for call in calls if (call.delay is not None) == right]
        _mark(ax, times, height, _alarm_look(right))


def _mark(ax: Axes, times: Sequence[float], height: float, look: dict[str, Any]) -> None:
    """Marks that may stand out of the axes; the layout leaves them alone, as it cannot deal with none of them."""
    (marks,) = ax.plot(times, [height] * len(times), clip_on=False, **look)
    marks.set_in_layout(False)


def _masses() -> list[tuple[str, str]]:
    return [("belief", blue()), ("vacuity", pale()), ("disbelief", colour(1))]


def _truth_colour() -> str:
    return colour(2)


def _alarm_look(right: bool) -> dict[str, Any]:
    edge = {"markeredgecolor": paper(), "markeredgewidth": 0.7} if right else {"markeredgewidth": 1.6}
    return {"linestyle": "", "marker": "v" if right else "x", "markersize": 7, "color": ink(), "zorder": 5, **edge}


def _warning_look() -> dict[str, Any]:
    return {"linestyle": "", "marker": "|", "markersize": 7, "markeredgewidth": 1.6, "color": colour(3)}


def _legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [Patch(color=_truth_colour(), label="truth")]
    handles += [Patch(color=shade, label=name) for name, shade in _masses()]
    handles += [
        Line2D([], [], label=name, **look)
        for name, look in (
            ("alarm", _alarm_look(True)),
            ("false alarm", _alarm_look(False)),
            ("warning", _warning_look()),
        )
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=NOTE_SIZE, frameon=False)
