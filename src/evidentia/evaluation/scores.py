r"""The simple uncertainty scores that any network has, to stand beside the evidential ones.

Every score here is oriented alike: **higher means more unsure**. Four need only logits and are found by name
in `SCORES`; two are fitted on the features of the training set.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import normalize
from typing_extensions import Self

from evidentia._support.checks import (
    TensorLike,
    as_float_tensor,
    check_class_dim,
    check_finite,
    check_same_length,
    validation_enabled,
)
from evidentia._support.errors import EvidentiaError
from evidentia._support.registry import Registry
from evidentia._support.scalars import real_number, whole_number
from evidentia.evaluation._inputs import as_scores

SCORES: Registry[Callable[[TensorLike], Tensor]] = Registry("score")
"""Scores that are functions of the logits alone, by name."""

# Distances are computed for as many samples at a time as this many bytes hold.
_CHUNK_BYTES = 64 * 2**20


def max_softmax(logits: TensorLike) -> Tensor:
    r"""One minus the largest softmax probability, $1 - \max_k p_k$; higher is more unsure.

    (Hendrycks and Gimpel 2017.) Computed as the sum of the other probabilities, which keeps its digits where
    $p$ rounds to 1.

    Args:
        logits: shape `(..., K)`.

    Example:
        >>> from evidentia.evaluation import max_softmax
        >>> max_softmax([[2.0, 0.0], [0.0, 0.0], [50.0, 0.0]])
        tensor([1.1920e-01, 5.0000e-01, 1.9287e-22])
    """
    probs = _logits(logits).softmax(-1)
    return probs.scatter(-1, probs.argmax(-1, keepdim=True), 0).sum(-1)


def max_logit(logits: TensorLike) -> Tensor:
    r"""The largest logit, negated: $-\max_k z_k$; higher is more unsure.

    (Hendrycks et al. 2022.)

    Args:
        logits: shape `(..., K)`.

    Example:
        >>> from evidentia.evaluation import max_logit
        >>> max_logit([[2.0, 0.0], [0.5, 0.0]])
        tensor([-2.0000, -0.5000])
    """
    return -_logits(logits).amax(-1)


def energy(logits: TensorLike, temperature: float = 1.0) -> Tensor:
    r"""The free energy $-T \ln \sum_k e^{z_k / T}$; higher is more unsure.

    (Liu et al. 2020.)

    Args:
        logits: shape `(..., K)`.
        temperature: $T > 0$.

    Example:
        >>> from evidentia.evaluation import energy
        >>> energy([[2.0, 0.0], [0.0, 0.0]])
        tensor([-2.1269, -0.6931])
    """
    # Looked at and not replaced: one that is learnt keeps its gradient.
    real_number(temperature, "temperature", 0, open_low=True)
    return -temperature * torch.logsumexp(_logits(logits) / temperature, -1)


def softmax_entropy(logits: TensorLike) -> Tensor:
    r"""The entropy of the softmax to base K, $-\sum_k p_k \ln p_k / \ln K$, in [0, 1]; higher is more unsure.

    Args:
        logits: shape `(..., K)`.

    Example:
        >>> from evidentia.evaluation import softmax_entropy
        >>> softmax_entropy([[2.0, 0.0], [0.0, 0.0]])
        tensor([0.5271, 1.0000])
    """
    probs = _logits(logits).softmax(-1)
    nats: Tensor = torch.special.entr(probs).sum(-1)
    return nats / math.log(probs.shape[-1])


for _score in (max_softmax, max_logit, energy, softmax_entropy):
    SCORES.register(_score.__name__)(_score)


class KNNScore:
    r"""Distance to the k-th nearest training feature, $\|x - x_{(k)}\|_2$; higher is more unsure.

    (Sun et al. 2022.) Exact search, a block of samples at a time so that memory stays bounded.

    Args:
        k: which neighbour; the paper uses 50 for CIFAR-10, fewer for small training sets.
        normalized: scale every feature vector to length 1 first.

    Example:
        >>> from evidentia.evaluation import KNNScore
        >>> KNNScore(k=1).fit([[1.0, 0.0], [0.0, 1.0]]).score([[2.0, 0.0], [-1.0, 0.0]])
        tensor([0.0000, 1.4142])
    """

    def __init__(self, k: int = 50, *, normalized: bool = True) -> None:
        self.k = whole_number(k, "k", 1)
        self.normalized = normalized
        self._train: Tensor | None = None

    def fit(self, features: TensorLike, labels: TensorLike | None = None) -> Self:
        """Keep the training features, shape `(N, D)`; labels are not needed."""
        train = _features(features)
        if len(train) < self.k:
            raise EvidentiaError(
                f"the {self.k}-th nearest of {len(train)} training features was asked for; "
                f"pass at least {self.k} features or a smaller k"
            )
        self._train = self._scaled(train)
        return self

    @torch.no_grad()
    def score(self, features: TensorLike) -> Tensor:
        """The score of each sample, shape `(N,)`, higher is more unsure."""
        train = _fitted(self._train, self)
        query = self._scaled(_features(features, like=train))
        rows = max(1, _CHUNK_BYTES // (max(train.shape) * train.itemsize))
        return torch.cat([self._distance(block, train) for block in torch.split(query, rows)])

    def _distance(self, query: Tensor, train: Tensor) -> Tensor:
        # The fast search by matrix product loses the digits of small distances: measure the one found again.
        nearest = torch.cdist(query, train).topk(self.k, largest=False).indices[:, -1]
        distance: Tensor = torch.linalg.vector_norm(query - train[nearest], dim=-1)
        return distance

    def _scaled(self, features: Tensor) -> Tensor:
        return normalize(features, dim=-1) if self.normalized else features


class MahalanobisScore:
    r"""Squared Mahalanobis distance to the nearest class, $\min_c (x-\mu_c)^\top \Sigma^{-1} (x-\mu_c)$.

    Higher is more unsure. (Lee et al. 2018.) Class means $\mu_c$ and the covariance $\Sigma$ that all classes
    share are those of maximum likelihood on the training features, in float64. So that features which never
    vary, or more features than samples, leave it invertible, the covariance is shrunk to
    $(1 - s) \Sigma + s \, \mathrm{tr}(\Sigma) / D \cdot I$.

    Args:
        shrinkage: $s$ in [0, 1].

    Example:
        >>> from evidentia.evaluation import MahalanobisScore
        >>> train = [[0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [-1.0, 0.0]]
        >>> MahalanobisScore().fit(train).score([[0.0, 0.0], [2.0, 0.0]])
        tensor([0.0000, 8.0000], dtype=torch.float64)
    """

    def __init__(self, shrinkage: float = 1e-6) -> None:
        self.shrinkage = real_number(shrinkage, "shrinkage", 0, 1)
        self._means: Tensor | None = None
        self._factor: Tensor | None = None

    @torch.no_grad()
    def fit(self, features: TensorLike, labels: TensorLike | None = None) -> Self:
        """Fit to training features of shape `(N, D)` and their classes `(N,)`; one class without labels."""
        train = _features(features).double()
        if labels is None:
            index = torch.zeros(len(train), dtype=torch.long, device=train.device)
        else:
            given = as_scores(labels, "labels").to(train.device)
            check_same_length(train, given, "features and labels")
            index = torch.unique(given, return_inverse=True)[1]
        sums = train.new_zeros(int(index.max()) + 1, train.shape[1]).index_add_(0, index, train)
        means = sums / index.bincount().unsqueeze(-1)
        residual = train - means[index]
        covariance = residual.T @ residual / len(train)
        spread = covariance.trace() / len(covariance)
        shrunk = (1 - self.shrinkage) * covariance
        shrunk.diagonal().add_(self.shrinkage * spread)
        factor, failed = torch.linalg.cholesky_ex(shrunk)
        if int(failed):
            raise EvidentiaError(
                f"the covariance of {len(train)} features of dimension {train.shape[1]} cannot be inverted "
                f"with shrinkage {self.shrinkage}; pass more samples or a larger shrinkage"
            )
        self._means, self._factor = means, factor
        return self

    @torch.no_grad()
    def score(self, features: TensorLike) -> Tensor:
        """The score of each sample, shape `(N,)`, float64, higher is more unsure."""
        means, factor = _fitted(self._means, self), _fitted(self._factor, self)
        query = _features(features, like=means)
        whitened, centres = (
            torch.linalg.solve_triangular(factor, points.T, upper=False).T for points in (query, means)
        )
        exact = "donot_use_mm_for_euclid_dist"
        return torch.cdist(whitened, centres, compute_mode=exact).amin(-1).square()


def _logits(logits: TensorLike) -> Tensor:
    given = as_float_tensor(logits, "logits")
    check_class_dim(given, "logits")
    if validation_enabled():
        check_finite(given, "logits")
    return given


def _features(features: TensorLike, like: Tensor | None = None) -> Tensor:
    given = as_float_tensor(features, "features").detach()
    if given.ndim != 2 or 0 in given.shape:
        raise EvidentiaError(
            f"features must have shape (N, D) with N and D at least 1, got {tuple(given.shape)}; "
            "flatten each sample to a vector"
        )
    if like is not None and given.shape[1] != like.shape[1]:
        raise EvidentiaError(f"features must have {like.shape[1]} columns as in fit, got {given.shape[1]}")
    if validation_enabled():
        check_finite(given, "features")
    if like is not None:
        return given.to(like)
    return given.float() if given.itemsize < 4 else given


def _fitted(part: Tensor | None, score: object) -> Tensor:
    if part is None:
        raise EvidentiaError(f"this {type(score).__name__} is not fitted; call fit(features) before score")
    return part
