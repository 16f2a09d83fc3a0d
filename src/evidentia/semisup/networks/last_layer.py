"""The last linear layer of any network, and what goes into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from evidentia._support.errors import EvidentiaError
from evidentia.semisup.networks.calls import call_with, in_full


class LastLayer:
    r"""Splits a network, as it is, into features h and its last linear layer: $z = W h + b$.

    The layer is the `nn.Linear` whose output is the network's output; what went into it is seen by a hook that is there
    only during the call. One that computes something else, such as a cosine, is none. The network is neither rewritten
    nor copied, and given a copy of its inputs, because it may work in place.

    Args:
        network: any network that ends in an `nn.Linear`.

    Example:
        >>> import torch
        >>> network = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3))
        >>> last = LastLayer(network)
        >>> hidden, logits = last.hidden_and_logits(torch.randn(5, 2))
        >>> hidden.shape, torch.equal(last.head(hidden), logits), last.name
        (torch.Size([5, 8]), True, '2')
    """

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        self._linear = {
            layer: name
            for name, layer in network.named_modules()
            if isinstance(layer, nn.Linear) and type(layer).forward is nn.Linear.forward
        }
        if not self._linear:
            raise EvidentiaError(
                f"the network ({type(network).__name__}) has no nn.Linear layer; the last layer must be one"
            )
        self._head: nn.Linear | None = None

    @property
    def head(self) -> nn.Linear:
        """The last layer, known once the network has been called."""
        if self._head is None:
            raise EvidentiaError("the last layer is found by a call; call hidden_and_logits on a batch first")
        return self._head

    @property
    def name(self) -> str:
        """The name of the last layer in the network."""
        return str(self._linear[self.head])

    def hidden_and_logits(self, x: Tensor, tensors: Mapping[str, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Run the network once: what goes into its last layer, shape `(B, D)`, and what comes out, `(B, K)`.

        Args:
            x: a batch of inputs.
            tensors: parameters and buffers to use in place of the network's own, as for `torch.func.functional_call`.
        """
        seen: list[tuple[nn.Linear, Tensor, Tensor, int]] = []

        def look(layer: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
            if isinstance(layer, nn.Linear):
                seen[:] = [(layer, inputs[0], output, _changes(output))]

        watched = self._linear if self._head is None else [self._head]
        hooks = [layer.register_forward_hook(look) for layer in watched]
        try:
            logits = _logits(self.network, x, tensors)
        finally:
            for hook in hooks:
                hook.remove()
        if not seen or seen[0][2] is not logits or seen[0][3] != _changes(logits):
            last = f"the last nn.Linear to run is {self._linear[seen[0][0]]!r}" if seen else "no nn.Linear was run"
            raise EvidentiaError(
                f"the network ({type(self.network).__name__}) must end in an nn.Linear whose output is its output, but "
                f"{last} and its output is changed or dropped; leave a final softmax or reshaping out of the network"
            )
        self._head, hidden = seen[0][:2]
        if hidden.ndim != 2:
            raise EvidentiaError(
                f"the last layer must be given one vector a sample, shape (B, D), got shape {tuple(hidden.shape)}"
            )
        return in_full(hidden), in_full(logits)


class Undivided(LastLayer):
    """A network that is not split, because it ends in something else: it has logits, and features of width 0.

    For methods that need no features; those that do say so in `Robust.last_layer_uses`.

    Example:
        >>> import torch
        >>> hidden, logits = Undivided(nn.Sequential(nn.Linear(2, 3), nn.Tanh())).hidden_and_logits(torch.randn(5, 2))
        >>> hidden.shape, logits.shape
        (torch.Size([5, 0]), torch.Size([5, 3]))
    """

    def __init__(self, network: nn.Module) -> None:
        self.network = network

    @property
    def head(self) -> nn.Linear:
        """There is none."""
        raise EvidentiaError(
            f"the network ({type(self.network).__name__}) does not end in an nn.Linear, so its last layer cannot be "
            "asked for; give one that does, or a method that needs no last layer"
        )

    def hidden_and_logits(self, x: Tensor, tensors: Mapping[str, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Run the network once: features of shape `(B, 0)`, and its logits, `(B, K)`."""
        logits = in_full(_logits(self.network, x, tensors))
        return logits.new_empty(len(logits), 0), logits


def _logits(network: nn.Module, x: Tensor, tensors: Mapping[str, Tensor] | None) -> Tensor:
    own = x.clone()
    logits = network(own) if tensors is None else call_with(network, tensors, own)
    if not isinstance(logits, Tensor):
        mode = "training" if network.training else "evaluation"
        raise EvidentiaError(
            f"the network ({type(network).__name__}) must give a tensor of logits, in {mode} mode too, got "
            f"{type(logits).__name__}; let it return the logits alone"
        )
    return logits


def _changes(output: Tensor) -> int:
    """How often a tensor was changed in place, as `nn.ReLU(inplace=True)` does; not counted in inference mode."""
    return 0 if output.is_inference() else output._version
