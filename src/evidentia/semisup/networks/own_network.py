"""A user's own network made ready for training: copied, sized, and in the modes that it is to be trained in."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import UninitializedBuffer, is_lazy

from evidentia._support.errors import EvidentiaError
from evidentia.learning.data import device_of, dtype_of
from evidentia.semisup.training.checks import first_output


def training_copy(network: nn.Module, sample_shape: Sequence[int]) -> nn.Module:
    """A copy of a network to train, in training mode but for the layers that its owner has frozen.

    Frozen are layers in evaluation mode inside a network that is itself in training mode, such as the batch norms of a
    pretrained body after `network.train()` and `body.eval()`. A network that is in evaluation mode itself, as inference
    leaves it, is trained as a whole. Lazy layers get their size from the samples.

    Args:
        network: stays as it is.
        sample_shape: of one sample.

    Example:
        >>> network = nn.Sequential(nn.BatchNorm1d(2).eval(), nn.Dropout(), nn.LazyLinear(3))
        >>> copied = training_copy(network, (2,))
        >>> [layer.training for layer in copied], [layer.training for layer in training_copy(network.eval(), (2,))]
        ([False, True, True], [True, True, True])
        >>> copied[2]
        Linear(in_features=2, out_features=3, bias=True)
    """
    if isinstance(network, nn.DataParallel | nn.parallel.DistributedDataParallel):
        raise EvidentiaError(
            f"the network is wrapped in nn.{type(network).__name__}, and training runs on one device; give the network "
            "inside, network.module"
        )
    if isinstance(network, torch.jit.ScriptModule):
        raise EvidentiaError(
            "the network is a TorchScript module, which cannot be trained with other tensors in place of its own; give "
            "the nn.Module that it was made of"
        )
    # PyTorch copies lazy parameters, but not lazy buffers, which hold nothing yet.
    lazy = [buffer for buffer in network.buffers() if is_lazy(buffer)]
    make: Any = UninitializedBuffer  # which takes more arguments than type checkers are told
    try:
        copied = copy.deepcopy(network, {id(each): make(device=each.device, dtype=each.dtype) for each in lazy})
    except RuntimeError as error:
        raise EvidentiaError(
            f"the network cannot be copied to be trained ({error}). It may keep a result with its gradient: call it "
            "once more under torch.no_grad() before training; torch.nn.utils.weight_norm does so, "
            "torch.nn.utils.parametrizations.weight_norm does not"
        ) from error
    if lazy or any(is_lazy(parameter) for parameter in copied.parameters()):
        first_output(copied, torch.zeros(2, *sample_shape, device=device_of(copied), dtype=dtype_of(copied)))
    for layer in copied.modules():
        for name, buffer in layer.named_buffers(recurse=False):
            if any(size > 1 and not step for size, step in zip(buffer.shape, buffer.stride(), strict=True)):
                # Of an expanded buffer many entries are one number in memory, into which nothing can be loaded.
                setattr(layer, name, buffer.clone(memory_format=torch.contiguous_format))
    frozen = [layer for layer in copied.modules() if not layer.training] if copied.training else []
    # Called all the same: a network may have a `train` of its own that freezes layers.
    copied.train()
    for layer in frozen:
        layer.training = False
    return copied


def frozen_parts(network: nn.Module) -> list[str]:
    """The names of layers in evaluation mode, and of parameters that are not learnt.

    Example:
        >>> frozen_parts(nn.Sequential(nn.BatchNorm1d(2).eval(), nn.Linear(2, 3).requires_grad_(False)))
        ['0', '1.weight', '1.bias']
    """
    layers = [name for name, layer in network.named_modules() if not layer.training]
    return layers + [name for name, parameter in network.named_parameters() if not parameter.requires_grad]
