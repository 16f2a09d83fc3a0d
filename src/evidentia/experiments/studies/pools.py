"""Chapter 3: training on a pool of pictures with samples of no class.

Methods are those of the thesis, the rivals that it names, and beside them the controls and our own.
"""

from __future__ import annotations

from typing import Any

from evidentia.experiments.study import Beside, Comparison, Pictures, Preset, PresetName, Study
from evidentia.semisup.tasks import CONTROLS

Options = dict[str, dict[str, Any]]

OURS = "by uncertainty"
RATIOS: Options = {f"{percent}": {"ratio": percent / 100} for percent in (25, 50, 75)}
# Where the thesis does not tell R-Meta from R-IFT ("ours"), R-Meta stands for both.
_CRW = {"robust": "meta", "robust_options": {"clusters": 20}}
_L1 = {"robust": "meta", "robust_options": {"clusters": None, "regulariser": {"l1": 1e-7}}}
_PLAIN = {"robust": "none", "norm": "batch", "passes": "separate"}
_IMAGE_METHODS: Options = {
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

MNIST = Study(
    name="semisup-mnist",
    title="MNIST with faraway, boundary and mixed OOD",
    job="semisup",
    fixed={"data": "mnist"},
    axes={
        "objective": ["vat", "pi-model", "mean-teacher", "pseudo-label"],
        "ood": {"faraway": {"ood": "fashion"}, "boundary": {"ood": "mean"}, "mixed": {"ood": "mixed"}},
        "method": {**_IMAGE_METHODS, "R-IFT": {"robust": "ift"}, "no BN": CONTROLS["no BN"]},
        "ratio": RATIOS,
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
    # As short as in the quick preset, and noted often enough for a curve.
    pictures=Pictures(
        keep={"objective": ["vat"], "ood": ["faraway"], "method": ["ours, CRW", OURS], "ratio": ["50"]},
        fixed={"preset": "quick", "updates": 200, "block": 10},
    ),
)

# The objectives that a clean pool helps most, and one that looks for the worst change of a sample.
_OBJECTIVES = ["vat", "mean-teacher", "fixmatch"]
BATCH_NORMS = {name: CONTROLS[name] for name in ("no BN", "concatenated BN", "separate BN", "frozen BN")}
# Ours trains a discriminator first, for which plain training has time for up to so many updates in all.
_MATCHED_UPDATES = 1300

_CONTROLLED_METHODS: Options = {
    **BATCH_NORMS,
    "compute-matched": {**CONTROLS["concatenated BN"], "updates": _MATCHED_UPDATES},
    **{name: {"robust": name} for name in ("l2rw", "mwn", "ds3l", "uasd")},
    "R-Meta": {"robust": "meta"},
    "R-IFT": {"robust": "ift"},
    OURS: {"robust": "uncertainty"},
    "oracle": CONTROLS["oracle"],
}
_CONTROLLED: dict[str, Any] = {
    "job": "semisup",
    "fixed": {"data": "mnist", "updates": 1000},
    "metrics": ["accuracy"],
    "unit": "%",
    "compare": Comparison(axis="method", against="concatenated BN"),
}

MNIST_CONTROLS = Study(
    name="semisup-mnist-controls",
    title="MNIST with every kind of OOD: rivals, controls, ours, and weights that know the truth",
    axes={
        "objective": _OBJECTIVES,
        "ood": ["fashion", "emnist", "mean", "mixed"],
        "ratio": RATIOS,
        "method": _CONTROLLED_METHODS,
    },
    **_CONTROLLED,
    presets={
        "quick": Preset(
            seeds=2,
            keep={
                "objective": ["fixmatch"],
                "ood": ["mean"],
                "ratio": ["75"],
                "method": ["concatenated BN", "R-Meta", OURS, "oracle"],
            },
            fixed={"updates": 200},
        ),
        "full": Preset(seeds=5),
    },
)

MNIST_CLEAN = Study(
    name="semisup-mnist-clean",
    title="MNIST with a clean pool: what ours costs where nothing is wrong",
    axes={
        "objective": _OBJECTIVES,
        "method": {"supervised": CONTROLS["supervised"], **BATCH_NORMS, OURS: {"robust": "uncertainty"}},
    },
    **_CONTROLLED,
    presets={
        "quick": Preset(
            seeds=2,
            keep={"objective": ["fixmatch"], "method": ["supervised", "concatenated BN", OURS]},
            fixed={"updates": 200},
        ),
        "full": Preset(seeds=5),
    },
)


# Small batches: as many updates as are needed to learn something, in a minute of one core.
_SHORT = {"updates": 250, "labeled_batch": 32, "unlabeled_batch": 32}


def _photographs(**keep: list[str]) -> dict[PresetName, Preset]:
    """A few updates of a few cells, and all of them for as long as in the thesis."""
    return {
        "quick": Preset(seeds=2, keep={**keep, "ratio": ["50"]}, fixed=_SHORT),
        "full": Preset(seeds=5, fixed={**_FULL, "updates": 500_000}),
    }


CIFAR10 = Study(
    name="semisup-cifar10",
    title="CIFAR-10: six classes, four held out",
    job="semisup",
    fixed={"data": "cifar10", "ood": "held-out"},
    axes={"objective": ["vat", "mean-teacher", "pi-model", "pseudo-label"], "method": _IMAGE_METHODS, "ratio": RATIOS},
    metrics=["accuracy"],
    unit="%",
    compare=Comparison(axis="method", against="none"),
    presets=_photographs(objective=["vat"], method=["none", "ours, CRW"]),
)

_PHOTOGRAPH_METHODS: Options = {"supervised": CONTROLS["supervised"], **_CONTROLLED_METHODS}

# A width and a length that two cores can train: WRN-10-1, and a quarter of the full batches.
CIFAR10_CONTROLS = Study(
    name="semisup-cifar10-controls",
    title="CIFAR-10, six classes, half of the pool of four others: rivals, controls, ours, oracle",
    job="semisup",
    fixed={"data": "cifar10", "ood": "held-out", "ratio": 0.5, "objective": "fixmatch", **_SHORT, "updates": 1000},
    axes={"method": _PHOTOGRAPH_METHODS},
    metrics=["accuracy", "w_in", "w_ood", "ood_auroc"],
    compare=Comparison(axis="method", against="concatenated BN", metrics=["accuracy"]),
    presets={
        "quick": Preset(seeds=2, keep={"method": ["supervised", "concatenated BN", OURS]}, fixed={"updates": 250}),
        "full": Preset(seeds=3),
    },
)

# Whether it is for want of training that a pool of photographs does not help.
CIFAR10_LENGTH = Study(
    name="semisup-cifar10-length",
    title="CIFAR-10, six classes, half of the pool of four others: longer training",
    job="semisup",
    fixed={key: value for key, value in CIFAR10_CONTROLS.fixed.items() if key != "updates"},
    axes={
        "updates": [250, 1000, 4000],
        "method": {name: _PHOTOGRAPH_METHODS[name] for name in ("supervised", "concatenated BN", OURS, "oracle")},
    },
    metrics=["accuracy"],
    compare=Comparison(axis="method", against="concatenated BN"),
    presets={
        "quick": Preset(seeds=2, keep={"updates": ["250"], "method": ["supervised", OURS]}),
        "full": Preset(seeds=3, keep={"updates": ["1000", "4000"]}),
    },
)

CIFAR100 = Study(
    name="semisup-cifar100",
    title="CIFAR-100: fifty classes, fifty held out",
    job="semisup",
    fixed={"data": "cifar100", "ood": "held-out"},
    axes={
        "objective": ["mean-teacher", "pi-model"],
        "method": {name: _IMAGE_METHODS[name] for name in ("ds3l", "ours, L1", "ours, CRW", OURS)},
        "ratio": RATIOS,
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
    axes={"method": _IMAGE_METHODS, "ratio": RATIOS},
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

_POOLS = {
    "mnist": ("fashion", "emnist", "mean", "mixed"),
    "digits": ("letters", "held-out"),
    "cifar10": ("svhn", "held-out"),
    "svhn": ("held-out",),
}

# Its weights follow from the samples alone, so a single update of the network is as good as a training.
FOUND = Study(
    name="semisup-found",
    title="What ours finds in a pool before training: OOD of every kind, and classes that were held out",
    job="semisup",
    fixed={"robust": "uncertainty", "updates": 1},
    axes={
        "pool": {f"{data}, {ood}": {"data": data, "ood": ood} for data, kinds in _POOLS.items() for ood in kinds},
        "ratio": RATIOS,
    },
    metrics=["ood_auroc", "w_in", "w_ood"],
    presets={"quick": Preset(seeds=3, keep={"ratio": ["50"]}), "full": Preset(seeds=5)},
)

STUDIES = (
    MNIST,
    MNIST_CONTROLS,
    MNIST_CLEAN,
    CIFAR10,
    CIFAR10_CONTROLS,
    CIFAR10_LENGTH,
    CIFAR100,
    SVHN,
    CLUSTERS,
    VALIDATION_SIZE,
    FOUND,
)
