"""The moving average of a network's weights, which predicts better than the weights themselves."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import real_number
from evidentia.semisup.networks.calls import call_with

_PREFIX, _STEPS = "average.", "steps"


class WeightAverage:
    r"""An exponential moving average of everything a network is made of, kept as tensors beside it.

    $$\bar\theta_t = d_t\, \bar\theta_{t-1} + (1 - d_t)\, \theta_t, \qquad
      d_t = \min\Big(d,\; 1 - \frac{1}{t + 1}\Big)$$

    The second bound makes it a plain mean at first, so that it soon forgets the random start (Tarvainen and Valpola,
    NeurIPS 2017). Parameters and floating buffers, such as the running statistics of batch norm, are averaged alike;
    buffers that count are copied.

    There is no second network: to use the average, the network itself is called with these tensors in place of its
    own, so that its mode, hooks and batch weights hold for both.

    Args:
        network: what is to be averaged.
        decay: d, at least 0 and less than 1.

    Example:
        >>> network = nn.Linear(1, 1, bias=False)
        >>> average = WeightAverage(network, decay=0.9)
        >>> before = network.weight.detach().clone()
        >>> _ = nn.init.ones_(network.weight)
        >>> average.update(network)
        >>> torch.allclose(average(network, torch.ones(1, 1)), (before + 1) / 2)
        True
    """

    def __init__(self, network: nn.Module, decay: float = 0.99) -> None:
        self.decay = real_number(decay, "the decay of a moving average", 0, 1, open_high=True)
        self.steps = 0
        self.tensors = {name: tensor.detach().clone() for name, tensor in _tensors(network).items()}

    @torch.no_grad()
    def update(self, network: nn.Module) -> None:
        """Move towards the network as it is now."""
        now = _tensors(network)
        if now.keys() != self.tensors.keys():
            raise EvidentiaError(
                f"the average was made of a network with other tensors: {_difference(now, self.tensors)} differ; "
                "make a new one"
            )
        self.steps += 1
        share = 1 - min(self.decay, 1 - 1 / (self.steps + 1))
        for name, average in self.tensors.items():
            if average.is_floating_point():
                average.lerp_(now[name].to(average), share)
            else:
                average.copy_(now[name])

    def __call__(self, network: nn.Module, x: Tensor) -> Tensor:
        """What the network says with the averaged tensors in place of its own."""
        output: Tensor = call_with(network, self.tensors, x)
        return output

    @torch.no_grad()
    def copy_to(self, network: nn.Module) -> None:
        """Put the average in place of the network's own tensors, also those that its `state_dict` leaves out."""
        for name, tensor in _tensors(network).items():
            tensor.copy_(self.tensors[name])

    def state_dict(self) -> dict[str, Tensor]:
        """Copies of all tensors, and the number of updates."""
        state = {f"{_PREFIX}{name}": tensor.clone() for name, tensor in self.tensors.items()}
        return state | {_STEPS: torch.tensor(self.steps)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up what `state_dict` gave, if it is of the same network."""
        found = {name.removeprefix(_PREFIX): tensor for name, tensor in state.items() if name.startswith(_PREFIX)}
        misfits = [name for name in found if name in self.tensors and found[name].shape != self.tensors[name].shape]
        if _STEPS not in state or found.keys() != self.tensors.keys() or misfits:
            names = ", ".join(misfits) or _difference(found, self.tensors) or _STEPS
            raise EvidentiaError(f"this state is not of an average of this network: {names} missing or of other shape")
        for name, average in self.tensors.items():
            average.copy_(found[name])
        self.steps = int(state[_STEPS])


def _tensors(network: nn.Module) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = dict(network.named_parameters()) | dict(network.named_buffers())
    if any(is_lazy(tensor) for tensor in tensors.values()):
        raise EvidentiaError(
            "a network with lazy layers has nothing to average yet; pass a batch through it before training"
        )
    return tensors


def _difference(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> str:
    return ", ".join(sorted(first.keys() ^ second.keys()))
