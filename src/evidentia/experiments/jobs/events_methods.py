"""The methods of chapter 4's tables: what each is trained by, and how it decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from evidentia._support.errors import EvidentiaError

# Windows and decays that are chosen from on validation clips, for heads that have them.
WINDOWS = (1, 2, 3, 4, 6)
DECAYS = (0.5, 0.8, 1.0)


class Method(NamedTuple):
    """A network's training, and a head."""

    training: Mapping[str, Any]
    """Settings of `EventDetector`; methods whose settings are equal share the network."""
    head: str
    """A name of `evidentia.events.HEADS`."""
    sampled: bool = False
    """Whether the head's uncertainty is that of Monte Carlo dropout."""


# The same for all: 25 epochs, with augmentation.
_ALIKE: Mapping[str, Any] = {"preset": None, "augmentation": True}
_PLAIN = {**_ALIKE, "loss": "sigmoid"}
_BETA = {**_ALIKE, "loss": "beta"}

BASELINE = "crnn"
METHODS: dict[str, Method] = {
    BASELINE: Method(_PLAIN, "phase1"),
    "crnn-entropy": Method(_PLAIN, "entropy"),
    "crnn-epistemic": Method(_PLAIN, "epistemic", sampled=True),
    "crnn-aleatoric": Method(_PLAIN, "aleatoric", sampled=True),
    "conformer": Method({**_PLAIN, "network": "conformer"}, "phase1"),
    "dual-dnn": Method({**_PLAIN, "network": "dual-dnn"}, "phase1"),
    "seed": Method(_BETA, "seed"),
    "mtenn-bce": Method({**_ALIKE, "loss": "bce"}, "phase1"),
    "mtenn-phase1": Method(_BETA, "phase1"),
    "mtenn-bc": Method(_BETA, "bc"),
    "mtenn-wbc": Method(_BETA, "wbc"),
    "mtenn-umss": Method(_BETA, "umss"),
    "early": Method({"preset": "early"}, "wbc"),
}


def find_method(name: Any) -> Method:
    """The method of that name.

    Raises:
        EvidentiaError: if there is none.
    """
    if name not in METHODS:
        raise EvidentiaError(f"there is no method {name!r} of events; choose one of: {', '.join(METHODS)}")
    return METHODS[name]
