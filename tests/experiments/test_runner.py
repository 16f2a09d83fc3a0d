"""Running studies: whatever is killed or broken, every job counts once and the table is the same."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import secrets
import select
import socket
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from evidentia import EvidentiaError
from evidentia.cli.study import run_study
from evidentia.experiments import Study, StudyStore, load_study, make_engine, plan_study, run_plan, study_table
from evidentia.experiments.engines import Engine, InProcess
from evidentia.experiments.job import Outcome, Task, flat_metrics
from evidentia.experiments.study_export import as_csv, as_markdown

# A process that has everything imported and from which others are forked: a start costs next to nothing.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["evidentia.cli.study"])


def begun(study: Path) -> Counter[str]:
    return Counter((study.parent / "begun").read_text().split())


def tables(study: Path, store: Path) -> tuple[str, str]:
    with StudyStore(store) as opened:
        table = study_table(plan_study(load_study(study)), opened)
    assert not table.missing
    return as_csv(table), as_markdown(table)


def ran(study: Path, engine: Engine | None = None) -> tuple[str, str]:
    store = study.with_suffix(".sqlite")
    with StudyStore(store) as opened:
        run = run_plan(plan_study(load_study(study)), opened, engine, progress=False)
    assert not run.failures
    return tables(study, store)


def start(study: Path, store: Path) -> Any:
    settings = {"engine": "local", "address": None, "workers": None, "seeds": None, "data_root": None, "exports": []}
    process = FORKS.Process(target=run_study, args=(str(study), "full"), kwargs={**settings, "store_file": store})
    process.start()
    return process


def test_killed_ten_times_it_ends_with_the_table_of_one_never_stopped(write_study: Callable[..., Path]) -> None:
    study = write_study(seeds=20)
    pipe = study.parent / "begun"
    os.mkfifo(pipe)
    store = study.with_suffix(".sqlite")
    draw = random.Random(1)
    handle = os.open(pipe, os.O_RDWR)
    try:
        for kill in range(10):
            process = start(study, store)
            # As many jobs begin, and then some moment or other passes.
            for _ in range(draw.randrange(8) if kill else 0):
                os.read(handle, len(b"a/1/10\n"))
            for _ in range(draw.randrange(200_000)):
                pass
            process.kill()
            process.join()
            # It may have been done with everything that was left.
            assert process.exitcode in (-9, 0)
        with StudyStore(store) as opened:
            before = len(opened.results(plan_study(load_study(study)).jobs))
        last = start(study, store)
        last.join()
        assert last.exitcode == 0
    finally:
        os.close(handle)
    assert 0 < before < len(plan_study(load_study(study)).jobs)
    killed = tables(study, store)
    pipe.unlink()
    assert killed == ran(write_study("never-stopped", seeds=20))


def test_two_runners_share_the_work_and_no_job_is_done_twice(write_study: Callable[..., Path]) -> None:
    study = write_study(seeds=20)
    store = study.with_suffix(".sqlite")
    processes = [start(study, store) for _ in range(2)]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    jobs = begun(study)
    assert len(jobs) == 2 * 3 * 20
    assert set(jobs.values()) == {1}
    assert tables(study, store) == ran(write_study("alone", seeds=20))


def test_two_runners_work_at_the_same_time(tmp_path: Path) -> None:
    together = threading.Barrier(2)
    done: list[str] = []
    waited = threading.local()

    def job(configuration: Mapping[str, Any], seed: int) -> dict[str, float]:
        if not hasattr(waited, "once"):
            waited.once = True
            together.wait(60)
        done.append(f"{configuration} {seed}")
        return {"score": float(seed)}

    study = Study(name="together", title="Together", job=job, metrics=["score"], axes={"size": [1, 2]}, seeds=10)
    runs = []

    def runner() -> None:
        with StudyStore(tmp_path / "results.sqlite") as store:
            runs.append(run_plan(plan_study(study), store, progress=False))

    threads = [threading.Thread(target=runner) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == len(set(done)) == 20
    assert sum(run.now for run in runs) == 20
    for run in runs:
        assert run.now >= 1
        assert run.earlier + run.now + run.elsewhere == 20


def test_processes_give_the_numbers_of_this_one_and_a_worker_that_is_killed_costs_a_retry(
    write_study: Callable[..., Path],
) -> None:
    study = write_study()
    (study.parent / "unlucky").write_text("b/2/1")
    with StudyStore(study.with_suffix(".sqlite")) as store:
        plan = plan_study(load_study(study))
        run = run_plan(plan, store, make_engine("pool", workers=2), progress=False)
        memory = [result.peak_memory_bytes for result in store.results(plan.jobs).values()]
    assert (run.now, run.retries, run.failures) == (24, 1, ())
    assert Counter(begun(study).values()) == {1: 23, 2: 1}
    assert begun(study)["b/2/1"] == 2
    assert min(memory) > 1e7
    assert tables(study, study.with_suffix(".sqlite")) == ran(write_study("in-process"))


ENDLESS = """
import threading
from pathlib import Path

