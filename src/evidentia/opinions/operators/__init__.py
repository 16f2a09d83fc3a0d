"""Subjective-logic operators: opinions in, opinions out, all on batches.

Those that combine many opinions take them as separate arguments, or as one batch with `dim`, the batch dimension
along which to combine.
"""

from evidentia.opinions.operators.conditional import abduce, deduce, invert
from evidentia.opinions.operators.fusion import (
    averaging_fusion,
    constraint_fusion,
    cumulative_fusion,
    weighted_fusion,
)
from evidentia.opinions.operators.propositional import add, complement, comultiply, multiply
from evidentia.opinions.operators.registry import OPERATORS
from evidentia.opinions.operators.trust import discount

__all__ = [
    "OPERATORS",
    "abduce",
    "add",
    "averaging_fusion",
    "complement",
    "comultiply",
    "constraint_fusion",
    "cumulative_fusion",
    "deduce",
    "discount",
    "invert",
    "multiply",
    "weighted_fusion",
]
