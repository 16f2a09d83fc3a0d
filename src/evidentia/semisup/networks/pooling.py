"""Max pooling of 2 x 2 pixels by whole slices: on a CPU, PyTorch's own takes longer than the convolutions around it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia.learning.weighted_normalisation import transforming


class HalvingMaxPool(nn.Module):
    """`nn.MaxPool2d(2)`, `(..., H, W)` to `(..., H // 2, W // 2)`, faster on a CPU (`benchmarks/semisup.py`).

    It can be differentiated as often as is needed, and by `torch.func`. Where pixels are equally large, the gradient
    goes to one of them, or is shared out among them.

    Example:
        >>> x = torch.randn(3, 6, 28, 28)
        >>> torch.equal(HalvingMaxPool()(x), nn.MaxPool2d(2)(x))
        True
    """

    def forward(self, x: Tensor) -> Tensor:
        """The largest of every four pixels; a last row or column without a partner is left out."""
        if not x.is_cpu:
            return F.max_pool2d(x, 2)
        height, width = (2 * (side // 2) for side in x.shape[-2:])
        x = x[..., :height, :width]
        if not (x.requires_grad and torch.is_grad_enabled()) or transforming(x):
            return torch.maximum(*_columns(torch.maximum(*_rows(x))))
        largest: Tensor = _Halved.apply(x)[0]  # type: ignore[no-untyped-call]
        return largest


class _Halved(torch.autograd.Function):
    """The largest of four, and which they are: in the lower row of two, in the right column of two."""

    @staticmethod
    def forward(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        upper, lower = _rows(x)
        left, right = _columns(torch.maximum(upper, lower))
        return torch.maximum(left, right), lower > upper, right > left

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*output[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> Tensor:
        in_lower, in_right = ctx.saved_tensors
        right = grad * in_right
        rows = torch.stack([grad - right, right], dim=-1).flatten(-2)
        lower = rows * in_lower
        return torch.stack([rows - lower, lower], dim=-2).flatten(-3, -2)


def _rows(x: Tensor) -> tuple[Tensor, Tensor]:
    return x[..., 0::2, :], x[..., 1::2, :]


def _columns(x: Tensor) -> tuple[Tensor, Tensor]:
    return x[..., 0::2], x[..., 1::2]
