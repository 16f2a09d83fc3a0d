r"""The first stage of a stem in training: convolution, batch norm, relu and pooling as a few products of matrices.

Its maps are by far the largest of a network, and most of the time would go into carrying them through memory, one
operation after the other. But there is one input map: an output is $w^\top p$ with a patch p of the frames, so over a
batch it has mean $w^\top \mu$ and variance $w^\top (M - \mu \mu^\top)\, w$ by the moments of patches, and batch norm
goes into the weights before any map is computed. Maps are then computed, used and forgotten a few rows at a time, and
computed again on the way back.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812 (its usual name)

# Patches at a time: their outputs stay in a core's cache.
_ROWS = 4096

Pair = tuple[int, int]


def first_stage(x: Tensor, conv: nn.Conv2d, norm: nn.BatchNorm2d, pool: Pair) -> Tensor:
    """`F.avg_pool2d(norm(conv(x)).relu(), pool)`, with `norm` in training mode, in less than half of the time.

    Args:
        x: one map, shape `(B, 1, T + 2, bands)`.
        conv: 3 x 3, without bias, padded by 1 on both sides of the bands only, any stride over bands.
        norm: batch norm of the outputs; its running statistics are updated.
        pool: must divide T and the bands that the convolution gives.

    Returns:
        Shape `(B, maps, T / pool[0], bands / stride / pool[1])`, maps innermost in memory.

    Example:
        >>> conv, norm = nn.Conv2d(1, 4, 3, stride=(1, 2), padding=(0, 1), bias=False), nn.BatchNorm2d(4)
        >>> x = torch.randn(2, 1, 10, 16)
        >>> expected = F.avg_pool2d(norm(conv(x)).relu(), (2, 4))
        >>> torch.allclose(first_stage(x, conv, norm, (2, 4)), expected, atol=1e-5)
        True
    """
    cells, stride = pool[0] * pool[1], conv.stride[1]
    # A patch is what all outputs that are pooled into one see.
    size, step = (pool[0] + 2, (pool[1] - 1) * stride + 3), (pool[0], pool[1] * stride)
    patches: Tensor = _Patches.apply(F.pad(x.squeeze(1), (1, 1)), size, step)  # type: ignore[no-untyped-call]
    kernel = conv.weight.squeeze(1).double()
    placed = torch.stack(
        [
            F.pad(kernel, (left, size[1] - 3 - left, top, size[0] - 3 - top)).flatten(1)
            for top in range(pool[0])
            for left in range(0, pool[1] * stride, stride)
        ]
    )
    moments: Tensor = _Moments.apply(patches)  # type: ignore[no-untyped-call]
    mean = (placed @ moments[-1, :-1]).mean(0)
    variance = ((placed @ moments[:-1, :-1]) * placed).sum(2).mean(0) - mean.square()
    _track(norm, mean, variance, len(patches) * cells)
    scale = norm.weight / (variance + norm.eps).sqrt()
    bias = (norm.bias - mean * scale).expand(cells, -1)
    folded = torch.cat([placed * scale[:, None], bias.unsqueeze(2)], dim=2)
    weight = folded.flatten(0, 1).t().to(x.dtype).contiguous()
    pooled: Tensor = _PooledRelu.apply(patches, weight, cells)  # type: ignore[no-untyped-call]
    return pooled.view(len(x), (x.shape[2] - 2) // pool[0], -1, conv.out_channels).permute(0, 3, 1, 2)


@torch.no_grad()
def _track(norm: nn.BatchNorm2d, mean: Tensor, variance: Tensor, count: int) -> None:
    """Update the running statistics as batch norm does."""
    if norm.running_mean is None or norm.running_var is None or norm.num_batches_tracked is None:
        return
    norm.num_batches_tracked += 1
    share = 1 / int(norm.num_batches_tracked) if norm.momentum is None else norm.momentum
    norm.running_mean.lerp_(mean.to(norm.running_mean), share)
    norm.running_var.lerp_((variance * count / (count - 1)).to(norm.running_var), share)


class _Patches(torch.autograd.Function):
    """Every patch of some size, in steps, as a row with a 1 at its end, `(B, T, F)` to `(rows, size + 1)`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, size: Pair, step: Pair) -> Tensor:
        windows = x.unfold(1, size[0], step[0]).unfold(2, size[1], step[1])
        ctx.geometry = x.shape, windows.shape, step
        rows = x.new_empty(*windows.shape[:3], size[0] * size[1] + 1)
        rows[..., :-1].unflatten(-1, size).copy_(windows)
        rows[..., -1] = 1
        return rows.flatten(0, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        shape, windows, step = ctx.geometry
        parts = grad.view(*windows[:3], -1)[..., :-1].unflatten(-1, windows[3:])
        result = grad.new_zeros(shape)
        # Patches overlap, but not those parts of them that are less than a step wide.
        for top in range(0, windows[3], step[0]):
            for left in range(0, windows[4], step[1]):
                part = parts[..., top : top + step[0], left : left + step[1]]
                place = result[:, top:, left:].unfold(1, part.shape[3], step[0]).unfold(2, part.shape[4], step[1])
                place[:, : windows[1], : windows[2]] += part
        return result, None, None


class _Moments(torch.autograd.Function):
    """The mean product of every two columns, in float64: variances are small differences of large ones."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        result = rows.new_zeros(rows.shape[1], rows.shape[1], dtype=torch.float64)
        for some in rows.split(_ROWS):
            result += some.t() @ some
        return result / len(rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (rows,) = ctx.saved_tensors
        result: Tensor = rows @ ((grad + grad.t()) / len(rows)).to(rows.dtype)
        return result


class _PooledRelu(torch.autograd.Function):
    """The relu of `rows @ weight`, `(rows, cells * maps)`, and its mean over the cells, `(rows, maps)`."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, cells: int) -> Tensor:
        ctx.save_for_backward(rows, weight)
        ctx.cells = cells
        maps = weight.shape[1] // cells
        mean = torch.eye(maps, dtype=rows.dtype, device=rows.device).repeat(cells, 1) / cells
        result = rows.new_empty(len(rows), maps)
        outputs = rows.new_empty(_ROWS, weight.shape[1])
        for some, pooled in zip(rows.split(_ROWS), result.split(_ROWS), strict=True):
            torch.mm(torch.mm(some, weight, out=outputs[: len(some)]).relu_(), mean, out=pooled)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        of_rows, of_weight = torch.empty_like(rows), torch.zeros_like(weight)
        # The mean's factor goes into the small matrices.
        transposed = (weight / ctx.cells).t().contiguous()
        outputs, back = (rows.new_empty(_ROWS, weight.shape[1]) for _ in range(2))
        pieces = zip(rows.split(_ROWS), grad.split(_ROWS), of_rows.split(_ROWS), strict=True)
        for some, pooled, of_some in pieces:
            output, of_output = outputs[: len(some)], back[: len(some)]
            torch.mm(some, weight, out=output)
            torch.cat([pooled] * ctx.cells, dim=1, out=of_output)
            torch.ops.aten.threshold_backward.grad_input(of_output, output, 0, grad_input=of_output)
            of_weight.addmm_(some.t(), of_output)
            torch.mm(of_output, transposed, out=of_some)
        return of_rows, of_weight / ctx.cells, None
