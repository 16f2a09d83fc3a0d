"""What would fail in training, told in a sentence before anything is learnt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from evidentia._support.errors import EvidentiaError
from evidentia.learning.modes import evaluating


@torch.no_grad()
def check_network(network: nn.Module, x: Tensor, num_classes: int) -> None:
    """Require a network that gives logits for samples, and that can learn.

    Args:
        network: is shown the first two samples, in evaluation mode.
        x: labeled samples, shape `(n, ...)`.
        num_classes: K, the number of logits.

    Example:
        >>> check_network(nn.Linear(2, 3), torch.zeros(5, 2), 3)
        >>> check_network(nn.Linear(2, 5), torch.zeros(5, 2), 3)
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: the network must give logits of shape (n, 3) for 3 classes, got
        shape (2, 5) for 2 samples
    """
    shown = x[:2].clone()
    shape = tuple(shown.shape)
    try:
        with evaluating(network):
            logits = network(shown)
    except EvidentiaError:
        raise
    # A network of the user's own may fail in any way, and what it was shown is what helps.
    except Exception as error:
        raise EvidentiaError(
            f"the network ({type(network).__name__}) failed when it was shown inputs of shape {shape} and "
            f"{shown.dtype}: {error}; give a network for samples of shape {shape[1:]}, or samples of another shape"
        ) from error
    if not isinstance(logits, Tensor):
        raise EvidentiaError(
            f"the network ({type(network).__name__}) must give a tensor of logits, got {type(logits).__name__} for "
            f"inputs of shape {shape}; let it return the logits alone"
        )
    if logits.ndim != 2 or logits.shape[1] != num_classes:
        raise EvidentiaError(
            f"the network must give logits of shape (n, {num_classes}) for {num_classes} classes, got "
            f"shape {tuple(logits.shape)} for {len(shown)} samples"
        )
    if not any(parameter.requires_grad for parameter in network.parameters()):
        raise EvidentiaError(
            f"all parameters of the network ({type(network).__name__}) are frozen, so there is nothing to train; set "
            "requires_grad of some, at least of its last layer"
        )


@contextmanager
def batches_of_one_told(labeled: int, unlabeled: int, clean: int) -> Iterator[None]:
    """Inside, say in a sentence if batch norm is to normalise a single sample.

    Whether it comes to that depends on objective, robust method, order of passes and network alike, so it is found by
    trying and not guessed.

    Args:
        labeled: samples of a labeled batch.
        unlabeled: of an unlabeled one.
        clean: of one of clean samples.
    """
    try:
        yield
    except ValueError as error:
        if "more than 1 value per channel" not in str(error):
            raise
        raise EvidentiaError(
            f"batch norm cannot normalise a single sample, and training has batches of {labeled} labeled, {unlabeled} "
            f"unlabeled and {clean} clean samples; give at least 2 of each (labeled_batch, unlabeled_batch, or more "
            "samples), or take norm='none' and a network without batch norm"
        ) from error
