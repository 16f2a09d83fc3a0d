"""The weights of the pool: one a sample or one a cluster, moved by normalised steps."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import torch
from torch import Tensor

from evidentia._support.checks import check_finite, check_unit_interval, validation_enabled
from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import real_number, whole_number
from evidentia.opinions.special import as_double
from evidentia.semisup.clusters import share

# Samples of at least this weight count as kept. Weights start at 1 and move towards 0, and with `pu` uncertainty a
# sample of weight 0.5 is as probably of the labeled samples' kind as of another.
KEPT_FROM = 0.5
# Weights move by about `rate` a visit, from 1: after fewer visits they still say more of the start than of the sample.
VISITS = 5
# How often the likeliest sample may be expected in a batch for samples to be drawn at most once each.
_SELDOM = 0.5
# Beyond so many rows `torch.multinomial`, which gives every row a number, takes longer than a step of a small network.
_MULTINOMIAL = 2**17


class SampleWeights:
    r"""Weights $w \in [0, 1]$ of unlabeled samples, all 1 at the start.

    A step is given the gradient g of the loss on the clean set in the weights of a batch. Its size says little and
    changes by orders of magnitude during training, so it is normalised by its mean absolute value:

    $$w_j \leftarrow \mathrm{clip}\Big(w_j - \beta\, \frac{g_j}{\frac1B \sum_i |g_i|},\; 0,\; 1\Big)$$

    With clusters (CRW), samples of a cluster have one weight, and $g_j$ is the mean over the cluster's samples in the
    batch. A sample that is in a batch twice counts as one, with its mean gradient.

    Args:
        size: the number of samples in the pool.
        rate: $\beta$.
        start: the weights to begin with, one for all or one a sample.
        assignment: the cluster of every sample, for one weight a cluster.
        clusters: the number of clusters; by default as many as there are in the assignment.
        dtype: of the weights.
        device: of the weights.

    Attributes:
        visits: how many steps each sample has been part of, shape `(size,)`.

    Example:
        >>> weights = SampleWeights(4, rate=0.5)
        >>> weights.step(torch.tensor([0, 2]), torch.tensor([0.003, -0.001]))
        >>> weights.per_sample
        tensor([0.2500, 1.0000, 1.0000, 1.0000])
        >>> weights.recluster(torch.tensor([0, 0, 1, 1]))
        >>> weights.per_sample, weights.of(torch.tensor([1, 3]))
        (tensor([0.6250, 0.6250, 1.0000, 1.0000]), tensor([0.6250, 1.0000]))
    """

    def __init__(
        self,
        size: int,
        rate: float = 0.05,
        *,
        start: float | Tensor = 1.0,
        assignment: Tensor | None = None,
        clusters: int | None = None,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> None:
        whole_number(size, "the number of samples to weigh", 1)
        self.rate = real_number(rate, "the rate of the weights", 0, 1, open_low=True)
        self.values = torch.ones(size, dtype=dtype, device=device)
        self.visits = torch.zeros(size, dtype=torch.int64, device=device)
        self.assignment: Tensor | None = None
        self.replace(start if isinstance(start, Tensor) else torch.full((size,), float(start)))
        if assignment is not None:
            self.recluster(assignment, clusters)

    def __len__(self) -> int:
        """The number of samples."""
        return len(self.visits)

    @property
    def per_sample(self) -> Tensor:
        """The weight of every sample, shape `(size,)`, as a copy."""
        return self.values.clone() if self.assignment is None else self.values[self.assignment]

    def of(self, indices: Tensor) -> Tensor:
        """The weights of some samples, of the shape of their indices."""
        return self.values[indices if self.assignment is None else self.assignment[indices]]

    @torch.no_grad()
    def step(self, indices: Tensor, gradient: Tensor) -> None:
        """Move the weights of a batch against its gradient; a gradient of 0 moves nothing.

        Args:
            indices: the samples of the batch, shape `(B,)`.
            gradient: the derivative of what is to be made small in the weight of each, shape `(B,)`.
        """
        if indices.ndim != 1 or gradient.shape != indices.shape:
            raise EvidentiaError(
                f"a step needs one index and one gradient a sample, got shapes {tuple(indices.shape)} and "
                f"{tuple(gradient.shape)}"
            )
        if validation_enabled():
            check_finite(gradient, "the gradient of the weights")
        groups = indices if self.assignment is None else self.assignment[indices]
        moved, position = torch.unique(groups, return_inverse=True)
        # In float64, where neither tiny nor huge gradients leave the range when they are added up.
        shared = share(as_double(gradient), position, len(moved))
        size = shared.abs().mean() if len(moved) else shared.sum()
        if float(size) > 0:
            values = as_double(self.values[moved]) - self.rate * shared / size
            self.values[moved] = values.clamp(0, 1).to(self.values)
        self.visits[torch.unique(indices)] += 1

    @torch.no_grad()
    def note(self, indices: Tensor, weights: Tensor) -> None:
        """Keep the weights that a method of its own kind has given a batch; only without clusters."""
        if self.assignment is not None:
            raise EvidentiaError("weights that are shared by clusters are moved by steps, not noted sample by sample")
        self.values[indices] = weights.detach().to(self.values).clamp(0, 1)
        self.visits[torch.unique(indices)] += 1

    @torch.no_grad()
    def replace(self, weights: Tensor) -> None:
        """Give every sample a weight, as `1 - u` or those of an oracle; samples of a cluster get their mean."""
        if weights.shape != self.visits.shape:
            raise EvidentiaError(
                f"one weight for each of {len(self)} samples is needed, got shape {tuple(weights.shape)}"
            )
        if validation_enabled():
            check_unit_interval(weights, "weights")
        given = weights.detach().to(self.values)
        self.values = given.clone() if self.assignment is None else self._shared(given, len(self.values))

    @torch.no_grad()
    def recluster(self, assignment: Tensor, clusters: int | None = None) -> None:
        """Share weights by other clusters than before: a cluster's is the mean of what its samples had."""
        if assignment.shape != self.visits.shape or assignment.dtype != torch.int64:
            raise EvidentiaError(
                f"one cluster for each of {len(self)} samples is needed, as int64, got {assignment.dtype} of shape "
                f"{tuple(assignment.shape)}"
            )
        before = self.per_sample
        self.assignment = assignment.detach().to(self.visits.device, copy=True)
        self.values = self._shared(before, clusters)

    def sampling_probabilities(self, kept_from: float = 0.0) -> Tensor:
        r"""$w_j / \sum_i w_i$ for every sample, in float64: to draw batches by, in place of weighing the loss.

        Args:
            kept_from: if more than 0, all samples of at least that weight are as probable, and no others.

        Raises:
            EvidentiaError: if there is nothing to draw.
        """
        weights = as_double(self.per_sample)
        if kept_from > 0:
            weights = (weights >= kept_from).to(weights)
        total = weights.sum()
        if not float(total) > 0:
            given = f"below {kept_from:g}" if kept_from > 0 else "0"
            raise EvidentiaError(
                f"all weights of the pool are {given}, so no sample of it can be drawn; train without the pool from "
                "here, or look at why everything in it was thrown out"
            )
        return weights / total

    def rarely_visited(self, minimum: int = VISITS) -> int:
        """The number of samples whose weight was part of fewer steps than `minimum`, with a warning if there are any.

        With clusters, a weight is visited with every sample of its cluster.
        """
        visits = self.visits
        if self.assignment is not None:
            visits = torch.zeros_like(self.visits).index_add(0, self.assignment, self.visits)[self.assignment]
        rare = int((visits < minimum).sum())
        if rare:
            warnings.warn(
                f"the weights of {rare} of {len(self)} samples were part of fewer than {minimum} steps and say little "
                "about them; train longer, update weights more often, use larger batches or share weights by clusters",
                stacklevel=2,
            )
        return rare

    def state_dict(self) -> dict[str, Tensor]:
        """Everything, as tensors; `assignment` is empty if there are no clusters."""
        assignment = self.visits.new_empty(0) if self.assignment is None else self.assignment
        return {"values": self.values.clone(), "visits": self.visits.clone(), "assignment": assignment.clone()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up what `state_dict` gave, if it is of a pool of the same size."""
        if state.keys() != {"values", "visits", "assignment"}:
            raise EvidentiaError(
                f"a state of weights holds values, visits and assignment, got {', '.join(sorted(state)) or 'nothing'}"
            )
        values, visits, assignment = state["values"], state["visits"], state["assignment"]
        clustered = len(assignment) > 0
        fits = visits.shape == self.visits.shape and values.ndim == 1
        fits = fits and (assignment.shape == visits.shape if clustered else values.shape == visits.shape)
        if not fits or (clustered and (int(assignment.min()) < 0 or int(assignment.max()) >= len(values))):
            raise EvidentiaError(
                f"this state is of other weights: it is for {len(visits)} samples and the pool has {len(self)}, or its "
                "weights are not one a sample or one a cluster"
            )
        check_unit_interval(values, "the weights of the state")
        self.values = values.to(self.values, copy=True)
        self.visits = visits.to(self.visits, copy=True)
        self.assignment = assignment.to(self.visits, copy=True) if clustered else None

    def _shared(self, weights: Tensor, clusters: int | None) -> Tensor:
        if self.assignment is None:
            raise AssertionError("only weights with clusters are shared")
        return share(as_double(weights), self.assignment, clusters).clamp(0, 1).to(weights)


def drawn_rows(chances: Tensor, count: int) -> Tensor:
    """The rows of a batch, each drawn about as often as its probability says, shape `(count,)`.

    Of a large pool they are drawn one after the other, each at most once. In a pool that is small beside the batch
    trusted samples would run out that way, and what is not trusted would fill the batch in their place. There, points
    at even steps through the sums of probabilities give each row as often as is expected, but for rounding.

    Args:
        chances: the probability of every row, shape `(n,)`, in float64.
        count: the size of the batch.

    Example:
        >>> drawn_rows(torch.tensor([0.0, 0.5, 0.5], dtype=torch.float64), 4).bincount().tolist()
        [0, 2, 2]
    """
    if count * float(chances.max()) <= _SELDOM:
        if len(chances) <= _MULTINOMIAL:
            return torch.multinomial(chances, count)
        return _distinct_rows(chances, count)
    order = torch.randperm(len(chances), device=chances.device)
    points = (torch.arange(count, device=chances.device) + torch.rand((), device=chances.device)) / count
    return order[_rows_at(points, chances[order])]


def _distinct_rows(chances: Tensor, count: int) -> Tensor:
    """Rows drawn one after the other by their probabilities, where one that has been drawn before is passed over."""
    rows = torch.empty(0, dtype=torch.int64, device=chances.device)
    while len(rows) < count:
        points = torch.rand(2 * count, dtype=torch.float64, device=chances.device)
        rows = torch.cat([rows, _rows_at(points, chances)])
        different, which = torch.unique(rows, return_inverse=True)
        places = torch.arange(len(rows), device=rows.device)
        first = torch.full_like(different, len(rows)).scatter_reduce_(0, which, places, "amin")
        rows = rows[first.sort().values]
    return rows[:count]


def _rows_at(points: Tensor, chances: Tensor) -> Tensor:
    """The rows at points between 0 and 1 through the sums of their probabilities."""
    sums = chances.cumsum(0)
    places = torch.searchsorted(sums, points.to(sums) * sums[-1], right=True)
    # Rounding may leave the last sum below the last point, and a row without a chance is never to be drawn.
    return places.clamp(max=int((chances > 0).nonzero().max()))
