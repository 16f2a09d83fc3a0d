"""The file of a store: made whole or not at all, and looked through before it is used."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia.experiments.job import job_key

SCHEMA_VERSION = 2
# Marks a SQLite file as a store of ours ("evst").
APPLICATION_ID = 0x65767374
BUSY_SECONDS = 60.0

_SCHEMA = """
CREATE TABLE jobs (
    key TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    configuration TEXT NOT NULL,
    seed INTEGER NOT NULL,
    code TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'running', 'done', 'failed')),
    owner TEXT,
    lease_until REAL,
    metrics TEXT,
    failure TEXT,
    seconds REAL,
    cpu_seconds REAL,
    peak_memory_bytes INTEGER,
    environment TEXT,
    digest TEXT,
    CHECK ((state = 'done') = (metrics IS NOT NULL AND digest IS NOT NULL)),
    CHECK ((state = 'running') = (owner IS NOT NULL AND lease_until IS NOT NULL))
)
"""
_HEADER = b"SQLite format 3\0"


def open_store_file(path: Path) -> sqlite3.Connection:
    """Connect to a store, which is made if there is none, and see that it is sound.

    Raises:
        FileFormatError: if it is damaged, of another program, or of another version.
        EvidentiaError: if it cannot be reached, or is locked for long.
    """
    with told(path):
        if not path.exists():
            _make(path)
        _check_header(path)
        connection = _connect(path)
        try:
            _check_content(path, connection)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def told(path: Path) -> Iterator[None]:
    """What SQLite raises, as a sentence."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if str(error).startswith(("no such", "Could not decode")):
            raise _damaged(path, str(error)) from error
        raise EvidentiaError(f"the store {path} cannot be used now: {error}") from error
    except sqlite3.DatabaseError as error:
        raise _damaged(path, str(error)) from error
    except OSError as error:
        raise EvidentiaError(f"the store {path} cannot be read: {error}") from error


def result_digest(key: str, values: tuple[Any, ...]) -> str:
    """A checksum of a result: SQLite has none for the contents of its pages."""
    # A damaged value may be of any type, bytes too.
    return hashlib.sha256(json.dumps([key, *values], default=repr).encode()).hexdigest()


def _make(path: Path) -> None:
    """Under another name first, so that a file that is empty or half made is never one of ours."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise EvidentiaError(f"no store can be made at {path}: {error}") from error
    os.close(handle)
    part = Path(name)
    try:
        connection = sqlite3.connect(part, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute(_SCHEMA)
        connection.close()
        # Unlike a rename, a link does not take the place of a store that another runner has just made.
        with contextlib.suppress(FileExistsError):
            os.link(part, path)
    finally:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{part}{suffix}").unlink(missing_ok=True)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS)
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _check_header(path: Path) -> None:
    with path.open("rb") as file:
        header = file.read(len(_HEADER))
    if len(header) < len(_HEADER):
        raise _damaged(path, "it is empty or was cut short" if header in (b"", _HEADER[: len(header)]) else "no SQLite")
    if header != _HEADER:
        raise FileFormatError(f"{path} is no store of results: it is not a SQLite file; give another name")


def _check_content(path: Path, connection: sqlite3.Connection) -> None:
    application, version = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    if application != APPLICATION_ID:
        raise FileFormatError(f"{path} is a SQLite file of another program; give another name for the store")
    if version != SCHEMA_VERSION:
        raise FileFormatError(
            f"the store {path} has schema version {version}, and this release reads version {SCHEMA_VERSION}: use the "
            "release that wrote it, or start another store"
        )
    problems = [line for (line,) in connection.execute("PRAGMA integrity_check(3)")]
    if problems != ["ok"]:
        raise _damaged(path, "; ".join(problems))
    rows = connection.execute(
        "SELECT key, kind, configuration, seed, code, state, digest, "
        "metrics, seconds, cpu_seconds, peak_memory_bytes, environment FROM jobs"
    )
    for key, kind, configuration, seed, code, state, digest, *result in rows:
        texts = all(isinstance(text, str) for text in (key, kind, configuration, code))
        if not texts or not isinstance(seed, int) or key != job_key(kind, configuration, seed, code):
            raise _damaged(path, f"the job {key!s:.12} does not match its key")
        if state == "done" and digest != result_digest(key, tuple(result)):
            raise _damaged(path, f"the result of the job {key!s:.12} does not match its checksum")


def _damaged(path: Path, how: str) -> FileFormatError:
    return FileFormatError(
        f"the store {path} is damaged: {how}; nothing of it is used. Put a copy in its place, or move it away and run "
        "the study again"
    )
