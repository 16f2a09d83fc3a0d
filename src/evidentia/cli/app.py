"""The command's entry point and its subcommands."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from evidentia._support.errors import EvidentiaError, MissingExtraError
from evidentia._version import __version__
from evidentia.cli.console import plain_console
from evidentia.cli.events import events
from evidentia.cli.graph_command import graph

_errors = plain_console(stderr=True)


class _App(typer.Typer):
    """Errors that evidentia raises on purpose, and files that cannot be used, are told in a sentence."""

    def __call__(self, *args: object, **kwargs: object) -> object:
        try:
            return super().__call__(*args, **kwargs)
        except (EvidentiaError, MissingExtraError) as error:
            told = str(error)
        except OSError as error:
            told = (
                str(error) if error.errno is None else f"{error.filename or 'a file'} cannot be used: {error.strerror}"
            )
        _errors.print("error:", style="bold red", end=" ")
        _errors.print(told, highlight=False)
        sys.exit(1)


app = _App(
    name="evidentia",
    help="How unsure a neural network is, and why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(events)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """How unsure a neural network is, and why."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report and the pictures.")] = Path("evidentia-demo"),
    seeds: Annotated[int, typer.Option(min=2, help="How many splits to run.")] = 5,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
) -> None:
    """Train on bundled data, print the uncertainties, write pictures and a report. Nothing is downloaded."""
    from evidentia.cli.demo import run_demo

    run_demo(out, range(first_seed, first_seed + seeds))


app.command()(graph)


class _Preset(str, Enum):
    QUICK = "quick"
    THESIS = "thesis"
    AUTHOR = "author"


class _Norm(str, Enum):
    NONE = "none"
    BATCH = "batch"
    FROZEN = "frozen"
    WEIGHTED = "weighted"


class _Passes(str, Enum):
    CONCAT = "concat"
    SEPARATE = "separate"


class _Scope(str, Enum):
    LAST = "last"
    FULL = "full"


class _Apply(str, Enum):
    LOSS = "loss"
    SAMPLE = "sample"
    KEEP = "keep"


@app.command()
def semisup(
    data: Annotated[
        str, typer.Argument(help="two-moons, digits (both built in), mnist, cifar10, cifar100, svhn or svhn-extra.")
    ],
    objective: Annotated[str, typer.Option(help="What unlabeled samples cost: fixmatch, vat …")] = "fixmatch",
    robust: Annotated[str, typer.Option(help="How they are weighed: uncertainty, meta, ift …")] = "uncertainty",
    ood: Annotated[str | None, typer.Option(help="Kind of OOD, mixed or none; else the data set's first.")] = None,
    ratio: Annotated[float | None, typer.Option(help="Share of OOD in the pool, from 0 to below 1; else 0.5.")] = None,
    norm: Annotated[_Norm | None, typer.Option(help="Batch norm; else what goes with the method.")] = None,
    passes: Annotated[_Passes | None, typer.Option(help="Both batches together, or one after the other.")] = None,
    preset: Annotated[_Preset, typer.Option(help="Updates, batches and rates.")] = _Preset.QUICK,
    updates: Annotated[int | None, typer.Option(min=1, help="Updates, in place of the preset's.")] = None,
    uncertainty: Annotated[str | None, typer.Option(help="Of the robust method: pu, kernel, evidential …")] = None,
    scope: Annotated[_Scope | None, typer.Option(help="Of the robust method: the last layer, or all.")] = None,
    apply: Annotated[
        _Apply | None, typer.Option(help="Of the robust method: weigh losses, or draw by weights, or from those kept.")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any other setting: clusters=50 of the robust method, objective.epsilon=0.5, "
            "training.learning_rate=0.001, data.labels_per_class=5 …",
        ),
    ] = None,
    validation: Annotated[int, typer.Option(min=0, help="Clean labels to learn weights by, beyond the others.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to run.")] = 5,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
    controls: Annotated[bool, typer.Option(help="Run the controls after the method.")] = True,
    data_root: Annotated[Path | None, typer.Option(help="Folder with the data sets.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw what became of the first seed's pool.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Folder from which runs that were killed go on.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write all figures to this file.")] = None,
) -> None:
    """Train on few labels and a pool with samples of no class, beside the controls."""
    from evidentia.cli.semisup import given_settings, run_semisup

    given = given_settings(setting or [])
    method = {"uncertainty": uncertainty, "scope": scope and scope.value, "apply": apply and apply.value}
    method = {name: value for name, value in method.items() if value is not None} | given.pop("robust_options")
    settings = {
        "data": data,
        "objective": objective,
        "robust": robust,
        "ood": ood,
        "ratio": ratio,
        "preset": preset.value,
        "norm": norm and norm.value,
        "passes": passes and passes.value,
        "validation": validation,
        "robust_options": method,
        "data_root": data_root,
        **given,
        **({} if updates is None else {"updates": updates}),
    }
    files = {"json_file": json, "picture": picture, "checkpoint": checkpoint}
    run_semisup(settings, range(first_seed, first_seed + seeds), controls=controls, **files)


class _StudyPreset(str, Enum):
    QUICK = "quick"
    FULL = "full"


class _Engine(str, Enum):
    LOCAL = "local"
    POOL = "pool"
    RAY = "ray"


@app.command()
def study(
    name: Annotated[
        str | None, typer.Argument(help="A study of --list, or a .toml or .py file.", show_default=False)
    ] = None,
    preset: Annotated[_StudyPreset, typer.Option(help="How much of it.")] = _StudyPreset.QUICK,
    engine: Annotated[_Engine, typer.Option(help="Where jobs run: here, in processes, on Ray.")] = _Engine.LOCAL,
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
        preset.value,
        engine=engine.value,
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


@app.command()
def report(
    files: Annotated[list[Path], typer.Argument(help="Tables of studies, as study --export wrote them as .json.")],
    out: Annotated[Path, typer.Option(dir_okay=False, help="The HTML file to write.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Its heading.")] = None,
) -> None:
    """Write one report of several studies: tables, pictures, and where every figure comes from."""
    from evidentia.cli.study import write_report

    write_report(files, out, title)
