"""What a segment of a live stream costs, from samples to a decision."""

from __future__ import annotations

import time
from collections.abc import Mapping
from statistics import median
from typing import Any

import torch

from evidentia.events import EventDetector, SoundInputs, make_head, make_network
from evidentia.events.monte_carlo_dropout import USUAL_PASSES
from evidentia.experiments.jobs.events_methods import find_method
from evidentia.experiments.jobs.registry import CHECKS, JOBS
from evidentia.learning.seeding import seeded

# DESED has ten classes.
_CLASSES = 10


@JOBS.register("events-time")
def events_time_job(configuration: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The median `inference` time of a segment of one stream in milliseconds, by one thread, for a `method`.

    Processor time over so many `segments`, of a network with random weights, which cost what trained ones do; `size` is
    that of the network, "dcase" if it is not given. Methods of Monte Carlo dropout run the network five times.

    Example:
        >>> events_time_job({"method": "crnn", "size": "small", "segments": 3}, seed=0)["inference"] > 0
        True
    """
    method = find_method(configuration["method"])
    size, segments = configuration.get("size", "dcase"), configuration.get("segments", 600)
    inputs = SoundInputs()
    with seeded(seed, -1):
        name = method.training.get("network", "crnn")
        network = make_network(name, inputs.features, _CLASSES, size=size, segment=inputs.segment)
        sound = 0.1 * torch.randn(segments + 10, inputs.step)
    labels = [f"class {k}" for k in range(_CLASSES)]
    loss = method.training.get("loss", "beta")
    detector = EventDetector.assemble(network, labels, inputs, make_head(method.head), loss=loss, progress=False)
    streams = [detector.stream(warnings=False) for _ in range(USUAL_PASSES if method.sampled else 1)]
    times = []
    for samples in sound:
        start = time.process_time()
        for stream in streams:
            stream.push(samples)
        times.append(time.process_time() - start)
    # The first ones allocate and fill windows.
    return {"inference": 1000 * median(times[10:])}


@CHECKS.register("events-time")
def check_events_time_job(configuration: Mapping[str, Any]) -> None:
    """Look up the method.

    Example:
        >>> check_events_time_job({"method": "loud"})
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: there is no method 'loud' of events; choose one of: crnn, ...
    """
    make_head(find_method(configuration.get("method")).head)
