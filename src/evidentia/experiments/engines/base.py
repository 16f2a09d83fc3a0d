"""What every engine does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType

from evidentia._support.errors import EvidentiaError
from evidentia._support.registry import Registry
from evidentia._support.scalars import whole_number
from evidentia.experiments.job import Outcome, Task


class Engine(ABC):
    """Runs tasks, as many at a time as it has workers. Use it in a `with` block.

    Args:
        workers: how many tasks run at a time.
        address: of a cluster, for engines that know any.
    """

    def __init__(self, workers: int = 1, address: str | None = None) -> None:
        self.workers = whole_number(workers, "workers", 1)
        self.address = address

    def __enter__(self) -> Engine:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:  # noqa: B027 (nothing to do for an engine without workers of its own)
        """Get ready."""

    def stop(self) -> None:  # noqa: B027
        """Break off what runs, and let go of everything; may be called twice."""

    @property
    @abstractmethod
    def running(self) -> int:
        """How many tasks were submitted and have not ended."""

    @property
    def has_room(self) -> bool:
        """Whether another task would be begun at once."""
        return self.running < self.workers

    @abstractmethod
    def submit(self, task: Task) -> None:
        """Take on a task; only when there is room."""

    @abstractmethod
    def wait(self, seconds: float) -> list[Outcome]:
        """The tasks that have ended since; waits for at least one, but hardly longer than so many seconds.

        An engine without workers of its own runs a task to its end.
        """


ENGINES: Registry[type[Engine]] = Registry("engine")


def make_engine(name: str = "local", workers: int | None = None, address: str | None = None) -> Engine:
    """An engine by its name.

    Args:
        name: "local" (in this process), "pool" (processes) or "ray".
        workers: how many jobs at a time; by default as many as there are processors, and one in this process.
        address: of a Ray cluster; by default a local one is started.

    Raises:
        EvidentiaError: if there is no such engine, or the options do not go with it.

    Example:
        >>> make_engine("pool", workers=2).workers
        2
        >>> make_engine("local", workers=2)
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: the engine local runs one job at a time; use pool for 2 workers
    """
    kind = ENGINES[name]
    if address is not None and name != "ray":
        raise EvidentiaError(f"an address goes with the engine ray, not with {name}")
    if workers is None:
        return kind(address=address) if name == "local" else kind(_processors(), address)
    return kind(workers, address)


def _processors() -> int:
    import os

    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
