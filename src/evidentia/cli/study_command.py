"""The options of `evidentia study` and `evidentia report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def study(
    name: Annotated[
        str | None, typer.Argument(help="A study of --list, or a .toml or .py file.", show_default=False)
    ] = None,
    preset: Annotated[Literal["quick", "full"], typer.Option(help="How much of it.")] = "quick",
    engine: Annotated[
        Literal["local", "pool", "ray"], typer.Option(help="Where jobs run: here, in processes, on Ray.")
    ] = "local",
    address: Annotated[str | None, typer.Option(help="Of a Ray cluster; else a local one is started.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Jobs at a time; else one a processor.")] = None,
    store: Annotated[Path, typer.Option(help="File of results; runs that share it share them.")] = Path(
        "evidentia-results.sqlite"
    ),
    seeds: Annotated[int | None, typer.Option(min=1, help="How many seeds, in place of the preset's.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="AXIS=LABEL", help="Run these cells of the table only.")
    ] = None,
    known: Annotated[
        list[Path] | None, typer.Option(help="Take up results of a table that was exported as .json.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0, help="Begin no other job after so many; 0 shows what there is.")
    ] = None,
    data_root: Annotated[Path | None, typer.Option(help="Folder with the data sets.")] = None,
    export: Annotated[
        list[Path] | None, typer.Option(help="Write the table to this file: .md, .csv, .tex or .json.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Write a report with pictures to this HTML file.")
    ] = None,
    pictures: Annotated[
        bool, typer.Option(help="Train the networks that the report is to show; mostly seconds.")
    ] = True,
    records: Annotated[
        Path | None,
        typer.Option(exists=True, file_okay=False, help="Run nothing; take what graph --json wrote into this folder."),
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the studies.")] = False,
) -> None:
    """Run a table of the thesis, or a study of one's own; stopped, it goes on where it was."""
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
    files: Annotated[list[Path], typer.Argument(help="Tables of studies, as study --export wrote them as .json.")],
    out: Annotated[Path, typer.Option(dir_okay=False, help="The HTML file to write.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Its heading.")] = None,
) -> None:
    """Write one report of several studies: tables, pictures, and where every figure comes from."""
    from evidentia.cli.study import write_report

    write_report(files, out, title)
