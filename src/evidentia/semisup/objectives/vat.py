"""Virtual adversarial training: say the same where a small change would matter most."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from evidentia._support.errors import EvidentiaError
from evidentia.learning import frozen_statistics
from evidentia.semisup.augmentation import Augmentation
from evidentia.semisup.method_settings import check_real, check_whole
from evidentia.semisup.objectives.base import (
    OBJECTIVES,
    Consistency,
    Labeled,
    Objective,
    check_logits,
    ones,
    targets_for,
)
from evidentia.semisup.objectives.distances import kl_divergence


@OBJECTIVES.register("vat")
@dataclass(kw_only=True, eq=False)
class VAT(Objective):
    r"""The divergence under the perturbation that raises it most (Miyato et al., TPAMI 2018).

    $$r_j = \mathrm{KL}\big(p(x_j) \,\|\, p(x_j + r^{adv}_j)\big), \qquad
      r^{adv}_j \approx \arg\max_{\|r\| \le \epsilon} \mathrm{KL}\big(p(x_j) \,\|\, p(x_j + r)\big)$$

    by power iteration: $d \leftarrow \nabla_d \mathrm{KL}(p(x) \,\|\, p(x + \xi d))$, scaled to length 1, from a random
    start; then $r^{adv} = \epsilon d$. Samples are weakly augmented first.

    In single precision a step of $10^{-6}$ is lost in the rounding of an input of length 10, and the direction found
    is that of rounding errors, which more iterations do not improve. A sample's step is therefore at least the square
    root of the machine epsilon times the sample's length, by the coarser of the precisions of samples and logits: under
    autocast that of half precision.

    Args:
        weight: the coefficient of the objective.
        rampup: the number of updates over which it is reached.
        epsilon: length of the perturbation, over all entries of an input. The default is for MNIST in [0, 1]. For data
            of your own start at a third of the typical distance from a labeled sample to the nearest one of another
            class: the presets' values are a fifth to a half of it (7.6 for MNIST, 2.2 for digits of 8 x 8 pixels,
            0.7 for two moons). A longer one carries samples into another class, a much shorter one changes nothing.
        xi: length of the step by which the direction is found.
        iterations: of the power method; each costs a run of the network and its gradient.

    Example:
        >>> from evidentia.semisup import AUGMENTATIONS
        >>> network, x = nn.Linear(2, 3), torch.randn(5, 2)
        >>> consistency = VAT(epsilon=0.5).prepare(network, x, AUGMENTATIONS["none"]())
        >>> torch.allclose((consistency.inputs - x).norm(dim=1), torch.tensor(0.5))
        True
    """

    weight: float = 0.3
    epsilon: float = 3.0
    xi: float = 1e-6
    iterations: int = 1

    def __post_init__(self) -> None:
        """Require settings in their range."""
        super().__post_init__()
        check_real(self, "epsilon")
        check_real(self, "xi", open_low=True)
        check_whole(self, "iterations", 1)

    def prepare(
        self, network: nn.Module, x: Tensor, augment: Augmentation, *, labeled: Labeled | None = None
    ) -> Consistency:
        """Weakly augmented samples with their perturbation, and what the network says of them without it."""
        clean = augment.weak(x).detach()
        with torch.no_grad(), frozen_statistics(network):
            logits = network(clean.clone())
        targets = check_logits(logits, len(clean)).softmax(-1)
        inputs = clean + self.epsilon * self.direction(network, clean, targets, logits.dtype)
        return Consistency(inputs, targets, ones(targets))

    def direction(self, network: nn.Module, x: Tensor, targets: Tensor, precision: torch.dtype) -> Tensor:
        """For each sample the direction, of length 1, in which the class probabilities change most.

        `precision` is that of the network's logits.
        """
        finest = max(torch.finfo(dtype).eps for dtype in (x.dtype, precision)) ** 0.5
        step = (finest * _lengths(x)).clamp(min=self.xi)
        found = _unit(torch.randn_like(x))
        for _ in range(self.iterations):
            with torch.enable_grad(), frozen_statistics(network):
                trial = (x + step * found).requires_grad_()
                logits = check_logits(network(trial.clone()), len(x))
                divergence = kl_divergence(logits, targets).sum()
                gradient = _gradient(divergence, trial)
            # Where nothing changes the output, one direction is as good as another.
            flat = gradient.flatten(1).abs().amax(1) == 0
            found = torch.where(_spread(flat, x), found, _unit(gradient))
        return found

    def per_sample(self, logits: Tensor, consistency: Consistency) -> Tensor:
        """The divergence from what the network said without the perturbation."""
        return consistency.counts * kl_divergence(logits, targets_for(logits, consistency))


def _gradient(divergence: Tensor, x: Tensor) -> Tensor:
    """Only of the inputs: the parameters' gradients stay as they are."""
    found = torch.autograd.grad(divergence, x, allow_unused=True)[0] if divergence.requires_grad else None
    if found is None:
        raise EvidentiaError(
            "VAT needs the gradient of the logits in the inputs, and this network lets none through: it computes under "
            "torch.no_grad(), or takes its inputs for whole numbers. Freeze a body by body.requires_grad_(False) "
            "instead, or take another objective"
        )
    return found


def _spread(values: Tensor, x: Tensor) -> Tensor:
    return values.view(-1, *(1,) * (x.ndim - 1))


def _lengths(x: Tensor) -> Tensor:
    return _spread(torch.linalg.vector_norm(x.flatten(1), dim=1), x)


def _unit(x: Tensor) -> Tensor:
    # By the largest entry first, because the squares of tiny gradients are 0.
    largest = _spread(x.flatten(1).abs().amax(1), x)
    scaled = x / torch.where(largest > 0, largest, 1)
    return scaled / _lengths(scaled).clamp(min=torch.finfo(x.dtype).tiny)
