"""Monte Carlo dropout: what a network says of clips when its dropout goes on, several times."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from evidentia._support.scalars import whole_number
from evidentia.events.evidence import Activation, Loss
from evidentia.events.networks.network import EventNetwork
from evidentia.events.training.fitting import segment_beta
from evidentia.learning.modes import dropping
from evidentia.learning.seeding import seeded

# The published time of a segment with Monte Carlo dropout is that of so many passes.
USUAL_PASSES = 5


def dropout_samples(
    network: EventNetwork,
    frames: Sequence[Tensor],
    lengths: Tensor,
    samples: int = USUAL_PASSES,
    *,
    loss: Loss = "sigmoid",
    activation: Activation = "exp",
    seed: int = 0,
) -> Tensor:
    """Monte Carlo dropout: sampled probabilities of each clip, segment and class, shape `(samples, N, T, K)`.

    What the samples say of each segment, and how much they differ, the heads `entropy`, `epistemic` and `aleatoric`
    decide by with `fuse_samples`. Of a trained detector give `detector.network_`, `detector.inputs_.frames(clip)` of
    each clip, `detector.truth(clips).lengths`, and `loss` and `activation` of `detector.settings`.

    Batch norm holds its statistics; only dropout is as in training. The network is left in the modes it had.

    Args:
        network: a network with dropout.
        frames: of each clip, shape `(T, F)`.
        lengths: segments of each clip, shape `(N,)`.
        samples: how many.
        loss: what the network was trained by.
        activation: from its outputs to evidence.
        seed: of the random numbers.

    Raises:
        EvidentiaError: if the network has no dropout, or no sample is asked for.

    Example:
        >>> from evidentia.events import EpistemicFilter, make_network
        >>> net = make_network("crnn", features=128, num_classes=3)
        >>> samples = dropout_samples(net, [torch.randn(40, 128)], torch.tensor([10]), samples=5)
        >>> samples.shape
        torch.Size([5, 1, 10, 3])
        >>> head = EpistemicFilter(max_uncertainty=0.1)
        >>> head.calls(head.fuse_samples(samples)).shape
        torch.Size([1, 10, 3])
    """
    whole_number(samples, "samples", 1)
    with dropping(network), seeded(seed, -4):
        found = [segment_beta(network, frames, lengths, loss, activation) for _ in range(samples)]
    return torch.stack([alpha / (alpha + beta) for alpha, beta, _ in found])