from evidentia.experiments.study import Study


def endless(configuration, seed):
    with (Path(__file__).parent / "alive").open("w") as file:
        file.write("begun\\n")
        file.flush()
        threading.Event().wait()


study = Study(name="endless", title="Endless", job=endless, axes={"size": [1]}, metrics=["score"], seeds=1)
"""


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    study, alive = tmp_path / "endless.py", tmp_path / "alive"
    study.write_text(ENDLESS)
    os.mkfifo(alive)
    options = ["--preset", "full", "--engine", "pool", "--workers", "1", "--store", str(tmp_path / "results.sqlite")]
    runner = subprocess.Popen([sys.executable, "-m", "evidentia", "study", str(study), *options])
    try:
        # The other end of the pipe is open as long as the worker lives.
        with alive.open() as file:
            assert file.readline() == "begun\n"
            runner.kill()
            assert select.select([file], [], [], 60)[0]
            assert file.read() == ""
    finally:
        runner.kill()
        runner.wait()


def test_ray_gives_the_same_numbers_and_a_worker_that_is_killed_costs_a_retry(
    write_study: Callable[..., Path],
) -> None:
    pytest.importorskip("ray")
    study = write_study()
    (study.parent / "unlucky").write_text("a/3/2")
    with StudyStore(study.with_suffix(".sqlite")) as store:
        run = run_plan(plan_study(load_study(study)), store, make_engine("ray", workers=2), progress=False)
    assert (run.now, run.retries, run.failures) == (24, 1, ())
    assert tables(study, study.with_suffix(".sqlite")) == ran(write_study("in-process"))


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The head of a Ray cluster of its own, as `ray start` makes it: what a client needs in its environment.

    It asks for a token, one that nobody else has, as it can be reached over the network. It is ended by its process:
    `ray stop` would end every other cluster of this machine too.
    """
    pytest.importorskip("ray")
    ports = []
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            free = stack.enter_context(socket.socket())
            free.bind(("127.0.0.1", 0))
            ports.append(free.getsockname()[1])
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    # Sockets lie in it, and their paths must be short.
    with tempfile.TemporaryDirectory(prefix="ray") as folder:
        head = subprocess.Popen(
            [
                *(Path(sys.executable).with_name("ray"), "start", "--head", "--block", f"--temp-dir={folder}"),
                *(f"--port={ports[0]}", f"--ray-client-server-port={ports[1]}", "--num-cpus=1"),
                *("--include-dashboard=false", "--disable-usage-stats"),
            ],
            env={**os.environ, **token},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            assert head.stdout is not None
            said = []
            # The last thing that it says once it is there.
            while not said or "--block" not in said[-1]:
                said.append(head.stdout.readline())
                assert said[-1], "".join(said)
            yield {**token, "ADDRESS": f"127.0.0.1:{ports[0]}"}
        finally:
            head.terminate()
            head.communicate(timeout=60)


def test_a_cluster_that_is_there_already_is_used_by_its_address(
    write_study: Callable[..., Path], cluster: dict[str, str]
) -> None:
    study = write_study(seeds=1)
    store = study.with_suffix(".sqlite")
    command = [Path(sys.executable).with_name("evidentia"), "study", study, "--preset", "full", "--store", store]
    # A process of its own: Ray reads what goes with a token once.
    run = subprocess.run(
        [*command, "--engine", "ray", "--address", cluster["ADDRESS"]],
        env={**os.environ, **cluster},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "dummy: 6 of 6 jobs" in run.stderr
    assert tables(study, store) == ran(write_study("in-process", seeds=1))


def test_a_cluster_that_asks_for_a_token_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")

    def init(**_: Any) -> None:
        try:
            raise RuntimeError("InvalidAuthToken: Authentication token is missing")
        except RuntimeError as error:
            raise ConnectionError("Failed to connect to Ray cluster") from error

    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(EvidentiaError, match=r"at '10\.0\.0\.1:6379': Failed to connect.*set RAY_AUTH_MODE=token"):
        make_engine("ray", workers=1, address="10.0.0.1:6379").start()


class Mortal(InProcess):
    """Its worker dies with every job."""

    def wait(self, seconds: float) -> list[Outcome]:
        (outcome,) = super().wait(seconds)
        return [Outcome(outcome.key, worker_died=True)]


def test_a_job_whose_worker_always_dies_fails_in_the_end(write_study: Callable[..., Path]) -> None:
    study = write_study(seeds=1, methods=("a",))
    with StudyStore(study.with_suffix(".sqlite")) as store:
        run = run_plan(plan_study(load_study(study)), store, Mortal(), retries=1, progress=False)
    assert [failed.failure for failed in run.failures] == [
        "its worker died 2 times: it was killed, perhaps for want of memory"
    ] * 3
    assert run.failures[0].what == "method a, size 1, seed 0"


def test_failures_are_kept_with_their_traceback_and_the_rest_goes_on(write_study: Callable[..., Path]) -> None:
    study = write_study(seeds=2, methods=("a", "broken", "b"))
    with StudyStore(study.with_suffix(".sqlite")) as store:
        plan = plan_study(load_study(study))
        run = run_plan(plan, store, progress=False)
        assert (run.now, len(run.failures)) == (12, 6)
        assert "RuntimeError: this method is broken" in run.failures[0].failure
        assert f'{study}", line' in run.failures[0].failure
        # Tried again, and what is done is not done again.
        again = run_plan(plan, store, progress=False)
        assert (again.earlier, again.now, len(again.failures)) == (12, 0, 6)
        table = study_table(plan, store)
    assert table.missing == 6
    assert {row.cell.labels["method"] for row in table.rows} == {"a", "b"}


class Interrupted(InProcess):
    """Ctrl-C comes with the third job."""

    taken = 0

    def submit(self, task: Task) -> None:
        self.taken += 1
        if self.taken == 3:
            raise KeyboardInterrupt
        super().submit(task)


def test_an_interrupted_run_gives_its_jobs_back(write_study: Callable[..., Path]) -> None:
    study = write_study(seeds=1)
    plan = plan_study(load_study(study))
    with StudyStore(study.with_suffix(".sqlite")) as store:
        with pytest.raises(KeyboardInterrupt):
            run_plan(plan, store, Interrupted(), progress=False)
        assert Counter(store.states(plan.jobs).values()) == {"done": 2, "waiting": 4}
        assert run_plan(plan, store, progress=False).now == 4


def test_a_lost_lease_leaves_the_job_to_the_other(write_study: Callable[..., Path]) -> None:
    study = write_study(seeds=1, methods=("a",))
    path = study.with_suffix(".sqlite")
    plan = plan_study(load_study(study))

    class Robbed(InProcess):
        def wait(self, seconds: float) -> list[Outcome]:
            outcomes = super().wait(seconds)
            with StudyStore(path) as thief:
                thief._connection.execute("UPDATE jobs SET lease_until = 0 WHERE state = 'running'")
                if thief.claim(outcomes[0].key):
                    thief.finish(Outcome(outcomes[0].key, {"score": 42.0}))
            return outcomes

    with StudyStore(path) as store:
        run = run_plan(plan, store, Robbed(), progress=False)
        values = [result.metrics["score"] for result in store.results(plan.jobs).values()]
    assert (run.now, run.elsewhere) == (0, 3)
    assert values == [42.0] * 3


def test_what_a_job_gives_must_be_finite_numbers() -> None:
    assert flat_metrics({"a": 1, "b": {"c": {"d": 0.5}}}) == {"a": 1.0, "b.c.d": 0.5}
    for metrics, problem in (
        ({"a": {"b": float("nan")}}, "the metric a.b must be finite"),
        ({"a": "high"}, "the metric a must be a number, got 'high'"),
        ([0.5], "a dict of numbers by name, got list"),
    ):
        with pytest.raises(EvidentiaError, match=problem):
            flat_metrics(metrics)


def test_engines_say_what_they_cannot_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, problem in (
        (("slurm",), "there is no engine named 'slurm'"),
        (("pool", 0), "workers must be a whole number of at least 1, got 0"),
        (("pool", 2, "auto"), "an address goes with the engine ray"),
    ):
        with pytest.raises(EvidentiaError, match=problem):
            make_engine(*arguments)
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'evidentia\[ray\]'"):
        make_engine("ray", workers=1).start()


def test_a_function_that_no_other_process_can_find_is_refused(tmp_path: Path) -> None:
    study = Study(name="local", title="Local", job=lambda configuration, seed: {"score": 1.0}, metrics=["score"])
    with (
        StudyStore(tmp_path / "results.sqlite") as store,
        pytest.raises(EvidentiaError, match="put the study into a file"),
    ):
        run_plan(plan_study(study), store, make_engine("pool", workers=1), progress=False)


def test_a_worker_with_other_code_says_so(write_study: Callable[..., Path]) -> None:
    study = write_study(seeds=1, methods=("a",))
    plan = plan_study(load_study(study))
    other = type(plan)(plan.study, plan.preset, plan.seeds, plan.cells, "0.0+older")
    with StudyStore(study.with_suffix(".sqlite")) as store:
        run = run_plan(other, store, progress=False)
    assert "the study was started with 0.0+older" in run.failures[0].failure
