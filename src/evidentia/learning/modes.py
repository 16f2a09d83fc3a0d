"""Evaluation mode, dropout or frozen statistics for a while, and then everything as it was."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.instancenorm import _InstanceNorm

from evidentia._support.errors import EvidentiaError

# A mode is of a network and a random state of the whole process, not of a thread, so threads take turns.
_TURNS = threading.RLock()


@contextmanager
def evaluating(*models: nn.Module) -> Iterator[None]:
    """Put models in evaluation mode inside a `with` block; afterwards every layer is back in the mode it had.

    Layer by layer, because a network in training mode may hold layers that its owner has frozen. Of several threads
    one is in such a block at a time.

    Example:
        >>> net = nn.Sequential(nn.Dropout(), nn.Dropout().eval())
        >>> with evaluating(net):
        ...     net[0].training
        False
        >>> net[0].training, net[1].training
        (True, False)
    """
    with _TURNS:
        modes = {module: module.training for model in models for module in model.modules()}
        try:
            for model in models:
                model.eval()
            yield
        finally:
            for module, training in modes.items():
                module.training = training


@contextmanager
def dropping(model: nn.Module) -> Iterator[None]:
    """Let dropout go on inside a `with` block as in training, while all else is in evaluation mode (MC dropout).

    Afterwards every layer is back in the mode it had.

    Raises:
        EvidentiaError: if there is no dropout.

    Example:
        >>> net = nn.Sequential(nn.BatchNorm2d(3), nn.Dropout2d())
        >>> with dropping(net):
        ...     net[0].training, net[1].training
        (False, True)
        >>> net[0].training, net[1].training
        (True, True)
    """
    layers = dropout_layers(model)
    with evaluating(model):
        for layer in layers:
            layer.train()
        yield


def dropout_layers(model: nn.Module) -> list[nn.Module]:
    """The layers that drop something, of any kind that PyTorch has.

    Raises:
        EvidentiaError: if there is none.

    Example:
        >>> dropout_layers(nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.0)))
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: MC dropout needs a network with dropout layers, and this one has none
        of a rate above 0; build it with some, such as nn.Dropout(0.5)
    """
    layers: list[nn.Module] = [layer for layer in model.modules() if isinstance(layer, _DropoutNd) and layer.p > 0]
    if not layers:
        raise EvidentiaError(
            "MC dropout needs a network with dropout layers, and this one has none of a rate above 0; build it with "
            "some, such as nn.Dropout(0.5)"
        )
    return layers


@contextmanager
def frozen_statistics(*models: nn.Module) -> Iterator[None]:
    """Keep the running statistics of every batch norm and instance norm as they are inside a `with` block.

    In training mode, batches are still normalised by their own statistics. For passes that are no training step:
    perturbed inputs, trial steps, validation sets; and for transforms of `torch.func`, which may change no buffer.
    Works for plain and weighted batch norm, and with `torch.func.functional_call`.

    Example:
        >>> import torch
        >>> norm = nn.BatchNorm1d(2)
        >>> with frozen_statistics(norm):
        ...     y = norm(torch.randn(5, 2) + 3)
        >>> norm.running_mean
        tensor([0., 0.])
    """
    layers = [layer for model in models for layer in model.modules()]
    tracked = {layer: layer.track_running_stats for layer in layers if isinstance(layer, _BatchNorm)}
    momenta = {layer: layer.momentum for layer in layers if isinstance(layer, _InstanceNorm)}
    try:
        for batch_norm in tracked:
            # With this off, batch norm in training mode is given no buffers; in evaluation mode it uses them still.
            batch_norm.track_running_stats = False
        for instance_norm in momenta:
            # Instance norm is given its buffers in any case.
            instance_norm.momentum = 0.0
        yield
    finally:
        for batch_norm, tracking in tracked.items():
            batch_norm.track_running_stats = tracking
        for instance_norm, momentum in momenta.items():
            instance_norm.momentum = momentum
