"""Histograms of an uncertainty: shares of each group, on bins that all groups share."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from evidentia import EvidentiaError
from evidentia.reports import plot_histograms


def outlines(ax):
    return [patch.get_data() for patch in ax.patches if not patch.get_fill()]


def test_every_group_is_drawn_as_shares_on_common_bins():
    groups = {"right": torch.rand(1000) ** 3, "wrong": torch.rand(10)}
    ax = plot_histograms(groups, "dissonance", bins=20)
    for values, stairs in zip(groups.values(), outlines(ax), strict=True):
        assert stairs.edges == pytest.approx(np.linspace(0, 1, 21))
        assert stairs.values == pytest.approx(np.histogram(values.double(), 20, (0, 1))[0] / len(values))
        assert stairs.values.sum() == pytest.approx(1.0)
    assert ax.get_xlabel() == "dissonance"


def test_the_legend_names_the_groups_and_their_sizes():
    ax = plot_histograms({"right": torch.rand(1200), "OOD": torch.rand(3, 5)}, "vacuity")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["right (1,200)", "OOD (15)"]


def test_bins_follow_values_outside_the_unit_interval():
    (stairs,) = outlines(plot_histograms({"all": torch.tensor([-5.0, -1.0, 3.0])}, "differential entropy", bins=4))
    assert stairs.edges == pytest.approx([-5, -3, -1, 1, 3])


@pytest.mark.parametrize(
    ("groups", "bins", "message"),
    [
        ({}, 30, "at least one group"),
        ([0.1, 0.2], 30, "must be given by name, got list; give such as"),
        ({"wrong": []}, 30, "'wrong' holds no values; leave it out"),
        ({"wrong": [0.1, float("nan")]}, 30, "the values of 'wrong' must be finite"),
        ({"wrong": [0.1]}, 0, "bins must be a whole number of at least 1"),
    ],
)
def test_bad_input_is_refused(groups, bins, message):
    with pytest.raises(EvidentiaError, match=message):
        plot_histograms(groups, "vacuity", bins=bins)
