"""Learning to reweight: weights found anew for every batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from evidentia.semisup.choices import Scope, check_scope
from evidentia.semisup.hypergradients.hypergradient import meta_gradient
from evidentia.semisup.method_settings import check_real
from evidentia.semisup.robust.base import ROBUST, Pool, Robust, Update


@ROBUST.register("l2rw")
@dataclass(kw_only=True, eq=False)
class LearningToReweight(Robust):
    r"""L2RW (Ren et al., ICML 2018): one step from weights of 0, and what falls by it counts.

    $$\tilde w_j = \max\Big(0, -\frac{\partial L_V(\theta'(w))}{\partial w_j}\Big|_{w = 0}\Big), \qquad
      w_j = B\, \tilde w_j / \sum_i \tilde w_i$$

    A batch in which nothing helps is left out. The pool's weights are those of a sample's last batch, over the largest
    there.

    Args:
        scope: "full" as published, or "last" for the last layer alone.
        inner_rate: the size of the step.
    """

    scope: Scope = "full"
    inner_rate: float = 0.1

    def __post_init__(self) -> None:
        """Require settings in their range."""
        check_real(self, "inner_rate", open_low=True)
        check_scope(self.scope)

    def last_layer_uses(self) -> dict[str, str]:
        """For its closed form."""
        return {"scope='last'": "scope='full'"} if self.scope == "last" else {}

    def weigh(self, pool: Pool, update: Update) -> Tensor:
        """Weigh the batch by the gradient at 0."""
        problem = update.problem(pool, torch.zeros_like(update.weights), self.inner_rate)
        helpful = meta_gradient(problem, self.scope).gradient.neg().clamp(min=0)
        pool.weights.note(update.rows, helpful / helpful.amax().clamp(min=torch.finfo(helpful.dtype).tiny))
        total = helpful.sum()
        return helpful * (len(helpful) / torch.where(total > 0, total, 1))
