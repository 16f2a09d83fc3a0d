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
from evidentia.events.fusion import FusionHead, FusionState
from evidentia.events.inputs import Inputs
from evidentia.events.memory import Memory, Watch
from evidentia.events.pipeline import Decision, Engine, Pipeline
from evidentia.events.triggers import Trigger
from evidentia.learning.checkpoint import digest

Array = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Runner:
    """A trained detector as streams need it.

    Attributes:
        engine: what runs the network.
        pipeline: network and heads, for the shapes of what they remember.
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
    def identity(self) -> bytes:
        """A hash of all that decides what a stream's memory means."""
        described = {
            "labels": self.labels,
            "heads": [head.describe() for head in self.pipeline.heads],
            "inputs": self.inputs.model_dump(mode="json"),
            "evidence": [self.pipeline.loss, self.pipeline.activation],
            "network": digest(self.pipeline.network.state_dict().values()),
        }
        return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).digest()

    def begin(self) -> Memory:
        """The memory of one stream that has not begun."""
        none = torch.zeros(1, dtype=torch.int64)
        watches = [
            self._watch(head, state) for head, state in zip(self.pipeline.heads, self.pipeline.start(), strict=True)
        ]
        return Memory(
            inputs=self.inputs.start(),
            network=dict(self.pipeline.network.start().caches),
            alarm=watches[0],
            warning=watches[1] if len(watches) > 1 else None,
            clock={name: none.clone() for name in ("segment", "begun", "invalid", "clipped")},
        )

    @torch.inference_mode()
    def advance(self, block: npt.NDArray[np.float32], memory: Memory) -> tuple[Fired, Memory]:
        """One segment of B streams, samples of shape `(B, step)` or `(B, step, channels)`."""
        cleaned = self.inputs.clean(torch.from_numpy(block), memory.inputs)
        frames, inputs = self.inputs.advance(cleaned.block, memory.inputs)
        clock = memory.clock
        watches = [memory.alarm] if memory.warning is None else [memory.alarm, memory.warning]
        states = [watch.fusion for watch in watches]
        caches, decisions = self.engine.step(frames, clock["begun"], memory.network, states)
        numbers = clock["segment"].numpy()
        fired, after = zip(*(self._fire(*pair, numbers) for pair in zip(decisions, watches, strict=True)), strict=True)
        counts = {"segment": clock["segment"] + 1, "begun": clock["begun"] + 1}
        for name, more in (("invalid", cleaned.invalid), ("clipped", cleaned.clipped)):
            counts[name] = clock[name] if more is None else clock[name] + more
        alarms = Fired(fired[0], decisions[0].opinion, None, None, numbers)
        if memory.warning is not None:
            alarms = alarms._replace(warnings=fired[1], segment_opinion=decisions[1].opinion)
        return alarms, Memory(inputs, caches, after[0], after[1] if len(after) > 1 else None, counts)

    def _fire(self, decision: Decision, watch: Watch, numbers: npt.NDArray[np.int64]) -> tuple[Array, Watch]:
        before = {name: tensor.numpy() for name, tensor in watch.trigger.items()}
        fired, trigger = self.trigger.fire(decision.calls.numpy(), before, numbers, self.inputs.seconds)
        # What has not changed stays the tensor it was: wrapped anew, it would hold all the wrappers before it.
        after = {
            name: watch.trigger[name] if array is before[name] else torch.from_numpy(array)
            for name, array in trigger.items()
        }
        return fired, Watch(decision.state, after)

    def _watch(self, head: FusionHead, state: FusionState) -> Watch:
        trigger = self.trigger.start(head.outputs(len(self.labels)))
        return Watch(state, {name: torch.from_numpy(array) for name, array in trigger.items()})
