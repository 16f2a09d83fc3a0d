"""One job after the other, in this process."""

from __future__ import annotations

from evidentia._support.errors import EvidentiaError
from evidentia.experiments.engines.base import ENGINES, Engine
from evidentia.experiments.job import Outcome, Task, perform


@ENGINES.register("local")
class InProcess(Engine):
    """The default: nothing to set up, and a debugger can follow."""

    def __init__(self, workers: int = 1, address: str | None = None) -> None:
        if workers != 1:
            raise EvidentiaError(f"the engine local runs one job at a time; use pool for {workers} workers")
        super().__init__(workers, address)
        self._task: Task | None = None

    @property
    def running(self) -> int:
        """How many tasks were submitted and have not ended."""
        return int(self._task is not None)

    def submit(self, task: Task) -> None:
        """Take on a task."""
        self._task = task

    def wait(self, seconds: float) -> list[Outcome]:
        """Run the task to its end."""
        task, self._task = self._task, None
        return [] if task is None else [perform(task)]
