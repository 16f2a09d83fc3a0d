r"""Evidence spread along the edges of a graph, without any retraining.

In a graph whose neighbours tend to be alike, a node's neighbours know something about how much evidence there is for
it. Both ways below average by personalised PageRank: $s \leftarrow (1 - \tau) D^{-1} A s + \tau s_0$, a few steps from
$s_0$; a node without neighbours keeps what it has.
"""

from __future__ import annotations

import torch
from torch import Tensor

from evidentia._support.scalars import real_number, whole_number
from evidentia.graphs.sparse_matrix import SparseMatrix


def propagate_strength(logits: Tensor, walk: SparseMatrix, teleport: float = 0.1, steps: int = 10) -> Tensor:
    r"""Spread how much evidence there is, and leave alone for what.

    With $s = \ln \sum_k e^{z_k}$, the log of the total evidence, and $s'$ its personalised PageRank, $z' = z + s' - s$.
    The ratios of the classes stay, and with them the predicted label.

    Args:
        logits: log evidence z, shape `(N, K)`.
        walk: the random walk of the graph, as `random_walk` gives it.
        teleport: how much of its own a node keeps in each step.
        steps: how many steps.

    Example:
        >>> walk = random_walk(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> propagate_strength(torch.tensor([[4.0, 0.0], [0.0, 1.0]]), walk)
        tensor([[ 3.1655, -0.8345],
                [ 0.8345,  1.8345]])
    """
    strength = torch.logsumexp(logits, -1, keepdim=True)
    return logits + personalised_pagerank(strength, walk, teleport, steps) - strength


def propagate_evidence(logits: Tensor, walk: SparseMatrix, teleport: float = 0.1, steps: int = 10) -> Tensor:
    """Spread the log evidence of every class by itself; labels may change.

    Arguments are as for `propagate_strength`.

    Example:
        >>> walk = random_walk(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> propagate_evidence(torch.tensor([[4.0, 0.0], [0.0, 1.0]]), walk, steps=1)
        tensor([[0.4000, 0.9000],
                [3.6000, 0.1000]])
    """
    return personalised_pagerank(logits, walk, teleport, steps)


def propagate_energy(logits: Tensor, walk: SparseMatrix, keep: float = 0.5, steps: int = 2) -> Tensor:
    r"""The energy $-\ln \sum_k e^{z_k}$ of each node, averaged with its neighbours' (GNNSafe, Wu et al. 2023).

    $E \leftarrow \kappa E + (1 - \kappa) D^{-1} A E$, `steps` times; higher means less like the training data.

    Args:
        logits: what a softmax network gives before the softmax, shape `(N, K)`.
        walk: the random walk of the graph, as `random_walk` gives it.
        keep: how much of its own a node keeps in each step.
        steps: how many steps.

    Example:
        >>> walk = random_walk(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> propagate_energy(torch.tensor([[4.0, 0.0], [0.0, 1.0]]), walk, steps=1)
        tensor([-2.6657, -2.6657])
    """
    keep = real_number(keep, "keep", 0, 1)
    energy = -torch.logsumexp(logits, -1, keepdim=True)
    for _ in range(whole_number(steps, "steps", 0)):
        energy = keep * energy + (1 - keep) * (walk @ energy)
    return energy.squeeze(-1)


def personalised_pagerank(values: Tensor, walk: SparseMatrix, teleport: float = 0.1, steps: int = 10) -> Tensor:
    r"""$s \leftarrow (1 - \tau) W s + \tau s_0$ from $s = s_0$, `steps` times, for values of shape `(N, width)`."""
    teleport = real_number(teleport, "teleport", 0, 1, open_low=True)
    steps = whole_number(steps, "steps", 0)
    spread = values
    for _ in range(steps):
        spread = (1 - teleport) * (walk @ spread) + teleport * values
    return spread


def random_walk(edge_index: Tensor, num_nodes: int) -> SparseMatrix:
    """The matrix that averages over a node's neighbours, itself not counted; a node without any is its own."""
    edges = _between_nodes(edge_index)
    alone = torch.ones(num_nodes, dtype=torch.bool, device=edge_index.device)
    alone[edges[1]] = False
    source, target = torch.cat([edges, alone.nonzero().T.expand(2, -1)], dim=1)
    ones = torch.ones(len(source), device=edge_index.device)
    return SparseMatrix.from_entries(target, source, ones, (num_nodes, num_nodes)).row_normalised()


def normalised_adjacency(edge_index: Tensor, num_nodes: int) -> SparseMatrix:
    r"""$\hat D^{-1/2} (A + I) \hat D^{-1/2}$, what a GCN multiplies with (Kipf and Welling 2017)."""
    loops = torch.arange(num_nodes, device=edge_index.device)
    source, target = torch.cat([_between_nodes(edge_index), loops.expand(2, -1)], dim=1)
    degree = torch.bincount(target, minlength=num_nodes).to(torch.get_default_dtype())
    values = (degree[source] * degree[target]).rsqrt()
    return SparseMatrix.from_entries(target, source, values, (num_nodes, num_nodes))


def _between_nodes(edge_index: Tensor) -> Tensor:
    """The edges that do not end where they begin."""
    return edge_index[:, edge_index[0] != edge_index[1]]
