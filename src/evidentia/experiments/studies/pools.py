"""Chapter 3: training on a pool with samples of no class.

Methods are those of the thesis, the rivals that it names, and beside them the controls and our own.
"""

from __future__ import annotations

from typing import Any

from evidentia.experiments.study import Beside, Comparison, Preset, PresetName, Study
from evidentia.semisup.tasks import CONTROLS

Options = dict[str, dict[str, Any]]

OURS = "by uncertainty"
_RATIOS: Options = {f"{percent}": {"ratio": percent / 100} for percent in (25, 50, 75)}
# Where the thesis does not tell R-Meta from R-IFT ("ours"), R-Meta stands for both.
_CRW = {"robust": "meta", "robust_options": {"clusters": 20}}
_L1 = {"robust": "meta", "robust_options": {"clusters": None, "regulariser": {"l1": 1e-7}}}
_PLAIN = {"robust": "none", "norm": "batch", "passes": "separate"}
_METHODS: Options = {
    "supervised": CONTROLS["supervised"],
    "no BN": CONTROLS["no BN"],
    "separate BN": CONTROLS["separate BN"],
    "frozen BN": CONTROLS["frozen BN"],
    "R-Meta": {"robust": "meta"},
    "R-IFT": {"robust": "ift"},
    OURS: {"robust": "uncertainty"},
}
_PICTURES: Options = {
    "none": _PLAIN,
    "l2rw": {"robust": "l2rw"},
    "mwn": {"robust": "mwn"},
    "ds3l": {"robust": "ds3l"},
    "ours, L1": _L1,
    "ours, CRW": _CRW,
    OURS: {"robust": "uncertainty"},
    "oracle": {"robust": "oracle"},
}
_NAMES = {"ours, L1": "ours-l1", "ours, CRW": "ours-crw"}
_FULL = {"preset": "thesis"}

MOONS = Study(
    name="semisup-moons",
    title="Two moons with a dirty pool",
    job="semisup",
    fixed={"data": "two-moons", "objective": "vat"},
    axes={"ood": ["faraway", "boundary"], "method": _METHODS, "ratio": _RATIOS},
    metrics=["accuracy"],
    unit="%",
    beside=Beside(
        table="semisup-moons",
        row="{ood}/{method}",
        column="accuracy.{ratio}",
        names={
            "method": {
                "no BN": "none/none",
                "separate BN": "none/batch",
                "frozen BN": "none/frozen",
                "R-Meta": "meta",
                "R-IFT": "ift",
            }
        },
        runs=10,
    ),
    compare=Comparison(axis="method", against="separate BN"),
    presets={"quick": Preset(seeds=3, keep={"ratio": ["50"]}), "full": Preset(seeds=10)},
)

MOONS_CONTROLS = Study(
    name="semisup-moons-controls",
    title="Two moons: every treatment of batch norm, ours, and weights that know the truth",
    job="semisup",
    fixed={"data": "two-moons", "objective": "pi-model", "ood": "faraway", "updates": 500},
    axes={
        "method": {
            **{name: CONTROLS[name] for name in ("separate BN", "concatenated BN", "no BN")},
            OURS: {"robust": "uncertainty"},
            "oracle": CONTROLS["oracle"],
        },
        "ratio": _RATIOS,
    },
    metrics=["accuracy"],
    unit="%",
    compare=Comparison(axis="method", against="no BN"),
    presets={"quick": Preset(seeds=3), "full": Preset(seeds=10)},
)

MOONS_P = Study(
    name="semisup-moons-p",
    title="Two moons: terms of the Neumann series",
    job="semisup",
    fixed={"data": "two-moons", "objective": "vat", "robust": "ift", "ratio": 0.5},
    axes={
        "ood": ["faraway", "boundary"],
        "P": {f"{terms}": {"robust_options": {"terms": terms}} for terms in (1, 5, 10)},
    },
    metrics=["accuracy"],
    unit="%",
    beside=Beside(table="semisup-moons-p", row="{ood}/ift/p-{P}", column="accuracy.50", runs=10),
    compare=Comparison(axis="P", against="1"),
    presets={"quick": Preset(seeds=3), "full": Preset(seeds=10)},
)

