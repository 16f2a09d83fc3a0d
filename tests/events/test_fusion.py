"""The fusion heads against the operators of subjective logic, and their limits."""

from __future__ import annotations

from functools import reduce

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import evidentia as ev
from evidentia.events import (
    BC,
    HEADS,
    UMSS,
    WBC,
    AleatoricFilter,
    EntropyFilter,
    EpistemicFilter,
    OnsetWarning,
    PhaseI,
    Seed,
    beta_from_probability,
    make_head,
)
from evidentia.opinions import averaging_fusion, comultiply, discount

F32, F64 = torch.float32, torch.float64
MODES = ("trust", "neutral", "evidence")
evidences = st.one_of(st.just(0.0), st.floats(1e-6, 1e6))
sequences = st.lists(st.tuples(evidences, evidences), min_size=1, max_size=8)


def weighted(opinion: ev.BinomialOpinion, c: float, mode: str) -> ev.BinomialOpinion:
    """An opinion with a weight, written as the specification writes it."""
    b, u, a = opinion.belief, opinion.vacuity, opinion.base_rate
    if mode == "trust":
        trust = torch.tensor(c, dtype=F64)
        return discount(ev.BinomialOpinion(trust, 1 - trust, 0.0), opinion)
    if mode == "neutral":
        return ev.BinomialOpinion(c * b, (1 - c * (b + u)).clamp(min=0), c * u, c * a, validate=False)
    return ev.BinomialOpinion.from_evidence(c * opinion.positive_evidence, c * opinion.negative_evidence)


def fold(opinions: list[ev.BinomialOpinion]) -> ev.BinomialOpinion:
    return reduce(comultiply, opinions)


def tensors(pairs, dtype=F64):
    alpha, beta = (1 + torch.tensor(pairs, dtype=F64)).to(dtype).unbind(-1)
    return alpha.unsqueeze(-1), beta.unsqueeze(-1)


@given(sequences, st.floats(0, 1), st.sampled_from(MODES), st.sampled_from([F32, F64]))
def test_the_closed_form_is_the_fold_of_the_operator_over_the_window(pairs, decay, mode, dtype):
    alpha, beta = tensors(pairs, dtype)
    window = max(1, len(pairs) - 1)
    last = WBC(window=window, decay=decay, mode=mode).fuse(alpha, beta).opinion[-1, 0]
    kept = list(enumerate(zip(alpha[:, 0].double(), beta[:, 0].double(), strict=True)))[-window:]
    parts = [weighted(ev.BinomialOpinion.from_beta(x, y), decay ** (len(pairs) - 1 - i), mode) for i, (x, y) in kept]
    expected = fold(parts)
    tolerance = 1e-5 if dtype == F32 else 1e-12
    for field in ("belief", "disbelief", "vacuity", "base_rate"):
        assert float(getattr(last, field)) == pytest.approx(float(getattr(expected, field)), abs=tolerance)
    assert float(last.projected) == pytest.approx(
        1 - float(torch.stack([1 - w.projected for w in parts]).prod()), abs=tolerance
    )


@given(sequences, st.floats(0, 1), st.sampled_from(MODES))
def test_the_score_is_the_log_odds_of_belief_against_disbelief(pairs, decay, mode):
    alpha, beta = tensors(pairs)
    fusion = WBC(window=8, decay=decay, mode=mode, max_vacuity=1.0).fuse(alpha, beta)
    w = fusion.opinion
    some = (w.vacuity < 1) & (w.disbelief + w.vacuity / 2 > 1e-6) & (w.belief + w.vacuity / 2 > 1e-6)
    odds = torch.log(w.belief + w.vacuity / 2) - torch.log(w.disbelief + w.vacuity / 2)
    torch.testing.assert_close(fusion.score[some], odds[some], rtol=1e-6, atol=1e-8)
    clear = some & ((w.belief - w.disbelief).abs() > 1e-12)
    assert torch.equal((fusion.score > 0)[clear], (w.belief > w.disbelief)[clear])


