r"""Heads over clip features that another network has made of a video: one vector a step of the stream.

Three ways to put the present in the light of the past, after the thesis' baselines for human action (section 4.7): two
speeds (SlowFast, Feichtenhofer et al. 2019), a memory asked again and again (AIA, Tang et al. 2020), and relations of
relations (ACAR, Pan et al. 2021). They are in the *style* of these: the originals reach into the video itself, its
actors and objects, where these have one vector for all of it. All look back only.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from evidentia._support.scalars import whole_number
from evidentia.events.networks.conformer import FeedForward
from evidentia.events.networks.layers import CausalAttention, CausalConv1d, Flow, Recent
from evidentia.events.networks.network import NETWORKS, EventNetwork, Normalisation, Size, check_size


class ClipHead(EventNetwork):
    """What the three share: inputs of any width, the mean of a segment's steps, and a past of fixed length.

    Args:
        features: numbers a step.
        num_classes: K.
        size: "dcase", 0.8M parameters for 256 features, or "small", 60k.
        segment: steps that share one output.
        dropout: rate on hidden layers.
        normalisation: of the inputs, "fixed" or "running"; see `EventNetwork`.
        memory: how many segments back it sees.
    """

    _widths: ClassVar[dict[str, int]] = {}

    def __init__(
        self,
        features: int,
        num_classes: int,
        size: Size = "small",
        segment: int = 1,
        dropout: float = 0.2,
        normalisation: Normalisation = "fixed",
        memory: int = 15,
    ) -> None:
        check_size(size)
        super().__init__(features, num_classes, segment, normalisation)
        whole_number(memory, "memory", 1)
        self.dropout = nn.Dropout(dropout)
        self._build(self._widths[size], memory, dropout)

    @abstractmethod
    def _build(self, width: int, memory: int, dropout: float) -> None:
        """Make the layers, for a hidden width and a past of so many segments."""

    def _segments(self, x: Tensor) -> Tensor:
        steps: Tensor = x.unflatten(1, (-1, self.segment)).mean(2)
        return steps


@NETWORKS.register("slowfast")
class SlowFastHead(ClipHead):
    """A wide path over the mean of the last segments, and a narrow one, an eighth as wide, over each of them.

    What the fast path finds is given to the slow one too; both are read. Arguments are as for `ClipHead`.

    Example:
        >>> SlowFastHead(features=256, num_classes=60)(torch.randn(2, 15, 256)).shape
        torch.Size([2, 15, 60, 2])
    """

    _widths: ClassVar[dict[str, int]] = {"small": 128, "dcase": 672}

    def _build(self, width: int, memory: int, dropout: float) -> None:
        narrow = width // 8
        self.slow = nn.Linear(self.features, width)
        self.recent = Recent(width, memory + 1)
        self.fast = nn.Linear(self.features, narrow)
        self.first = CausalConv1d(narrow, narrow, 5)
        self.second = CausalConv1d(narrow, narrow, 5)
        self.merge = nn.Linear(width + narrow, width)
        self._finish(width + narrow)

    def encode(self, x: Tensor, flow: Flow) -> Tensor:
        """Both paths, side by side."""
        steps = self._segments(x)
        fast = self.first(self.fast(steps).relu().transpose(1, 2), flow).relu()
        fast = self.second(fast, flow).relu().transpose(1, 2)
        # Before a stream there are zeros, which must not count in its mean.
        window = self.recent(self.slow(steps).relu(), flow)
        slow = window.sum(2) / self.recent.present(flow, steps.shape[1]).sum(2, keepdim=True)
        merged = self.merge(torch.cat([slow, fast], dim=-1)).relu()
        hidden: Tensor = self.dropout(torch.cat([merged, fast], dim=-1))
        return hidden


@NETWORKS.register("aia")
class AIAHead(ClipHead):
    """Attention of the present over a memory of clip features, several times, each on a mix of all before it.

    The memory holds the features themselves, not what was made of them, as AIA's does. Arguments are as for `ClipHead`.

    Example:
        >>> AIAHead(features=256, num_classes=60)(torch.randn(2, 15, 256)).shape
        torch.Size([2, 15, 60, 2])
    """

    _widths: ClassVar[dict[str, int]] = {"small": 44, "dcase": 176}

    def _build(self, width: int, memory: int, dropout: float) -> None:
        rounds = 3
        self.project = nn.Linear(self.features, width)
        self.attention = nn.ModuleList(CausalAttention(width, 4, memory) for _ in range(rounds))
        self.feed = nn.ModuleList(FeedForward(width, 2, dropout) for _ in range(rounds))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(rounds + 1))
        self.mix = nn.ParameterList(torch.zeros(before + 1) for before in range(rounds))
        self._finish(width)

    def encode(self, x: Tensor, flow: Flow) -> Tensor:
        """What the last round makes of the present."""
        found = [self.norms[-1](self.project(self._segments(x)))]
        bank = found[0]
        for attention, feed, norm, mix in zip(self.attention, self.feed, self.norms, self.mix, strict=False):
            query = torch.einsum("n...,n->...", torch.stack(found), mix.softmax(0))
            change = query + self.dropout(attention(norm(query), flow, memory=bank))
            found.append(change + feed(change))
        hidden: Tensor = found[-1]
        return hidden


@NETWORKS.register("acar")
class ACARHead(ClipHead):
    r"""Attention over how the present relates to each segment of the past, not over the past itself.

    First-order relations $r_{ts} = \mathrm{relu}(A x_t + C x_s)$ with all s in memory; then, as a second order,
    attention of the present's relation to itself over them,
    $\sum_s \mathrm{softmax}_s(q(r_{tt})\, k(r_{ts})) \, v(r_{ts})$. Arguments are as for `ClipHead`.

    Example:
        >>> ACARHead(features=256, num_classes=60)(torch.randn(2, 15, 256)).shape
        torch.Size([2, 15, 60, 2])
    """

    _widths: ClassVar[dict[str, int]] = {"small": 72, "dcase": 384}

    def _build(self, width: int, memory: int, dropout: float) -> None:
        self.actor = nn.Linear(self.features, width)
        self.context = nn.Linear(self.features, width, bias=False)
        self.recent = Recent(width, memory + 1)
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, width)
        self._finish(2 * width)

    def encode(self, x: Tensor, flow: Flow) -> Tensor:
        """The present's own relation, and what attention finds."""
        steps = self._segments(x)
        relations = (self.actor(steps)[:, :, None] + self.recent(self.context(steps), flow)).relu()
        own = relations[:, :, -1]
        scores = torch.einsum("bsd,bsmd->bsm", self.query(own), self.key(relations)) / own.shape[-1] ** 0.5
        share = scores.masked_fill(~self.recent.present(flow, steps.shape[1]), -torch.inf).softmax(-1)
        found = self.norm(torch.einsum("bsm,bsmd->bsd", share, self.value(relations)))
        hidden: Tensor = self.dropout(torch.cat([own, self.out(found).relu()], dim=-1))
        return hidden
