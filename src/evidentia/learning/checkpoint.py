"""The state of a training run: kept in memory, and on disk so that a killed run goes on where it was."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia._support.files import load_tensors, save_tensors

_KIND = "training checkpoint"


class Checkpoint:
    """Network, optimiser, history and the best weights so far."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model = model
        self.optimizer = optimizer
        self.epoch = 0
        self.history: list[dict[str, float]] = []
        self.best_epoch = 0
        self._best: dict[str, Tensor] = {}

    def out_of_patience(self, patience: int | None) -> bool:
        """Whether the validation loss was lowest so many epochs ago; without patience, never."""
        return patience is not None and self.epoch - self.best_epoch >= patience

    def finish_epoch(self, record: dict[str, float]) -> None:
        """Note what an epoch gave, and keep its weights if its validation loss is the lowest so far."""
        losses = [past["validation_loss"] for past in self.history if "validation_loss" in past]
        self.history.append(record)
        self.epoch += 1
        if "validation_loss" in record and record["validation_loss"] < min(losses, default=float("inf")):
            self.best_epoch = self.epoch
            self._best = {name: tensor.clone() for name, tensor in module_tensors(self.model).items()}

    def restore_best(self) -> None:
        """Put the best weights back into the network."""
        if self._best:
            load_module_tensors(self.model, self._best)

    def save(self, path: Path, settings: dict[str, Any]) -> None:
        """Write everything to one file, whole or not at all."""
        tensors = {f"model/{name}": tensor for name, tensor in module_tensors(self.model).items()}
        tensors |= {f"best/{name}": tensor for name, tensor in self._best.items()}
        tensors |= {f"optimizer/{name}": tensor for name, tensor in optimizer_tensors(self.optimizer).items()}
        content = {
            "settings": settings,
            "epoch": self.epoch,
            "best_epoch": self.best_epoch,
            "history": self.history,
        }
        save_tensors(path, _KIND, tensors, content)

    def load(self, path: Path, settings: dict[str, Any]) -> None:
        """Take up a run where its last finished epoch left it."""
        tensors, content = load_tensors(path, _KIND)
        check_settings(path, content["settings"], settings)
        before = {name: tensor.clone() for name, tensor in module_tensors(self.model).items()}
        try:
            load_module_tensors(self.model, part_of(tensors, "model"))
        except RuntimeError as error:
            # Those weights that do fit have been loaded already.
            load_module_tensors(self.model, before)
            raise FileFormatError(f"the checkpoint {path} is of another network: {error}") from error
        load_optimizer(self.optimizer, part_of(tensors, "optimizer"))
        self._best = part_of(tensors, "best")
        self.epoch, self.best_epoch = content["epoch"], content["best_epoch"]
        self.history = content["history"]


def check_settings(path: Path, made_with: dict[str, Any], settings: dict[str, Any]) -> None:
    """Refuse a checkpoint of a run with other settings."""
    if made_with != settings:
        names = sorted({*settings, *made_with})
        changed = [name for name in names if made_with.get(name) != settings.get(name)]
        raise EvidentiaError(
            f"the checkpoint {path} was made with other settings ({', '.join(changed)}); "
            "use the same ones to go on, or another file to start anew"
        )


def module_tensors(module: nn.Module) -> dict[str, Tensor]:
    """All that a module holds: its `state_dict`, and the buffers that this leaves out, which training may change.

    Example:
        >>> module = nn.Linear(1, 1)
        >>> module.register_buffer("seen", torch.zeros(1), persistent=False)
        >>> sorted(module_tensors(module))
        ['bias', 'seen', 'weight']
    """
    return {**dict(module.named_buffers()), **state_tensors(module)}


def state_tensors(module: nn.Module) -> dict[str, Tensor]:
    """A module's `state_dict`, of tensors alone.

    Raises:
        EvidentiaError: if there is anything else in it, which files here do not hold: nothing in them can run code.
    """
    state = module.state_dict()
    if others := [name for name, value in state.items() if not isinstance(value, Tensor)]:
        raise EvidentiaError(
            f"{type(module).__name__} keeps something that is no tensor in its state, {', '.join(others)}, and can be "
            "neither saved nor resumed here; let get_extra_state give a tensor, such as the bytes of a JSON text"
        )
    return state


def load_module_tensors(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Give a module back what `module_tensors` gave; of older files, buffers outside `state_dict` stay as they are.

    Raises:
        RuntimeError: as `load_state_dict` does, if they are of another module.
    """
    kept = module.state_dict()
    others = {name: buffer for name, buffer in module.named_buffers() if name not in kept and name in tensors}
    for name, buffer in others.items():
        if buffer.shape != tensors[name].shape:
            raise RuntimeError(f"size mismatch for {name}: {tuple(tensors[name].shape)}, not {tuple(buffer.shape)}")
    module.load_state_dict({name: tensor for name, tensor in tensors.items() if name not in others})
    for name, buffer in others.items():
        buffer.copy_(tensors[name])


def digest(tensors: Iterable[Tensor]) -> str:
    """A hash of tensors, by which a run is known to be of the same data or start.

    Example:
        >>> row, same, other = digest([torch.zeros(2)]), digest([torch.zeros(2)]), digest([torch.zeros(1, 2)])
        >>> row == same, row == other
        (True, False)
    """
    found = hashlib.sha256()
    for tensor in tensors:
        found.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
        # The memory itself and no copy of it: data may fill most of what there is. As bytes: NumPy lacks bfloat16.
        row = tensor.detach().cpu().contiguous().as_strided([tensor.numel()], [1])
        found.update(row.view(torch.uint8).numpy().data)
    return found.hexdigest()


def module_digest(module: nn.Module) -> str:
    """A hash of a module's weights, and of all else in its `state_dict`."""
    return digest(state_tensors(module).values())


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What an optimiser remembers of each parameter, under the parameter's number and the name of the memory."""
    return {
        f"{index}/{name}": torch.as_tensor(value)
        for index, entries in optimizer.state_dict()["state"].items()
        for name, value in entries.items()
    }


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Give an optimiser back what `optimizer_tensors` gave; its settings stay as they are."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        index, name = key.split("/")
        state.setdefault(int(index), {})[name] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    # A file holds every tensor row by row. Fused steps walk a parameter and its memory side by side as they lie, so
    # that a channels-last weight beside such a memory would take up its neighbours' moments.
    for parameter, memory in optimizer.state.items():
        for name, value in memory.items():
            if isinstance(value, Tensor) and value.shape == parameter.shape:
                memory[name] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)


def part_of(tensors: Mapping[str, Tensor], part: str) -> dict[str, Tensor]:
    """The tensors whose name starts with a part's and a slash, under the rest of their names."""
    return {name.removeprefix(f"{part}/"): tensor for name, tensor in tensors.items() if name.startswith(f"{part}/")}


def check_no_state(part: object, state: Mapping[str, Tensor], kind: str) -> None:
    """Refuse what a part that remembers nothing is to take up.

    Args:
        part: an objective, a robust method and so on.
        state: what it is given.
        kind: what it is, in a word.

    Example:
        >>> check_no_state(nn.ReLU(), {}, "layer")
        >>> check_no_state(nn.ReLU(), {"weight": torch.ones(1)}, "layer")
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: ReLU keeps no state, got weight; it is of another layer
    """
    if state:
        raise EvidentiaError(
            f"{type(part).__name__} keeps no state, got {', '.join(sorted(state))}; it is of another {kind}"
        )
