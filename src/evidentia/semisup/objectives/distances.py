"""How far what a network says is from what it is to say, sample by sample."""

from __future__ import annotations

import torch
from torch import Tensor


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    r"""$-\sum_k t_k \ln p_k$ with $p = \mathrm{softmax}(z)$, for each row.

    Example:
        >>> cross_entropy(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]))
        tensor([0.6931])
    """
    return -(targets * logits.log_softmax(-1)).sum(-1)


def kl_divergence(logits: Tensor, targets: Tensor) -> Tensor:
    r"""$\mathrm{KL}(t \,\|\, p) = \sum_k t_k (\ln t_k - \ln p_k)$ with $p = \mathrm{softmax}(z)$, for each row.

    Example:
        >>> kl_divergence(torch.zeros(2, 2), torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
        tensor([0.6931, 0.0000])
    """
    return torch.xlogy(targets, targets).sum(-1) + cross_entropy(logits, targets)


def squared_error(logits: Tensor, targets: Tensor) -> Tensor:
    r"""$\frac{1}{K} \sum_k (p_k - t_k)^2$ with $p = \mathrm{softmax}(z)$, for each row.

    The mean over classes, not the sum: the coefficients of the thesis' table go with it.

    Example:
        >>> squared_error(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]))
        tensor([0.2500])
    """
    return (logits.softmax(-1) - targets).square().mean(-1)


def entropy(logits: Tensor) -> Tensor:
    r"""$-\sum_k p_k \ln p_k$ with $p = \mathrm{softmax}(z)$, for each row.

    Example:
        >>> entropy(torch.zeros(1, 2))
        tensor([0.6931])
    """
    return -(logits.softmax(-1) * logits.log_softmax(-1)).sum(-1)


def sharpen(probs: Tensor, temperature: float) -> Tensor:
    r"""$p_k^{1/T} / \sum_i p_i^{1/T}$: closer to one class for T < 1, a class outright as T goes to 0.

    Example:
        >>> sharpen(torch.tensor([[0.6, 0.4]]), temperature=0.5)
        tensor([[0.6923, 0.3077]])
    """
    return (probs.log() / temperature).softmax(-1)


def one_hot(probs: Tensor) -> Tensor:
    """1 for the largest entry of each row, 0 elsewhere.

    Example:
        >>> one_hot(torch.tensor([[0.2, 0.5, 0.3]]))
        tensor([[0., 1., 0.]])
    """
    return torch.zeros_like(probs).scatter_(-1, probs.argmax(-1, keepdim=True), 1)
