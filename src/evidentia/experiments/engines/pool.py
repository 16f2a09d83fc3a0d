"""Several processes of this machine.

Not `concurrent.futures`: there a worker that is killed takes the whole pool with it, and workers outlive a parent that
is. Here each worker has a pipe to the parent: a worker that dies costs its own job a retry, and one whose parent is
gone ends at once, whatever it is doing.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from evidentia._support.errors import EvidentiaError
from evidentia.experiments.engines.base import ENGINES, Engine
from evidentia.experiments.job import Outcome, Task, perform

# A fresh interpreter: PyTorch's threads do not survive a fork.
_CONTEXT = multiprocessing.get_context("spawn")
_SECONDS_TO_END = 5.0


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    key: str | None = None

    def end(self) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join(_SECONDS_TO_END)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process.close()


@ENGINES.register("pool")
class ProcessPool(Engine):
    """A pool of processes, started as they are needed."""

    def __init__(self, workers: int = 1, address: str | None = None) -> None:
        super().__init__(workers, address)
        self._workers: list[_Worker] = []

    @property
    def running(self) -> int:
        """How many tasks were submitted and have not ended."""
        return sum(worker.key is not None for worker in self._workers)

    def submit(self, task: Task) -> None:
        """Give a task to a worker that has none."""
        try:
            payload = pickle.dumps(task)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise EvidentiaError(
                f"the job cannot be given to another process ({error}); define its function in a module, or put the "
                "study into a file"
            ) from error
        worker = next((worker for worker in self._workers if worker.key is None), None) or self._start_worker()
        worker.key = task.job.key
        # A worker that has died meanwhile is found by `wait`.
        with contextlib.suppress(OSError):
            worker.pipe.send_bytes(task.job.key.encode())
            worker.pipe.send_bytes(payload)

    def wait(self, seconds: float) -> list[Outcome]:
        """The outcomes that have come in."""
        busy = [worker for worker in self._workers if worker.key is not None]
        ready = wait([worker.pipe for worker in busy], seconds)
        return [self._receive(worker) for worker in busy if worker.pipe in ready]

    def stop(self) -> None:
        """End all workers."""
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.end()

    def _receive(self, worker: _Worker) -> Outcome:
        key, worker.key = worker.key or "", None
        try:
            outcome: Outcome = pickle.loads(worker.pipe.recv_bytes())
        except (EOFError, OSError):
            self._workers.remove(worker)
            worker.end()
            return Outcome(key, worker_died=True)
        return outcome

    def _start_worker(self) -> _Worker:
        ours, theirs = _CONTEXT.Pipe()
        process = _CONTEXT.Process(target=_work, args=(theirs,), name="evidentia-worker", daemon=True)
        with _without_interrupts():
            process.start()
        # As long as the parent holds the worker's end too, it would not see the worker die.
        theirs.close()
        self._workers.append(_Worker(process, ours))
        return self._workers[-1]


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """What is started inside ignores Ctrl-C, which a terminal sends to all processes: the parent ends them in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end_with_parent() -> None:
    """A parent that was killed could not end its workers, and what they find is lost with it."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _work(pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        while True:
            key, payload = pipe.recv_bytes().decode(), pipe.recv_bytes()
            try:
                task: Task = pickle.loads(payload)
            except Exception:
                outcome = Outcome(key, failure=traceback.format_exc())
            else:
                outcome = perform(task)
            pipe.send_bytes(pickle.dumps(outcome))
