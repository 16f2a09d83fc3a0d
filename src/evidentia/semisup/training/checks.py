"""What would fail in training, told in a sentence before anything is learnt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from evidentia._support.checks import shape_or_kind
from evidentia._support.errors import EvidentiaError
from evidentia.learning.data import device_of, dtype_of
from evidentia.learning.modes import evaluating
from evidentia.semisup.networks.last_layer import LastLayer, Undivided
from evidentia.semisup.objectives import Objective
from evidentia.semisup.robust import Robust


def put_on(network: nn.Module, device: torch.device | str | None) -> torch.device:
    """Move a network to a device, and say which it is; by default it stays where it is.

    Example:
        >>> put_on(nn.Linear(2, 3), None)
        device(type='cpu')
        >>> put_on(nn.Linear(2, 3), "gpu")
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: the network cannot be put on the device 'gpu' (...); give one that
        this machine has, such as 'cpu' or 'cuda:0', or leave it out to train where the network is
    """
    try:
        place = device_of(network) if device is None else torch.device(device)
        if place.type == "meta":
            raise TypeError("it holds no numbers")
        network.to(place)
    # What PyTorch raises for a device that is not there depends on the device.
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).strip().split("\n")[0]
        raise EvidentiaError(
            f"the network cannot be put on the device {str(device)!r} ({reason}); give one that this machine has, such "
            "as 'cpu' or 'cuda:0', or leave it out to train where the network is"
        ) from error
    return place


@torch.no_grad()
def first_output(network: nn.Module, x: Tensor) -> Any:
    """What a network says of two samples, in evaluation mode; a network that fails is told what it was shown."""
    shown = x[:2].clone()
    shape = tuple(shown.shape)
    try:
        with evaluating(network):
            return network(shown)
    except EvidentiaError:
        raise
    # A network of the user's own may fail in any way, and what it was shown is what helps.
    except Exception as error:
        raise EvidentiaError(
            f"the network ({type(network).__name__}) failed when it was shown inputs of shape {shape} and "
            f"{shown.dtype}: {error}; give a network for samples of shape {shape[1:]}, or samples of another shape"
        ) from error


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
    if (dtype := dtype_of(network)) not in (torch.float32, torch.float64):
        raise EvidentiaError(
            f"the network ({type(network).__name__}) is of {dtype}, in which training is not exact enough; give it in "
            "torch.float32, network.float(), or in torch.float64"
        )
    if complex_parts := [name for name, each in network.named_parameters() if each.is_complex()]:
        raise EvidentiaError(
            f"the network ({type(network).__name__}) has complex parameters ({', '.join(complex_parts[:3])}), whose "
            "moving average and hypergradients are not defined here; keep them as real and imaginary parts, and join "
            "these by torch.view_as_complex in forward"
        )
    logits = first_output(network, x)
    if not isinstance(logits, Tensor):
        raise EvidentiaError(
            f"the network ({type(network).__name__}) must give a tensor of logits, got {type(logits).__name__} for "
            f"inputs of shape {tuple(x[:2].shape)}; let it return the logits alone"
        )
    if logits.ndim != 2 or logits.shape[1] != num_classes:
        raise EvidentiaError(
            f"the network must give logits of shape (n, {num_classes}) for {num_classes} classes, got "
            f"shape {tuple(logits.shape)} for {len(x[:2])} samples"
        )
    if not any(parameter.requires_grad for parameter in network.parameters()):
        raise EvidentiaError(
            f"all parameters of the network ({type(network).__name__}) are frozen, so there is nothing to train; set "
            "requires_grad of some, at least of its last layer"
        )


@torch.no_grad()
def divided(network: nn.Module, x: Tensor, robust: Robust) -> LastLayer:
    """A network split at its last layer, or undivided if it has none and the robust method does without.

    Args:
        network: gives logits; is shown the first two samples, in evaluation mode.
        x: labeled samples, shape `(n, ...)`.
        robust: says what it needs the last layer for.

    Example:
        >>> from evidentia.semisup import Meta, NotRobust
        >>> network, x = nn.Sequential(nn.Linear(2, 3), nn.Tanh()), torch.zeros(5, 2)
        >>> type(divided(network[0], x, Meta())).__name__, type(divided(network, x, NotRobust())).__name__
        ('LastLayer', 'Undivided')
    """
    shown = x[:2].clone()
    try:
        last = LastLayer(network)
        with evaluating(network):
            last.hidden_and_logits(shown)
    except EvidentiaError as error:
        if uses := robust.last_layer_uses():
            compiled = " and is not compiled, network._orig_mod" if hasattr(network, "_orig_mod") else ""
            raise EvidentiaError(
                f"{type(robust).__name__} needs what goes into the network's last layer for {' and '.join(uses)}; take "
                f"{' and '.join(uses.values())}, a robust method that needs no features (none, uncertainty, uasd, "
                f"l2rw, mwn), or a network that ends in an nn.Linear{compiled}: {error}"
            ) from error
        _refuse_probabilities(network, x)
        return Undivided(network)
    return last


def _refuse_probabilities(network: nn.Module, x: Tensor) -> None:
    output = first_output(network, x)
    if bool((output >= 0).all()) and torch.allclose(output.sum(-1), output.new_ones(len(output)), atol=1e-3):
        raise EvidentiaError(
            f"the network ({type(network).__name__}) gives probabilities, and logits are needed; leave its final "
            "softmax out"
        )


def check_statistics(network: nn.Module, update: int) -> None:
    """Require running statistics that are finite, as a network cannot predict by others.

    The loss does not tell: in training, batches are normalised by their own statistics.

    Args:
        network: in training.
        update: the number of updates done.
    """
    for name, buffer in network.named_buffers():
        # Not all buffers: a network of the user's own may keep what is infinite on purpose, such as a mask.
        if name.endswith(("running_mean", "running_var")) and not bool(buffer.isfinite().all()):
            raise EvidentiaError(
                f"the network's running statistics ({name}) became infinite by update {update}: the samples are too "
                "large, or training has diverged; give standardise=True or scale the samples, or lower the learning "
                "rate"
            )


def check_costs(costs: Tensor, logits: Tensor, objective: Objective, update: int) -> None:
    """Require finite costs of an objective, whose fault it is if the network's logits are finite.

    Args:
        costs: shape `(B,)`.
        logits: what they are of.
        objective: gave them.
        update: the number of updates done.
    """
    wrong = int((~costs.isfinite()).sum())
    if not wrong:
        return
    if not bool(logits.isfinite().all()):
        raise loss_error(costs.mean().item(), update)
    otherwise = "; or lower the learning rate" if update else ""
    raise EvidentiaError(
        f"per_sample of {type(objective).__name__} gave costs that are not finite for {wrong} of {len(costs)} samples "
        f"in update {update}, from logits that are finite; look at its logarithms, roots, divisions and targets"
        f"{otherwise}"
    )


def check_weights(weights: Tensor, samples: int, robust: Robust) -> Tensor:
    """Require one finite weight a sample: another shape would be multiplied with the costs all the same."""
    if not isinstance(weights, Tensor) or weights.shape != (samples,):
        raise EvidentiaError(
            f"weigh of {type(robust).__name__} must give one weight a sample, shape ({samples},), got "
            f"{shape_or_kind(weights)}"
        )
    if wrong := int((~weights.isfinite()).sum()):
        raise EvidentiaError(
            f"weigh of {type(robust).__name__} gave weights that are not finite for {wrong} of {samples} samples; look "
            "at its divisions, roots and logarithms"
        )
    return weights


def loss_error(loss: float, update: int, culprit: Objective | None = None) -> EvidentiaError:
    """What to do about a loss that is not finite.

    Args:
        loss: its value.
        update: the number of updates done.
        culprit: the objective, if only its part of the loss is not finite.

    Example:
        >>> print(loss_error(float("nan"), 7))
        the loss became nan in update 7; lower the learning rate
    """
    if culprit is not None:
        return EvidentiaError(
            f"the unlabeled part of the loss, by {type(culprit).__name__}, became {loss} in update {update} from "
            "finite costs and weights; give it a smaller weight, or look at its coefficient"
        )
    if update:
        return EvidentiaError(f"the loss became {loss} in update {update}; lower the learning rate")
    return EvidentiaError(
        f"the loss is {loss} before any step was made: the network gives logits that are not finite for some samples; "
        "give standardise=True or scale the samples, or look at the network's first weights"
    )


def check_confidence(confidence: Tensor) -> None:
    """Require that a trained network says something of every sample of the pool, which may hold ones never drawn."""
    if wrong := int((~confidence.isfinite()).sum()):
        raise EvidentiaError(
            f"what the trained network says of {wrong} of {len(confidence)} samples of the pool is not finite: they "
            "are too large; leave them out, or give standardise=True or scale the samples (network_ is there all the "
            "same)"
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
