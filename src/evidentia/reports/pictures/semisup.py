"""What became of a dirty pool: decision boundaries or galleries, and the weights over the updates (chapter 3)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from torch import Tensor

from evidentia.reports.pictures.registry import PICTURES, Group, NetworkPictures
from evidentia.reports.semisup import pool_picture
from evidentia.reports.semisup_boundary import decision_boundary
from evidentia.reports.semisup_curves import weight_curves
from evidentia.semisup.tasks import TrainedTask, train_task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WEIGHTS = ("update", "w_in", "w_ood")


@PICTURES.register("semisup")
class PoolPictures(NetworkPictures[TrainedTask]):
    """Of points in the plane the decision boundaries, of other samples the pool; weights where they are learnt."""

    def train(self, configuration: Mapping[str, Any], seed: int) -> TrainedTask:
        """Train on the pool."""
        return train_task(**configuration, seed=seed, progress=False)

    def groups(self, trained: Mapping[str, TrainedTask]) -> list[Group]:
        """What was learnt, and what became of the pool."""
        weighed = {name: task for name, task in trained.items() if _has_weights(task)}
        planes = {name: task for name, task in trained.items() if task.data.sample_shape == (2,)}
        boundaries = [
            (partial(_draw_boundary, task, name), f"Decision boundary of {name}.") for name, task in planes.items()
        ]
        pools = [
            (partial(_draw_pool, task, name), f"What {name} kept of the pool, and what it threw out.")
            for name, task in weighed.items()
            if name not in planes
        ]
        curves = [
            (partial(_draw_weights, task, name), f"Mean weights of the pool over the updates of {name}.")
            for name, task in weighed.items()
        ]
        found = (
            Group("Decision boundaries", "What each network takes for which class, with the pool.", boundaries),
            Group("The pool", "The most and the least trusted samples, and how all were weighed.", pools),
            Group(
                "Weights over training",
                "Samples of the classes (w_in) should keep their weight, those of none (w_ood) lose it.",
                curves,
            ),
        )
        return [group for group in found if group.drawings]


def _has_weights(task: TrainedTask) -> bool:
    """Whether samples in and out of distribution were weighed differently at any time."""
    return any(entry.get("w_in") != entry.get("w_ood") for entry in task.classifier.history_)


def _draw_boundary(task: TrainedTask, name: str) -> Figure:
    def predict(points: Tensor) -> Tensor:
        return task.classifier.predict(points).probs

    return decision_boundary(predict, task.data, title=name)


def _draw_pool(task: TrainedTask, name: str) -> Figure:
    return pool_picture(task.classifier.review(), task.data.x_unlabeled, title=name)


def _draw_weights(task: TrainedTask, name: str) -> Figure:
    history = [{key: entry[key] for key in _WEIGHTS if key in entry} for entry in task.classifier.history_]
    return weight_curves(history, title=name)
