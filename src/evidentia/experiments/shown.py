"""Networks of a study's cells for pictures: trained once more, or taken from where they are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from evidentia._support.quantiles import quantiles
from evidentia.evaluation import EarlyCurve, EarlyScores, EventTruth, early_curve
from evidentia.events import Clip, EventDetector, FusionHead
from evidentia.experiments.jobs.events import training_of
from evidentia.experiments.jobs.events_methods import find_method
from evidentia.experiments.jobs.events_networks import trained_detector, trained_outputs
from evidentia.experiments.jobs.events_points import chosen_point, own_point
from evidentia.experiments.jobs.graph import job_graph
from evidentia.graphs.tasks import TrainedTask, train_task

_LEVELS = 80


def trained_graph(configuration: Mapping[str, Any], seed: int) -> TrainedTask:
    """Train the network of a graph job; its protocol, which says what nodes are counted, changes nothing in that.

    Example:
        >>> trained = trained_graph({"data": "synthetic", "task": "ood", "method": "gcn", "epochs": 5}, seed=0)
        >>> trained.classifier.method.summary
        'softmax'
    """
    settings = {name: value for name, value in configuration.items() if name != "protocol"}
    data = job_graph(settings.pop("data"), settings.pop("data_root", None))
    return train_task(data, seed=seed, progress=False, **settings)


@dataclass(frozen=True)
class ShownDetector:
    """What an event network and its head do on test clips.

    Attributes:
        curve: over all thresholds.
        chosen: at the threshold in use.
        labels: the classes.
        detector: the network with that head; None for methods that filter what it says before the head decides.
        clip: the test clip with the most events.
    """

    curve: EarlyCurve
    chosen: EarlyScores
    labels: tuple[str, ...]
    detector: EventDetector | None
    clip: Clip


def shown_detector(configuration: Mapping[str, Any], seed: int) -> ShownDetector:
    """The network of an events job, with the head as it is chosen there for the largest macro F1."""
    method, fixed = find_method(configuration["method"]), configuration.get("head", {})
    training = training_of(configuration, method, seed)
    outputs = trained_outputs(training, method.sampled)
    choose = chosen_point if configuration.get("calibrated", True) else own_point
    point, tested = choose(method, outputs, fixed), outputs["test"]
    detector = trained_detector(training)
    score = point.head.fuse(*tested.within(method.head, point.max_uncertainty)).score
    return ShownDetector(
        early_curve(score, tested.truth, _levels(score, tested.truth)),
        point.test,
        tuple(detector.labels_),
        _with_head(detector, point.head) if point.head.name == method.head else None,
        max(training.part("test"), key=lambda clip: len(clip.events)),
    )


def _levels(score: Tensor, truth: EventTruth) -> list[float]:
    """Thresholds from where every clip is called to where none is, rising."""
    valid = truth.valid(score.shape[1])
    highest = score.masked_fill(~valid, -torch.inf).amax(1)
    found = torch.cat([highest.flatten(), score[truth.activity(score.shape[1]) & valid]])
    shares = torch.linspace(0, 1, _LEVELS, dtype=torch.float64)
    levels: list[float] = quantiles(found, shares).unique().tolist()
    return levels


def _with_head(kept: EventDetector, head: FusionHead) -> EventDetector:
    meaning = {"loss": kept.settings.loss, "activation": kept.settings.activation}
    return EventDetector.assemble(kept.network_, kept.labels_, kept.inputs_, head, kept.warning_, **meaning)
