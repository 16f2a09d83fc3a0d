"""The file that a stream of `evidentia events detect` goes on from, with the clock of what it heard."""

from __future__ import annotations

import copy
import math
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple, NoReturn

from evidentia._support.files import check_writable, load_tensors, save_tensors
from evidentia.events import DetectorStream
from evidentia.events.clips import as_number
from evidentia.events.streams.stream import STATE

# Seconds from one writing to the next, so that a machine that loses its power goes on from shortly before.
_EVERY = 5.0


class StateFile:
    """Where a stream is kept; nothing happens without a file.

    Args:
        path: the file, which is tried at once, so that nothing is listened to in vain.

    Attributes:
        ahead: what the clock of the input shows beyond the time of the stream; None if it has none.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._kept: _Kept | None = None
        self._written: _Kept | None = None
        self._problem: Exception | None = None
        self.ahead: float | None = None
        if path is not None:
            check_writable(path)

    def load(self, stream: DetectorStream) -> float | None:
        """Let a stream go on from the file if it is there; the time by the input's clock up to which it was heard."""
        if self._path is None or not self._path.exists():
            return None
        tensors, content = load_tensors(self._path, STATE)
        stream.load_state_dict(tensors)
        end = as_number(content.get("clock"))
        if math.isnan(end):
            return None
        self.ahead = end - stream.time
        return end

    def keep(self, stream: DetectorStream) -> None:
        """Let what is written be the stream as it is now: all that it has detected was told."""
        if self._problem is not None:
            raise self._problem
        # A push gives a stream another place and leaves the one before as it was, so a shallow copy stays behind.
        self._kept = _Kept(copy.copy(stream), self.ahead)

    @contextmanager
    def written(self) -> Iterator[None]:
        """Write what is kept every few seconds, also while the block waits for input, and however it ends."""
        if self._path is None:
            yield
            return
        ended = threading.Event()
        writer = threading.Thread(target=self._write_until, args=(self._path, ended), daemon=True)
        writer.start()
        try:
            yield
        finally:
            ended.set()
            writer.join()
            self._write(self._path)

    def _write_until(self, path: Path, ended: threading.Event) -> None:
        try:
            while not ended.wait(_EVERY):
                self._write(path)
        # Raised where the stream is: a thread has nobody to tell it to.
        except Exception as error:
            self._problem = error

    def _write(self, path: Path) -> None:
        kept = self._kept
        if kept is None or kept is self._written:
            return
        time = kept.stream.time
        clock = None if kept.ahead is None else time + kept.ahead
        save_tensors(path, STATE, kept.stream.state_dict(), {"time": time, "clock": clock})
        self._written = kept


class _Kept(NamedTuple):
    """A stream as it was, and what the clock of its input showed beyond its time."""

    stream: DetectorStream
    ahead: float | None


@contextmanager
def exit_on_signals() -> Iterator[None]:
    """Let SIGTERM, and SIGHUP of a terminal that is closed, end the block as an exit does, which runs what is left."""
    # Python gives signals to its main thread only.
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    # Windows has no SIGHUP; nohup has it ignored, which is to stay so.
    numbers = [signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
