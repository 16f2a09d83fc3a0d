"""The thesis' two methods: weights learnt as hyperparameters, by how they change the loss on clean samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from evidentia._support.errors import EvidentiaError
from evidentia.learning import frozen_statistics
from evidentia.semisup.choices import Norm, Scope, as_flag, check_scope
from evidentia.semisup.clusters import kmeans
from evidentia.semisup.hypergradients.hypergradient import (
    HyperGradient,
    InnerProblem,
    LastLayerProblem,
    ift_gradient,
    ift_gradient_from,
    meta_gradient,
    meta_gradient_from,
)
from evidentia.semisup.method_settings import check_real, check_whole
from evidentia.semisup.networks.features import pool_features
from evidentia.semisup.regulariser import WeightRegulariser, as_regulariser
from evidentia.semisup.robust.base import (
    ROBUST,
    Apply,
    Pool,
    Robust,
    Update,
    check_apply,
)
from evidentia.semisup.robust.by_uncertainty import (
    Made,
    Uncertainty,
    estimate,
    estimator_state,
    estimator_uses,
    load_estimator_state,
    made_of,
)
from evidentia.semisup.uncertainty import PoolUncertainty


@dataclass(kw_only=True, eq=False)
class ByGradient(Robust, ABC):
    r"""Weights moved against the gradient of $L_V + \lambda_u \mathrm{Un}(w, u) + \lambda_1 |w|$ (thesis 3.4).

    The hypergradient is divided by its mean absolute value before the regulariser's gradient is added: its own size
    says little, and differs by orders of magnitude from one objective to the next.

    Args:
        every: L, updates from one change of the weights to the next.
        scope: "last" differentiates the last layer alone, in closed form; "full" the network.
        joint: whether clean samples are normalised together with the weighted pool (joint-V). Needs norm "weighted":
            plain batch norm takes no weights, and without any batch norm joint would do nothing, so both are refused.
        clusters: K of the weights' sharing (CRW); None for one weight a sample.
        regulariser: what keeps weights in bounds; a `WeightRegulariser`, or its settings by name. Its coefficients are
            relative to a hypergradient of mean size 1.
        uncertainty: u of the regulariser, a name, an estimator or a function of an `evidentia.semisup.PoolView`; not
            asked if its coefficient is 0.
        inner_rate: $\alpha$ of the inner steps.
        weight_rate: $\beta$, how far weights move in a step, at most 1.
        apply: how weights are used, "loss", "sample" or "keep".
        refresh_every: updates between two clusterings of the network's features, and two estimates of u.
    """

    every: int = 5
    scope: Scope = "last"
    joint: bool = False
    clusters: int | None = 20
    regulariser: WeightRegulariser = field(default_factory=WeightRegulariser)
    uncertainty: Uncertainty = "kernel"
    inner_rate: float = 0.1
    weight_rate: float = 0.05
    apply: Apply = "loss"
    refresh_every: int = 200
    _made_: Made = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        """Require settings in their range."""
        check_apply(self.apply)
        for name in ("every", "refresh_every"):
            check_whole(self, name, 1)
        if self.clusters is not None:
            check_whole(self, "clusters", 1, ", or None for a weight for each sample")
        check_real(self, "inner_rate", open_low=True)
        check_real(self, "weight_rate", 1, open_low=True)
        check_scope(self.scope)
        self.joint = as_flag(self.joint, "joint")
        self.regulariser = as_regulariser(self.regulariser)
        if self.regulariser.uncertainty:
            self._made_ = made_of(self.uncertainty)

    @property
    def estimator(self) -> PoolUncertainty | None:
        """What estimates u, if it is asked for."""
        if not self.regulariser.uncertainty:
            return None
        self._made_ = made = made_of(self.uncertainty, self._made_)
        return made[1]

    def last_layer_uses(self) -> dict[str, str]:
        """For its closed form, and for what is alike in the pool."""
        uses = {"scope='last'": "scope='full'"} if self.scope == "last" else {}
        if self.clusters is not None:
            uses[f"clusters={self.clusters}"] = "clusters=None"
        return uses | estimator_uses(self.estimator, "confidence")

    def usual_norm(self, labeled: int) -> Norm:
        """Weights in the statistics, too, as the thesis has it."""
        return "weighted"

    def needs_weighted_norm(self) -> str | None:
        """For joint-V, where clean samples are normalised by the weights of the pool."""
        return "joint=True" if self.joint else None

    @abstractmethod
    def hypergradient(self, problem: InnerProblem) -> HyperGradient:
        """By the network, or by its last layer, as `scope` says."""

    @abstractmethod
    def hypergradient_from(self, problem: LastLayerProblem) -> HyperGradient:
        """By the last layer, from features that are there."""

    def attach(self, pool: Pool) -> None:
        """Set how far the weights move."""
        pool.weights.rate = self.weight_rate

    def start(self, pool: Pool) -> None:
        """Cluster the samples as they are, for the network has learnt nothing yet."""
        self._cluster(pool)
        if self.estimator is not None:
            pool.uncertainty = estimate(self.estimator, pool)

    def refresh(self, pool: Pool) -> None:
        """Cluster by what the network has learnt, and estimate u again if the network has a say in it."""
        self._cluster(pool, pool.last.network)
        if self.estimator is not None and self.estimator.refresh:
            pool.uncertainty = estimate(self.estimator, pool)

    def weigh(self, pool: Pool, update: Update) -> Tensor:
        """Move the weights of the batch, in every `every`-th update."""
        if update.number % self.every == 0:
            slope = self._slope(pool, update).gradient
            if not bool(slope.isfinite().all()):
                raise EvidentiaError(
                    f"the hypergradient became NaN or infinite in update {update.number}; lower inner_rate, which is "
                    f"{self.inner_rate:g}, and of ift the terms of its series"
                )
            slope = normalised(slope)
            uncertainty = None if pool.uncertainty is None else pool.uncertainty[update.rows]
            slope = slope + self.regulariser.gradient(pool.weights.of(update.rows), uncertainty)
            pool.weights.step(update.rows, slope)
        return pool.weights.of(update.rows) if self.applied == "loss" else update.weights

    def finish(self, pool: Pool) -> None:
        """Warn if weights of single samples were moved too rarely to say something about them."""
        if self.clusters is None:
            pool.weights.rarely_visited()

    def state_dict(self) -> dict[str, Tensor]:
        """What the estimator found beyond the uncertainty itself."""
        return estimator_state(self.estimator)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take it up."""
        load_estimator_state(self.estimator, state)

    def _cluster(self, pool: Pool, network: nn.Module | None = None) -> None:
        if self.clusters is not None:
            features = pool_features(pool.unlabeled, network, pool.batch_size)
            # Weights are shared for a while only, so a rough clustering of a large pool is as good as the best.
            found = kmeans(features, self.clusters, steps=20, restarts=1)
            pool.weights.recluster(found.assignment, len(found))

    def _slope(self, pool: Pool, update: Update) -> HyperGradient:
        if self.scope == "full" or self.joint:
            return self.hypergradient(update.problem(pool, update.weights, self.inner_rate, joint=self.joint))
        clean = update.hidden[0]
        if not pool.clean_is_labeled:
            with torch.no_grad(), frozen_statistics(pool.last.network):
                clean = pool.last.hidden_and_logits(update.clean[0])[0]
        return self.hypergradient_from(update.last_layer_problem(pool, clean, self.inner_rate))


