"""FixMatch: teach the strongly augmented sample what the weakly augmented one surely is."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from evidentia.semisup.augmentation import Augmentation
from evidentia.semisup.objectives.base import OBJECTIVES, Consistency, Labeled, logits_of
from evidentia.semisup.objectives.distances import one_hot
from evidentia.semisup.objectives.pseudo_label import PseudoLabel


@OBJECTIVES.register("fixmatch")
@dataclass(kw_only=True, eq=False)
class FixMatch(PseudoLabel):
    r"""The cross entropy of a strong view with the class of a weak one, where that is sure (Sohn et al., NeurIPS 2020).

    $$r_j = \mathbb{1}[\max_k p_k(x^w_j) \ge \tau]\; H(\hat y_j, p(x^s_j)), \qquad \hat y_j = \arg\max_k p_k(x^w_j)$$

    Args:
        weight: the coefficient of the objective.
        rampup: the number of updates over which it is reached.
        threshold: $\tau$, how probable the class has to be.

    Example:
        >>> import torch
        >>> from evidentia.semisup import Augmentation
        >>> halved = Augmentation(weak=lambda x: x, strong=lambda x: x / 2)
        >>> objective, x = FixMatch(), torch.tensor([[4.0, 0.0], [1.0, 0.0]])
        >>> consistency = objective.prepare(nn.Identity(), x, halved)
        >>> objective.per_sample(consistency.inputs, consistency)
        tensor([0.1269, 0.0000])
    """

    def prepare(
        self, network: nn.Module, x: Tensor, augment: Augmentation, *, labeled: Labeled | None = None
    ) -> Consistency:
        """A strong view, and what the network takes the weak one for."""
        probs = logits_of(network, augment.weak(x)).softmax(-1)
        return Consistency(augment.strong(x), one_hot(probs), (probs.amax(-1) >= self.threshold).to(probs.dtype))
