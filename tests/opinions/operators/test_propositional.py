"""Complement, addition, multiplication and comultiplication."""

from __future__ import annotations

from functools import reduce

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

import evidentia as ev
from evidentia import BinomialOpinion, EvidentiaError
from evidentia.opinions import add, complement, comultiply, multiply

F64 = torch.float64
PART = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1), st.floats(-12, 0).map(lambda x: 10**x))


@st.composite
def opinions(draw, dtype=F64, rate=PART):
    """Any opinion: also vacuous, dogmatic, tiny masses, base rates 0 and 1."""
    parts = torch.tensor([draw(PART) for _ in range(3)], dtype=F64)
    if float(parts.sum()) == 0:
        parts[2] = 1.0
    b, d, u = (parts / parts.sum()).to(dtype)
    return BinomialOpinion(b, d, u, torch.tensor(draw(rate), dtype=dtype), validate=False)


def numbers(w):
    return [float(x) for x in (w.belief, w.disbelief, w.vacuity, w.base_rate)]


def check(w, probability=None, base_rate=None, tolerance=1e-12):
    """An opinion must be one, and project as it should."""
    b, d, u, a = numbers(w)
    assert min(b, d, u, a) >= 0
    assert a <= 1
    assert b + d + u == pytest.approx(1, abs=tolerance)
    if probability is not None:
        assert float(w.projected) == pytest.approx(probability, abs=tolerance)
    if base_rate is not None:
        assert a == pytest.approx(base_rate, abs=tolerance)


def textbook_multiply(x, y):
    bx, dx, ux, ax = numbers(x)
    by, dy, uy, ay = numbers(y)
    rest = 1 - ax * ay
    b = bx * by + ((1 - ax) * ay * bx * uy + ax * (1 - ay) * ux * by) / rest
    u = ux * uy + ((1 - ay) * bx * uy + (1 - ax) * ux * by) / rest
    return [b, dx + dy - dx * dy, u, ax * ay]


def textbook_comultiply(x, y):
    bx, dx, ux, ax = numbers(x)
    by, dy, uy, ay = numbers(y)
    a = ax + ay - ax * ay
    d = dx * dy + (ax * (1 - ay) * dx * uy + (1 - ax) * ay * ux * dy) / a
    u = ux * uy + (ay * dx * uy + ax * ux * dy) / a
    return [bx + by - bx * by, d, u, a]


# --- worked examples of Jøsang 2016


@pytest.mark.parametrize(
    ("operator", "y", "printed", "exact"),
    [
        (multiply, (0.10, 0.00, 0.90, 0.20), (0.15, 0.15, 0.70, 0.10), (0.15444, 0.15, 0.69556, 0.10)),
        (comultiply, (0.35, 0.00, 0.65, 0.20), (0.84, 0.06, 0.10, 0.60), (0.8375, 0.065, 0.0975, 0.60)),
    ],
    ids=["multiply p. 102", "comultiply p. 103"],
)
def test_book(operator, y, printed, exact):
    w = operator(BinomialOpinion(0.75, 0.15, 0.10, 0.50), BinomialOpinion(*y))
    assert numbers(w) == pytest.approx(exact, abs=6e-6)
    # The book rounds so that the masses still add up to 1.
    assert numbers(w) == pytest.approx(printed, abs=5.1e-3)


# --- projections, for any opinion


@given(opinions())
def test_complement(x):
    w = complement(x)
    check(w, 1 - float(x.projected), 1 - float(x.base_rate))
    assert complement(w).allclose(x, rtol=0, atol=1e-15)


@given(opinions(), opinions())
def test_add(x, y):
    scale = 0.5  # halve beliefs and base rates, so that the two can exclude each other

    def halved(w):
        b, _, u, a = numbers(w)
        return BinomialOpinion(*torch.tensor([b * scale, 1 - (b + u) * scale, u * scale, a * scale], dtype=F64))

    x, y = halved(x), halved(y)
    w = add(x, y)
    check(w, float(x.projected + y.projected), float(x.base_rate + y.base_rate))
    assert float(w.belief) == pytest.approx(float(x.belief + y.belief), abs=1e-12)
    assert add(y, x).allclose(w, rtol=0, atol=1e-15)


@given(st.lists(opinions(), min_size=2, max_size=6))
def test_products(factors):
    p, a = 1.0, 1.0
    not_p, not_a = 1.0, 1.0
    for w in factors:
        p, a = p * float(w.projected), a * float(w.base_rate)
        not_p, not_a = not_p * (1 - float(w.projected)), not_a * (1 - float(w.base_rate))
    check(multiply(*factors), p, a)
    check(comultiply(*factors), 1 - not_p, 1 - not_a)


# Base rates for which the textbook formulas divide by something.
INSIDE = st.floats(1e-3, 1 - 1e-3)


