"""The opinion triangle: where opinions lie, where they project to, and what is refused."""

from __future__ import annotations

import math

import pytest
import torch

from evidentia import BinomialOpinion, EvidentiaError, MultinomialOpinion
from evidentia.reports import plot_opinion_triangle

TOP = math.sqrt(3) / 2
# An opinion with all its mass in one place lies in that corner.
CORNERS = {
    "vacuous": ((0.0, 0.0, 1.0), (0.5, TOP)),
    "belief": ((1.0, 0.0, 0.0), (1.0, 0.0)),
    "disbelief": ((0.0, 1.0, 0.0), (0.0, 0.0)),
}


def points(ax):
    return ax.collections[0].get_offsets().tolist()


def lines(ax, label):
    return [line for line in ax.lines if line.get_label() == label]


@pytest.mark.parametrize(("masses", "corner"), CORNERS.values(), ids=CORNERS)
def test_extreme_opinions_lie_in_the_corners(masses, corner):
    assert points(plot_opinion_triangle(BinomialOpinion(*masses)))[0] == pytest.approx(corner)


@pytest.mark.parametrize("base_rate", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_the_projector_is_parallel_to_the_director_and_ends_at_the_projected_probability(base_rate):
    opinion = BinomialOpinion(0.2, 0.3, 0.5, base_rate)
    ax = plot_opinion_triangle(opinion)
    (director,), (projector,) = lines(ax, "director"), lines(ax, "projector")
    assert list(director.get_xdata()) == pytest.approx([base_rate, 0.5])
    (start, foot), (height, ground) = projector.get_xdata(), projector.get_ydata()
    assert foot == pytest.approx(float(opinion.projected))
    assert ground == 0
    # With the same slope it goes as far sideways as the director does over half its height.
    assert (start - foot) / height == pytest.approx((0.5 - base_rate) / TOP)
    assert f"P = {float(opinion.projected):.2f}" in [text.get_text() for text in ax.texts]


def test_a_batch_of_any_shape_is_a_cloud_without_projectors():
    masses = torch.distributions.Dirichlet(torch.ones(3)).sample((10, 20))
    ax = plot_opinion_triangle(BinomialOpinion(*masses.unbind(-1)))
    x, y = torch.tensor(points(ax)).unbind(-1)
    assert len(x) == 200
    assert bool((y >= 0).all())
    # Inside: below both slanted edges.
    assert bool((y <= 2 * TOP * torch.minimum(x, 1 - x) + 1e-6).all())
    assert not lines(ax, "projector")


def test_projectors_can_be_asked_for_and_declined():
    opinion = BinomialOpinion(torch.full((12,), 0.2), 0.3, 0.5)
    assert len(lines(plot_opinion_triangle(opinion, projector=True), "projector")) == 12
    assert not lines(plot_opinion_triangle(opinion[0], projector=False), "projector")


def test_base_rates_too_close_for_two_labels_share_one():
    ax = plot_opinion_triangle(BinomialOpinion(0.2, 0.3, 0.5, torch.tensor([0.3, 0.35, 0.9])))
    assert len(lines(ax, "director")) == 3
    assert [text.get_text() for text in ax.texts if text.get_text().startswith("a =")] == ["a = 0.30", "a = 0.90"]


def test_labels_stand_beside_their_points():
    ax = plot_opinion_triangle(BinomialOpinion([0.6, 0.0], [0.1, 0.0], [0.3, 1.0]), labels=["sure", "vacuous"])
    sure, vacuous = (text for text in ax.texts if text.get_text() in {"sure", "vacuous"})
    assert sure.xy == pytest.approx((0.75, 0.3 * TOP))
    assert (sure.get_ha(), vacuous.get_ha()) == ("right", "left")


def test_gradients_and_other_dtypes_are_no_obstacle():
    positive = torch.tensor(3.0, dtype=torch.float16, requires_grad=True)
    ax = plot_opinion_triangle(BinomialOpinion.from_evidence(positive, torch.tensor(1.0)))
    assert points(ax)[0] == pytest.approx((0.5 + 1 / 6, TOP / 3), abs=1e-3)


def test_only_binomial_opinions_are_taken():
    with pytest.raises(EvidentiaError, match="shows a BinomialOpinion, got MultinomialOpinion"):
        plot_opinion_triangle(MultinomialOpinion.vacuous(3))


def test_labels_must_be_as_many_as_opinions():
    with pytest.raises(EvidentiaError, match="each of the 1 opinions, got 2"):
        plot_opinion_triangle(BinomialOpinion(0.5, 0.2, 0.3), labels=["a", "b"])
