"""Semi-supervised training that survives an unlabeled pool with samples of no class (thesis chapter 3)."""

from evidentia.learning import WeightedBatchNorm1d, WeightedBatchNorm2d, WeightedBatchNorm3d
from evidentia.learning import convert_batch_norm as convert
from evidentia.semisup.augmentation import AUGMENTATIONS, Augmentation, as_augmentation, image_augmentation
from evidentia.semisup.clusters import Clusters, kmeans, purity, share
from evidentia.semisup.data.by_name import load_pool, pool_kinds
from evidentia.semisup.data.moons import two_moons
from evidentia.semisup.estimator import SemiSupervisedClassifier
from evidentia.semisup.hypergradients.hypergradient import (
    DivergenceWarning,
    HyperGradient,
    InnerProblem,
    LastLayerProblem,
    ift_gradient,
    ift_gradient_from,
    meta_gradient,
    meta_gradient_from,
)
from evidentia.semisup.inputs.arrays import from_arrays
from evidentia.semisup.networks.averaging import WeightAverage
from evidentia.semisup.networks.features import pool_features
from evidentia.semisup.networks.last_layer import LastLayer
from evidentia.semisup.networks.models import MLP, NETWORKS, LeNet, Network, WideResNet
from evidentia.semisup.networks.passes import Passes
from evidentia.semisup.objectives import (
    OBJECTIVES,
    UDA,
    VAT,
    Consistency,
    EntropyMinimisation,
    FixMatch,
    MeanTeacher,
    MixMatch,
    Objective,
    PiModel,
    PseudoLabel,
)
from evidentia.semisup.pool import SemiSupervisedData
from evidentia.semisup.presets import usual_settings
from evidentia.semisup.regulariser import (
    WeightRegulariser,
    l1_gradient,
    l1_term,
    uncertainty_gradient,
    uncertainty_term,
)
from evidentia.semisup.review import PoolReview
from evidentia.semisup.robust import (
    ROBUST,
    ByUncertainty,
    ImplicitDifferentiation,
    LearningToReweight,
    Meta,
    MetaWeightNet,
    NotRobust,
    Oracle,
    Robust,
    SafeDeepSSL,
    SelfDistillation,
    Supervised,
)
from evidentia.semisup.tasks import CONTROLS, TaskResult, TrainedTask, run_task, train_task
from evidentia.semisup.training.loop import SemiSupervisedTraining
from evidentia.semisup.uncertainty import (
    UNCERTAINTIES,
    Confidence,
    EvidentialVacuity,
    KernelEvidence,
    LabeledAgainstUnlabeled,
    PoolReport,
    PoolUncertainty,
    PoolView,
)
from evidentia.semisup.weights import SampleWeights

__all__ = [
    "AUGMENTATIONS",
    "CONTROLS",
    "MLP",
    "NETWORKS",
    "OBJECTIVES",
    "ROBUST",
    "UDA",
    "UNCERTAINTIES",
    "VAT",
    "Augmentation",
    "ByUncertainty",
    "Clusters",
    "Confidence",
    "Consistency",
    "DivergenceWarning",
    "EntropyMinimisation",
    "EvidentialVacuity",
    "FixMatch",
    "HyperGradient",
    "ImplicitDifferentiation",
    "InnerProblem",
    "KernelEvidence",
    "LabeledAgainstUnlabeled",
    "LastLayer",
    "LastLayerProblem",
    "LeNet",
    "LearningToReweight",
    "MeanTeacher",
    "Meta",
    "MetaWeightNet",
    "MixMatch",
    "Network",
    "NotRobust",
    "Objective",
    "Oracle",
    "Passes",
    "PiModel",
    "PoolReport",
    "PoolReview",
    "PoolUncertainty",
    "PoolView",
    "PseudoLabel",
    "Robust",
    "SafeDeepSSL",
    "SampleWeights",
    "SelfDistillation",
    "SemiSupervisedClassifier",
    "SemiSupervisedData",
    "SemiSupervisedTraining",
    "Supervised",
    "TaskResult",
    "TrainedTask",
    "WeightAverage",
    "WeightRegulariser",
    "WeightedBatchNorm1d",
    "WeightedBatchNorm2d",
    "WeightedBatchNorm3d",
    "WideResNet",
    "as_augmentation",
    "convert",
    "from_arrays",
    "ift_gradient",
    "ift_gradient_from",
    "image_augmentation",
    "kmeans",
    "l1_gradient",
    "l1_term",
    "load_pool",
    "meta_gradient",
    "meta_gradient_from",
    "pool_features",
    "pool_kinds",
    "purity",
    "run_task",
    "share",
    "train_task",
    "two_moons",
    "uncertainty_gradient",
    "uncertainty_term",
    "usual_settings",
]
