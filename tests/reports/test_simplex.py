"""The simplex: the density drawn is that of the Dirichlet, whatever its parameters, and three classes are needed."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evidentia import EvidentiaError, MultinomialOpinion
from evidentia.reports import plot_simplex

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(3) / 2]])


def drawn(ax):
    """The shade of each pixel, the class probabilities at its centre, and which pixels lie inside."""
    (image,) = ax.images
    shade = np.asarray(image.get_array())
    left, right, bottom, top = image.get_extent()
    rows, columns = shade.shape
    x = left + (np.arange(columns) + 0.5) * (right - left) / columns
    y = bottom + (np.arange(rows) + 0.5) * (top - bottom) / rows
    third = np.broadcast_to((y / CORNERS[2, 1])[:, None], shade.shape)
    second = x - third / 2
    probability = np.stack([1 - second - third, second, third], -1)
    return shade, probability, (probability > 1e-3).all(-1)


def marked(ax):
    (line,) = ax.lines
    return line.get_xydata()[0]


@pytest.mark.parametrize("alpha", [(8.0, 3.0, 2.0), (2.0, 9.0, 4.0), (30.0, 30.0, 30.0), (2.0, 2.0, 400.0)])
def test_the_darkest_point_is_the_mode(alpha):
    shade, probability, inside = drawn(plot_simplex(alpha))
    darkest = probability[inside][shade[inside].argmax()]
    mode = (np.array(alpha) - 1) / (sum(alpha) - 3)
    assert darkest == pytest.approx(mode, abs=0.01)
    assert shade[inside].max() == pytest.approx(1.0, abs=0.02)


def test_shades_are_proportional_to_the_density():
    alpha = (6.0, 4.0, 3.0)
    shade, probability, inside = drawn(plot_simplex(alpha))
    some = probability[inside][::997]
    density = stats.dirichlet.pdf((some / some.sum(-1, keepdims=True)).T, alpha)
    ratio = shade[inside][::997] / density
    assert ratio == pytest.approx(np.full_like(ratio, ratio[0]), rel=1e-6)


def test_a_flat_density_is_evenly_light():
    shade, _, inside = drawn(plot_simplex(MultinomialOpinion.vacuous(3)))
    assert shade[inside] == pytest.approx(np.full(inside.sum(), 0.25))


@given(st.lists(st.floats(1e-3, 1e30), min_size=3, max_size=3))
def test_any_parameters_can_be_drawn(alpha):
    shade, _, _ = drawn(plot_simplex(torch.tensor(alpha, dtype=torch.float64)))
    assert np.isfinite(shade).all()
    assert 0 <= shade.min() <= shade.max() <= 1


def test_the_projected_probability_is_marked():
    opinion = MultinomialOpinion.from_evidence([6.0, 1.0, 0.0])
    assert marked(plot_simplex(opinion)) == pytest.approx(opinion.projected.numpy() @ CORNERS, abs=1e-6)


def test_base_rates_count():
    opinion = MultinomialOpinion.from_evidence([0.0, 0.0, 0.0], base_rate=[0.1, 0.1, 0.8])
    assert marked(plot_simplex(opinion)) == pytest.approx(np.array([0.1, 0.1, 0.8]) @ CORNERS, abs=1e-6)


def test_a_dogmatic_opinion_is_a_point_without_a_density():
    ax = plot_simplex(MultinomialOpinion([0.0, 1.0, 0.0], 0.0))
    assert not ax.images
    assert marked(ax) == pytest.approx(CORNERS[1])


def test_corners_bear_the_names_of_the_classes():
    ax = plot_simplex([1.0, 1.0, 1.0], class_names=["cat", "dog", "owl"], title="pets")
    assert [text.get_text() for text in ax.texts] == ["cat", "dog", "owl"]
    assert [text.get_position()[0] for text in ax.texts] == [0.0, 1.0, 0.5]
    assert ax.get_title() == "pets"


@pytest.mark.parametrize("shape", [(2,), (4,), (5, 3)])
def test_it_takes_one_opinion_over_three_classes(shape):
    with pytest.raises(EvidentiaError, match="one opinion over 3 classes, got shape"):
        plot_simplex(torch.ones(shape))


@pytest.mark.parametrize("alpha", [[1.0, 0.0, 1.0], [1.0, -2.0, 1.0], [1.0, math.nan, 1.0]])
def test_alpha_must_be_positive(alpha):
    with pytest.raises(EvidentiaError, match="above 0"):
        plot_simplex(alpha)


def test_three_names_are_needed():
    with pytest.raises(EvidentiaError, match="3 names, got 2"):
        plot_simplex([1.0, 1.0, 1.0], class_names=["cat", "dog"])
    with pytest.raises(EvidentiaError, match=r"a list of names in the order of the classes, got 'cat' \(str\)"):
        plot_simplex([1.0, 1.0, 1.0], class_names="cat")
