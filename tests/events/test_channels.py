"""Tables and arrays of other libraries: data frames are put in order as files are, what is masked is missing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import torch

from evidentia import EvidentiaError
from evidentia.events import Clip, EventDetector, push_many

NAMES = ["flow", "heat", "level", "speed"]


@pytest.fixture
def named(detector: Callable[..., EventDetector]) -> EventDetector:
    det = detector("temporal", series=True)
    det.columns_ = tuple(NAMES)
    return det


@pytest.fixture
def table() -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(0).normal(size=(60, 4)), columns=NAMES)


def test_a_table_names_the_channels_of_a_clip(table: pd.DataFrame) -> None:
    assert Clip(table, 10).columns == tuple(NAMES)
    assert Clip(table, 10, columns=list("abcd")).columns == tuple("abcd")
    assert Clip(pd.DataFrame(table.to_numpy()), 10).columns == ()


def test_a_stream_puts_tables_in_the_order_of_training(named: EventDetector, table: pd.DataFrame) -> None:
    streams = [named.stream() for _ in range(4)]
    turned = table[["speed", "flow", "level", "heat"]]
    given = [table.to_numpy(), table, turned, pd.DataFrame(table.to_numpy())]
    found = push_many(streams, given)
    assert any(found[0])
    states = [stream.state_dict() for stream in streams]
    assert all(torch.equal(state[name], states[0][name]) for state in states for name in state)
    clip = Clip(turned, 10)
    assert torch.equal(named.beta([clip]).alpha, named.beta([Clip(table, 10)]).alpha)


def test_a_table_of_others_is_refused(named: EventDetector, table: pd.DataFrame) -> None:
    with pytest.raises(EvidentiaError, match="heat is missing; hat is unknown"):
        named.stream().push(table.rename(columns={"heat": "hat"}))
    with pytest.raises(EvidentiaError, match="time is unknown"):
        named.stream().push(table.assign(time=0.1))


def test_what_is_masked_is_missing(named: EventDetector, table: pd.DataFrame) -> None:
    holes = table.to_numpy(np.float32, copy=True)
    masked = np.ma.masked_array(holes.copy(), mask=False)
    holes[10:20, 1] = np.nan
    masked[10:20, 1] = np.ma.masked
    found = [named.stream() for _ in range(2)]
    assert push_many(found, [masked, holes])[0]
    assert [stream.invalid for stream in found] == [10, 10]
    assert torch.equal(Clip(masked, 10).samples.isnan(), torch.from_numpy(holes).isnan())
    # Whole numbers have no NaN.
    with pytest.raises(EvidentiaError, match="give floats"):
        found[0].push(masked.round().astype(int))
    found[0].push(np.ma.masked_array(np.zeros((2, 4), dtype=int)))
    assert (found[0].time, found[0].invalid) == (6.2, 10)