@ROBUST.register("meta")
@dataclass(kw_only=True, eq=False)
class Meta(ByGradient):
    """R-Meta: by one step of training and the loss after it ("Meta approximation" in chapter 3).

    Example:
        >>> Meta(scope="full", clusters=None).every
        5
    """

    def hypergradient(self, problem: InnerProblem) -> HyperGradient:
        """Differentiate one step."""
        return meta_gradient(problem, self.scope)

    def hypergradient_from(self, problem: LastLayerProblem) -> HyperGradient:
        """Differentiate one step of the last layer."""
        return meta_gradient_from(problem)


@ROBUST.register("ift")
@dataclass(kw_only=True, eq=False)
class ImplicitDifferentiation(ByGradient):
    """R-IFT: by the implicit function theorem where training would end ("Implicit Differentiation" in chapter 3).

    Args:
        inner_steps: J, steps towards that end.
        terms: P of the Neumann series for the inverse Hessian.
        inner_rate: smaller than for one step, as the series converges only below 2 over the largest curvature.

    Example:
        >>> ImplicitDifferentiation(terms=10).inner_steps
        3
    """

    inner_steps: int = 3
    terms: int = 5
    inner_rate: float = 0.01

    def __post_init__(self) -> None:
        """Require settings in their range."""
        super().__post_init__()
        for name in ("inner_steps", "terms"):
            check_whole(self, name, 0)

    def hypergradient(self, problem: InnerProblem) -> HyperGradient:
        """Differentiate where a few steps lead to."""
        return ift_gradient(problem, self.scope, inner_steps=self.inner_steps, terms=self.terms)

    def hypergradient_from(self, problem: LastLayerProblem) -> HyperGradient:
        """Differentiate where a few steps of the last layer lead to."""
        return ift_gradient_from(problem, inner_steps=self.inner_steps, terms=self.terms)


def normalised(gradient: Tensor) -> Tensor:
    """A gradient over its mean absolute value; one that is 0 stays so.

    Example:
        >>> normalised(torch.tensor([-3.0, 1.0]))
        tensor([-1.5000,  0.5000])
    """
    size = gradient.abs().mean()
    return gradient / torch.where(size > 0, size, 1)
