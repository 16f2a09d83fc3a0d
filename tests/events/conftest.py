"""Beta parameters and detectors for tests of the events room."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from evidentia.events import (
    EventDetector,
    FusionHead,
    OnsetWarning,
    SeriesInputs,
    SoundInputs,
    make_head,
    make_network,
    synthetic_clips,
)


@pytest.fixture(scope="session")
def evidence() -> Callable[..., tuple[Tensor, Tensor]]:
    """A function that draws alpha and beta, from no evidence to very much of it."""

    def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(seed)
        size = 10 ** (7 * torch.rand(2, *shape, generator=generator, dtype=torch.float64) - 3)
        some = torch.rand(2, *shape, generator=generator, dtype=torch.float64) < 0.9
        alpha, beta = (1 + size * some).to(dtype)
        return alpha, beta

    return draw


@pytest.fixture(scope="session")
def sound() -> Tensor:
    """Three seconds of sound with events in it."""
    return synthetic_clips(1, seed=5, duration=3.0, events=(3, 4), snr=(10.0, 20.0))[0].samples


@pytest.fixture(scope="session")
def detector(sound: Tensor) -> Callable[..., EventDetector]:
    """A function that makes detectors with random weights, and thresholds that the sound exceeds half of the time."""

    def make(
        network: str = "crnn", head: str | FusionHead = "wbc", classes: int = 3, series: bool = False
    ) -> EventDetector:
        torch.manual_seed(3)
        inputs = SeriesInputs(rate=10.0, channels=4) if series else SoundInputs()
        net = make_network(network, inputs.features, classes, segment=inputs.segment).eval()
        if not series:
            net.standardise.running_mean.fill_(-50.0)
            net.standardise.running_var.fill_(200.0)
        # Random weights hardly look at what they are given; these do.
        net.head.weight.data *= 12
        labels = [f"class {k}" for k in range(classes)]
        chosen = make_head(head) if isinstance(head, str) else head
        det = EventDetector.assemble(net, labels, inputs, chosen, OnsetWarning(window=2))
        clip = series_of(3.0) if series else sound
        frames = clip if series else inputs.front_end(clip)
        found = det.network_(frames.unsqueeze(0)).detach()
        alpha, beta = (found.exp() + 1).unbind(-1)
        for name in ("head_", "warning_"):
            given = getattr(det, name)
            score = given.fuse(alpha, beta).score[0]
            # Between two scores, lest rounding decide.
            order = torch.where(score.isfinite(), score, score[score.isfinite()].min()).sort(0).values
            middle = (order[len(order) // 2] + order[len(order) // 2 + 1]) / 2
            level = tuple(middle.tolist()) if len(middle) > 1 else float(middle)
            setattr(det, name, given.model_copy(update={"threshold": level}))
        return det

    return make


def series_of(seconds: float, seed: int = 0) -> Tensor:
    """Four channels at 10 samples a second."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(int(10 * seconds), 4, generator=generator)
