"""Who works on a job: whether a runner still lives can be told at once on its machine, and by its lease elsewhere.

A runner holds a lock on a small file beside the store. The system lets go of the lock when the runner ends, however
that comes about, so that another on the same machine need not wait for the lease of one that was killed.
"""

from __future__ import annotations

import contextlib
import os
import platform
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from evidentia._support.locks import lock_file


class Owner:
    """A runner as the store knows it.

    Args:
        store: the path of the store.

    Attributes:
        name: the machine and a name of the runner's own.
    """

    def __init__(self, store: Path) -> None:
        self._store = store
        self._handle: int | None = None
        self.name = f"{_machine()}/{uuid.uuid4().hex}"

    def hold(self) -> None:
        """Take the lock, before the first job is claimed."""
        if self._handle is None:
            self._handle = os.open(_lock_file(self._store, self.name), os.O_CREAT | os.O_RDWR, 0o644)
            lock_file(self._handle)

    def let_go(self) -> None:
        """Give the lock back and remove its file."""
        if self._handle is not None:
            # In this order, because Windows removes no file that is open.
            os.close(self._handle)
            _lock_file(self._store, self.name).unlink(missing_ok=True)
            self._handle = None

    def is_gone(self, other: str) -> bool:
        """Whether another runner is known to have ended; False if that cannot be told."""
        if other.partition("/")[0] != _machine():
            return False
        file = _lock_file(self._store, other)
        try:
            handle = os.open(file, os.O_RDWR)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        try:
            gone = lock_file(handle, wait=False)
            if gone:
                file.unlink(missing_ok=True)
            return gone
        finally:
            os.close(handle)


@contextmanager
def heartbeat(beat: Callable[[], None], seconds: float) -> Iterator[None]:
    """Call `beat` every so often, in a thread, as long as the block lasts."""
    over = threading.Event()

    def keep_on() -> None:
        while not over.wait(seconds):
            # A store that is busy or gone for a moment: the next beat may come through, and the lease outlasts some.
            with contextlib.suppress(Exception):
                beat()

    thread = threading.Thread(target=keep_on, name="evidentia-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _lock_file(store: Path, owner: str) -> Path:
    return store.with_name(f"{store.name}-runner-{owner.partition('/')[2]}")


def _machine() -> str:
    """The same for all processes of one running system, in containers too."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return platform.node().replace("/", "-")
