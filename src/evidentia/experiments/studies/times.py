"""What methods cost: on graphs over their size (chapter 2), and beside the plain objective (chapter 3)."""

from __future__ import annotations

from typing import Any

from evidentia.experiments.study import Beside, Preset, Study

COMPLEXITY = Study(
    name="graph-complexity",
    title="Time of training, prediction and prior over the size of a graph",
    job="graph-time",
    # No early stopping, so that all train for as long.
    fixed={"epochs": 50, "patience": None, "hidden": 16},
    axes={
        "method": ["gcn", "s-gcn", "s-bgcn", "s-bgcn-t", "s-bgcn-t-k"],
        "nodes": [1000, 4000, 16_000, 64_000, 256_000],
    },
    metrics=["train", "test", "seconds.train", "seconds.test", "seconds.prior"],
    beside=Beside(table="graph-complexity", row="{method}"),
    presets={
        "quick": Preset(seeds=3, keep={"nodes": ["1000", "4000", "16000"]}, fixed={"epochs": 20}),
        "full": Preset(seeds=5),
    },
)


def _ours(scope: str, every: int) -> dict[str, Any]:
    return {"robust": "meta", "robust_options": {"scope": scope, "every": every}}


RUNTIME = Study(
    name="semisup-runtime",
    title="Time of robust training as a ratio to the plain objective's",
    job="semisup-time",
    fixed={"data": "mnist", "objective": "vat", "ood": "mean", "ratio": 0.5},
    axes={
        "method": {
            "ours, last layer, every 5": _ours("last", 5),
            "ours, last layer": _ours("last", 1),
            "ours, all layers": _ours("full", 1),
            "l2rw": {"robust": "l2rw"},
            "mwn": {"robust": "mwn"},
            "ds3l": {"robust": "ds3l"},
            "by uncertainty": {"robust": "uncertainty"},
        }
    },
    metrics=["ratio"],
    beside=Beside(
        table="semisup-runtime",
        row="{method}",
        names={
            "method": {
                "ours, last layer, every 5": "ours/last/l-5",
                "ours, last layer": "ours/last",
                "ours, all layers": "ours/full",
            }
        },
    ),
    presets={
        "quick": Preset(seeds=3, fixed={"updates": 60}),
        "full": Preset(seeds=5, fixed={"updates": 500}),
    },
)

STUDIES = (COMPLEXITY, RUNTIME)
