"""What live event detection costs: a segment, a core full of streams, ten minutes of stream.

Run: `python benchmarks/events.py [--quick] [--engine torch|onnx]`. One thread; CPU time, because other programs may run
beside it (wall time is printed too). Networks have random weights, which cost what trained ones do; ten classes, the
head wbc over four segments, and warnings. Leaves with status 1 if an aim is missed.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib.util
import os
import resource
import sys
import time
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

# BLAS and OpenMP read these when they are loaded.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from _measure import best_together
from evidentia.events import DetectorStream, EventDetector, LogMel, SoundInputs, make_head, make_network, push_many
from evidentia.events.networks.by_name import Size
from evidentia.events.streams.onnx import NetworkStep, onnx_bytes, session

SEGMENT = 0.064
STEP = 1024
EngineName = Literal["torch", "onnx"]


class Figure(NamedTuple):
    """A measured figure and what it aims at."""

    case: str
    measured: str
    aim: str
    met: bool | None


class Times(NamedTuple):
    """Quantiles of many calls, in milliseconds."""

    cpu_p50: float
    cpu_p99: float
    wall_p50: float
    wall_p99: float


@lru_cache
def detector(size: Size) -> EventDetector:
    """A detector of ten classes with random weights, which never calls; exported once for all cases."""
    torch.manual_seed(0)
    network = make_network("crnn", 128, 10, size=size).eval()
    head = make_head("wbc", threshold=1e3)
    return EventDetector.assemble(network, [f"class {k}" for k in range(10)], SoundInputs(), head)


def sound(streams: int) -> list[np.ndarray[Any, np.dtype[np.float32]]]:
    """A segment for each stream."""
    generator = np.random.default_rng(0)
    return list((0.1 * generator.standard_normal((streams, STEP))).astype(np.float32))


def quantiles(call: Callable[[], Any], repeats: int) -> Times:
    """CPU and wall time of many calls."""
    for _ in range(20):
        call()
    gc.collect()
    cpu, wall = [], []
    for _ in range(repeats):
        cpu_start, wall_start = time.process_time(), time.perf_counter()
        call()
        cpu.append(time.process_time() - cpu_start)
        wall.append(time.perf_counter() - wall_start)
    return Times(*(1e3 * float(np.quantile(values, q)) for values in (cpu, wall) for q in (0.5, 0.99)))


def cached_state(engine: EngineName, aim: int | None, quick: bool) -> list[Figure]:
    """A segment with cached state against front end and network over the last 10 s, DCASE size.

    Once as part of a second of stream, as on a core that is full of streams, which is what the aim is about; and once
    right after the network went over the whole buffer, which leaves nothing of the stream in the processor's caches.
    """
    det = detector("dcase")
    stream, (chunk,) = det.stream(engine=engine), sound(1)
    buffer = torch.from_numpy(np.concatenate(sound(157))[:160_000])
    second = round(1 / SEGMENT)
    front_end = LogMel()

    @torch.inference_mode()
    def recompute() -> None:
        det.network_(front_end(buffer).unsqueeze(0))

    def push_second() -> None:
        for _ in range(second):
            stream.push(chunk)

    again, cold, many = best_together(recompute, partial(stream.push, chunk), push_second, repeats=5 if quick else 20)
    figures = []
    for case, cached, least in (("", many / second, aim), (" out of cold caches", cold, None)):
        measured = f"{again * 1e3:.1f} ms / {cached * 1e3:.2f} ms = {again / cached:.0f}x"
        wanted, met = ("", None) if least is None else (f"at least {least}x", again / cached >= least)
        figures.append(Figure(f"10 s buffer again / cached state{case}, DCASE, {engine}", measured, wanted, met))
    return figures


def latency(size: Size, engine: EngineName, aim: float | None, quick: bool) -> Figure:
    """From a segment of samples to its decision."""
    stream, (chunk,) = detector(size).stream(engine=engine), sound(1)
    times = quantiles(partial(stream.push, chunk), 300 if quick else 3000)
    measured = (
        f"p50 {times.cpu_p50:.2f} ms, p99 {times.cpu_p99:.2f} ms CPU; {times.wall_p50:.2f}, {times.wall_p99:.2f} wall"
    )
    wanted = "" if aim is None else f"p50 {aim:g} ms"
    return Figure(
        f"audio to decision, {size}, {engine}", measured, wanted, None if aim is None else times.cpu_p50 <= aim
    )


def streams_a_core(size: Size, engine: EngineName, aim: int | None, quick: bool) -> Figure:
    """How many live streams keep up on one core, pushed in one batch."""
    det = detector(size)
    found = {}
    for count in (32, 128) if quick else (32, 64, 128, 256, 512):
        streams, chunks = [det.stream(engine=engine) for _ in range(count)], sound(count)
        (cost,) = best_together(partial(push_many, streams, chunks), repeats=5 if quick else 15)
        found[count] = SEGMENT * count / cost
    count = max(found, key=lambda n: found[n])
    measured = f"{found[count]:.0f} (in batches of {count})"
    wanted = "" if aim is None else f"{aim:,}"
    met = None if aim is None else found[count] >= aim
    return Figure(f"real-time streams a core, {size}, {engine}", measured, wanted, met)


def fusion_share(size: Size, engine: EngineName, aim: float, quick: bool) -> Figure:
    """What evidence, fusion and warnings of 128 streams add to their network's time."""
    count = 128
    streams, chunks = [detector(size).stream(engine=engine)], sound(count)
    streams += [DetectorStream(streams[0].runner) for _ in range(count - 1)]
    for _ in range(8):
        push_many(streams, chunks)
    runner, memory = streams[0].runner, streams[0]._place.memory
    network, begun = runner.pipeline.network, memory.clock["begun"]
    caches = {name: memory.kept[f"network/{name}"] for name in network.start().caches}
    frames, _ = runner.inputs.advance(np.stack(chunks), memory.inputs)
    if engine == "onnx":
        runtime = session(onnx_bytes(NetworkStep(network)))
        given = {"frames": frames, "begun": begun, **{f"cache/{name}": cache for name, cache in caches.items()}}
        alone: Callable[[], Any] = partial(
            runtime.run, None, {part.name: given[part.name] for part in runtime.get_inputs()}
        )
    else:
        tensors = {name: torch.from_numpy(cache) for name, cache in caches.items()}
        alone = partial(network.advance, torch.from_numpy(frames), torch.from_numpy(begun), tensors)
    with torch.inference_mode():
        bare, whole = best_together(
            alone, partial(runner.pipeline.step, frames, begun, memory.kept, runner.engine), repeats=10 if quick else 50
        )
    share = (whole - bare) / bare
    measured = f"{(whole - bare) * 1e3:.2f} ms / {bare * 1e3:.2f} ms = {share:.1%}"
    case = f"fusion and warnings / network, 128 streams, {size}, {engine}"
    return Figure(case, measured, f"at most {aim:.0%}", share <= aim)


