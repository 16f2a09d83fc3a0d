"""Uncertainty-aware self-distillation's filter: only what an ensemble over time is sure of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia.semisup.method_settings import check_whole
from evidentia.semisup.networks.features import logits_in_parts
from evidentia.semisup.robust.base import ROBUST, Apply, Pool, Robust, check_apply


@ROBUST.register("uasd")
@dataclass(kw_only=True, eq=False)
class SelfDistillation(Robust):
    r"""The filter of UASD (Chen et al., AAAI 2020), before any objective.

    $$\bar p_j = \frac{1}{T} \sum_{t \le T} p(x_j; \theta_t), \qquad
      w_j = \mathbb{1}[\max_k \bar p_{jk} \ge \tau], \qquad \tau = \frac{1}{m} \sum_v \max_k \bar p_{vk}$$

    with means over the networks of several moments of training, and over clean samples v. In the paper the averaged
    predictions are also what is learnt; here that is the objective's.

    Args:
        refresh_every: updates from one network of the ensemble to the next.
        apply: how weights are used, "loss", "sample" or "keep".
    """

    uses_clean: ClassVar[bool] = False
    refresh_every: int = 50
    apply: Apply = "loss"
    _sums: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Require settings in their range."""
        check_apply(self.apply)
        check_whole(self, "refresh_every", 1)

    def start(self, pool: Pool) -> None:
        """Begin with an empty ensemble, and every weight at 1."""
        self._sums = {}

    def refresh(self, pool: Pool) -> None:
        """Add the network as it is now to the ensemble, and filter by it."""
        network = pool.last.network
        for name, x in (("pool", pool.unlabeled), ("clean", pool.clean[0])):
            probs = logits_in_parts(network, x, pool.batch_size).softmax(-1)
            # Sums that were loaded are on the CPU.
            self._sums[name] = probs + self._sums.get(name, torch.zeros_like(probs)).to(probs)
        # A sum of T predictions compares as their mean does.
        confidence, reference = (self._sums[name].amax(-1) for name in ("pool", "clean"))
        pool.weights.replace((confidence >= reference.mean()).float())

    def state_dict(self) -> dict[str, Tensor]:
        """The sums of all predictions so far."""
        return dict(self._sums)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up the sums."""
        if not state.keys() <= {"pool", "clean"}:
            raise EvidentiaError(f"a state of UASD holds pool and clean, got {', '.join(sorted(state))}")
        self._sums = dict(state)
