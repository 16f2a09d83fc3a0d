"""What a detector keeps ready for its streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.events.fusion import FusionHead
from evidentia.events.networks.network import EventNetwork
from evidentia.events.streams.onnx import make_engine
from evidentia.events.streams.pipeline import Engine, Pipeline
from evidentia.events.streams.runner import Runner
from evidentia.events.streams.triggers import Trigger

if TYPE_CHECKING:
    from evidentia.events.estimator import EventDetector


class Runners:
    """The runners of one trained detector, each made when a stream first asks for it.

    Streams that are opened alike share a runner, by which `push_many` can take them in one batch; an engine is made
    once for all triggers, because ONNX Runtime takes its time to start. With another network or head of the detector,
    from a training or set by hand, or with other weights in the network, all are made anew.
    """

    def __init__(self) -> None:
        self._parts: tuple[EventNetwork, FusionHead, FusionHead] | None = None
        self._weights: list[int] = []
        self._runners: dict[tuple[str, bool, Trigger], Runner] = {}
        self._engines: dict[tuple[str, bool], tuple[Pipeline, Engine]] = {}

    def __reduce__(self) -> tuple[type[Runners], tuple[()]]:
        # ONNX Runtime can neither be copied nor pickled; a copy of a detector makes its own.
        return Runners, ()

    def get(self, det: EventDetector, engine: str, warnings: bool, trigger: Trigger) -> Runner:
        """The runner with an engine by name, with or without warnings, and a trigger."""
        det.network_.check_evaluating()
        parts, weights = (det.network_, det.head_, det.warning_), _versions(det.network_)
        known = self._parts is not None and all(a is b for a, b in zip(parts, self._parts, strict=True))
        if not known or weights != self._weights:
            self._parts, self._weights, self._runners, self._engines = parts, weights, {}, {}
        key = (engine, warnings, trigger)
        if key not in self._runners:
            pipeline, runs = self._engine(det, engine, warnings)
            self._runners[key] = Runner(runs, pipeline, det.inputs_, det.labels_, det.columns_, trigger)
        return self._runners[key]

    def _engine(self, det: EventDetector, engine: str, warnings: bool) -> tuple[Pipeline, Engine]:
        if (engine, warnings) not in self._engines:
            heads = [det.head_, det.warning_] if warnings else [det.head_]
            pipeline = Pipeline(det.network_, heads, det.settings.loss, det.settings.activation)
            self._engines[engine, warnings] = (pipeline, make_engine(engine, pipeline))
        return self._engines[engine, warnings]


def _versions(network: EventNetwork) -> list[int]:
    """How often each tensor of a network has been written to: engines and identities are of the weights that were."""
    # Those made in inference mode cannot tell.
    return [0 if tensor.is_inference() else tensor._version for tensor in network.state_dict().values()]
