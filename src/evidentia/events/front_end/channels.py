"""The channels of a series by their names: in one order wherever they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evidentia._support.columns import column_order, table_columns
from evidentia.events.clips import Clip


def named_columns(clips: Sequence[Clip]) -> tuple[str, ...]:
    """The names of the channels of the first clip that has any; empty if none has."""
    return next((clip.columns for clip in clips if clip.columns), ())


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
            places = column_order(clip.columns, order, clip.name, "channels")
            result.append(replace(clip, samples=clip.samples[:, places], columns=order))
    return result


def in_order(samples: Any, columns: Sequence[str]) -> Any:
    """Samples with their channels in the order of some names, if they are a table that has names; else as they are.

    Example:
        >>> import pandas as pd
        >>> in_order(pd.DataFrame({"heat": [20.0, 21.0], "flow": [1.0, 2.0]}), ["flow", "heat"])
        array([[ 1., 20.],
               [ 2., 21.]])
    """
    found, wanted = table_columns(samples), tuple(columns)
    if not found or not wanted or found == wanted:
        return samples
    return np.asarray(samples)[:, column_order(found, wanted, "the table", "channels")]
