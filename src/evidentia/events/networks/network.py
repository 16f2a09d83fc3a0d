"""What every event network keeps to: whole sequences by `forward`, live streams by `start` and `step`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, Literal, TypeAlias

import torch
from torch import Tensor, nn

from evidentia._support.checks import check_finite, shape_or_kind, validation_enabled
from evidentia._support.errors import EvidentiaError
from evidentia._support.registry import Registry
from evidentia._support.scalars import whole_number
from evidentia.events.networks.layers import CausalLayer, Flow, RunningNorm
from evidentia.events.state import NetworkState

Size: TypeAlias = Literal["small", "dcase"]
Normalisation: TypeAlias = Literal["fixed", "running"]

# A deviation of so small a share of the numbers themselves is that of float32.
_ROUNDING = 2.0**-20
# Beyond it a power of 2 is no float32.
_LARGEST_POWER = 126

NETWORKS: Registry[Callable[..., EventNetwork]] = Registry("event network")


class EventNetwork(nn.Module, ABC):
    """A network over frames that gives, for every segment and class, two numbers: for the event and against it.

    They are not evidence yet: an activation of `evidentia.learning` makes them so. A segment is a fixed number of
    frames; its outputs depend on these and on earlier frames only, in evaluation mode, unless `streaming` is false.
    Inputs are standardised by the mean and variance of the training data, which batch norm gathers in training and
    holds fixed in evaluation ("fixed"), and on top by running ones of the stream's own past ("running").

    Args:
        features: F, numbers a frame.
        num_classes: K, at least 1: events may happen together.
        segment: frames a segment.
        normalisation: "fixed" or "running".

    Attributes:
        unit: what the numbers of each channel are multiplied by first, see `take_units`; None for nothing.
        streaming: whether `start` and `step` work, that is, whether the network looks back only.
        of_classes: the layers that have outputs for each class, which a network for other classes cannot take over.
    """

    streaming: ClassVar[bool] = True
    of_classes: ClassVar[tuple[str, ...]] = ("head",)

    def __init__(self, features: int, num_classes: int, segment: int, normalisation: Normalisation = "fixed") -> None:
        super().__init__()
        self.features = whole_number(features, "features", 1)
        self.num_classes = whole_number(num_classes, "num_classes", 1)
        self.segment = whole_number(segment, "segment", 1)
        if normalisation not in ("fixed", "running"):
            raise EvidentiaError(f"normalisation must be 'fixed' or 'running', got {normalisation!r}")
        if normalisation == "running" and not self.streaming:
            raise EvidentiaError("running normalisation is for streaming networks; this one is offline: take 'fixed'")
        # Inputs do not change as the network learns: the mean over all batches, not over the latest.
        self.standardise = nn.BatchNorm1d(features, momentum=None)
        self.unit: Tensor | None
        self.register_buffer("unit", None, persistent=False)
        self.running = RunningNorm(features) if normalisation == "running" else None

    def _finish(self, width: int, read: int | None = None) -> None:
        """Called last in a constructor: a linear head, and names for the memories.

        Args:
            width: number of hidden features.
            read: how many of them the head reads, if not all.
        """
        self.width = width
        self.head = nn.Linear(width if read is None else read, 2 * self.num_classes)
        self._memories = {name: layer for name, layer in self.named_modules() if isinstance(layer, CausalLayer)}
        for name, layer in self._memories.items():
            layer.name = name

    @abstractmethod
    def encode(self, x: Tensor, flow: Flow) -> Tensor:
        """Hidden features of every segment, `(B, S, D)`, of standardised frames `(B, S * segment, F)`."""

    def read(self, hidden: Tensor) -> Tensor:
        """From hidden features to outputs `(B, S, K, 2)`."""
        outputs: Tensor = self.head(hidden).unflatten(-1, (self.num_classes, 2))
        return outputs

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of whole sequences from their beginning.

        Args:
            x: frames, shape `(B, T, F)`.

        Returns:
            For and against, shape `(B, T // segment, K, 2)`; frames after the last whole segment are left out.
        """
        return self.read(self.hidden(x))

    def hidden(self, x: Tensor) -> Tensor:
        """The last hidden layer of whole sequences, shape `(B, T // segment, D)`."""
        self._check(x)
        count = x.shape[1] // self.segment
        if not count:
            return x.new_zeros(len(x), 0, self.width)
        flow = Flow(x.new_zeros(len(x), dtype=torch.int64), self._empty(len(x)))
        return self._run(x[:, : count * self.segment], flow)

    def start(self, batch: int = 1) -> NetworkState:
        """The state of streams that have not begun."""
        self._check_streaming()
        if batch < 1:
            raise EvidentiaError(f"a batch must hold at least 1 stream, got {batch}")
        weight = self.head.weight
        segments = torch.zeros(batch, dtype=torch.int64, device=weight.device)
        return NetworkState(weight.new_zeros(batch, 0, self.features), segments, self._empty(batch))

    @torch.no_grad()
    def step(self, x: Tensor, state: NetworkState) -> tuple[Tensor, NetworkState]:
        """The outputs of the segments that the next frames of each stream complete, and the state after them.

        Equal to `forward` on the whole stream, in evaluation mode, whatever the pieces. Gives no gradients: a stream
        has no end, and a graph of all of it would grow for ever. Single dropout layers may be in training mode.

        Args:
            x: the next frames, shape `(B, t, F)`, any t, also 0.
            state: what `start` or the step before gave; it stays as it is.

        Returns:
            Outputs of shape `(B, S, K, 2)`, where S may be 0, and the new state.
        """
        self._check_streaming()
        self.check_evaluating()
        self._check(x)
        if len(x) != state.batch:
            raise EvidentiaError(
                f"there are {state.batch} streams in the state and {len(x)} in the frames; each needs its own row"
            )
        self._check_state(state)
        joined = torch.cat([state.pending, x], dim=1)
        count = joined.shape[1] // self.segment
        if not count:
            outputs = joined.new_zeros(len(x), 0, self.num_classes, 2)
            return outputs, NetworkState(joined, state.segments, state.caches)
        whole, rest = joined.tensor_split((count * self.segment,), dim=1)
        outputs, caches = self.advance(whole, state.segments, state.caches)
        return outputs, NetworkState(rest, state.segments + count, caches).compact()

    def advance(self, x: Tensor, segments: Tensor, caches: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Outputs of whole segments and the new caches: `step` without checks and waiting frames, as exporters need it.

        Args:
            x: frames, shape `(B, S * segment, F)`, S at least 1.
            segments: how many segments each stream had before, shape `(B,)`.
            caches: those of a state.
        """
        flow = Flow(segments, caches)
        outputs = self.read(self._run(x, flow))
        return outputs, flow.kept

    @torch.no_grad()
    def take_units(self, frames: Tensor) -> None:
        """Before training: let channels of small numbers count in units of which they have more.

        Batch norm adds 1e-5 to each variance, in which a far smaller one would vanish, as that of metres that are
        micrometres does. A channel with a variance below 1 is multiplied by the power of 2 that brings it to 1 or
        more; that rounds nothing. Channels that are constant but for rounding stay as they are, and so does a network
        that has learned its units before.

        Args:
            frames: what will be trained on, shape `(N, T, F)`.
        """
        if self.standardise.num_batches_tracked:
            return
        channels = [channel.double() for channel in frames.flatten(0, 1).unbind(1)]
        deviation = torch.stack([channel.std(correction=0) for channel in channels])
        largest = torch.stack([channel.abs().amax() for channel in channels])
        power = torch.where(deviation > _ROUNDING * largest, -deviation.log2(), 0).ceil().clamp(0, _LARGEST_POWER)
        self.unit = torch.exp2(power).to(frames) if bool(power.any()) else None

    def usual_frame(self) -> Tensor:
        """The mean frame of the training data, shape `(F,)`, float32; zeros if there was no training."""
        mean = self.standardise.running_mean
        if mean is None:
            return torch.zeros(self.features)
        return (mean if self.unit is None else mean / self.unit).detach().to("cpu", torch.float32)

    def check_evaluating(self) -> None:
        """Require evaluation mode, in which alone outputs are of one stream and of its past."""
        if self.training:
            raise EvidentiaError(
                "clips and streams need the network in evaluation mode, as batch norm looks at all of a batch in "
                "training mode; call eval() first"
            )

    def _run(self, x: Tensor, flow: Flow) -> Tensor:
        x = x if self.unit is None else x * self.unit
        x = self.standardise(x.flatten(0, 1)).view(x.shape)
        return self.encode(x if self.running is None else self.running(x, flow), flow)

    def _empty(self, batch: int) -> dict[str, Tensor]:
        return {name: self.head.weight.new_zeros(batch, *layer.cache_shape()) for name, layer in self._memories.items()}

    def _check_streaming(self) -> None:
        if not self.streaming:
            raise EvidentiaError(
                f"{type(self).__name__} looks ahead and cannot follow a live stream: it is an offline baseline; use "
                "its forward on whole clips, or a streaming network"
            )

    def _check_state(self, state: NetworkState) -> None:
        found = {name: tuple(cache.shape[1:]) for name, cache in state.caches.items()}
        wanted = {name: layer.cache_shape() for name, layer in self._memories.items()}
        waiting = state.pending.shape
        if found != wanted or waiting[1] >= self.segment or waiting[2] != self.features:
            wrong = sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))
            raise EvidentiaError(
                f"the state is of another network: {', '.join(wrong) or 'its waiting frames'} do not fit; begin with "
                "start() of this one, or take a network that was built with the same settings"
            )

    def _check(self, x: Tensor) -> None:
        if not isinstance(x, Tensor) or x.ndim != 3 or x.shape[2] != self.features:
            raise EvidentiaError(f"frames must be of shape (batch, time, {self.features}), got {shape_or_kind(x)}")
        if x.dtype != self.head.weight.dtype:
            raise EvidentiaError(
                f"frames are {x.dtype} and the network is {self.head.weight.dtype}; convert one with to(dtype)"
            )
        if validation_enabled():
            check_finite(x, "frames")


def check_size(size: str) -> None:
    """Require a known size."""
    if size not in ("small", "dcase"):
        raise EvidentiaError(f"size must be 'small' or 'dcase', got {size!r}")
