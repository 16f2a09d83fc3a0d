"""Fusion against evidence, textbook formulas, Dempster's rule by hand, published tables and another library."""

from __future__ import annotations

import itertools
import math
from functools import reduce

import pytest
import subjective_logic
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from evidentia import BinomialOpinion, EvidentiaError, HyperOpinion, MultinomialOpinion
from evidentia.opinions import averaging_fusion, constraint_fusion, cumulative_fusion, weighted_fusion

F64 = torch.float64
FUSIONS = [cumulative_fusion, averaging_fusion, weighted_fusion, constraint_fusion]
every_fusion = pytest.mark.parametrize("fuse", FUSIONS, ids=lambda f: f.__name__)
PART = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1), st.floats(-12, 0).map(lambda x: 10**x))


def opinion(*masses, base_rate=None, dtype=F64):
    """A multinomial opinion from its beliefs and, last, its vacuity."""
    rate = None if base_rate is None else torch.tensor(base_rate, dtype=dtype)
    return MultinomialOpinion(torch.tensor(masses[:-1], dtype=dtype), masses[-1], rate)


@st.composite
def sources(draw, classes=3, smallest_vacuity=0.0, equal_base_rates=False, max_size=5):
    """Several opinions about the same thing: also vacuous and dogmatic ones."""
    result = []
    for _ in range(draw(st.integers(2, max_size))):
        masses = torch.tensor([draw(PART) for _ in range(classes + 1)], dtype=F64)
        masses[-1] += 1.0 if float(masses.sum()) == 0 else 0.0
        masses = masses / masses.sum() * (1 - smallest_vacuity)
        masses[-1] += smallest_vacuity
        rate = torch.ones(classes, dtype=F64)
        if not equal_base_rates:
            rate = torch.tensor([draw(st.floats(0.01, 1)) for _ in range(classes)], dtype=F64)
        result.append(MultinomialOpinion(masses[:-1], masses[-1], rate / rate.sum(), validate=False))
    return result


def numbers(w):
    return [*w.belief.tolist(), float(w.vacuity)]


def check(w, tolerance=1e-12):
    assert min(numbers(w)) >= 0
    assert sum(numbers(w)) == pytest.approx(1, abs=tolerance)
    assert (w.base_rate >= 0).all()
    assert (w.base_rate <= 1).all()
    assert float(w.base_rate.sum()) == pytest.approx(1, abs=tolerance)


# --- textbook formulas, in plain Python


def textbook(fuse, opinions):
    """The n-source formulas with products of vacuities (van der Heijden et al. 2018), for vacuities above 0."""
    u = [float(w.vacuity) for w in opinions]
    b = [w.belief.tolist() for w in opinions]
    n, classes, everything = len(u), len(b[0]), math.prod(u)
    except_i = [math.prod(u[:i] + u[i + 1 :]) for i in range(n)]
    if fuse is cumulative_fusion:
        total = sum(except_i) - (n - 1) * everything
        belief = [sum(b[i][k] * except_i[i] for i in range(n)) / total for k in range(classes)]
        return [*belief, everything / total]
    if fuse is averaging_fusion:
        total = sum(except_i)
        belief = [sum(b[i][k] * except_i[i] for i in range(n)) / total for k in range(classes)]
        return [*belief, n * everything / total]
    total = sum(except_i) - n * everything
    belief = [sum(b[i][k] * (1 - u[i]) * except_i[i] for i in range(n)) / total for k in range(classes)]
    return [*belief, (n - sum(u)) * everything / total]


def dempster(opinions):
    """Dempster's rule, by intersecting sets: each class a singleton, vacuity the set of all classes."""
    classes = opinions[0].num_classes
    everything = frozenset(range(classes))
    focal = [
        {**{frozenset({k}): mass for k, mass in enumerate(w.belief.tolist())}, everything: float(w.vacuity)}
        for w in opinions
    ]
    fused: dict[frozenset[int], float] = {}
    for choice in itertools.product(*(source.items() for source in focal)):
        meet = frozenset.intersection(*(members for members, _ in choice))
        if meet:
            fused[meet] = fused.get(meet, 0.0) + math.prod(mass for _, mass in choice)
    total = sum(fused.values())
    return [*(fused[frozenset({k})] / total for k in range(classes)), fused[everything] / total]


