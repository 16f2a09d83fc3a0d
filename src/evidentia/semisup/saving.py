"""A trained classifier in one file: what is written, and how it is read again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia._support.files import check_writable, load_tensors, save_tensors
from evidentia.learning.checkpoint import load_module_tensors, module_tensors, part_of
from evidentia.semisup.augmentation import Augmentation
from evidentia.semisup.inputs.form import InputForm
from evidentia.semisup.inputs.scaling import Scale
from evidentia.semisup.networks.passes import build_network, network_name
from evidentia.semisup.objectives import Objective
from evidentia.semisup.review import PoolReview
from evidentia.semisup.robust import Robust
from evidentia.semisup.training.loop import Record, SemiSupervisedTraining

METHODS: dict[str, type] = {"objective": Objective, "robust": Robust, "augmentation": Augmentation}
"""What a classifier is trained by, and a file has in words."""

_KIND = "semi-supervised classifier"


@dataclass(frozen=True, eq=False)
class SavedClassifier:
    """What is needed to predict, and what is known of the pool's samples.

    Attributes:
        network: the trained network, in evaluation mode.
        built_as: what it was built from: a module of the user's own, a name of `evidentia.semisup.NETWORKS`, or None
            for the usual network of such samples.
        settings: how it was trained, with the batch norm that was chosen.
        trained_by: objective, robust method and augmentation in words.
        num_classes: K.
        class_names: names of the classes, or nothing.
        form: the samples' shape, and what is done to them before the network sees them.
        pool: what is known of every sample of the pool, by the names of `PoolReview`.
        used: whether the pool was trained on.
        history: what was measured in each block.
        review: what became of the pool.
    """

    network: nn.Module
    built_as: nn.Module | str | None
    settings: SemiSupervisedTraining
    trained_by: dict[str, str]
    num_classes: int
    class_names: tuple[str, ...]
    form: InputForm
    pool: dict[str, Tensor]
    used: bool
    history: list[Record]
    review: PoolReview = field(init=False)

    def __post_init__(self) -> None:
        review = PoolReview(
            **self.pool,
            class_names=self.class_names,
            num_classes=self.num_classes,
            used=self.used,
            scale=self.form.scale,
        )
        object.__setattr__(self, "review", review)

    def write(self, path: str | Path) -> None:
        """Write everything to one file, whole or not at all."""
        check_writable(path)
        made = self.built_as
        content = {
            "network": None if isinstance(made, nn.Module) else network_name(made, self.form.network_shape),
            "settings": self.settings.model_dump(mode="json"),
            "trained_by": self.trained_by,
            "num_classes": self.num_classes,
            "class_names": list(self.class_names),
            "sample_shape": list(self.form.sample_shape),
            "adds_channel": self.form.adds_channel,
            "columns": list(self.form.columns),
            "standardise": self.form.scale is not None,
            "values": self.form.values,
            "used": self.used,
            "history": self.history,
        }
        tensors = {f"network/{name}": tensor for name, tensor in module_tensors(self.network).items()}
        if (scale := self.form.scale) is not None:
            tensors |= {"scale/mean": scale.mean, "scale/deviation": scale.deviation}
        save_tensors(path, _KIND, {**tensors, **self.pool}, content)

    @classmethod
    def read(cls, path: str | Path, network: nn.Module | None) -> SavedClassifier:
        """Read what `write` wrote.

        Args:
            path: the file.
            network: a module of the same shape, if the classifier was built with one of the user's own.
        """
        tensors, content = load_tensors(path, _KIND)
        try:
            if (content["network"] is None) == (network is None):
                needed = "the module it was built with" if network is None else "no module"
                raise EvidentiaError(f"{path} needs {needed} as network")
            built_as = content["network"] if network is None else network
            settings = SemiSupervisedTraining(**content["settings"])
            form = _form(tensors, content)
            trained = build_network(
                built_as, form.network_shape, content["num_classes"], settings.norm or "batch"
            ).eval()
            state = part_of(tensors, "network")
            for name, tensor in (*trained.named_parameters(), *trained.named_buffers()):
                if name in state:
                    tensor.data = tensor.data.to(state[name].dtype)
            load_module_tensors(trained, state)
            return cls(
                network=trained,
                built_as=built_as,
                settings=settings,
                trained_by={name: content["trained_by"][name] for name in METHODS},
                num_classes=content["num_classes"],
                class_names=tuple(content["class_names"]),
                form=form,
                pool={name: each for name, each in tensors.items() if "/" not in name},
                used=content["used"],
                history=content["history"],
            )
        except (KeyError, TypeError, RuntimeError) as error:
            raise FileFormatError(f"{path} does not hold a whole semi-supervised classifier: {error}") from error


def _form(tensors: dict[str, Tensor], content: dict[str, Any]) -> InputForm:
    form = InputForm(
        sample_shape=tuple(content["sample_shape"]),
        adds_channel=content["adds_channel"],
        columns=tuple(content["columns"]),
        values=content["values"],
    )
    if not content["standardise"]:
        return form
    scale = Scale(**part_of(tensors, "scale"))
    if scale.applied(torch.zeros(1, *form.network_shape)).shape != (1, *form.network_shape):
        raise RuntimeError(f"its scale is of shape {tuple(scale.mean.shape)} for samples of {form.network_shape}")
    return replace(form, scale=scale)
