"""The store of results: claims, leases, and files that are not what they should be."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from evidentia import EvidentiaError, FileFormatError
from evidentia.experiments.job import Job, Outcome
from evidentia.experiments.store import StudyStore
from evidentia.experiments.store_owner import heartbeat

JOBS = [Job("dummy", {"method": "a" * 50, "size": size}, seed, "1") for size in (1, 2) for seed in range(10)]
JOB = JOBS[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.sqlite"


def filled(path: Path) -> Path:
    with StudyStore(path) as store:
        store.add(JOBS)
        for index, job in enumerate(JOBS):
            assert store.claim(job.key)
            store.finish(Outcome(job.key, {"score": index / 7}, seconds=1.5, peak_memory_bytes=10))
    return path


def scores(path: Path) -> list[float]:
    with StudyStore(path) as store:
        return [result.metrics["score"] for result in store.results(job.key for job in JOBS).values()]


def test_what_was_written_is_read_again(path: Path) -> None:
    assert scores(filled(path)) == [index / 7 for index in range(len(JOBS))]
    with StudyStore(path) as store:
        assert store.results([JOB.key])[JOB.key].seconds == 1.5
        store.add(JOBS)
        assert set(store.states(job.key for job in JOBS).values()) == {"done"}
    # Nothing is left beside the file.
    assert os.listdir(path.parent) == [path.name]


def test_a_job_is_claimed_once_and_its_failure_is_kept(path: Path) -> None:
    with StudyStore(path) as first, StudyStore(path) as second:
        first.add([JOB])
        assert first.claim(JOB.key)
        assert not second.claim(JOB.key)
        assert not first.claim(JOB.key)
        assert not second.finish(Outcome(JOB.key, {"score": 1.0}))
        assert first.finish(Outcome(JOB.key, failure="Traceback: it broke"))
        assert second.failures([JOB.key]) == {JOB.key: "Traceback: it broke"}
        assert not second.claim(JOB.key)
        second.forgive([JOB.key])
        assert second.claim(JOB.key)
        second.release()
        assert second.states([JOB.key]) == {JOB.key: "waiting"}


def test_a_job_that_nobody_added_is_refused(path: Path) -> None:
    with StudyStore(path) as store, pytest.raises(EvidentiaError, match="add it first"):
        store.claim(JOB.key)


def test_a_lease_that_ran_out_is_taken_over_and_the_late_result_thrown_away(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    monkeypatch.setattr("evidentia.experiments.store.time.time", lambda: clock[0])
    monkeypatch.setattr("evidentia.experiments.store_owner._machine", lambda: "elsewhere")
    first = StudyStore(path, lease_seconds=60)
    first.add([JOB])
    assert first.claim(JOB.key)
    monkeypatch.setattr("evidentia.experiments.store_owner._machine", lambda: "here")
    with StudyStore(path, lease_seconds=60) as second:
        clock[0] += 50
        assert not second.claim(JOB.key)
        first._beat()
        clock[0] += 50
        assert not second.claim(JOB.key)
        clock[0] += 11
        assert second.claim(JOB.key)
        assert not first.finish(Outcome(JOB.key, {"score": 1.0}))
        assert second.finish(Outcome(JOB.key, {"score": 2.0}))
        assert second.results([JOB.key])[JOB.key].metrics == {"score": 2.0}
    first.close()


def test_the_job_of_a_runner_that_was_killed_is_taken_over_at_once(path: Path) -> None:
    killed = StudyStore(path)
    killed.add([JOB])
    assert killed.claim(JOB.key)
    with StudyStore(path) as other:
        assert not other.claim(JOB.key)
        # What the system does when a process ends.
        os.close(killed._owner._handle)
        assert other.claim(JOB.key)
    killed._owner._handle = None
    killed.close()


def test_a_heart_beats_until_the_block_ends() -> None:
    beaten = threading.Event()

    def beat() -> None:
        beaten.set()
        raise RuntimeError("a beat that fails is followed by others")

    with heartbeat(beat, 0.001):
        assert beaten.wait(30)
    assert not any(thread.name == "evidentia-heartbeat" for thread in threading.enumerate())


def test_an_empty_a_foreign_and_a_text_file_are_told(path: Path) -> None:
    path.touch()
    with pytest.raises(FileFormatError, match="damaged: it is empty or was cut short"):
        StudyStore(path)
    path.write_text("accuracy 0.8, and so on and so forth\n")
    with pytest.raises(FileFormatError, match="not a SQLite file"):
        StudyStore(path)
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE jobs (key TEXT)")
    connection.close()
    with pytest.raises(FileFormatError, match="of another program"):
        StudyStore(path)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("PRAGMA user_version = 7", "schema version 7, and this release reads version 2"),
        (f"UPDATE jobs SET metrics = '{{\"score\": 0.99}}' WHERE key = '{JOB.key}'", "does not match its checksum"),
    ],
)
def test_another_version_and_a_result_changed_by_hand_are_told(path: Path, change: str, problem: str) -> None:
    with closing(sqlite3.connect(filled(path))) as connection, connection:
        connection.execute(change)
    with pytest.raises(FileFormatError, match=problem):
        StudyStore(path)


def test_a_store_that_was_cut_short_is_never_used(path: Path) -> None:
    whole = filled(path).read_bytes()
    for length in [*range(1, 200, 37), *range(512, len(whole), 1500), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError):
            StudyStore(path)


def test_a_flipped_byte_is_told_or_changes_nothing(path: Path) -> None:
    whole = filled(path).read_bytes()
    expected = scores(path)
    draw = random.Random(0)
    told = 0
    for position in draw.sample(range(len(whole)), 150):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << draw.randrange(8)
        path.write_bytes(bytes(damaged))
        try:
            assert scores(path) == expected
        except FileFormatError:
            told += 1
        for rest in path.parent.glob(f"{path.name}-*"):
            rest.unlink()
    assert told > 20


def test_a_folder_that_cannot_hold_a_store_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EvidentiaError, match="no store can be made"):
        StudyStore(tmp_path / "file" / "results.sqlite")


def test_a_full_disk_is_told_and_the_store_goes_on_when_there_is_room(path: Path) -> None:
    with StudyStore(path) as store:
        store.add([JOB])
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        many = [Job("dummy", {"text": "a" * 1000}, seed, "1") for seed in range(100)]
        for _ in range(2):
            with pytest.raises(EvidentiaError, match="cannot be used now: database or disk is full"):
                store.add(many)
        assert store.states([many[0].key]) == {}
        store._connection.execute("PRAGMA max_page_count = 100000")
        store.add(many)
        assert store.states([JOB.key, many[-1].key]) == {JOB.key: "waiting", many[-1].key: "waiting"}


def test_a_full_disk_on_which_a_store_is_to_be_made_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("evidentia.experiments.store_file.sqlite3.connect", full)
    with pytest.raises(EvidentiaError, match="cannot be used now: database or disk is full"):
        StudyStore(path)
    assert os.listdir(path.parent) == []
