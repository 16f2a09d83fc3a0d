r"""Calibration: are probabilities the frequencies they claim to be?

Each function takes one of three kinds of problem, told apart by shapes:

| kind | `probs` | `labels` | confidence and accuracy of a sample |
|---|---|---|---|
| multi-class | `(N, K)`, rows sum to 1 | `(N,)`, class indices | the largest; whether that class is right |
| binary | `(N,)` | `(N,)`, 0 or 1 | the probability of 1; whether the label is 1 |
| multi-label | `(N, K)` | `(N, K)`, 0 or 1 | each label is a binary problem |

Sums run in float64; results are scalar tensors of float64 on the device of the probabilities.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from evidentia._support.checks import TensorLike
from evidentia._support.scalars import whole_number
from evidentia.evaluation._inputs import probs_labels


class Reliability(NamedTuple):
    """A reliability diagram: B bins of equal width; bins without samples hold NaN."""

    confidence: Tensor
    """Mean confidence in each bin, shape `(B,)`."""
    accuracy: Tensor
    """Share of the samples in each bin that are right, shape `(B,)`."""
    count: Tensor  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    """Number of samples in each bin, shape `(B,)`, int64."""
    edges: Tensor
    """Borders of the bins, shape `(B + 1,)`; bin `b` holds `edges[b] < confidence <= edges[b + 1]`."""


def reliability(probs: TensorLike, labels: TensorLike, bins: int = 15) -> Reliability:
    """Confidence and accuracy in bins of equal width over [0, 1].

    Args:
        probs: probabilities, shape `(N, K)` or `(N,)`; see the module for the kinds of problem.
        labels: class indices, or 0 and 1.
        bins: how many bins. A confidence on a border belongs to the bin below it, and 0 to the first.

    Example:
        >>> from evidentia.evaluation import reliability
        >>> diagram = reliability([0.9, 0.8, 0.2, 0.3], [1, 1, 0, 1], bins=2)
        >>> diagram.confidence, diagram.accuracy
        (tensor([0.2500, 0.8500], dtype=torch.float64), tensor([0.5000, 1.0000], dtype=torch.float64))
    """
    return diagram(bin_sums(probs, labels, bins))


def ece(probs: TensorLike, labels: TensorLike, bins: int = 15) -> Tensor:
    r"""Expected calibration error: of the top label for multi-class, of the event itself for binary problems.

    $$\mathrm{ECE} = \sum_b \frac{n_b}{N} \, |\mathrm{acc}_b - \mathrm{conf}_b|$$

    (Guo et al. 2017). Arguments are as for `reliability`.

    Example:
        >>> from evidentia.evaluation import ece
        >>> ece([[0.8, 0.2], [0.8, 0.2], [0.2, 0.8], [0.8, 0.2]], [0, 0, 1, 1])
        tensor(0.0500, dtype=torch.float64)
    """
    return expected_gap(reliability(probs, labels, bins))


def brier(probs: TensorLike, labels: TensorLike) -> Tensor:
    r"""Brier score: lower is better.

    $$\frac1N \sum_n \sum_k (p_{nk} - [y_n = k])^2$$

    for multi-class problems: the sum over all classes, in [0, 2], as Brier defined it. For binary and
    multi-label problems the mean of $(p - y)^2$, in [0, 1]; so a binary problem given as two classes scores
    twice as much. Arguments are as for `reliability`.

    Example:
        >>> from evidentia.evaluation import brier
        >>> brier([[0.8, 0.2], [0.4, 0.6]], [0, 0])
        tensor(0.4000, dtype=torch.float64)
        >>> brier([0.2, 0.6], [0, 0])
        tensor(0.2000, dtype=torch.float64)
    """
    return brier_terms(probs, labels).mean()


def nll(probs: TensorLike, labels: TensorLike) -> Tensor:
    r"""Mean negative log-likelihood in nats: lower is better.

    $$-\frac1N \sum_n \ln p_{n y_n}$$

    For binary and multi-label problems the mean of $-y \ln p - (1 - y) \ln(1 - p)$. It is infinite where the
    truth was given probability 0: nothing is clipped. Arguments are as for `reliability`.

    Example:
        >>> from evidentia.evaluation import nll
        >>> nll([[0.8, 0.2], [0.4, 0.6]], [0, 1])
        tensor(0.3670, dtype=torch.float64)
    """
    return nll_terms(probs, labels).mean()


def bin_sums(probs: TensorLike, labels: TensorLike, bins: int) -> Tensor:
    """Count, sum of confidence and number right in each bin, shape `(3, bins)`: they add up over batches."""
    bins = whole_number(bins, "bins", 1)
    given, truth = probs_labels(probs, labels)
    if given.ndim == 2:
        confidence, top = given.max(-1)
        right = top == truth
    else:
        confidence, right = given, truth
    # Rounded as the confidences are, so that 0.2 in float32 lies on the border 3/15 and not above it.
    inner = _edges(bins, given.device)[1:-1].to(given.dtype)
    index = torch.bucketize(confidence, inner)
    weights = (torch.ones_like(confidence), confidence, right)
    return torch.stack([torch.bincount(index, weight.double(), minlength=bins) for weight in weights])


def diagram(sums: Tensor) -> Reliability:
    """The reliability diagram of the sums in each bin."""
    count, confidence, right = sums
    return Reliability(confidence / count, right / count, count.long(), _edges(len(count), sums.device))


def expected_gap(diagram: Reliability) -> Tensor:
    """The mean distance of accuracy and confidence over all samples; empty bins have no weight."""
    gap = (diagram.accuracy - diagram.confidence).abs()
    return (diagram.count * gap).nansum() / diagram.count.sum()


def brier_terms(probs: TensorLike, labels: TensorLike) -> Tensor:
    """The Brier score of each sample."""
    given, truth = probs_labels(probs, labels)
    if given.ndim == 1:
        return (given.double() - truth.double()).square()
    target = torch.nn.functional.one_hot(truth, given.shape[-1])
    return (given.double() - target).square().sum(-1)


def nll_terms(probs: TensorLike, labels: TensorLike) -> Tensor:
    """The negative log-likelihood of each sample."""
    given, truth = probs_labels(probs, labels)
    if given.ndim == 1:
        return -torch.where(truth, given.double().log(), (-given.double()).log1p())
    return -given.double().gather(-1, truth.unsqueeze(-1)).squeeze(-1).log()


def _edges(bins: int, device: torch.device) -> Tensor:
    return torch.arange(bins + 1, dtype=torch.float64, device=device) / bins
