"""Chapter 3 on two moons: training on a pool with samples of no class, where it can be seen what happens."""

from __future__ import annotations

from evidentia.experiments.studies.pools import BATCH_NORMS, OURS, RATIOS, Options
from evidentia.experiments.study import Beside, Comparison, Pictures, Preset, Study
from evidentia.semisup.tasks import CONTROLS

_METHODS: Options = {
    "supervised": CONTROLS["supervised"],
    "no BN": CONTROLS["no BN"],
    "separate BN": CONTROLS["separate BN"],
    "frozen BN": CONTROLS["frozen BN"],
    "R-Meta": {"robust": "meta"},
    "R-IFT": {"robust": "ift"},
    OURS: {"robust": "uncertainty"},
}
_BESIDE = Beside(
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
)

MOONS = Study(
    name="semisup-moons",
    title="Two moons with a dirty pool",
    job="semisup",
    fixed={"data": "two-moons", "objective": "vat"},
    axes={"ood": ["faraway", "boundary"], "method": _METHODS, "ratio": RATIOS},
    metrics=["accuracy"],
    unit="%",
    beside=_BESIDE,
    compare=Comparison(axis="method", against="separate BN"),
    presets={"quick": Preset(seeds=3, keep={"ratio": ["50"]}), "full": Preset(seeds=10)},
    pictures=Pictures(keep={"method": ["separate BN", "R-IFT", OURS], "ratio": ["50"]}),
)

# The thesis' SSL-BN is two here: it makes all the difference whether labeled and unlabeled samples go through the
# network together or one after the other.
IMPACT = Study(
    name="semisup-impact",
    title="Two moons: what OOD does to plain semi-supervised training",
    job="semisup",
    fixed={"data": "two-moons", "objective": "vat"},
    axes={"ood": ["faraway", "boundary", "mixed", "random"], "method": BATCH_NORMS, "ratio": RATIOS},
    metrics=["accuracy"],
    unit="%",
    beside=_BESIDE,
    compare=Comparison(axis="method", against="no BN"),
    presets={"quick": Preset(seeds=3, keep={"ratio": ["50"]}), "full": Preset(seeds=10)},
    pictures=Pictures(keep={"ood": ["faraway", "boundary"], "ratio": ["50"]}),
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
        "ratio": RATIOS,
    },
    metrics=["accuracy"],
    unit="%",
    compare=Comparison(axis="method", against="no BN"),
    presets={"quick": Preset(seeds=3), "full": Preset(seeds=10)},
    pictures=Pictures(keep={"ratio": ["50"]}),
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

STUDIES = (MOONS, IMPACT, MOONS_CONTROLS, MOONS_P)
