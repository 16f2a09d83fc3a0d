"""Points in the plane: which colour, marker and size each has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from evidentia import EvidentiaError
from evidentia.reports import PALETTE, plot_embedding
from evidentia.reports.embedding import _NO_CLASS


def legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("categories", [True, False])
def test_every_point_is_drawn_and_training_nodes_are_larger_with_an_outline(categories: bool) -> None:
    points, trained = torch.randn(50, 2), torch.arange(50) < 8
    values = torch.arange(50) % 4 if categories else torch.rand(50)
    ax = plot_embedding(points, values, trained, title="nodes", categories=categories)
    others, training = ax.collections
    assert torch.allclose(torch.as_tensor(np.asarray(others.get_offsets())).float(), points[~trained])
    assert torch.allclose(torch.as_tensor(np.asarray(training.get_offsets())).float(), points[trained])
    assert training.get_sizes()[0] > others.get_sizes()[0]
    assert training.get_linewidths()[0] > 0 == others.get_linewidths()[0]
    assert ax.get_title() == "nodes"


def test_twenty_classes_all_look_different() -> None:
    ax = plot_embedding(torch.randn(40, 2), torch.arange(40) % 20, categories=True)
    assert legend(ax) == [str(label) for label in range(20)]
    looks = {(line.get_color(), line.get_marker()) for line in ax.get_legend().legend_handles}
    assert len(looks) == 20


def test_a_class_keeps_its_colour_where_others_are_missing_and_none_is_grey() -> None:
    ax = plot_embedding(torch.randn(3, 2), [4, 2, -1], categories=True)
    assert legend(ax) == ["2", "4", "none"]
    assert [line.get_color() for line in ax.get_legend().legend_handles] == [
        PALETTE[2],
        PALETTE[4],
        _NO_CLASS,
    ]


@pytest.mark.parametrize(("values", "ends"), [([0.1, 0.4], (0.1, 0.4)), ([0.3, 0.3], (0.0, 1.0))])
def test_the_colour_bar_spans_the_uncertainties(values: list[float], ends: tuple[float, float]) -> None:
    ax = plot_embedding([[0, 0], [1, 1]], values)
    assert ax.child_axes[0].get_ylim() == pytest.approx(ends)


@pytest.mark.parametrize(
    ("points", "values", "trained", "categories", "message"),
    [
        (torch.zeros(4, 3), torch.zeros(4), None, False, r"points must have shape \(N, 2\)"),
        (torch.zeros(0, 2), torch.zeros(0), None, False, "at least one"),
        (torch.zeros(4, 2), torch.zeros(4, 1), None, False, r"values must have shape \(N,\)"),
        (torch.zeros(4, 2), torch.zeros(5), None, False, "4 points and 5 values"),
        (torch.zeros(4, 2), torch.zeros(4), torch.zeros(3), False, "entry of train_mask, got 4 points and 3"),
        (torch.zeros(4, 2), torch.full((4,), 1.5), None, False, r"\[0, 1\]"),
        (torch.full((4, 2), torch.nan), torch.zeros(4), None, False, "finite"),
        (torch.zeros(4, 2), torch.full((4,), 1.5), None, True, "whole numbers"),
        (torch.zeros(4, 2), torch.full((4,), -2), None, True, "-1 for none"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    points: Any, values: Any, trained: Any, categories: bool, message: str
) -> None:
    with pytest.raises(EvidentiaError, match=message):
        plot_embedding(points, values, trained, categories=categories)
