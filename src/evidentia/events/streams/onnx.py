"""ONNX: a network's step as a file that other engines read, and ONNX Runtime as an engine for streams."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from evidentia._support.checks import validation
from evidentia._support.errors import EvidentiaError
from evidentia._support.extras import from_extra
from evidentia._support.files import write_atomically
from evidentia._support.precision import single_precision
from evidentia.events.networks.network import EventNetwork
from evidentia.events.state import Array, Arrays
from evidentia.events.streams.pipeline import Engine, Pipeline, Ran, Tensors
from evidentia.learning.checkpoint import part_of

if TYPE_CHECKING:
    from evidentia.events.estimator import EventDetector

_TOLERANCE = 1e-3


class NetworkStep(nn.Module):
    """One segment of B streams through a network, as a function of tensors alone.

    Args:
        network: a streaming network in evaluation mode.

    Attributes:
        inputs: names of the arguments: frames, begun, and a `cache/NAME` for every cache of the network.
        outputs: names of the results: outputs, and a `kept/NAME` to be given back with the next segment.
    """

    described: ClassVar[str] = "this network"

    def __init__(self, network: EventNetwork) -> None:
        super().__init__()
        self.network = network
        self.caches = list(network.start().caches)
        self.inputs = ["frames", "begun", *(f"cache/{name}" for name in self.caches)]
        self.outputs = ["outputs", *(f"kept/{name}" for name in self.caches)]

    def forward(self, frames: Tensor, begun: Tensor, *caches: Tensor) -> tuple[Tensor, ...]:
        """One segment."""
        outputs, kept = self.network.advance(frames, begun, dict(zip(self.caches, caches, strict=True)))
        return outputs, *(kept[name] for name in self.caches)

    def example(self, batch: int) -> tuple[Tensor, ...]:
        """Arguments of streams that have not begun."""
        state, size = self.network.start(batch), (batch, self.network.segment, self.network.features)
        return torch.zeros(size), state.segments, *state.caches.values()

    def following(self, results: Tensors) -> Tensors:
        """The arguments of the next segment that are results of this one."""
        return {f"cache/{name}": result for name, result in part_of(results, "kept").items()}

    def misjudged(self, results: Tensors) -> int:
        """How many decisions among the results are not what PyTorch makes of the others; a network makes none."""
        return 0


class PipelineStep(NetworkStep):
    """One segment of B streams through network and heads, as a function of tensors alone.

    Calls are those of streams with full windows: looking for the segments that count costs as much as the fusion. There
    are none if ONNX lacks the operations of a head.

    Args:
        pipeline: network and heads.

    Attributes:
        kept: names of what `Pipeline.start` gives, in the order of the arguments.
        decided: names of the results that are calls.
    """

    described: ClassVar[str] = "this network and its heads"

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(pipeline.network)
        self.pipeline = pipeline
        self.kept = list(pipeline.start())
        caches = [name for name in self.kept if name.startswith("network/")]
        self.inputs = ["frames", "begun", *(f"cache/{name}" for name in self.kept)]
        decides = all(head.in_onnx for head in pipeline.heads)
        self.decided = [f"calls/{number}" for number in range(len(pipeline.heads))] if decides else []
        self.outputs = [*self.decided, "alpha", "beta", *(f"kept/{name}" for name in caches)]

    def forward(self, frames: Tensor, begun: Tensor, *kept: Tensor) -> tuple[Tensor, ...]:
        """One segment."""
        alpha, beta, caches = self.pipeline.evidence(frames, begun, dict(zip(self.kept, kept, strict=True)))
        calls = self.pipeline.calls(alpha, beta, None) if self.decided else []
        return *(called.clone() for called in calls), alpha.clone(), beta.clone(), *caches.values()

    def example(self, batch: int) -> tuple[Tensor, ...]:
        """Arguments of streams that have not begun."""
        frames, begun, *_ = super().example(batch)
        return frames, begun, *map(torch.from_numpy, self.pipeline.start(batch).values())

    def following(self, results: Tensors) -> Tensors:
        """The arguments of the next segment that are results of this one."""
        windows = {f"cache/{name}": results[name][:, 1:] for name in ("alpha", "beta") if name in self.kept}
        return {**super().following(results), **windows}

    def misjudged(self, results: Tensors) -> int:
        """How many calls are not what PyTorch's heads make of the same evidence, nor of a little more or less of it."""
        if not self.decided:
            return 0
        alpha, beta = results["alpha"], results["beta"]
        nudges = [1 / (1 + _TOLERANCE), 1.0, 1 + _TOLERANCE]
        near = [
            self.pipeline.calls((alpha * a).clamp(min=1), (beta * b).clamp(min=1), None) for a in nudges for b in nudges
        ]
        wrong = 0
        for name, *calls in zip(self.decided, *near, strict=True):
            likely = torch.stack(calls)
            firm = (likely == likely[0]).all(0)
            wrong += int((firm & (results[name] != likely[0])).sum())
        return wrong


