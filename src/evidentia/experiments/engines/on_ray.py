"""A Ray cluster: one that is there already, or a local one that is started for the study."""

from __future__ import annotations

import logging
from typing import Any

from evidentia._support.errors import EvidentiaError
from evidentia._support.extras import from_extra
from evidentia.experiments.engines.base import ENGINES, Engine
from evidentia.experiments.job import Outcome, Task, perform


@ENGINES.register("ray")
class OnRay(Engine):
    """Jobs as tasks of Ray, with a processor each.

    The workers need the same evidentia (a job says so if they have another), and the data sets under the same path.
    Results come back to this process, which alone writes the store.

    Args:
        workers: how many jobs at a time; also the processors of a local cluster.
        address: of a running cluster, such as `auto`, `192.168.0.7:6379` or `ray://head:10001`; None starts a local
            one, which ends with the study.
    """

    def __init__(self, workers: int = 1, address: str | None = None) -> None:
        super().__init__(workers, address)
        self._ray: Any = None
        self._ours = False
        self._keys: dict[Any, str] = {}

    def start(self) -> None:
        """Connect to the cluster.

        Raises:
            MissingExtraError: if Ray is not installed.
            EvidentiaError: if the cluster cannot be reached.
        """
        with from_extra("ray", "ray", "the engine ray"):
            import ray
        self._ray = ray
        if not ray.is_initialized():
            options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
            if self.address is None:
                options |= {"num_cpus": self.workers, "include_dashboard": False}
            try:
                ray.init(address=self.address or "local", **options)
            except (ConnectionError, RuntimeError, ValueError) as error:
                where = self.address or "local"
                raise EvidentiaError(f"no Ray cluster can be reached at {where!r}: {_reason(error)}") from error
            self._ours = True
        # The runner itself tries again, as with every engine.
        self._perform = ray.remote(perform).options(num_cpus=1, max_retries=0)

    def stop(self) -> None:
        """Break off what runs; a local cluster ends."""
        if self._ray is None:
            return
        for reference in self._keys:
            self._ray.cancel(reference, force=True)
        self._keys = {}
        if self._ours:
            self._ray.shutdown()
        self._ray = None

    @property
    def running(self) -> int:
        """How many tasks were submitted and have not ended."""
        return len(self._keys)

    def submit(self, task: Task) -> None:
        """Give a task to the cluster."""
        self._keys[self._perform.remote(task)] = task.job.key

    def wait(self, seconds: float) -> list[Outcome]:
        """The outcomes that have come in."""
        ready, _ = self._ray.wait(list(self._keys), num_returns=1, timeout=seconds)
        return [self._outcome(reference, self._keys.pop(reference)) for reference in ready]

    def _outcome(self, reference: Any, key: str) -> Outcome:
        errors = self._ray.exceptions
        try:
            outcome: Outcome = self._ray.get(reference)
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError, errors.ObjectLostError):
            return Outcome(key, worker_died=True)
        except errors.RayError as error:
            # Such as a worker without evidentia, or with another Python.
            return Outcome(key, failure=str(error))
        return outcome


def _reason(error: BaseException) -> str:
    """What went wrong; Ray says that a token is missing only in the error behind the error."""
    behind: BaseException | None = error
    while behind is not None:
        if "token" in str(behind).lower():
            return (
                f"{error}; it asks for a token, as clusters of `ray start` do: set RAY_AUTH_MODE=token here too, and "
                "RAY_AUTH_TOKEN if the token is not in Ray's own place"
            )
        behind = behind.__cause__
    return str(error)
