"""Measuring time and memory, and showing them as ratios against a named reference."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import resource
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table


class Seconds(NamedTuple):
    """The shortest of several runs."""

    cpu: float
    wall: float


class Row(NamedTuple):
    """A case: what the reference costs and what ours does, in seconds or megabytes."""

    case: str
    reference: str
    reference_cost: float
    our_cost: float
    target: float
    unit: str = "s"

    @property
    def ratio(self) -> float:
        """How many times less ours costs."""
        return self.reference_cost / self.our_cost

    @property
    def met(self) -> bool:
        """Whether the ratio reaches the target."""
        return self.ratio >= self.target


def best_of(fn: Callable[[], Any], repeats: int = 5, *, warm_up: bool = True) -> Seconds:
    """The least CPU and wall seconds of a call: what it takes when nothing else disturbs it.

    Unless `warm_up` is off, one call before is not counted: it loads libraries and fills caches.
    """
    if warm_up:
        fn()
    cpu, wall = [], []
    for _ in range(repeats):
        gc.collect()
        cpu_start, wall_start = time.process_time(), time.perf_counter()
        fn()
        cpu.append(time.process_time() - cpu_start)
        wall.append(time.perf_counter() - wall_start)
    return Seconds(min(cpu), min(wall))


def best_together(*fns: Callable[[], Any], repeats: int = 50) -> list[float]:
    """The least CPU seconds of each of several calls, taken in turns so that a disturbance meets them all."""
    best = [float("inf")] * len(fns)
    for fn in fns:
        fn()
    gc.collect()
    for _ in range(repeats):
        for index, fn in enumerate(fns):
            start = time.process_time()
            fn()
            best[index] = min(best[index], time.process_time() - start)
    return best


def peak_extra_memory(fn: Callable[[], Any]) -> int:
    """Bytes by which one call raises the peak of resident memory, its result included; Linux only.

    The call runs in a forked process: a fork starts with a peak equal to what is resident then, so that nothing
    that was larger before can hide the rise. Library pages that the call touches first count too: a few megabytes.
    Needs `torch.set_num_threads(1)`, since threads do not survive a fork.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measure_peak, args=(fn, sender))
    process.start()
    # With our end of it closed, a child that dies leaves an EOFError here and not a wait without end.
    sender.close()
    try:
        return int(receiver.recv())
    finally:
        process.join()


def _measure_peak(fn: Callable[[], Any], sender: Connection) -> None:
    gc.collect()
    # Give freed memory back first: a call that could reuse it would seem to need none.
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    before = _resident()
    fn()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    sender.send(peak - before)


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def show(rows: list[Row], title: str) -> None:
    """Print the rows as a table."""
    table = Table(title=title)
    for heading in ("case", "reference"):
        table.add_column(heading, overflow="fold")
    for heading in ("reference cost", "ours", "ratio", "target"):
        table.add_column(heading, justify="right")
    table.add_column("met")
    for row in rows:
        table.add_row(
            row.case,
            row.reference,
            f"{row.reference_cost:.4g} {row.unit}",
            f"{row.our_cost:.4g} {row.unit}",
            f"{row.ratio:.1f}x",
            f"{row.target:g}x",
            "[green]yes[/]" if row.met else "[red]no[/]",
        )
    Console().print(table)
