"""The channels of a series as lines: on one axis where they are alike, else each in a lane of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evidentia.events import Clip
from evidentia.reports.style import colour, label_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOTE_SIZE = 8.0
# More names of channels are not readable beside their lines.
_MOST_NAMES = 8
# A channel whose deviation is a smaller part than this of what all channels span would be a flat line among them.
_FLAT = 1 / 20
# What a lane is filled to, so that lines do not touch.
_FILLED = 0.84


def draw_series(ax: Axes, clip: Clip) -> None:
    """Draw the channels of a clip over its time; a missing number is a gap.

    Args:
        ax: where to.
        clip: a series of shape `(n, channels)` or `(n,)`.
    """
    samples = clip.samples.reshape(len(clip.samples), -1).double().numpy()
    times = np.arange(len(samples)) / clip.rate
    known = np.ma.masked_invalid(samples)
    if _alike(known):
        _lines(ax, times, samples, clip.columns)
        _name_lines(ax, clip.columns)
        label_axes(ax, "", "channels")
    else:
        low, high = (np.ma.filled(edge, 0.0) for edge in (known.min(axis=0), known.max(axis=0)))
        span = np.where(high > low, high - low, 1.0)
        lanes = -np.arange(samples.shape[1])
        _lines(ax, times, (samples - (low + high) / 2) / span * _FILLED + lanes, clip.columns)
        label_axes(ax, "", "")
        _name_lanes(ax, clip.columns, low, high)
        ax.set_ylim(lanes[-1] - 0.5, 0.5)
    ax.tick_params(labelsize=NOTE_SIZE)


def _alike(known: np.ma.MaskedArray[Any, Any]) -> bool:
    """Whether every channel that moves at all is seen to do so on an axis with the others."""
    centre, spread = (np.ma.filled(part, np.nan) for part in (known.mean(axis=0), known.std(axis=0)))
    moving = spread[spread > 0]
    if not len(moving):
        return True
    span = np.nanmax(centre + spread) - np.nanmin(centre - spread)
    return bool(moving.min() >= _FLAT * span)


def _lines(ax: Axes, times: npt.NDArray[Any], samples: npt.NDArray[Any], columns: tuple[str, ...]) -> None:
    names = columns or [None] * samples.shape[1]
    for channel, name in enumerate(names):
        ax.plot(times, samples[:, channel], color=colour(channel), linewidth=0.9, label=name)


def _name_lines(ax: Axes, columns: tuple[str, ...]) -> None:
    names = columns[:_MOST_NAMES]
    if not names:
        return
    left_out = len(columns) - _MOST_NAMES
    title = f"{left_out} more are not named" if left_out > 0 else None
    look: dict[str, Any] = {"fontsize": NOTE_SIZE - 1, "title_fontsize": NOTE_SIZE - 1, "frameon": False}
    look |= {"loc": "upper left", "bbox_to_anchor": (1, 1), "borderaxespad": 0.2}
    # Lines and names are given, as names that begin with an underscore would be left out.
    ax.legend(ax.lines[: len(names)], names, title=title, **look)


def _name_lanes(ax: Axes, columns: tuple[str, ...], low: npt.NDArray[Any], high: npt.NDArray[Any]) -> None:
    """Name and range of each lane beside it."""
    ax.grid(False, axis="y")
    if len(low) > _MOST_NAMES:
        ax.set_yticks([])
        ax.set_ylabel(f"{len(low)} channels, each over its own range", fontsize=NOTE_SIZE)
        return
    ranges = [_range(float(least), float(most)) for least, most in zip(low, high, strict=True)]
    names = [f"{name}\n{each}" for name, each in zip(columns, ranges, strict=True)] if columns else ranges
    ax.set_yticks(-np.arange(len(low)), names)
    ax.tick_params(axis="y", length=0)


def _range(low: float, high: float) -> str:
    return f"{low:.4g} to {high:.4g}" if high > low else f"{low:.4g}"
