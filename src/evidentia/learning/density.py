"""How familiar a sample's features are, measured against those of the training set."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from evidentia._support.checks import check_finite, check_tensor
from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import real_number, whole_number
from evidentia.opinions.special import as_double


class GaussianDensity(nn.Module):
    r"""A mixture of one Gaussian a class over feature vectors, with a shared, shrunk covariance.

    $\ell(x) = \ln \frac1C \sum_c \mathcal{N}(x; \mu_c, \Sigma)$. The familiarity is $\ell$ scaled to [0, 1]: 0 for what
    is as strange as the strangest training sample or stranger, 1 from the median training sample on. Those two marks
    are taken from densities that were fitted without the samples they are taken from (cross-fitting), because a
    density makes its own training samples look more familiar than any new one will be.

    Args:
        shrinkage: share of the covariance replaced by a multiple of the identity, which keeps it invertible when there
            are fewer samples than dimensions.
        folds: into how many parts the samples are split for cross-fitting.

    Example:
        >>> features = torch.randn(60, 3) + torch.tensor([[0.0], [9.0]]).repeat(30, 1)
        >>> density = GaussianDensity().fit(features, torch.tensor([0, 1]).repeat(30))
        >>> density.familiarity(torch.tensor([[0.0, 0.0, 0.0], [9.0, 9.0, 9.0], [0.0, 9.0, 0.0]]))
        tensor([1., 1., 0.])
    """

    means: Tensor
    whitening: Tensor
    log_det: Tensor
    marks: Tensor

    _buffer_names = ("means", "whitening", "log_det", "marks")

    def __init__(self, shrinkage: float = 0.5, folds: int = 5) -> None:
        super().__init__()
        self.shrinkage = real_number(shrinkage, "shrinkage", 0, 1, open_low=True)
        self.folds = whole_number(folds, "folds", 2)
        for name in self._buffer_names:
            self.register_buffer(name, torch.empty(0))

    @torch.no_grad()
    def fit(self, features: Tensor, labels: Tensor | None = None) -> GaussianDensity:
        """Estimate the density of features of shape `(N, D)`; without labels, by a single Gaussian."""
        check_tensor(features, "features")
        if labels is not None:
            check_tensor(labels, "labels")
        if features.ndim != 2 or len(features) < 2:
            raise EvidentiaError(
                "a density needs features of shape (samples, dimensions) with at least 2 samples, "
                f"got {tuple(features.shape)}"
            )
        check_finite(features, "features")
        exact = as_double(features)
        given = torch.zeros(len(exact)) if labels is None else labels
        if given.shape != exact.shape[:1]:
            raise EvidentiaError(f"labels need shape ({len(exact)},), got {tuple(given.shape)}")
        groups = torch.unique(given.to(exact.device), return_inverse=True)[1]
        if int(torch.bincount(groups).max()) < 2:
            # A spread needs classes of two samples or more.
            groups = torch.zeros_like(groups)

        left_out = torch.full_like(exact[:, 0], torch.nan)
        fold = _folds(groups, self.folds)
        for part in range(self.folds):
            # A class that is left out whole would look stranger than it is.
            known = torch.isin(groups, groups[fold != part])
            inside = (fold == part) & known
            if bool(inside.any()):
                self._estimate(exact[fold != part], groups[fold != part])
                left_out[inside] = self._log_density(exact[inside])
        self.marks = torch.stack([left_out[~left_out.isnan()].min(), left_out.nanmedian()])
        self._estimate(exact, groups)
        return self

    @property
    def fitted(self) -> bool:
        """Whether `fit` has been called."""
        return self.means.numel() > 0

    @torch.no_grad()
    def log_density(self, features: Tensor) -> Tensor:
        """The log density of features of shape `(N, D)`."""
        if not self.fitted:
            raise EvidentiaError("the density is not fitted; train with fit(), or call calibrate() after your own loop")
        check_tensor(features, "features")
        if features.ndim != 2 or features.shape[1] != self.means.shape[1]:
            raise EvidentiaError(
                f"features need shape (samples, {self.means.shape[1]}) as when fitted, got {tuple(features.shape)}"
            )
        return self._log_density(as_double(features))

    def familiarity(self, features: Tensor) -> Tensor:
        """How familiar features of shape `(N, D)` are, in [0, 1]."""
        return self._scaled(features).clamp(0, 1).to(features.dtype)

    def strangeness(self, features: Tensor) -> Tensor:
        """How far features of shape `(N, D)` are beyond the strangest training sample, on the scale of familiarity."""
        most = torch.finfo(features.dtype).max
        return (-self._scaled(features)).clamp(0, most).to(features.dtype)

    def _scaled(self, features: Tensor) -> Tensor:
        density = self.log_density(features)
        low, high = as_double(self.marks).unbind()
        span = (high - low).clamp(min=torch.finfo(torch.float32).tiny)
        return torch.where(density >= high, torch.ones_like(density), (density - low) / span)

    def _estimate(self, exact: Tensor, groups: Tensor) -> None:
        present, group_of = torch.unique(groups, return_inverse=True)
        counts = torch.bincount(group_of).to(exact).unsqueeze(-1)
        means = exact.new_zeros(len(present), exact.shape[1]).index_add(0, group_of, exact) / counts
        centred = exact - means[group_of]
        covariance = centred.T @ centred / max(1, len(exact) - len(present))
        # Features are float32 at heart: a spread below their rounding is none.
        rounding = (exact * torch.finfo(torch.float32).eps).square().mean() + torch.finfo(torch.float32).tiny
        scale = torch.maximum(covariance.diagonal().mean(), rounding)
        identity = torch.eye(exact.shape[1], dtype=exact.dtype, device=exact.device)
        factor = torch.linalg.cholesky((1 - self.shrinkage) * covariance + self.shrinkage * scale * identity)
        self.means = means
        self.whitening = torch.linalg.inv(factor)
        self.log_det = factor.diagonal().log().sum()

    def _log_density(self, exact: Tensor) -> Tensor:
        # In float64 even if the module was moved to another dtype, and without the shortcut that loses digits.
        means, whitening, log_det = (as_double(part) for part in (self.means, self.whitening, self.log_det))
        exactly = "donot_use_mm_for_euclid_dist"
        distance = torch.cdist(exact @ whitening.T, means @ whitening.T, compute_mode=exactly)
        constant = 0.5 * exact.shape[1] * math.log(2 * math.pi) + log_det + math.log(len(means))
        return torch.logsumexp(-0.5 * distance.square(), dim=-1) - constant

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        # The shapes are known only once fitted, so take them from what is loaded.
        for name in self._buffer_names:
            if prefix + name in state_dict:
                setattr(self, name, torch.empty_like(state_dict[prefix + name], device=getattr(self, name).device))
        super()._load_from_state_dict(state_dict, prefix, *args)


def _folds(groups: Tensor, count: int) -> Tensor:
    """Number the samples of each group in turn, so that every fold has its share of every group."""
    order = torch.argsort(groups, stable=True)
    starts = torch.cumsum(torch.bincount(groups), 0) - torch.bincount(groups)
    position = torch.empty_like(groups)
    position[order] = torch.arange(len(groups), device=groups.device) - starts[groups[order]]
    return position % count
