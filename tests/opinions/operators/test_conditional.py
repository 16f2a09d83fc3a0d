"""Deduction, inversion and abduction against the definitions in Jøsang's book, written out in plain Python."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from evidentia import BinomialOpinion, EvidentiaError, MultinomialOpinion
from evidentia.opinions import abduce, deduce, invert

F64 = torch.float64
PART = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
INSIDE = st.floats(0.02, 0.98)


@st.composite
def opinions(draw, part=PART, rate=PART):
    parts = torch.tensor([draw(part) for _ in range(3)], dtype=F64)
    parts[2] += 1.0 if float(parts.sum()) == 0 else 0.0
    return BinomialOpinion(*(parts / parts.sum()), torch.tensor(draw(rate), dtype=F64), validate=False)


def numbers(w):
    return [float(x) for x in (w.belief, w.disbelief, w.vacuity, w.base_rate)]


def opinion(*masses):
    return BinomialOpinion(*torch.tensor(masses, dtype=F64))


def check(w, probability=None, tolerance=1e-10):
    b, d, u, a = numbers(w)
    assert min(b, d, u, a) >= 0
    assert a <= 1
    assert b + d + u == pytest.approx(1, abs=tolerance)
    if probability is not None:
        assert float(w.projected) == pytest.approx(probability, abs=tolerance)


def marginal_base_rate(a_x, given_true, given_false):
    (b1, _, u1, _), (b0, _, u0, _) = numbers(given_true), numbers(given_false)
    return (a_x * b1 + (1 - a_x) * b0) / (1 - a_x * u1 - (1 - a_x) * u0)


def definition_9_1(x, given_true, given_false, ay):  # noqa: PLR0912 (as many as the book has)
    """Binomial deduction by its nine cases."""
    bx, dx, ux, ax = numbers(x)
    b1, d1, u1, _ = numbers(given_true)
    b0, d0, u0, _ = numbers(given_false)
    bi = bx * b1 + dx * b0 + ux * (b1 * ax + b0 * (1 - ax))
    di = bx * d1 + dx * d0 + ux * (d1 * ax + d0 * (1 - ax))
    ui = bx * u1 + dx * u0 + ux * (u1 * ax + u0 * (1 - ax))
    p, e, f = bx + ax * ux, bx + ax * ux, dx + (1 - ax) * ux
    if (b1 > b0) == (d1 > d0):
        k = 0.0
    else:
        expected = b1 * ax + b0 * (1 - ax) + ay * (u1 * ax + u0 * (1 - ax))
        if b1 > b0:  # case II
            if expected <= b0 + ay * (1 - b0 - d1):
                if p <= ax:
                    k = ax * ux * (bi - b0) / (e * ay)
                else:
                    k = ax * ux * (di - d1) * (b1 - b0) / (f * ay * (d0 - d1))
            elif p <= ax:
                k = (1 - ax) * ux * (bi - b0) * (d0 - d1) / (e * (1 - ay) * (b1 - b0))
            else:
                k = (1 - ax) * ux * (di - d1) / (f * (1 - ay))
        elif expected <= b1 + ay * (1 - b1 - d0):  # case III
            if p <= ax:
                k = (1 - ax) * ux * (di - d0) * (b0 - b1) / (e * ay * (d1 - d0))
            else:
                k = (1 - ax) * ux * (bi - b1) / (f * ay)
        elif p <= ax:
            k = ax * ux * (di - d0) / (e * (1 - ay))
        else:
            k = ax * ux * (bi - b1) * (d1 - d0) / (f * (1 - ay) * (b0 - b1))
    return [bi - ay * k, di - (1 - ay) * k, ui + k, ay]


def subjective_bayes(given_true, given_false, a_x):
    """The inverted conditionals, as chapter 10 has them."""
    a_y = marginal_base_rate(a_x, given_true, given_false)
    p = [float(w.belief) + a_y * float(w.vacuity) for w in (given_true, given_false)]
    u = [float(w.vacuity) for w in (given_true, given_false)]
    weighted = 0.0
    for p_y, u_y in zip(p, u, strict=True):
        largest = min(p_y / a_y, (1 - p_y) / (1 - a_y))
        weighted += u_y / sum(u) * (u_y / largest) if sum(u) > 0 and largest > 0 else 0.0
    irrelevance = 1 - abs(p[0] - p[1])
    result = []
    for likelihood in (p, [1 - p_y for p_y in p]):
        evidence = a_x * likelihood[0] + (1 - a_x) * likelihood[1]
        posterior = a_x * likelihood[0] / evidence
        largest = min(likelihood) / evidence
        vacuity = largest * (weighted + irrelevance - weighted * irrelevance)
        result.append([posterior - a_x * vacuity, 1 - posterior - (1 - a_x) * vacuity, vacuity, a_x])
    return result


# --- worked examples of Jøsang 2016


@pytest.mark.parametrize(
    ("x", "given_true", "given_false", "printed", "tolerance"),
    [
        ((0.10, 0.80, 0.10, 0.80), (0.40, 0.50, 0.10), (0.0, 0.40, 0.60), (0.07, 0.42, 0.51, 0.40), 5.1e-3),
        ((0.10, 0.80, 0.10, 0.80), (0.40, 0.50, 0.10), (0.0, 0.40, 0.60), (0.072, 0.418, 0.510, 0.40), 1e-9),
        ((0.0, 0.0, 1.0, 0.80), (0.40, 0.50, 0.10), (0.0, 0.40, 0.60), (0.320, 0.480, 0.200, 0.400), 5.1e-4),
        ((0.0, 0.40, 0.60, 0.50), (0.55, 0.30, 0.15), (0.10, 0.75, 0.15), (0.15, 0.48, 0.37, 0.38), 5.1e-3),
        ((0.0, 0.40, 0.60, 0.50), (0.55, 0.30, 0.15), (0.10, 0.75, 0.15), (0.15143, 0.48, 0.36857, 0.38235), 6e-6),
    ],
    ids=["figure 9.8", "figure 9.8, case I exactly", "vacuous x", "section 9.4.4", "section 9.4.4 exactly"],
)
def test_book_deduction(x, given_true, given_false, printed, tolerance):
    w = deduce(opinion(*x), opinion(*given_true), opinion(*given_false))
    assert numbers(w) == pytest.approx(printed, abs=tolerance)


def test_book_table_10_1_inversion():
    x_given_y, x_given_not_y = invert(opinion(0.8, 0.2, 0.0), opinion(0.2, 0.8, 0.0), 0.5)
    assert numbers(x_given_y) == pytest.approx([0.72, 0.12, 0.16, 0.50])
    assert numbers(x_given_not_y) == pytest.approx([0.12, 0.72, 0.16, 0.50])


@pytest.mark.parametrize(
    ("base_rate", "printed", "exact"), [(0.5, 0.93, 0.925), (0.01, 0.15, 0.1467)], ids=["common", "rare"]
)
def test_book_disease(base_rate, printed, exact):
    sick, healthy = opinion(0.90, 0.05, 0.05), opinion(0.05, 0.90, 0.05)
    w = abduce(opinion(1.0, 0.0, 0.0), sick, healthy, base_rate)
    assert float(w.projected) == pytest.approx(printed, abs=5.1e-3)
    assert float(w.projected) == pytest.approx(exact, abs=6e-5)


# --- definitions


@given(opinions(part=INSIDE, rate=INSIDE), opinions(part=INSIDE), opinions(part=INSIDE))
def test_deduction_is_definition_9_1(x, given_true, given_false):
    a_y = marginal_base_rate(float(x.base_rate), given_true, given_false)
    expected = definition_9_1(x, given_true, given_false, a_y)
    assert numbers(deduce(x, given_true, given_false)) == pytest.approx(expected, abs=1e-9)


@given(opinions(part=INSIDE), opinions(part=INSIDE), INSIDE)
def test_inversion_is_subjective_bayes(given_true, given_false, a_x):
    for ours, expected in zip(
        invert(given_true, given_false, a_x), subjective_bayes(given_true, given_false, a_x), strict=True
    ):
        assert numbers(ours) == pytest.approx(expected, abs=1e-9)


# --- projections, for any opinions


@given(opinions(), opinions(), opinions(), st.one_of(st.none(), PART))
def test_law_of_total_probability(x, given_true, given_false, base_rate):
    w = deduce(x, given_true, given_false, base_rate)
    a_y = float(w.base_rate)
    assert base_rate is None or a_y == base_rate
    p_true, p_false = (float(g.belief) + a_y * float(g.vacuity) for g in (given_true, given_false))
    p_x = float(x.projected)
    check(w, p_x * p_true + (1 - p_x) * p_false)


@given(opinions(), opinions(), opinions(), PART)
def test_bayes_theorem(y, given_true, given_false, a_x):
    x_given_y, x_given_not_y = invert(given_true, given_false, a_x)
    # The marginal base rate of y is that of the deduction from the base rate of x.
    prior = BinomialOpinion(torch.tensor(0.0, dtype=F64), 0.0, 1.0, a_x)
    a_y = float(deduce(prior, given_true, given_false).base_rate)
    p_true, p_false = (float(g.belief) + a_y * float(g.vacuity) for g in (given_true, given_false))
    posteriors = []
    for likelihood, other, w in ((p_true, p_false, x_given_y), (1 - p_true, 1 - p_false, x_given_not_y)):
        total = a_x * likelihood + (1 - a_x) * other
        posteriors.append(a_x * likelihood / total if total > 1e-12 else a_x)
        if total > 1e-12 or total == 0:
            check(w, posteriors[-1], tolerance=1e-8)
        assert float(w.base_rate) == a_x
    w = abduce(y, given_true, given_false, a_x)
    check(w)
    p_y = float(y.belief) + a_y * float(y.vacuity)
    if all(1e-6 < p < 1 - 1e-6 for p in (p_true, p_false)):
        assert float(w.projected) == pytest.approx(p_y * posteriors[0] + (1 - p_y) * posteriors[1], abs=1e-8)


@given(opinions(rate=INSIDE), opinions(), opinions())
def test_certainty_of_x_selects_a_conditional(x, given_true, given_false):
    a_x = float(x.base_rate)
    for certain, selected in ((opinion(1.0, 0.0, 0.0, a_x), given_true), (opinion(0.0, 1.0, 0.0, a_x), given_false)):
        w = deduce(certain, given_true, given_false)
        assert numbers(w)[:3] == pytest.approx(numbers(selected)[:3], abs=1e-12)


@given(opinions(), opinions(part=INSIDE))
def test_equal_conditionals_make_x_irrelevant(x, given_either):
    w = deduce(x, given_either, given_either)
    assert numbers(w)[:3] == pytest.approx(numbers(given_either)[:3], abs=1e-12)


@given(opinions(part=INSIDE), opinions(part=INSIDE), INSIDE)
def test_an_irrelevant_observation_leaves_the_base_rate(y, given_either, a_x):
    assert float(abduce(y, given_either, given_either, a_x).projected) == pytest.approx(a_x, abs=1e-9)


@given(opinions(), opinions(), INSIDE)
def test_a_vacuous_observation_leaves_the_base_rate(given_true, given_false, a_x):
    w = abduce(opinion(0.0, 0.0, 1.0), given_true, given_false, a_x)
    assert float(w.projected) == pytest.approx(a_x, abs=1e-9)


# --- limits

EDGES = [(0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.4, 0.6, 0.0), (0.0, 0.5, 0.5)]
GENERIC = [(0.5, 0.2, 0.3), (0.1, 0.6, 0.3), (0.3, 0.3, 0.4)]


def nearby(masses):
    return opinion(*(torch.tensor(masses, dtype=F64) * (1 - 3e-9) + 1e-9).tolist(), 0.3)


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_edges_are_limits(edge, place):
    exact = [opinion(*masses, 0.3) for masses in GENERIC]
    near = list(exact)
    exact[place], near[place] = opinion(*edge, 0.3), nearby(edge)
    assert deduce(*exact).allclose(deduce(*near), rtol=0, atol=1e-6)
    assert abduce(*exact, 0.2).allclose(abduce(*near, 0.2), rtol=0, atol=1e-6)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_base_rates_at_the_edge_are_limits(rate):
    x, given_true, given_false = (opinion(*masses, 0.3) for masses in GENERIC)
    inside = abs(rate - 1e-9)
    assert abduce(x, given_true, given_false, rate).allclose(
        abduce(x, given_true, given_false, inside), rtol=0, atol=1e-6
    )
    assert deduce(x, given_true, given_false, rate).allclose(
        deduce(x, given_true, given_false, inside), rtol=0, atol=1e-6
    )


def test_vacuous_conditionals_fall_back_on_their_own_base_rates():
    x = opinion(0.2, 0.3, 0.5, 0.25)
    w = deduce(x, opinion(0.0, 0.0, 1.0, 0.4), opinion(0.0, 0.0, 1.0, 0.8))
    assert numbers(w) == pytest.approx([0, 0, 1, 0.25 * 0.4 + 0.75 * 0.8])


def test_an_observation_that_cannot_happen_says_nothing():
    never = opinion(0.0, 1.0, 0.0)
    x_given_y, _ = invert(never, never, 0.3)
    assert float(x_given_y.projected) == pytest.approx(0.3)


def test_float32_stays_an_opinion():
    parts = torch.rand(3, 500, 3) ** 8
    masses = parts / parts.sum(-1, keepdim=True)
    x, given_true, given_false = (BinomialOpinion(*m.unbind(-1), 0.3, validate=False) for m in masses)
    for w in (deduce(x, given_true, given_false), abduce(x, given_true, given_false, 0.01)):
        BinomialOpinion(**w.numpy())  # validates


# --- gradients


def test_gradients_at_tiny_base_rates_in_float32():
    rate = torch.tensor([1e-30, 1e-20, 1e-10], requires_grad=True)
    if_true, if_false = BinomialOpinion(0.9, 0.1, 0.0), BinomialOpinion(0.0, 1.0, 0.0)
    w = abduce(BinomialOpinion(0.5, 0.5, 0.0), if_true, if_false, rate)
    w.projected.sum().backward()
    assert w.dtype == torch.float32
    assert torch.isfinite(rate.grad).all()


def opinions_from(logits, rates):
    return [
        BinomialOpinion(*row.softmax(-1).unbind(-1), rate.sigmoid(), validate=False)
        for row, rate in zip(logits, rates, strict=True)
    ]


@pytest.mark.parametrize("seed", range(4))  # different cases of the deduction
def test_gradcheck(seed):
    generator = torch.Generator().manual_seed(seed)

    def deduced(logits, rates):
        w = deduce(*opinions_from(logits, rates))
        return w.belief, w.disbelief, w.vacuity, w.base_rate

    def abduced(logits, rates):
        w = abduce(*opinions_from(logits, rates), base_rate=rates[0].sigmoid() / 2)
        return w.belief, w.disbelief, w.vacuity, w.base_rate

    def inverted(logits, rates):
        pair = invert(*opinions_from(logits, rates)[1:], base_rate=rates[0].sigmoid())
        return tuple(field for w in pair for field in (w.belief, w.disbelief, w.vacuity))

    logits = torch.randn(3, 3, generator=generator, dtype=F64, requires_grad=True)
    rates = torch.randn(3, generator=generator, dtype=F64, requires_grad=True)
    for function in (deduced, abduced, inverted):
        assert gradcheck(function, (logits, rates))


@pytest.mark.parametrize("rate", [0.0, 0.4, 1.0])
def test_gradients_are_finite_at_the_edges(rate, dtype):
    rows = list(itertools.product([*EDGES, GENERIC[0]], repeat=3))
    masses = torch.tensor(rows, dtype=dtype, requires_grad=True)
    rates = torch.full(masses.shape[:2], rate, dtype=dtype, requires_grad=True)
    three = [BinomialOpinion(*masses[:, i].unbind(-1), rates[:, i]) for i in range(3)]
    for w in (deduce(*three), abduce(*three, base_rate=rates[:, 0]), *invert(*three[1:], base_rate=rates[:, 0])):
        total = (w.belief + 2 * w.disbelief + 3 * w.vacuity + 4 * w.base_rate).sum()
        gradients = torch.autograd.grad(total, (masses, rates), retain_graph=True, allow_unused=True)
        for gradient in gradients:
            assert gradient is None or torch.isfinite(gradient).all()


# --- bad input


def test_bad_arguments():
    w = BinomialOpinion(torch.full((2,), 0.5, dtype=F64), 0.3, 0.2)
    with pytest.raises(EvidentiaError, match="x must be of kind BinomialOpinion, got Tensor"):
        deduce(torch.ones(2), w, w)
    with pytest.raises(EvidentiaError, match="y_given_not_x must be of kind BinomialOpinion, got MultinomialOpinion"):
        deduce(w, w, MultinomialOpinion.vacuous(2, 2))
    with pytest.raises(EvidentiaError, match="y must be of kind BinomialOpinion"):
        abduce(None, w, w, 0.5)
    with pytest.raises(EvidentiaError, match="y_given_x must be of kind BinomialOpinion"):
        invert(0.5, w, 0.5)
    for bad in (1.5, -0.1, float("nan")):
        with pytest.raises(EvidentiaError, match="base_rate"):
            deduce(w, w, w, bad)
        with pytest.raises(EvidentiaError, match="base_rate"):
            invert(w, w, bad)
    with pytest.raises(EvidentiaError, match=r"broadcast.*\(3,\)"):
        deduce(w, w, BinomialOpinion(torch.full((3,), 0.5), 0.3, 0.2))
    with pytest.raises(EvidentiaError, match=r"broadcast"):
        invert(w, BinomialOpinion(torch.full((3,), 0.5), 0.3, 0.2), 0.5)


def test_a_base_rate_too_small_to_be_divided_by(dtype):
    never, always = (BinomialOpinion(*masses, 0.0, 0.0).to(dtype) for masses in ((0.0, 1.0), (1.0, 0.0)))
    smallest = torch.finfo(dtype).smallest_normal / 1024
    # Only x leads to "not y", so that seeing it leaves no doubt, however rare x is.
    for w in (invert(never, always, smallest)[1], abduce(never, never, always, smallest)):
        assert float(w.belief) == 1
        assert float(w.vacuity + w.disbelief) == 0
