"""The thesis' tables on OOD in semi-supervised learning, ours beside the published.

Run: `python benchmarks/semisup_tables.py [impact|vacuity|epistemic] [--data-root DIR] [--seeds N] [--json FILE]`. Sizes
are those of the preset "quick" unless `--updates` and `--preset` say otherwise. Without a data root two moons (impact)
and scikit-learn's digits are used, for which the thesis prints little; with one, MNIST. `--pictures DIR` also draws the
accuracy over the share of OOD and, on two moons, the decision boundaries of the first seed.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

# BLAS and OpenMP read these when they are loaded.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import torch
from rich.console import Console
from rich.table import Table

from evidentia.experiments.semisup_impact import impact_models, impact_rows
from evidentia.experiments.semisup_uncertainty import epistemic_rows, vacuity_rows
from evidentia.reports import accuracy_over_ratio, decision_boundaries, save_figure
from evidentia.semisup import pool_kinds

Rows = list[dict[str, Any]]


def impact(arguments: argparse.Namespace, settings: dict[str, Any]) -> Rows:
    """No BN, concatenated, separate and frozen BN over kinds and shares of OOD."""
    data = arguments.data or "two-moons"
    kinds = arguments.kinds or list(pool_kinds(data))
    rows = impact_rows(data, kinds, arguments.ratios, arguments.seeds, objective=arguments.objective, **settings)
    cells = [
        (row["ood"], f"{row['ratio']:.0%}", row["model"], _percent(row["mean"], row["std"]), _percent(row["published"]))
        for row in rows
    ]
    _print(f"{data}, {arguments.objective}: accuracy, %", ("OOD", "share", "model", "ours", "published"), cells)
    if arguments.pictures is not None:
        for kind in kinds:
            lines = [(row["model"], row["ratio"], row["accuracies"]) for row in rows if row["ood"] == kind]
            save_figure(accuracy_over_ratio(lines, title=f"{data}, {kind}"), arguments.pictures / f"{data}-{kind}.png")
            if data == "two-moons":
                _boundaries(kind, arguments, settings)
    return rows


def _boundaries(kind: str, arguments: argparse.Namespace, settings: dict[str, Any]) -> None:
    ratio, seed = arguments.ratios[len(arguments.ratios) // 2], arguments.seeds[0]
    trained = impact_models("two-moons", kind, ratio, seed, objective=arguments.objective, **settings)
    models = {name: lambda x, clf=run.classifier: clf.predict(x).probs for name, run in trained.items()}
    figure = decision_boundaries(models, next(iter(trained.values())).data)
    save_figure(figure, arguments.pictures / f"boundaries-{kind}.png")


def vacuity(arguments: argparse.Namespace, settings: dict[str, Any]) -> Rows:
    """The vacuity of each kind of OOD, by a network trained on the labels."""
    data = arguments.data or ("digits" if arguments.data_root is None else "mnist")
    rows = vacuity_rows(data, arguments.seeds, kinds=arguments.kinds, **settings)
    cells = [
        (
            row["estimator"],
            row["kind"],
            _number(row["mean"], row["std"]),
            _number(row["published"]),
            _number(row["auroc"]),
        )
        for row in rows
    ]
    _print(f"{data}: vacuity", ("estimator", "kind", "ours", "published", "AUROC, ours"), cells)
    return rows


def epistemic(arguments: argparse.Namespace, settings: dict[str, Any]) -> Rows:
    """Epistemic uncertainty, by dropout, after supervised and semi-supervised training with 50 labels."""
    data = arguments.data or ("digits" if arguments.data_root is None else "mnist")
    rows = epistemic_rows(data, arguments.seeds, pool_size=arguments.pool_size, **settings)
    cells = []
    for row in rows:
        published = row["published"] or {}
        parts = [_number(value) for part in ("id", "ood") for value in (row[part], published.get(part))]
        cells.append((row["training"], *parts, _number(row["auroc"]), _percent(row["accuracy"])))
    header = ("training", "in", "published", "out", "published", "AUROC", "accuracy")
    _print(f"{data}: epistemic uncertainty of the pool, in and out of distribution (sd in the JSON)", header, cells)
    return rows


TABLES = {"impact": impact, "vacuity": vacuity, "epistemic": epistemic}


def _number(value: float | None, spread: float | None = None) -> str:
    return "" if value is None else f"{value:.3f}" if spread is None else f"{value:.3f} ± {spread:.3f}"


def _percent(value: float | None, spread: float | None = None) -> str:
    return (
        "" if value is None else f"{100 * value:.1f}" if spread is None else f"{100 * value:.1f} ± {100 * spread:.1f}"
    )


def _print(title: str, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    table = Table(title=title, title_justify="left", title_style="bold", header_style="")
    for index, heading in enumerate(header):
        style = "dim" if heading == "published" else None
        table.add_column(heading, justify="right" if index else "left", style=style, no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def main() -> None:
    """Compute and print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", choices=[[], *TABLES], help="which tables; all by default")
    parser.add_argument("--data", help="a data set of load_pool")
    parser.add_argument("--data-root", help="folder with the data sets")
    parser.add_argument("--objective", default="vat", help="of the impact study")
    parser.add_argument("--kinds", nargs="+", help="kinds of OOD; all of the data set by default")
    parser.add_argument("--ratios", nargs="+", type=float, default=[0.25, 0.5, 0.75], help="shares of OOD")
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds")
    parser.add_argument("--preset", default="quick", choices=["quick", "thesis", "author"])
    parser.add_argument("--updates", type=int, help="in place of the preset's")
    parser.add_argument("--pool-size", type=int, help="of the epistemic table; the thesis has 49950")
    parser.add_argument("--pictures", type=Path, help="folder for pictures of the impact study")
    parser.add_argument("--json", type=Path, help="write all rows to this file")
    arguments = parser.parse_args()
    arguments.seeds = list(range(arguments.seeds))
    torch.set_num_threads(1)
    settings: dict[str, Any] = {"preset": arguments.preset, "data_root": arguments.data_root, "progress": False}
    if arguments.updates is not None:
        settings["updates"] = arguments.updates
    found: dict[str, Rows] = {}
    for name in arguments.tables or TABLES:
        found[name] = TABLES[name](arguments, settings)
        if arguments.json is not None:
            # After each table, so that what took hours is not lost with the next.
            arguments.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
