"""Whole clips at once: what is thought of their segments, and detections as a stream would give them."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from evidentia.events.fusion import FusionHead
from evidentia.events.streams.alarms import alarms
from evidentia.events.streams.detections import Announcer, Detection, Fired
from evidentia.events.streams.triggers import Trigger
from evidentia.events.training.fitting import SegmentBeta
from evidentia.opinions import BinomialOpinion
from evidentia.prediction import Prediction


def predictions(found: SegmentBeta, labels: tuple[str, ...]) -> list[Prediction]:
    """The opinions of each clip before any fusion, with a row a segment."""
    result = []
    for alpha, beta, length in zip(found.alpha, found.beta, found.lengths.tolist(), strict=True):
        opinion = BinomialOpinion.from_beta(alpha[:length], beta[:length])
        result.append(Prediction(opinion.projected, opinion, task="multilabel", class_names=labels))
    return result


def detect_offline(
    found: SegmentBeta, head: FusionHead, warning: FusionHead | None, trigger: Trigger, announcer: Announcer
) -> list[Detection]:
    """What happens in one clip.

    Args:
        found: the network's Beta parameters of the clip.
        head: fuses them and decides.
        warning: tells that something is beginning; None for no warnings.
        trigger: when calls become alarms.
        announcer: puts them into detections.
    """
    heads = [head] if warning is None else [head, warning]
    fusions = [each.fuse(found.alpha, found.beta) for each in heads]
    calls = [each.calls(fusion) for each, fusion in zip(heads, fusions, strict=True)]
    given = alarms(calls[0], trigger, announcer.seconds)
    fired = [given[0], *(alarms(each, trigger, announcer.seconds, after=given)[0] for each in calls[1:])]
    detections: list[Detection] = []
    for number in torch.cat(fired, 1).any(1).nonzero().flatten().tolist():
        now = [part[None, number].numpy() for part in fired]
        place = (slice(None), number)
        opinions = [partial(fusion.opinion.__getitem__, place) for fusion in fusions]
        news = Fired(now[0], opinions[0], None, None, np.array([number]))
        if warning is not None:
            news = news._replace(warnings=now[1], segment_opinion=opinions[1])
        detections += announcer.detections(news, 0)
    return detections
