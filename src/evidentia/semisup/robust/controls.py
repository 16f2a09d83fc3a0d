"""Methods that learn no weights: what others are measured by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from evidentia._support.errors import EvidentiaError
from evidentia.semisup.choices import Norm
from evidentia.semisup.robust.base import ROBUST, Apply, Pool, Robust, check_apply, norm_of_clean_batches


@ROBUST.register("none")
@dataclass(kw_only=True, eq=False)
class NotRobust(Robust):
    """Every unlabeled sample weighs 1: the plain objective.

    Example:
        >>> NotRobust().apply
        'loss'
    """

    uses_clean: ClassVar[bool] = False


@ROBUST.register("supervised")
@dataclass(kw_only=True, eq=False)
class Supervised(Robust):
    """The labeled samples alone, for as many updates as the others.

    Example:
        >>> Supervised().uses_pool
        False
    """

    uses_pool: ClassVar[bool] = False
    uses_clean: ClassVar[bool] = False


@ROBUST.register("oracle")
@dataclass(kw_only=True, eq=False)
class Oracle(Robust):
    """Weight 1 for what belongs to a class and 0 for the rest, by the truth: what perfect weights would give.

    Args:
        apply: how weights are used, "sample", "keep" or "loss".
    """

    uses_truth: ClassVar[bool] = True
    uses_clean: ClassVar[bool] = False
    apply: Apply = "sample"

    def __post_init__(self) -> None:
        """Require a way to use weights."""
        check_apply(self.apply)

    def usual_norm(self, labeled: int) -> Norm:
        """As for batches without samples of no class."""
        return norm_of_clean_batches(self, labeled)

    def start(self, pool: Pool) -> None:
        """Take the truth for weights."""
        if pool.is_ood is None:
            raise EvidentiaError(
                "the oracle has to be told which samples of the pool belong to no class; give fit is_ood, or choose "
                "another robust method"
            )
        pool.weights.replace((~pool.is_ood).float())
