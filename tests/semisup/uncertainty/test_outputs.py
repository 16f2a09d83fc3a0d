"""Uncertainty by the network's own outputs."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from evidentia import EvidentiaError, MultinomialOpinion
from evidentia.learning import ACTIVATIONS
from evidentia.semisup import AUGMENTATIONS
from evidentia.semisup.uncertainty import Confidence, EvidentialVacuity

NONE = AUGMENTATIONS["none"]()
rows = st.lists(st.floats(-20, 20, width=32), min_size=3, max_size=3)
dtypes = st.sampled_from([torch.float32, torch.float64])


def estimated(estimator, logits: Tensor, num_classes: int = 3) -> Tensor:
    labeled = (logits[:1], torch.tensor([0]))
    return estimator.estimate(nn.Identity(), labeled, logits, num_classes, NONE)


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@given(row=rows, dtype=dtypes)
def test_vacuity_of_the_opinion(activation, row, dtype):
    logits = torch.tensor([row], dtype=dtype)
    u = estimated(EvidentialVacuity(activation=activation), logits)
    expected = MultinomialOpinion.from_evidence(ACTIVATIONS[activation](logits)).vacuity
    torch.testing.assert_close(u, expected)


@given(row=rows, more=st.floats(0.01, 10))
def test_higher_logits_are_more_evidence(row, more):
    logits = torch.tensor([row, [row[0] + more, *row[1:]]], dtype=torch.float64)
    before, after = estimated(EvidentialVacuity(), logits)
    assert after <= before


@given(row=rows, dtype=dtypes)
def test_confidence(row, dtype):
    logits = torch.tensor([row], dtype=dtype)
    u = estimated(Confidence(), logits)
    torch.testing.assert_close(u, 1 - logits.softmax(-1).amax(-1), atol=1e-6, rtol=1e-5)
    assert 0 <= float(u) <= 2 / 3 + 1e-6
    torch.testing.assert_close(estimated(Confidence(), logits + 1), u, atol=1e-5, rtol=1e-4)


def test_limits(dtype):
    logits = torch.tensor([[0.0, 0.0, 0.0], [1e4, 0.0, 0.0], [-1e4, -1e4, -1e4], [1e30, 0.0, 0.0]], dtype=dtype)
    u = estimated(Confidence(), logits)
    torch.testing.assert_close(u, torch.tensor([2 / 3, 0, 2 / 3, 0], dtype=dtype))
    u = estimated(EvidentialVacuity(), logits)
    torch.testing.assert_close(u, torch.tensor([0.5, 0, 1, 0], dtype=dtype), atol=1e-5, rtol=0)


def test_refusals():
    with pytest.raises(EvidentiaError, match="no evidence activation named 'sinus'"):
        EvidentialVacuity(activation="sinus")
    with pytest.raises(EvidentiaError, match="for 4 classes"):
        estimated(Confidence(), torch.zeros(2, 3), num_classes=4)
