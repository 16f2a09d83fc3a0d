"""What objectives are given and give."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from evidentia import EvidentiaError
from evidentia.semisup import AUGMENTATIONS, Consistency
from evidentia.semisup.objectives import EntropyMinimisation, FixMatch

NONE = AUGMENTATIONS["none"]()


def test_parts_of_other_samples_are_refused():
    with pytest.raises(EvidentiaError, match="lengths 3, 2, 3"):
        Consistency(torch.zeros(3, 2), torch.zeros(2, 2), torch.zeros(3))


def test_targets_of_another_objective_are_refused():
    x = torch.randn(3, 2)
    with pytest.raises(EvidentiaError, match=r"targets of shape \(3, 2\) are needed, got none"):
        FixMatch().per_sample(x, EntropyMinimisation().prepare(nn.Identity(), x, NONE))


def test_logits_of_other_classes_are_refused():
    x = torch.randn(3, 2)
    with pytest.raises(EvidentiaError, match=r"got those of shape \(3, 2\)"):
        FixMatch().per_sample(torch.randn(3, 5), FixMatch().prepare(nn.Identity(), x, NONE))


def test_outputs_that_are_no_tensor_are_named():
    class Pair(nn.Module):
        def forward(self, x):
            return x, x

    with pytest.raises(EvidentiaError, match="got tuple"):
        FixMatch().prepare(Pair(), torch.randn(3, 2), NONE)


def test_settings_are_shown():
    assert repr(FixMatch(threshold=0.9)) == "FixMatch(weight=1.0, rampup=0, threshold=0.9)"
