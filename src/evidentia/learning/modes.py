"""Evaluation mode for a while, and then everything as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(*models: nn.Module) -> Iterator[None]:
    """Put models in evaluation mode inside a `with` block; afterwards every layer is back in the mode it had.

    Layer by layer, because a network in training mode may hold layers that its owner has frozen.

    Example:
        >>> net = nn.Sequential(nn.Dropout(), nn.Dropout().eval())
        >>> with evaluating(net):
        ...     net[0].training
        False
        >>> net[0].training, net[1].training
        (True, False)
    """
    modes = {module: module.training for model in models for module in model.modules()}
    try:
        for model in models:
            model.eval()
        yield
    finally:
        for module, training in modes.items():
            module.training = training
