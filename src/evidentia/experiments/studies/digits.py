"""The demo's digits over more splits: what evidence tells beside a softmax."""

from __future__ import annotations

from evidentia.experiments.study import Preset, Study

SCORES = (
    *("softmax-entropy", "softmax-entropy-density-scaled"),
    *("vacuity", "dissonance", "entropy", "aleatoric", "epistemic"),
    *("vacuity-without-density", "dissonance-without-density"),
)

DIGITS = Study(
    name="digits",
    title="Handwritten digits, three of ten never shown: AUROC of evidence beside a softmax",
    job="digits",
    axes={"data": {"digits": {}}},
    # Splits that played no part in choosing the demo's settings.
    fixed={"first_seed": 700},
    metrics=[
        *(f"{task}.{score}" for task in ("unknown", "wrong") for score in SCORES),
        *("accuracy.softmax", "accuracy.evidential"),
    ],
    presets={"quick": Preset(seeds=3), "full": Preset(seeds=20)},
)

STUDIES = (DIGITS,)
