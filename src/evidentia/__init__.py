"""evidentia: how unsure a neural network is, and why.

Example:
    >>> import torch, evidentia as ev
    >>> w = ev.MultinomialOpinion.from_evidence(torch.tensor([[40.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))
    >>> ev.vacuity(w)
    tensor([0.0682, 1.0000])
"""

from evidentia import evaluation, learning, opinions
from evidentia._support.checks import validation
from evidentia._support.errors import EvidentiaError, FileFormatError, MissingExtraError
from evidentia._version import __version__
from evidentia.learning import EvidentialClassifier
from evidentia.opinions import (
    BinomialOpinion,
    HyperOpinion,
    MultinomialOpinion,
    Opinion,
    aleatoric,
    consonance,
    differential_entropy,
    dissonance,
    entropy,
    epistemic,
    monosonance,
    uncertainties,
    vacuity,
    vagueness,
)
from evidentia.prediction import Prediction, Triage, TriageRule, Verdict

__all__ = [
    "BinomialOpinion",
    "EvidentiaError",
    "EvidentialClassifier",
    "FileFormatError",
    "HyperOpinion",
    "MissingExtraError",
    "MultinomialOpinion",
    "Opinion",
    "Prediction",
    "Triage",
    "TriageRule",
    "Verdict",
    "__version__",
    "aleatoric",
    "consonance",
    "differential_entropy",
    "dissonance",
    "entropy",
    "epistemic",
    "evaluation",
    "learning",
    "monosonance",
    "opinions",
    "uncertainties",
    "vacuity",
    "vagueness",
    "validation",
]
