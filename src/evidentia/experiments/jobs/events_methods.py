"""The methods of chapter 4's tables: what each is trained by, and how it decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from evidentia._support.errors import EvidentiaError

# Windows and decays that are chosen from on validation clips, for heads that have them.
WINDOWS = (1, 2, 3, 4, 6)
DECAYS = (0.5, 0.8, 1.0)
# A fusion of one segment is phase I, which has a row of its own.
_FUSED = WINDOWS[1:]

PRETRAINED_ON = "esc50-all"
# So that pretraining is no method's alone, a network has it by the usual loss and all methods share it.
PRETRAINING: Mapping[str, Any] = {"preset": None, "augmentation": True, "loss": "sigmoid"}
PRETRAINING_SEED = 0

BASELINE = "crnn"
VIDEO_BASELINE = "acar"


class Method(NamedTuple):
    """A network's training, and a head."""

    training: Mapping[str, Any]
    """Settings of `EventDetector`; methods whose settings are equal share the network."""
    head: str
    """A name of `evidentia.events.HEADS`."""
    windows: tuple[int, ...] = ()
    """What the window of the head is chosen from; none if it has no window."""
    sampled: bool = False
    """Whether the head's uncertainty is that of Monte Carlo dropout."""
    baseline: str = BASELINE
    """The method that it is held against."""
    pretrained: bool = False
    """Whether the network starts from one that was trained on many other sounds, see `PRETRAINED_ON`."""


# The same for all: 25 epochs, with augmentation.
_ALIKE: Mapping[str, Any] = {"preset": None, "augmentation": True}
_PLAIN = {**_ALIKE, "loss": "sigmoid"}
_BETA = {**_ALIKE, "loss": "beta"}

SOUND_METHODS: dict[str, Method] = {
    BASELINE: Method(_PLAIN, "phase1"),
    "crnn-entropy": Method(_PLAIN, "entropy"),
    "crnn-epistemic": Method(_PLAIN, "epistemic", sampled=True),
    "crnn-aleatoric": Method(_PLAIN, "aleatoric", sampled=True),
    "conformer": Method({**_PLAIN, "network": "conformer"}, "phase1"),
    "dual-dnn": Method({**_PLAIN, "network": "dual-dnn"}, "phase1"),
    "seed": Method(_BETA, "seed", WINDOWS),
    "mtenn-bce": Method({**_ALIKE, "loss": "bce"}, "phase1"),
    "mtenn-phase1": Method(_BETA, "phase1"),
    "mtenn-bc": Method(_BETA, "bc", _FUSED),
    "mtenn-wbc": Method(_BETA, "wbc", _FUSED),
    "mtenn-umss": Method(_BETA, "umss", WINDOWS),
    "early": Method({"preset": "early"}, "wbc", WINDOWS),
    "crnn-pretrained": Method(_PLAIN, "phase1", pretrained=True),
    "early-pretrained": Method({"preset": "early"}, "wbc", WINDOWS, pretrained=True),
}

_ACAR = {**_PLAIN, "network": "acar"}
_ACAR_BETA = {**_BETA, "network": "acar"}

VIDEO_METHODS: dict[str, Method] = {
    name: method._replace(baseline=VIDEO_BASELINE)
    for name, method in {
        "slowfast": Method({**_PLAIN, "network": "slowfast"}, "phase1"),
        "aia": Method({**_PLAIN, "network": "aia"}, "phase1"),
        VIDEO_BASELINE: Method(_ACAR, "phase1"),
        "acar-entropy": Method(_ACAR, "entropy"),
        "acar-epistemic": Method(_ACAR, "epistemic", sampled=True),
        "acar-aleatoric": Method(_ACAR, "aleatoric", sampled=True),
        "acar-mtenn-wbc": Method(_ACAR_BETA, "wbc", _FUSED),
        "acar-mtenn-umss": Method(_ACAR_BETA, "umss", WINDOWS),
    }.items()
}

METHODS = {**SOUND_METHODS, **VIDEO_METHODS}


def find_method(name: Any) -> Method:
    """The method of that name.

    Raises:
        EvidentiaError: if there is none.
    """
    if name not in METHODS:
        raise EvidentiaError(f"there is no method {name!r} of events; choose one of: {', '.join(METHODS)}")
    return METHODS[name]
