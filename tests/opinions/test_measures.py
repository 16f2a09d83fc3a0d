"""The measures of uncertainty: Theorem 1 of the thesis, identities, closed forms against sampling and SciPy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch.distributions import Dirichlet

import evidentia as ev
from evidentia import BinomialOpinion, EvidentiaError, HyperOpinion, MultinomialOpinion
from evidentia.opinions import MEASURES

F64 = torch.float64
CLASSES = st.one_of(st.integers(2, 40), st.sampled_from([150, 151, 400, 1000]))
AMOUNT = st.one_of(st.just(0.0), st.floats(-30, 30).map(lambda x: 10**x))


@st.composite
def multinomial_opinions(draw, dtypes=(torch.float32, torch.float64)):
    """Evidence from 0 to 1e30 over 2 to 1,000 classes."""
    dtype = draw(st.sampled_from(dtypes))
    if draw(st.booleans()):
        return MultinomialOpinion.from_evidence(
            torch.tensor(draw(st.lists(AMOUNT, min_size=2, max_size=12)), dtype=dtype)
        )
    classes, seed = draw(st.sampled_from([2, 5, 60, 200, 1000])), draw(st.integers(0, 2**32 - 1))
    generator = torch.Generator().manual_seed(seed)
    amounts = 10 ** (60 * torch.rand(classes, generator=generator, dtype=F64) - 30)
    return MultinomialOpinion.from_evidence((amounts * torch.randint(2, (classes,), generator=generator)).to(dtype))


def hyper_opinion(evidence, dtype=F64):
    sets = [{0}, {1}, {2}, {0, 1}, {1, 2}, {2, 3}, {0, 1, 2}]
    return HyperOpinion.from_evidence(torch.as_tensor(evidence, dtype=dtype), sets, 4, [0.1, 0.2, 0.3, 0.4])


# --- Theorem 1


@given(multinomial_opinions())
def test_1a_vacuity_and_dissonance_share_the_unit(w):
    rounding = torch.finfo(w.dtype).eps * (32 + w.num_classes / 4)
    assert float(ev.vacuity(w) + ev.dissonance(w)) <= 1 + rounding


@given(multinomial_opinions())
def test_1b_vacuity_bounds_epistemic(w):
    bound = (w.num_classes - 1) / float(w.alpha.double().sum())
    assert float(ev.vacuity(w)) > bound >= float(ev.epistemic(w, nats=True))


@pytest.mark.parametrize("classes", [2, 3, 10, 100, 1000])
def test_2a_without_evidence(classes, dtype):
    w = MultinomialOpinion.from_evidence(torch.zeros(classes, dtype=dtype))
    m = {name: float(value) for name, value in ev.uncertainties(w).items()}
    assert m["vacuity"] == 1
    assert m["entropy"] == pytest.approx(1, abs=4 * torch.finfo(dtype).eps)
    assert 1 > m["aleatoric"] > m["epistemic"] > m["dissonance"] == 0


def ordered(classes: int, alpha: float) -> bool:
    """Whether entropy > aleatoric > dissonance > vacuity > epistemic when every alpha is the same."""
    m = ev.uncertainties(MultinomialOpinion.from_alpha(torch.full((classes,), alpha, dtype=F64)))
    chain = [float(m[name]) for name in ("entropy", "aleatoric", "dissonance", "vacuity", "epistemic")]
    return all(more > less for more, less in itertools.pairwise(chain))


@given(CLASSES, st.floats(2 + 1e-6, 1e6))
def test_2b_holds_above_two(classes, alpha):
    assert ordered(classes, alpha)


@given(CLASSES, st.floats(1, 2 - 1e-6))
def test_2b_fails_up_to_two(classes, alpha):
    assert not ordered(classes, alpha)


@pytest.mark.parametrize("classes", [2, 3, 10, 1000])
def test_2b_at_two_dissonance_equals_vacuity(classes):
    w = MultinomialOpinion.from_alpha(torch.full((classes,), 2.0, dtype=F64))
    assert float(ev.dissonance(w)) == pytest.approx(0.5, rel=1e-13)
    assert float(ev.vacuity(w)) == 0.5


@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_2b_limits(classes, dtype):
    w = MultinomialOpinion.from_evidence(torch.full((classes,), 1e30, dtype=dtype))
    m = ev.uncertainties(w)
    limits = {"entropy": 1, "aleatoric": 1, "dissonance": 1, "vacuity": 0, "epistemic": 0}
    for name, limit in limits.items():
        assert float(m[name]) == pytest.approx(limit, abs=40 * torch.finfo(dtype).eps)


# --- ranges and identities


@given(multinomial_opinions())
def test_ranges(w):
    rounding = torch.finfo(w.dtype).eps * (32 + w.num_classes / 4)
    for name, value in ev.uncertainties(w).items():
        assert not torch.isnan(value)
        assert value.dtype == w.dtype
        if name != "differential_entropy":
            assert 0 <= float(value) <= 1 + rounding
    assert math.isfinite(ev.differential_entropy(w))


@given(multinomial_opinions())
def test_entropy_is_aleatoric_plus_epistemic(w):
    eps = torch.finfo(w.dtype).eps
    assert float(ev.aleatoric(w) + ev.epistemic(w)) == pytest.approx(float(ev.entropy(w)), rel=8 * eps, abs=eps)


@given(multinomial_opinions())
def test_nats_are_ln_k_times_as_many(w):
    for measure in (ev.entropy, ev.aleatoric, ev.epistemic):
        expected = float(measure(w)) * math.log(w.num_classes)
        assert float(measure(w, nats=True)) == pytest.approx(expected, rel=8 * torch.finfo(w.dtype).eps)


@given(multinomial_opinions(), st.integers(0, 2**31))
def test_order_of_classes_does_not_matter(w, seed):
    order = torch.randperm(w.num_classes, generator=torch.Generator().manual_seed(seed))
    shuffled = MultinomialOpinion(w.belief[order], w.vacuity, validate=False)
    rounding = torch.finfo(w.dtype).eps * (32 + w.num_classes / 4)
    for name, value in ev.uncertainties(w).items():
        if name != "differential_entropy":
            assert float(ev.uncertainties(shuffled)[name]) == pytest.approx(float(value), abs=rounding)


def all_kinds():
    evidence = torch.rand(5, 7, dtype=F64, generator=torch.Generator().manual_seed(0)) * 10
    samples = Dirichlet(torch.ones(4, dtype=F64)).sample((10, 3))
    return {
        "multinomial": MultinomialOpinion.from_evidence(evidence),
        "binomial": BinomialOpinion.from_evidence(evidence[:, 0], evidence[:, 1], 0.3),
        "hyper": hyper_opinion(evidence),
        "samples": samples,
    }


@pytest.mark.parametrize("kind", ["multinomial", "binomial", "hyper"])
def test_the_four_parts_add_up_to_one(kind):
    w = all_kinds()[kind]
    total = ev.dissonance(w) + ev.consonance(w) + ev.monosonance(w) + ev.vacuity(w)
    torch.testing.assert_close(total, torch.ones_like(total))


@given(st.lists(AMOUNT, min_size=7, max_size=7), st.sampled_from([torch.float32, F64]))
def test_parts_of_a_hyper_opinion(evidence, dtype):
    h = hyper_opinion(evidence, dtype)
    parts = [ev.dissonance(h), ev.consonance(h), ev.monosonance(h), ev.vacuity(h)]
    eps = torch.finfo(dtype).eps
    assert all(0 <= float(part) <= 1 + 32 * eps for part in parts)
    assert float(sum(parts)) == pytest.approx(1, abs=32 * eps)
    total = h.belief[h.is_composite].sum()
    assert float(ev.vagueness(h)) == pytest.approx(float(total), rel=8 * eps)
    singular = h.belief[~h.is_composite].sum()
    assert float(ev.vagueness(h) + singular + h.vacuity) == pytest.approx(1, abs=32 * eps)


def test_vagueness_is_what_relative_base_rates_share_out():
    h = all_kinds()["hyper"]
    singles = torch.zeros_like(h.base_rate)
    singles[..., :3] = h.belief[..., :3]
    vague = h.to_multinomial().belief - singles
    torch.testing.assert_close(ev.vagueness(h), vague.sum(-1))


@pytest.mark.parametrize("kind", ["multinomial", "binomial", "hyper", "samples"])
def test_uncertainties_are_the_separate_functions(kind):
    x = all_kinds()[kind]
    together = ev.uncertainties(x)
    assert {"entropy"} < set(together) <= set(MEASURES)
    for name, value in together.items():
        measure = MEASURES[name]
        separate = measure(x.mean(0) if kind == "samples" and name == "entropy" else x)
        torch.testing.assert_close(value, separate, rtol=1e-14, atol=1e-15)


def test_singletons_measure_like_the_multinomial_opinion(dtype):
    w = MultinomialOpinion.from_evidence(torch.rand(6, 5, dtype=dtype) * 20)
    h = HyperOpinion.from_multinomial(w)
    for name in ("vacuity", "dissonance", "consonance", "monosonance", "vagueness", "entropy", "differential_entropy"):
        torch.testing.assert_close(MEASURES[name](h), MEASURES[name](w), rtol=1e-4, atol=1e-6)


def test_two_classes_measure_like_the_binomial_opinion(dtype):
    w = BinomialOpinion.from_evidence(torch.rand(6, dtype=dtype) * 20, torch.rand(6, dtype=dtype) * 20, 0.2)
    for name, value in ev.uncertainties(w).items():
        assert torch.equal(value, ev.uncertainties(w.to_multinomial())[name])


@given(AMOUNT, AMOUNT)
def test_binomial_dissonance_is_twice_the_smaller(positive, negative):
    w = BinomialOpinion.from_evidence(torch.tensor(positive, dtype=F64), torch.tensor(negative, dtype=F64))
    assert float(ev.dissonance(w)) == pytest.approx(2 * min(float(w.belief), float(w.disbelief)), rel=1e-13)
    assert float(ev.monosonance(w)) == pytest.approx(abs(float(w.belief) - float(w.disbelief)), abs=1e-14)


@given(CLASSES, st.floats(0, 1))
def test_equal_beliefs_conflict_entirely(classes, total):
    belief = torch.full((classes,), total / classes, dtype=F64)
    assert float(ev.dissonance(belief)) == pytest.approx(total, rel=1e-12)


def test_belief_in_one_class_does_not_conflict():
    w = MultinomialOpinion.from_evidence([5.0, 0.0, 0.0])
    assert float(ev.dissonance(w)) == 0
    assert float(ev.monosonance(w)) == pytest.approx(5 / 8)


def test_hyper_worked_example():
    # The opinion of Jøsang's table 4.1, worked out by hand with our reading of the definitions.
    h = HyperOpinion(
        torch.tensor([0.1, 0.1, 0.0, 0.2, 0.3, 0.1], dtype=F64),
        0.2,
        [{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}],
        3,
        [0.2, 0.3, 0.5],
    )
    parts = [float(measure(h)) for measure in (ev.dissonance, ev.consonance, ev.monosonance, ev.vagueness)]
    assert parts == pytest.approx([0.108571, 0.431238, 0.260190, 0.6], abs=1e-6)


# --- closed forms against sampling and SciPy

ALPHAS = [[1.0, 1.0, 1.0], [5.0, 2.0, 1.5, 1.0], [30.0, 30.0], [200.0, 3.0, 1.0]]


@pytest.mark.parametrize("alpha", ALPHAS)
def test_closed_forms_against_sampling(alpha):
    w = MultinomialOpinion.from_alpha(torch.tensor(alpha, dtype=F64))
    samples = w.distribution().sample((200_000,))
    noise = torch.special.entr(samples).sum(-1)
    error = 5 / math.sqrt(len(samples))
    assert abs(float(ev.aleatoric(w, nats=True) - noise.mean())) <= error * float(noise.std())
    surprise = -w.distribution().log_prob(samples)
    assert abs(float(ev.differential_entropy(w) - surprise.mean())) <= error * float(surprise.std()) + 1e-12
    # Mutual information is the mean divergence of the sampled predictions from their mean.
    divergence = (torch.xlogy(samples, samples) - torch.xlogy(samples, w.projected)).sum(-1)
    assert abs(float(ev.epistemic(w, nats=True) - divergence.mean())) <= error * float(divergence.std())
    # Measures on the samples themselves.
    assert abs(float(ev.aleatoric(samples, nats=True) - noise.mean())) < 1e-12
    assert float(ev.epistemic(samples)) == pytest.approx(float(ev.epistemic(w)), rel=0.05)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_differential_entropy_against_scipy(alpha):
    w = MultinomialOpinion.from_alpha(torch.tensor(alpha, dtype=F64))
    assert float(ev.differential_entropy(w)) == pytest.approx(scipy.stats.dirichlet(alpha).entropy(), rel=1e-10)


def test_binomial_entropies_against_scipy():
    alpha, beta = np.random.default_rng(0).uniform(1, 60, size=(2, 30))
    w = BinomialOpinion.from_beta(alpha, beta)
    reference = scipy.stats.beta(alpha, beta)
    np.testing.assert_allclose(ev.differential_entropy(w), reference.entropy(), rtol=1e-9)
    mean = reference.mean()
    np.testing.assert_allclose(ev.entropy(w, nats=True), scipy.stats.entropy([mean, 1 - mean]), rtol=1e-12)


def test_entropy_against_scipy():
    p = np.random.default_rng(0).dirichlet(np.ones(7), size=20)
    np.testing.assert_allclose(ev.entropy(torch.from_numpy(p), nats=True), scipy.stats.entropy(p, axis=-1), rtol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4, 1e6, 1e12, 1e30])
def test_epistemic_keeps_its_digits_in_float32(scale):
    # float32 alphas, evaluated exactly in float64 beside.
    alpha = torch.tensor([[3.0, 1.0, 7.0], [20.0, 50.0, 60.0]]) * scale
    narrow = ev.epistemic(MultinomialOpinion.from_alpha(alpha))
    wide = ev.epistemic(MultinomialOpinion.from_alpha(alpha.double()))
    torch.testing.assert_close(narrow.double(), wide, rtol=2e-6, atol=0)


def test_epistemic_for_much_evidence():
    # (K - 1) / 2S for large S.
    w = MultinomialOpinion.from_evidence(torch.tensor([1e20, 3e20, 2e20], dtype=F64))
    assert float(ev.epistemic(w, nats=True)) == pytest.approx(1 / 6e20, rel=1e-12)


def test_differential_entropy_of_a_hyper_opinion():
    h = HyperOpinion.from_evidence(torch.tensor([2.0, 5.0, 1e25]), [{0}, {1, 2}, {3}], 4)
    assert float(ev.differential_entropy(h)) == pytest.approx(float(h.to(F64).grouped_dirichlet().entropy()), rel=1e-6)


# --- gradients


def opinion_of(kind, evidence):
    if kind == "multinomial":
        return MultinomialOpinion.from_evidence(evidence, validate=False)
    if kind == "binomial":
        return BinomialOpinion.from_evidence(evidence[..., 0], evidence[..., 1], 0.3, validate=False)
    return HyperOpinion.from_evidence(evidence, [{0}, {1, 2}, {3}], 4, validate=False)


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("kind", ["multinomial", "binomial", "hyper"])
def test_gradcheck(name, kind):
    if kind == "hyper" and name in ("aleatoric", "epistemic"):
        with pytest.raises(EvidentiaError, match=r"HyperOpinion has no Dirichlet parameters.*to_multinomial"):
            MEASURES[name](opinion_of(kind, torch.ones(3)))
        return
    evidence = torch.tensor([[0.3, 1.7, 5.2], [9.1, 0.8, 2.6]], dtype=F64, requires_grad=True)
    assert gradcheck(lambda e: MEASURES[name](opinion_of(kind, e)) + 0 * e.sum(), (evidence,))


@pytest.mark.parametrize("name", ["entropy", "aleatoric", "epistemic"])
def test_gradcheck_on_samples(name):
    logits = torch.randn(4, 2, 3, dtype=F64, requires_grad=True)

    def value(logits):
        p = logits.softmax(-1)
        return MEASURES[name](p)

    assert gradcheck(value, (logits,))


# Dissonance, and monosonance with it, has a kink at 0: any subgradient will do.
@pytest.mark.parametrize("name", [name for name in MEASURES if name not in ("dissonance", "monosonance")])
@pytest.mark.parametrize("kind", ["multinomial", "binomial"])
def test_gradient_at_zero_evidence(name, kind):
    """The slope at the edge of the domain is the limit of the slopes inside."""

    def gradient(evidence):
        evidence.requires_grad_()
        return torch.autograd.grad((MEASURES[name](opinion_of(kind, evidence)) + 0 * evidence.sum()).sum(), evidence)[0]

    edge = torch.tensor([[0.0, 3.0, 1.0], [0.0, 0.0, 0.0]], dtype=F64)
    torch.testing.assert_close(gradient(edge.clone()), gradient(edge + 1e-9), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("masses", [[0.5, 0.3, 0.2], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
def test_gradient_at_a_dogmatic_opinion(name, masses, dtype):
    belief = torch.tensor(masses, dtype=dtype, requires_grad=True)
    vacuity = torch.zeros((), dtype=dtype, requires_grad=True)
    value = MEASURES[name](MultinomialOpinion(belief, vacuity)) + 0 * belief.sum() + 0 * vacuity
    assert not torch.isnan(value)
    if torch.isinf(value):
        assert name == "differential_entropy"
        return
    value.backward()
    for gradient in (belief.grad, vacuity.grad):
        assert not torch.isnan(gradient).any()
        # -p ln p is infinitely steep at p = 0, all else is not.
        assert torch.isfinite(gradient).all() or (name in ("entropy", "aleatoric") and 0.0 in masses)


def test_slope_of_epistemic_at_a_dogmatic_opinion():
    # Two classes that share all belief: (K - 1) / 2S = u / 2W, so the slope in u is 1 / 2W.
    vacuity = torch.zeros((), dtype=F64, requires_grad=True)
    ev.epistemic(MultinomialOpinion(torch.tensor([0.5, 0.5], dtype=F64), vacuity), nats=True).backward()
    assert float(vacuity.grad) == pytest.approx(1 / 4)


# --- limits and bad input


def test_dogmatic_opinions_have_limits(dtype):
    w = MultinomialOpinion(torch.tensor([0.5, 0.5, 0.0], dtype=dtype), 0.0)
    m = {name: float(value) for name, value in ev.uncertainties(w).items()}
    assert m["vacuity"] == m["epistemic"] == 0
    assert m["dissonance"] == pytest.approx(1)
    assert m["entropy"] == m["aleatoric"] == pytest.approx(math.log(2) / math.log(3))
    assert m["differential_entropy"] == -math.inf
    h = HyperOpinion(torch.tensor([0.5, 0.5], dtype=dtype), 0.0, [{0}, {1, 2}], 3)
    assert float(ev.differential_entropy(h)) == -math.inf


def test_base_rate_zero_collapses_the_distribution():
    w = MultinomialOpinion.from_evidence([1.0, 1.0, 0.0], base_rate=[0.5, 0.5, 0.0])
    m = ev.uncertainties(w)
    assert float(m["differential_entropy"]) == -math.inf
    assert all(math.isfinite(m[name]) for name in ("entropy", "aleatoric", "epistemic"))


@given(multinomial_opinions())
def test_projected_probabilities_are_accepted(w):
    assert float(ev.entropy(w.projected)) == pytest.approx(float(ev.entropy(w)))


@pytest.mark.parametrize(
    ("measure", "given", "words"),
    [
        (ev.entropy, [0.5, 0.6], r"probabilities must add up to 1.*1\.1"),
        (ev.entropy, [-0.5, 1.5], r"probabilities must lie in \[0, 1\]"),
        (ev.entropy, [float("nan"), 0.5], "probabilities must be finite"),
        (ev.entropy, [1.0], "at least 2 classes"),
        (ev.aleatoric, [0.5, 0.5], r"\(samples, \.\.\., classes\).*\(2,\)"),
        (ev.epistemic, torch.zeros(0, 2), "at least one sample"),
        (ev.epistemic, [[0.5, 0.6]], "must add up to 1"),
        (ev.uncertainties, [0.5, 0.5], "at least one sample"),
        (ev.vacuity, [-1.0, 2.0], "alpha must be at least 0"),
        (ev.differential_entropy, [float("nan"), 2.0], "alpha must be finite"),
        (ev.dissonance, [0.5, 1.5], r"belief must lie in \[0, 1\]"),
        (ev.vagueness, torch.ones(3), "property of opinions, got Tensor"),
        (ev.vacuity, "text", "must be a tensor"),
    ],
)
def test_bad_input(measure, given, words):
    with pytest.raises(EvidentiaError, match=words):
        measure(torch.tensor(given) if isinstance(given, list) else given)


def test_validation_can_be_switched_off():
    with ev.validation(False):
        assert torch.isfinite(ev.entropy(torch.tensor([0.5, 0.6])))
        assert torch.isfinite(ev.dissonance(torch.tensor([2.0, 2.0])))


@pytest.mark.parametrize("classes", [3, 10, 149, 151, 1000])
def test_rounding_takes_no_measure_out_of_its_range(classes, dtype):
    opinion = MultinomialOpinion.from_evidence(torch.full((classes,), 1e30, dtype=dtype))
    pairs = [(2 * k, 2 * k + 1) for k in range(classes)]
    vague = HyperOpinion.from_evidence(torch.full((classes,), 1e30, dtype=dtype), pairs, 2 * classes)
    for w in (opinion, vague):
        for name, value in ev.uncertainties(w).items():
            assert name == "differential_entropy" or 0 <= float(value) <= 1, name


def test_vacuity_of_less_than_the_prior_is_refused():
    with pytest.raises(EvidentiaError, match=r"add up to at least 2.*got a sum of 0\.2.*from_alpha"):
        ev.vacuity(torch.tensor([0.1, 0.1]))
    assert float(ev.vacuity(torch.ones(7))) == 1
