"""Detection: scikit-learn is the oracle, and the laws that any ranking measure keeps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import metrics as sk
from torchmetrics.functional.classification import binary_auroc

from evidentia import EvidentiaError, validation
from evidentia.evaluation import (
    aupr,
    auroc,
    detection_scores,
    fpr_at,
    precision_recall_curve,
    roc_curve,
)

FUNCTIONS = [auroc, aupr, fpr_at, roc_curve, precision_recall_curve, detection_scores]
EXACT = {"rtol": 1e-12, "atol": 1e-12}


@st.composite
def problems(draw, dtypes=(np.float16, np.float32, np.float64, np.int64, np.uint8)):
    """Scores of any type and scale, often tied, and labels of both kinds."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    if dtype.kind == "f":
        limit = float(np.finfo(dtype).max) if dtype == np.float16 else float(np.float32(1e30))
        anything = st.floats(-limit, limit, width=8 * dtype.itemsize)
        elements = draw(st.sampled_from([anything, st.sampled_from([-1.5, 0.0, -0.0, 0.25, 3.0])]))
    else:
        elements = draw(st.sampled_from([hnp.from_dtype(dtype), st.integers(0, 4)]))
        if dtype == np.int64:  # the oracle computes in float64
            elements = elements.map(lambda value: int(np.clip(value, -(2**52), 2**52)))
    size = draw(st.integers(2, 60))
    scores = draw(hnp.arrays(dtype, size, elements=elements))
    labels = draw(hnp.arrays(np.int64, size, elements=st.integers(0, 1)))
    labels[0], labels[1] = 0, 1
    return scores, labels


def fpr_oracle(scores, labels, tpr):
    fprs, tprs, _ = sk.roc_curve(labels, scores, drop_intermediate=False)
    return fprs[np.argmax(tprs >= tpr)]


@given(problems())
def test_values_are_those_of_scikit_learn(problem):
    scores, labels = problem
    wide = scores.astype(np.float64)
    np.testing.assert_allclose(auroc(scores, labels), sk.roc_auc_score(labels, wide), **EXACT)
    np.testing.assert_allclose(aupr(scores, labels), sk.average_precision_score(labels, wide), **EXACT)
    flipped = sk.average_precision_score(1 - labels, -wide)
    np.testing.assert_allclose(aupr(scores, labels, positive=0), flipped, **EXACT)
    for tpr in (0.05, 0.5, 0.95, 1.0):
        assert float(fpr_at(scores, labels, tpr)) == fpr_oracle(wide, labels, tpr)


@given(problems())
def test_curves_are_those_of_scikit_learn(problem):
    scores, labels = problem
    wide = scores.astype(np.float64)
    roc = sk.roc_curve(labels, wide, drop_intermediate=False)
    for ours, theirs in zip(roc_curve(scores, labels), roc, strict=True):
        np.testing.assert_allclose(ours, theirs, **EXACT)
    curve = sk.precision_recall_curve(labels, wide)
    for ours, theirs in zip(precision_recall_curve(scores, labels), curve, strict=True):
        np.testing.assert_allclose(ours, theirs, **EXACT)


@given(problems())
def test_all_at_once_equals_each_alone(problem):
    found = detection_scores(*problem)
    alone = {
        "auroc": auroc(*problem),
        "aupr": aupr(*problem),
        "aupr_negative": aupr(*problem, positive=0),
        "fpr_at_95": fpr_at(*problem, tpr=0.95),
    }
    assert found == alone
    assert all(value.shape == () and value.dtype == torch.float64 for value in found.values())


@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_samples_does_not_matter(problem, random):
    scores, labels = problem
    order = list(range(len(scores)))
    random.shuffle(order)
    assert detection_scores(scores[order], labels[order]) == detection_scores(scores, labels)


@given(problems(dtypes=(np.float16, np.float32, np.float64)))
def test_auroc_of_negated_scores_is_the_complement(problem):
    scores, labels = problem
    assert float(auroc(scores, labels) + auroc(-scores, labels)) == pytest.approx(1, abs=1e-15)


@given(problems(dtypes=(np.float16, np.float32, np.float64)))
def test_the_negative_direction_is_flipped_labels_and_negated_scores(problem):
    scores, labels = problem
    assert aupr(scores, labels, positive=0) == aupr(-scores, 1 - labels)


@given(hnp.arrays(np.int64, st.integers(2, 50), elements=st.integers(-50, 50)), st.data())
@pytest.mark.parametrize("transform", [lambda s: np.exp(s / 10), lambda s: s**3 - 7, np.arctan, lambda s: s * 1e28])
def test_only_the_order_of_scores_counts(transform, scores, data):
    labels = data.draw(hnp.arrays(np.int64, len(scores), elements=st.integers(0, 1)))
    labels[0], labels[1] = 0, 1
    assert detection_scores(transform(scores.astype(np.float64)), labels) == detection_scores(scores, labels)


