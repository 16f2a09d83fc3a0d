r"""The prior of a node's Dirichlet from where a random walk that starts at it ends.

Counting hops, as the kernel prior does, says little where everything is a few hops from everything: in a graph with
30 edges a node, all nodes are near some training node of every class. A random walk tells more: it reaches what is
joined to a node by many short ways. With W the walk and $\tau$ the probability to stop at each step, it ends at node i
with probability $\Pi_{ji} = \sum_t \tau (1 - \tau)^t (W^t)_{ji}$ (personalised PageRank), and

$$ \hat e_{jk} = \frac{N}{|\mathbb{L}|} \sum_{i \in \mathbb{L},\, y_i = k} \Pi_{ji}, \qquad \hat\alpha = \hat e + 1. $$

The factor makes a walk that ends anywhere alike worth evidence 1 in all.
"""

from __future__ import annotations

import torch
from torch import Tensor

from evidentia.graphs._inputs import read_edges, read_labels
from evidentia.graphs.propagation import personalised_pagerank, random_walk


def walk_prior(
    edge_index: Tensor,
    y: Tensor,
    train_mask: Tensor,
    num_classes: int,
    *,
    teleport: float = 0.1,
    steps: int = 20,
) -> Tensor:
    r"""Prior Dirichlet parameters $\hat\alpha$ of every node, from random walks to the training nodes.

    Args:
        edge_index: `(2, E)` integers, both directions of an undirected edge.
        y: `(N,)` integers, the class of every node. Only those of training nodes are looked at.
        train_mask: `(N,)` bools, or the numbers of the training nodes.
        num_classes: number K of classes; one without training nodes gets no evidence anywhere.
        teleport: the probability that the walk stops at each step.
        steps: after so many it stops in any case.

    Returns:
        `(N, K)` parameters, at least 1, on the device of `y`.

    Example:
        >>> path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        >>> y, train = torch.tensor([0, 0, 1, 1]), torch.tensor([True, False, False, True])
        >>> walk_prior(path, y, train, num_classes=2)
        tensor([[1.5565, 1.2022],
                [1.3150, 1.3057],
                [1.3057, 1.3150],
                [1.2022, 1.5565]])
    """
    labels = read_labels(y, train_mask, num_classes)
    y = torch.as_tensor(y)
    read_edges(edge_index, len(y))
    marks = torch.zeros(len(y), num_classes, device=y.device)
    nodes = torch.from_numpy(labels.nodes).to(y.device)
    marks[nodes, y[nodes]] = len(y) / len(nodes)
    return 1 + personalised_pagerank(marks, random_walk(torch.as_tensor(edge_index), len(y)), teleport, steps)
