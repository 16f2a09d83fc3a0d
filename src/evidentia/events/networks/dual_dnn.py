r"""Two plain networks side by side, one for "is anything there?", one for "what is it, and since when?".

After Phan et al. (ICASSP 2018), the thesis' first baseline for early sound events: the first network tells foreground
from background with a weighted loss, the second learns classes together with the distances to the event's onset and
offset. Theirs know one event at a time; here events may overlap, and the first network's answer g scales the positive
evidence of every class: $e^+_k = \sigma(g) \exp(z^+_k)$, that is $z^+_k + \ln \sigma(g)$ before the exponential.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia._support.scalars import whole_number
from evidentia.events.networks.layers import Flow, Recent
from evidentia.events.networks.network import NETWORKS, EventNetwork, Normalisation, Size, check_size

_WIDTHS = {"dcase": 160, "small": 48}


class DualParts(NamedTuple):
    """What the two networks say.

    Attributes:
        outputs: for and against, shape `(B, S, K, 2)`, the foreground's answer in them.
        foreground: the logit that any event is on, shape `(B, S)`.
        distances: segments since the onset and until the offset of each class, at least 0, shape `(B, S, K, 2)`.
    """

    outputs: Tensor
    foreground: Tensor
    distances: Tensor


@NETWORKS.register("dual-dnn")
class DualDNN(EventNetwork):
    """Two feed-forward networks over the last few segments; it remembers nothing else.

    Args:
        features: numbers a frame.
        num_classes: K.
        size: "dcase", 0.8M parameters for 128 bands, or "small", 60k, whose networks see each segment's mean frame.
        segment: frames a segment.
        dropout: rate after every hidden layer.
        normalisation: of the inputs, "fixed" or "running"; see `EventNetwork`.
        context: how many segments each network sees, the present one with them.

    Example:
        >>> net = DualDNN(features=128, num_classes=10)
        >>> parts = net.parts(torch.randn(2, 16, 128))
        >>> parts.outputs.shape, parts.foreground.shape, parts.distances.shape
        (torch.Size([2, 4, 10, 2]), torch.Size([2, 4]), torch.Size([2, 4, 10, 2]))
    """

    of_classes: ClassVar[tuple[str, ...]] = ("head", "distances")

    def __init__(
        self,
        features: int,
        num_classes: int,
        size: Size = "small",
        segment: int = 4,
        dropout: float = 0.2,
        normalisation: Normalisation = "fixed",
        context: int = 4,
    ) -> None:
        check_size(size)
        super().__init__(features, num_classes, segment, normalisation)
        whole_number(context, "context", 1)
        width = _WIDTHS[size]
        self.mean_frames = size == "small"
        inputs = features if self.mean_frames else segment * features
        self.recent = Recent(inputs, context)
        self.detect = _plain(context * inputs, width, dropout)
        self.classify = _plain(context * inputs, width, dropout)
        self.foreground = nn.Linear(width, 1)
        self.distances = nn.Linear(width, 2 * num_classes)
        self._finish(2 * width, read=width)

    def encode(self, x: Tensor, flow: Flow) -> Tensor:
        """The last hidden layers of both networks, side by side."""
        frames = x.unflatten(1, (-1, self.segment))
        window = self.recent(frames.mean(2) if self.mean_frames else frames.flatten(2), flow).flatten(2)
        rows = window.flatten(0, 1)
        hidden: Tensor = torch.cat([self.detect(rows), self.classify(rows)], dim=-1).unflatten(0, window.shape[:2])
        return hidden

    def read(self, hidden: Tensor) -> Tensor:
        """The classes of the second network, with the first one's answer in what speaks for them."""
        detected, classified = hidden.chunk(2, dim=-1)
        present = F.logsigmoid(self.foreground(detected))
        positive, negative = super().read(classified).unbind(-1)
        return torch.stack([positive + present, negative], dim=-1)

    def parts(self, x: Tensor) -> DualParts:
        """Everything the two networks say of whole sequences, for a loss on all of it."""
        hidden = self.hidden(x)
        detected, classified = hidden.chunk(2, dim=-1)
        distances = F.softplus(self.distances(classified)).unflatten(-1, (self.num_classes, 2))
        return DualParts(self.read(hidden), self.foreground(detected).squeeze(-1), distances)


def _plain(inputs: int, width: int, dropout: float) -> nn.Sequential:
    """Three hidden layers with batch norm."""
    layers: list[nn.Module] = []
    for size in (inputs, width, width):
        layers += [nn.Linear(size, width, bias=False), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(dropout)]
    return nn.Sequential(*layers)
