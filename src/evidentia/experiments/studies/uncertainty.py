"""Which uncertainties tell OOD in a pool: vacuity (chapter 3), and epistemic, once trained on it (chapter 2)."""

from __future__ import annotations

from evidentia.experiments.study import Beside, Preset, Study

_KINDS = {
    "mnist": {"fashion": "fashion-mnist", "emnist": "emnist", "mean": "mean-mnist", "mixed": "mixed"},
    "cifar10": {"svhn": "svhn", "held-out": "cifar-4", "mixed": "mixed"},
}
# "in" is what belongs to classes, which the tables call by the name of the data set.
_NAMES = {f"vacuity.{kind}": name for kinds in _KINDS.values() for kind, name in kinds.items()}
_NAMES["vacuity.in"] = "{data}"
# A wide ResNet, and a length, that two cores can train.
_PHOTOGRAPHS = {"data": "cifar10", "network": "wrn-10-1", "labeled_batch": 32, "updates": 1000}

VACUITY = Study(
    name="semisup-vacuity",
    title="Vacuity of every kind of OOD, by a network that has learnt from the labels alone",
    job="vacuity",
    axes={"data": {"mnist": {"data": "mnist"}, "cifar10": _PHOTOGRAPHS}, "estimator": ["evidential", "kernel"]},
    metrics=list(_NAMES),
    beside=Beside(table="semisup-vacuity-{data}", row="{metric}", column="vacuity", names={"metric": _NAMES}, runs=5),
    presets={
        "quick": Preset(seeds=2, keep={"data": ["mnist"]}, fixed={"updates": 300}),
        "full": Preset(seeds=5, fixed={"preset": "thesis"}),
    },
)

EPISTEMIC = Study(
    name="epistemic-ssl",
    title="Epistemic uncertainty of a pool before and after training on it",
    job="epistemic",
    fixed={"data": "mnist", "ood": "fashion"},
    axes={"training": ["supervised", "vat", "mean-teacher", "pseudo-label"]},
    metrics=["epistemic.id", "epistemic.ood", "auroc", "accuracy"],
    beside=Beside(table="epistemic-ssl", row="{training}"),
    presets={
        "quick": Preset(seeds=2, fixed={"updates": 200, "pool_size": 2000}),
        "full": Preset(seeds=5, fixed={"preset": "thesis", "pool_size": 49_950}),
    },
)

STUDIES = (VACUITY, EPISTEMIC)
