"""MixMatch: guess by several views, sharpen, and mix with other samples."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia._support.errors import EvidentiaError
from evidentia.semisup.augmentation import Augmentation
from evidentia.semisup.method_settings import check_real, check_whole
from evidentia.semisup.objectives.base import (
    OBJECTIVES,
    Consistency,
    Labeled,
    Objective,
    logits_of,
    ones,
    targets_for,
)
from evidentia.semisup.objectives.distances import sharpen, squared_error


@OBJECTIVES.register("mixmatch")
@dataclass(kw_only=True, eq=False)
class MixMatch(Objective):
    r"""The squared error on a mixture of two samples and their guessed classes (Berthelot et al., NeurIPS 2019).

    $$q_j = \mathrm{sharpen}\Big(\frac{1}{A} \sum_a p(\tilde x_{ja}), T\Big), \qquad
      x'_j = \lambda_j \tilde x_{j1} + (1 - \lambda_j) \tilde x_m, \qquad
      t_j = \lambda_j q_j + (1 - \lambda_j) q_m, \qquad r_j = \frac{1}{K} \sum_k (p_k(x'_j) - t_{jk})^2$$

    with $\lambda = \max(\lambda', 1 - \lambda')$, $\lambda' \sim \mathrm{Beta}(\alpha, \alpha)$, and m drawn from all
    views of the batch and the labeled samples. As $\lambda_j \ge 1/2$, a mixture is mostly its own sample, and its cost
    has that sample's weight. In the paper each of the A views is mixed and learnt from, and labeled samples are mixed
    too; here it is the first view, and the labeled loss stays what it is.

    Args:
        weight: the coefficient of the objective.
        rampup: the number of updates over which it is reached; the paper has 16,000.
        views: A, how many weak augmentations are averaged.
        temperature: T of the sharpening.
        alpha: of the Beta distribution; small values mix little. 0 for no mixing.

    Example:
        >>> from evidentia.semisup import AUGMENTATIONS
        >>> network, x = nn.Linear(2, 3), torch.randn(5, 2)
        >>> labeled = torch.randn(4, 2), torch.tensor([0, 1, 2, 0])
        >>> MixMatch().prepare(network, x, AUGMENTATIONS["vectors"](), labeled=labeled).targets.shape
        torch.Size([5, 3])
    """

    weight: float = 75.0
    views: int = 2
    temperature: float = 0.5
    alpha: float = 0.75

    def __post_init__(self) -> None:
        """Require settings in their range."""
        super().__post_init__()
        check_whole(self, "views", 1)
        check_real(self, "temperature", open_low=True)
        check_real(self, "alpha")

    def prepare(
        self, network: nn.Module, x: Tensor, augment: Augmentation, *, labeled: Labeled | None = None
    ) -> Consistency:
        """Mixtures of the batch's samples with each other and with labeled ones, and of their classes."""
        views = [augment.weak(x) for _ in range(self.views)]
        # View by view, because the weights of a surrounding `batch_weights` are those of one batch.
        mean = torch.stack([logits_of(network, view).softmax(-1) for view in views]).mean(0)
        guesses = sharpen(mean, self.temperature)
        if self.alpha == 0:
            return Consistency(views[0], guesses, ones(guesses))
        inputs, targets = torch.cat(views), guesses.repeat(self.views, 1)
        if labeled is not None:
            inputs, targets = _with_labeled(inputs, targets, augment, labeled)
        partner = torch.randperm(len(inputs), device=x.device)[: len(x)]
        share = torch.distributions.Beta(self.alpha, self.alpha).sample((len(x),)).to(guesses)
        share = torch.maximum(share, 1 - share)
        return Consistency(
            _mixed(views[0], inputs[partner], share), _mixed(guesses, targets[partner], share), ones(guesses)
        )

    def per_sample(self, logits: Tensor, consistency: Consistency) -> Tensor:
        """The squared error of class probabilities."""
        return consistency.counts * squared_error(logits, targets_for(logits, consistency))


def _with_labeled(inputs: Tensor, targets: Tensor, augment: Augmentation, labeled: Labeled) -> tuple[Tensor, Tensor]:
    x, y = labeled
    if x.shape[1:] != inputs.shape[1:] or y.shape != x.shape[:1]:
        raise EvidentiaError(
            f"labeled samples of shape (n, {', '.join(map(str, inputs.shape[1:]))}) with n class indices are needed, "
            f"got shapes {tuple(x.shape)} and {tuple(y.shape)}"
        )
    classes = targets.shape[1]
    if y.is_floating_point() or (len(y) and not 0 <= int(y.min()) <= int(y.max()) < classes):
        raise EvidentiaError(f"the labels must be class indices from 0 to {classes - 1}, as the network has {classes}")
    return torch.cat([inputs, augment.weak(x)]), torch.cat([targets, F.one_hot(y.long(), classes).to(targets)])


def _mixed(first: Tensor, second: Tensor, share: Tensor) -> Tensor:
    return torch.lerp(second, first, share.to(first.dtype).view(-1, *(1,) * (first.ndim - 1)))
