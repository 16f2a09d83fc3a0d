"""What changes as training goes on: how strongly evidence for wrong classes is penalised, and the learning rate."""

from __future__ import annotations

import math


def annealed_weight(epoch: float, num_classes: int, weight: float = 1.0, ramp: float = 10.0) -> float:
    r"""$\frac{w}{K} \min(1, t / T)$: from 0 to its full value over the first T epochs, and scaled by 1/K.

    The penalty is a divergence over K classes and grows with K, while the gain from the right class does not: without
    the division it wins from about 64 classes on, and the network learns to give no evidence at all.

    Args:
        epoch: epochs done so far; fractions are fine.
        num_classes: K.
        weight: the full weight w.
        ramp: the epochs T until it is reached; 0 for no ramp.

    Example:
        >>> [annealed_weight(epoch, num_classes=10) for epoch in (0, 5, 20)]
        [0.0, 0.05, 0.1]
    """
    share = min(1.0, epoch / ramp) if ramp > 0 else 1.0
    return weight * share / num_classes


def scheduled_rate(first: float, schedule: str, progress: float) -> float:
    r"""The learning rate after a share p of training: $\frac{r}{2} (1 + \cos \pi p)$ for "cosine".

    "constant" keeps the first rate r; "step" has 0.2 r from the middle on.

    Example:
        >>> [round(scheduled_rate(0.1, "cosine", progress), 3) for progress in (0, 0.5, 1)]
        [0.1, 0.05, 0.0]
        >>> scheduled_rate(0.5, "step", 0.5)
        0.1
    """
    if schedule == "cosine":
        return first * 0.5 * (1 + math.cos(math.pi * progress))
    return first * (0.2 if schedule == "step" and progress >= 0.5 else 1.0)
