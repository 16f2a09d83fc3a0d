"""The samples of one update: how many, and which."""

from __future__ import annotations

import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia.semisup.augmentation import Augmentation
from evidentia.semisup.robust import Apply
from evidentia.semisup.weights import KEPT_FROM, SampleWeights, drawn_rows

_USUAL = 256


def unlabeled_size(asked: int | None, pool: int) -> int:
    """Samples of an unlabeled batch: by default 256, or the pool if it is smaller.

    Example:
        >>> unlabeled_size(None, 100), unlabeled_size(None, 5000), unlabeled_size(20, 5000)
        (100, 256, 20)
    """
    if asked is None:
        return min(_USUAL, pool)
    if asked > pool:
        raise EvidentiaError(
            f"unlabeled_batch is {asked}, but the pool has {pool} samples; ask for at most {pool}, or leave it out"
        )
    return asked


def pool_rows(weights: SampleWeights, count: int, apply: Apply) -> Tensor:
    """The rows of the pool for a batch, drawn evenly, for "sample" by their weights, for "keep" from those kept."""
    if apply == "loss":
        return torch.randperm(len(weights), device=weights.values.device)[:count]
    return drawn_rows(weights.sampling_probabilities(KEPT_FROM if apply == "keep" else 0.0), count)


def labeled_batch(samples: tuple[Tensor, Tensor], size: int, augment: Augmentation) -> tuple[Tensor, Tensor]:
    """A batch of labeled samples, weakly augmented, and their classes; all of them if there are no more than `size`."""
    x, y = samples
    if len(x) > size:
        rows = torch.randperm(len(x), device=x.device)[:size]
        return augment.weak(x[rows]), y[rows]
    return augment.weak(x), y
