"""The results of studies in one SQLite file, which several runners may share.

A row is a job. A runner claims it, with a lease that its heartbeat prolongs; the result is written, in one transaction,
by the runner that holds the job. A job whose runner was killed, or whose lease has run out, can be claimed again, and
what the first may still give is then thrown away. So a job counts once, whatever happens to runners.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from evidentia._support.errors import EvidentiaError
from evidentia.experiments.job import Job, Outcome
from evidentia.experiments.store_file import open_store_file, result_digest, told
from evidentia.experiments.store_owner import Owner, heartbeat

LEASE_SECONDS = 120.0
_AT_A_TIME = 500


@dataclass(frozen=True)
class StoredResult:
    """What a job gave and what it cost."""

    metrics: Mapping[str, float]
    seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    environment: Mapping[str, str]


class StudyStore:
    """A store of results, open for one runner.

    Args:
        path: of the file, which is made if there is none.
        lease_seconds: how long a job is kept for a runner that gives no sign of life, on another machine.

    Raises:
        FileFormatError: if the file is damaged, of another program, or of another version.

    Example:
        >>> import tempfile
        >>> job = Job("graph", {"data": "cora"}, 0, "1.0")
        >>> with tempfile.TemporaryDirectory() as folder, StudyStore(f"{folder}/results.sqlite") as store:
        ...     store.add([job])
        ...     claimed = store.claim(job.key)
        ...     kept = store.finish(Outcome(job.key, {"accuracy": 0.8}))
        ...     store.results([job.key])[job.key].metrics
        {'accuracy': 0.8}
    """

    def __init__(self, path: str | Path, *, lease_seconds: float = LEASE_SECONDS) -> None:
        if lease_seconds <= 0:
            raise EvidentiaError(f"lease_seconds must be above 0, got {lease_seconds}")
        self.path = Path(path)
        self.lease_seconds = lease_seconds
        self._connection = open_store_file(self.path)
        self._owner = Owner(self.path)

    def __enter__(self) -> StudyStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the store."""
        self._connection.close()
        self._owner.let_go()

    def add(self, jobs: Iterable[Job]) -> None:
        """Note jobs that are to be done; those that are known stay as they are."""
        rows = [(j.key, j.kind, json.dumps(j.configuration, sort_keys=True), j.seed, j.code) for j in jobs]
        with self._transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO jobs (key, kind, configuration, seed, code) VALUES (?, ?, ?, ?, ?)", rows
            )

    def claim(self, key: str) -> bool:
        """Take a job that is waiting, or whose runner is gone; False if there is nothing to take."""
        if not self._is_free(key):
            return False
        self._owner.hold()
        with self._transaction() as connection:
            # Another may have been faster.
            if not self._is_free(key):
                return False
            connection.execute(
                "UPDATE jobs SET state = 'running', owner = ?, lease_until = ?, failure = NULL WHERE key = ?",
                (self._owner.name, time.time() + self.lease_seconds, key),
            )
        return True

    def finish(self, outcome: Outcome) -> bool:
        """Write the outcome of a job that this runner holds; False if it holds it no longer, and nothing is written."""
        cost = (outcome.seconds, outcome.cpu_seconds, outcome.peak_memory_bytes, json.dumps(outcome.environment))
        metrics = None if outcome.metrics is None else json.dumps(outcome.metrics)
        digest = None if metrics is None else result_digest(outcome.key, (metrics, *cost))
        state = "failed" if metrics is None else "done"
        with self._transaction() as connection:
            written = connection.execute(
                "UPDATE jobs SET state = ?, owner = NULL, lease_until = NULL, metrics = ?, failure = ?, digest = ?, "
                "seconds = ?, cpu_seconds = ?, peak_memory_bytes = ?, environment = ? "
                "WHERE key = ? AND state = 'running' AND owner = ?",
                (state, metrics, outcome.failure, digest, *cost, outcome.key, self._owner.name),
            )
        return written.rowcount == 1

    def release(self) -> None:
        """Give back all jobs that this runner holds."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE jobs SET state = 'waiting', owner = NULL, lease_until = NULL "
                "WHERE state = 'running' AND owner = ?",
                (self._owner.name,),
            )

    def forgive(self, keys: Iterable[str]) -> None:
        """Let jobs that failed wait again."""
        with self._transaction() as connection:
            connection.executemany(
                "UPDATE jobs SET state = 'waiting' WHERE key = ? AND state = 'failed'", [(key,) for key in keys]
            )

    def keep_alive(self) -> AbstractContextManager[None]:
        """Prolong the leases of this runner's jobs as long as the block lasts."""
        return heartbeat(self._beat, self.lease_seconds / 4)

    def states(self, keys: Iterable[str]) -> dict[str, str]:
        """The state of each job that is known: waiting, running, done or failed."""
        return {key: row[0] for key, row in self._rows(keys, "state")}

    def results(self, keys: Iterable[str]) -> dict[str, StoredResult]:
        """What the jobs that are done gave."""
        columns = "state, metrics, seconds, cpu_seconds, peak_memory_bytes, environment"
        return {
            key: StoredResult(json.loads(metrics), seconds, cpu, memory, json.loads(environment))
            for key, (state, metrics, seconds, cpu, memory, environment) in self._rows(keys, columns)
            if state == "done"
        }

    def failures(self, keys: Iterable[str]) -> dict[str, str]:
        """The tracebacks of the jobs that failed."""
        return {key: text or "" for key, (state, text) in self._rows(keys, "state, failure") if state == "failed"}

    def _rows(self, keys: Iterable[str], columns: str) -> list[tuple[str, list[Any]]]:
        wanted = list(keys)
        found: dict[str, list[Any]] = {}
        with told(self.path):
            # SQLite takes only so many values at a time.
            for start in range(0, len(wanted), _AT_A_TIME):
                part = wanted[start : start + _AT_A_TIME]
                query = f"SELECT key, {columns} FROM jobs WHERE key IN ({', '.join('?' * len(part))})"
                found |= {key: row for key, *row in self._connection.execute(query, part)}
        return [(key, found[key]) for key in wanted if key in found]

    def _is_free(self, key: str) -> bool:
        with told(self.path):
            row = self._connection.execute(
                "SELECT state, owner, lease_until FROM jobs WHERE key = ?", (key,)
            ).fetchone()
        if row is None:
            raise EvidentiaError(f"the store {self.path} has no job {key[:12]}; add it first")
        state, owner, lease_until = row
        if state != "running":
            return bool(state == "waiting")
        return owner != self._owner.name and (lease_until < time.time() or self._owner.is_gone(owner))

    def _beat(self) -> None:
        # Threads have a connection each.
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=self.lease_seconds / 4)
        try:
            connection.execute(
                "UPDATE jobs SET lease_until = ? WHERE state = 'running' AND owner = ?",
                (time.time() + self.lease_seconds, self._owner.name),
            )
        finally:
            connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with told(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # When the disk is full, SQLite has rolled back by itself.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
