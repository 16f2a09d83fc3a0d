"""One job: what identifies it, and how it is run and measured, wherever that is."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import random
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evidentia._support.errors import EvidentiaError
from evidentia._support.memory import peak_memory_bytes, reset_peak_memory
from evidentia.experiments.code_version import code_version
from evidentia.experiments.jobs import JobFunction
from evidentia.experiments.study_source import StudySource


@dataclass(frozen=True)
class Job:
    """A cell of a study's grid and a seed.

    Attributes:
        kind: the name of the job's function.
        configuration: all options of the cell.
        seed: of data and training.
        code: version of the code, as `code_version` has it.

    Example:
        >>> Job("graph", {"data": "cora"}, 0, "1.0").key == Job("graph", {"data": "cora"}, 1, "1.0").key
        False
    """

    kind: str
    configuration: Mapping[str, Any]
    seed: int
    code: str

    @cached_property
    def key(self) -> str:
        """A hash of all of it."""
        return job_key(self.kind, json.dumps(self.configuration, sort_keys=True), self.seed, self.code)


def job_key(kind: str, configuration: str, seed: int, code: str) -> str:
    """The key of a job whose configuration is given as JSON with sorted names."""
    return hashlib.sha256(json.dumps([kind, configuration, seed, code]).encode()).hexdigest()


@dataclass(frozen=True)
class Task:
    """A job with what a worker needs to run it: the function, or the file that has it, and where the data sets are."""

    job: Job
    function: JobFunction | None
    source: StudySource | None = None
    data_root: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of a job.

    Attributes:
        key: of the job.
        metrics: numbers by their dotted names; None if it failed.
        failure: the traceback, if it failed.
        worker_died: whether there is neither, because its worker was killed.
        seconds: wall time.
        cpu_seconds: time of the processor.
        peak_memory_bytes: the most memory that its process had while it ran.
        environment: what it ran on.
    """

    key: str
    metrics: dict[str, float] | None = None
    failure: str | None = None
    worker_died: bool = False
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0
    environment: dict[str, str] = field(default_factory=dict)


def perform(task: Task) -> Outcome:
    """Run a job; whatever it raises becomes the outcome's traceback.

    Every job has one thread of PyTorch, and finds all random generators seeded, so that its numbers do not depend on
    what ran before it or beside it. Workers, not threads, are what makes a study faster.
    """
    job = task.job
    reset_peak_memory()
    wall, cpu = time.monotonic(), time.process_time()
    metrics, failure = None, None
    try:
        function = _function(task)
        place = {} if task.data_root is None else {"data_root": task.data_root}
        with alike_everywhere(job.seed):
            metrics = flat_metrics(function({**job.configuration, **place}, job.seed))
    except (Exception, SystemExit):
        failure = traceback.format_exc()
    return Outcome(
        job.key,
        metrics,
        failure,
        seconds=time.monotonic() - wall,
        cpu_seconds=time.process_time() - cpu,
        peak_memory_bytes=peak_memory_bytes(),
        environment=environment(),
    )


def environment() -> dict[str, str]:
    """What jobs run on: versions, and the kind of machine, but not which one.

    Example:
        >>> sorted(environment())
        ['cores', 'machine', 'processor', 'python', 'system', 'torch']
    """
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": str(os.cpu_count()),
    }


def flat_metrics(metrics: Mapping[str, Any], before: str = "") -> dict[str, float]:
    """Nested numbers by dotted names.

    Raises:
        EvidentiaError: if one is no number, or not finite.

    Example:
        >>> flat_metrics({"accuracy": 0.8, "auroc": {"entropy": 0.7}})
        {'accuracy': 0.8, 'auroc.entropy': 0.7}
    """
    if not isinstance(metrics, Mapping):
        raise EvidentiaError(f"a job gives its metrics as a dict of numbers by name, got {type(metrics).__name__}")
    found: dict[str, float] = {}
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            found |= flat_metrics(value, f"{before}{name}.")
            continue
        try:
            found[f"{before}{name}"] = float(value)
        except (TypeError, ValueError):
            raise EvidentiaError(f"the metric {before}{name} must be a number, got {value!r}") from None
        if not math.isfinite(found[f"{before}{name}"]):
            raise EvidentiaError(f"the metric {before}{name} must be finite, got {value!r}")
    return found


def _function(task: Task) -> JobFunction:
    function = task.function if task.source is None else task.source.job()
    if function is None:
        raise EvidentiaError("a task needs the function of its job, or the file that has it")
    here = code_version(function, None if task.source is None else task.source.text)
    if here != task.job.code:
        raise EvidentiaError(
            f"this worker has the code {here} and the study was started with {task.job.code}: install the same "
            "evidentia everywhere, and start the study again if the code was changed meanwhile"
        )
    return function


@contextmanager
def alike_everywhere(seed: int) -> Iterator[None]:
    """One thread and seeded generators; all is put back at the end."""
    threads, python, numpy = torch.get_num_threads(), random.getstate(), np.random.get_state()  # noqa: NPY002
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            np.random.seed(seed % 2**32)  # noqa: NPY002 (for jobs that use the global generator)
            random.seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


def _processor() -> str:
    """The model, as far as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
