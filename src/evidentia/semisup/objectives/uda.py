"""Unsupervised data augmentation: what is said of a sample, sharpened, is to be said of its strong view."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from evidentia.semisup.augmentation import Augmentation
from evidentia.semisup.method_settings import check_real
from evidentia.semisup.objectives.base import (
    OBJECTIVES,
    Consistency,
    Labeled,
    Objective,
    logits_of,
    targets_for,
)
from evidentia.semisup.objectives.distances import kl_divergence


@OBJECTIVES.register("uda")
@dataclass(kw_only=True, eq=False)
class UDA(Objective):
    r"""The divergence of a strong view from a sharpened weak one, where that is sure (Xie et al., NeurIPS 2020).

    $$r_j = \mathbb{1}[\max_k p_k(x^w_j) \ge \tau]\; \mathrm{KL}(q_j \,\|\, p(x^s_j)), \qquad
      q_j = \mathrm{softmax}(z(x^w_j) / T)$$

    The paper's gradual release of labeled samples concerns the labeled loss and is no part of this.

    Args:
        weight: the coefficient of the objective.
        rampup: the number of updates over which it is reached.
        threshold: $\tau$, how probable the class has to be before sharpening.
        temperature: T; 1 leaves the targets as they are.

    Example:
        >>> import torch
        >>> from evidentia.semisup import AUGMENTATIONS
        >>> objective = UDA(temperature=0.5)
        >>> objective.prepare(nn.Identity(), torch.tensor([[2.0, 0.0]]), AUGMENTATIONS["none"]()).targets
        tensor([[0.9820, 0.0180]])
    """

    weight: float = 1.0
    threshold: float = 0.8
    temperature: float = 0.4

    def __post_init__(self) -> None:
        """Require settings in their range."""
        super().__post_init__()
        check_real(self, "threshold", 1)
        check_real(self, "temperature", open_low=True)

    def prepare(
        self, network: nn.Module, x: Tensor, augment: Augmentation, *, labeled: Labeled | None = None
    ) -> Consistency:
        """A strong view, and what the network says of the weak one, sharpened."""
        logits = logits_of(network, augment.weak(x))
        sure = logits.softmax(-1).amax(-1) >= self.threshold
        return Consistency(augment.strong(x), (logits / self.temperature).softmax(-1), sure.to(logits.dtype))

    def per_sample(self, logits: Tensor, consistency: Consistency) -> Tensor:
        """The divergence where the network was sure, else 0."""
        return consistency.counts * kl_divergence(logits, targets_for(logits, consistency))
