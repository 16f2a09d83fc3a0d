"""What a network makes of many samples: hidden features and logits, in parts that fit in memory."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from evidentia._support.errors import EvidentiaError
from evidentia.learning.modes import evaluating
from evidentia.semisup.networks.calls import call_with, in_full
from evidentia.semisup.networks.last_layer import LastLayer

# At twice as many, oneDNN turns to another way of convolving images of one channel, which takes several times as long.
BATCH = 512
# A pass without gradients holds a layer or two at a time, an update every layer, for each pass of its objective: six
# times as many samples take no more memory in a network that is deep enough to fill it.
_TIMES_AN_UPDATE = 6


def pass_size(update: int) -> int:
    """How many samples go through a network at once outside of updates, so that memory follows the user's batches.

    Args:
        update: samples of an update, labeled and unlabeled.

    Example:
        >>> pass_size(4), pass_size(200)
        (24, 512)
    """
    return min(BATCH, _TIMES_AN_UPDATE * update)


@torch.no_grad()
def hidden_and_logits(network: nn.Module, x: Tensor, batch_size: int = BATCH) -> tuple[Tensor, Tensor]:
    """The last hidden layer, shape `(n, D)`, and the logits, `(n, K)`, of many samples.

    In evaluation mode and without gradients; the network is left in the mode that it was in.

    Args:
        network: ends in an `nn.Linear`.
        x: samples, shape `(n, ...)`.
        batch_size: how many go through the network at once.

    Example:
        >>> from evidentia.semisup.networks.models import MLP
        >>> network = MLP(2, num_classes=3, hidden=(8,))
        >>> hidden, logits = hidden_and_logits(network, torch.randn(5, 2))
        >>> hidden.shape, logits.shape, network.training
        (torch.Size([5, 8]), torch.Size([5, 3]), True)
    """
    _check_samples(x)
    last = LastLayer(network)
    with evaluating(network):
        parts = [last.hidden_and_logits(part) for part in x.split(batch_size)]
    hidden, logits = (torch.cat(both) for both in zip(*parts, strict=True))
    return hidden, logits


@torch.no_grad()
def logits_in_parts(
    network: nn.Module, x: Tensor, batch_size: int = BATCH, *, tensors: Mapping[str, Tensor] | None = None
) -> Tensor:
    """The output for many samples of any network, in evaluation mode and without gradients.

    Args:
        network: any network.
        x: samples, shape `(n, ...)`.
        batch_size: how many go through the network at once.
        tensors: parameters and buffers to use in place of the network's own.

    Example:
        >>> logits_in_parts(nn.Linear(2, 3), torch.randn(5, 2), batch_size=2).shape
        torch.Size([5, 3])
    """
    _check_samples(x)
    own = dict(tensors) if tensors is not None else {}
    with evaluating(network):
        # Copies: a network that works in place must not change the samples.
        return in_full(torch.cat([call_with(network, own, part.clone()) for part in x.split(batch_size)]))


def pool_features(x: Tensor, network: nn.Module | None = None, batch_size: int = BATCH) -> Tensor:
    """One vector a sample to tell like from unlike by, shape `(n, D)`.

    Args:
        x: samples, shape `(n, ...)`.
        network: gives its last hidden layer; without one, as before any training, the samples themselves are used.
        batch_size: how many go through the network at once.

    Example:
        >>> pool_features(torch.zeros(5, 1, 8, 8)).shape
        torch.Size([5, 64])
    """
    if network is None:
        _check_samples(x)
        return x.detach().flatten(1)
    return hidden_and_logits(network, x, batch_size)[0]


def _check_samples(x: Tensor) -> None:
    if x.ndim < 2 or not len(x):
        raise EvidentiaError(f"samples of shape (n, ...) with n >= 1 are needed, got shape {tuple(x.shape)}")
