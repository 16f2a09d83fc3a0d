"""The file that a stream of `evidentia events detect` goes on from, with the clock of what it heard."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

from evidentia._support.files import check_writable, load_tensors, save_tensors
from evidentia.events import DetectorStream
from evidentia.events.clips import as_number
from evidentia.events.stream import STATE

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
        self._written = time.monotonic()
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

    def save(self, stream: DetectorStream) -> None:
        """Write the stream as it is."""
        if self._path is None:
            return
        clock = None if self.ahead is None else stream.time + self.ahead
        save_tensors(self._path, STATE, stream.state_dict(), {"time": stream.time, "clock": clock})
        self._written = time.monotonic()

    def save_now_and_then(self, stream: DetectorStream) -> None:
        """Write the stream if that was a while ago."""
        if time.monotonic() - self._written >= _EVERY:
            self.save(stream)


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
