"""Weights that a small network gives, itself learnt by the loss on clean samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from evidentia._support.errors import EvidentiaError
from evidentia.learning.checkpoint import load_optimizer, optimizer_tensors, part_of
from evidentia.semisup.choices import Scope, check_scope
from evidentia.semisup.hypergradients.hypergradient import meta_gradient
from evidentia.semisup.method_settings import check_real, check_whole
from evidentia.semisup.networks.features import hidden_and_logits
from evidentia.semisup.robust.base import ROBUST, Pool, Robust, Update


@dataclass(kw_only=True, eq=False)
class WeightNetwork(Robust, ABC):
    r"""$w_j = v(s_j; \phi)$ for a signal s of each sample; $\phi$ goes along $\sum_j g_j \partial w_j / \partial \phi$.

    g is the hypergradient of one step of training, so that by the chain rule this is the gradient of $L_V$ in $\phi$.
    The network has one hidden layer and a sigmoid at its end.

    Args:
        hidden: units of the hidden layer.
        learning_rate: of Adam, for $\phi$.
        scope: "full" as published, or "last" for the last layer alone.
        inner_rate: the size of the step.
    """

    hidden: int = 100
    learning_rate: float = 1e-3
    scope: Scope = "full"
    inner_rate: float = 0.1
    _network: nn.Sequential | None = field(default=None, init=False, repr=False)
    _optimizer: torch.optim.Adam | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        """Require settings in their range."""
        check_whole(self, "hidden", 1)
        for name in ("learning_rate", "inner_rate"):
            check_real(self, name, open_low=True)
        check_scope(self.scope)

    def last_layer_uses(self) -> dict[str, str]:
        """For its closed form."""
        return {"scope='last'": "scope='full'"} if self.scope == "last" else {}

    @abstractmethod
    def size(self, pool: Pool) -> int:
        """How many numbers the signal of a sample has."""

    @abstractmethod
    def signal(self, update: Update) -> Tensor:
        """What the weights of the batch are read off, shape `(B, size)`, detached."""

    def attach(self, pool: Pool) -> None:
        """Build the network of weights."""
        self._network = nn.Sequential(
            nn.Linear(self.size(pool), self.hidden), nn.ReLU(), nn.Linear(self.hidden, 1), nn.Sigmoid()
        ).to(pool.unlabeled)
        self._optimizer = torch.optim.Adam(self._network.parameters(), lr=self.learning_rate)

    def weigh(self, pool: Pool, update: Update) -> Tensor:
        """Learn from the batch, then weigh it."""
        network, optimizer = self._started()
        signal = self.signal(update)
        with torch.enable_grad():
            weights = network(signal).squeeze(-1)
            slope = meta_gradient(update.problem(pool, weights.detach(), self.inner_rate), self.scope).gradient
            optimizer.zero_grad()
            (slope.to(weights) * weights).sum().backward()
            optimizer.step()
        with torch.no_grad():
            learnt: Tensor = network(signal).squeeze(-1)
        pool.weights.note(update.rows, learnt)
        return learnt

    def state_dict(self) -> dict[str, Tensor]:
        """The network of weights and its optimiser."""
        network, optimizer = self._started()
        tensors = {f"network/{name}": tensor.clone() for name, tensor in network.state_dict().items()}
        return tensors | {f"optimizer/{name}": tensor for name, tensor in optimizer_tensors(optimizer).items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up both."""
        network, optimizer = self._started()
        try:
            network.load_state_dict(part_of(state, "network"))
        except RuntimeError as error:
            raise EvidentiaError(f"this state is of another network of weights: {error}") from error
        load_optimizer(optimizer, part_of(state, "optimizer"))

    def _started(self) -> tuple[nn.Sequential, torch.optim.Adam]:
        if self._network is None or self._optimizer is None:
            raise EvidentiaError("the network of weights has to be given the pool first; call attach(pool)")
        return self._network, self._optimizer


@ROBUST.register("mwn")
@dataclass(kw_only=True, eq=False)
class MetaWeightNet(WeightNetwork):
    """MWN (Shu et al., NeurIPS 2019): the weight follows from the sample's cost."""

    def size(self, pool: Pool) -> int:
        """The cost alone."""
        return 1

    def signal(self, update: Update) -> Tensor:
        """The cost of each sample."""
        return update.costs[:, None]


@ROBUST.register("ds3l")
@dataclass(kw_only=True, eq=False)
class SafeDeepSSL(WeightNetwork):
    """DS3L (Guo et al., ICML 2020): the weight follows from the sample, here from its last hidden layer."""

    def last_layer_uses(self) -> dict[str, str]:
        """For the signal of its weights, too."""
        return {"its weights": "MetaWeightNet"} | super().last_layer_uses()

    def size(self, pool: Pool) -> int:
        """The width of the last hidden layer."""
        return hidden_and_logits(pool.last.network, pool.unlabeled[:2])[0].shape[1]

    def signal(self, update: Update) -> Tensor:
        """The last hidden layer of each sample."""
        return update.hidden[1].detach()
