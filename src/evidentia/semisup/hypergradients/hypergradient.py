"""Which unlabeled samples help: how the loss on clean ones changes with their weights (thesis chapter 3).

The network is run as a function of its parameters: it is never stepped, and its buffers, modes and gradients stay as
they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia._support.errors import EvidentiaError
from evidentia.semisup.choices import Scope, check_scope
from evidentia.semisup.hypergradients.closed_form import (
    HyperGradient,
    LastLayerProblem,
    check_counts,
    finished,
    ift_gradient_from,
    meta_gradient_from,
)
from evidentia.semisup.hypergradients.inner_problem import (
    InnerProblem,
    Tensors,
    at_last_layer,
    copied_buffers,
    training_passes,
    validation_pass,
)
from evidentia.semisup.hypergradients.neumann import DivergenceWarning, neumann_series
from evidentia.semisup.hypergradients.twice import differentiated_twice
from evidentia.semisup.objectives.base import costs_of

__all__ = [
    "DivergenceWarning",
    "HyperGradient",
    "InnerProblem",
    "LastLayerProblem",
    "Scope",
    "ift_gradient",
    "ift_gradient_from",
    "meta_gradient",
    "meta_gradient_from",
]


def meta_gradient(problem: InnerProblem, scope: Scope = "last") -> HyperGradient:
    r"""How $L_V$ after one step changes with the weights ("Meta approximation" in chapter 3; R-Meta).

    $$\theta'(w) = \theta - \alpha \nabla_\theta L_T(\theta, w), \qquad
      \frac{d L_V(\theta'(w))}{d w_j} = -\alpha\, \nabla_\theta L_V(\theta')^T\,
      \frac{\partial^2 L_T(\theta, w)}{\partial \theta\, \partial w_j}$$

    Args:
        problem: the training step.
        scope: "last": only the last layer takes the step, in closed form and without a gradient through the network
            (`meta_gradient_from`, which a trainer that has run the network already calls directly); "full": all
            parameters that require a gradient do, by differentiating twice.

    Example:
        >>> from evidentia.semisup import AUGMENTATIONS, MLP, OBJECTIVES, LastLayer
        >>> _ = torch.manual_seed(0)
        >>> network, objective = MLP(2, num_classes=3), OBJECTIVES["vat"]()
        >>> labeled = torch.randn(6, 2), torch.tensor([0, 1, 2] * 2)
        >>> consistency = objective.prepare(network, torch.randn(50, 2), AUGMENTATIONS["none"]())
        >>> problem = InnerProblem(
        ...     LastLayer(network), objective, consistency, 0.3, labeled, labeled, weights=torch.ones(50), rate=0.1
        ... )
        >>> meta_gradient(problem).gradient.shape, meta_gradient(problem, "full").gradient.shape
        (torch.Size([50]), torch.Size([50]))
    """
    if _is_last(scope):
        return meta_gradient_from(at_last_layer(problem))
    with differentiated_twice(problem.last.network):
        run = _Run(problem)
        slopes = run.slopes(run.start, create_graph=True)
        stepped = run.stepped(run.start, slopes)
        loss, pull, direct = run.validate(stepped)
        return run.result(loss, slopes, [problem.rate * each for each in pull], direct)


def ift_gradient(
    problem: InnerProblem, scope: Scope = "last", *, inner_steps: int = 3, terms: int = 5
) -> HyperGradient:
    r"""How $L_V$ at the end of training would change with the weights ("Implicit Differentiation" in chapter 3; R-IFT).

    The implicit function theorem at $\theta^*(w) = \arg\min_\theta L_T(\theta, w)$, with J steps of size $\alpha$ for
    $\theta^*$ and P terms of the Neumann series for the inverse of the Hessian,

    $$\frac{d L_V}{d w_j} = -\nabla_\theta L_V^T\, H^{-1}\, \frac{\partial^2 L_T}{\partial \theta\, \partial w_j},
      \qquad H^{-1} \approx \alpha \sum_{p=0}^{P} (I - \alpha H)^p, \qquad
      H = \frac{\partial^2 L_T}{\partial \theta^2}$$

    A `DivergenceWarning` tells if the series grows, for which a smaller rate is the cure. As $\alpha \to 0$, J = 1 and
    P = 0 give `meta_gradient`.

    Args:
        problem: the training step.
        scope: "last" for the last layer alone, on features computed once (`ift_gradient_from`); "full" for all
            parameters that require a gradient.
        inner_steps: J; 0 to differentiate where the network stands.
        terms: P, each the cost of a product with the Hessian.

    Example:
        >>> from evidentia.semisup import AUGMENTATIONS, MLP, OBJECTIVES, LastLayer
        >>> _ = torch.manual_seed(0)
        >>> network, objective = MLP(2, num_classes=3), OBJECTIVES["vat"]()
        >>> labeled = torch.randn(6, 2), torch.tensor([0, 1, 2] * 2)
        >>> consistency = objective.prepare(network, torch.randn(50, 2), AUGMENTATIONS["none"]())
        >>> problem = InnerProblem(
        ...     LastLayer(network), objective, consistency, 0.3, labeled, labeled, weights=torch.ones(50), rate=1e-4
        ... )
        >>> implicit, one_step = ift_gradient(problem, "full", inner_steps=1, terms=0), meta_gradient(problem, "full")
        >>> torch.allclose(implicit.gradient, one_step.gradient, rtol=1e-3)
        True
    """
    check_counts(inner_steps, terms)
    if _is_last(scope):
        return ift_gradient_from(at_last_layer(problem), inner_steps=inner_steps, terms=terms)
    with differentiated_twice(problem.last.network):
        run = _Run(problem)
        parameters = run.start
        for _ in range(inner_steps):
            parameters = run.stepped(parameters, run.slopes(parameters))
        loss, pull, direct = run.validate(parameters)
        slopes = run.slopes(parameters, create_graph=True)
        inputs = list(parameters.values())

        def product(vector: Sequence[Tensor]) -> Sequence[Tensor]:
            return _grad(slopes, inputs, vector)

        solved = neumann_series(pull, product, problem.rate, terms)
        return run.result(loss, slopes, solved, direct)


def _is_last(scope: Scope) -> bool:
    check_scope(scope)
    return scope == "last"


class _Run:
    """The losses as functions of all parameters that are learnt, and of the weights."""

    def __init__(self, problem: InnerProblem) -> None:
        self.problem = problem
        network = problem.last.network
        self.start = {
            name: each.detach().requires_grad_() for name, each in network.named_parameters() if each.requires_grad
        }
        if not self.start:
            raise EvidentiaError("no parameter of the network requires a gradient, so there is nothing to learn")
        self.buffers = copied_buffers(network)
        self.weights = problem.weights.detach().clone().requires_grad_()

    def slopes(self, parameters: Tensors, create_graph: bool = False) -> Sequence[Tensor]:
        """The gradient of the training loss in the parameters; with a graph, to be differentiated again."""
        problem = self.problem
        weights = self.weights if create_graph else self.weights.detach()
        (_, labeled), (_, logits) = training_passes(problem, {**parameters, **self.buffers}, weights)
        costs = costs_of(problem.objective, logits, problem.consistency)
        loss = F.cross_entropy(labeled, problem.labeled[1].long())
        loss = loss + problem.coefficient * (weights.to(costs.dtype) * costs).mean()
        return torch.autograd.grad(loss, list(parameters.values()), create_graph=create_graph, materialize_grads=True)

    def stepped(self, parameters: Tensors, slopes: Sequence[Tensor]) -> dict[str, Tensor]:
        """The parameters after a step, as leaves of their own."""
        pairs = zip(parameters.items(), slopes, strict=True)
        rate = self.problem.rate
        return {name: (each - rate * slope).detach().requires_grad_() for (name, each), slope in pairs}

    def validate(self, parameters: Tensors) -> tuple[Tensor, Sequence[Tensor], Tensor | None]:
        """The loss on clean samples, its gradient in the parameters, and its gradient by the batch statistics."""
        problem = self.problem
        statistics = problem.weights.detach().clone().requires_grad_() if problem.joint else None
        _, logits = validation_pass(problem, {**parameters, **self.buffers}, statistics)
        loss = F.cross_entropy(logits, problem.validation[1].long())
        inputs = [*parameters.values(), *([] if statistics is None else [statistics])]
        pull = torch.autograd.grad(loss, inputs, materialize_grads=True)
        return (loss, pull, None) if statistics is None else (loss, pull[:-1], pull[-1])

    def result(
        self, loss: Tensor, slopes: Sequence[Tensor], step: Sequence[Tensor], direct: Tensor | None
    ) -> HyperGradient:
        """What follows from the parameters moving by `-step` for every unit of the training loss' gradient."""
        (gradient,) = _grad(slopes, [self.weights], [-each for each in step])
        return finished(self.problem.weights, gradient, loss, direct)


def _grad(outputs: Sequence[Tensor], inputs: Sequence[Tensor], vector: Sequence[Tensor]) -> Sequence[Tensor]:
    """A product with the derivative of outputs, of which some may depend on nothing."""
    pairs = [(output, each) for output, each in zip(outputs, vector, strict=True) if output.requires_grad]
    if not pairs:
        return [torch.zeros_like(each) for each in inputs]
    chosen, along = zip(*pairs, strict=True)
    return torch.autograd.grad(chosen, list(inputs), along, retain_graph=True, materialize_grads=True)
