"""What an unlabeled sample costs, one file an objective; importing this package registers them all."""

from evidentia.semisup.objectives.base import OBJECTIVES, Consistency, Labeled, Objective
from evidentia.semisup.objectives.entropy_minimisation import EntropyMinimisation
from evidentia.semisup.objectives.fixmatch import FixMatch
from evidentia.semisup.objectives.mean_teacher import MeanTeacher
from evidentia.semisup.objectives.mixmatch import MixMatch
from evidentia.semisup.objectives.pi_model import PiModel
from evidentia.semisup.objectives.pseudo_label import PseudoLabel
from evidentia.semisup.objectives.uda import UDA
from evidentia.semisup.objectives.vat import VAT

__all__ = [
    "OBJECTIVES",
    "UDA",
    "VAT",
    "Consistency",
    "EntropyMinimisation",
    "FixMatch",
    "Labeled",
    "MeanTeacher",
    "MixMatch",
    "Objective",
    "PiModel",
    "PseudoLabel",
]
