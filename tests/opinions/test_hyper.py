"""Hyper opinions: belief on sets of classes."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

import evidentia as ev
from evidentia import EvidentiaError, HyperOpinion, MultinomialOpinion

# Jøsang 2016, table 4.1.
TABLE_SETS = [{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}]
TABLE_BELIEF = [0.1, 0.1, 0.0, 0.2, 0.3, 0.1]
TABLE_BASE_RATE = [0.2, 0.3, 0.5]


def table_opinion(dtype=torch.float64):
    return HyperOpinion(torch.tensor(TABLE_BELIEF, dtype=dtype), 0.2, TABLE_SETS, 3, TABLE_BASE_RATE)


@st.composite
def hyper_opinions(draw):
    """Some of the reduced powerset of 3 to 5 classes, with evidence from 0 to 1e30."""
    classes = draw(st.integers(3, 5))
    powerset = [c for n in range(1, classes) for c in itertools.combinations(range(classes), n)]
    sets = draw(st.lists(st.sampled_from(powerset), min_size=1, max_size=8, unique=True))
    amount = st.one_of(st.just(0.0), st.floats(-30, 30).map(lambda x: 10**x))
    evidence = draw(st.lists(amount, min_size=len(sets), max_size=len(sets)))
    dtype = draw(st.sampled_from([torch.float32, torch.float64]))
    return HyperOpinion.from_evidence(torch.tensor(evidence, dtype=dtype), sets, classes), torch.tensor(evidence)


def test_book_table_of_sharp_vague_and_focal_mass():
    h = table_opinion()
    # Probability of each class: sharp + vague + focal.
    torch.testing.assert_close(
        h.projected,
        torch.tensor([0.10 + 0.1657 + 0.04, 0.10 + 0.1575 + 0.06, 0.0 + 0.2768 + 0.10], dtype=torch.float64),
        atol=6e-5,
        rtol=0,
    )
    vague = h.to_multinomial().belief - torch.tensor([0.1, 0.1, 0.0], dtype=torch.float64)
    expected = torch.tensor([0.1657, 0.1575, 0.2768], dtype=torch.float64)
    torch.testing.assert_close(vague, expected, atol=6e-5, rtol=0)


@given(hyper_opinions())
def test_masses_projection_and_round_trip(case):
    h, evidence = case
    eps = torch.finfo(h.dtype).eps
    for field in (h.belief, h.vacuity, h.projected, h.evidence):
        assert torch.isfinite(field).all()
        assert (field >= 0).all()
    assert float(h.belief.double().sum() + h.vacuity.double()) == pytest.approx(1, abs=16 * eps)
    assert float(h.projected.double().sum()) == pytest.approx(1, abs=16 * eps)
    # Evidence 1e38 times smaller than the sum of all is below the smallest float32.
    lost = float(h.strength) * torch.finfo(h.dtype).tiny
    torch.testing.assert_close(h.evidence, evidence.to(h.dtype), rtol=1e-6, atol=lost)
    projected = h.to_multinomial()
    assert torch.equal(projected.vacuity, h.vacuity)
    torch.testing.assert_close(projected.projected, h.projected, rtol=16 * eps, atol=0)
    again = HyperOpinion(**h.numpy(), sets=h.sets, num_classes=h.num_classes)
    assert again.allclose(h, rtol=0, atol=0)


@given(hyper_opinions(), st.integers(0, 100))
def test_projection_by_hand(case, seed):
    h, _ = case
    base_rate = torch.rand(h.num_classes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.01
    base_rate /= base_rate.sum()
    h = HyperOpinion(h.belief.double(), h.vacuity.double(), h.sets, h.num_classes, base_rate, validate=False)
    a = base_rate.tolist()
    for k in range(h.num_classes):
        expected = a[k] * float(h.vacuity)
        for members, mass in zip(h.sets, h.belief.tolist(), strict=True):
            if k in members:
                expected += mass * a[k] / sum(a[i] for i in members)
        assert float(h.projected[k]) == pytest.approx(expected, rel=1e-12)


def test_singletons_are_a_multinomial_opinion(dtype):
    w = MultinomialOpinion.from_evidence(torch.rand(4, 5, dtype=dtype) * 9, prior_weight=2.0)
    h = HyperOpinion.from_multinomial(w)
    assert h.to_multinomial().allclose(w)
    torch.testing.assert_close(h.projected, w.projected)
    assert h.prior_weight == w.prior_weight
    assert not h.is_composite.any()


def test_a_set_of_base_rate_zero_is_shared_equally():
    h = HyperOpinion([0.8], 0.2, [{0, 1}], 3, base_rate=[0.0, 0.0, 1.0])
    torch.testing.assert_close(h.projected, torch.tensor([0.4, 0.4, 0.2]))


def test_membership():
    h = table_opinion()
    assert h.membership.tolist()[3:] == [[1, 1, 0], [1, 0, 1], [0, 1, 1]]
    assert h.is_composite.tolist() == [False, False, False, True, True, True]


def test_batches_and_vacuity_broadcast():
    h = HyperOpinion([0.3, 0.4], [0.3, 0.3], [{0}, {1, 2}], 3)
    assert h.shape == (2,)
    assert h.projected.shape == (2, 3)


def test_grouped_dirichlet_of_disjoint_sets():
    h = HyperOpinion.from_evidence([2.0, 5.0, 7.0], [{0}, {1, 2}, {3}], 4)
    grouped = h.grouped_dirichlet()
    torch.testing.assert_close(grouped.alpha, torch.tensor([3.0, 1.0, 1.0, 8.0]))
    torch.testing.assert_close(grouped.group_evidence, torch.tensor([5.0]))
    torch.testing.assert_close(grouped.mean, h.projected)


def test_grouped_dirichlet_and_projection_agree_on_sets_and_not_on_their_members():
    h = HyperOpinion.from_evidence([6.0, 0.0, 5.0, 1.0], [(0,), (1,), (0, 1), (2,)], num_classes=3)
    mean = h.grouped_dirichlet().mean
    torch.testing.assert_close(mean[:2].sum(), h.projected[:2].sum())
    # By evidence and prior of 7 to 1; the projection shares the vague part out evenly.
    torch.testing.assert_close(mean[0] / mean[1], torch.tensor(7.0))
    torch.testing.assert_close(h.projected[0] / h.projected[1], torch.tensor((6 + 2.5 + 1) / (2.5 + 1)))


def test_grouped_dirichlet_without_composite_sets():
    w = MultinomialOpinion.from_evidence([2.0, 5.0, 7.0])
    grouped = HyperOpinion.from_multinomial(w).grouped_dirichlet()
    torch.testing.assert_close(grouped.entropy(), w.distribution().entropy())


def test_grouped_dirichlet_of_overlapping_sets():
    with pytest.raises(EvidentiaError, match=r"do not overlap.*to_multinomial"):
        table_opinion().grouped_dirichlet()


def test_gradients():
    def fields(evidence):
        h = HyperOpinion.from_evidence(evidence, TABLE_SETS, 3, TABLE_BASE_RATE, validate=False)
        return h.belief, h.vacuity, h.projected, h.evidence

    assert gradcheck(fields, (torch.rand(2, 6, dtype=torch.float64, requires_grad=True),))


def test_repr():
    assert repr(HyperOpinion([0.3, 0.4], 0.3, [{0}, {2, 1}], 3)) == "HyperOpinion({0}: 0.3, {1, 2}: 0.4, vacuity=0.3)"
    batch = HyperOpinion([[0.3, 0.4]], 0.3, [{0}, {1, 2}], 3)
    assert repr(batch) == "HyperOpinion(shape=(1,), vacuity=0.3..0.3, dtype=float32)"


@pytest.mark.parametrize(
    ("sets", "classes", "words"),
    [
        ([{0}, {0, 1, 2}], 3, "not all 3.*that is vacuity"),
        ([{0}, set()], 3, "at least one class"),
        ([{0}, {3}], 3, r"0\.\.2.*\(3,\)"),
        ([{0}, {-1}], 3, r"0\.\.2.*\(-1,\)"),
        ([{0, 1}, (1, 0)], 3, "once only"),
        ([], 3, "at least one set"),
        ([0, 1], 3, "collection of class indices, got 0"),
        ([{0}, {0.5}], 3, "collection of class indices"),
        ([{0}, "a"], 3, "collection of class indices"),
        ([{0}, {1}], 1, "num_classes must be a whole number of at least 2"),
        ([{0}, {1}, {2}], 4, r"each of the 3 sets.*\(2,\)"),
    ],
)
def test_bad_sets(sets, classes, words):
    with pytest.raises(EvidentiaError, match=words):
        HyperOpinion([0.5, 0.3], 0.2, sets, classes)


@pytest.mark.parametrize(
    ("belief", "vacuity", "words"),
    [
        ([0.5, 0.2], 0.2, "must add up to 1"),
        ([-0.1, 0.9], 0.2, r"belief must lie in \[0, 1\]"),
        ([float("nan"), 0.5], 0.5, "belief must be finite"),
        ([0.5, 0.7], -0.2, r"vacuity must lie in \[0, 1\]"),
        ([[0.5, 0.3], [0.5, 0.3]], [0.2, 0.2, 0.2], r"vacuity of shape \(2,\), got \(3,\)"),
        (0.5, 0.5, r"each of the 2 sets.*\(\)"),
        (None, 0.5, "belief must be a tensor"),
    ],
)
def test_bad_masses(belief, vacuity, words):
    with pytest.raises(EvidentiaError, match=words):
        HyperOpinion(belief, vacuity, [{0}, {1, 2}], 3)


@pytest.mark.parametrize("base_rate", [[0.5, 0.6, 0.1], [-0.5, 1.0, 0.5], [0.5, 0.5]])
def test_bad_base_rate(base_rate):
    with pytest.raises(EvidentiaError, match=r"base.rate"):
        HyperOpinion([0.5, 0.3], 0.2, [{0}, {1, 2}], 3, base_rate)


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        ([-1.0, 2.0], "evidence must be at least 0"),
        ([float("nan"), 2.0], "evidence must be finite"),
        (torch.tensor([3e38, 3e38]), "sum of the evidence"),
    ],
)
def test_bad_evidence(evidence, words):
    with pytest.raises(EvidentiaError, match=words):
        HyperOpinion.from_evidence(evidence, [{0}, {1, 2}], 3)
    with ev.validation(False):
        HyperOpinion.from_evidence(evidence, [{0}, {1, 2}], 3)