def flat_memory(engine: EngineName, quick: bool) -> Figure:
    """Resident memory after two minutes of stream, when all is warm, and after ten."""
    stream = detector("small").stream(engine=engine)
    minute = np.concatenate(sound(round(60 / SEGMENT)))
    minutes = 4 if quick else 10
    sizes = []
    for _ in range(minutes):
        for chunk in np.array_split(minute, 600):
            stream.push(chunk)
        gc.collect()
        # Freed memory that the allocator keeps is no part of the stream.
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        sizes.append(_resident())
    growth = (sizes[-1] - sizes[1]) / 1e6
    case = f"memory from minute 2 to minute {minutes}, small, {engine}"
    return Figure(case, f"{growth:+.2f} MB", "within 1 MB", growth <= 1)


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def show(figures: list[Figure]) -> None:
    table = Table(title="live event detection, one thread")
    for heading in ("case", "measured", "aim", "met"):
        table.add_column(heading, overflow="fold")
    for figure in figures:
        met = "" if figure.met is None else "[green]yes[/]" if figure.met else "[red]no[/]"
        table.add_row(figure.case, figure.measured, figure.aim, met)
    Console(width=130).print(table)


def main() -> int:
    """Measure, print, and say by the status whether all aims are met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats, three minutes of stream")
    parser.add_argument("--engine", choices=["torch", "onnx"], help="by default ONNX Runtime, if it is installed")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    installed = importlib.util.find_spec("onnxruntime") and importlib.util.find_spec("onnxscript")
    engine: EngineName = arguments.engine or ("onnx" if installed else "torch")
    quick = arguments.quick
    figures = [
        *cached_state(engine, 30, quick),
        latency("dcase", engine, 0.4, quick),
        latency("small", engine, None, quick),
        streams_a_core("dcase", engine, 200, quick),
        streams_a_core("small", engine, 1000, quick),
        fusion_share("dcase", engine, 0.1, quick),
        fusion_share("small", engine, 0.1, quick),
        flat_memory(engine, quick),
    ]
    if engine == "onnx":
        figures[2:2] = [*cached_state("torch", None, quick), latency("dcase", "torch", None, quick)]
    show(figures)
    return 0 if all(figure.met in (None, True) for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
