"""The pages of this site are run as doctests: each in an empty folder, and without leaving anything registered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from evidentia.events import HEADS
from evidentia.learning import LOSSES, METHODS
from evidentia.opinions import MEASURES, OPERATORS
from evidentia.semisup import OBJECTIVES, ROBUST, UNCERTAINTIES

REGISTRIES = (HEADS, LOSSES, MEASURES, METHODS, OBJECTIVES, OPERATORS, ROBUST, UNCERTAINTIES)

# The suite runs in parallel processes: more threads would only fight over the cores.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _leave_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    before = [dict(registry) for registry in REGISTRIES]
    yield
    for registry, entries in zip(REGISTRIES, before, strict=True):
        for name in registry.keys() - entries.keys():
            del registry._entries[name]
