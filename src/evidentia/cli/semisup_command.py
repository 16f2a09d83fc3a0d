"""The options of `evidentia semisup`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def semisup(
    data: Annotated[
        str, typer.Argument(help="two-moons, digits (both built in), mnist, cifar10, cifar100, svhn or svhn-extra.")
    ],
    objective: Annotated[str, typer.Option(help="What unlabeled samples cost: fixmatch, vat …")] = "fixmatch",
    robust: Annotated[str, typer.Option(help="How they are weighed: uncertainty, meta, ift …")] = "uncertainty",
    ood: Annotated[str | None, typer.Option(help="Kind of OOD, mixed or none; else the data set's first.")] = None,
    ratio: Annotated[float | None, typer.Option(help="Share of OOD in the pool, from 0 to below 1; else 0.5.")] = None,
    norm: Annotated[
        Literal["none", "batch", "frozen", "weighted"] | None,
        typer.Option(help="Batch norm; else what goes with the method."),
    ] = None,
    passes: Annotated[
        Literal["concat", "separate"] | None, typer.Option(help="Both batches together, or one after the other.")
    ] = None,
    preset: Annotated[Literal["quick", "thesis", "author"], typer.Option(help="Updates, batches and rates.")] = "quick",
    updates: Annotated[int | None, typer.Option(min=1, help="Updates, in place of the preset's.")] = None,
    uncertainty: Annotated[str | None, typer.Option(help="Of the robust method: pu, kernel, evidential …")] = None,
    scope: Annotated[
        Literal["last", "full"] | None, typer.Option(help="Of the robust method: the last layer, or all.")
    ] = None,
    apply: Annotated[
        Literal["loss", "sample", "keep"] | None,
        typer.Option(help="Of the robust method: weigh losses, or draw by weights, or from those kept."),
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
    method = {"uncertainty": uncertainty, "scope": scope, "apply": apply}
    method = {name: value for name, value in method.items() if value is not None} | given.pop("robust_options")
    settings = {
        "data": data,
        "objective": objective,
        "robust": robust,
        "ood": ood,
        "ratio": ratio,
        "preset": preset,
        "norm": norm,
        "passes": passes,
        "validation": validation,
        "robust_options": method,
        "data_root": data_root,
        **given,
        **({} if updates is None else {"updates": updates}),
    }
    files = {"json_file": json, "picture": picture, "checkpoint": checkpoint}
    run_semisup(settings, range(first_seed, first_seed + seeds), controls=controls, **files)
