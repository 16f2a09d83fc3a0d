"""The jobs that studies know by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from evidentia._support.registry import Registry

JobFunction: TypeAlias = Callable[[Mapping[str, Any], int], Mapping[str, Any]]
"""Given a configuration and a seed, gives numbers by name, which may be nested.

If the user named a folder of data sets, the configuration has it as `data_root`.
"""

JOBS: Registry[JobFunction] = Registry("job")

CHECKS: Registry[Callable[[Mapping[str, Any]], None]] = Registry("check of a job")
"""By the same names: raises an `EvidentiaError` if a configuration cannot be run, without running it."""

DATA_CHECKS: Registry[Callable[[Iterable[Mapping[str, Any]], str | None], None]] = Registry("check of a job's data")
"""By the same names: raises an `EvidentiaError` if a folder of data sets lacks what configurations need.

A study checks once, before any job is begun, what else every job would fail at.
"""
