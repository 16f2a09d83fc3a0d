"""Evidential methods, one file each; importing this package registers them all."""

from evidentia.learning.methods.base import METHODS, OUTLIER, DirichletMethod, Method
from evidentia.learning.methods.daedl import DAEDL
from evidentia.learning.methods.edl import EDL
from evidentia.learning.methods.f_edl import FEDL, FlexibleDirichlet
from evidentia.learning.methods.hyper import HyperEDL
from evidentia.learning.methods.i_edl import IEDL
from evidentia.learning.methods.prior_network import PriorNetwork
from evidentia.learning.methods.r_edl import REDL, ReEDL
from evidentia.learning.methods.softmax import Softmax

__all__ = [
    "DAEDL",
    "EDL",
    "FEDL",
    "IEDL",
    "METHODS",
    "OUTLIER",
    "REDL",
    "DirichletMethod",
    "FlexibleDirichlet",
    "HyperEDL",
    "Method",
    "PriorNetwork",
    "ReEDL",
    "Softmax",
]
