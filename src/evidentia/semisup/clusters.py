"""Cluster re-weighting (CRW): samples that look alike share one weight."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from evidentia._support.checks import check_finite, check_tensor, validation_enabled
from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import whole_number
from evidentia.opinions.special import as_double

# Rows whose distances to all centres are held at once, in float64.
_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Clusters:
    r"""K-means clusters of a pool (thesis 3.4, "Weight Sharing and Regularization").

    Attributes:
        assignment: the cluster of every sample, shape `(n,)`, int64.
        centres: shape `(K, D)`, float64.
        inertia: the mean squared distance to the nearest centre after the start and after every step; it never rises.
    """

    assignment: Tensor
    centres: Tensor
    inertia: tuple[float, ...]

    def __len__(self) -> int:
        """The number of clusters."""
        return len(self.centres)

    @property
    def sizes(self) -> Tensor:
        """How many samples are in each cluster, shape `(K,)`."""
        return torch.bincount(self.assignment, minlength=len(self))

    def nearest(self, features: Tensor) -> Tensor:
        """The cluster of other samples, given their features of shape `(m, D)`."""
        if features.ndim != 2 or features.shape[1] != self.centres.shape[1]:
            raise EvidentiaError(
                f"features need shape (samples, {self.centres.shape[1]}) as when clustered, got {tuple(features.shape)}"
            )
        middle = self.centres.mean(0)
        return _lloyd(as_double(features) - middle, self.centres - middle)[0]


def kmeans(features: Tensor, clusters: int = 20, seed: int = 0, *, steps: int = 100, restarts: int = 3) -> Clusters:
    r"""Find K centres $c_k$ with a small $\sum_j \min_k \lVert h_j - c_k \rVert^2$.

    Starts by greedy k-means++ (Arthur and Vassilvitskii, SODA 2007): the next centre is drawn in proportion to the
    squared distance from those there are, the best of $2 + \lfloor \ln K \rfloor$ draws. Then Lloyd's steps until no
    sample changes its cluster. A centre that lost all its samples moves to the sample that is farthest from its own.
    The best of a few restarts is kept. The order of the samples does not matter, as they are sorted first.

    Args:
        features: shape `(n, D)`.
        clusters: K, 20 in the thesis; of a smaller pool every sample is a cluster.
        seed: fixes the draws; PyTorch's global random state is neither used nor changed.
        steps: at most so many of Lloyd's steps.
        restarts: how often it is done, from starts of their own.

    Example:
        >>> features = torch.tensor([[0.0], [0.1], [5.0], [5.1], [9.0]])
        >>> found = kmeans(features, clusters=3)
        >>> sorted(found.centres.flatten().round(decimals=2).tolist()), found.sizes.sort()[0].tolist()
        ([0.05, 5.05, 9.0], [1, 2, 2])
    """
    check_tensor(features, "features")
    if features.ndim != 2 or not features.numel():
        raise EvidentiaError(f"features of shape (samples, dimensions) are needed, got {tuple(features.shape)}")
    for name, value in (("clusters", clusters), ("steps", steps), ("restarts", restarts)):
        whole_number(value, name, 1)
    if validation_enabled():
        check_finite(features, "the features to be clustered")
    features = features.detach()
    rng = torch.Generator().manual_seed(whole_number(seed, "seed", 0))
    order = _order(features, rng)
    # About their mean, so that little is lost when squared distances are computed by products.
    mean = torch.stack([as_double(part).sum(0) for part in features.split(_ROWS)]).sum(0) / len(features)
    ordered = features[order] - mean.to(features)
    runs = [_run(ordered, min(clusters, len(features)), steps, rng) for _ in range(restarts)]
    best = min(runs, key=lambda run: run.inertia[-1])
    assignment = torch.empty_like(best.assignment)
    assignment[order] = best.assignment
    return Clusters(assignment, best.centres + mean.to(features), best.inertia)


def share(values: Tensor, assignment: Tensor, clusters: int | None = None) -> Tensor:
    """The mean of the values of each cluster's samples, shape `(K,)`; 0 for a cluster without any.

    Args:
        values: one a sample, such as weights or gradients, shape `(n,)`.
        assignment: the cluster of every sample.
        clusters: K; by default as many as there are in the assignment.

    Example:
        >>> share(torch.tensor([1.0, 2.0, 6.0]), torch.tensor([0, 1, 1]), clusters=3)
        tensor([1., 4., 0.])
    """
    check_tensor(values, "values")
    check_tensor(assignment, "assignment")
    if values.ndim != 1 or values.shape != assignment.shape:
        raise EvidentiaError(
            f"one value and one cluster a sample are needed, got shapes {tuple(values.shape)} and "
            f"{tuple(assignment.shape)}"
        )
    counts = torch.bincount(assignment, minlength=clusters or 0)
    if clusters is not None and len(counts) > clusters:
        raise EvidentiaError(f"there are {clusters} clusters, but one of the samples is in cluster {len(counts) - 1}")
    sums = values.new_zeros(len(counts)).index_add(0, assignment, values)
    return sums / counts.clamp(min=1)


def purity(assignment: Tensor, truth: Tensor) -> float:
    r"""How far clusters are of one kind each: $\frac1n \sum_k \max_t n_{kt}$, for scoring only.

    Args:
        assignment: the cluster of every sample.
        truth: what each sample is: its class, or whether it is OOD.

    Example:
        >>> purity(torch.tensor([0, 0, 0, 1]), torch.tensor([True, True, False, False]))
        0.75
    """
    check_tensor(assignment, "assignment")
    check_tensor(truth, "truth")
    if assignment.ndim != 1 or assignment.shape != truth.shape or not len(truth):
        raise EvidentiaError(
            f"one cluster and one truth a sample are needed, got shapes {tuple(assignment.shape)} and "
            f"{tuple(truth.shape)}"
        )
    cluster, kind = (torch.unique(x, return_inverse=True)[1] for x in (assignment, truth))
    kinds = int(kind.max()) + 1
    table = torch.bincount(cluster * kinds + kind, minlength=kinds * (int(cluster.max()) + 1)).view(-1, kinds)
    return int(table.amax(1).sum()) / len(truth)


def _order(features: Tensor, rng: torch.Generator) -> Tensor:
    """An order of the samples that depends on what they are, not on where they stand."""
    direction = torch.rand(features.shape[1], generator=rng, dtype=torch.float64).to(features.device)
    # Each row is summed on its own: in a matrix product, the rounding could depend on the row's place.
    projections = [(as_double(part) * as_double(direction)).sum(1) for part in features.split(_ROWS)]
    return torch.argsort(torch.cat(projections), stable=True)


def _run(features: Tensor, clusters: int, steps: int, rng: torch.Generator) -> Clusters:
    centres = _start(features, clusters, rng)
    assignment, distances, sums = _lloyd(features, centres)
    inertia = [float(distances.mean())]
    for _ in range(steps):
        moved = _means(features, centres, assignment, distances, sums)
        new, distances, sums = _lloyd(features, moved)
        # Only rounding can make it worse, and then there is nothing left to gain.
        if float(distances.mean()) > inertia[-1]:
            break
        settled = torch.equal(new, assignment)
        centres, assignment = moved, new
        inertia.append(float(distances.mean()))
        if settled:
            break
    return Clusters(assignment, centres, tuple(inertia))


def _start(features: Tensor, clusters: int, rng: torch.Generator) -> Tensor:
    """Greedy k-means++."""
    candidates = 2 + int(math.log(clusters))
    first = int(torch.randint(len(features), (1,), generator=rng))
    centres = as_double(features[first : first + 1])
    nearest = _squared_distances(features, centres)[:, 0]
    for _ in range(1, clusters):
        total = nearest.cumsum(0)
        # A draw falls in a sample's stretch of the sum with its share of it. If all is 0, every sample lies on a centre
        # already and it does not matter which is next.
        draws = torch.rand(candidates, generator=rng, dtype=torch.float64).to(total) * total[-1]
        rows = torch.searchsorted(total, draws, right=True).clamp(max=len(features) - 1)
        tried = torch.minimum(_squared_distances(features, as_double(features[rows])), nearest[:, None])
        best = int(tried.sum(0).argmin())
        centres = torch.cat([centres, as_double(features[rows[best]])[None]])
        nearest = tried[:, best]
    return centres


def _lloyd(features: Tensor, centres: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The nearest centre of every sample, the squared distance to it, and the sum of the samples of each centre."""
    sums = torch.zeros_like(centres)
    assignments, distances = [], []
    for part in features.split(_ROWS):
        exact = as_double(part)
        distance, nearest = _squared_distances(exact, centres).min(1)
        sums.index_add_(0, nearest, exact)
        assignments.append(nearest)
        distances.append(distance)
    return torch.cat(assignments), torch.cat(distances), sums


def _means(features: Tensor, centres: Tensor, assignment: Tensor, distances: Tensor, sums: Tensor) -> Tensor:
    counts = torch.bincount(assignment, minlength=len(centres))
    means = torch.where(counts[:, None] > 0, sums / counts.clamp(min=1)[:, None], centres)
    empty = (counts == 0).nonzero().flatten()
    if len(empty):
        farthest = distances.topk(len(empty)).indices
        means[empty] = as_double(features[farthest])
    return means


def _squared_distances(features: Tensor, centres: Tensor) -> Tensor:
    parts = []
    for part in features.split(_ROWS):
        exact = as_double(part)
        squares = exact.square().sum(1, keepdim=True) + centres.square().sum(1)
        parts.append(torch.addmm(squares, exact, centres.T, alpha=-2).clamp_(min=0))
    return torch.cat(parts)
