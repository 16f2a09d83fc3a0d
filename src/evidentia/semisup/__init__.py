"""Semi-supervised training that survives an unlabeled pool with samples of no class (thesis chapter 3)."""

from evidentia.semisup.arrays import from_arrays
from evidentia.semisup.augmentation import AUGMENTATIONS, Augmentation, as_augmentation
from evidentia.semisup.averaging import WeightAverage
from evidentia.semisup.data import load_pool
from evidentia.semisup.hypergradient import (
    DivergenceWarning,
    HyperGradient,
    InnerProblem,
    LastLayerProblem,
    ift_gradient,
    ift_gradient_from,
    meta_gradient,
    meta_gradient_from,
)
from evidentia.semisup.last_layer import LastLayer
from evidentia.semisup.models import MLP, NETWORKS, LeNet, Network, WideResNet
from evidentia.semisup.moons import two_moons
from evidentia.semisup.objectives import OBJECTIVES, Consistency, Objective
from evidentia.semisup.pool import SemiSupervisedData

__all__ = [
    "AUGMENTATIONS",
    "MLP",
    "NETWORKS",
    "OBJECTIVES",
    "Augmentation",
    "Consistency",
    "DivergenceWarning",
    "HyperGradient",
    "InnerProblem",
    "LastLayer",
    "LastLayerProblem",
    "LeNet",
    "Network",
    "Objective",
    "SemiSupervisedData",
    "WeightAverage",
    "WideResNet",
    "as_augmentation",
    "from_arrays",
    "ift_gradient",
    "ift_gradient_from",
    "load_pool",
    "meta_gradient",
    "meta_gradient_from",
    "two_moons",
]
