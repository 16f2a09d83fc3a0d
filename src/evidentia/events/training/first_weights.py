"""What a network has before its first step of training: how often events are, and what another one has learnt."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia.events.front_end.inputs import NEAR_RATE, Inputs, SoundInputs
from evidentia.events.networks.network import EventNetwork
from evidentia.events.training.loop import Examples

if TYPE_CHECKING:
    from evidentia.events.estimator import EventDetector


def start_at_base_rates(network: EventNetwork, examples: Examples) -> None:
    r"""Let a new network begin with what is known before it looks: how often each class is present.

    Sets the biases of its last layer to $\ln(S p)$ and $\ln(S (1 - p))$ for a strength S of 10, which the activation
    exp makes evidence of; otherwise the first epochs go into learning that most segments are quiet.
    """
    valid = (examples.batch.weight.sum(2, keepdim=True) > 0).float()
    share = ((examples.batch.target * valid).sum((0, 1)) / valid.sum()).clamp(1e-3, 1 - 1e-3)
    with torch.no_grad():
        network.head.bias.copy_(torch.log(10 * torch.stack([share, 1 - share], -1)).flatten())


def take_over(network: EventNetwork, learnt: EventNetwork) -> None:
    """Begin with what another network has learnt, of other classes or of the same: all layers but those `of_classes`.

    How inputs are standardised is not taken either: their numbers may be others.

    Example:
        >>> from evidentia.events import make_network
        >>> learnt, network = (make_network("temporal", features=3, num_classes=n) for n in (5, 2))
        >>> take_over(network, learnt)
        >>> taken = [torch.equal(a, b) for a, b in zip(network.parameters(), learnt.parameters()) if a.shape == b.shape]
        >>> all(taken)
        True
    """
    own, taken = _body(network), _body(learnt)
    alike = own.keys() == taken.keys() and all(own[name].shape == taken[name].shape for name in own)
    if type(network) is not type(learnt) or not alike:
        theirs, ours = (
            f"{type(each).__name__} of {sum(weight.numel() for weight in each.parameters()):,} weights"
            for each in (learnt, network)
        )
        raise EvidentiaError(
            f"the detector to start from has a {theirs}, and this one a {ours}: but for the classes they must be the "
            "same; give the same network, size and network_settings"
        )
    network.load_state_dict(taken, strict=False)


def _body(network: EventNetwork) -> dict[str, Tensor]:
    """All weights that are neither of the classes nor of the numbers that come in."""
    own = {*network.of_classes, "standardise"}
    return {name: tensor for name, tensor in network.state_dict().items() if name.partition(".")[0] not in own}


def start_from(start: EventDetector | None, network: EventNetwork, inputs: Inputs, columns: tuple[str, ...]) -> None:
    """Begin with the network of a trained detector, if there is one, which must take in what the new one does.

    Args:
        start: the detector.
        network: the new network.
        inputs: its front end.
        columns: the names of its channels, if they have names.
    """
    if start is None:
        return
    learnt, theirs = start.network_, start.inputs_
    if type(theirs) is not type(inputs) or theirs.sample_shape != inputs.sample_shape:
        had, has = (
            f"series of {each.sample_shape[0]} channels" if each.sample_shape else "sound" for each in (theirs, inputs)
        )
        raise EvidentiaError(
            f"the detector to start from is for {had}, and these clips are {has}; give such clips, or train without it"
        )
    if not math.isclose(theirs.sample_rate, inputs.sample_rate, rel_tol=NEAR_RATE):
        raise EvidentiaError(
            f"the detector to start from takes {theirs.sample_rate:g} samples a second, and these clips have "
            f"{inputs.sample_rate:g}; resample them, or train without it"
        )
    if start.columns_ and columns and start.columns_ != columns:
        raise EvidentiaError(
            f"the detector to start from has the channels {', '.join(start.columns_)}, and these clips have "
            f"{', '.join(columns)}; give them in its order and by its names"
        )
    take_over(network, learnt)


def fit_to(network: EventNetwork, examples: Examples, inputs: Inputs, *, new: bool) -> None:
    """Let a network begin with what is known of its examples: how large numbers are, and how often events.

    Args:
        network: the network.
        examples: what it will be trained on.
        inputs: the front end.
        new: whether its last layer has learnt nothing yet.
    """
    if new:
        start_at_base_rates(network, examples)
    if not isinstance(inputs, SoundInputs):
        network.take_units(examples.batch.frames)