@pytest.mark.parametrize("name", HEADS)
def test_masses_are_masses_whatever_the_evidence(name, evidence, dtype):
    alpha, beta = evidence(3, 50, 4, dtype=dtype)
    alpha[0, ::3], beta[1, ::5], alpha[2, 10:20] = 1e30, 1e30, 1 + 1e-7
    fusion = make_head(name).fuse(alpha, beta)
    w = fusion.opinion
    assert w.dtype == fusion.score.dtype == dtype
    for field in (w.belief, w.disbelief, w.vacuity, w.base_rate):
        assert ((field >= 0) & (field <= 1)).all()
    torch.testing.assert_close(w.belief + w.disbelief + w.vacuity, torch.ones_like(w.belief))
    assert not fusion.score.isnan().any()
    assert (fusion.score < torch.inf).all()


@pytest.mark.parametrize("name", ["phase1", "bc", "wbc", "seed"])
def test_no_evidence_is_a_vacuous_opinion_and_no_call(name, dtype):
    nothing = torch.ones(6, 3, dtype=dtype)
    head = make_head(name)
    fusion = head.fuse(nothing, nothing)
    torch.testing.assert_close(fusion.opinion.vacuity, nothing)
    assert not head.calls(fusion).any()
    assert (fusion.score == -torch.inf).all()


