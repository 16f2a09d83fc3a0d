"""The networks by name, one file a family; importing this module registers them all."""

from __future__ import annotations

import inspect
from typing import Any

from evidentia._support.errors import EvidentiaError
from evidentia.events.networks.clip_heads import ACARHead, AIAHead, SlowFastHead
from evidentia.events.networks.conformer import Conformer
from evidentia.events.networks.crnn import CRNN, OfflineCRNN
from evidentia.events.networks.dual_dnn import DualDNN, DualParts
from evidentia.events.networks.network import NETWORKS, EventNetwork, Normalisation, Size
from evidentia.events.networks.temporal import TemporalNetwork

__all__ = [
    "CRNN",
    "NETWORKS",
    "ACARHead",
    "AIAHead",
    "Conformer",
    "DualDNN",
    "DualParts",
    "EventNetwork",
    "Normalisation",
    "OfflineCRNN",
    "Size",
    "SlowFastHead",
    "TemporalNetwork",
    "make_network",
]


def make_network(name: str, features: int, num_classes: int, **settings: Any) -> EventNetwork:
    """An event network by its name: crnn, crnn-offline, conformer, dual-dnn, temporal, slowfast, aia, acar.

    Args:
        name: which.
        features: F, numbers a frame.
        num_classes: K.
        settings: `size` ("small" or "dcase"), `segment`, `dropout`, `normalisation` and those of the network itself.

    Example:
        >>> net = make_network("crnn", features=128, num_classes=10, size="dcase")
        >>> f"{sum(weight.numel() for weight in net.parameters()):,} parameters"
        '813,044 parameters'
        >>> make_network("crnn-offline", features=128, num_classes=10).streaming
        False
    """
    make = NETWORKS[name]
    signature = inspect.signature(make)
    try:
        signature.bind(features, num_classes, **settings)
    except TypeError as error:
        known = list(signature.parameters)[2:]
        raise EvidentiaError(
            f"the settings do not fit the network {name!r}: {error}; it has: {', '.join(known)}"
        ) from error
    return make(features, num_classes, **settings)
