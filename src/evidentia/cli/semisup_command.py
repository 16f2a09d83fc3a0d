"""The options of `evidentia semisup`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def semisup(
    data: Annotated[
        str, typer.Argument(help="two-moons, digits (both built in), mnist, cifar10, cifar100, svhn or svhn-extra.")
    ],
    objective: Annotated[
        str,
        typer.Option(
            help="The loss on unlabeled samples: fixmatch, mixmatch, uda, vat, pi-model, mean-teacher, pseudo-label or "
            "entropy."
        ),
    ] = "fixmatch",
    robust: Annotated[
        str,
        typer.Option(
            help="How unlabeled samples are weighted: uncertainty, meta, ift, l2rw, mwn, ds3l or uasd; or a control: "
            "none, supervised or oracle."
        ),
    ] = "uncertainty",
    ood: Annotated[
        str | None,
        typer.Option(
            help="What the pool's samples of no class are; mixed for several kinds, none for a clean pool. Default: "
            "the data set's first kind."
        ),
    ] = None,
    ratio: Annotated[
        float | None, typer.Option(help="Their share of the pool, at least 0 and less than 1. Default: 0.5.")
    ] = None,
    norm: Annotated[
        Literal["none", "batch", "frozen", "weighted"] | None,
        typer.Option(help="Kind of batch norm. Default: the one that goes with the method."),
    ] = None,
    passes: Annotated[
        Literal["concat", "separate"] | None,
        typer.Option(help="Run labeled and unlabeled batch through the network together, or one after the other."),
    ] = None,
    preset: Annotated[
        Literal["quick", "thesis", "author"], typer.Option(help="Number of updates, batch sizes and learning rates.")
    ] = "quick",
    updates: Annotated[int | None, typer.Option(min=1, help="Number of updates, in place of the preset's.")] = None,
    uncertainty: Annotated[str | None, typer.Option(help="For --robust uncertainty: pu, kernel, evidential …")] = None,
    scope: Annotated[
        Literal["last", "full"] | None,
        typer.Option(help="For robust methods by gradient (meta, ift …): the last layer, or the full network."),
    ] = None,
    apply: Annotated[
        Literal["loss", "sample", "keep"] | None,
        typer.Option(help="How weights are used: multiply losses, draw samples by weight, or draw from those kept."),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any other setting, such as clusters=50 (of the robust method), objective.epsilon=0.5, "
            "training.learning_rate=0.001 or data.labels_per_class=5. May be given several times.",
        ),
    ] = None,
    validation: Annotated[int, typer.Option(min=0, help="How many more clean labels to learn weights from.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to run.")] = 5,
    first_seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    controls: Annotated[bool, typer.Option(help="After the method, run the controls to compare it with.")] = True,
    data_root: Annotated[Path | None, typer.Option(help="Folder with the data sets.")] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw what was kept of the first seed's pool to this .png or .svg file.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Folder in which to keep progress; the same command continues from it after a kill."),
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write all results to this JSON file.")] = None,
) -> None:
    """Train on few labels and an unlabeled pool with samples of no class, and compare with controls."""
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
