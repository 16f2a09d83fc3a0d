"""How strongly evidence for wrong classes is penalised as training goes on."""

from __future__ import annotations


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