MNIST = Study(
    name="semisup-mnist",
    title="MNIST with faraway, boundary and mixed OOD",
    job="semisup",
    fixed={"data": "mnist"},
    axes={
        "objective": ["vat", "pi-model", "mean-teacher", "pseudo-label"],
        "ood": {"faraway": {"ood": "fashion"}, "boundary": {"ood": "mean"}, "mixed": {"ood": "mixed"}},
        "method": {**_PICTURES, "R-IFT": {"robust": "ift"}, "no BN": CONTROLS["no BN"]},
        "ratio": _RATIOS,
    },
    metrics=["accuracy"],
    unit="%",
    compare=Comparison(axis="method", against="none"),
    presets={
        "quick": Preset(
            seeds=2,
            keep={
                "objective": ["vat"],
                "ood": ["faraway", "boundary"],
                "method": ["none", "ours, CRW", OURS],
                "ratio": ["50"],
            },
            fixed={"updates": 200},
        ),
        "full": Preset(seeds=5, fixed=_FULL),
    },
)


def _photographs(**keep: list[str]) -> dict[PresetName, Preset]:
    """A few updates of a few cells, and all of them for as long as in the thesis."""
    return {
        "quick": Preset(seeds=2, keep={**keep, "ratio": ["50"]}, fixed={"updates": 60}),
        "full": Preset(seeds=5, fixed={**_FULL, "updates": 500_000}),
    }


CIFAR10 = Study(
    name="semisup-cifar10",
    title="CIFAR-10: six classes, four held out",
    job="semisup",
    fixed={"data": "cifar10", "ood": "held-out"},
    axes={"objective": ["vat", "mean-teacher", "pi-model", "pseudo-label"], "method": _PICTURES, "ratio": _RATIOS},
    metrics=["accuracy"],
    unit="%",
    compare=Comparison(axis="method", against="none"),
    presets=_photographs(objective=["vat"], method=["none", "ours, CRW"]),
)

CIFAR100 = Study(
    name="semisup-cifar100",
    title="CIFAR-100: fifty classes, fifty held out",
    job="semisup",
    fixed={"data": "cifar100", "ood": "held-out"},
    axes={
        "objective": ["mean-teacher", "pi-model"],
        "method": {name: _PICTURES[name] for name in ("ds3l", "ours, L1", "ours, CRW", OURS)},
        "ratio": _RATIOS,
    },
    metrics=["accuracy"],
    unit="%",
    beside=Beside(
        table="semisup-cifar100",
        row="{objective}/{method}",
        column="accuracy.{ratio}",
        names={"method": _NAMES},
        runs=5,
    ),
    compare=Comparison(axis="method", against="ds3l"),
    presets=_photographs(objective=["mean-teacher"], method=["ds3l", "ours, CRW"]),
)

SVHN = Study(
    name="semisup-svhn",
    title="SVHN: digits 0 to 4, the others held out",
    job="semisup",
    fixed={"data": "svhn", "objective": "vat", "ood": "held-out"},
    axes={"method": _PICTURES, "ratio": _RATIOS},
    metrics=["accuracy"],
    unit="%",
    beside=Beside(
        table="semisup-svhn", row="vat/{method}", column="accuracy.{ratio}", names={"method": _NAMES}, runs=5
    ),
    compare=Comparison(axis="method", against="none"),
    presets=_photographs(method=["none", "ours, CRW"]),
)

CLUSTERS = Study(
    name="semisup-clusters",
    title="How many clusters share a weight",
    job="semisup",
    fixed={"data": "mnist", "ood": "mean", "ratio": 0.5, "robust": "meta"},
    axes={
        "objective": ["vat", "pseudo-label"],
        "K": {f"{clusters}": {"robust_options": {"clusters": clusters}} for clusters in (5, 10, 20, 30)},
    },
    metrics=["accuracy"],
    unit="%",
    beside=Beside(table="semisup-clusters", row="{objective}/ours-crw/k-{K}", column="accuracy.50", runs=5),
    compare=Comparison(axis="K", against="20"),
    presets={
        "quick": Preset(seeds=2, keep={"objective": ["vat"]}, fixed={"updates": 200}),
        "full": Preset(seeds=5, fixed=_FULL),
    },
)

VALIDATION_SIZE = Study(
    name="semisup-validation-size",
    title="How many clean labels the weights are learnt by",
    job="semisup",
    fixed={"data": "mnist", "objective": "vat", "ood": "mean", "ratio": 0.5, "robust": "meta"},
    axes={"validation": [25, 50, 100, 500, 1000, 5000]},
    metrics=["accuracy"],
    unit="%",
    compare=Comparison(axis="validation", against="1000"),
    presets={
        "quick": Preset(seeds=2, keep={"validation": ["25", "100", "1000"]}, fixed={"updates": 200}),
        "full": Preset(seeds=5, fixed=_FULL),
    },
)

STUDIES = (MOONS, MOONS_CONTROLS, MOONS_P, MNIST, CIFAR10, CIFAR100, SVHN, CLUSTERS, VALIDATION_SIZE)
