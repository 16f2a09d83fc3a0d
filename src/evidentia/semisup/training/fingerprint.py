"""What must be the same for an interrupted run to go on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from evidentia.learning.checkpoint import digest, module_digest
from evidentia.semisup.networks.own_network import frozen_parts
from evidentia.semisup.pool import SemiSupervisedData
from evidentia.semisup.training.loop import SemiSupervisedTraining
from evidentia.semisup.training.words import words

_UNIMPORTANT = {"checkpoint", "log", "tensorboard", "progress"}


def fingerprint(
    methods: Mapping[str, str],
    settings: SemiSupervisedTraining,
    network: nn.Module,
    data: SemiSupervisedData,
    *,
    standardise: bool,
    truth: bool,
) -> dict[str, Any]:
    """What a run is known by, entry by entry, ready for JSON.

    Args:
        methods: objective, robust method and augmentation in words.
        settings: how to train; where the run is logged and kept does not count.
        network: before any training, as a user's own module brings its weights with it.
        data: what is trained on.
        standardise: whether samples are brought to one scale.
        truth: whether training is told which samples of the pool belong to no class.
    """
    tensors = [data.x_labeled, data.y_labeled, data.x_unlabeled, data.x_validation, data.y_validation]
    if truth and data.is_ood is not None:
        tensors.append(data.is_ood)
    return {
        **methods,
        **settings.model_dump(mode="json", exclude=_UNIMPORTANT),
        "data": digest(tensors),
        "network": f"{words(network)} {module_digest(network)}",
        "standardise": standardise,
        "frozen": frozen_parts(network),
    }
