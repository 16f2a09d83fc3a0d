"""What large tensors cost before anything is computed with them."""

from __future__ import annotations

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