def test_no_sigmoid_is_hidden_inside():
    # Total evidence in the tens and hundreds: a sigmoid makes all of it 1 and the order is lost.
    torch.manual_seed(3)
    labels = torch.arange(2000) % 2
    evidence = 60 + 200 * torch.rand(2000) + 80 * labels
    assert float(binary_auroc(evidence, labels)) == pytest.approx(0.5)
    assert float(auroc(evidence, labels)) == pytest.approx(sk.roc_auc_score(labels, evidence), abs=1e-12)
    assert float(auroc(evidence, labels)) > 0.7


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_a_perfect_order_is_perfect_at_any_scale(scale):
    scores = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]) * scale
    labels = [0, 0, 0, 1, 1]
    assert {k: float(v) for k, v in detection_scores(scores, labels).items()} == {
        "auroc": 1,
        "aupr": 1,
        "aupr_negative": 1,
        "fpr_at_95": 0,
    }
    assert float(auroc(-scores, labels)) == 0


def test_constant_scores_are_chance():
    found = detection_scores([7, 7, 7, 7], [0, 0, 0, 1])
    assert {k: float(v) for k, v in found.items()} == {
        "auroc": 0.5,
        "aupr": 0.25,
        "aupr_negative": 0.75,
        "fpr_at_95": 1,
    }


def test_infinite_scores_rank_first_and_last():
    inf = float("inf")
    assert float(auroc([-inf, 0.0, inf, inf], [0, 1, 0, 1])) == 0.625
    assert roc_curve([-inf, inf], [0, 1]).thresholds.tolist() == [inf, inf, -inf]


def test_nineteen_of_twenty_reach_95_percent():
    labels = [1] * 20 + [0] * 2
    scores = [*range(100, 80, -1), 81.5, 0]
    assert float(fpr_at(scores, labels, tpr=0.95)) == 0
    assert float(fpr_at(scores, labels, tpr=0.96)) == 0.5


def test_integers_too_large_for_floats_stay_apart():
    base = 2**60
    assert float(auroc(torch.tensor([base, base + 1]), [0, 1])) == 1


@pytest.mark.parametrize("kind", [list, np.asarray, torch.tensor, lambda v: np.asarray(v)[::-1][::-1]])
@pytest.mark.parametrize("labels", [[0, 1, 0, 1], [False, True, False, True], [0.0, 1.0, 0.0, 1.0]])
def test_lists_arrays_and_tensors_are_all_welcome(kind, labels):
    assert float(auroc(kind([1.0, 2.0, 3.0, 4.0]), kind(labels))) == 0.75


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int8, torch.bool])
def test_small_types_are_welcome(dtype):
    scores = torch.tensor([0, 1, 0, 1]).to(dtype)
    assert float(auroc(scores, scores.bool())) == 1


def test_read_only_arrays_and_tensors_with_gradients_are_left_alone():
    array = np.array([1.0, 2.0])
    array.flags.writeable = False
    assert float(auroc(array, [0, 1])) == 1
    tensor = torch.tensor([2.0, 1.0], requires_grad=True)
    assert float(auroc(tensor, [0, 1])) == 0
    assert tensor.tolist() == [2.0, 1.0]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ([1.0, float("nan")], [0, 1], "scores must not be NaN, got 1 NaN among 2 entries; drop"),
        ([], [], "scores must hold at least one sample"),
        ([1.0, 2.0, 3.0], [0, 1], "scores and labels must have the same length, got 3 and 2"),
        ([1.0, 2.0], [1, 1], "labels must hold both 0 and 1, got only 1"),
        ([1.0, 2.0], [0, 0], "labels must hold both 0 and 1, got only 0"),
        ([1.0, 2.0], [1, 2], "labels must be 0 or 1 .*got 2; compare"),
        ([1.0, 2.0], [0.5, 1.0], "labels must be 0 or 1 .*got 0.5"),
        ([[1.0], [2.0]], [0, 1], r"scores must be a vector .*got shape \(2, 1\)"),
        ([1.0, 2.0], [[0], [1]], "scores and labels must both be vectors"),
        (["low", "high"], [0, 1], "scores must be a tensor, an array or a list of numbers, got list"),
        (torch.tensor([1j, 2j]), [0, 1], "scores must be real"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(function, scores, labels, message):
    with pytest.raises(EvidentiaError, match=message):
        function(scores, labels)


@pytest.mark.parametrize("tpr", [0, -0.1, 1.01, float("nan")])
def test_an_impossible_rate_is_refused(tpr):
    with pytest.raises(EvidentiaError, match="tpr must be a number, more than 0 and at most 1, got"):
        fpr_at([1, 2], [0, 1], tpr=tpr)


def test_an_unknown_positive_label_is_refused():
    with pytest.raises(EvidentiaError, match="positive must be one of the labels 0 and 1, got 2"):
        aupr([1, 2], [0, 1], positive=2)


def test_value_checks_can_be_switched_off():
    with validation(False):
        assert float(auroc([1.0, 2.0, 3.0], [5, 0, 1])) == 1  # anything but 1 counts as 0


def test_scores_and_labels_in_any_order_of_bytes():
    scores, labels = np.array([0.1, 0.9, 0.4, 0.6]), np.array([0, 1, 1, 0])
    assert auroc(scores.astype(">f4"), labels.astype(">i8")) == auroc(scores, labels) == 0.75
