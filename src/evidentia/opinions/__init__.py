"""The vocabulary: opinions, measures of uncertainty, and the operators of subjective logic. Pure tensors."""

from evidentia.opinions._opinion import Opinion
from evidentia.opinions.binomial import BinomialOpinion
from evidentia.opinions.grouped_dirichlet import GroupedDirichlet
from evidentia.opinions.hyper import HyperOpinion
from evidentia.opinions.measures import (
    MEASURES,
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
from evidentia.opinions.multinomial import MultinomialOpinion
from evidentia.opinions.operators import (
    OPERATORS,
    abduce,
    add,
    averaging_fusion,
    complement,
    comultiply,
    constraint_fusion,
    cumulative_fusion,
    deduce,
    discount,
    invert,
    multiply,
    weighted_fusion,
)

__all__ = [
    "MEASURES",
    "OPERATORS",
    "BinomialOpinion",
    "GroupedDirichlet",
    "HyperOpinion",
    "MultinomialOpinion",
    "Opinion",
    "abduce",
    "add",
    "aleatoric",
    "averaging_fusion",
    "complement",
    "comultiply",
    "consonance",
    "constraint_fusion",
    "cumulative_fusion",
    "deduce",
    "differential_entropy",
    "discount",
    "dissonance",
    "entropy",
    "epistemic",
    "invert",
    "monosonance",
    "multiply",
    "uncertainties",
    "vacuity",
    "vagueness",
    "weighted_fusion",
]
