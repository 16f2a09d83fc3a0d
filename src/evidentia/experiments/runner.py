"""Runs a study: job by job, whatever was done before left out, with any number of runners on one store."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass
from pathlib import Path

from evidentia._support.errors import EvidentiaError
from evidentia._support.progress import progress_bar
from evidentia.experiments.engines import Engine, InProcess
from evidentia.experiments.job import Job, Outcome
from evidentia.experiments.jobs.registry import DATA_CHECKS
from evidentia.experiments.plan import Plan
from evidentia.experiments.store import StudyStore

RETRIES = 2
_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class FailedJob:
    """A job that failed: what it was, and why."""

    what: str
    job: Job
    failure: str


@dataclass(frozen=True)
class StudyRun:
    """What a run came to.

    Attributes:
        jobs: how many there are in all.
        earlier: how many of them were done before.
        now: how many this runner did.
        elsewhere: how many other runners did meanwhile.
        retries: how often a worker died and a job was tried again.
        failures: those that failed.
        seconds: wall time.
        left: how many were not begun, because the time was up.
    """

    jobs: int
    earlier: int
    now: int
    elsewhere: int
    retries: int
    failures: tuple[FailedJob, ...]
    seconds: float
    left: int = 0


def run_plan(
    plan: Plan,
    store: StudyStore,
    engine: Engine | None = None,
    *,
    data_root: str | Path | None = None,
    retries: int = RETRIES,
    minutes: float = math.inf,
    progress: bool = True,
) -> StudyRun:
    """Do all jobs of a plan that the store has no result of.

    A job that failed in an earlier run is tried again; one that fails now is noted, and the rest goes on. Whatever
    ends this function, Ctrl-C included, jobs that are not done are given back to the store.

    Args:
        plan: what is to be done.
        store: where results are kept.
        engine: where jobs run; by default in this process.
        data_root: a folder with the data sets.
        retries: how often a job is tried again if its worker dies.
        minutes: after so many no other job is begun; those that run are waited for.
        progress: whether a bar shows how far it is.

    Raises:
        EvidentiaError: if data that jobs need are not there, as far as their kind can tell (`DATA_CHECKS`).

    Example:
        >>> import tempfile
        >>> from evidentia.experiments import Study, plan_study
        >>> study = Study(name="tiny", title="Tiny", job="graph", metrics=["accuracy"], fixed={"data": "synthetic"},
        ...     axes={"method": ["gcn"], "epochs": [2, 4]})
        >>> with tempfile.TemporaryDirectory() as folder, StudyStore(f"{folder}/results.sqlite") as store:
        ...     first = run_plan(plan_study(study, seeds=1), store, progress=False)
        ...     again = run_plan(plan_study(study, seeds=1), store, progress=False)
        >>> (first.now, first.earlier), (again.now, again.earlier)
        ((2, 0), (0, 2))
    """
    if not minutes >= 0:
        raise EvidentiaError(f"minutes must be at least 0, got {minutes}")
    with engine or InProcess() as used:
        return _Run(plan, store, used, None if data_root is None else str(data_root), retries, minutes).run(progress)


class _Run:
    def __init__(
        self, plan: Plan, store: StudyStore, engine: Engine, data_root: str | None, retries: int, minutes: float
    ) -> None:
        self.plan, self.store, self.engine = plan, store, engine
        self.data_root, self.retries = data_root, retries
        self.started = time.monotonic()
        self.until = self.started + 60 * minutes
        self.waiting: deque[str] = deque()
        # Jobs that other runners have.
        self.held: list[str] = []
        self.deaths: Counter[str] = Counter()
        self.done_here: set[str] = set()

    def run(self, progress: bool) -> StudyRun:
        jobs, store = self.plan.jobs, self.store
        store.add(jobs.values())
        store.forgive(jobs)
        states = store.states(jobs)
        self.waiting.extend(key for key in jobs if states[key] != "done")
        earlier = len(jobs) - len(self.waiting)
        if self._begins:
            self._check_data()
        title = f"{self.plan.study.name} ({self.plan.preset})"
        with progress_bar(title, len(jobs), done=earlier, shown=progress, stays=True) as advance, store.keep_alive():
            try:
                while self._begins or self.engine.running:
                    self._step()
                    ended = Counter(store.states(jobs).values())
                    figures = f"{ended['failed']} failed" if ended["failed"] else ""
                    advance(ended["done"] + ended["failed"], figures)
            finally:
                # If the store itself is what failed, its leases will run out.
                with contextlib.suppress(Exception):
                    store.release()
        failures = store.failures(jobs)
        done = len(store.results(jobs))
        return StudyRun(
            *(len(jobs), earlier, len(self.done_here), done - earlier - len(self.done_here), self.deaths.total()),
            failures=tuple(FailedJob(self.plan.describe(jobs[key]), jobs[key], text) for key, text in failures.items()),
            seconds=time.monotonic() - self.started,
            left=len(jobs) - done - len(failures),
        )

    @property
    def _begins(self) -> bool:
        """Whether another job is to be begun."""
        return bool(self.waiting or self.held) and time.monotonic() < self.until

    def _check_data(self) -> None:
        """One error before any job, where each would have the same; a cluster elsewhere has its own data."""
        name = self.plan.study.job
        if isinstance(name, str) and name in DATA_CHECKS and self.engine.address is None:
            DATA_CHECKS[name]([cell.configuration for cell in self.plan.cells], self.data_root)

    def _step(self) -> None:
        """Begin what there is room for, then wait for something to end."""
        while self.waiting and self._begins and self.engine.has_room:
            key = self.waiting.popleft()
            if self.store.claim(key):
                self._submit(key)
            else:
                self.held.append(key)
        if self.engine.running:
            for outcome in self.engine.wait(_POLL_SECONDS):
                self._settle(outcome)
        elif self.held:
            threading.Event().wait(_POLL_SECONDS)
        if not self.waiting and self.held and self.engine.has_room:
            states = self.store.states(self.held)
            self.waiting.extend(key for key in self.held if states[key] in ("waiting", "running"))
            self.held = []

    def _submit(self, key: str) -> None:
        self.engine.submit(self.plan.task(self.plan.jobs[key], self.data_root))

    def _settle(self, outcome: Outcome) -> None:
        key = outcome.key
        if outcome.worker_died:
            self.deaths[key] += 1
            if self.deaths[key] <= self.retries:
                self._submit(key)
                return
            times = f"{self.deaths[key]} times" if self.deaths[key] > 1 else "once"
            outcome = Outcome(key, failure=f"its worker died {times}: it was killed, perhaps for want of memory")
        if not self.store.finish(outcome):
            # The lease ran out, and another runner has taken the job over.
            self.held.append(key)
        elif outcome.metrics is not None:
            self.done_here.add(key)
