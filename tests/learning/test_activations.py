"""The formulas of the activations, and where exp turns into its tangent."""

from __future__ import annotations

import math

import pytest
import torch

from evidentia.learning import ACTIVATIONS


def test_they_follow_their_formulas():
    z = torch.linspace(-9, 9, 37, dtype=torch.float64)
    expected = {
        "exp": z.exp(),
        "softplus": torch.log1p(z.exp()),
        "relu": torch.where(z > 0, z, 0),
        "elu": torch.where(z > 0, z + 1, z.exp()),
    }
    assert set(expected) <= set(ACTIVATIONS)
    for name, values in expected.items():
        torch.testing.assert_close(ACTIVATIONS[name](z), values, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("z", [10.0, 12.0, 1e6])
def test_exp_goes_on_along_its_tangent(z, dtype):
    given = torch.tensor(z, dtype=dtype, requires_grad=True)
    evidence = ACTIVATIONS["exp"](given)
    (slope,) = torch.autograd.grad(evidence, given)
    assert float(evidence.detach()) == pytest.approx(math.exp(10) * (1 + z - 10), rel=1e-5)
    assert float(slope) == pytest.approx(math.exp(10), rel=1e-5)
