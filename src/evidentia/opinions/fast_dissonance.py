r"""Dissonance in less than K² memory, and for many classes in less than K² time.

The definition sums the relative balance of every pair of belief masses (thesis eq. 2.5):
$\sum_i b_i \frac{\sum_{j \ne i} b_j \mathrm{Bal}(b_j, b_i)}{\sum_{j \ne i} b_j}$ with
$\mathrm{Bal}(b_j, b_i) = 2 \min(b_i, b_j) / (b_i + b_j)$. Two ways to compute it, both exact to rounding:

- the *shift loop* pairs class i with class i + d for d = 1..K-1, each d one vector operation: O(K²) time, O(K) memory;
- the *sorted scan* expands 1 / (1 + q) in powers of q = smaller / larger, which separate once the masses are sorted:
  O(K log K + T K) time for T terms, each more of which brings 0.77 decimal digits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import torch
from numpy.polynomial import Chebyshev, Polynomial
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from evidentia.opinions.special import as_double

# Up to this many classes the shift loop is the faster one (benchmarks/opinions.py).
SHIFT_LOOP_MAX_CLASSES = 150

# Entries of one chunk of work: small enough to stay in the cache of a core, large enough to amortise a call.
_CHUNK_ENTRIES = 1 << 17
# The scan keeps twice as many running sums as it has terms for each sample, and autograd keeps them for each class.
_SCAN_CHUNK_ENTRIES = 1 << 22
_SCAN_CHUNK_ENTRIES_WITH_GRADIENT = 1 << 17

_TERMS = {torch.float64: 21, torch.float32: 11}


def dissonance_of_belief(belief: Tensor) -> Tensor:
    """Dissonance of belief masses of shape `(..., K)`, by the faster of the two ways."""
    differentiable = torch.is_grad_enabled() and belief.requires_grad
    if belief.shape[-1] <= SHIFT_LOOP_MAX_CLASSES:
        return _in_chunks(shift_loop, belief, _CHUNK_ENTRIES, differentiable)
    entries = _SCAN_CHUNK_ENTRIES_WITH_GRADIENT if differentiable else _SCAN_CHUNK_ENTRIES
    return _in_chunks(sorted_scan, belief, entries, differentiable)


def shift_loop(belief: Tensor) -> Tensor:
    """Dissonance of shape `(N, K)` masses by pairing every class with the one d places on."""
    by_class = belief.T.contiguous()
    smallest = torch.finfo(belief.dtype).tiny
    balanced = torch.zeros_like(by_class)
    for shift in range(1, by_class.shape[0]):
        lower, upper = by_class[:-shift], by_class[shift:]
        # Only a pair without any belief is below the smallest divisor, and its balance is 0 as it should be.
        balance = torch.minimum(lower, upper) / (lower + upper).clamp_(min=smallest)
        balanced[:-shift].addcmul_(balance, upper)
        balanced[shift:].addcmul_(balance, lower)
    return _weigh(by_class, 2 * balanced)


def sorted_scan(belief: Tensor) -> Tensor:
    """Dissonance of shape `(N, K)` masses by powers of the ratios of sorted neighbours."""
    by_class = as_double(_ascending(belief)).T.contiguous()
    classes, samples = by_class.shape
    inverse = torch.as_tensor(_inverse_coefficients(_TERMS.get(belief.dtype, 11))).to(by_class)
    terms = len(inverse)
    ratio = by_class[:-1] / by_class[1:].clamp(min=torch.finfo(by_class.dtype).tiny)

    # Two scans in step, one from each end. Going up, sum_{j<i} b_j (b_j / b_i)^n for n = 1..T, of which
    # b_j Bal = 2 b_j q / (1 + q) takes every one. Going down, sum_{j>i} (b_i / b_j)^n, of which
    # b_j Bal = 2 b_i / (1 + q) takes n = 0..T-1; the sum for n = 0 is the number of larger masses.
    weights = torch.stack([inverse, torch.cat([inverse[1:], inverse.new_zeros(1)])])
    running = by_class.new_zeros(terms, 2, samples)
    powers = torch.empty_like(running)
    exponents = torch.arange(1, terms + 1, device=belief.device).view(-1, 1, 1)
    one = by_class.new_ones(samples)
    up, down = [torch.zeros_like(one)], [torch.zeros_like(one)]
    for i in range(1, classes):
        step = torch.stack([ratio[i - 1], ratio[classes - 1 - i]])
        enters = torch.stack([by_class[i - 1], one])
        if by_class.requires_grad:
            running = (running + enters) * step**exponents
        else:
            running.add_(enters).mul_(_powers(step, out=powers))
        both = weights @ running.reshape(terms, -1)
        up.append(both[0, :samples])
        down.append(both[1, samples:])
    larger = torch.arange(classes - 1, -1, -1, device=belief.device).unsqueeze(-1)
    balanced = torch.stack(up) + by_class * (torch.stack(down[::-1]) + inverse[0] * larger)
    return _weigh(by_class, 2 * balanced).to(belief.dtype)


def _powers(base: Tensor, out: Tensor) -> Tensor:
    """Fill `out` with base, base², base³, ... by doubling, which is several times faster than `pow`."""
    out[0] = base
    done = 1
    while done < len(out):
        more = min(done, len(out) - done)
        torch.mul(out[:more], out[done - 1], out=out[done : done + more])
        done += more
    return out


def _weigh(by_class: Tensor, balanced: Tensor) -> Tensor:
    """Sum b_i balanced_i / (sum of the others), where 0 / 0 counts as 0."""
    # Subtracting b_i from the total would cancel where b_i dominates; running sums from both ends do not.
    # (torch.cumsum along the first dimension is several times slower than these vector additions.)
    before = list(accumulate(by_class[:-1], initial=torch.zeros_like(by_class[0])))
    after = list(accumulate(by_class[1:].flip(0), initial=torch.zeros_like(by_class[0])))
    others = (torch.stack(before) + torch.stack(after[::-1])).clamp_(min=torch.finfo(by_class.dtype).tiny)
    # The quotient is at most 2 or so; multiplying first would underflow for tiny masses.
    return (by_class * (balanced / others)).sum(0)


def _ascending(belief: Tensor) -> Tensor:
    """Sort each row. NumPy's vectorised sort is ten times faster, and gradients need PyTorch's."""
    if belief.device.type == "cpu" and belief.dtype in _TERMS and not belief.requires_grad:
        return torch.from_numpy(np.sort(belief.numpy()))
    return belief.sort(dim=-1).values


def _in_chunks(function: Callable[[Tensor], Tensor], belief: Tensor, entries: int, differentiable: bool) -> Tensor:
    """Apply `function` to chunks of samples, so that its working memory has a bound that N does not move."""
    rows = belief.reshape(-1, belief.shape[-1])
    size = max(1, entries // belief.shape[-1])
    if differentiable:
        # Recomputing a chunk in the backward pass keeps the bound there too.
        parts = [checkpoint(function, chunk, use_reentrant=False) for chunk in rows.split(size)]
        return torch.cat(parts).reshape(belief.shape[:-1])
    result = belief.new_empty(rows.shape[0])
    for start in range(0, rows.shape[0], size):
        result[start : start + size] = function(rows[start : start + size])
    return result.reshape(belief.shape[:-1])


@cache
def _inverse_coefficients(terms: int) -> npt.NDArray[np.float64]:
    """Coefficients of the polynomial in q that interpolates 1 / (1 + q) at the Chebyshev points of [0, 1]."""
    fitted = Chebyshev.interpolate(lambda q: 1 / (1 + q), terms - 1, domain=[0, 1])
    return np.asarray(fitted.convert(kind=Polynomial).coef)
