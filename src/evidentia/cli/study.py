"""`evidentia study` and `evidentia report`: a declared study, run or taken up again, its table, and the report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from evidentia._support.files import check_writable
from evidentia.cli.console import plain_console
from evidentia.cli.figures import titled_table
from evidentia.experiments import (
    STUDIES,
    Plan,
    StudyRun,
    StudyStore,
    StudyTable,
    export_table,
    find_study,
    make_engine,
    plan_study,
    read_results,
    run_plan,
    study_table,
    take_up,
)
from evidentia.experiments.graph_records import records_table
from evidentia.experiments.study import PresetName
from evidentia.experiments.study_export import check_export, paired_texts, seeds_text, table_notes, table_texts
from evidentia.reports.study import study_report
from evidentia.reports.study_pictures import StudyPictures, check_pictures, study_pictures

_INTERRUPTED = 130


def list_studies() -> None:
    """Print the studies that there are."""
    table = Table(header_style="")
    for index, heading in enumerate(("study", "what", "quick", "full")):
        table.add_column(heading, justify="right" if index > 1 else "left")
    for study in STUDIES.values():
        sizes = [str(len(study.cells(preset)) * study.preset(preset).seeds) for preset in ("quick", "full")]
        table.add_row(study.name, study.title, *sizes)
    console = plain_console()
    console.print(table)
    console.print("quick and full: how many trainings there are", style="dim", highlight=False)


def run_study(
    name: str,
    preset: PresetName,
    *,
    engine: str,
    address: str | None,
    workers: int | None,
    store_file: Path,
    seeds: int | None,
    data_root: Path | None,
    exports: Sequence[Path],
    report: Path | None = None,
    pictures: bool = True,
    only: Sequence[str] = (),
    known: Sequence[Path] = (),
    minutes: float | None = None,
) -> None:
    """Run what is missing, print the table and the failures, export the table and write the report."""
    for file in exports:
        check_export(file)
    if report is not None:
        check_writable(report)
    plan = plan_study(find_study(name), preset, seeds, _labels(only))
    tables = [read_results(file) for file in known]
    if report is not None and pictures:
        check_pictures(plan.study, preset)
    used = make_engine(engine, workers, address)
    console, notes = plain_console(), plain_console(stderr=True)
    with StudyStore(store_file) as store:
        for file, exported in zip(known, tables, strict=True):
            taken = take_up(plan, store, exported)
            notes.print(f"{taken} results taken up from {file}", style="dim", highlight=False)
        try:
            run = run_plan(plan, store, used, data_root=data_root, minutes=math.inf if minutes is None else minutes)
        except KeyboardInterrupt:
            done = len(store.results(plan.jobs))
            notes.print(f"stopped: {done} of {len(plan.jobs)} jobs are done; the same command goes on from there")
            raise typer.Exit(_INTERRUPTED) from None
        table = study_table(plan, store)
    # Before anything is printed, which a reader that has gone away may end.
    for file in exports:
        export_table(table, file)
    print_table(console, table)
    _print_run(notes, plan, run)
    if report is not None:
        drawn = _draw(notes, plan, data_root) if pictures else None
        study_report([table], pictures=None if drawn is None else {table.study: drawn}).save(report)
    if run.failures:
        raise typer.Exit(1)


def _labels(chosen: Sequence[str]) -> dict[str, list[str]]:
    """Texts such as `method=gcn` by what stands before the sign."""
    labels: dict[str, list[str]] = {}
    for text in chosen:
        axis, sign, label = text.partition("=")
        if not sign:
            raise typer.BadParameter(f"--only takes AXIS=LABEL, such as method=gcn, got {text!r}")
        labels.setdefault(axis, []).append(label)
    return labels


def show_records(name: str, folder: Path, exports: Sequence[Path], report: Path | None) -> None:
    """Make the table of a study from records that `evidentia graph --json` wrote into a folder; run nothing."""
    for file in exports:
        check_export(file)
    table = records_table(find_study(name), sorted(folder.glob("*.json")))
    print_table(plain_console(), table)
    for file in exports:
        export_table(table, file)
    if report is not None:
        study_report([table]).save(report)


def write_report(files: Sequence[Path], out: Path, title: str | None) -> None:
    """Write one report of tables that were exported as JSON."""
    study_report([read_results(file) for file in files], title).save(out)
    studies = "1 study" if len(files) == 1 else f"{len(files)} studies"
    plain_console().print(f"{out}: {studies}; it needs no network", highlight=False)


def _draw(notes: Console, plan: Plan, data_root: Path | None) -> StudyPictures | None:
    try:
        drawn = study_pictures(plan, data_root)
    except KeyboardInterrupt:
        notes.print("stopped: the report is written without pictures of networks", style="dim", highlight=False)
        return None
    for failed in drawn.failures if drawn is not None else ():
        notes.print(f"no picture of {failed.what}: {failed.why}", style="bold red", highlight=False)
    return drawn


def print_table(console: Console, table: StudyTable) -> None:
    """Print the table, the tests and the notes."""
    title = f"{table.title} ({table.preset}, {seeds_text(table)})"
    _print_grid(console, title, *table_texts(table), axes=len(table.axes))
    if table.tests:
        headings, rows = paired_texts(table)
        same = headings.index("against")
        headings, *rows = ([*row[:same], *row[same + 1 :]] for row in (headings, *rows))
        title = f"Against {table.tests[0].against}, paired t-tests of the same seeds"
        _print_grid(console, title, headings, rows, axes=len(table.axes) - 1)
    for note in table_notes(table):
        console.print(note, style="dim", highlight=False)


def _print_grid(
    console: Console, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], *, axes: int
) -> None:
    """With the cell above its metrics, as far as there are several: names are long, and terminals narrow."""
    cells = [", ".join(row[:axes]) for row in rows]
    several = len(set(cells)) < len(cells)
    words = (*headings[: axes + 1], "method", "verdict")
    grid = titled_table(title, headings[axes:] if several else headings, words)
    for index, row in enumerate(rows):
        begins = index == 0 or cells[index - 1] != cells[index]
        if several and begins:
            if index:
                grid.add_section()
            grid.add_row(Text(cells[index], style="bold"))
        grid.add_row(*(Text(text) for text in (row[axes:] if several else row)))
    console.print(grid)


def _print_run(notes: Console, plan: Plan, run: StudyRun) -> None:
    for failed in run.failures:
        notes.print(f"failed: {failed.what}", style="bold red", highlight=False)
        notes.print(failed.failure.rstrip(), style="dim", highlight=False)
    parts = [f"{run.now} of {run.jobs} jobs in {run.seconds:.0f} s"]
    parts += [
        f"{number} {what}" for number, what in ((run.earlier, "done before"), (run.elsewhere, "by others")) if number
    ]
    parts += [f"{run.retries} workers died"] if run.retries else []
    parts += [f"{len(run.failures)} failed"] if run.failures else []
    parts += [f"{run.left} left, with which the same command goes on"] if run.left else []
    notes.print(f"{plan.study.name}: {', '.join(parts)}", style="dim", highlight=False)
