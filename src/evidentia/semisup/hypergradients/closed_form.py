"""Hypergradients by the last layer alone, from features that a training step has computed already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import real_number, whole_number
from evidentia.learning.modes import evaluating
from evidentia.semisup.hypergradients.neumann import neumann_series
from evidentia.semisup.objectives import Consistency, Objective
from evidentia.semisup.objectives.base import costs_of


@dataclass(frozen=True)
class HyperGradient:
    r"""How the loss on clean samples changes with the weights of the unlabeled ones.

    Attributes:
        gradient: $d L_V / d w$, shape `(B,)`: positive for a sample that had better count less.
        validation_loss: $L_V$, a scalar, with the parameters after the inner steps.
        direct: the part of the gradient that comes by the weighted batch statistics of the clean samples' own pass,
            shape `(B,)`; None unless that is asked for ("joint").
    """

    gradient: Tensor
    validation_loss: Tensor
    direct: Tensor | None


@dataclass(frozen=True, kw_only=True)
class LastLayerProblem:
    r"""A training step as the last layer sees it: what goes into it is fixed, its W and b are what is learnt.

    Its loss, with $z = W h + b$ and means over n labeled and B unlabeled samples, is
    $L_T(W, b, w) = \frac{1}{n} \sum_i l(z_i, y_i) + \frac{c}{B} \sum_j w_j r_j(z_j)$.

    Attributes:
        head: the last layer; read, never changed.
        objective: gives $r_j$.
        consistency: what the objective prepared for the B unlabeled samples.
        coefficient: c.
        labeled: features of labeled samples, shape `(n, D)`, and their classes.
        unlabeled: features of `consistency.inputs`, shape `(B, D)`.
        validation: features of clean samples, shape `(m, D)`, and their classes; may be `labeled` itself, which costs
            nothing more.
        weights: w, shape `(B,)`.
        rate: $\alpha$, the size of the inner step.
        statistics: for joint-V, the weights of shape `(B,)`, requiring a gradient, by which `validation` was
            normalised inside `batch_weights`; its features must have kept their graph.
    """

    head: nn.Linear
    objective: Objective
    consistency: Consistency
    coefficient: float
    labeled: tuple[Tensor, Tensor]
    unlabeled: Tensor
    validation: tuple[Tensor, Tensor]
    weights: Tensor
    rate: float
    statistics: Tensor | None = None

    def __post_init__(self) -> None:
        """Require sizes that fit."""
        check_sizes(self.unlabeled, self.consistency, self.labeled, self.validation, self.weights)
        check_numbers(self.coefficient, self.rate)


def meta_gradient_from(problem: LastLayerProblem) -> HyperGradient:
    r"""The hypergradient of one step of the last layer, in closed form ("Meta approximation" in chapter 3).

    With $G_j = \partial r_j / \partial z_j$, a sample's gradient is $G_j [h_j, 1]^T$, so that

    $$\frac{\partial L_V(W')}{\partial w_j} = -\frac{\alpha c}{B}\, G_j^T \bar V [h_j, 1], \qquad
      \bar V = \frac{\partial L_V}{\partial W}(W'), \qquad W' = W - \alpha \nabla_W L_T(W, w)$$

    with W standing for W and b. No gradient goes through the network, except for joint-V.

    Example:
        >>> from evidentia.semisup import AUGMENTATIONS, MLP, OBJECTIVES, LastLayer
        >>> _ = torch.manual_seed(0)
        >>> network, objective = MLP(2, num_classes=3), OBJECTIVES["pi-model"]()
        >>> labels, weights = torch.tensor([0, 1, 2]), torch.ones(5)
        >>> consistency = objective.prepare(network, torch.randn(5, 2), AUGMENTATIONS["vectors"]())
        >>> last = LastLayer(network)
        >>> hidden, logits = last.hidden_and_logits(torch.cat([torch.randn(3, 2), consistency.inputs]))
        >>> problem = LastLayerProblem(
        ...     head=last.head, objective=objective, consistency=consistency, coefficient=1.0, rate=0.1,
        ...     labeled=(hidden[:3], labels), unlabeled=hidden[3:], validation=(hidden[:3], labels), weights=weights,
        ... )
        >>> meta_gradient_from(problem).gradient.shape
        torch.Size([5])
    """
    with torch.no_grad():
        inner = _InnerLoss(problem)
        slopes = inner.slopes(inner.start)
        stepped = inner.start - problem.rate * inner.gradient(inner.start, slopes)
        loss, pull, direct = inner.validate(stepped)
        return inner.result(loss, slopes, problem.rate * pull, direct)


def ift_gradient_from(problem: LastLayerProblem, *, inner_steps: int = 3, terms: int = 5) -> HyperGradient:
    r"""The hypergradient by implicit differentiation of the last layer ("Implicit Differentiation" in chapter 3).

    After J steps $W \leftarrow W - \alpha \nabla_W L_T(W, w)$, with H the Hessian of $L_T$ there,

    $$\frac{\partial L_V}{\partial w_j} \approx -\frac{c}{B}\, G_j^T S [h_j, 1], \qquad
      S = \alpha \sum_{p=0}^{P} (I - \alpha H)^p\, \bar V \approx H^{-1} \bar V$$

    All steps and products with H are of the size of the last layer. A `DivergenceWarning` tells if the series grows.
    As $\alpha \to 0$, J = 1 and P = 0 give `meta_gradient_from` (the thesis' proposition of their connection, which
    has it for $\alpha = 1$ and leaves out that $G_j$ is taken before the step there and after it here).

    Args:
        problem: the training step.
        inner_steps: J; 0 to differentiate where the network stands.
        terms: P.

    Example:
        >>> from evidentia.semisup.objectives import Consistency, FixMatch
        >>> _ = torch.manual_seed(0)
        >>> head, hidden, clean = nn.Linear(4, 3), torch.randn(5, 4), (torch.randn(6, 4), torch.tensor([0, 1, 2] * 2))
        >>> consistency = Consistency(hidden, torch.eye(3)[[0, 1, 2, 0, 1]], counts=torch.ones(5))
        >>> problem = LastLayerProblem(
        ...     head=head, objective=FixMatch(), consistency=consistency, coefficient=1.0, labeled=clean,
        ...     unlabeled=hidden, validation=clean, weights=torch.ones(5), rate=0.1
        ... )
        >>> ift_gradient_from(problem, inner_steps=3, terms=5).gradient.shape
        torch.Size([5])
    """
    check_counts(inner_steps, terms)
    with torch.no_grad():
        inner = _InnerLoss(problem)
        parameters = inner.start
        for _ in range(inner_steps):
            parameters = parameters - problem.rate * inner.gradient(parameters, inner.slopes(parameters))
        loss, pull, direct = inner.validate(parameters)
        slopes, product = inner.curvature(parameters)
        (solved,) = neumann_series([pull], product, problem.rate, terms)
        return inner.result(loss, slopes, solved, direct)


class _InnerLoss:
    """The loss of a training step and of clean samples as functions of A = [W, b], shape `(K, D + 1)`."""

    def __init__(self, problem: LastLayerProblem) -> None:
        # A weight may be computed when it is asked for, and in training mode change what it is computed from.
        with evaluating(problem.head):
            weight, bias = problem.head.weight.detach(), problem.head.bias
        self.has_bias = bias is not None
        self.start = weight if bias is None else torch.cat([weight, bias.detach()[:, None]], 1)
        self.problem = problem
        self.labeled, self.unlabeled, self.validation = (
            self._extended(each) for each in (problem.labeled[0], problem.unlabeled, problem.validation[0])
        )
        scale = problem.coefficient / len(problem.weights)
        self.scale = scale
        self.parts = scale * problem.weights.detach().to(self.start.dtype)[:, None]

    def _extended(self, hidden: Tensor) -> Tensor:
        hidden = hidden.detach()
        return torch.cat([hidden, hidden.new_ones(len(hidden), 1)], 1) if self.has_bias else hidden

    def _costs(self, logits: Tensor) -> Tensor:
        return costs_of(self.problem.objective, logits, self.problem.consistency)

    def slopes(self, parameters: Tensor) -> Tensor:
        """The derivative of every unlabeled sample's cost in its logits, shape `(B, K)`."""
        return self._logits_and_slopes(parameters, create_graph=False)[1]

    def _logits_and_slopes(self, parameters: Tensor, create_graph: bool) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            logits = (self.unlabeled @ parameters.T).detach().requires_grad_()
            costs = self._costs(logits)
            if not costs.requires_grad:
                # Of an objective whose targets and costs are fixed: there is nothing to learn from it.
                return logits, torch.zeros_like(logits, requires_grad=False)
            (slopes,) = torch.autograd.grad(costs.sum(), logits, create_graph=create_graph)
        return logits, slopes

    def gradient(self, parameters: Tensor, slopes: Tensor) -> Tensor:
        """The gradient of the training loss, given the `slopes` there."""
        supervised = _surprise(self.labeled @ parameters.T, self.problem.labeled[1])
        return supervised.T @ self.labeled + (self.parts * slopes).T @ self.unlabeled

    def curvature(self, parameters: Tensor) -> tuple[Tensor, Callable[[Sequence[Tensor]], Sequence[Tensor]]]:
        """The `slopes`, and a function that multiplies by the Hessian of the training loss."""
        probs = (self.labeled @ parameters.T).softmax(-1)
        logits, slopes = self._logits_and_slopes(parameters, create_graph=True)

        def product(vector: Sequence[Tensor]) -> list[Tensor]:
            pulled = probs * (self.labeled @ vector[0].T)
            bent = (pulled - probs * pulled.sum(1, keepdim=True)) / len(probs)
            result = bent.T @ self.labeled
            # A cost that is linear in the logits has slopes that depend on nothing.
            if slopes.requires_grad:
                moved = self.unlabeled @ vector[0].T
                (bent,) = torch.autograd.grad(slopes, logits, moved, retain_graph=True, materialize_grads=True)
                result = result + (self.parts * bent).T @ self.unlabeled
            return [result]

        return slopes.detach(), product

    def validate(self, parameters: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """The loss on clean samples, its gradient in the parameters, and its gradient by the batch statistics."""
        hidden, labels = self.problem.validation
        logits = self.validation @ parameters.T
        surprise = _surprise(logits, labels)
        direct = None
        if self.problem.statistics is not None:
            direct = _pulled_back(hidden, self.problem.statistics, surprise @ parameters[:, : hidden.shape[1]])
        return F.cross_entropy(logits, labels.long()), surprise.T @ self.validation, direct

    def result(self, loss: Tensor, slopes: Tensor, step: Tensor, direct: Tensor | None) -> HyperGradient:
        """What follows from the parameters moving by `-step` for every unit of a sample's gradient."""
        gradient = -self.scale * ((self.unlabeled @ step.T) * slopes).sum(1)
        return finished(self.problem.weights, gradient, loss, direct)


def _surprise(logits: Tensor, labels: Tensor) -> Tensor:
    """The derivative of the mean cross entropy in the logits: what the network says minus what is so, over n."""
    probs = logits.softmax(-1)
    return (probs - F.one_hot(labels.long(), probs.shape[1]).to(probs.dtype)) / len(probs)


def _pulled_back(hidden: Tensor, statistics: Tensor, grad: Tensor) -> Tensor:
    if not hidden.requires_grad:
        return torch.zeros_like(statistics)
    # The graph may be that of the training step, which goes back through it later.
    (direct,) = torch.autograd.grad(hidden, statistics, grad, retain_graph=True, materialize_grads=True)
    return direct


def finished(weights: Tensor, gradient: Tensor, loss: Tensor, direct: Tensor | None) -> HyperGradient:
    """A hypergradient in the weights' dtype, the direct part included."""
    gradient = gradient.detach().to(weights.dtype)
    if direct is None:
        return HyperGradient(gradient, loss.detach(), None)
    direct = direct.detach().to(weights.dtype)
    return HyperGradient(gradient + direct, loss.detach(), direct)


def check_sizes(
    unlabeled: Tensor,
    consistency: Consistency,
    labeled: tuple[Tensor, Tensor],
    validation: tuple[Tensor, Tensor],
    weights: Tensor,
) -> None:
    """Require as many weights as unlabeled samples and as many classes as labeled ones, and at least one of each."""
    if weights.shape != (len(unlabeled),) or len(unlabeled) != len(consistency.inputs) or not len(unlabeled):
        raise EvidentiaError(
            f"a weight for each of at least one unlabeled sample is needed, got weights of shape "
            f"{tuple(weights.shape)} and {len(consistency.inputs)} samples"
        )
    for name, (x, y) in (("labeled", labeled), ("validation", validation)):
        if y.shape != (len(x),) or not len(x) or y.is_floating_point():
            raise EvidentiaError(
                f"the {name} batch must be at least one sample and a class index for each, got {len(x)} samples and "
                f"labels of shape {tuple(y.shape)} and {y.dtype}"
            )


def check_numbers(coefficient: float, rate: float) -> None:
    """Require a coefficient of at least 0 and a rate above it."""
    real_number(coefficient, "the coefficient of the unlabeled loss", 0)
    real_number(rate, "the rate of the inner step", 0, open_low=True)


def check_counts(inner_steps: int, terms: int) -> None:
    """Require whole numbers of at least 0."""
    for name, value in (("inner_steps", inner_steps), ("terms", terms)):
        whole_number(value, name, 0)
