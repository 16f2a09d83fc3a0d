"""`evidentia demo`: what the library does, on bundled data, in under two minutes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from evidentia.experiments.digits import GROUPS, TASKS, DigitsRun, digits_split, run_digits
from evidentia.experiments.digits_summary import (
    accuracy_line,
    claims,
    score_rows,
    triage_rows,
    uncertainty_rows,
)
from evidentia.reports.digits import write_digits_report


def run_demo(out: Path, seeds: Sequence[int]) -> None:
    """Run the digits experiment, print its tables and write its report."""
    # Networks this small are slowed down, not sped up, by more threads, above all on a busy machine.
    torch.set_num_threads(1)
    console = Console()
    start = time.monotonic()
    split = digits_split(seeds[0])
    console.rule("[bold]evidentia: how unsure is a network, and why?")
    console.print(
        f"Handwritten digits: {len(split.train[0])} training images of {len(split.digits)} digits; the other "
        f"{10 - len(split.digits)} digits are never shown. {len(seeds)} random splits, two networks each."
    )
    runs = _train(seeds)

    console.print(f"\nTest accuracy: {accuracy_line(runs)}.")
    _print_table(
        console, "How unsure the evidential network is (mean)", ("uncertainty", *GROUPS), uncertainty_rows(runs)
    )
    _print_table(console, "What each score finds (AUROC, mean ± sd over splits)", ("score", *TASKS), score_rows(runs))
    _print_table(
        console, "What to do with each image (triage at 90% coverage)", ("verdict", *GROUPS), triage_rows(runs)
    )
    console.print()
    for claim in claims(runs):
        mark = {"above": "[green]✓[/]", "below": "[red]✗[/]"}.get(claim.verdict, "[yellow]≈[/]")
        console.print(f" {mark} {claim}", highlight=False)

    files = write_digits_report(runs, out)
    console.print(f"\nWritten in {time.monotonic() - start:.0f} s:")
    for path in files:
        console.print(f"  {path}", highlight=False)
    console.print("Open the report in a browser; it needs no network.")


def _train(seeds: Sequence[int]) -> list[DigitsRun]:
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("splits"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("training", total=len(seeds))
        return run_digits(seeds, after_each=lambda _: bar.advance(task))


def _print_table(console: Console, title: str, header: Iterable[str], rows: Iterable[Sequence[str]]) -> None:
    table = Table(title=title, title_justify="left", title_style="bold", header_style="")
    for index, column in enumerate(header):
        table.add_column(column, justify="right" if index else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print()
    console.print(table)
