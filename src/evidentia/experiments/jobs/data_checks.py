"""Whether the data that jobs need are there: told once, before any job is begun, and not by every job that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from evidentia._support.registry import Registry

DATA_CHECKS: Registry[Callable[[Iterable[Mapping[str, Any]], str | None], None]] = Registry("check of a job's data")
"""By the names of jobs: raises an `EvidentiaError` if a folder of data sets lacks what configurations need."""
