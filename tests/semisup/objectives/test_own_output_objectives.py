"""Pseudo-labels and entropy: closed forms."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia.semisup import AUGMENTATIONS
from evidentia.semisup.objectives import EntropyMinimisation, PseudoLabel

NONE = AUGMENTATIONS["none"]()


def test_pseudo_labels_are_the_sure_classes():
    logits = 3 * torch.randn(200, 4)
    objective = PseudoLabel()
    consistency = objective.prepare(nn.Identity(), logits, NONE)
    confidence, label = logits.softmax(-1).max(-1)
    assert torch.equal(consistency.targets.argmax(-1), label)
    expected = F.cross_entropy(logits, label, reduction="none") * (confidence >= 0.95)
    torch.testing.assert_close(objective.per_sample(logits, consistency), expected)
    # The closed form: what a network is taught of its own class is minus the logarithm of its probability.
    torch.testing.assert_close(expected, -confidence.log() * (confidence >= 0.95), rtol=1e-4, atol=1e-6)


def test_threshold_0_takes_everything():
    assert (PseudoLabel(threshold=0.0).prepare(nn.Identity(), torch.randn(9, 3), NONE).counts == 1).all()


@pytest.mark.parametrize("classes", [2, 10, 100])
def test_entropy_is_ln_k_for_no_preference_and_0_for_certainty(classes, dtype):
    flat = torch.zeros(1, classes, dtype=dtype)
    sure = torch.nn.functional.one_hot(torch.tensor([0]), classes).to(dtype) * 200
    logits = torch.cat([flat, sure])
    objective = EntropyMinimisation()
    costs = objective.per_sample(logits, objective.prepare(nn.Identity(), logits, NONE))
    torch.testing.assert_close(costs, torch.tensor([math.log(classes), 0.0], dtype=dtype))


def test_entropy_of_two_classes_is_that_of_a_coin():
    logits = torch.randn(20, 2)
    objective = EntropyMinimisation()
    costs = objective.per_sample(logits, objective.prepare(nn.Identity(), logits, NONE))
    torch.testing.assert_close(costs, torch.distributions.Categorical(logits=logits).entropy())
