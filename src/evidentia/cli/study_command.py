"""The options of `evidentia study` and `evidentia report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def study(
    name: Annotated[
        str | None,
        typer.Argument(
            help="The name of a study (see --list), or a .toml or .py file that declares one.", show_default=False
        ),
    ] = None,
    preset: Annotated[
        Literal["quick", "full"],
        typer.Option(help="A smaller version with fewer cells, seeds or updates, or the whole table."),
    ] = "quick",
    engine: Annotated[
        Literal["local", "pool", "ray"],
        typer.Option(help="Where jobs run: in this process, in a pool of processes, or on Ray."),
    ] = "local",
    address: Annotated[str | None, typer.Option(help="Address of a Ray cluster. Default: start a local one.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="How many jobs to run at a time. Default: one per processor.")
    ] = None,
    store: Annotated[Path, typer.Option(help="File to keep results in; runs with the same file share results.")] = Path(
        "evidentia-results.sqlite"
    ),
    seeds: Annotated[int | None, typer.Option(min=1, help="How many seeds, in place of the preset's.")] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AXIS=LABEL",
            help="Run only these cells of the table, such as method=gcn. May be given several times.",
        ),
    ] = None,
    known: Annotated[
        list[Path] | None,
        typer.Option(help="Take results from a table that was exported as .json, instead of running them again."),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(min=0, help="Start no new job after this many minutes; 0 only shows the results so far."),
    ] = None,
    data_root: Annotated[Path | None, typer.Option(help="Folder with the data sets.")] = None,
    export: Annotated[
        list[Path] | None, typer.Option(help="Write the table to this file: .md, .csv, .tex or .json.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Write a report with pictures to this HTML file.")
    ] = None,
    pictures: Annotated[
        bool, typer.Option(help="Train the networks that the report shows; mostly takes seconds.")
    ] = True,
    records: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            help="Run nothing; make the table from the files that `evidentia graph --json` wrote into this folder.",
        ),
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the studies.")] = False,
) -> None:
    """Run a table of the thesis, or a study of your own; if stopped, the same command continues it."""
    from evidentia.cli.study import list_studies, run_study, show_records

    if show_list:
        list_studies()
        return
    if name is None:
        raise typer.BadParameter("give the name of a study, or --list")
    if records is not None:
        show_records(name, records, export or [], report)
        return
    run_study(
        name,
        preset,
        engine=engine,
        address=address,
        workers=workers,
        store_file=store,
        seeds=seeds,
        data_root=data_root,
        exports=export or [],
        report=report,
        pictures=pictures,
        only=only or [],
        known=known or [],
        minutes=minutes,
    )


def report(
    files: Annotated[list[Path], typer.Argument(help="Tables that `evidentia study --export` wrote as .json.")],
    out: Annotated[Path, typer.Option(dir_okay=False, help="The HTML file to write.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Its heading.")] = None,
) -> None:
    """Write one report of several studies: tables, pictures, and where every figure comes from."""
    from evidentia.cli.study import write_report

    write_report(files, out, title)
