"""The options of `evidentia graph`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def graph(
    data: Annotated[
        str,
        typer.Argument(
            help="synthetic (built in, no download), cora, citeseer, pubmed, photo, computers, physics, cs, cora-full, "
            "cora-ml, citeseer-full, dblp or pubmed-full."
        ),
    ],
    method: Annotated[
        str,
        typer.Option(
            help="gcn, drop-gcn, dropedge, edl-gcn, dpn-gcn, s-gcn, s-bgcn, s-bgcn-t, s-bgcn-t-k, s-bgcn-t-kw, gpn or "
            "gnnsafe-energy."
        ),
    ] = "s-bgcn-t-k",
    task: Annotated[
        Literal["misclassification", "ood"],
        typer.Option(help="Find nodes that are classified wrong, or nodes of classes that had no label."),
    ] = "misclassification",
    protocol: Annotated[
        Literal["clean", "public", "author"],
        typer.Option(
            help="What to test on: all labelled nodes outside training and validation, the graph's public test nodes, "
            "or as the published code does."
        ),
    ] = "clean",
    ood_classes: Annotated[
        str | None,
        typer.Option(
            help="For --task ood, the classes without labels: last (default), random (by seed), or numbers such as 3,4."
        ),
    ] = None,
    per_class: Annotated[
        int | None,
        typer.Option(min=1, help="Draw this many training nodes per class. Default: the graph's own, or 20."),
    ] = None,
    validation: Annotated[
        int | None, typer.Option(min=1, help="Draw this many validation nodes. Default: the graph's own, or 500.")
    ] = None,
    backbone: Annotated[
        str | None, typer.Option(help="gcn, mean-gcn, gat, graphsage or appnp. Default: the method's.")
    ] = None,
    hidden: Annotated[int | None, typer.Option(min=1, help="Width of the hidden layer.")] = None,
    dropout: Annotated[float | None, typer.Option(min=0, max=1, help="Dropout rate.")] = None,
    propagation: Annotated[
        Literal["none", "strength", "evidence", "gated"] | None,
        typer.Option(help="How to spread evidence along edges. Default: the method's own way."),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Train for at most this many epochs. Default: the task's.")
    ] = None,
    prior_weight: Annotated[
        float | None, typer.Option(min=0, help="The weight of the kernel prior in the loss. Default: the task's.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Training nodes per step. Default: all, except in very large graphs.")
    ] = None,
    passes: Annotated[
        int | None, typer.Option(min=1, help="How many passes with dropout to average per prediction. Default: 100.")
    ] = None,
    members: Annotated[int, typer.Option(min=1, help="How many networks to average.")] = 1,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to run.")] = 10,
    first_seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    data_root: Annotated[
        Path | None,
        typer.Option(help="Folder with the data sets. Default: a cache folder, into which they are downloaded."),
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Folder in which to keep trained teacher networks for later runs.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the nodes and uncertainties of the first seed to this .png or .svg file.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Folder in which to keep progress; the same command continues from it after a kill."),
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write all results to this JSON file.")] = None,
) -> None:
    """Classify the nodes of a graph, and score how well uncertainties find mistakes or unknown classes."""
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
