"""Single precision inside a block, whatever numbers a program has by default."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def single_precision() -> Iterator[None]:
    """Let new tensors be of float32 inside a `with` block, or a function that this decorates.

    Example:
        >>> torch.set_default_dtype(torch.float64)
        >>> with single_precision():
        ...     torch.ones(1).dtype
        torch.float32
        >>> torch.ones(1).dtype
        torch.float64
        >>> torch.set_default_dtype(torch.float32)
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
