"""From the frames of one segment to decisions: network, evidence, fusion heads, as one function.

What a stream keeps are arrays. PyTorch sees them as tensors of the same memory; other engines take them as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from evidentia._support.checks import validation
from evidentia.events.evidence import Activation, Loss, beta_parameters
from evidentia.events.fusion import FusionHead
from evidentia.events.networks.network import EventNetwork
from evidentia.events.state import Array, Arrays
from evidentia.opinions import BinomialOpinion

Tensors: TypeAlias = dict[str, Tensor]


class Decision(NamedTuple):
    """What one head makes of a segment of B streams."""

    calls: Array
    """Bool, shape `(B, K)`, or `(B, 1)` for a head of no class in particular."""
    opinion: Callable[[], BinomialOpinion]
    """Gives the opinions behind them, of shape `(B, K)`; most segments of most streams are never asked."""


class Ran(NamedTuple):
    """What an engine makes of a segment of B streams."""

    calls: Sequence[Array]
    """Of each head, see `Decision`."""
    alpha: Array
    """Evidence for plus 1 of the segments that the heads look at, the present one last, shape `(B, m, K)`."""
    beta: Array
    """The same of the evidence against."""
    caches: Arrays
    """What the network's layers keep now, by the names of `Pipeline.start`."""


class Engine(Protocol):
    """What runs network and heads: PyTorch, ONNX Runtime, or another."""

    def run(self, frames: Array, begun: Array, kept: Arrays) -> Ran:
        """One segment of B streams; arguments are as for `Pipeline.step`."""


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
        # A setting that is not one for each class is told here, and not by the first samples of a stream.
        nothing = torch.ones(1, network.num_classes)
        for head in heads:
            head.calls(head.fuse(nothing, nothing))
        self.network, self.heads = network, tuple(heads)
        self.loss, self.activation = loss, activation
        self._caches = {name: f"network/{name}" for name in network.start().caches}
        self._length = max(head.span for head in heads) - 1
        # Streams as old as this have full windows in all heads.
        self._settled = max(head.span - 1 + head.unsettled for head in heads)

    def start(self, batch: int = 1) -> Arrays:
        """What is kept of streams that have not begun: the network's caches, and the latest segments for the heads."""
        kept = {self._caches[name]: cache.numpy() for name, cache in self.network.start(batch).caches.items()}
        nothing = np.ones((batch, self._length, self.network.num_classes), dtype=np.float32)
        return {**kept, "alpha": nothing, "beta": nothing.copy()} if self._length else kept

    @torch.inference_mode()
    def run(self, frames: Array, begun: Array, kept: Arrays) -> Ran:
        """One segment by PyTorch."""
        tensors = {name: torch.from_numpy(array) for name, array in kept.items()}
        alpha, beta, caches = self.evidence(torch.from_numpy(frames), torch.from_numpy(begun), tensors)
        calls = [called.numpy() for called in self.calls(alpha, beta, self.young(begun))]
        return Ran(calls, alpha.numpy(), beta.numpy(), {name: cache.numpy() for name, cache in caches.items()})

    def evidence(self, frames: Tensor, begun: Tensor, kept: Tensors) -> tuple[Tensor, Tensor, Tensors]:
        """Alpha, beta and caches of `Ran`, as tensors: what exporters look at."""
        names = self._caches
        outputs, caches = self.network.advance(frames, begun, {name: kept[full] for name, full in names.items()})
        alpha, beta = beta_parameters(outputs, self.loss, self.activation)
        if self._length:
            alpha, beta = torch.cat([kept["alpha"], alpha], dim=1), torch.cat([kept["beta"], beta], dim=1)
        return alpha, beta, {full: caches[name] for name, full in names.items()}

    def calls(self, alpha: Tensor, beta: Tensor, seen: Tensor | None) -> list[Tensor]:
        """What each head decides about the last of some segments; `seen` is as for `FusionHead.score`."""
        # What comes out of our own network and activation need not be checked again in every segment.
        with validation(False):
            return [head.called(head.score(alpha, beta, seen)) for head in self.heads]

    def young(self, begun: Array) -> Tensor | None:
        """How many segments the streams have had; None if the windows of all are full."""
        return torch.from_numpy(begun) if min(begun.tolist()) < self._settled else None

    def step(
        self, frames: Array, begun: Array, kept: Arrays, engine: Engine | None = None
    ) -> tuple[Arrays, list[Decision]]:
        """One segment of B streams.

        Args:
            frames: shape `(B, segment, F)`.
            begun: how many segments have been seen of each stream, shape `(B,)`.
            kept: what layers and heads keep of them, by the names of `start`.
            engine: what runs it; PyTorch if None.

        Returns:
            What they keep now, and what each head decides.
        """
        calls, alpha, beta, after = (self if engine is None else engine).run(frames, begun, kept)
        if self._length:
            after = {**after, "alpha": alpha[:, 1:], "beta": beta[:, 1:]}
        return after, [
            Decision(called, partial(self._opinion, head, alpha, beta, begun))
            for head, called in zip(self.heads, calls, strict=True)
        ]

    def _opinion(self, head: FusionHead, alpha: Array, beta: Array, begun: Array) -> BinomialOpinion:
        return head.opinion(torch.from_numpy(alpha), torch.from_numpy(beta), self.young(begun))
