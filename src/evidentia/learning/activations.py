"""From a network's outputs, which may be any number, to evidence, which may not be negative."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia._support.registry import Registry

# exp(10) is evidence of 22,026 observations; from there on a straight line is steep enough.
EXP_LIMIT = 10.0

ACTIVATIONS: Registry[Callable[[Tensor], Tensor]] = Registry("evidence activation")


@ACTIVATIONS.register("exp")
def exp_evidence(outputs: Tensor) -> Tensor:
    """exp(z), and from z = 10 on its tangent there: finite whatever the network says, and never without a gradient.

    A plain limit would have none beyond it, and a network that starts out there could not find back.

    Example:
        >>> exp_evidence(torch.tensor([0.0, 11.0, 1e30]))
        tensor([1.0000e+00, 4.4053e+04, 2.2026e+34])
    """
    return torch.exp(outputs.clamp(max=EXP_LIMIT)) * (1 + F.relu(outputs - EXP_LIMIT))


@ACTIVATIONS.register("softplus")
def softplus_evidence(outputs: Tensor) -> Tensor:
    """ln(1 + exp z): smooth, and linear in z for large z."""
    return F.softplus(outputs)


@ACTIVATIONS.register("relu")
def relu_evidence(outputs: Tensor) -> Tensor:
    """max(z, 0): as in the first evidential networks; samples with no positive output learn nothing."""
    return F.relu(outputs)


@ACTIVATIONS.register("elu")
def elu_evidence(outputs: Tensor) -> Tensor:
    """elu(z) + 1: linear above 0, exponential below, never without a gradient."""
    # Rounding takes elu to exactly -1 for very negative z, which is evidence 0.
    return F.elu(outputs) + 1
