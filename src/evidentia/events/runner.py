"""A segment of many streams from samples to alarms, in one batch; streams keep nothing here."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from evidentia.events.detections import Fired
from evidentia.events.inputs import Inputs
from evidentia.events.memory import Memory, Tensors
from evidentia.events.pipeline import Decision, Engine, Pipeline
from evidentia.events.triggers import Trigger
from evidentia.learning.checkpoint import digest

Array = npt.NDArray[np.bool_]

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
        trigger: when calls become alarms, and warnings.
    """

    engine: Engine
    pipeline: Pipeline
    inputs: Inputs
    labels: tuple[str, ...]
    trigger: Trigger

    @cached_property
    def identities(self) -> tuple[bytes, bytes]:
        """Hashes of all that decides what a stream's memory means: that of new states, and that of older ones.

        New ones leave out the head that warns, because a stream may go on with or without warnings.
        """
        described = {
            "labels": self.labels,
            "inputs": self.inputs.model_dump(mode="json"),
            "evidence": [self.pipeline.loss, self.pipeline.activation],
            "network": digest(self.pipeline.network.state_dict().values()),
        }
        heads = [head.describe() for head in self.pipeline.heads]
        with_one, with_all = (
            hashlib.sha256(json.dumps({**described, "heads": some}, sort_keys=True).encode()).digest()
            for some in (heads[:1], heads)
        )
        return with_one, with_all

    def begin(self) -> Memory:
        """The memory of one stream that has not begun."""
        triggers = {
            f"{level}/{name}": torch.from_numpy(array)
            for level, head in zip(LEVELS, self.pipeline.heads, strict=False)
            for name, array in self.trigger.start(head.outputs(len(self.labels))).items()
        }
        clock = {name: torch.zeros(1, dtype=torch.int64) for name in ("segment", "begun", "invalid", "clipped")}
        usual = self.pipeline.network.usual_frame()
        return Memory(self.inputs.start(usual), self.pipeline.start(), triggers, clock)

    @torch.inference_mode()
    def advance(self, block: npt.NDArray[np.float32], memory: Memory) -> tuple[Fired, Memory]:
        """One segment of B streams, samples of shape `(B, step)` or `(B, step, channels)`."""
        clock = memory.clock
        cleaned = self.inputs.clean(torch.from_numpy(block), memory.inputs)
        frames, inputs = self.inputs.advance(cleaned.block, memory.inputs)
        kept, decisions = self.pipeline.step(frames, clock["begun"], memory.kept, self.engine)
        numbers, fired = clock["segment"].numpy(), []
        triggers: Tensors = {}
        for level, decision in zip(LEVELS, decisions, strict=False):
            now, after = self._fire(level, decision, memory.triggers, numbers)
            fired.append(now)
            triggers |= after
        counts = {"segment": clock["segment"] + 1, "begun": clock["begun"] + 1}
        for name, more in (("invalid", cleaned.invalid), ("clipped", cleaned.clipped)):
            counts[name] = clock[name] if more is None else clock[name] + more
        alarms = Fired(fired[0], decisions[0].opinion, None, None, numbers)
        if len(decisions) > 1:
            alarms = alarms._replace(warnings=fired[1], segment_opinion=decisions[1].opinion)
        return alarms, Memory(inputs, kept, triggers, counts)

    def _fire(
        self, level: str, decision: Decision, triggers: Tensors, numbers: npt.NDArray[np.int64]
    ) -> tuple[Array, Tensors]:
        names = {name: f"{level}/{name}" for name in TRIGGER_PARTS}
        before = {name: triggers[full].numpy() for name, full in names.items()}
        fired, trigger = self.trigger.fire(decision.calls.numpy(), before, numbers, self.inputs.seconds)
        # What has not changed stays the tensor it was: wrapped anew, it would hold all the wrappers before it.
        after = {
            full: triggers[full] if trigger[name] is before[name] else torch.from_numpy(trigger[name])
            for name, full in names.items()
        }
        return fired, after
