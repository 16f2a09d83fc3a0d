"""The channels of a series by their names: in one order wherever they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evidentia._support.errors import EvidentiaError
from evidentia.events.clips import Clip


def named_columns(clips: Sequence[Clip]) -> tuple[str, ...]:
    """The names of the channels of the first clip that has any; empty if none has."""
    return next((clip.columns for clip in clips if clip.columns), ())


def column_order(found: Sequence[str], wanted: Sequence[str], name: str) -> list[int]:
    """Where among the columns found each wanted one is.

    Args:
        found: the names that there are.
        wanted: the names in the order of the detector's training.
        name: what has the columns, for messages.

    Raises:
        EvidentiaError: unless both are the same names, in whatever order.

    Example:
        >>> column_order(["heat", "flow"], ["flow", "heat"], "pump.csv")
        [1, 0]
        >>> column_order(["hat", "flow"], ["flow", "heat"], "pump.csv")
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: pump.csv has 2 channels, hat, flow, and needs flow, heat: heat is ...
    """
    missing = [column for column in wanted if column not in found]
    unknown = [column for column in found if column not in wanted]
    if missing or unknown:
        parts = [
            f"{', '.join(columns)} {'is' if len(columns) == 1 else 'are'} {what}"
            for columns, what in ((missing, "missing"), (unknown, "unknown"))
            if columns
        ]
        raise EvidentiaError(
            f"{name} has {len(found)} channels, {', '.join(found)}, and needs {', '.join(wanted)}: {'; '.join(parts)}. "
            "Rename its columns, leave out those that are unknown, or train with these"
        )
    return [list(found).index(column) for column in wanted]


def arranged(clips: Sequence[Clip], columns: Sequence[str]) -> list[Clip]:
    """The clips with their channels in the order of some names; a clip without names is taken to have that order.

    Args:
        clips: the clips.
        columns: the names; empty if none are known, which leaves all clips as they are.

    Example:
        >>> clip = Clip([[20.0, 1.0], [21.0, 2.0]], rate=10, columns=("heat", "flow"))
        >>> arranged([clip], ["flow", "heat"])[0].samples
        tensor([[ 1., 20.],
                [ 2., 21.]])
    """
    order, result = tuple(columns), []
    for clip in clips:
        if not order or clip.columns in ((), order):
            result.append(clip)
        else:
            places = column_order(clip.columns, order, clip.name)
            result.append(replace(clip, samples=clip.samples[:, places], columns=order))
    return result
