"""A network called with other tensors in place of its own, and what it says in full precision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn
from torch.func import functional_call

from evidentia.learning.weighted_normalisation import statistics_dtype


def call_with(network: nn.Module, tensors: Mapping[str, Tensor], x: Tensor) -> Any:
    """What a network says with these tensors in place of its own of the same names.

    A tensor that several layers share is replaced in all of them. This is not left to `functional_call`: for a layer
    that has two names in the network, it puts back what it was given in place of what was there.

    Args:
        network: stays as it is.
        tensors: by name, as `named_parameters` and `named_buffers` give them.
        x: a batch of inputs.

    Example:
        >>> import torch
        >>> layer = nn.Linear(2, 2)
        >>> network, own = nn.Sequential(layer, layer), layer.weight
        >>> call_with(network, {"0.weight": torch.zeros(2, 2), "0.bias": torch.ones(2)}, torch.randn(1, 2))
        tensor([[1., 1.]])
        >>> layer.weight is own
        True
    """
    # Layers are listed by one name each, their tensors by all of theirs.
    slots: dict[str, Tensor] = {
        f"{prefix}.{name}" if prefix else name: tensor
        for prefix, layer in network.named_modules()
        for kind in (layer.named_parameters, layer.named_buffers)
        for name, tensor in kind(recurse=False, remove_duplicate=False)
    }
    given = {id(slots[name]): tensor for name, tensor in tensors.items() if name in slots}
    shared = {name: given[id(own)] for name, own in slots.items() if id(own) in given}
    return functional_call(network, {**shared, **tensors}, (x,), tie_weights=False)


def in_full(outputs: Tensor) -> Tensor:
    """What a network gives in half precision, as it does under autocast, in single precision; all else as it is.

    Example:
        >>> import torch
        >>> in_full(torch.ones(2, dtype=torch.bfloat16)), in_full(torch.ones(1, dtype=torch.float64)).dtype
        (tensor([1., 1.]), torch.float64)
    """
    return outputs.to(statistics_dtype(outputs.dtype))
