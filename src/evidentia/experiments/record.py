"""What a run of several seeds leaves behind: every metric a seed, their mean and spread, and what they cost."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evidentia._support.files import write_text
from evidentia._version import __version__


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
        self._wall, self._cpu = time.monotonic(), time.process_time()

    def add(self, seed: int, metrics: Mapping[str, Any]) -> None:
        """Note the metrics of a seed: numbers by name, which may be nested."""
        self.seeds.append(seed)
        self.metrics.append(dict(metrics))

    def summary(self) -> dict[str, Any]:
        """Everything as plain JSON."""
        # Linux counts kilobytes, macOS bytes.
        unit = 1 if sys.platform == "darwin" else 1024
        return {
            "evidentia_version": __version__,
            "configuration": self.configuration,
            "seeds": self.seeds,
            "metrics": self.metrics,
            "mean": _combine(self.metrics, _mean),
            "std": _combine(self.metrics, _std),
            "wall_seconds": time.monotonic() - self._wall,
            "cpu_seconds": time.process_time() - self._cpu,
            "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit,
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


def _std(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
