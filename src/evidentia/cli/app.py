"""The command's entry point and its subcommands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from evidentia._support.errors import EvidentiaError, MissingExtraError
from evidentia._version import __version__

_errors = Console(stderr=True)


class _App(typer.Typer):
    """Errors that evidentia raises on purpose are shown as a sentence, not as a traceback."""

    def __call__(self, *args: object, **kwargs: object) -> object:
        try:
            return super().__call__(*args, **kwargs)
        except (EvidentiaError, MissingExtraError) as error:
            _errors.print("error:", style="bold red", end=" ")
            _errors.print(str(error), markup=False, highlight=False)
            sys.exit(1)


app = _App(
    name="evidentia",
    help="How unsure a neural network is, and why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


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