@given(sources(smallest_vacuity=0.01))
def test_textbook_formulas(opinions):
    if all(float(w.vacuity) > 0.999 for w in opinions):
        opinions[0] = opinion(0.2, 0.3, 0.1, 0.4)
    for fuse in (cumulative_fusion, averaging_fusion, weighted_fusion):
        w = fuse(*opinions)
        check(w)
        assert numbers(w) == pytest.approx(textbook(fuse, opinions), abs=1e-9)


@given(sources(smallest_vacuity=0.01, max_size=4))
def test_constraint_fusion_is_dempsters_rule(opinions):
    w = constraint_fusion(*opinions)
    check(w)
    assert numbers(w) == pytest.approx(dempster(opinions), abs=1e-12)


@given(sources(smallest_vacuity=0.01, max_size=4))
def test_base_rates(opinions):
    # Averages: plain, by confidence, or by evidence (the textbook form for two sources).
    rates = [w.base_rate for w in opinions]
    confidence = [float(w.belief.sum()) for w in opinions]
    torch.testing.assert_close(averaging_fusion(*opinions).base_rate, sum(rates) / len(rates))
    if sum(confidence) > 1e-3:
        expected = sum(c * rate for c, rate in zip(confidence, rates, strict=True)) / sum(confidence)
        for fuse in (weighted_fusion, constraint_fusion):
            torch.testing.assert_close(fuse(*opinions).base_rate, expected)
        (u1, u2), (a1, a2) = (float(w.vacuity) for w in opinions[:2]), rates[:2]
        if u1 + u2 - 2 * u1 * u2 > 1e-3:
            textbook_rate = (a1 * u2 + a2 * u1 - (a1 + a2) * u1 * u2) / (u1 + u2 - 2 * u1 * u2)
            ours = cumulative_fusion(*opinions[:2]).base_rate
            torch.testing.assert_close(ours, textbook_rate, rtol=1e-6, atol=1e-9)


@given(st.lists(st.lists(st.floats(0, 1e6), min_size=3, max_size=3), min_size=2, max_size=6))
def test_cumulative_fusion_adds_evidence(evidence):
    batch = torch.tensor(evidence, dtype=F64)
    fused = cumulative_fusion(MultinomialOpinion.from_evidence(batch), dim=0)
    assert fused.allclose(MultinomialOpinion.from_evidence(batch.sum(0)), rtol=1e-10, atol=1e-14)
    averaged = averaging_fusion(MultinomialOpinion.from_evidence(batch), dim=0)
    assert averaged.allclose(MultinomialOpinion.from_evidence(batch.mean(0)), rtol=1e-10, atol=1e-14)


def test_evidence_adds_up_over_many_sources_and_magnitudes(dtype):
    evidence = 10 ** (torch.rand(5000, 4, dtype=F64) * 12 - 9)
    fused = cumulative_fusion(MultinomialOpinion.from_evidence(evidence.to(dtype)), dim=0)
    expected = MultinomialOpinion.from_evidence(evidence.sum(0).to(dtype))
    assert fused.allclose(expected, rtol=200 * torch.finfo(dtype).eps, atol=0)


def test_many_nearly_vacuous_sources(dtype):
    # The textbook denominator, N - (N - 1), has no digits left here.
    evidence = torch.full((20_000, 2), 1e-9, dtype=dtype)
    fused = cumulative_fusion(MultinomialOpinion.from_evidence(evidence), dim=0)
    torch.testing.assert_close(fused.belief, torch.full((2,), 1e-5, dtype=dtype), rtol=1e-4, atol=0)