@pytest.mark.parametrize(
    "head", [BC(window=1), Seed(window=1), *(WBC(window=1, mode=mode) for mode in MODES), WBC(decay=0, mode="neutral")]
)
def test_a_window_of_one_is_phase_1(head, evidence):
    alpha, beta = evidence(20, 3)
    one, plain = head.fuse(alpha, beta), PhaseI().fuse(alpha, beta)
    assert one.opinion.allclose(plain.opinion, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(one.score, plain.score, rtol=1e-9, atol=1e-9)


def test_phase_1_is_the_rule_of_the_thesis(evidence):
    alpha, beta = evidence(40, 3)
    head = PhaseI(max_vacuity=0.3)
    w = ev.BinomialOpinion.from_beta(alpha, beta)
    assert torch.equal(head.calls(head.fuse(alpha, beta)), (w.belief > w.disbelief) & (w.vacuity < 0.3))


@pytest.mark.parametrize("mode", MODES)
def test_bc_is_wbc_without_decay(mode, evidence):
    alpha, beta = evidence(2, 30, 3)
    plain, weightless = BC(window=5).fuse(alpha, beta), WBC(window=5, decay=1, mode=mode).fuse(alpha, beta)
    assert plain.opinion.allclose(weightless.opinion, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(plain.score, weightless.score, rtol=1e-9, atol=1e-9)


def test_the_order_matters_with_decay_and_not_without(evidence):
    alpha, beta = evidence(4, 2)
    swapped = (alpha.flip(0), beta.flip(0))
    assert BC(window=4).fuse(alpha, beta).opinion[-1].allclose(BC(window=4).fuse(*swapped).opinion[-1])
    head = WBC(window=4, decay=0.5)
    assert not head.fuse(alpha, beta).opinion[-1].allclose(head.fuse(*swapped).opinion[-1])


def test_quiet_segments_add_up_as_the_specification_says():
    alpha, beta = beta_from_probability(torch.full((50, 1), 0.02, dtype=F64))
    assert float(BC(window=50).fuse(alpha, beta).opinion.projected[-1]) == pytest.approx(0.64, abs=0.005)


def test_log_odds_keep_their_digits_where_probabilities_round_to_1():
    alpha, beta = torch.tensor([[1e5, 1e6]]).expand(8, 2), torch.ones(8, 2)
    fusion = BC(window=8).fuse(alpha, beta)
    assert (fusion.opinion.belief[-1] == 1).all()
    assert 50 < fusion.score[-1, 0] < fusion.score[-1, 1] - 10
    assert fusion.score.isfinite().all()


@given(sequences)
def test_seed_is_averaging_fusion(pairs):
    alpha, beta = tensors([*pairs, (1.0, 2.0)])
    opinions = ev.BinomialOpinion.from_beta(alpha, beta)
    averaged = averaging_fusion(opinions, dim=0)[0]
    assert Seed(window=9).fuse(alpha, beta).opinion[-1, 0].allclose(averaged, rtol=1e-9, atol=1e-12)


def test_umss_is_the_mean_of_the_vacuity_seen_so_far(evidence):
    alpha, beta = evidence(9, 2)
    u = ev.BinomialOpinion.from_beta(alpha, beta).vacuity
    score = UMSS(window=3).fuse(alpha, beta).score
    expected = torch.stack([u[max(0, t - 2) : t + 1].mean(0) for t in range(9)])
    torch.testing.assert_close(score, expected)
    for pool, reduced in (
        ("mean", expected.mean(-1)),
        ("max", expected.amax(-1)),
        ("geometric", expected.log().mean(-1).exp()),
    ):
        warning = OnsetWarning(window=3, pool=pool)
        score = warning.fuse(alpha, beta).score
        torch.testing.assert_close(score[2:, 0], reduced[2:])
        assert bool((score[:2] == -torch.inf).all())
        assert warning.calls(warning.fuse(alpha, beta)).shape == (9, 1)


@pytest.mark.parametrize(("window", "skip"), [(1, 0), (1, 2), (3, 0), (3, 2), ((1, 3), 2)])
def test_warnings_wait_until_the_beginning_is_out_of_their_window(window, skip, evidence):
    alpha, beta = evidence(4, 12, 2)
    head = OnsetWarning(window=window, skip=skip)
    score = head.fuse(alpha, beta).score[..., 0]
    sizes = window if isinstance(window, tuple) else (window, window)
    first = skip + max(sizes) - 1
    assert bool((score[:, :first] == -torch.inf).all())
    u = ev.BinomialOpinion.from_beta(alpha, beta).vacuity
    for t in range(first, 12):
        means = [u[:, t - size + 1 : t + 1, k].mean(1) for k, size in enumerate(sizes)]
        torch.testing.assert_close(score[:, t], torch.stack(means).mean(0))
    state, parts = head.initial_state(2, (4,), alpha.dtype), []
    for piece in (slice(0, 1), slice(1, 6), slice(6, 7), slice(7, 12)):
        fusion, state = head.push(state, alpha[:, piece], beta[:, piece])
        parts.append(fusion.score[..., 0])
    torch.testing.assert_close(torch.cat(parts, 1), score)


@pytest.mark.parametrize(
    ("head", "measure"),
    [(EntropyFilter, ev.entropy), (EpistemicFilter, ev.epistemic), (AleatoricFilter, ev.aleatoric)],
)
def test_filters_hold_back_what_is_uncertain(head, measure, evidence):
    alpha, beta = evidence(60, 3)
    w = ev.BinomialOpinion.from_beta(alpha, beta)
    limit = float(measure(w).median())
    filtered = head(max_uncertainty=limit)
    calls = filtered.calls(filtered.fuse(alpha, beta))
    assert torch.equal(calls, (alpha > beta) & (measure(w) < limit))
    assert calls.any()


def test_filters_of_samples_follow_the_measures_of_samples():
    p = torch.rand(5, 2, 30, 3, dtype=F64)
    pairs = torch.stack([1 - p, p], -1)
    expected = {
        EntropyFilter: ev.entropy(pairs.mean(0)),
        EpistemicFilter: ev.epistemic(pairs),
        AleatoricFilter: ev.aleatoric(pairs),
    }
    for kind, uncertainty in expected.items():
        limit = float(uncertainty.median())
        head = kind(max_uncertainty=limit)
        fusion = head.fuse_samples(p)
        assert torch.equal(head.calls(fusion), (p.mean(0) > 0.5) & (uncertainty < limit))
        torch.testing.assert_close(fusion.opinion.projected, p.mean(0), rtol=0, atol=1e-5)
    with pytest.raises(ev.EvidentiaError, match="samples"):
        EntropyFilter().fuse_samples(torch.rand(30, 3))


def test_thresholds_windows_and_decays_of_each_class(evidence):
    alpha, beta = evidence(2, 30, 3)
    many = WBC(window=(1, 3, 6), decay=(0.5, 0.9, 0.2), max_vacuity=(0.9, 0.5, 1.0), threshold=(0.0, 1.0, -1.0))
    calls = many.calls(many.fuse(alpha, beta))
    for k in range(3):
        one = WBC(
            window=many.window[k], decay=many.decay[k], max_vacuity=many.max_vacuity[k], threshold=many.threshold[k]
        )
        fused = one.fuse(alpha[..., k : k + 1], beta[..., k : k + 1])
        assert fused.opinion.allclose(many.fuse(alpha, beta).opinion[..., k : k + 1])
        assert torch.equal(one.calls(fused), calls[..., k : k + 1])


def test_settings_that_are_changed_by_hand_are_checked(evidence):
    alpha, beta = evidence(6, 3)
    head, changes = WBC(), {"threshold": [0.5, -1.0, 0.0], "max_vacuity": [0.5, 0.9, 1.0], "window": [1, 2, 4]}
    changed, expected = head.model_copy(update=changes), WBC(**changes)
    assert changed == expected
    assert torch.equal(changed.calls(changed.fuse(alpha, beta)), expected.calls(expected.fuse(alpha, beta)))
    assert head.model_copy() == head.model_copy(deep=True) == head == WBC()
    for update, told in (
        ({"threshold": "high"}, "threshold.*got 'high'"),
        ({"max_vacuity": [0.5, 2.0]}, "max_vacuity.*got 2.0"),
        ({"treshold": 1.0}, "treshold: there is no such setting"),
        ({"window": 0}, "window.*got 0"),
        ({"window": ()}, "window.*at least 1 item"),
        ({"decay": []}, "decay.*at least 1 item"),
        ({"threshold": ()}, "threshold.*at least 1 item"),
    ):
        with pytest.raises(ev.EvidentiaError, match=told):
            head.model_copy(update=update)
    with pytest.raises(ev.EvidentiaError, match="one value for each of 3 classes, got 2"):
        head.model_copy(update={"threshold": [0.5, 1.0]}).calls(head.fuse(alpha, beta))


def test_a_sigmoid_network_keeps_its_probabilities(dtype):
    p = torch.tensor([[0.0, 0.001, 0.3, 0.5, 0.99, 1.0]], dtype=dtype)
    fusion = PhaseI(max_vacuity=1.0).fuse(*beta_from_probability(p))
    torch.testing.assert_close(fusion.opinion.projected, p, rtol=0, atol=1e-5)
    for bad in (torch.tensor([[-0.1]]), torch.tensor([[torch.nan]])):
        with pytest.raises(ev.EvidentiaError, match="probability"):
            beta_from_probability(bad)
    with pytest.raises(ev.EvidentiaError, match="probability must be a tensor, got list"):
        beta_from_probability(p.tolist())
    with pytest.raises(ev.EvidentiaError, match="strength"):
        beta_from_probability(p, strength=1)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_flow_through_the_closed_form(mode, evidence):
    alpha, beta = (
        (1 + torch.rand(2, 5, 2, dtype=F64) * 5).requires_grad_(),
        (1.5 + torch.rand(2, 5, 2, dtype=F64)).requires_grad_(),
    )
    head = WBC(window=3, decay=0.7, mode=mode, max_vacuity=1.0)

    def run(a, b):
        fusion = head.fuse(a, b)
        return fusion.opinion.belief, fusion.opinion.vacuity, fusion.score

    assert torch.autograd.gradcheck(run, (alpha, beta))
    nothing = torch.ones(4, 2, requires_grad=True)
    head.fuse(nothing, nothing).opinion.projected.sum().backward()
    assert nothing.grad.isfinite().all()


def test_states_of_other_windows_classes_or_types_are_refused():
    head, nothing = WBC(window=3), torch.ones(4, 2)
    others = [WBC(window=4).initial_state(2), WBC(window=3).initial_state(5), WBC(window=3).initial_state(2, dtype=F64)]
    for other in others:
        with pytest.raises(ev.EvidentiaError, match=r"need a state of shape \(2, 2\) and torch.float32, got "):
            head.push(other, nothing, nothing)
