"""The command's entry point and its subcommands."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from evidentia._support.errors import EvidentiaError, MissingExtraError
from evidentia._version import __version__
from evidentia.cli.console import plain_console
from evidentia.cli.events import events
from evidentia.cli.graph_command import graph
from evidentia.cli.semisup_command import semisup
from evidentia.cli.study_command import report, study

_errors = plain_console(stderr=True)


class _App(typer.Typer):
    """Errors that evidentia raises on purpose, and files that cannot be used, are told in a sentence."""

    def __call__(self, *args: object, **kwargs: object) -> object:
        # Where results go may have no sign for a plus-minus, and the name of a file may be no text at all.
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")
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
    seeds: Annotated[int, typer.Option(min=2, help="How many random splits of the digits to run.")] = 5,
    first_seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
) -> None:
    """Train on bundled data, print the uncertainties, write pictures and a report. Nothing is downloaded."""
    from evidentia.cli.demo import run_demo

    run_demo(out, range(first_seed, first_seed + seeds))


app.command()(graph)
app.command()(semisup)
app.command()(study)
app.command()(report)
