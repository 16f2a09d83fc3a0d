"""Evidence that labeled samples nearby give, by a kernel on the network's features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from evidentia._support.checks import check_finite
from evidentia._support.scalars import real_number
from evidentia.opinions.special import as_double
from evidentia.semisup.networks.features import BATCH, hidden_and_logits
from evidentia.semisup.uncertainty.base import UNCERTAINTIES, PoolUncertainty, PoolView

# Distances that are held at once, in float64: 128 MB of them.
_PAIRS = 2**24
_MOST_COMPARED = 4096


@UNCERTAINTIES.register("kernel")
@dataclass(kw_only=True, eq=False)
class KernelEvidence(PoolUncertainty):
    r"""Vacuity of the opinion whose evidence is what labeled samples nearby vouch for.

    With features h (the network's last hidden layer) and labeled samples i of class $y_i$,

    $$e_k(x) = \sum_{i:\, y_i = k} \exp\Big(-\frac{\lVert h(x) - h_i \rVert^2}{2 s^2}\Big), \qquad
      u(x) = \frac{K}{K + \sum_k e_k(x)}$$

    A labeled sample vouches for itself with evidence 1 and for anything far away with 0, where u is 1. The bandwidth s
    is the median distance between labeled features of the same class, so that evidence reaches about as far as classes
    are wide; if there is one label a class, it is the median distance between any two.

    Args:
        bandwidth: s, in place of the median.

    Example:
        >>> labeled, classes = torch.tensor([[0.0], [1.0], [8.0], [9.0]]), torch.tensor([0, 0, 1, 1])
        >>> evidence = kernel_evidence(torch.tensor([[0.0], [4.5], [1e30]]), labeled, classes, num_classes=2)
        >>> evidence.round(decimals=3).tolist()
        [[1.607, 0.0], [0.002, 0.002], [0.0, 0.0]]
    """

    bandwidth: float | None = None
    uses_features: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Require a positive bandwidth."""
        check_bandwidth(self.bandwidth)

    def uncertainty_of(self, pool: PoolView) -> Tensor:
        """By the features of labeled and unlabeled samples."""
        inputs, classes = pool.labeled
        known, features = (hidden_and_logits(pool.network, x, pool.batch_size)[0] for x in (inputs, pool.unlabeled))
        evidence = kernel_evidence(features, known, classes, pool.num_classes, self.bandwidth)
        return pool.num_classes / (pool.num_classes + evidence.sum(-1))


def kernel_evidence(
    features: Tensor, labeled: Tensor, classes: Tensor, num_classes: int, bandwidth: float | None = None
) -> Tensor:
    r"""$e_k(x)$ of `KernelEvidence` for many features, shape `(n, K)`, in float64.

    Args:
        features: of the samples to judge, shape `(n, D)`.
        labeled: features of the labeled samples, shape `(m, D)`.
        classes: their classes, 0 to K - 1.
        num_classes: K.
        bandwidth: s; by default `median_bandwidth`.
    """
    check_bandwidth(bandwidth)
    for name, part in (("features", features), ("features of the labeled samples", labeled)):
        check_finite(part, name)
    known = as_double(labeled)
    scale = median_bandwidth(known, classes) if bandwidth is None else bandwidth
    members = nn.functional.one_hot(classes, num_classes).to(known)
    parts = [
        # Distances first divided by s: what is huge is then infinite at worst, and its evidence 0.
        torch.exp(-0.5 * (_distances(as_double(part), known) / scale).square()) @ members
        for part in features.split(max(1, min(BATCH, _PAIRS // len(known))))
    ]
    return torch.cat(parts)


def median_bandwidth(labeled: Tensor, classes: Tensor) -> float:
    """The median distance between two labeled features of the same class; of any class if no class has two.

    All pairs are compared if there are at most 4,096 labeled features. Of more, neighbours in the order of the classes
    are taken at even steps, about as many in all, so that memory and time stay bounded.

    Example:
        >>> median_bandwidth(torch.tensor([[0.0], [1.0], [8.0], [9.0]]), torch.tensor([0, 0, 1, 1]))
        1.0
    """
    if len(labeled) > _MOST_COMPARED:
        few = _evenly_by_class(classes)
        labeled, classes = labeled[few], classes[few]
    exact = as_double(labeled)
    distances = _distances(exact, exact)
    pairs = torch.ones_like(distances, dtype=torch.bool).triu(1)
    alike = pairs & (classes[:, None] == classes)
    chosen = distances[alike if bool(alike.any()) else pairs]
    # Features are float32 at heart: distances below their rounding, or of copies, say nothing of a scale.
    rounding = torch.finfo(torch.float32).eps * float(exact.abs().max()) + torch.finfo(torch.float32).tiny
    return max(float(chosen.median()), rounding) if chosen.numel() else max(1.0, rounding)


def _evenly_by_class(classes: Tensor) -> Tensor:
    """Rows at even steps through the classes, each with the next one, so that small classes keep pairs too."""
    order = torch.argsort(classes, stable=True)
    first = torch.linspace(0, len(order) - 2, _MOST_COMPARED // 2, dtype=torch.float64, device=order.device).long()
    return order[torch.cat([first, first + 1]).unique()]


def check_bandwidth(bandwidth: float | None) -> None:
    """Require a positive, finite bandwidth, or none."""
    if bandwidth is not None:
        real_number(bandwidth, "the bandwidth, if it is not None for the median,", 0, open_low=True)


def _distances(first: Tensor, second: Tensor) -> Tensor:
    # Without the shortcut by matrix products, which loses the digits of small distances.
    return torch.cdist(first, second, compute_mode="donot_use_mm_for_euclid_dist")
