"""A detector in a file: weights as safetensors, all else as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import torch

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia._support.files import load_tensors, save_tensors
from evidentia.events.front_end.inputs import Inputs
from evidentia.events.fusion import make_head
from evidentia.events.networks.network import EventNetwork
from evidentia.learning.checkpoint import part_of

if TYPE_CHECKING:
    from evidentia.events.estimator import EventDetector

Detector = TypeVar("Detector", bound="EventDetector")

_KIND = "event detector"
# Settings of one training on one machine. A file of others may not say what is written to where.
_LEFT_OUT = {"checkpoint"}


def save_detector(det: EventDetector, path: str | Path) -> None:
    """Write a trained detector, whole or not at all."""
    network = det.network_
    content = {
        "network": det.network if isinstance(det.network, str) else None,
        "size": det.size,
        "preset": det.preset,
        "network_settings": det.network_settings,
        "sound": det.sound,
        "settings": det.settings.model_dump(mode="json", exclude=_LEFT_OUT),
        "tuning": det.tuning.model_dump(mode="json"),
        "trigger": det.trigger.model_dump(mode="json"),
        "labels": list(det.labels_),
        "columns": list(det.columns_),
        "inputs": det.inputs_.model_dump(mode="json"),
        "heads": [head.describe() for head in (det.head, det.head_, det.warning_)],
        "history": det.history_,
        "calibration": det.calibration_,
        "unit": None if network.unit is None else network.unit.tolist(),
    }
    save_tensors(path, _KIND, {f"network/{name}": tensor for name, tensor in network.state_dict().items()}, content)


def load_detector(kind: type[Detector], path: str | Path, network: EventNetwork | None = None) -> Detector:
    """Read what `save_detector` wrote; a network of the user's own must be given again."""
    tensors, content = load_tensors(path, _KIND)
    try:
        if (content["network"] is None) == (network is None):
            needed = "the network it was built with" if network is None else "no network"
            raise EvidentiaError(f"{path} needs {needed}")
        head, chosen, warning = (make_head(**described) for described in content["heads"])
        det = kind(
            content["network"] if network is None else network,
            content["size"],
            head,
            content["labels"],
            content["preset"],
            content["network_settings"],
            content["sound"],
            **{name: value for name, value in content["settings"].items() if name not in _LEFT_OUT},
            **content["tuning"],
            **content["trigger"],
        )
        det.labels_, det.inputs_ = tuple(content["labels"]), Inputs.from_dict(content["inputs"])
        det.columns_ = tuple(content["columns"])
        trained = det._new_network()
        trained.load_state_dict(part_of(tensors, "network"))
        _check_finite(trained, path)
        unit = content["unit"]
        trained.unit = None if unit is None else torch.tensor(unit).expand(trained.features).clone()
        det.history_, det.calibration_ = content["history"], content["calibration"]
        det.head_, det.warning_ = chosen, warning
    except EvidentiaError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise FileFormatError(f"{path} does not hold a whole event detector: {error}") from error
    det.network_ = trained.eval()
    return det


def _check_finite(network: EventNetwork, path: str | Path) -> None:
    """Refuse weights by which nothing would ever be called."""
    if wrong := [name for name, tensor in network.state_dict().items() if not bool(tensor.isfinite().all())]:
        raise FileFormatError(
            f"{path} holds weights that are NaN or infinite, {', '.join(wrong)[:200]}; it is damaged: train and save "
            "the detector again"
        )
