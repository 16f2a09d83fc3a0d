"""Detections of a whole clip at once, as a stream of it would give them."""

from __future__ import annotations

from functools import partial

import numpy as np

from evidentia.events.detections import Announcer, Detection, Fired
from evidentia.events.fitting import SegmentBeta
from evidentia.events.fusion import FusionHead
from evidentia.events.triggers import Trigger


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
    calls = [each.calls(fusion)[0].numpy() for each, fusion in zip(heads, fusions, strict=True)]
    memories = [trigger.start(part.shape[1]) for part in calls]
    detections: list[Detection] = []
    for number in range(int(found.lengths[0])):
        numbers, fired = np.array([number]), []
        for level, part in enumerate(calls):
            now, memories[level] = trigger.fire(part[None, number], memories[level], numbers, announcer.seconds)
            fired.append(now)
        if any(now.any() for now in fired):
            place = (slice(None), slice(number, number + 1))
            opinions = [partial(fusion.opinion.__getitem__, place) for fusion in fusions]
            news = Fired(fired[0], opinions[0], None, None, numbers)
            if warning is not None:
                news = news._replace(warnings=fired[1], segment_opinion=opinions[1])
            detections += announcer.detections(news, 0)
    return detections
