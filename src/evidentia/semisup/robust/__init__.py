"""Robust methods: how unlabeled samples are weighed, each found by name."""

from evidentia.semisup.robust.base import ROBUST, Apply, Pool, Robust, Update
from evidentia.semisup.robust.by_gradient import ImplicitDifferentiation, Meta
from evidentia.semisup.robust.by_uncertainty import ByUncertainty
from evidentia.semisup.robust.controls import NotRobust, Oracle, Supervised
from evidentia.semisup.robust.l2rw import LearningToReweight
from evidentia.semisup.robust.uasd import SelfDistillation
from evidentia.semisup.robust.weight_network import MetaWeightNet, SafeDeepSSL

__all__ = [
    "ROBUST",
    "Apply",
    "ByUncertainty",
    "ImplicitDifferentiation",
    "LearningToReweight",
    "Meta",
    "MetaWeightNet",
    "NotRobust",
    "Oracle",
    "Pool",
    "Robust",
    "SafeDeepSSL",
    "SelfDistillation",
    "Supervised",
    "Update",
]
