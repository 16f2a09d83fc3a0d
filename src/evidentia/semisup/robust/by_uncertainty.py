"""Ours: weights from how unlike the labeled samples an unlabeled one is, and no gradient of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia.learning.checkpoint import part_of
from evidentia.semisup.choices import Norm, refuse_class
from evidentia.semisup.method_settings import check_whole
from evidentia.semisup.robust.base import ROBUST, Apply, Pool, Robust, check_apply, norm_of_clean_batches
from evidentia.semisup.uncertainty import UNCERTAINTIES, ByFunction, PoolUncertainty, PoolView

Uncertainty: TypeAlias = str | PoolUncertainty | Callable[[PoolView], Any]
Made: TypeAlias = tuple[Uncertainty, PoolUncertainty] | None


@ROBUST.register("uncertainty")
@dataclass(kw_only=True, eq=False)
class ByUncertainty(Robust):
    r"""$w_j = 1 - u_j$, with batches drawn by it: the recommended method.

    With `pu`, a discriminator of labeled against unlabeled samples, u is the probability of being of no class. It is
    known before the first update and stays, and batches are drawn from the samples that more probably belong to a class
    than not: of all ways to choose as many samples, that one lets the fewest others in. The estimators that look at the
    network are asked again as it learns. Theirs are scores, by which batches are drawn in proportion.

    Args:
        uncertainty: a name of `evidentia.semisup.UNCERTAINTIES`, an estimator, or a function that gives u for an
            `evidentia.semisup.PoolView`, and is asked again as the network learns.
        apply: how weights are used, "keep", "sample" or "loss"; by default "keep" if u is a probability, else "sample".
        refresh_every: updates between two estimates, for estimators that look at the network.

    Example:
        >>> ByUncertainty(uncertainty="kernel", apply="loss").estimator
        KernelEvidence(bandwidth=None)
    """

    uses_clean: ClassVar[bool] = False
    uncertainty: Uncertainty = "pu"
    apply: Apply | None = None
    refresh_every: int = 200
    _made_: Made = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        """Find the estimator."""
        self._made_ = made_of(self.uncertainty)
        if self.apply is not None:
            check_apply(self.apply)
        check_whole(self, "refresh_every", 1)

    @property
    def estimator(self) -> PoolUncertainty:
        """What estimates u."""
        self._made_ = made = made_of(self.uncertainty, self._made_)
        return made[1]

    @property
    def applied(self) -> Apply:
        """As is asked for, or as goes with the uncertainty."""
        return self.apply or ("keep" if self.estimator.is_probability else "sample")

    def last_layer_uses(self) -> dict[str, str]:
        """For an estimator that looks at features."""
        return estimator_uses(self.estimator, "pu")

    def usual_norm(self, labeled: int) -> Norm:
        """As for batches without samples of no class."""
        return norm_of_clean_batches(self, labeled)

    def start(self, pool: Pool) -> None:
        """Estimate, and weigh by it."""
        pool.uncertainty = estimate(self.estimator, pool)
        pool.weights.replace(1 - pool.uncertainty)

    def refresh(self, pool: Pool) -> None:
        """Estimate again, if the network has a say in it."""
        if self.estimator.refresh:
            self.start(pool)

    def state_dict(self) -> dict[str, Tensor]:
        """What the estimator found beyond the uncertainty itself."""
        return estimator_state(self.estimator)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take it up."""
        load_estimator_state(self.estimator, state)


def as_estimator(uncertainty: Uncertainty) -> PoolUncertainty:
    """An estimator from its name, from a function of the pool, or as it is.

    Example:
        >>> as_estimator("confidence")
        Confidence()
        >>> as_estimator(lambda pool: pool.unlabeled.norm(dim=1).clamp(max=1)).refresh
        True
    """
    if isinstance(uncertainty, PoolUncertainty):
        return uncertainty
    if isinstance(uncertainty, str):
        return UNCERTAINTIES[uncertainty]()
    refuse_class(uncertainty, "uncertainty")
    known = f"an uncertainty of the pool is a name ({', '.join(sorted(UNCERTAINTIES))}), an estimator or a function"
    if callable(uncertainty):
        return ByFunction(function=uncertainty)
    raise EvidentiaError(f"{known} of a PoolView, got {uncertainty!r}")


def made_of(uncertainty: Uncertainty, before: Made = None) -> tuple[Uncertainty, PoolUncertainty]:
    """What a method was given and the estimator that it makes: the one of before for as long as that is the same."""
    return before if before is not None and before[0] is uncertainty else (uncertainty, as_estimator(uncertainty))


def estimator_uses(estimator: PoolUncertainty | None, instead: str) -> dict[str, str]:
    """`Robust.last_layer_uses` of an estimator, and the name of one that does without."""
    if estimator is None or not estimator.uses_features:
        return {}
    return {f"uncertainty={estimator.title}": f"uncertainty={instead!r}"}


def estimator_state(estimator: PoolUncertainty | None) -> dict[str, Tensor]:
    """`Robust.state_dict` of a method that remembers nothing but what its estimator does."""
    entries = {} if estimator is None else estimator.state_dict()
    return {f"estimator/{name}": tensor for name, tensor in entries.items()}


def load_estimator_state(estimator: PoolUncertainty | None, state: Mapping[str, Tensor]) -> None:
    """Give an estimator back what `estimator_state` gave."""
    entries = part_of(state, "estimator")
    if len(entries) < len(state) or (entries and estimator is None):
        raise EvidentiaError(f"this state is of another robust method: it holds {', '.join(sorted(state))}")
    if estimator is not None:
        estimator.load_state_dict(entries)


def estimate(estimator: PoolUncertainty, pool: Pool) -> Tensor:
    """The uncertainty of every sample of a pool in training."""
    view = (pool.last.network, pool.labeled, pool.unlabeled, pool.num_classes, pool.augment)
    return estimator.estimate(*view, batch_size=pool.batch_size, progress=pool.progress)
