"""Settings shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

settings.register_profile("dev", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("dev"), max_examples=100, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

# The suite runs in two processes on two cores: more threads would only fight over them.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    return request.param


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets, or skip the test."""
    folder = Path(os.environ.get("EVIDENTIA_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not (folder / "Planetoid").is_dir() or not (folder / "MNIST").is_dir():
        pytest.skip("the real data sets are not here; set EVIDENTIA_DATA to their folder")
    return folder
