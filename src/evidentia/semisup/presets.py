"""How a data set's network is trained with an objective, unless the user says otherwise."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from evidentia._support.errors import EvidentiaError
from evidentia.semisup.augmentation import image_augmentation
from evidentia.semisup.choices import refuse_class
from evidentia.semisup.objectives import OBJECTIVES, FixMatch, MeanTeacher, Objective, PseudoLabel

Preset: TypeAlias = Literal["quick", "thesis", "author"]

_PRESETS: dict[str, dict[str, Any]] = {
    "quick": {"updates": 1000, "labeled_batch": 100, "unlabeled_batch": 100, "learning_rate": 3e-3},
    "thesis": {"updates": 2000, "labeled_batch": 100, "unlabeled_batch": 100, "schedule": "step", "average": None},
    "author": {"updates": 10_000, "labeled_batch": 64, "unlabeled_batch": 256, "schedule": "step", "average": None},
}
# First learning rates of the thesis' table ("Hyperparameter settings used in MNIST experiments"). What the table does
# not have goes with the most common one, which is that of supervised training too; so does FixMatch, although it is
# built on pseudo-labels.
_USUAL_RATE = 3e-3
_RATES: dict[type, float] = {MeanTeacher: 4e-4, PseudoLabel: 3e-4, FixMatch: _USUAL_RATE}

# A perturbation that leaves the class as it is depends on the size of samples: the moons are 0.5 apart, digits of 8 x 8
# pixels have a third of the length of MNIST's, and photographs hardly stand to be changed by more.
_EPSILON = {"two-moons": 0.15, "digits": 1.0, "cifar10": 1.5, "cifar100": 1.5, "svhn": 1.5, "svhn-extra": 1.5}
# The thesis' 0.3 is for the divergence of ten classes.
_QUICK_WEIGHT = {("two-moons", "vat"): 1.0}

_PHOTOGRAPHS: dict[str, Any] = {"rotation": 15.0, "brightness": 0.4, "cutout": 0.5, "padding": "reflection"}
_AUGMENTATIONS: dict[str, dict[str, Any]] = {
    "mnist": {},
    "digits": {"shift": 1, "rotation": 15.0, "scale": 0.1, "shear": 0.2},
    "cifar10": {"flip": True, **_PHOTOGRAPHS},
    "cifar100": {"flip": True, **_PHOTOGRAPHS},
    "svhn": _PHOTOGRAPHS,
    "svhn-extra": _PHOTOGRAPHS,
}
_NETWORKS = {"two-moons": "mlp", "digits": "mlp", "mnist": "lenet"}
# A wide ResNet that two cores train in minutes; the presets of others' experiments take WRN-28-2 as they did.
_SMALL_WRN, _WRN = "wrn-10-1", "wrn"


def usual_settings(
    name: str, objective: str | Objective, preset: Preset = "quick", *, uses_pool: bool = True
) -> dict[str, Any]:
    """How a network is trained on a data set with an objective: what `SemiSupervisedClassifier` is to be given.

    | preset | updates | batches | learning rate | coefficient |
    |---|---|---|---|---|
    | quick | 1,000 | 100 labeled, 100 unlabeled | 0.003, falling to 0 by a cosine; weights averaged | the objective's |
    | thesis | 2,000 | 100, 100 | of its table, times 0.2 half-way; no average | of its table |
    | author | 10,000 | 64, 256 | as thesis | 1 |

    The thesis trains photographs (CIFAR, SVHN) for 500,000 updates; ask for them by `updates`. Its network for them,
    WRN-28-2, is taken by `thesis` and `author`; `quick` takes one of depth 10 and width 1, which two cores can train.

    Args:
        name: a data set of `evidentia.semisup.load_pool`; for any other the classifier's own choices stand.
        objective: a name of `evidentia.semisup.OBJECTIVES`, or an objective, which is taken as it is.
        preset: "quick", "thesis" or "author".
        uses_pool: False for a training on labels alone, which has a rate of its own in the thesis' table.

    Example:
        >>> settings = usual_settings("two-moons", "vat")
        >>> settings["objective"].epsilon, settings["network"], settings["updates"]
        (0.15, 'mlp', 1000)
        >>> usual_settings("mnist", "mean-teacher", "thesis")["learning_rate"]
        0.0004
    """
    if preset not in _PRESETS:
        raise EvidentiaError(f"there is no preset named {preset!r}; choose one of: {', '.join(_PRESETS)}")
    method = _objective(name, objective, preset)
    settings: dict[str, Any] = {"objective": method}
    if preset != "quick":
        # By class, so that an objective with settings of its own trains as one that is named does.
        rates = [_RATES[kind] for kind in type(method).__mro__ if uses_pool and kind in _RATES]
        settings["learning_rate"] = rates[0] if rates else _USUAL_RATE
    if name in _NETWORKS:
        settings["network"] = _NETWORKS[name]
    elif name in _AUGMENTATIONS:
        settings["network"] = _SMALL_WRN if preset == "quick" else _WRN
    if name in _AUGMENTATIONS:
        settings["augmentation"] = image_augmentation(**_AUGMENTATIONS[name])
    return {**_PRESETS[preset], **settings}


def _objective(name: str, objective: str | Objective, preset: Preset) -> Objective:
    if isinstance(objective, Objective):
        return objective
    refuse_class(objective, "objective")
    options: dict[str, Any] = {}
    if objective == "vat" and name in _EPSILON:
        options["epsilon"] = _EPSILON[name]
    if preset == "author":
        options["weight"] = 1.0
    elif preset == "quick" and (name, objective) in _QUICK_WEIGHT:
        options["weight"] = _QUICK_WEIGHT[name, objective]
    return OBJECTIVES[objective](**options)
