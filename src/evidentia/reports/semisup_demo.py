"""The pictures of the two-moons part of the demo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from evidentia.experiments.semisup_demo import OURS, MoonsDemo
from evidentia.reports.semisup import pool_picture
from evidentia.reports.semisup_boundary import Predict, decision_boundaries

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from evidentia.semisup import SemiSupervisedClassifier


def moons_figures(demo: MoonsDemo) -> dict[str, tuple[Figure, str]]:
    """What each method learnt, and what ours made of the pool: figures with their captions by file name."""
    ours = demo.shown[OURS]
    data = ours.data
    boundaries = decision_boundaries(
        {method: _probabilities(trained.classifier) for method, trained in demo.shown.items()}, data
    )
    pool = pool_picture(
        ours.classifier.review(), data.x_unlabeled, labeled=(data.x_labeled, data.y_labeled), title="two moons"
    )
    return {
        "moons": (boundaries, "What each method takes for which moon, first seed. Half of the pool lies far above."),
        "pool": (pool, "What became of the pool, first seed: who was kept, who was thrown out, and how surely."),
    }


def _probabilities(classifier: SemiSupervisedClassifier) -> Predict:
    def predict(points: Tensor) -> Tensor:
        return classifier.predict(points).probs

    return predict