# --- algebra


@given(sources(smallest_vacuity=1e-3, equal_base_rates=True))
def test_many_at_once_are_one_after_another(opinions):
    for fuse in (cumulative_fusion, constraint_fusion):
        assert fuse(*opinions).allclose(reduce(fuse, opinions), rtol=0, atol=1e-9)


@given(sources(), st.randoms())
def test_order_does_not_matter_and_results_are_opinions(opinions, random):
    shuffled = random.sample(opinions, len(opinions))
    for fuse in FUSIONS:
        check(fuse(*opinions))
        assert fuse(*shuffled).allclose(fuse(*opinions), rtol=0, atol=1e-9)


@given(sources(max_size=2), st.integers(2, 6))
def test_idempotence(opinions, times):
    w = opinions[0]
    assert averaging_fusion(*[w] * times).allclose(w, rtol=0, atol=1e-12)
    assert weighted_fusion(*[w] * times).allclose(w, rtol=0, atol=1e-12)


@given(sources())
def test_vacuous_sources_change_nothing(opinions):
    vacuous = opinion(0.0, 0.0, 0.0, 1.0)
    for fuse in (cumulative_fusion, weighted_fusion, constraint_fusion):
        before, after = fuse(*opinions), fuse(*opinions, vacuous)
        assert numbers(after) == pytest.approx(numbers(before), abs=1e-12)


# --- published values

SOURCES = [(0.10, 0.30, 0.60), (0.40, 0.20, 0.40), (0.70, 0.10, 0.20)]
ZADEH = [(0.99, 0.01, 0.0, 0.0), (0.0, 0.01, 0.99, 0.0)]
NEARLY_ZADEH = [(0.98, 0.01, 0.0, 0.01), (0.0, 0.01, 0.90, 0.09)]


@pytest.mark.parametrize(
    ("fuse", "given", "printed", "tolerance"),
    [
        # Jøsang, Wang and Zhang 2017; van der Heijden et al. 2018, table I.
        (constraint_fusion, SOURCES, (0.738, 0.184, 0.078), 5e-4),
        (cumulative_fusion, SOURCES, (0.651, 0.209, 0.140), 5e-4),
        (averaging_fusion, SOURCES, (0.509, 0.164, 0.327), 5e-4),
        (weighted_fusion, SOURCES, (0.562, 0.146, 0.292), 5e-4),
        # Jøsang 2016, table 12.5.
        (cumulative_fusion, ZADEH, (0.495, 0.010, 0.495, 0.0), 5e-4),
        (averaging_fusion, ZADEH, (0.495, 0.010, 0.495, 0.0), 5e-4),
        (weighted_fusion, ZADEH, (0.495, 0.010, 0.495, 0.0), 5e-4),
        # Zadeh's own point: two experts who agree on nothing else are forced to the unlikely.
        (constraint_fusion, ZADEH, (0.0, 1.0, 0.0, 0.0), 1e-12),
        # Table 12.6 (the book rounds the weighted vacuity, exactly .0174, up to .018).
        (cumulative_fusion, NEARLY_ZADEH, (0.890, 0.010, 0.091, 0.009), 5.1e-4),
        (averaging_fusion, NEARLY_ZADEH, (0.882, 0.010, 0.090, 0.018), 5.1e-4),
        (weighted_fusion, NEARLY_ZADEH, (0.889, 0.010, 0.083, 0.018), 7e-4),
        (constraint_fusion, NEARLY_ZADEH, (0.88911, 0.01109, 0.09073, 0.00907), 5.1e-6),
    ],
)
def test_published(fuse, given, printed, tolerance):
    assert numbers(fuse(*(opinion(*masses) for masses in given))) == pytest.approx(printed, abs=tolerance)


