"""`evidentia graph`: a method and a task on a graph, over several seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from evidentia._support.progress import progress_bar
from evidentia.experiments import published_figure
from evidentia.experiments.jobs.graph import job_graph
from evidentia.experiments.record import RunRecord
from evidentia.graphs.tasks import GraphTask, Protocol, run_task, usual_settings


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
    data = job_graph(name, None if data_root is None else str(data_root))
    options = {option: value for option, value in options.items() if value is not None}
    usual = usual_settings(str(getattr(data, "name", "")), task, method)
    # Where teachers are kept changes nothing in the figures.
    kept = {option: value for option, value in {**usual, **options}.items() if option != "cache"}
    record = RunRecord({"data": name, "method": method, "task": task, "protocol": protocol, **kept})
    with progress_bar(f"{method} on {name}", len(seeds)) as advance:
        for done, seed in enumerate(seeds, start=1):
            result = run_task(data, task, method, seed, protocol, progress=False, **options)
            record.add(seed, asdict(result))
            advance(done, "")
    summary = record.summary()
    _print(
        summary, f"{name}, {task}, {method}: mean ± sd over {len(seeds)} seeds, %", f"graph-{task}", f"{name}/{method}"
    )
    if json_file is not None:
        record.save(json_file)


def _print(summary: dict[str, Any], title: str, published_table: str, published_row: str) -> None:
    mean, std = summary["mean"], summary["std"]
    figures = {
        column: found.value
        for column in ["accuracy", *(f"{kind}.{name}" for kind in ("auroc", "aupr") for name in mean["auroc"])]
        if (found := published_figure(published_table, published_row, column)) is not None
    }
    table = Table(title=title, title_justify="left", title_style="bold", header_style="")
    headings = (
        ["uncertainty", "AUROC", "published", "AUPR", "published"] if figures else ["uncertainty", "AUROC", "AUPR"]
    )
    for index, heading in enumerate(headings):
        dim = "dim" if heading == "published" else None
        table.add_column(heading, justify="right" if index else "left", style=dim)
    for name in mean["auroc"]:
        cells = []
        for kind in ("auroc", "aupr"):
            cells.append(f"{100 * mean[kind][name]:.1f} ± {100 * std[kind][name]:.1f}")
            if figures:
                cells.append(_published(figures.get(f"{kind}.{name}")))
        table.add_row(name, *cells)
    console = Console()
    console.print(table)
    beside = f" (published {figures['accuracy']:.1f})" if "accuracy" in figures else ""
    console.print(f"accuracy {100 * mean['accuracy']:.1f} ± {100 * std['accuracy']:.1f}{beside}", highlight=False)
    cost = f"{summary['wall_seconds']:.0f} s, {summary['peak_memory_bytes'] / 1e6:.0f} MB at most"
    console.print(cost, style="dim", highlight=False)


def _published(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
