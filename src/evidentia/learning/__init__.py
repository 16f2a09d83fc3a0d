"""How any torch network learns to give opinions."""

from evidentia.learning.activations import ACTIVATIONS
from evidentia.learning.annealing import annealed_weight
from evidentia.learning.beta_loss import beta_risk
from evidentia.learning.classifier import EvidentialClassifier
from evidentia.learning.density import GaussianDensity
from evidentia.learning.divergence import dirichlet_kl
from evidentia.learning.epoch_settings import EpochSettings
from evidentia.learning.fixed_divergence import DivergenceTo
from evidentia.learning.losses import (
    LOSSES,
    cross_entropy_risk,
    misleading_evidence,
    prior_network_forward,
    prior_network_reverse,
    squared_error_risk,
    type_ii_likelihood,
)
from evidentia.learning.methods import METHODS, OUTLIER, DirichletMethod, FlexibleDirichlet, Method
from evidentia.learning.modes import frozen_statistics
from evidentia.learning.sampling import Ensemble, MCDropout, SampledClassifier, match_moments
from evidentia.learning.training import TrainingSettings
from evidentia.learning.weighted_batch_norm import (
    WeightedBatchNorm1d,
    WeightedBatchNorm2d,
    WeightedBatchNorm3d,
    batch_weights,
    convert_batch_norm,
)

__all__ = [
    "ACTIVATIONS",
    "LOSSES",
    "METHODS",
    "OUTLIER",
    "DirichletMethod",
    "DivergenceTo",
    "Ensemble",
    "EpochSettings",
    "EvidentialClassifier",
    "FlexibleDirichlet",
    "GaussianDensity",
    "MCDropout",
    "Method",
    "SampledClassifier",
    "TrainingSettings",
    "WeightedBatchNorm1d",
    "WeightedBatchNorm2d",
    "WeightedBatchNorm3d",
    "annealed_weight",
    "batch_weights",
    "beta_risk",
    "convert_batch_norm",
    "cross_entropy_risk",
    "dirichlet_kl",
    "frozen_statistics",
    "match_moments",
    "misleading_evidence",
    "prior_network_forward",
    "prior_network_reverse",
    "squared_error_risk",
    "type_ii_likelihood",
]