class OnnxEngine:
    """Network and heads by ONNX Runtime on one thread: an `Engine`, checked to agree with PyTorch.

    Heads with operations that ONNX lacks (`FusionHead.in_onnx`) are left to PyTorch.

    Args:
        pipeline: network and heads.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        step = PipelineStep(pipeline)
        self._pipeline = pipeline
        self._session = session(onnx_bytes(step))
        check_agreement(step, self._session)
        used = {given.name for given in self._session.get_inputs()}
        self._begun, self._outputs, self._decided = "begun" in used, step.outputs, len(step.decided)
        self._given = [(f"cache/{name}", name) for name in step.kept if f"cache/{name}" in used]
        self._caches = [name for name in step.kept if name.startswith("network/")]

    def run(self, frames: Array, begun: Array, kept: Arrays) -> Ran:
        """One segment."""
        feed = {given: kept[name] for given, name in self._given}
        feed["frames"] = frames
        if self._begun:
            feed["begun"] = begun
        found = self._session.run(self._outputs, feed)
        calls, (alpha, beta, *caches) = found[: self._decided], found[self._decided :]
        young = self._pipeline.young(begun)
        if young is not None or not calls:
            decided = self._pipeline.calls(torch.from_numpy(alpha), torch.from_numpy(beta), young)
            calls = [called.numpy() for called in decided]
        return Ran(calls, alpha, beta, dict(zip(self._caches, caches, strict=True)))


def make_engine(name: str, pipeline: Pipeline) -> Engine:
    """An engine by its name: torch or onnx."""
    if name == "torch":
        return pipeline
    if name == "onnx":
        return OnnxEngine(pipeline)
    raise EvidentiaError(f"engine must be 'torch' or 'onnx', got {name!r}")


def export_onnx(network: EventNetwork | EventDetector, path: str | Path) -> None:
    """Write a network's step as an ONNX file, whole or not at all, after a check that ONNX Runtime agrees with it.

    Of a trained detector its network is written, `detector.network_`; neither front end nor heads are in the file.
    Inputs are `frames`, shape `(B, segment, F)`, `begun`, how many segments each stream has had, int64, shape `(B,)`,
    and a tensor `cache/NAME` for every name of `network.start().caches`; outputs are `outputs`, shape `(B, 1, K, 2)`,
    and `kept/NAME`, to be given back as caches with the next segment. An input that the network does not use is left
    out. Needs `evidentia[onnx]`.

    Example:
        >>> import tempfile
        >>> from evidentia.events import make_network
        >>> network = make_network("temporal", features=3, num_classes=2).eval()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     export_onnx(network, f"{folder}/network.onnx")
        ...     [given.name for given in session(f"{folder}/network.onnx").get_inputs()][:2]
        ['frames', 'begun']
    """
    found = network if isinstance(network, EventNetwork) else getattr(network, "network_", None)
    if not isinstance(found, EventNetwork):
        raise EvidentiaError(
            "export_onnx takes a trained detector or its network, detector.network_, got "
            f"{type(network).__name__}{'; train it first' if hasattr(network, 'fit') else ''}"
        )
    found._check_streaming()
    step = NetworkStep(found)
    content = onnx_bytes(step)
    check_agreement(step, session(content))
    write_atomically(path, lambda part: _write(part, content))


@single_precision()
def onnx_bytes(step: NetworkStep) -> bytes:
    """A step as an ONNX model, for any number of streams at once."""
    weight = step.network.head.weight
    step.network.check_evaluating()
    if weight.device.type != "cpu" or weight.dtype != torch.float32:
        raise EvidentiaError("a network is exported from the CPU in float32; call to('cpu', torch.float32) first")
    with from_extra("onnxscript", "onnx", "ONNX export"):
        import onnxscript  # noqa: F401 (the exporter needs it)
    # Two streams: a batch of one would be taken for a constant.
    arguments = step.example(2)
    rows = {0: torch.export.Dim("batch", min=1, max=65_536)}
    with _quiet(), torch.no_grad(), validation(False):
        # Constants that heads keep in caches are made here, not while the exporter watches.
        step(*arguments)
        shapes = (rows, rows, tuple(rows for _ in arguments[2:]))
        try:
            program = torch.export.export(step, arguments, dynamic_shapes=shapes)
            exported = torch.onnx.export(
                program, dynamo=True, verbose=False, input_names=step.inputs, output_names=step.outputs
            )
        # Its errors have no class in common.
        except Exception as error:
            raise EvidentiaError(
                f"PyTorch's exporter cannot put {step.described} into ONNX ({type(error).__name__}); stay with "
                "PyTorch, for streams by the engine 'torch'"
            ) from error
    if exported is None:
        raise EvidentiaError("PyTorch's exporter gave no model")
    return bytes(exported.model_proto.SerializeToString())


def session(model: bytes | str | Path) -> Any:
    """A session of ONNX Runtime; one thread serves many streams best, with a process a core."""
    with from_extra("onnxruntime", "onnx", "The engine 'onnx'"):
        import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    source = model if isinstance(model, bytes) else str(model)
    try:
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # these have no class in common either
        raise EvidentiaError(f"ONNX Runtime does not take the model ({error}); use the engine 'torch'") from error


@single_precision()
@torch.no_grad()
def check_agreement(step: NetworkStep, runtime: Any, segments: int = 6, batch: int = 3) -> float:
    """Require that ONNX Runtime gives what PyTorch does on random inputs, and return the largest difference.

    Differences are relative to 1 + the size of the value, because evidence may be large. Calls must be those that
    PyTorch's heads make of the same evidence; ties, which rounding decides, are left out.
    """
    generator = torch.Generator().manual_seed(0)
    used = [given.name for given in runtime.get_inputs()]
    ours = dict(zip(step.inputs, step.example(batch), strict=True))
    theirs = dict(ours)
    # Frames of the size of the training data, which the network knows.
    mean, deviation = step.network.standardise.running_mean, step.network.standardise.running_var
    assert mean is not None
    assert deviation is not None
    unit = 1.0 if step.network.unit is None else step.network.unit
    worst, wrong = 0.0, 0
    for number in range(segments):
        drawn = torch.randn(ours["frames"].shape, generator=generator)
        for arguments in (ours, theirs):
            arguments |= {"frames": (drawn * deviation.sqrt() + mean) / unit, "begun": torch.full((batch,), number)}
        with validation(False):
            expected = dict(zip(step.outputs, step(*(ours[name] for name in step.inputs)), strict=True))
        results = runtime.run(step.outputs, {name: theirs[name].numpy() for name in used})
        found = dict(zip(step.outputs, map(torch.from_numpy, results), strict=True))
        for name, value in expected.items():
            if value.is_floating_point():
                worst = max(worst, float(((found[name] - value).abs() / (1 + value.abs())).max()))
        wrong += step.misjudged(found)
        ours |= step.following(expected)
        theirs |= step.following(found)
    if not worst <= _TOLERANCE:
        raise EvidentiaError(f"ONNX Runtime and PyTorch differ by {worst:.2g} on this network; use the engine 'torch'")
    if wrong:
        raise EvidentiaError(
            f"ONNX Runtime and PyTorch differ in {wrong} calls on the same evidence; use the engine 'torch'"
        )
    return worst


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's warnings, which speak of its own parts."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
