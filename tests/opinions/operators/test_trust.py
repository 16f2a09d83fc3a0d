"""Trust discount."""

from __future__ import annotations

from functools import reduce

import pytest
import subjective_logic
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from evidentia import BinomialOpinion, EvidentiaError, HyperOpinion, MultinomialOpinion
from evidentia.opinions import cumulative_fusion, discount

F64 = torch.float64
PART = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))


@st.composite
def opinions(draw, dtype=F64):
    parts = torch.tensor([draw(PART) for _ in range(3)], dtype=F64)
    parts[2] += 1.0 if float(parts.sum()) == 0 else 0.0
    return BinomialOpinion(*(parts / parts.sum()).to(dtype), torch.tensor(draw(PART), dtype=dtype), validate=False)


def numbers(w):
    return [float(x) for x in (w.belief, w.disbelief, w.vacuity, w.base_rate)]


@given(opinions(), opinions())
def test_discount(trust, source):
    w = discount(trust, source)
    b, d, u, a = numbers(source)
    p = float(trust.projected)
    assert numbers(w) == pytest.approx([p * b, p * d, 1 - p * (b + d), a], abs=1e-14)
    assert min(numbers(w)) >= 0
    # The projection slides from the base rate to the source's probability.
    assert float(w.projected) == pytest.approx(p * (b + a * u) + (1 - p) * a, abs=1e-14)


def test_book_equation_14_8():
    w = discount(BinomialOpinion(0.20, 0.40, 0.40, 0.75), BinomialOpinion(0.45, 0.35, 0.20, 0.25))
    assert numbers(w) == pytest.approx([0.225, 0.175, 0.600, 0.25], abs=1e-6)
    assert float(w.projected) == pytest.approx(0.375)


def test_book_table_14_2_a_chain_of_trust():
    trust, source = BinomialOpinion(0.20, 0.10, 0.70, 0.80), BinomialOpinion(0.80, 0.20, 0.0, 0.10)
    w = reduce(lambda opinion, trust: discount(trust, opinion), [trust] * 3, source)
    assert numbers(w)[:3] == pytest.approx([0.35, 0.09, 0.56], abs=5e-3)
    assert numbers(w)[:3] == pytest.approx([0.35118, 0.08780, 0.56102], abs=5.1e-6)
    assert float(w.projected) == pytest.approx(0.41, abs=5e-3)


def test_book_table_14_3_fused_advice():
    advice = [
        discount(BinomialOpinion(0.40, 0.10, 0.50, 0.60), BinomialOpinion(0.90, 0.0, 0.10, 0.40)),
        discount(BinomialOpinion(0.50, 0.0, 0.50, 0.50), BinomialOpinion(0.80, 0.10, 0.10, 0.40)),
    ]
    assert numbers(cumulative_fusion(*advice))[:3] == pytest.approx([0.743, 0.048, 0.209], abs=5.1e-4)


def test_book_table_14_4_conflicting_advice():
    advice = [
        discount(BinomialOpinion(0.0, 0.0, 1.0, 0.90), BinomialOpinion(0.95, 0.0, 0.05, 0.20)),
        discount(BinomialOpinion(0.90, 0.0, 0.10, 0.90), BinomialOpinion(0.10, 0.80, 0.10, 0.20)),
    ]
    assert float(cumulative_fusion(*advice).projected) == pytest.approx(0.465, abs=5e-4)


@pytest.mark.parametrize("seed", range(20))
def test_against_another_library(seed):
    masses = torch.randn(2, 3, generator=torch.Generator().manual_seed(seed), dtype=F64).softmax(-1)
    ours = discount(BinomialOpinion(*masses[0], 0.3), BinomialOpinion(*masses[1], 0.6))
    theirs = subjective_logic.BinomialOpinion(*masses[0].tolist(), 0.3).trust_discounting(
        subjective_logic.BinomialOpinion(*masses[1].tolist(), 0.6)
    )
    reference = [theirs.belief, theirs.disbelief, theirs.uncertainty, theirs.base_rate]
    assert numbers(ours) == pytest.approx(reference, abs=5e-6)


def test_limits_of_trust():
    source = BinomialOpinion(0.3, 0.2, 0.5, 0.7)
    assert discount(BinomialOpinion(1.0, 0.0, 0.0), source).allclose(source, rtol=0, atol=0)
    nothing = discount(BinomialOpinion(0.0, 1.0, 0.0), source)
    assert numbers(nothing) == pytest.approx([0, 0, 1, 0.7])
    unknown = discount(BinomialOpinion(0.0, 0.0, 1.0, base_rate=0.0), source)
    assert float(unknown.vacuity) == 1


def test_every_kind_of_opinion():
    trust = BinomialOpinion(torch.tensor([[0.5], [0.2]]), 0.3, torch.tensor([[0.2], [0.5]]))
    w = MultinomialOpinion.from_evidence(torch.rand(3, 4))
    seen = discount(trust, w)
    assert seen.shape == (2, 3)
    torch.testing.assert_close(seen.belief, w.belief * trust.projected.unsqueeze(-1))
    torch.testing.assert_close(seen.belief.sum(-1) + seen.vacuity, torch.ones(2, 3))
    h = HyperOpinion([0.3, 0.4], 0.3, [{0}, {1, 2}], 3)
    hyper = discount(trust, h)
    assert hyper.sets == h.sets
    torch.testing.assert_close(hyper.belief.sum(-1) + hyper.vacuity, torch.ones(2, 1))


def test_two_classes_are_the_binomial_opinion():
    trust, source = BinomialOpinion(0.2, 0.4, 0.4, 0.75), BinomialOpinion(0.45, 0.35, 0.2, 0.25)
    assert discount(trust, source.to_multinomial()).allclose(discount(trust, source).to_multinomial())


def test_gradcheck():
    def fields(logits, rates):
        trust, source = (
            BinomialOpinion(*row.softmax(-1).unbind(-1), rate.sigmoid(), validate=False)
            for row, rate in zip(logits, rates, strict=True)
        )
        w = discount(trust, source)
        return w.belief, w.disbelief, w.vacuity, w.base_rate

    logits = torch.randn(2, 2, 3, dtype=F64, requires_grad=True)
    rates = torch.randn(2, 2, dtype=F64, requires_grad=True)
    assert gradcheck(fields, (logits, rates))


def test_bad_arguments():
    w = BinomialOpinion(torch.full((2,), 0.5), 0.3, 0.2)
    with pytest.raises(EvidentiaError, match="trust must be of kind BinomialOpinion, got MultinomialOpinion"):
        discount(MultinomialOpinion.vacuous(2), w)
    with pytest.raises(EvidentiaError, match="opinion must be of kind Opinion, got Tensor"):
        discount(w, torch.ones(2))
    with pytest.raises(EvidentiaError, match=r"broadcast.*\(2,\), \(3,\)"):
        discount(w, MultinomialOpinion.vacuous(3, 4))
