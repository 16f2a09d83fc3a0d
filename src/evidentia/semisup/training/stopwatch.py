"""How long a training took, over all its sittings."""

from __future__ import annotations

import time
from pathlib import Path

import torch

from evidentia._support.files import write_text


class Stopwatch:
    """Wall time of a run; of one that is broken off, that up to the last checkpoint of each sitting is kept.

    Args:
        checkpoint: the file from which the run goes on, if there is one; times are kept in a file beside it.
    """

    def __init__(self, checkpoint: Path | None) -> None:
        # The first optimiser of a process imports much of PyTorch: seconds that are not the first method's.
        torch.optim.Adam([torch.zeros(1, requires_grad=True)])
        self._start, self._earlier, self._checkpoint = time.time(), 0.0, checkpoint
        if checkpoint is None:
            return
        file = checkpoint.with_suffix(".seconds")
        if checkpoint.exists() and file.exists():
            earlier, start = _times(file)
            self._earlier = earlier + max(0.0, checkpoint.stat().st_mtime - start)
        write_text(file, f"{self._earlier} {self._start}")

    @property
    def seconds(self) -> float:
        """Of all sittings so far; one that finds the run complete, and so writes no checkpoint, adds nothing."""
        if self._earlier and self._checkpoint is not None and self._checkpoint.stat().st_mtime < self._start:
            return self._earlier
        return self._earlier + time.time() - self._start


def _times(file: Path) -> tuple[float, float]:
    """Seconds before a sitting, and when it began; a file that says neither, as a full disk leaves it, counts as 0."""
    try:
        earlier, start = map(float, file.read_text().split())
    except ValueError:
        return 0.0, file.stat().st_mtime
    return earlier, start
