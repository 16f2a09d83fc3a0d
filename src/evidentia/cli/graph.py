"""`evidentia graph`: a method and a task on a graph, over several seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from evidentia.experiments.record import RunRecord
from evidentia.graphs import citation_graph, load_graph
from evidentia.graphs.tasks import GraphTask, Protocol, run_task

# The built-in graph, for a try without any data.
BUILT_IN = "synthetic"


def run_graph(
    name: str,
    method: str,
    task: GraphTask,
    protocol: Protocol,
    seeds: Sequence[int],
    data_root: Path | None,
    json_file: Path | None,
    options: dict[str, Any],
) -> None:
    """Run a task for every seed, print the means and write the record."""
    data = citation_graph() if name == BUILT_IN else load_graph(name, data_root=data_root)
    record = RunRecord({"data": name, "method": method, "task": task, "protocol": protocol, **options})
    with Progress(console=Console(stderr=True), transient=True) as bar:
        bar_task = bar.add_task(f"{method} on {name}", total=len(seeds))
        for seed in seeds:
            result = run_task(data, task, method, seed, protocol, progress=False, **options)
            record.add(seed, asdict(result))
            bar.advance(bar_task)
    summary = record.summary()
    _print(summary, f"{name}, {task}, {method}: mean ± sd over {len(seeds)} seeds, %")
    if json_file is not None:
        record.save(json_file)


def _print(summary: dict[str, Any], title: str) -> None:
    mean, std = summary["mean"], summary["std"]
    table = Table(title=title, title_justify="left", title_style="bold", header_style="")
    for index, heading in enumerate(("uncertainty", "AUROC", "AUPR")):
        table.add_column(heading, justify="right" if index else "left")
    for name in mean["auroc"]:
        cells = (f"{100 * mean[kind][name]:.1f} ± {100 * std[kind][name]:.1f}" for kind in ("auroc", "aupr"))
        table.add_row(name, *cells)
    console = Console()
    console.print(table)
    console.print(f"accuracy {100 * mean['accuracy']:.1f} ± {100 * std['accuracy']:.1f}", highlight=False)
    cost = f"{summary['wall_seconds']:.0f} s, {summary['peak_memory_bytes'] / 1e6:.0f} MB at most"
    console.print(cost, style="dim", highlight=False)
