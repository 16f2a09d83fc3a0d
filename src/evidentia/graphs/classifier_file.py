"""A trained graph classifier in one file: weights and settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from torch import nn

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia._support.files import load_tensors, save_tensors

if TYPE_CHECKING:
    from evidentia.graphs.estimator import GraphClassifier

Classifier = TypeVar("Classifier", bound="GraphClassifier")

_KIND = "graph classifier"


def save(model: GraphClassifier, path: str | Path) -> None:
    """Write a trained classifier, whole or not at all."""
    content = {
        "method": model.method_name,
        "backbone": model.backbone if isinstance(model.backbone, str) else None,
        "options": model.options,
        "normalise": model._normalises,
        "sigma": model.sigma,
        "passes": model.passes,
        "members": model.members,
        "propagation": model.propagation,
        "spreads_classes": model._spreads_classes,
        "settings": model.settings.model_dump(mode="json"),
        "num_features": model._num_features,
        "num_classes": model.num_classes,
    }
    save_tensors(path, _KIND, model._networks.state_dict(), content)


def load(cls: type[Classifier], path: str | Path, backbone: nn.Module | None) -> Classifier:
    """Read what `save` wrote; nothing in the file can run code."""
    tensors, content = load_tensors(path, _KIND)
    chosen = content.get("backbone") if backbone is None else backbone
    if chosen is None or (backbone is not None and content.get("backbone") is not None):
        needed = "the module it was built with" if backbone is None else "no module"
        raise EvidentiaError(f"{path} needs {needed} as backbone")
    try:
        model = cls(
            content["method"],
            chosen,
            normalise=content["normalise"],
            sigma=content["sigma"],
            passes=content["passes"],
            members=content["members"],
            propagation=content["propagation"],
            **content["options"],
            **content["settings"],
        )
        model._normalises, model._spreads_classes = content["normalise"], content["spreads_classes"]
        model._num_features, model.num_classes = content["num_features"], content["num_classes"]
        model.history = []
        roles = ["classes"] + ["strength"] * (model.method.strength_prior is not None)
        for role in roles:
            built = (model._build(model._num_features, model.num_classes, seed=0) for _ in range(model.members))
            model._networks[role] = nn.ModuleList(built)
        model._networks.load_state_dict(tensors)
    except (KeyError, TypeError, RuntimeError) as error:
        raise FileFormatError(f"{path} does not hold a whole graph classifier: {error}") from error
    model._networks.eval()
    return model
