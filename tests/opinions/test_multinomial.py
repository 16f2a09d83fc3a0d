"""Multinomial opinions, and what all opinions have in common."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch.distributions import Dirichlet

import evidentia as ev
from evidentia import BinomialOpinion, EvidentiaError, HyperOpinion, MultinomialOpinion, Prediction

DTYPES = st.sampled_from([torch.float32, torch.float64])
AMOUNT = st.one_of(st.just(0.0), st.floats(-30, 30).map(lambda x: 10**x))


@st.composite
def evidence_vectors(draw):
    """Evidence from 0 to 1e30, mixed in one vector, for 2 to 1,000 classes."""
    dtype = draw(DTYPES)
    if draw(st.booleans()):
        return torch.tensor(draw(st.lists(AMOUNT, min_size=2, max_size=20)), dtype=dtype)
    classes, seed = draw(st.sampled_from([2, 3, 30, 151, 1000])), draw(st.integers(0, 2**32 - 1))
    generator = torch.Generator().manual_seed(seed)
    amounts = 10 ** (60 * torch.rand(classes, generator=generator, dtype=torch.float64) - 30)
    return (amounts * torch.randint(2, (classes,), generator=generator)).to(dtype)


@given(evidence_vectors())
def test_masses_add_up_and_are_not_negative(evidence):
    w = MultinomialOpinion.from_evidence(evidence)
    rounding = 16 * torch.finfo(evidence.dtype).eps
    for field in (w.belief, w.vacuity, w.projected, w.alpha, w.strength, w.evidence):
        assert torch.isfinite(field).all()
        assert (field >= 0).all()
        assert field.dtype == evidence.dtype
    assert 0 < float(w.vacuity) <= 1
    assert float(w.belief.double().sum() + w.vacuity.double()) == pytest.approx(1, abs=rounding)
    assert float(w.projected.double().sum()) == pytest.approx(1, abs=rounding)


@given(evidence_vectors())
def test_round_trips(evidence):
    eps = torch.finfo(evidence.dtype).eps
    w = MultinomialOpinion.from_evidence(evidence)
    # Evidence 1e38 times smaller than the sum of all is below the smallest float32.
    lost = float(w.strength) * torch.finfo(evidence.dtype).tiny
    torch.testing.assert_close(w.evidence, evidence, rtol=8 * eps, atol=lost)
    torch.testing.assert_close(w.alpha, evidence + 1, rtol=8 * eps, atol=0)
    for again in (
        MultinomialOpinion.from_alpha(w.alpha),
        MultinomialOpinion.from_distribution(w.distribution()),
        MultinomialOpinion(**w.numpy()),
    ):
        # Evidence far below 1 drowns in alpha = e + 1, so masses are compared to the rounding of their sum.
        torch.testing.assert_close(again.belief, w.belief, rtol=8 * eps, atol=8 * eps)
        torch.testing.assert_close(again.vacuity, w.vacuity, rtol=32 * eps, atol=0)
    exactly = MultinomialOpinion(**w.numpy())
    assert torch.equal(exactly.belief, w.belief)
    assert torch.equal(exactly.vacuity, w.vacuity)


@given(evidence_vectors())
def test_projected_is_the_dirichlet_mean(evidence):
    w = MultinomialOpinion.from_evidence(evidence)
    eps = torch.finfo(evidence.dtype).eps
    torch.testing.assert_close(w.projected, w.alpha / w.alpha.sum(), rtol=32 * eps, atol=0)
    torch.testing.assert_close(w.projected, w.distribution().mean, rtol=32 * eps, atol=0)
    torch.testing.assert_close(w.strength, w.alpha.sum(), rtol=32 * eps, atol=0)


@given(evidence_vectors(), st.floats(0.1, 50), st.integers(0, 1000))
def test_base_rate_and_prior_weight(evidence, weight, seed):
    eps = torch.finfo(evidence.dtype).eps
    base_rate = torch.rand(evidence.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.01
    base_rate = (base_rate / base_rate.sum()).to(evidence.dtype)
    w = MultinomialOpinion.from_evidence(evidence, base_rate, weight)
    torch.testing.assert_close(w.alpha, evidence + base_rate * weight, rtol=16 * eps, atol=0)
    assert float(w.vacuity) == pytest.approx(weight / (float(evidence.sum()) + weight), rel=16 * eps)
    torch.testing.assert_close(w.projected, w.belief + base_rate * w.vacuity, rtol=16 * eps, atol=0)


def test_many_opinions_of_a_thousand_classes(dtype):
    w = MultinomialOpinion.from_evidence(torch.full((3, 1000), 1e30, dtype=dtype))
    torch.testing.assert_close(w.belief, torch.full_like(w.belief, 1e-3))
    torch.testing.assert_close(w.vacuity, torch.full_like(w.vacuity, 1e-30))


def test_against_scipy():
    evidence = np.random.default_rng(0).gamma(1.0, 5.0, size=(20, 4))
    w = MultinomialOpinion.from_evidence(evidence)
    for row, projected in zip(evidence, w.projected, strict=True):
        np.testing.assert_allclose(projected, scipy.stats.dirichlet(row + 1).mean(), rtol=1e-12)


def test_from_alpha_with_other_priors():
    w = MultinomialOpinion.from_alpha([0.5, 2.0], base_rate=[0.25, 0.75], prior_weight=0.4)
    torch.testing.assert_close(w.alpha, torch.tensor([0.5, 2.0]))
    assert w.prior_weight == pytest.approx(0.4)


def test_vacuous():
    w = MultinomialOpinion.vacuous(2, 3)
    assert w.shape == (2,)
    assert w.num_classes == 3
    assert torch.equal(w.vacuity, torch.ones(2))
    assert torch.equal(w.alpha, torch.ones(2, 3))


def test_dogmatic():
    w = MultinomialOpinion([0.4, 0.6, 0.0], vacuity=0.0)
    assert w.evidence.tolist() == [torch.inf, torch.inf, 0.0]
    assert float(w.strength) == torch.inf
    assert w.alpha.tolist() == [torch.inf, torch.inf, 1.0]
    torch.testing.assert_close(w.projected, torch.tensor([0.4, 0.6, 0.0]))
    with pytest.raises(EvidentiaError, match=r"dogmatic.*no Dirichlet"):
        w.distribution()


# --- gradients


def test_gradients_of_every_field():
    def fields(evidence):
        w = MultinomialOpinion.from_evidence(evidence, validate=False)
        return w.belief, w.vacuity, w.projected, w.alpha, w.evidence, w.strength

    assert gradcheck(fields, (torch.rand(2, 3, dtype=torch.float64, requires_grad=True),))


def test_gradient_of_alpha_where_there_is_no_evidence():
    # alpha = e + 1 also at e = 0, so its slope there is 1 and not 0.
    evidence = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    jacobian = torch.autograd.functional.jacobian(lambda e: MultinomialOpinion.from_evidence(e).alpha, evidence)
    torch.testing.assert_close(jacobian, torch.eye(3, dtype=torch.float64))


def test_gradient_at_a_dogmatic_opinion_is_not_nan():
    belief = torch.tensor([1.0, 0.0], requires_grad=True)
    vacuity = torch.tensor(0.0, requires_grad=True)
    w = MultinomialOpinion(belief, vacuity)
    torch.nan_to_num(w.alpha, posinf=0.0).sum().backward()
    assert torch.isfinite(belief.grad).all()
    assert torch.isfinite(vacuity.grad)


# --- an opinion is an immutable value that behaves like a tensor over its batch


def kinds(*shape):
    """A batch of each kind of opinion."""
    generator = torch.Generator().manual_seed(1)
    evidence = torch.rand(*shape, 3, generator=generator)
    return [
        MultinomialOpinion.from_evidence(evidence, prior_weight=2.5),
        BinomialOpinion.from_evidence(evidence[..., 0], evidence[..., 1], base_rate=0.3, prior_weight=4.0),
        HyperOpinion.from_evidence(evidence, [{0}, {1, 2}, {0, 3}], 4, prior_weight=1.5),
    ]


every_kind = pytest.mark.parametrize("kind", [0, 1, 2], ids=["multinomial", "binomial", "hyper"])


@every_kind
def test_immutable(kind):
    w = kinds(2)[kind]
    for name in ("belief", "vacuity", "prior_weight", "new"):
        with pytest.raises(AttributeError, match=f"immutable.*{name}"):
            setattr(w, name, 1)
    with pytest.raises(AttributeError, match=r"belief.*deleted"):
        del w.belief


INDICES = {
    "int": 1,
    "negative": -1,
    "slice": slice(1, 3),
    "ellipsis": ...,
    "ellipsis and int": (..., 0),
    "int and ellipsis": (0, ...),
    "None": None,
    "None inside": (slice(None), None, 1),
    "tensor": torch.tensor([2, 0]),
    "list": [0, 2],
    "mask": torch.tensor([True, False, True]),
    "mask of all": torch.tensor([[True, False], [False, False], [True, True]]),
    "two tensors": (torch.tensor([0, 2]), torch.tensor([1, 0])),
    "tensor last": (..., torch.tensor([1, 1, 0])),
    "both": (2, 1),
}


@every_kind
@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES.keys())
def test_indexing_is_that_of_a_tensor(kind, index):
    w = kinds(3, 2)[kind]
    picked = w[index]
    expected = w.vacuity[index]
    assert type(picked) is type(w)
    assert picked.shape == expected.shape
    assert picked.prior_weight == w.prior_weight
    assert torch.equal(picked.vacuity, expected)
    for name, event in w._fields.items():
        field = getattr(w, name)
        columns = field.movedim(-1, 0) if event else [field]
        picked_columns = getattr(picked, name).movedim(-1, 0) if event else [getattr(picked, name)]
        for column, picked_column in zip(columns, picked_columns, strict=True):
            assert torch.equal(picked_column, column[index])


@every_kind
def test_index_errors(kind):
    w = kinds(3)[kind]
    for index in (5, (0, 0), (slice(None), 0)):
        with pytest.raises(IndexError):
            w[index]
    with pytest.raises(EvidentiaError, match="single opinion cannot be indexed"):
        w[0][0]


@every_kind
def test_iteration_and_length(kind):
    w = kinds(3, 2)[kind]
    rows = list(w)
    assert len(w) == len(rows) == 3
    assert all(torch.equal(row.vacuity, w.vacuity[i]) for i, row in enumerate(rows))
    with pytest.raises(TypeError, match="no length"):
        len(w[0, 0])
    with pytest.raises(TypeError, match="no length"):
        iter(w[0, 0])


@every_kind
def test_stack_cat_and_back(kind):
    w = kinds(3, 2)[kind]
    assert w.stack(list(w)).allclose(w)
    assert w.cat([w[:1], w[1:]]).allclose(w)
    assert w.stack([w, w[0]]).shape == (2, 3, 2)  # batch shapes broadcast


@every_kind
def test_stack_and_cat_errors(kind):
    w = kinds(3)[kind]
    other = kinds(3)[(kind + 1) % 3]
    reweighted = type(w)(
        **{name: getattr(w, name) for name in w._fields},
        prior_weight=9.0,
        **({"sets": w.sets, "num_classes": 4} if isinstance(w, HyperOpinion) else {}),
    )
    for join in (type(w).stack, type(w).cat):
        with pytest.raises(EvidentiaError, match="at least one opinion"):
            join([])
        with pytest.raises(EvidentiaError, match=f"one kind.*{type(w).__name__} and {type(other).__name__}"):
            join([w, other])
        with pytest.raises(EvidentiaError, match=r"prior weight.*and 9\.0"):
            join([w, reweighted])
    with pytest.raises(EvidentiaError, match=r"broadcast.*\(3,\), \(2,\)"):
        w.stack([w, w[:2]])


def test_stack_needs_the_same_classes():
    with pytest.raises(EvidentiaError, match=r"same classes.*3 and 4"):
        MultinomialOpinion.stack([MultinomialOpinion.vacuous(3), MultinomialOpinion.vacuous(4)])


def test_stack_needs_the_same_sets():
    one = HyperOpinion([0.5], 0.5, [{0, 1}], 3)
    with pytest.raises(EvidentiaError, match=r"same sets.*\(0, 1\).*\(1, 2\)"):
        HyperOpinion.stack([one, HyperOpinion([0.5], 0.5, [{1, 2}], 3)])


@every_kind
def test_allclose(kind):
    w = kinds(3)[kind]
    assert w.allclose(w)
    assert w.allclose(w.to(torch.float64).to(torch.float32))
    assert not w.allclose(w[[2, 1, 0]])
    assert not w.allclose(w[:1])
    assert not w.allclose(kinds(3)[(kind + 1) % 3])


def test_allclose_looks_at_sets_and_weights():
    one = HyperOpinion([0.5], 0.5, [{0, 1}], 3)
    assert not one.allclose(HyperOpinion([0.5], 0.5, [{1, 2}], 3))
    assert not one.allclose(HyperOpinion([0.5], 0.5, [{0, 1}], 3, prior_weight=1.0))


@every_kind
def test_to_and_detach(kind):
    w = kinds(2)[kind]
    wide = w.to(torch.float64)
    assert w.dtype == torch.float32
    assert wide.dtype == wide.belief.dtype == wide.base_rate.dtype == torch.float64
    assert w.device == torch.device("cpu")
    grown = w._map(lambda field, _: field.clone().requires_grad_())
    assert grown.belief.requires_grad
    assert not any(getattr(grown.detach(), name).requires_grad for name in w._fields)
    assert set(grown.numpy()) == set(w._fields)


@every_kind
def test_reshape_and_expand(kind):
    w = kinds(3, 2)[kind]
    flat = w.reshape(-1)
    assert flat.shape == (6,)
    assert flat.ndim == 1
    assert flat.reshape(3, 2).allclose(w)
    wide = w.expand(4, 3, 2)
    assert wide.shape == (4, 3, 2)
    assert wide[3].allclose(w)
    assert wide.vacuity.data_ptr() == w.vacuity.data_ptr()


@every_kind
def test_copies(kind):
    w = kinds(2)[kind]
    assert copy.deepcopy(w).allclose(w)
    assert copy.copy(w).allclose(w)


@every_kind
def test_empty_batch(kind):
    w = kinds(2)[kind][:0]
    assert w.shape == (0,)
    assert w.projected.shape[0] == 0
    assert "shape=(0,)" in repr(w)
    assert list(w) == []


def test_an_opinion_that_is_being_trained_is_printed_without_a_warning():
    evidence = torch.tensor([6.0, 1.0, 0.0], requires_grad=True)
    w = MultinomialOpinion.from_evidence(evidence)
    assert repr(w) == "MultinomialOpinion(belief=[0.6, 0.1, 0], vacuity=0.3)"
    assert repr(w.expand(2)) == "MultinomialOpinion(shape=(2,), vacuity=0.3..0.3, dtype=float32)"
    assert repr(HyperOpinion.from_multinomial(w)) == "HyperOpinion({0}: 0.6, {1}: 0.1, {2}: 0, vacuity=0.3)"
    assert "mean vacuity 0.300" in repr(Prediction(w.projected.unsqueeze(0), w.expand(1)))


def test_repr():
    w = MultinomialOpinion.from_evidence(torch.tensor([[6.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))
    assert repr(w[0]) == "MultinomialOpinion(belief=[0.6, 0.1, 0], vacuity=0.3)"
    assert repr(w) == "MultinomialOpinion(shape=(2,), vacuity=0.3..1, dtype=float32)"
    assert repr(MultinomialOpinion.vacuous(9)).endswith("0, 0, ...], vacuity=1)")


# --- validation


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        ([-1.0, 2.0], "evidence must be at least 0.*-1"),
        ([float("nan"), 2.0], "evidence must be finite.*NaN"),
        ([float("inf"), 2.0], "evidence must be finite.*infinite"),
        (torch.tensor([3e38, 3e38]), "sum of the evidence must be finite"),
        ([1.0], r"at least 2 classes.*\(1,\)"),
        (1.0, r"at least 2 classes.*\(\)"),
        ("text", "evidence must be a tensor.*str"),
        (None, "evidence must be a tensor.*NoneType"),
        ([[1.0], [1.0, 2.0]], "evidence must be a tensor.*list"),
        (torch.tensor([1j, 2j]), "evidence must be real.*complex"),
    ],
)
def test_bad_evidence(evidence, words):
    with pytest.raises(EvidentiaError, match=words):
        MultinomialOpinion.from_evidence(evidence)


@pytest.mark.parametrize(
    ("belief", "vacuity", "words"),
    [
        ([0.5, 0.2], 0.2, r"must add up to 1.*0\.9"),
        ([0.5, 0.5], 0.5, r"must add up to 1.*1\.5"),
        ([-0.1, 0.6], 0.5, r"belief must lie in \[0, 1\].*-0\.1"),
        ([0.5, 0.6], -0.1, r"vacuity must lie in \[0, 1\].*-0\.1"),
        ([float("nan"), 0.6], 0.5, "belief must be finite.*NaN"),
        ([0.5, 0.2], float("inf"), "vacuity must be finite"),
        ([0.5, 0.2], [0.3, 0.3, 0.3], None),
        ([[0.5, 0.2], [0.5, 0.2]], [0.3, 0.3, 0.3], r"vacuity of shape \(2,\), got \(3,\)"),
    ],
)
def test_bad_masses(belief, vacuity, words):
    if words is None:  # a vacuity with more batch dimensions broadcasts
        assert MultinomialOpinion(belief, vacuity).shape == (3,)
        return
    with pytest.raises(EvidentiaError, match=words):
        MultinomialOpinion(belief, vacuity)


@pytest.mark.parametrize(
    ("base_rate", "words"),
    [
        ([0.5, 0.6], r"base rates must add up to 1.*1\.1"),
        ([-0.5, 1.5], r"base_rate must lie in \[0, 1\].*-0\.5 to 1\.5"),
        ([float("nan"), 0.5], "base_rate must be finite"),
        ([0.2, 0.3, 0.5], r"base_rate must broadcast to shape \(2,\), got shape \(3,\)"),
        ("x", "base_rate must be a tensor"),
    ],
)
def test_bad_base_rate(base_rate, words):
    with pytest.raises(EvidentiaError, match=words):
        MultinomialOpinion.from_evidence([1.0, 2.0], base_rate)
    with pytest.raises(EvidentiaError, match=words):
        MultinomialOpinion([0.3, 0.4], 0.3, base_rate)


@pytest.mark.parametrize("weight", [0.0, -1.0, float("inf"), float("nan")])
def test_bad_prior_weight(weight):
    with pytest.raises(EvidentiaError, match="prior_weight must be a number, more than 0"):
        MultinomialOpinion.from_evidence([1.0, 2.0], prior_weight=weight)


def test_bad_alpha():
    with pytest.raises(EvidentiaError, match=r"must be at least its base rate .*0\.5 below.*smaller prior_weight"):
        MultinomialOpinion.from_alpha([0.5, 2.0])
    with pytest.raises(EvidentiaError, match="alpha must be finite"):
        MultinomialOpinion.from_alpha([float("nan"), 2.0])
    with pytest.raises(EvidentiaError, match=r"smaller prior_weight, of at most 1\.2"):
        MultinomialOpinion.from_alpha([0.3, 2.0], base_rate=[0.25, 0.75])
    assert MultinomialOpinion.from_alpha([0.3, 2.0], base_rate=[0.25, 0.75], prior_weight=1.2).vacuity < 1
    with pytest.raises(EvidentiaError, match="smaller prior_weight, and no alpha of 0"):
        MultinomialOpinion.from_alpha([0.0, 2.0])
    # Rounding below the prior is forgiven.
    assert float(MultinomialOpinion.from_alpha([1 - 1e-7, 2.0]).belief[0]) == 0


def test_distribution_below_the_prior_needs_a_smaller_weight():
    sparse = Dirichlet(torch.tensor([0.1, 0.4]))
    with pytest.raises(EvidentiaError, match="smaller prior_weight"):
        MultinomialOpinion.from_distribution(sparse)
    w = MultinomialOpinion.from_distribution(sparse, prior_weight=0.2)
    torch.testing.assert_close(w.alpha, sparse.concentration)


def test_validation_switches():
    bad = torch.tensor([-1.0, 2.0])

    def raises():
        try:
            MultinomialOpinion.from_evidence(bad)
        except EvidentiaError:
            return True
        return False

    assert raises()
    MultinomialOpinion.from_evidence(bad, validate=False)
    with ev.validation(False):
        assert not raises()
        with ev.validation(True):
            assert raises()
            with ev.validation(False):
                assert not raises()
            assert raises()
        assert not raises()
        with pytest.raises(EvidentiaError, match="at least 0"):  # the argument has the last word
            MultinomialOpinion.from_evidence(bad, validate=True)
    assert raises()


def test_validation_is_restored_after_an_exception():
    with pytest.raises(KeyError), ev.validation(False):
        raise KeyError
    with pytest.raises(EvidentiaError):
        MultinomialOpinion.from_evidence([-1.0, 2.0])


def test_shapes_are_checked_even_without_validation():
    with ev.validation(False), pytest.raises(EvidentiaError, match="at least 2 classes"):
        MultinomialOpinion.from_evidence([1.0])


def test_no_value_is_read_without_validation():
    # Fake tensors have no values to read: any check of values would fail on them.
    w = MultinomialOpinion.from_evidence(torch.ones(4, 3, device="meta"), validate=False)
    assert w.shape == (4,)
    assert w.projected.device.type == "meta"


def test_bfloat16_becomes_float32_in_numpy():
    w = MultinomialOpinion.from_evidence(torch.tensor([6.0, 1.0, 0.0], dtype=torch.bfloat16))
    assert {array.dtype.name for array in w.numpy().values()} == {"float32"}
