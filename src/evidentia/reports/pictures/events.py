"""How early and how right methods are at every threshold, and what a detector makes of a clip (chapter 4)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from evidentia.evaluation import EarlyScores
from evidentia.experiments.shown import ShownDetector, shown_detector
from evidentia.reports.early import plot_classes, plot_f1_delay
from evidentia.reports.events import clip_picture
from evidentia.reports.pictures.registry import PICTURES, Group, NetworkPictures
from evidentia.reports.style import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@PICTURES.register("events")
class EventsPictures(NetworkPictures[ShownDetector]):
    """F1 over delay and class by class of all methods together, and a clip through the last of them."""

    def train(self, configuration: Mapping[str, Any], seed: int) -> ShownDetector:
        """Take the network from where the study keeps it, or train it."""
        return shown_detector(configuration, seed)

    def groups(self, trained: Mapping[str, ShownDetector]) -> list[Group]:
        """The curves and the bars of all, and the clip."""
        groups = [
            Group(
                "F1 over delay",
                "A line is the largest macro F1 that any threshold reaches on the test clips with a mean delay of at "
                "most so much: early and right is up and to the left. A mark is at the threshold in use, which was "
                "chosen on other clips.",
                [(partial(_draw_curves, trained), f"Macro F1 over delay: {'; '.join(trained)}.")],
            )
        ]
        bars = [
            (partial(plot_classes, scores, labels), f"F1 and delay of every class: {'; '.join(scores)}.")
            for labels, scores in _by_classes(trained).items()
        ]
        text = "At the threshold in use, F1 and the mean delay of what was hit."
        groups.append(Group("Class by class", text, bars))
        name, last = list(trained.items())[-1]
        if last.detector is not None:
            caption = (
                "What was heard, what was there and when it was called (with the delay), and belief, disbelief and "
                f"vacuity of each class after fusion: {name}."
            )
            groups.append(Group("A test clip", "", [(partial(clip_picture, last.detector, last.clip), caption)]))
        return groups


def _draw_curves(trained: Mapping[str, ShownDetector]) -> Figure:
    figure, (ax,) = new_figure(width=6.4, height=4.6)
    curves = {name: shown.curve for name, shown in trained.items()}
    plot_f1_delay(curves, {name: shown.chosen for name, shown in trained.items()}, ax)
    return figure


def _by_classes(trained: Mapping[str, ShownDetector]) -> dict[tuple[str, ...], dict[str, EarlyScores]]:
    """The scores of those that know the same classes."""
    found: dict[tuple[str, ...], dict[str, EarlyScores]] = {}
    for name, shown in trained.items():
        found.setdefault(shown.labels, {})[name] = shown.chosen
    return found