@pytest.mark.parametrize("seed", range(20))
def test_against_another_library(seed):
    # The package keeps six decimals.
    generator = torch.Generator().manual_seed(seed)
    masses = (torch.rand(2, 3, generator=generator, dtype=F64) + 0.05).softmax(-1)
    rates = torch.rand(2, generator=generator, dtype=F64)
    ours = [BinomialOpinion(*row, rate) for row, rate in zip(masses, rates, strict=True)]
    theirs = [
        subjective_logic.BinomialOpinion(*row.tolist(), float(rate)) for row, rate in zip(masses, rates, strict=True)
    ]
    for fuse, other in (
        (cumulative_fusion, theirs[0].cumulative_fusion),
        (averaging_fusion, theirs[0].average_fusion),
    ):
        fused, reference = fuse(*ours), other(theirs[1])
        assert [float(x) for x in (fused.belief, fused.disbelief, fused.vacuity, fused.base_rate)] == pytest.approx(
            [reference.belief, reference.disbelief, reference.uncertainty, reference.base_rate], abs=5e-6
        )


# --- limits


def test_dogmatic_sources_outweigh_all_others():
    certain, other, doubtful = opinion(1.0, 0.0, 0.0, 0.0), opinion(0.2, 0.8, 0.0, 0.0), opinion(0.1, 0.1, 0.3, 0.5)
    for fuse in (cumulative_fusion, averaging_fusion, weighted_fusion):
        assert numbers(fuse(certain, doubtful)) == pytest.approx([1, 0, 0, 0])
        assert numbers(fuse(certain, other, doubtful)) == pytest.approx([0.6, 0.4, 0, 0])


@every_fusion
def test_all_vacuous(fuse):
    vacuous = opinion(0.0, 0.0, 1.0, base_rate=[0.2, 0.8])
    w = fuse(vacuous, opinion(0.0, 0.0, 1.0, base_rate=[0.4, 0.6]))
    assert numbers(w) == [0, 0, 1]
    torch.testing.assert_close(w.base_rate, torch.tensor([0.3, 0.7], dtype=F64))


@every_fusion
@pytest.mark.parametrize("edge", [(0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.4, 0.6, 0.0), (0.0, 0.5, 0.5)])
def test_edges_are_limits(fuse, edge):
    other = opinion(0.3, 0.2, 0.5)
    near = torch.tensor(edge, dtype=F64) * (1 - 3e-9) + 1e-9
    exact = fuse(opinion(*edge), other)
    check(exact)
    nearly = fuse(opinion(*near.tolist()), other)
    assert numbers(exact) == pytest.approx(numbers(nearly), abs=1e-7)


CONFLICTS = [
    [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0)],
    [(1.0, 0.0, 0.0, 0.0), (0.0, 0.3, 0.7, 0.0)],
    [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.3, 0.2, 0.5)],
    [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0)],
    [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)],
    [(0.5, 0.5, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (0.1, 0.2, 0.3, 0.4)],
]


@pytest.mark.parametrize("conflict", CONFLICTS)
def test_total_conflict_is_the_limit_of_equal_little_doubt(conflict, dtype):
    w = constraint_fusion(*(opinion(*masses, dtype=dtype) for masses in conflict))
    check(w, tolerance=1e-6)
    little = 1e-9
    doubting = [
        opinion(*(mass * (1 - little) for mass in masses[:-1]), masses[-1] + little * (1 - masses[-1]))
        for masses in conflict
        if masses[-1] == 0.0
    ] + [opinion(*masses) for masses in conflict if masses[-1] > 0]
    assert numbers(w) == pytest.approx(dempster(doubting), abs=1e-6)


def test_total_conflict_of_many_sources(dtype):
    # The product of a thousand beliefs of 0.1 underflows even in float64.
    belief = torch.full((1000, 12), 0.1, dtype=dtype)
    belief[:500, :2] = 0
    belief[500:, 10:] = 0
    belief[0], belief[999] = torch.eye(12, dtype=dtype)[11], torch.eye(12, dtype=dtype)[0]
    w = constraint_fusion(MultinomialOpinion(belief, 0.0), dim=0)
    check(w, tolerance=1e-5)


