"""Calibration: scikit-learn and torchmetrics as oracles, constructed cases, and refusal of what is none."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk
from torchmetrics.functional.classification import binary_calibration_error, multiclass_calibration_error

from evidentia import EvidentiaError
from evidentia.evaluation import brier, ece, nll, reliability

FUNCTIONS = [reliability, ece, brier, nll]


def multiclass(seed, size=200, classes=4, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    probs = torch.randn(size, classes, generator=generator, dtype=dtype).softmax(-1)
    return probs, torch.multinomial(probs, 1, generator=generator).squeeze(-1)


def binary(seed, size=200):
    generator = torch.Generator().manual_seed(seed)
    probs = torch.rand(size, generator=generator, dtype=torch.float64)
    return probs, (torch.rand(size, generator=generator, dtype=torch.float64) < probs).long()


@given(st.integers(0, 10**6), st.integers(1, 40))
def test_ece_is_that_of_torchmetrics(seed, bins):
    # Random confidences do not fall on borders, where the two put samples in different bins.
    probs, labels = multiclass(seed)
    theirs = multiclass_calibration_error(probs, labels, num_classes=4, n_bins=bins)
    assert float(ece(probs, labels, bins)) == pytest.approx(float(theirs), abs=1e-6)
    probs, labels = binary(seed)
    theirs = binary_calibration_error(probs, labels, n_bins=bins)
    assert float(ece(probs, labels, bins)) == pytest.approx(float(theirs), abs=1e-6)


@given(st.integers(0, 10**6))
def test_brier_and_nll_are_those_of_scikit_learn(seed):
    probs, labels = multiclass(seed)
    classes = list(range(4))
    theirs = sk.brier_score_loss(labels, probs, labels=classes, scale_by_half=False)
    assert float(brier(probs, labels)) == pytest.approx(theirs, rel=1e-12)
    assert float(nll(probs, labels)) == pytest.approx(sk.log_loss(labels, probs, labels=classes), rel=1e-9)
    probs, labels = binary(seed)
    theirs = sk.brier_score_loss(labels, probs, pos_label=1)
    assert float(brier(probs, labels)) == pytest.approx(theirs, rel=1e-12)
    assert float(nll(probs, labels)) == pytest.approx(sk.log_loss(labels, probs, labels=[0, 1]), rel=1e-9)


def test_confidences_that_are_frequencies_have_no_error():
    # Of ten samples at confidence c/10, exactly c are right, for c = 6..9.
    rows, labels = [], []
    for right in (6, 7, 8, 9):
        rows += [[right / 10, 1 - right / 10]] * 10
        labels += [0] * right + [1] * (10 - right)
    assert float(ece(rows, labels, bins=10)) == pytest.approx(0, abs=1e-15)
    events = [row[0] for row in rows]
    assert float(ece(events, [1 - label for label in labels], bins=10)) == pytest.approx(0, abs=1e-15)


def test_certain_and_always_wrong_has_error_one():
    assert float(ece([[1.0, 0.0]] * 3, [1, 1, 1])) == 1
    assert float(brier([[1.0, 0.0]] * 3, [1, 1, 1])) == 2
    assert float(nll([[1.0, 0.0]] * 3, [1, 1, 1])) == float("inf")


def test_certain_and_right_has_no_loss():
    for probs, labels in [([[1.0, 0.0]], [0]), ([1.0, 0.0], [1, 0]), ([[1.0, 0.0]], [[1, 0]])]:
        assert [float(f(probs, labels)) for f in (ece, brier, nll)] == [0, 0, 0]


def test_multi_label_is_many_binary_problems():
    probs, labels = torch.rand(50, 3), torch.randint(2, (50, 3))
    for function in (ece, brier, nll):
        assert function(probs, labels) == function(probs.flatten(), labels.flatten())


def test_two_classes_double_the_binary_brier_and_share_its_nll():
    probs, labels = binary(5)
    both = torch.stack([1 - probs, probs], -1)
    assert float(brier(both, labels)) == pytest.approx(2 * float(brier(probs, labels)))
    assert float(nll(both, labels)) == pytest.approx(float(nll(probs, labels)))


def test_the_diagram_describes_each_bin():
    diagram = reliability([0.05, 0.15, 0.95, 0.85], [0, 1, 1, 1], bins=5)
    assert diagram.count.tolist() == [2, 0, 0, 0, 2]
    assert diagram.confidence[[0, 4]].tolist() == pytest.approx([0.1, 0.9])
    assert diagram.accuracy[[0, 4]].tolist() == [0.5, 1.0]
    assert bool(diagram.confidence[1:4].isnan().all())
    assert diagram.edges.tolist() == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])


@pytest.mark.parametrize("bins", [3, 5, 10, 15])
def test_borders_belong_to_the_bin_below_in_every_dtype(dtype, bins):
    borders = (torch.arange(bins + 1, dtype=torch.float64) / bins).to(dtype)
    diagram = reliability(borders, torch.zeros(bins + 1), bins=bins)
    assert diagram.count.tolist() == [2] + [1] * (bins - 1)


def test_probabilities_that_were_float32_once_are_accepted_in_float64():
    probs, labels = multiclass(0, classes=300, dtype=torch.float32)
    assert float(nll(probs.double(), labels)) == pytest.approx(float(nll(probs, labels)))
    assert float(brier(torch.tensor([1 + 1e-7, -1e-8]), [1, 0])) == 0  # rounding outside [0, 1] is forgiven


def test_many_small_terms_keep_their_digits():
    probs = torch.full((2_000_000,), 0.1)
    labels = torch.zeros(2_000_000)
    assert float(brier(probs, labels)) == pytest.approx(0.01, rel=1e-7)
    assert float(ece(probs, labels)) == pytest.approx(0.1, rel=1e-7)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("probs", "labels", "message"),
    [
        ([[0.5, 0.4]], [0], "the probabilities of each sample must add up to 1, got a sum of 0.9; divide"),
        ([[0.5, 0.5]], [2], r"labels must lie in 0..1 for probabilities of 2 classes, got values from 2 to 2"),
        ([[0.5, 0.5]], [-1], "drop unlabelled samples first"),
        ([[0.5, 0.5]], [0.0], "labels must be integer class indices, got a tensor of torch.float64"),
        ([[0.5, 0.5]], [0, 1], "probs and labels must have the same length, got 1 and 2"),
        ([[1.0], [1.0]], [0, 0], "probs needs a last dimension .* at least 2 classes"),
        ([0.5, 1.5], [0, 1], r"probs must lie in \[0, 1\], got values from 0.5 to 1.5; apply softmax or sigmoid"),
        ([0.5, float("nan")], [0, 1], "probs must be finite, got NaN"),
        ([0.5, 0.5], [0, 3], "labels must be 0 or 1 .*got 3"),
        ([0.5, 0.5], [0, 1, 1], r"got probs of shape \(2,\) and labels of shape \(3,\)"),
        ([[[0.5, 0.5]]], [[[0, 1]]], r"got probs of shape \(1, 1, 2\)"),
        ([], [], "probs must hold at least one sample"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(function, probs, labels, message):
    with pytest.raises(EvidentiaError, match=message):
        function(probs, labels)


@pytest.mark.parametrize("bins", [0, 2.5, "many"])
@pytest.mark.parametrize("function", [reliability, ece])
def test_no_bins_or_parts_of_them_are_refused(function, bins):
    with pytest.raises(EvidentiaError, match=f"bins must be a whole number of at least 1, got {bins!r}"):
        function([0.5], [1], bins=bins)


def test_numpy_integers_as_certain_probabilities():
    assert float(brier(np.array([[1, 0], [0, 1]]), np.array([0, 0]))) == 1


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_probabilities_of_half_precision_are_rounded_not_wrong(half):
    probs, labels = multiclass(seed=0, classes=10)
    for function in (ece, brier, nll):
        assert float(function(probs.to(half), labels)) == pytest.approx(float(function(probs, labels)), rel=0.05)
    with pytest.raises(EvidentiaError, match="add up to 1"):
        ece(probs.to(half) / 4, labels)


def test_numpy_has_a_half_precision_too():
    probs, labels = multiclass(seed=0)
    assert float(brier(probs.numpy().astype(np.float16), labels)) == pytest.approx(
        float(brier(probs, labels)), rel=0.01
    )
