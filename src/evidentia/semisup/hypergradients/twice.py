"""Differentiating a network twice, without what PyTorch does in vain.

Its second derivative of batch norm is made of some thirty passes over the data, and that of a convolution includes a
gradient of the input even where nothing needs it: for the images that a network starts with, that takes as long as all
else together. Both are replaced while hypergradients are taken, for whatever network they are taken of.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (its usual name)
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from evidentia._support.errors import EvidentiaError
from evidentia.learning import frozen_statistics
from evidentia.learning.normalisation_kernel import weighted_normalise
from evidentia.learning.weighted_normalisation import statistics_dtype, transforming
from evidentia.semisup.networks.second_runs import no_second_runs

Geometry: TypeAlias = tuple[list[int], list[int], list[int], int]
"""Stride, padding, dilation and groups of a convolution."""

_CONVOLUTIONS = (F.conv1d, F.conv2d, F.conv3d)
_BATCH_NORM = inspect.signature(F.batch_norm)
_UNSTEPPED = "would take the parameters as they are in place of those after a step; take scope='last'"


@contextmanager
def differentiated_twice(network: nn.Module) -> Iterator[None]:
    """Gradients to be differentiated again, with running statistics as they are.

    Attention goes by kernels that have a second derivative, convolutions and batch norms by those of this module.

    Example:
        >>> network, x = nn.Sequential(nn.Conv1d(2, 3, 3), nn.BatchNorm1d(3)), torch.randn(4, 2, 5)
        >>> with differentiated_twice(network):
        ...     slopes = torch.autograd.grad(network(x).pow(3).mean(), network[0].weight, create_graph=True)
        ...     (bent,) = torch.autograd.grad(slopes[0].square().sum(), network[0].weight)
        >>> bent.shape
        torch.Size([3, 2, 3])
    """
    once = no_second_runs((layer for layer in network.modules() if layer._parameters), _UNSTEPPED)
    with torch.enable_grad(), frozen_statistics(network), sdpa_kernel(SDPBackend.MATH), _Replacements(), once:
        try:
            yield
        except NotImplementedError as error:
            raise EvidentiaError(
                f"PyTorch cannot differentiate a layer of {type(network).__name__} twice ({error}); take scope='last', "
                "for which the last layer alone is"
            ) from error
        except RuntimeError as error:
            if "double backward" not in str(error):
                raise
            raise EvidentiaError(
                f"a compiled network ({type(network).__name__}) cannot be differentiated twice ({error}); give the "
                "module that was compiled, network._orig_mod"
            ) from error


class _Replacements(TorchFunctionMode):
    """Takes the place of functions of PyTorch, wherever a network calls them, if the replacement can."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = None
        if func is F.batch_norm:
            result = _batch_norm(*args, **(kwargs or {}))
        elif func in _CONVOLUTIONS:
            result = _convolution(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {})) if result is None else result


def _batch_norm(*args: Any, **kwargs: Any) -> Tensor | None:
    """By the weighted kernel with equal weights, if the batch gives the statistics and no others are kept."""
    call = _BATCH_NORM.bind(*args, **kwargs)
    call.apply_defaults()
    x, running_mean, _, scale, shift, training, _, eps = call.args
    if not training or running_mean is not None or x.numel() == x.shape[1] or transforming(x, scale, shift):
        return None
    share = x.new_full(x.shape[:1], 1 / max(len(x), 1), dtype=statistics_dtype(x.dtype))
    return weighted_normalise(x, share, scale, shift, eps)[0]


def _convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | tuple[int, ...] = 1,
    padding: int | str | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> Tensor | None:
    """As a function of weight and bias, if the input needs no gradient."""
    if input.requires_grad or not weight.requires_grad or isinstance(padding, str) or input.ndim != weight.ndim:
        return None
    if transforming(input, weight, bias) or torch.is_autocast_enabled(input.device.type):
        return None
    sizes = [
        [each] * (weight.ndim - 2) if isinstance(each, int) else list(each) for each in (stride, padding, dilation)
    ]
    found: Tensor = _OfWeight.apply(weight, bias, input, (*sizes, groups))  # type: ignore[no-untyped-call]
    return found


class _OfWeight(torch.autograd.Function):
    """A convolution of a constant, which is linear in weight and bias; its derivative is `_ToWeight`."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor | None, x: Tensor, geometry: Geometry) -> Tensor:
        ctx.geometry, ctx.biased = geometry, bias is not None
        ctx.save_for_backward(weight, x)
        *sizes, groups = geometry
        y: Tensor = torch.ops.aten.convolution(x, weight, bias, *sizes, False, [0] * len(sizes[0]), groups)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weight, x = ctx.saved_tensors
        return (*_ToWeight.apply(grad, weight.detach(), x, ctx.biased, ctx.geometry), None, None)  # type: ignore[no-untyped-call]


class _ToWeight(torch.autograd.Function):
    """The transpose of `_OfWeight`, from outputs to weight and bias; its derivative is `_OfWeight` again."""

    @staticmethod
    def forward(
        ctx: Any, grad: Tensor, weight: Tensor, x: Tensor, biased: bool, geometry: Geometry
    ) -> tuple[Tensor, Tensor | None]:
        ctx.geometry, ctx.biased = geometry, biased
        ctx.save_for_backward(x)
        *sizes, groups = geometry
        biases, none = [len(weight)] if biased else None, [0] * len(sizes[0])
        needed = [False, True, biased]
        found = torch.ops.aten.convolution_backward(grad, x, weight, biases, *sizes, False, none, groups, needed)
        return found[1], found[2] if biased else None

    @staticmethod
    def backward(ctx: Any, weight: Tensor, bias: Tensor | None) -> tuple[Tensor | None, ...]:
        (x,) = ctx.saved_tensors
        return _OfWeight.apply(weight, bias if ctx.biased else None, x, ctx.geometry), None, None, None, None  # type: ignore[no-untyped-call]