@given(opinions(rate=INSIDE), opinions(rate=INSIDE))
def test_pairs_are_the_textbook_formulas(x, y):
    assert numbers(multiply(x, y)) == pytest.approx(textbook_multiply(x, y), abs=1e-11)
    assert numbers(comultiply(x, y)) == pytest.approx(textbook_comultiply(x, y), abs=1e-11)


@given(st.lists(opinions(rate=INSIDE), min_size=2, max_size=6))
def test_many_at_once_are_one_after_another(factors):
    for operator in (multiply, comultiply):
        assert operator(*factors).allclose(reduce(operator, factors), rtol=0, atol=1e-10)


@given(st.lists(opinions(), min_size=2, max_size=5), st.randoms())
def test_order_does_not_matter(factors, random):
    shuffled = random.sample(factors, len(factors))
    for operator in (multiply, comultiply):
        assert operator(*shuffled).allclose(operator(*factors), rtol=0, atol=1e-11)


@given(st.lists(opinions(), min_size=2, max_size=5))
def test_de_morgan(factors):
    ours = complement(comultiply(*map(complement, factors)))
    assert multiply(*factors).allclose(ours, rtol=0, atol=1e-12)


@given(st.lists(opinions(torch.float32), min_size=2, max_size=20))
def test_float32(factors):
    p = torch.stack([w.projected for w in factors]).double()
    check(multiply(*factors), float(p.prod()), tolerance=3e-6)
    check(comultiply(*factors), float(1 - (1 - p).prod()), tolerance=3e-6)


def test_a_thousand_factors(dtype):
    batch = BinomialOpinion.from_evidence(torch.rand(1000, dtype=dtype), torch.rand(1000, dtype=dtype) * 1e6, 0.001)
    w = comultiply(batch, dim=0)
    exact = -torch.expm1(torch.log1p(-batch.projected.double()).sum())
    check(w, float(exact), tolerance=300 * torch.finfo(dtype).eps)


def test_tiny_beliefs_are_not_lost(dtype):
    # 1 - (1 - b)^n would be 0 in float32.
    tiny = BinomialOpinion(torch.full((3,), 1e-12, dtype=dtype), 1.0, 0.0, validate=False)
    torch.testing.assert_close(comultiply(tiny, dim=0).belief, torch.tensor(3e-12, dtype=dtype))
    # Nor are tiny base rates, as in a conjunction of many propositions.
    many = BinomialOpinion.from_evidence(torch.ones(20, dtype=dtype), 1.0, base_rate=0.1)
    torch.testing.assert_close(multiply(many, dim=0).base_rate, torch.tensor(1e-20, dtype=dtype), rtol=1e-5, atol=0)


# --- one batch with `dim`


@pytest.mark.parametrize("operator", [multiply, comultiply], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_dim(operator, dim):
    batch = BinomialOpinion.from_evidence(*(torch.rand(2, 3, 4, 2, dtype=F64) * 5).unbind(-1), 0.3)
    slices = [batch[(slice(None),) * (dim % 3) + (i,)] for i in range(batch.shape[dim])]
    ours = operator(batch, dim=dim)
    assert ours.shape == slices[0].shape
    assert ours.allclose(operator(*slices), rtol=0, atol=1e-14)


# --- limits


@pytest.mark.parametrize("operator", [multiply, comultiply], ids=lambda f: f.__name__)
@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_base_rates_at_the_edge_are_limits(operator, rate):
    x, y = (0.2, 0.3, 0.5), (0.4, 0.1, 0.5)
    inside = abs(rate - 1e-9)
    at_edge = operator(BinomialOpinion(*x, rate).to(F64), BinomialOpinion(*y, rate).to(F64))
    near = operator(BinomialOpinion(*x, inside).to(F64), BinomialOpinion(*y, inside).to(F64))
    assert at_edge.allclose(near, rtol=0, atol=1e-7)


@pytest.mark.parametrize("other", [(0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.3, 0.3, 0.4)])
def test_vacuous_and_dogmatic_limits(other):
    for edge in ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)):
        near = torch.tensor(edge, dtype=F64) * (1 - 3e-9) + 1e-9
        y = BinomialOpinion(*other, 0.4).to(F64)
        for operator in (multiply, comultiply):
            exact = operator(BinomialOpinion(*torch.tensor(edge, dtype=F64), 0.2), y)
            check(exact)
            assert exact.allclose(operator(BinomialOpinion(*near, 0.2), y), rtol=0, atol=1e-7)


