"""The networks of the experiments: features, and a linear layer on top of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia._support.errors import EvidentiaError
from evidentia._support.registry import Registry
from evidentia._support.scalars import real_number, whole_number
from evidentia.semisup.networks.pooling import HalvingMaxPool

NetworkNorm: TypeAlias = Literal["none", "batch"]

NETWORKS: Registry[Callable[..., Network]] = Registry("network")

# LeNet halves images twice after two convolutions of 5 x 5.
SMALLEST_IMAGE = 12

# As in the comparison of Oliver et al. (2018), whose networks these are to be like.
_SLOPE = 0.1


class Network(nn.Module):
    """A body that gives the last hidden layer, and a linear head on it.

    Args:
        input_shape: shape of one sample.
        num_classes: K, at least 2.
        body: maps a batch to hidden features; further dimensions are flattened.
        width: the number of hidden features.
        norm: whether layers are followed by batch norm; `convert_batch_norm` makes it weighted.
    """

    def __init__(
        self, input_shape: Sequence[int], num_classes: int, body: nn.Module, width: int, norm: NetworkNorm
    ) -> None:
        super().__init__()
        whole_number(num_classes, "num_classes", 2)
        self.input_shape = tuple(input_shape)
        self.norm = norm
        self.body = body
        self.head = nn.Linear(width, num_classes)

    def features(self, x: Tensor) -> Tensor:
        """The last hidden layer, shape `(B, D)`."""
        if x.shape[1:] != self.input_shape:
            raise EvidentiaError(
                f"this network was made for samples of shape {self.input_shape}, got a batch of shape {tuple(x.shape)}"
            )
        hidden: Tensor = self.body(x).flatten(1)
        return hidden

    def forward(self, x: Tensor) -> Tensor:
        """Logits, shape `(B, K)`."""
        logits: Tensor = self.head(self.features(x))
        return logits


@NETWORKS.register("mlp")
class MLP(Network):
    """Linear layers with ReLU; by default three with the head, as for the two moons of the thesis.

    Args:
        input_shape: shape of one sample, which is flattened; a number for vectors.
        num_classes: K.
        hidden: widths of the hidden layers.
        norm: "batch" for batch norm after every hidden layer, before its ReLU.
        dropout: rate after every hidden layer.

    Example:
        >>> MLP(2, num_classes=2, norm="batch")(torch.randn(5, 2)).shape
        torch.Size([5, 2])
    """

    def __init__(
        self,
        input_shape: Sequence[int] | int,
        num_classes: int,
        hidden: Sequence[int] = (100, 100),
        norm: NetworkNorm = "batch",
        dropout: float = 0.0,
    ) -> None:
        shape = (input_shape,) if isinstance(input_shape, int) else tuple(input_shape)
        widths = [math.prod(shape), *hidden]
        if len(widths) < 2 or min(widths) < 1:
            raise EvidentiaError(f"an MLP needs inputs and at least one hidden layer, got {shape} and {tuple(hidden)}")
        layers: list[nn.Module] = [nn.Flatten()]
        for inputs, outputs in pairwise(widths):
            layers += [nn.Linear(inputs, outputs), *_after(outputs, norm, nn.BatchNorm1d, dropout)]
        super().__init__(shape, num_classes, nn.Sequential(*layers), widths[-1], norm)


@NETWORKS.register("lenet")
class LeNet(Network):
    """LeNet-5 with ReLU and max pooling: 6 and 16 maps, 120 and 84 units (LeCun et al. 1998).

    Images of less than 32 pixels are padded by 2 on every side, as 28 x 28 ones are in the paper.

    Args:
        input_shape: (channels, height, width).
        num_classes: K.
        norm: "batch" for batch norm after each of the four layers, before its ReLU.
        dropout: rate after the layers of 120 and 84 units.

    Example:
        >>> LeNet((1, 28, 28), num_classes=10).features(torch.randn(5, 1, 28, 28)).shape
        torch.Size([5, 84])
    """

    def __init__(
        self, input_shape: Sequence[int], num_classes: int, norm: NetworkNorm = "batch", dropout: float = 0.0
    ) -> None:
        channels, height, width = _image_shape(input_shape)
        padding = 2 if min(height, width) < 32 else 0
        sides = [((side + 2 * padding - 4) // 2 - 4) // 2 for side in (height, width)]
        if min(sides) < 1:
            raise EvidentiaError(
                f"LeNet needs images of at least 12 x 12 pixels, got {height} x {width}; use an MLP for smaller ones"
            )
        body = nn.Sequential(
            nn.Conv2d(channels, 6, 5, padding=padding),
            *_after(6, norm, nn.BatchNorm2d, halved=True),
            nn.Conv2d(6, 16, 5),
            *_after(16, norm, nn.BatchNorm2d, halved=True),
            nn.Flatten(),
            nn.Linear(16 * math.prod(sides), 120),
            *_after(120, norm, nn.BatchNorm1d, dropout),
            nn.Linear(120, 84),
            *_after(84, norm, nn.BatchNorm1d, dropout),
        )
        super().__init__(input_shape, num_classes, body, 84, norm)


@NETWORKS.register("wrn")
class WideResNet(Network):
    """A wide residual network, by default WRN-28-2 (Zagoruyko and Komodakis, BMVC 2016), with leaky ReLU.

    Args:
        input_shape: (channels, height, width).
        num_classes: K.
        depth: layers, 6 n + 4 for n blocks in each of the three groups.
        width: how many times the 16, 32 and 64 maps of the groups.
        norm: "batch" for batch norm before each convolution; without it every block starts as the identity, as sums of
            blocks that are not normalised would grow with depth.
        dropout: rate between the convolutions of a block.

    Example:
        >>> WideResNet((3, 32, 32), num_classes=6, depth=10, width=1)(torch.randn(2, 3, 32, 32)).shape
        torch.Size([2, 6])
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        num_classes: int,
        depth: int = 28,
        width: int = 2,
        norm: NetworkNorm = "batch",
        dropout: float = 0.0,
    ) -> None:
        channels = _image_shape(input_shape)[0]
        if depth < 10 or (depth - 4) % 6:
            raise EvidentiaError(f"the depth of a wide ResNet must be 10, 16, 22, 28, ..., 6 n + 4, got {depth}")
        whole_number(width, "the width of a wide ResNet", 1)
        layers: list[nn.Module] = [nn.Conv2d(channels, 16, 3, padding=1, bias=norm == "none")]
        inputs = 16
        for group, maps in enumerate((16 * width, 32 * width, 64 * width)):
            for block in range((depth - 4) // 6):
                stride = 2 if group and not block else 1
                layers.append(_Block(inputs, maps, stride, norm, dropout))
                inputs = maps
        layers += [_norm(inputs, norm, nn.BatchNorm2d), nn.LeakyReLU(_SLOPE), nn.AdaptiveAvgPool2d(1)]
        for layer in layers:
            layer.apply(_initialise)
        super().__init__(input_shape, num_classes, nn.Sequential(*layers), inputs, norm)
        # Maps follow the layout of these weights; with channels innermost a CPU trains in three quarters of the time.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


@NETWORKS.register("wrn-10-1")
def small_wide_resnet(
    input_shape: Sequence[int], num_classes: int, norm: NetworkNorm = "batch", dropout: float = 0.0
) -> WideResNet:
    """A wide residual network of depth 10 and width 1, for machines without an accelerator.

    Example:
        >>> sum(parameter.numel() for parameter in small_wide_resnet((3, 32, 32), num_classes=6).parameters())
        77590
    """
    return WideResNet(input_shape, num_classes, depth=10, width=1, norm=norm, dropout=dropout)


class _Block(nn.Module):
    """Norm, activation and convolution, twice, beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int, norm: NetworkNorm, dropout: float) -> None:
        super().__init__()
        bias = norm == "none"
        self.norm1 = _norm(inputs, norm, nn.BatchNorm2d)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=bias)
        self.norm2 = _norm(outputs, norm, nn.BatchNorm2d)
        self.dropout = nn.Dropout(_rate(dropout))
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=bias)
        self.starts_as_identity = norm == "none"
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if inputs != outputs or stride > 1 else None

    def forward(self, x: Tensor) -> Tensor:
        active = F.leaky_relu(self.norm1(x), _SLOPE)
        change = self.conv1(active)
        change = self.conv2(self.dropout(F.leaky_relu(self.norm2(change), _SLOPE)))
        return torch.add(x if self.shortcut is None else self.shortcut(active), change)


def _initialise(layer: nn.Module) -> None:
    if isinstance(layer, nn.Conv2d):
        nn.init.kaiming_normal_(layer.weight, _SLOPE, mode="fan_out")
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
    # `apply` comes to a block after its convolutions.
    if isinstance(layer, _Block) and layer.starts_as_identity:
        nn.init.zeros_(layer.conv2.weight)


def _norm(width: int, norm: str, kind: type[nn.Module]) -> nn.Module:
    if norm not in ("none", "batch"):
        raise EvidentiaError(
            f"norm must be 'none' or 'batch', got {norm!r}; for weighted batch norm convert a network with 'batch'"
        )
    return kind(width) if norm == "batch" else nn.Identity()


def _after(
    width: int, norm: NetworkNorm, kind: type[nn.Module], dropout: float = 0.0, halved: bool = False
) -> list[nn.Module]:
    layers = [_norm(width, norm, kind)] if norm != "none" else []
    # ReLU keeps the order, so of the largest of four pixels it is the same as before, for a quarter of the work.
    layers += [HalvingMaxPool(), nn.ReLU()] if halved else [nn.ReLU()]
    return [*layers, nn.Dropout(_rate(dropout))] if dropout else layers


def _rate(dropout: float) -> float:
    return real_number(dropout, "dropout", 0, 1, open_high=True)


def _image_shape(input_shape: Sequence[int]) -> tuple[int, int, int]:
    if len(input_shape) != 3 or min(input_shape) < 1:
        raise EvidentiaError(f"images of shape (channels, height, width) are needed, got {tuple(input_shape)}")
    channels, height, width = input_shape
    return channels, height, width
