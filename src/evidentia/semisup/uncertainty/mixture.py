"""A pool as a mixture of the labeled samples' kind and of others: how probable is the first, score by score?"""

from __future__ import annotations

import math

import torch
from torch import Tensor

# Where a share of the labeled samples is compared with that of the pool. Below the median a few labels decide little of
# it, and above the 95% quantile hardly any are left.
_LEVELS = (0.5, 0.95, 20)
# Standard errors of the labeled samples by which a clean pool may differ from them: more, at any of these levels, are
# seen in one draw of twenty. A few labels would say that of any pool; with so many, one that is a quarter OOD is told.
_DOUBT, _LABELS_TO_DOUBT = 3.0, 40
# Grid points in a bandwidth, and bandwidths that a density reaches beyond its last sample.
_FINENESS, _REACH = 8, 8
_MOST_POINTS = 4096


def share_in_distribution(scores: Tensor, labeled_scores: Tensor, doubt: float = 0.0) -> float:
    r"""The largest share $\pi$ of the pool that can be like the labeled samples: $\min_q F_U(t_q) / q$.

    If $F_U = \pi F_L + (1 - \pi) F_O$ then $\pi \le F_U(t) / F_L(t)$ at every score t; here at quantiles $t_q$ of the
    labeled samples' scores (mixture proportion estimation, Blanchard, Lee and Scott, JMLR 2010).

    Args:
        scores: of the pool, low for what looks like the labeled samples.
        labeled_scores: of labeled samples, scored as those of the pool are.
        doubt: so many standard errors, $\sqrt{q (1 - q) / n}$ with n labeled samples, are taken off each q.

    Example:
        >>> labeled = torch.linspace(-1, 1, 201)
        >>> share_in_distribution(torch.cat([labeled, 9 + labeled, 9 + labeled, 9 + labeled]), labeled)
        0.25
    """
    levels = torch.linspace(*_LEVELS, dtype=labeled_scores.dtype, device=labeled_scores.device)
    thresholds = torch.quantile(labeled_scores, levels)
    below, reference = ((x[:, None] <= thresholds).to(thresholds.dtype).mean(0) for x in (scores, labeled_scores))
    errors = (reference * (1 - reference) / len(labeled_scores)).sqrt()
    # With very few labels nothing may be left of a share, which then says nothing of the pool.
    surely = (reference - doubt * errors).clamp(min=torch.finfo(reference.dtype).tiny)
    return min(1.0, float((below / surely).min()))


def chance_in_distribution(scores: Tensor, labeled_scores: Tensor, judged: Tensor | None = None) -> Tensor:
    r"""The probability $\min(1, \pi f_L(s) / f_U(s))$ that a sample of the pool is of the labeled samples' kind.

    With $\pi$ from `share_in_distribution` and densities by Gaussian kernels, both of the bandwidth that Silverman's
    rule gives for the labeled scores, so that both are smoothed alike. It never rises with the score, and is 1 below
    the labeled samples' median. In the tail of the labeled samples it stays near 1 as long as the pool has no more
    samples there than that tail explains: what is unusual of its kind is not thrown out.

    A pool that differs from at least 40 labeled samples by no more than chance, three standard errors of their shares,
    has the benefit of the doubt: $f_L$ is then larger by three of its own, $\sqrt{f_L / (2 \sqrt\pi\, n h)}$ for a
    bandwidth h. So a clean pool stays whole, and what lies where there are no labeled samples at all is still thrown
    out.

    Args:
        scores: s, of the pool, low for what looks like the labeled samples.
        labeled_scores: of labeled samples, scored as those of the pool are.
        judged: scores that the probability is asked of; those of the pool if None.

    Example:
        >>> labeled = torch.linspace(-1, 1, 201)
        >>> pool = torch.cat([labeled, 9 + labeled])
        >>> chances = chance_in_distribution(pool, labeled)
        >>> bool(chances[:201].min() > 0.9), bool(chances[201:].max() < 0.01)
        (True, True)
    """
    width = _bandwidth(labeled_scores)
    low, high = float(labeled_scores.min()), float(labeled_scores.max()) + _REACH * width
    points = min(_MOST_POINTS, max(2, math.ceil((high - low) / width * _FINENESS)))
    grid = torch.linspace(low, high, points, dtype=scores.dtype, device=scores.device)
    inside, pool = (_density(x, grid, width) for x in (labeled_scores, scores))
    count, share, doubt = len(labeled_scores), share_in_distribution(scores, labeled_scores), 0.0
    if count >= _LABELS_TO_DOUBT and share_in_distribution(scores, labeled_scores, _DOUBT) == 1:
        share, doubt = 1.0, _DOUBT
    errors = (inside / (2 * math.sqrt(math.pi) * count * width)).sqrt()
    ratio = (inside + doubt * errors) / pool.clamp(min=torch.finfo(pool.dtype).tiny)
    chances = (share * ratio).clamp(max=1)
    middle = torch.quantile(labeled_scores, 0.5)
    chances = torch.where(grid < middle, torch.ones_like(chances), chances).cummin(0).values
    asked = scores if judged is None else judged
    place = ((asked - low) / (grid[1] - grid[0])).clamp(0, points - 1)
    before = place.long().clamp(max=points - 2)
    found = torch.lerp(chances[before], chances[before + 1], place - before)
    found = torch.where(asked < middle, torch.ones_like(found), found)
    # Right of the grid no labeled sample's kernel reaches.
    return torch.where(asked > high, torch.zeros_like(found), found)


def _bandwidth(scores: Tensor) -> float:
    """Silverman's rule; for scores that are all alike, their rounding."""
    quarter, three = torch.quantile(scores, scores.new_tensor([0.25, 0.75]))
    deviation = scores.std(correction=0)
    spread = (three - quarter) / 1.349
    spread = torch.where(spread > 0, torch.minimum(spread, deviation), deviation)
    # Scores of the same value have none of their own; then any width that does not vanish beside them will do. So are
    # scores that are all next to 0, where the density would be infinite.
    largest, limits = float(scores.abs().max()), torch.finfo(scores.dtype)
    smallest = limits.eps**0.5 * (largest if largest > limits.tiny**0.25 else 1.0)
    return float(max(0.9 * float(spread) * len(scores) ** -0.2, smallest))


def _density(scores: Tensor, grid: Tensor, width: float) -> Tensor:
    """By Gaussian kernels, from counts at the grid's points: as fast for a million samples as for a hundred."""
    step = float(grid[1] - grid[0])
    reach = math.ceil(_REACH * width / step)
    # Samples beyond the grid's ends reach into it.
    places = ((scores - grid[0]) / step).round().clamp(-reach - 1, len(grid) + reach) + reach
    inside = places[(places >= 0) & (places < len(grid) + 2 * reach)].long()
    counts = torch.bincount(inside, minlength=len(grid) + 2 * reach).to(grid.dtype)
    offsets = torch.arange(-reach, reach + 1, dtype=grid.dtype, device=grid.device) * step
    kernel = torch.exp(-0.5 * (offsets / width).square())
    smooth = torch.nn.functional.conv1d(counts[None, None], kernel[None, None])[0, 0]
    return smooth / (len(scores) * width * math.sqrt(2 * math.pi))
