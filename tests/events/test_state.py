"""States of streams: tensors by name, to and from a dictionary."""

from __future__ import annotations

import pytest
import torch

from evidentia import EvidentiaError
from evidentia.events import FrontEndState, NetworkState


def state(streams=3):
    rows = torch.arange(streams)
    caches = {"stem.conv": rows[:, None, None] + torch.zeros(streams, 2, 4), "gru": rows[:, None] + 0.5}
    return NetworkState(torch.zeros(streams, 0, 8), rows, caches)


def test_to_a_dictionary_and_back():
    tensors = state().to_dict()
    assert set(tensors) == {"pending", "segments", "caches.stem.conv", "caches.gru"}
    again = NetworkState.from_dict(tensors)
    assert again.batch == 3
    assert set(again.caches) == {"stem.conv", "gru"}
    assert all(torch.equal(part, tensors[name]) for name, part in again.to_dict().items())


def test_a_network_without_memories_has_a_state_too():
    bare = NetworkState(torch.zeros(2, 0, 8), torch.zeros(2, dtype=torch.int64))
    assert NetworkState.from_dict(bare.to_dict()).caches == {}


def test_map_changes_every_tensor():
    assert all(part.dtype == torch.float64 for part in state().map(torch.Tensor.double).to_dict().values())


def test_compact_lets_go_of_large_tensors():
    large = torch.randn(1, 1000)
    kept = FrontEndState(large[:, -10:], torch.zeros(1, dtype=torch.int64)).compact()
    assert torch.equal(kept.tail, large[:, -10:])
    assert kept.tail.untyped_storage().nbytes() == 40


def test_states_that_do_not_fit_are_refused():
    with pytest.raises(EvidentiaError, match=r"has the parts frames, tail, got caches, pending, segments"):
        FrontEndState.from_dict(state().to_dict())
