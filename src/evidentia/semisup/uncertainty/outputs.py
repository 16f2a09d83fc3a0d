"""Uncertainty read off the network's own outputs."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from evidentia.learning.activations import ACTIVATIONS
from evidentia.opinions.special import as_double
from evidentia.semisup.networks.features import logits_in_parts
from evidentia.semisup.uncertainty.base import UNCERTAINTIES, PoolUncertainty, PoolView, check_classes


@UNCERTAINTIES.register("evidential")
@dataclass(kw_only=True, eq=False)
class EvidentialVacuity(PoolUncertainty):
    r"""The vacuity of the opinion whose evidence is an activation of the logits z (Sensoy et al., NeurIPS 2018).

    $$u = \frac{K}{K + \sum_k a(z_k)}$$

    Softmax training fixes logits only up to a constant, so for a network that was not trained for evidence this is a
    score, not a measurement: `exp` makes it a function of the free energy $-\ln \sum_k e^{z_k}$ (Liu et al., NeurIPS
    2020).

    Args:
        activation: name of an evidence activation in `evidentia.learning.ACTIVATIONS`.

    Example:
        >>> import torch
        >>> evidential_vacuity(torch.tensor([[0.0, 0.0], [8.0, -8.0]]), "relu")
        tensor([1.0000, 0.2000], dtype=torch.float64)
    """

    activation: str = "exp"

    def __post_init__(self) -> None:
        """Require a known activation."""
        _ = ACTIVATIONS[self.activation]

    def uncertainty_of(self, pool: PoolView) -> Tensor:
        """By what the network says of every sample."""
        logits = logits_in_parts(pool.network, pool.unlabeled, pool.batch_size)
        return evidential_vacuity(check_classes(logits, pool.num_classes), self.activation)


@UNCERTAINTIES.register("confidence")
@dataclass(kw_only=True, eq=False)
class Confidence(PoolUncertainty):
    r"""How far the network is from being sure of one class: $u = 1 - \max_k p_k$, at most $1 - 1/K$.

    The usual baseline (Hendrycks and Gimpel, ICLR 2017). It is high for what lies between classes, and not for what
    is like none of them: a network may be sure of anything far away.
    """

    def uncertainty_of(self, pool: PoolView) -> Tensor:
        """By what the network says of every sample."""
        logits = logits_in_parts(pool.network, pool.unlabeled, pool.batch_size)
        return (1 - as_double(check_classes(logits, pool.num_classes)).softmax(-1).amax(-1)).clamp(0, 1)


def evidential_vacuity(logits: Tensor, activation: str = "exp") -> Tensor:
    r"""$K / (K + \sum_k a(z_k))$ over the last dimension, in float64: in float32 large evidence may overflow.

    Args:
        logits: z, shape `(..., K)`.
        activation: name of an evidence activation.

    Example:
        >>> import torch
        >>> evidential_vacuity(torch.tensor([[-50.0, -50.0, -50.0], [1e30, 0.0, 0.0]]))
        tensor([1.0000e+00, 1.3620e-34], dtype=torch.float64)
    """
    evidence = ACTIVATIONS[activation](as_double(logits)).sum(-1)
    return logits.shape[-1] / (logits.shape[-1] + evidence)
