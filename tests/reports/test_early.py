"""F1 over delay: the best of all thresholds up to a delay."""

from __future__ import annotations

from math import isfinite
from pathlib import Path

import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg

from evidentia import EvidentiaError
from evidentia.evaluation import EarlyCurve, EventTruth, early_curve, early_scores
from evidentia.reports import plot_classes, plot_f1_delay, save_figure

# Two clips with an event each from the second segment on, of 0.1 s; the first is called wrongly at low thresholds.
SCORES = torch.tensor([[[0.3], [0.2], [0.9], [0.9]], [[0.0], [0.2], [0.4], [0.6]]])
TRUTH = EventTruth.from_activity(torch.tensor([[[0], [1], [1], [1]]] * 2), segment=0.1)


def curve() -> EarlyCurve:
    return early_curve(SCORES, TRUTH, [0.1, 0.35, 0.5, 0.7, 2.0])


def test_a_line_is_the_largest_f1_up_to_each_delay() -> None:
    ax = plot_f1_delay({"one": curve(), "two": curve()})
    one, two = ax.get_lines()
    delays, best = one.get_xdata(), one.get_ydata()
    assert list(delays) == sorted(delays)
    assert list(best) == sorted(best)
    found = curve()
    for delay, f1 in zip(found.delay.tolist(), found.macro_f1.tolist(), strict=True):
        if isfinite(delay):
            assert max(y for x, y in zip(delays, best, strict=True) if x <= delay) >= f1
    # At a threshold of 2 nothing is called.
    assert len(delays) == 4
    assert (one.get_linestyle(), one.get_color()) != (two.get_linestyle(), two.get_color())


def test_the_threshold_in_use_is_marked() -> None:
    scores = early_scores(SCORES > 0.35, TRUTH)
    ax = plot_f1_delay({"one": curve()}, {"one": scores}, title="early")
    mark = ax.get_lines()[1]
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (scores.delay, scores.macro_f1)
    assert ax.get_title() == "early"


def test_without_a_curve_there_is_nothing_to_draw() -> None:
    with pytest.raises(EvidentiaError, match="at least one method"):
        plot_f1_delay({})


def test_every_class_has_a_bar_of_every_method() -> None:
    truth = EventTruth.from_activity(torch.tensor([[[0, 1], [1, 1]], [[1, 0], [1, 0]]]), segment=0.1)
    calls = torch.tensor([[[0, 0], [1, 0]], [[0, 0], [0, 0]]])
    scores = {"one": early_scores(calls, truth), "two": early_scores(torch.ones_like(calls), truth)}
    for ax, values in zip(plot_classes(scores, ["dog", "bell"]).axes, ("f1", "class_delay"), strict=True):
        bars = [bar.get_width() for bar in ax.patches]
        # Where there is no hit, there is no delay.
        assert bars == [value for each in scores.values() for value in getattr(each, values).nan_to_num(0).tolist()]
        assert [label.get_text() for label in ax.get_yticklabels()] == ["dog", "bell"]
        heights = [bar.get_y() for bar in ax.patches]
        assert heights[0] > heights[2] > heights[1] > heights[3]
    with pytest.raises(EvidentiaError, match="at least one method"):
        plot_classes({}, ["dog"])


@pytest.mark.parametrize("methods", [1, 4, 9])
def test_the_legend_of_classes_lies_on_no_bar(methods: int) -> None:
    truth = EventTruth.from_activity(torch.tensor([[[0, 1], [1, 1]]]), segment=0.1)
    scores = early_scores(torch.tensor([[[0, 1], [0, 1]]]), truth)
    figure = plot_classes({f"_method number {k}": scores for k in range(methods)}, ["dog", "bell"])
    FigureCanvasAgg(figure).draw()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [f"_method number {k}" for k in range(methods)]
    place = legend.get_window_extent()
    assert place.x0 >= 0
    assert place.y0 >= 0
    for ax in figure.axes:
        assert ax.get_legend() is None
        assert place.y1 <= ax.get_tightbbox().y0
        # There is room for the bars still.
        assert ax.get_window_extent().height > 0.3 * figure.bbox.height


def test_names_with_dollars_are_no_mathematics(tmp_path: Path) -> None:
    truth = EventTruth.from_activity(torch.tensor([[[0], [1]]]), segment=0.1)
    figure = plot_classes({"p $\\q$": early_scores(torch.tensor([[[0], [1]]]), truth)}, ["$\\dog$"])
    save_figure(figure, tmp_path / "classes.png")
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["$\\dog$"]
