"""Randomness that follows from a seed and an epoch's number, so that training can be taken up again anywhere."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def seeded(seed: int, epoch: int, device: torch.device | None = None) -> Iterator[None]:
    """Seed PyTorch, numpy and `random` inside a `with` block; afterwards their random states are as they were before.

    The latter two are for what users bring, such as augmentations.

    Args:
        seed: the seed of the run.
        epoch: counted from 0; -1 for what comes before the first.
        device: a CUDA device that is to be seeded, and its random state kept, too.

    Example:
        >>> with seeded(0, epoch=3):
        ...     first = torch.rand(1)
        >>> with seeded(0, epoch=3):
        ...     bool(torch.rand(1) == first)
        True
    """
    devices = [device] if device is not None and device.type == "cuda" else []
    number = seed * 1_000_003 + epoch + 1
    # The old generator, because that is the one without an owner.
    before, numpy_before = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=devices):
        # Not torch.manual_seed: it notes down the whole stack for devices that are not there, which takes longer than
        # a training step of a small network.
        torch.default_generator.manual_seed(number)
        for each in devices:
            with torch.cuda.device(each):
                torch.cuda.manual_seed(number)
        random.seed(number)
        np.random.seed(number % 2**32)  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(before)
            np.random.set_state(numpy_before)  # noqa: NPY002
