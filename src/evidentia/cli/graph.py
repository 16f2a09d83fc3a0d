"""`evidentia graph`: a method and a task on a graph, over several seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from evidentia._support.errors import EvidentiaError
from evidentia._support.files import check_writable
from evidentia._support.progress import progress_bar
from evidentia.cli.console import plain_console
from evidentia.cli.figures import over_seeds, percent, titled_table
from evidentia.experiments import published_figure
from evidentia.experiments.graph_runs import GraphRuns

# A method of ours stands beside that of the thesis on which it builds.
_BUILDS_ON = {"s-bgcn-t-kw": "s-bgcn-t-k"}


def run_graph(
    settings: dict[str, Any],
    seeds: Sequence[int],
    *,
    json_file: Path | None = None,
    picture: Path | None = None,
    checkpoint: Path | None = None,
) -> None:
    """Run a task for every seed, print the means, write the record and draw the first seed's network."""
    if json_file is not None:
        check_writable(json_file)
    if picture is not None:
        from evidentia.reports.graphs import check_graph_picture

        check_graph_picture(picture)
    runs = GraphRuns({name: value for name, value in settings.items() if value is not None}, seeds, checkpoint)
    with progress_bar(f"{settings['method']} on {settings['data']}", len(seeds)) as advance:
        runs.run(after_each=lambda done: advance(done, ""))
    if json_file is not None:
        runs.record.save(json_file)
    console = plain_console()
    _print(console, runs.record.summary())
    if picture is not None:
        _draw(console, runs, picture)


def named_classes(given: str) -> str | list[int]:
    """Classes out of distribution: a word, or numbers with commas between them.

    Example:
        >>> named_classes("random"), named_classes("3,4")
        ('random', [3, 4])
    """
    if given in ("last", "random"):
        return given
    try:
        return [int(label) for label in given.split(",")]
    except ValueError:
        raise EvidentiaError(
            f"--ood-classes takes last, random or numbers of classes such as 3,4, got {given!r}"
        ) from None


def _draw(console: Console, runs: GraphRuns, path: Path) -> None:
    from evidentia.reports import graph_picture

    trained = runs.first()
    for written in graph_picture(trained.classifier, trained.split, path):
        console.print(f"drawn: {written}", style="dim", highlight=False, soft_wrap=True)


def _print(console: Console, summary: dict[str, Any]) -> None:
    configuration, mean, std = summary["configuration"], summary["mean"], summary["std"]
    data, task, method = (configuration[name] for name in ("data", "task", "method"))
    beside = _BUILDS_ON.get(method, method)
    figures = _published(configuration, beside, mean)
    title = f"{data}, {task}, {method}: {over_seeds(len(summary['seeds']))}, %"
    headings = (
        ["uncertainty", "AUROC", "published", "AUPR", "published"] if figures else ["uncertainty", "AUROC", "AUPR"]
    )
    table = titled_table(title, headings)
    for name in mean["auroc"]:
        cells = []
        for kind in ("auroc", "aupr"):
            cells.append(percent(mean[kind][name], std[kind][name]))
            if figures:
                value = figures.get(f"{kind}.{name}")
                cells.append("" if value is None else f"{value:.1f}")
        table.add_row(name, *cells)
    console.print(table)
    accuracy = f" (published {figures['accuracy']:.1f})" if "accuracy" in figures else ""
    console.print(f"accuracy {percent(mean['accuracy'], std['accuracy'])}{accuracy}", highlight=False)
    if figures and beside != method:
        console.print(f"published: of {beside}, on which {method} builds", highlight=False)
    cost = f"{summary['wall_seconds']:.0f} s, {summary['peak_memory_bytes'] / 1e6:.0f} MB at most"
    console.print(cost, style="dim", highlight=False)


def _published(configuration: dict[str, Any], method: str, mean: dict[str, Any]) -> dict[str, float]:
    # The thesis leaves out the last classes alone.
    if configuration.get("classes", "last") != "last":
        return {}
    table, row = f"graph-{configuration['task']}", f"{configuration['data']}/{method}"
    columns = ["accuracy", *(f"{kind}.{name}" for kind in ("auroc", "aupr") for name in mean["auroc"])]
    return {column: found.value for column in columns if (found := published_figure(table, row, column)) is not None}
