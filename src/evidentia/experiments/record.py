"""What a run of several seeds leaves behind: every metric a seed, their mean and spread, and what they cost."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import Self

from evidentia._support.files import write_text
from evidentia._support.memory import peak_memory_bytes
from evidentia._version import __version__


class RunCost(NamedTuple):
    """What work took.

    Attributes:
        wall_seconds: wall time.
        cpu_seconds: time of the processor.
        peak_memory_bytes: the most memory that the process has had.
    """

    wall_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int

    @classmethod
    def now(cls) -> Self:
        """The clocks of this process; only differences mean anything."""
        return cls(time.monotonic(), time.process_time(), peak_memory_bytes())

    def since(self, start: RunCost) -> RunCost:
        """What it took from one reading of the clocks to this one."""
        return self._replace(
            wall_seconds=self.wall_seconds - start.wall_seconds, cpu_seconds=self.cpu_seconds - start.cpu_seconds
        )

    def plus(self, other: RunCost) -> RunCost:
        """What both took, one after the other."""
        return RunCost(
            self.wall_seconds + other.wall_seconds,
            self.cpu_seconds + other.cpu_seconds,
            max(self.peak_memory_bytes, other.peak_memory_bytes),
        )


class RunRecord:
    """Collects the metrics of each seed; starts its clocks when made.

    Args:
        configuration: everything that the run depends on, as plain JSON.

    Example:
        >>> record = RunRecord({"method": "gcn"})
        >>> record.add(0, {"accuracy": 0.8, "auroc": {"entropy": 0.7}})
        >>> record.add(1, {"accuracy": 0.9, "auroc": {"entropy": 0.8}})
        >>> record.summary()["mean"]["auroc"]["entropy"]
        0.75
    """

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        self.configuration = dict(configuration)
        self.seeds: list[int] = []
        self.metrics: list[dict[str, Any]] = []
        self._start = RunCost.now()
        self._before = RunCost(0.0, 0.0, 0)

    def add(self, seed: int, metrics: Mapping[str, Any], before: RunCost | None = None) -> None:
        """Note the metrics of a seed.

        Args:
            seed: the seed.
            metrics: numbers by name, which may be nested.
            before: what the seed cost, if it was not run since the clocks were started.
        """
        self.seeds.append(seed)
        self.metrics.append(dict(metrics))
        if before is not None:
            self._before = self._before.plus(before)

    def summary(self) -> dict[str, Any]:
        """Everything as plain JSON. One seed has no standard deviation: it is None."""
        return {
            "evidentia_version": __version__,
            "configuration": self.configuration,
            "seeds": self.seeds,
            "metrics": self.metrics,
            "mean": _combine(self.metrics, _mean),
            "std": _combine(self.metrics, _std),
            **RunCost.now().since(self._start).plus(self._before)._asdict(),
        }

    def save(self, path: str | Path) -> None:
        """Write the summary to a JSON file, whole or not at all."""
        write_text(path, json.dumps(self.summary(), indent=2) + "\n")


def _combine(metrics: Sequence[Mapping[str, Any]], how: Any) -> dict[str, Any]:
    if not metrics:
        return {}
    combined: dict[str, Any] = {}
    for name, first in metrics[0].items():
        values = [entry[name] for entry in metrics]
        combined[name] = _combine(values, how) if isinstance(first, Mapping) else how(values)
    return combined


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _std(values: Sequence[float]) -> float | None:
    return float(np.std(values, ddof=1)) if len(values) > 1 else None
