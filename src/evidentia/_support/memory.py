"""The memory of this process: what large tensors cost before anything is computed with them, and the most there was."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

# Just below the size, 32 MiB, up to which glibc learns from blocks that are freed.
_LARGE_BLOCK = 31 << 20


def keep_freed_memory() -> None:
    """Let what a training step frees be there for the next; for the whole process, and only where glibc is.

    glibc gives large blocks back to the system as soon as they are freed, and takes them again page by page. Once it
    has seen a block of nearly its largest threshold freed, it keeps all smaller ones, and up to twice as much at the
    end of its heap. That is a tenth of the time of a training step on a CPU, and a third of one that is differentiated
    twice.
    """
    torch.empty(_LARGE_BLOCK, dtype=torch.uint8)


def peak_memory_bytes() -> int:
    """The most memory that this process has had, since it began or since `reset_peak_memory`; 0 if nothing tells it.

    Example:
        >>> peak_memory_bytes() > 1_000_000
        True
    """
    try:
        status = Path("/proc/self/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        try:
            import resource
        except ImportError:  # Windows
            return 0
        # Linux counts kilobytes, macOS bytes.
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def reset_peak_memory() -> None:
    """Let the peak start anew, where the system can (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return
