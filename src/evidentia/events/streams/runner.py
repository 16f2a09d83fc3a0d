"""A segment of many streams from samples to alarms, in one batch; streams keep nothing here."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evidentia.events.front_end.chunks import Samples
from evidentia.events.front_end.inputs import Inputs
from evidentia.events.state import Array, Arrays
from evidentia.events.streams.detections import Fired
from evidentia.events.streams.memory import Memory
from evidentia.events.streams.pipeline import Engine, Pipeline
from evidentia.events.streams.triggers import Trigger
from evidentia.learning.checkpoint import module_digest

LEVELS = ("alarm", "warning")
TRIGGER_PARTS = ("recent", "on", "last")


@dataclass(frozen=True, eq=False)
class Runner:
    """A trained detector as streams need it.

    Attributes:
        engine: what runs the network and the heads.
        pipeline: network and heads.
        inputs: the front end.
        labels: the classes.
        columns: the names of a series' channels, if they have names.
        trigger: when calls become alarms, and warnings.
    """

    engine: Engine
    pipeline: Pipeline
    inputs: Inputs
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    trigger: Trigger

    def __deepcopy__(self, _: object) -> Runner:
        """The same one: streams that are copied keep nothing here, and ONNX Runtime cannot be copied."""
        return self

    @cached_property
    def identity(self) -> bytes:
        """A hash of all that decides what a stream's memory means.

        It leaves out the head that warns, because a stream may go on with or without warnings.
        """
        described = {
            "labels": self.labels,
            "inputs": self.inputs.model_dump(mode="json"),
            "evidence": [self.pipeline.loss, self.pipeline.activation],
            "network": module_digest(self.pipeline.network),
            "heads": [self.pipeline.heads[0].describe()],
        }
        return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).digest()

    def begin(self) -> Memory:
        """The memory of one stream that has not begun."""
        triggers = {
            f"{level}/{name}": array
            for level, head in zip(LEVELS, self.pipeline.heads, strict=False)
            for name, array in self.trigger.start(head.outputs(len(self.labels))).items()
        }
        clock = {name: np.zeros(1, dtype=np.int64) for name in ("segment", "begun", "invalid", "clipped")}
        usual = self.pipeline.network.usual_frame()
        return Memory(self.inputs.start(usual), self.pipeline.start(), triggers, clock)

    def advance(self, block: Samples, memory: Memory) -> tuple[Fired, Memory]:
        """One segment of B streams, samples of shape `(B, step)` or `(B, step, channels)`."""
        clock, seconds = memory.clock, self.inputs.seconds
        cleaned = self.inputs.clean(block, memory.inputs)
        frames, inputs = self.inputs.advance(cleaned.block, memory.inputs)
        counts = {"segment": clock["segment"] + 1, "begun": clock["begun"] + 1}
        for name, more in (("invalid", cleaned.invalid), ("clipped", cleaned.clipped)):
            counts[name] = clock[name] if more is None else clock[name] + more
        kept, decisions = self.pipeline.step(frames, clock["begun"], memory.kept, self.engine)
        fired: list[Array] = []
        triggers = Arrays()
        for level, decision in zip(LEVELS, decisions, strict=False):
            before = {name: memory.triggers[f"{level}/{name}"] for name in TRIGGER_PARTS}
            # A warning comes before an alarm; what it has to say after one is not news.
            alarmed = triggers["alarm/last"].max(axis=1, keepdims=True) if fired else None
            now, after = self.trigger.fire(decision.calls, before, clock["segment"], seconds, alarmed)
            fired.append(now)
            triggers |= {f"{level}/{name}": array for name, array in after.items()}
        warns = len(decisions) > 1
        news = Fired(
            fired[0],
            decisions[0].opinion,
            fired[1] if warns else None,
            decisions[1].opinion if warns else None,
            clock["segment"],
        )
        return news, Memory(inputs, kept, triggers, counts)
