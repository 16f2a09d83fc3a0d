"""Dirichlet prior networks (Malinin and Gales 2018, 2019)."""

from __future__ import annotations

import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import real_number
from evidentia.learning.losses import as_probabilities, prior_network_forward, prior_network_reverse
from evidentia.learning.methods.base import METHODS, OUTLIER, DirichletMethod


@METHODS.register("prior-network")
class PriorNetwork(DirichletMethod):
    """Learns the Dirichlet itself: sharp on the right class in distribution, flat on outliers.

    Training samples labelled `evidentia.learning.OUTLIER` (-1) belong to no class; without any of them the network
    has no reason to be unsure away from the training data.

    Args:
        num_classes: K.
        direction: "reverse" (KL from the network's Dirichlet to the target) or "forward".
        precision: evidence of the in-distribution target for its class.
        activation: how outputs become evidence.
    """

    learns_from_outliers = True

    def __init__(
        self, num_classes: int, direction: str = "reverse", precision: float = 100.0, activation: str = "exp"
    ) -> None:
        super().__init__(num_classes, activation, kl_weight=0.0)
        directions = {"reverse": prior_network_reverse, "forward": prior_network_forward}
        if direction not in directions:
            raise EvidentiaError(f"direction must be 'reverse' or 'forward', got {direction!r}")
        self.direction = direction
        self.precision = real_number(precision, "precision", 0, open_low=True)
        self._divergence = directions[direction]

    def risk(self, alpha: Tensor, y: Tensor) -> Tensor:
        """The divergence, divided by the precision so that its size does not depend on it."""
        return self._divergence(alpha, y, self.precision) / self.precision

    def loss(self, outputs: Tensor, target: Tensor, epoch: float) -> Tensor:
        """The divergence from the target Dirichlet, which for an outlier is flat."""
        if not target.is_floating_point():
            target = target.long()
            outlier = target == OUTLIER
            known = as_probabilities(torch.where(outlier, torch.zeros_like(target), target), outputs)
            target = known.masked_fill(outlier.unsqueeze(-1), 0.0)
        return super().loss(outputs, target, epoch)
