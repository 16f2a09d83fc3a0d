"""Passes of trained networks over a graph, of which only what a prediction needs is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from evidentia.graphs.graph_tensors import GraphTensors
from evidentia.graphs.methods import GraphMethod
from evidentia.graphs.models import Backbone
from evidentia.graphs.training import EDGE_DROPOUT
from evidentia.learning.modes import evaluating
from evidentia.learning.seeding import seeded
from evidentia.opinions import entropy

# Numbers that the largest tensor of one batch of passes may hold.
_PASS_ENTRIES = 1 << 25


class Passes(NamedTuple):
    """What all passes of some networks say of N nodes together."""

    logits: Tensor
    """Their mean, shape `(N, K)`."""
    probs: Tensor
    """The mean of the class probabilities, shape `(N, K)`."""
    noise: Tensor
    """The mean of the entropies of the passes, in [0, 1], shape `(N,)`."""
    number: int
    """How many passes there were."""

    def uncertainties(self) -> dict[str, Tensor] | None:
        """Those that passes show by differing; None if there was only one."""
        if self.number == 1:
            return None
        total = entropy(self.probs)
        return {"entropy": total, "aleatoric": self.noise, "epistemic": (total - self.noise).clamp(0, 1)}


@torch.no_grad()
def run_passes(
    networks: Sequence[Backbone], graph: GraphTensors, method: GraphMethod, passes: int, seed: int, epoch: int
) -> Passes:
    """Every node, by all networks: some passes with dropout each, or one without if the method does not sample.

    Memory does not grow with the number of passes: as many run at once as fit a bound, and are added up.

    Args:
        networks: the members of an ensemble.
        graph: the graph.
        method: whether to sample, and what outputs mean.
        passes: how many of each network, if the method samples.
        seed: of what is dropped.
        epoch: likewise.
    """
    sampled = method.sampling != "none"
    drops_edges = method.sampling == "dropedge"
    total: tuple[Tensor, ...] = ()
    number = 0
    for network in networks:
        at_once = 1 if drops_edges else max(1, _PASS_ENTRIES // network.pass_entries(graph))
        mode = _dropping(network) if sampled else evaluating(network)
        with mode, seeded(seed, epoch, graph.edge_index.device):
            for size in _sizes(passes if sampled else 1, at_once):
                shown = graph.without_edges(EDGE_DROPOUT) if drops_edges else graph
                logits = network(shown, passes=size)
                probs = method.probs(logits)
                new = (logits.sum(0), probs.sum(0), entropy(probs).sum(0))
                total = tuple(map(torch.add, total, new)) if number else new
                number += size
    logits, probs, noise = (part / number for part in total)
    return Passes(logits, probs, noise, number)


def _sizes(passes: int, at_once: int) -> Iterator[int]:
    for start in range(0, passes, at_once):
        yield min(at_once, passes - start)


@contextmanager
def _dropping(network: nn.Module) -> Iterator[None]:
    """Dropout as in training, in whatever way a module does it; norms go by what they have learnt and learn nothing."""
    with evaluating(network):
        network.train()
        for layer in network.modules():
            if isinstance(layer, _NormBase):
                layer.eval()
        yield
