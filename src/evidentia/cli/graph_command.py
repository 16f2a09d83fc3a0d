"""The options of `evidentia graph`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def graph(
    data: Annotated[
        str, typer.Argument(help="A graph: cora, citeseer, pubmed, photo, computers, physics, synthetic …")
    ],
    method: Annotated[str, typer.Option(help="A method of chapter 2.")] = "s-bgcn-t-k",
    task: Annotated[Literal["misclassification", "ood"], typer.Option(help="What to find.")] = "misclassification",
    protocol: Annotated[Literal["clean", "public", "author"], typer.Option(help="Which nodes to test on.")] = "clean",
    ood_classes: Annotated[
        str | None, typer.Option(help="For ood: last, random by seed, or numbers such as 3,4; else last.")
    ] = None,
    per_class: Annotated[
        int | None, typer.Option(min=1, help="Draw so many training nodes a class; else the graph's own, or 20.")
    ] = None,
    validation: Annotated[
        int | None, typer.Option(min=1, help="Draw so many validation nodes; else the graph's own, or 500.")
    ] = None,
    backbone: Annotated[
        str | None, typer.Option(help="gcn, mean-gcn, gat, graphsage, appnp; else the method's.")
    ] = None,
    hidden: Annotated[int | None, typer.Option(min=1, help="Width of the hidden layer.")] = None,
    dropout: Annotated[float | None, typer.Option(min=0, max=1, help="Dropout rate.")] = None,
    propagation: Annotated[
        Literal["none", "strength", "evidence", "gated"] | None,
        typer.Option(help="Spread evidence along edges; else the method's own way."),
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="The most epochs to train; else the task's.")] = None,
    prior_weight: Annotated[
        float | None, typer.Option(min=0, help="How strongly the prior draws; else the task's.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Training nodes a step; else all, but in very large graphs.")
    ] = None,
    passes: Annotated[int | None, typer.Option(min=1, help="Passes that a prediction averages; else 100.")] = None,
    members: Annotated[int, typer.Option(min=1, help="How many networks to average.")] = 1,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to run.")] = 10,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
    data_root: Annotated[Path | None, typer.Option(help="Folder with the data sets.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder to keep trained teachers in.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the first seed's nodes and uncertainties.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Folder from which runs that were killed go on.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write all figures to this file.")] = None,
) -> None:
    """Classify the nodes of a graph, and score the uncertainties at finding mistakes or unknown classes."""
    from evidentia.cli.graph import named_classes, run_graph

    settings = {
        "data": data,
        "method": method,
        "task": task,
        "protocol": protocol,
        "classes": ood_classes and named_classes(ood_classes),
        "per_class": per_class,
        "validation": validation,
        "backbone": backbone,
        "hidden": hidden,
        "dropout": dropout,
        "propagation": propagation,
        "epochs": epochs,
        "prior_weight": prior_weight,
        "batch_size": batch_size,
        "passes": passes,
        "members": members,
        "data_root": data_root and str(data_root),
        "cache": cache and str(cache),
    }
    files = {"json_file": json, "picture": picture, "checkpoint": checkpoint}
    run_graph(settings, range(first_seed, first_seed + seeds), **files)