def test_certainty_behaves_like_logic():
    true, false = BinomialOpinion(1.0, 0.0, 0.0), BinomialOpinion(0.0, 1.0, 0.0)
    w = BinomialOpinion(0.2, 0.3, 0.5)
    assert numbers(multiply(false, w))[:3] == pytest.approx([0, 1, 0])
    assert numbers(comultiply(true, w))[:3] == pytest.approx([1, 0, 0])
    assert float(multiply(true, w).projected) == pytest.approx(float(w.projected))
    assert float(comultiply(false, w).projected) == pytest.approx(float(w.projected))


# --- gradients


def from_parts(logits, rate):
    b, d, u = logits.softmax(-1).unbind(-1)
    return BinomialOpinion(b, d, u, rate.sigmoid(), validate=False)


@pytest.mark.parametrize("operator", [multiply, comultiply], ids=lambda f: f.__name__)
def test_gradcheck(operator):
    def fields(logits, rates):
        w = operator(from_parts(logits, rates), dim=0)
        return w.belief, w.disbelief, w.vacuity, w.base_rate

    logits = torch.randn(4, 2, 3, dtype=F64, requires_grad=True)
    rates = torch.randn(4, 2, dtype=F64, requires_grad=True)
    assert gradcheck(fields, (logits, rates))


def test_gradcheck_of_complement_and_add():
    def fields(logits, rates):
        x = from_parts(logits, rates)
        with ev.validation(False):
            w = add(
                BinomialOpinion(x.belief / 3, 1 - (x.belief + x.vacuity) / 3, x.vacuity / 3, x.base_rate / 3),
                BinomialOpinion(x.disbelief / 3, 1 - (x.disbelief + x.vacuity) / 3, x.vacuity / 3, x.base_rate / 2),
            )
        not_x = complement(x)
        return w.belief, w.disbelief, w.vacuity, w.base_rate, not_x.belief, not_x.disbelief, not_x.base_rate

    logits = torch.randn(2, 3, dtype=F64, requires_grad=True)
    rates = torch.randn(2, dtype=F64, requires_grad=True)
    assert gradcheck(fields, (logits, rates))


EDGES = [(0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.5, 0.5), (0.5, 0.0, 0.5), (0.5, 0.5, 0.0)]


@pytest.mark.parametrize("operator", [multiply, comultiply], ids=lambda f: f.__name__)
@pytest.mark.parametrize("rate", [0.0, 0.4, 1.0])
def test_gradients_are_finite_at_the_edges(operator, rate, dtype):
    masses = torch.tensor([[x, y] for x in EDGES for y in EDGES], dtype=dtype, requires_grad=True)
    rates = torch.full(masses.shape[:2], rate, dtype=dtype, requires_grad=True)
    w = operator(BinomialOpinion(*masses.unbind(-1), rates), dim=1)
    (w.belief + 2 * w.disbelief + 3 * w.vacuity + 4 * w.base_rate).sum().backward()
    assert torch.isfinite(masses.grad).all()
    assert torch.isfinite(rates.grad).all()


# --- bad input


def test_propositions_that_cannot_exclude_each_other():
    with pytest.raises(EvidentiaError, match=r"exclude each other.*1\.2.*comultiply"):
        add(BinomialOpinion(0.1, 0.8, 0.1, 0.6), BinomialOpinion(0.1, 0.8, 0.1, 0.6))
    with pytest.raises(EvidentiaError, match=r"exclude each other.*1\.4"):
        add(BinomialOpinion(0.7, 0.3, 0.0, 0.1), BinomialOpinion(0.7, 0.3, 0.0, 0.1))
    with ev.validation(False):
        check(add(BinomialOpinion(0.7, 0.3, 0.0, 0.6), BinomialOpinion(0.7, 0.3, 0.0, 0.6)), tolerance=1e-6)


@pytest.mark.parametrize("operator", [multiply, comultiply], ids=lambda f: f.__name__)
def test_bad_arguments(operator):
    w = BinomialOpinion.from_evidence(torch.ones(2, 3), 1.0)
    with pytest.raises(EvidentiaError, match="at least two opinions"):
        operator(w)
    with pytest.raises(EvidentiaError, match="at least two opinions"):
        operator()
    with pytest.raises(EvidentiaError, match="one batch of opinions, got 2"):
        operator(w, w, dim=0)
    for dim in (2, -3):
        with pytest.raises(EvidentiaError, match=rf"dim {dim} is not a batch dimension.*\(2, 3\)"):
            operator(w, dim=dim)
    with pytest.raises(EvidentiaError, match="no opinions to combine"):
        operator(w[:0], dim=0)
    with pytest.raises(EvidentiaError, match="must be of kind BinomialOpinion, got MultinomialOpinion"):
        operator(w, ev.MultinomialOpinion.vacuous(2))
    with pytest.raises(EvidentiaError, match="same prior weight"):
        operator(w, BinomialOpinion.from_evidence(1.0, 1.0, prior_weight=3.0))
