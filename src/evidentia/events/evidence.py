"""From what a network says of a segment to Beta parameters: evidence for and against each class."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia._support.checks import check_tensor
from evidentia._support.errors import EvidentiaError
from evidentia.events.fusion import beta_from_probability
from evidentia.learning import ACTIVATIONS, beta_risk

Loss: TypeAlias = Literal["beta", "bce", "sigmoid"]
Activation: TypeAlias = Literal["exp", "softplus", "relu", "elu"]


def beta_parameters(outputs: Tensor, loss: Loss = "beta", activation: Activation = "exp") -> tuple[Tensor, Tensor]:
    r"""$\alpha = f(z^+) + 1$ and $\beta = f(z^-) + 1$ of a network's outputs, each of shape `(..., K)`.

    A network trained by the loss "sigmoid" gives no evidence, only the probability $p = \sigma(z^+ - z^-)$; it is
    taken for one that is sure of it, see `beta_from_probability`.

    Args:
        outputs: for and against, shape `(..., K, 2)`.
        loss: what the network was trained by.
        activation: f, a name of `evidentia.learning.ACTIVATIONS`; "exp" is exp(z) with a straight line above z = 10.

    Example:
        >>> beta_parameters(torch.tensor([[0.0, 2.0]]))
        (tensor([2.]), tensor([8.3891]))
    """
    _check_pairs(outputs)
    positive, negative = outputs.unbind(-1)
    if loss == "sigmoid":
        return beta_from_probability(torch.sigmoid(positive - negative))
    evidence = ACTIVATIONS[activation](outputs)
    positive, negative = (evidence + 1).unbind(-1)
    return positive, negative


def segment_loss(outputs: Tensor, target: Tensor, loss: Loss = "beta", activation: Activation = "exp") -> Tensor:
    r"""The loss of each segment and class, not reduced, shape `(..., K)`.

    | loss | what it is |
    |---|---|
    | beta | the Bayes risk of the binary cross entropy under Beta(alpha, beta), `beta_risk` (thesis eq. 4.4) |
    | bce | the binary cross entropy at the expected probability alpha / (alpha + beta) (thesis' ablation) |
    | sigmoid | the binary cross entropy at $\sigma(z^+ - z^-)$: a plain network without evidence |

    Args:
        outputs: for and against, shape `(..., K, 2)`.
        target: 1 where the class is present, else 0, shape `(..., K)`.
        loss: which.
        activation: from outputs to evidence.

    Example:
        >>> segment_loss(torch.tensor([[2.0, -9.0]]), torch.ones(1), "beta")
        tensor([0.1192])
        >>> segment_loss(torch.tensor([[2.0, -9.0]]), torch.ones(1), "bce")
        tensor([0.1126])
    """
    _check_pairs(outputs)
    check_tensor(target, "target")
    if loss == "sigmoid":
        positive, negative = outputs.unbind(-1)
        return F.binary_cross_entropy_with_logits(positive - negative, target.to(outputs), reduction="none")
    alpha, beta = beta_parameters(outputs, loss, activation)
    if loss == "beta":
        return beta_risk(alpha, beta, target)
    # In logarithms: a probability so near 1 that float32 calls it 1 would give an infinite loss.
    total = torch.log(alpha + beta)
    return total - torch.where(target > 0.5, torch.log(alpha), torch.log(beta))


def _check_pairs(outputs: Tensor) -> None:
    check_tensor(outputs, "outputs")
    if outputs.ndim == 0 or outputs.shape[-1] != 2:
        raise EvidentiaError(f"outputs must have the shape (..., K, 2), for and against, got {tuple(outputs.shape)}")
