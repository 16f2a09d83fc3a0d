"""How little evidence there is for each sample of the pool, by estimators that are found by name."""

from evidentia.semisup.uncertainty.base import UNCERTAINTIES, ByFunction, PoolUncertainty, PoolView, Progress
from evidentia.semisup.uncertainty.discriminator import LabeledAgainstUnlabeled, PoolReport
from evidentia.semisup.uncertainty.kernel import KernelEvidence
from evidentia.semisup.uncertainty.outputs import Confidence, EvidentialVacuity

__all__ = [
    "UNCERTAINTIES",
    "ByFunction",
    "Confidence",
    "EvidentialVacuity",
    "KernelEvidence",
    "LabeledAgainstUnlabeled",
    "PoolReport",
    "PoolUncertainty",
    "PoolView",
    "Progress",
]
