"""Fusion heads: from the Beta parameters of each segment to calls, on whole sequences and on streams."""

from evidentia.events.fusion.base import (
    HEADS,
    Fusion,
    FusionHead,
    WindowedHead,
    beta_from_probability,
    make_head,
)
from evidentia.events.fusion.filters import AleatoricFilter, EntropyFilter, EpistemicFilter, UncertaintyFilter
from evidentia.events.fusion.phase1 import PhaseI
from evidentia.events.fusion.seed import Seed
from evidentia.events.fusion.state import FusionState
from evidentia.events.fusion.umss import UMSS, OnsetWarning
from evidentia.events.fusion.wbc import BC, WBC

__all__ = [
    "BC",
    "HEADS",
    "UMSS",
    "WBC",
    "AleatoricFilter",
    "EntropyFilter",
    "EpistemicFilter",
    "Fusion",
    "FusionHead",
    "FusionState",
    "OnsetWarning",
    "PhaseI",
    "Seed",
    "UncertaintyFilter",
    "WindowedHead",
    "beta_from_probability",
    "make_head",
]