def test_long_products_do_not_underflow(dtype):
    w = MultinomialOpinion.from_evidence(torch.tensor([3.0, 2.0, 1.0], dtype=dtype)).expand(2000)
    fused = constraint_fusion(w, dim=0)
    check(fused, tolerance=1e-5)
    assert float(fused.belief[0]) == pytest.approx(1)


# --- kinds, batches


@every_fusion
def test_binomial_opinions_fuse_like_two_classes(fuse):
    batch = BinomialOpinion.from_evidence(*(torch.rand(2, 3, 4, dtype=F64) * 9), 0.3)
    fused = fuse(batch, dim=0)
    assert isinstance(fused, BinomialOpinion)
    assert fused.allclose(BinomialOpinion.from_multinomial(fuse(batch.to_multinomial(), dim=0)))


@every_fusion
@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_dim(fuse, dim):
    batch = MultinomialOpinion.from_evidence(torch.rand(2, 3, 4, 5, dtype=F64) * 9)
    slices = [batch[(slice(None),) * (dim % 3) + (i,)] for i in range(batch.shape[dim])]
    ours = fuse(batch, dim=dim)
    assert ours.shape == slices[0].shape
    assert ours.allclose(fuse(*slices), rtol=0, atol=1e-14)


@every_fusion
def test_one_source_along_dim_is_itself(fuse):
    w = MultinomialOpinion.from_evidence(torch.rand(1, 3, dtype=F64))
    assert fuse(w, dim=0).allclose(w[0], rtol=0, atol=1e-15)


# --- gradients


@every_fusion
def test_gradcheck(fuse):
    def fields(logits, rates):
        masses = logits.softmax(-1)
        w = fuse(MultinomialOpinion(masses[..., :-1], masses[..., -1], rates.softmax(-1), validate=False), dim=0)
        return w.belief, w.vacuity, w.base_rate

    logits = torch.randn(4, 2, 4, dtype=F64, requires_grad=True)
    rates = torch.randn(4, 2, 3, dtype=F64, requires_grad=True)
    assert gradcheck(fields, (logits, rates))


@every_fusion
def test_gradients_are_finite_at_the_edges(fuse, dtype):
    edges = [(0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.5, 0.5), (0.5, 0.5, 0.0), (0.3, 0.3, 0.4)]
    masses = torch.tensor([[x, y] for x in edges for y in edges], dtype=dtype, requires_grad=True)
    w = fuse(MultinomialOpinion(masses[..., :-1], masses[..., -1]), dim=1)
    (w.belief.sum(-1) * 2 + w.belief[:, 0] + w.vacuity + 3 * w.base_rate[:, 0]).sum().backward()
    assert torch.isfinite(masses.grad).all()


# --- bad input


@every_fusion
def test_bad_arguments(fuse):
    w = MultinomialOpinion.vacuous(2, 3)
    with pytest.raises(EvidentiaError, match=r"got HyperOpinion.*to_multinomial"):
        fuse(HyperOpinion([0.5], 0.5, [{0, 1}], 3), w)
    with pytest.raises(EvidentiaError, match="BinomialOpinion or MultinomialOpinion, got Tensor"):
        fuse(w, torch.ones(3))
    with pytest.raises(EvidentiaError, match="one kind"):
        fuse(w, BinomialOpinion(0.5, 0.3, 0.2))
    with pytest.raises(EvidentiaError, match="same classes"):
        fuse(w, MultinomialOpinion.vacuous(4))
    with pytest.raises(EvidentiaError, match="at least two"):
        fuse(w)
    with pytest.raises(EvidentiaError, match="not a batch dimension"):
        fuse(w, dim=1)
    with pytest.raises(EvidentiaError, match="broadcast"):
        fuse(w, MultinomialOpinion.vacuous(3, 3))
