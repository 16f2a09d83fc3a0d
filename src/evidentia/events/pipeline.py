"""From the frames of one segment to decisions: network, evidence, fusion heads, as one function of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from evidentia._support.checks import validation
from evidentia.events.evidence import Activation, Loss, beta_parameters
from evidentia.events.fusion import FusionHead, FusionState
from evidentia.events.network import EventNetwork

Fields = tuple[Tensor, Tensor, Tensor, Tensor]
"""Belief, disbelief, vacuity and base rate of opinions."""


class Decision(NamedTuple):
    """What one head makes of a segment of B streams."""

    calls: Tensor
    """Bool, shape `(B, K)`, or `(B, 1)` for a head of no class in particular."""
    opinion: Fields
    """Each of shape `(B, 1, K)`."""
    state: FusionState
    """To go on with."""


class Engine(Protocol):
    """What runs the pipeline: PyTorch, ONNX Runtime, or another."""

    def step(
        self, frames: Tensor, begun: Tensor, caches: dict[str, Tensor], states: Sequence[FusionState]
    ) -> tuple[dict[str, Tensor], list[Decision]]:
        """One segment of B streams.

        Args:
            frames: shape `(B, segment, F)`.
            begun: how many segments the network has seen of each stream, shape `(B,)`.
            caches: what its layers keep of them.
            states: what each head keeps of them.

        Returns:
            The new caches, and what each head decides.
        """


class Pipeline(nn.Module):
    """The network and the heads of a detector; an `Engine` by itself.

    Args:
        network: in evaluation mode.
        heads: the head that decides, and the one that warns if there is one.
        loss: what the network was trained by.
        activation: from its outputs to evidence.
    """

    def __init__(self, network: EventNetwork, heads: Sequence[FusionHead], loss: Loss, activation: Activation) -> None:
        super().__init__()
        self.network, self.heads = network, tuple(heads)
        self.loss, self.activation = loss, activation

    def step(
        self, frames: Tensor, begun: Tensor, caches: dict[str, Tensor], states: Sequence[FusionState]
    ) -> tuple[dict[str, Tensor], list[Decision]]:
        """One segment by PyTorch."""
        outputs, kept = self.network.advance(frames, begun, caches)
        alpha, beta = beta_parameters(outputs, self.loss, self.activation)
        decisions = []
        # What comes out of our own network and activation need not be checked again in every segment.
        with validation(False):
            for head, state in zip(self.heads, states, strict=True):
                fusion, after = head.push(state, alpha, beta)
                opinion = fusion.opinion
                fields = (opinion.belief, opinion.disbelief, opinion.vacuity, opinion.base_rate)
                decisions.append(Decision(head.calls(fusion)[:, 0], fields, after))
        return kept, decisions

    def start(self, batch: int = 1) -> list[FusionState]:
        """What the heads keep of streams that have not begun."""
        return [head.initial_state(self.network.num_classes, (batch,), torch.float32) for head in self.heads]
