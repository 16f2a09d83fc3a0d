"""Batch norm whose statistics give every sample of the batch a weight, for any network.

Samples that belong to no class shift the mean and the variance that all others are normalised by; with weight 0 they
do not (proposition 3 of the thesis).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.lazy import LazyModuleMixin

from evidentia._support.checks import TensorLike
from evidentia._support.errors import EvidentiaError
from evidentia.learning.normalisation_kernel import weighted_normalise
from evidentia.learning.weighted_normalisation import (
    MIN_FREEDOM,
    Shares,
    moments,
    standardise,
    statistics_dtype,
    transforming,
)

ModuleT = TypeVar("ModuleT", bound=nn.Module)


class _WeightedBatchNorm(_BatchNorm):
    """What the three have in common; stands before `nn.BatchNorm*d` in the order of bases."""

    # A default of the class, so that layers that `convert_batch_norm` turns into this one have it too.
    _shares: Shares | None = None

    def forward(self, input: Tensor, weight: TensorLike | None = None) -> Tensor:
        """Normalise a batch; `weight` is one number a sample, by default those of the surrounding `batch_weights`."""
        shares = self._shares if weight is None else Shares.of(weight)
        if shares is None:
            return super().forward(input)
        self._check_input_dim(input)  # type: ignore[no-untyped-call]
        if len(shares.share) != len(input):
            raise EvidentiaError(
                f"a weight for every sample of the batch is needed, got {len(shares.share)} weights "
                f"and {len(input)} samples; a network that makes several rows of a sample takes plain batch norm"
            )
        self._check_input(input)
        if self.running_mean is not None and not self.training:
            return super().forward(input)
        positions = math.prod(input.shape[2:])
        share = shares.share.to(statistics_dtype(input.dtype))
        scale, shift = self.weight, self.bias
        if isinstance(shares.usable, Tensor) or transforming(input, share, scale, shift):
            return self._by_formula(input, share, shares, positions)
        if not shares.usable or positions - shares.squares < MIN_FREEDOM * shares.squares:
            return self._without_weights(input, share)
        if shares.equal:
            return super().forward(input)
        y, mean, var = weighted_normalise(input, share, scale, shift, self.eps)
        if self.training and self.track_running_stats:
            self._update(mean, var * (positions / (positions - shares.squares)))
        return y

    def __getstate__(self) -> dict[str, Any]:
        """For copies and files, without the weights of a surrounding `batch_weights`: for them it would never end."""
        return {name: value for name, value in self.__dict__.items() if name != "_shares"}

    def _check_input(self, input: Tensor) -> None:
        """Refuse what plain batch norm does, whose kernel would otherwise read beyond the parameters."""
        name = type(self).__name__
        if input.shape[1] != self.num_features:
            raise EvidentiaError(
                f"{name}({self.num_features}) needs inputs of {self.num_features} channels, got {input.shape[1]} in "
                f"shape {tuple(input.shape)}"
            )
        if not input.is_floating_point():
            raise EvidentiaError(f"{name} needs floating numbers, got {input.dtype}; call .float() on its inputs")

    def _without_weights(self, input: Tensor, share: Tensor) -> Tensor:
        """Running statistics if there are any, else those of the batch with equal weights."""
        y = torch.batch_norm(
            input,
            self.weight,
            self.bias,
            self.running_mean,
            self.running_var,
            self.running_mean is None,
            0.0,
            self.eps,
            torch.backends.cudnn.enabled,
        )
        # Nothing is added but the way from the weights to the output, for whoever asks for their gradient of 0.
        return y + (0 * share.sum()).to(y.dtype) if share.requires_grad else y

    def _by_formula(self, input: Tensor, share: Tensor, shares: Shares, positions: int) -> Tensor:
        """The same, with every choice made by tensors."""
        exact = input.to(share.dtype)
        # Not those of `shares`: a compiler takes a plain number for a constant, and compiles anew for every batch.
        freedom = positions - share.detach().square().sum()
        enough = freedom >= MIN_FREEDOM * (positions - freedom)
        usable = torch.as_tensor(shares.usable, device=share.device) & enough
        if self.running_mean is None or self.running_var is None:
            mean, var = moments(exact, torch.where(usable, share, 1 / max(len(input), 1)))
        else:
            mean, var = moments(exact, share)
            if self.training and self.track_running_stats:
                correction = positions / freedom.clamp(min=MIN_FREEDOM)
                self._update(mean.detach(), (var * correction).detach(), usable)
            mean = torch.where(usable, mean, self.running_mean.to(mean.dtype))
            var = torch.where(usable, var, self.running_var.to(var.dtype))
        return standardise(exact, mean, var, self.weight, self.bias, self.eps).to(input.dtype)

    def _update(self, mean: Tensor, var: Tensor, usable: Tensor | None = None) -> None:
        """Move the running statistics towards those of the batch, unless `usable` is false."""
        running_mean, running_var = cast(Tensor, self.running_mean), cast(Tensor, self.running_var)
        count = cast(Tensor, self.num_batches_tracked)
        count.add_(1 if usable is None else usable)
        factor: float | Tensor | None = self.momentum
        if factor is None:
            factor = count.clamp(min=1).to(running_mean.dtype).reciprocal()
        if usable is not None:
            factor = factor * usable.to(running_mean.dtype)
        # By their data, as PyTorch's own kernel does it: two passes may come before one backward, and autograd takes an
        # earlier pass of plain batch norm, which keeps the buffers though it needs no values of them, for spoilt.
        running_mean.data.lerp_(mean.to(running_mean.dtype), factor)
        running_var.data.lerp_(var.to(running_var.dtype), factor)


class WeightedBatchNorm1d(_WeightedBatchNorm, nn.BatchNorm1d):
    r"""`nn.BatchNorm1d` with a weight for every sample of the batch; takes `(B, C)` or `(B, C, L)`.

    With weights $w_i \ge 0$ (algorithm "Weighted Batch Normalization" in chapter 3 of the thesis),

    $$\mu = \frac{\sum_i w_i x_i}{\sum_i w_i}, \qquad \sigma^2 = \frac{\sum_i w_i (x_i - \mu)^2}{\sum_i w_i}, \qquad
      y_i = \gamma \frac{x_i - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta$$

    Running statistics take the unbiased variance $\sigma^2 n / (n - 1)$ with the effective number of values
    $n = m (\sum_i w_i)^2 / \sum_i w_i^2$, where $m$ is the number of positions of a sample. Only the ratios of weights
    matter; equal weights, or none, give `nn.BatchNorm1d`; a sample of weight 0 is normalised too and has no part in the
    statistics, as long as the squares of its values are finite. State dicts are those of `nn.BatchNorm1d`. Everything
    can be differentiated, twice, with regard to inputs, weights and parameters.

    Weights that add up to less than 1e-6, or that rest on a single value (one sample of one position), have no
    variance to give: the batch is then normalised with the running statistics, which stay as they are, or, where there
    are none, with the batch's own at equal weights; the gradient of the weights is 0. In evaluation mode weights
    do nothing, as running statistics are used then.

    Weights that are negative or not finite are an error, except inside `torch.func` transforms and `torch.compile`,
    where no value can be read. A transform cannot change running statistics: use `frozen_statistics` there.

    Args:
        num_features: the number of channels C; this and all other arguments as for `nn.BatchNorm1d`.

    Example:
        >>> norm = WeightedBatchNorm1d(1, eps=0.0)
        >>> norm(torch.tensor([[1.0], [3.0], [99.0]]), weight=torch.tensor([1.0, 1.0, 0.0]))[:2].detach()
        tensor([[-1.],
                [ 1.]])
    """


class WeightedBatchNorm2d(_WeightedBatchNorm, nn.BatchNorm2d):
    """`nn.BatchNorm2d` with a weight for every sample; takes `(B, C, H, W)`. See `WeightedBatchNorm1d`.

    Example:
        >>> x = torch.randn(4, 3, 5, 5)
        >>> ours, theirs = WeightedBatchNorm2d(3), nn.BatchNorm2d(3)
        >>> torch.allclose(ours(x, weight=[1, 1, 0, 0])[:2], theirs(x[:2]), atol=1e-5)
        True
    """


class WeightedBatchNorm3d(_WeightedBatchNorm, nn.BatchNorm3d):
    """`nn.BatchNorm3d` with a weight for every sample; takes `(B, C, D, H, W)`. See `WeightedBatchNorm1d`.

    Example:
        >>> WeightedBatchNorm3d(3)(torch.randn(2, 3, 4, 4, 4), weight=[0.5, 1.0]).shape
        torch.Size([2, 3, 4, 4, 4])
    """


_WEIGHTED: dict[type[nn.Module], type[_WeightedBatchNorm]] = {
    nn.BatchNorm1d: WeightedBatchNorm1d,
    nn.BatchNorm2d: WeightedBatchNorm2d,
    nn.BatchNorm3d: WeightedBatchNorm3d,
}


def convert_batch_norm(model: ModuleT) -> ModuleT:
    """Turn every `nn.BatchNorm1d`, `2d` and `3d` of a network into its weighted counterpart, in place.

    The layers stay the same objects and only change their class: parameters, buffers, hooks, modes, devices, shared
    layers and optimisers that hold the parameters remain as they are. To keep the original, convert a
    `copy.deepcopy` of it. Without weights the network gives what it gave before.

    Refused, before anything is changed: `nn.SyncBatchNorm`, whose statistics span processes; lazy layers, which have
    to see a batch first; and other subclasses of batch norm, whose own `forward` would be lost. A network that calls
    `F.batch_norm` itself is not reached.

    The converted network can be traced and exported in evaluation mode (`torch.jit.trace`, `torch.export.export`).
    `torch.jit.script` cannot read layers that take weights: load the state dict, whose names stay the same, into a
    network that was not converted, and script that.

    Args:
        model: any network, or a batch norm layer itself; layers that are weighted already are left alone.

    Returns:
        The same object.

    Example:
        >>> convert_batch_norm(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU()))[1].__class__.__name__
        'WeightedBatchNorm1d'
    """
    if not isinstance(model, nn.Module):
        raise EvidentiaError(
            f"only a network can be given weighted batch norms, an nn.Module, got {model!r} ({type(model).__name__}); "
            "build the network first"
        )
    found = [(name, layer) for name, layer in model.named_modules() if isinstance(layer, _BatchNorm)]
    plain = [(name, layer) for name, layer in found if not isinstance(layer, _WeightedBatchNorm)]
    for name, layer in plain:
        if type(layer) not in _WEIGHTED:
            raise EvidentiaError(f"{_described(name, layer)} cannot be given weights: {_refusal(layer)}")
    for _, layer in plain:
        layer.__class__ = _WEIGHTED[type(layer)]
    return model


def _described(name: str, layer: nn.Module) -> str:
    return f"the layer {name!r} ({type(layer).__name__})" if name else f"the layer {type(layer).__name__}"


def _refusal(layer: nn.Module) -> str:
    if isinstance(layer, LazyModuleMixin):
        return "it does not know its size yet; pass a batch through the network first"
    if isinstance(layer, nn.SyncBatchNorm):
        return (
            "its statistics span several processes; convert the network before nn.SyncBatchNorm does, or train in one"
        )
    return "it is a batch norm of its own kind; only nn.BatchNorm1d, 2d and 3d are converted"


@contextmanager
def batch_weights(model: nn.Module, weight: TensorLike | None) -> Iterator[None]:
    """Inside the `with` block, every weighted batch norm of a network takes these weights for its batch.

    For networks whose `forward` knows nothing of weights, called directly or by `torch.func.functional_call`. The
    weights are checked and divided by their sum once for all layers. They are kept on the layers, so that a network
    should not be used by two threads at once with different weights; blocks may be nested. With
    `torch.utils.checkpoint`, which runs layers a second time, call `backward` inside the block too.

    Args:
        model: a network from `convert_batch_norm`, or with no batch norm at all.
        weight: one number at least 0 a sample of the batch, shape `(B,)`; None for plain batch norm.

    Example:
        >>> net = convert_batch_norm(nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4)))
        >>> with batch_weights(net, torch.tensor([1.0, 1.0, 0.0])):
        ...     net(torch.randn(3, 2)).shape
        torch.Size([3, 4])
    """
    found = [layer for layer in model.modules() if isinstance(layer, _BatchNorm)]
    layers = [layer for layer in found if isinstance(layer, _WeightedBatchNorm)]
    if weight is not None and len(layers) < len(found):
        plain = (each for each in model.named_modules() if each[1] in found and each[1] not in layers)
        raise EvidentiaError(
            f"{_described(*next(plain))} takes no weights; call convert_batch_norm on the network first"
        )
    shares = None if weight is None else Shares.of(weight)
    before = [layer._shares for layer in layers]
    try:
        for layer in layers:
            layer._shares = shares
        yield
    finally:
        for layer, old in zip(layers, before, strict=True):
            layer._shares = old
