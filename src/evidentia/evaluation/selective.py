r"""Selective prediction: what is the error rate if the most uncertain samples are left to someone else?

Samples are accepted from the most to the least certain. Errors are 0 and 1, or any finite loss of each
sample. Samples with equal uncertainty have no order of their own: every figure here is the expectation over
a random order within such ties, so that results do not depend on the order of the input, and a constant
uncertainty scores as random rejection does.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from evidentia._support.checks import TensorLike
from evidentia._support.scalars import real_number
from evidentia.evaluation._inputs import unsure_errors
from evidentia.evaluation._ranking import rank


class RiskCoverage(NamedTuple):
    """Risk against coverage, one point for each number of accepted samples from 1 to N."""

    coverage: Tensor
    """Share of the samples that are accepted, ascending from 1/N to 1."""
    risk: Tensor
    """Expected mean error of the accepted samples."""
    thresholds: Tensor
    """The largest uncertainty accepted."""


def risk_coverage(uncertainty: TensorLike, errors: TensorLike) -> RiskCoverage:
    r"""The risk-coverage curve.

    $$r_k = \frac1k \, \mathrm{E} \sum_{i=1}^k \ell_{\pi(i)}, \qquad c_k = k / N$$

    where $\pi$ sorts by uncertainty, ascending, and the expectation is over the order within ties.

    Args:
        uncertainty: shape `(N,)`, any range, higher is less sure.
        errors: shape `(N,)`, 1 where the prediction is wrong and 0 where it is right, or any finite loss.

    Example:
        >>> from evidentia.evaluation import risk_coverage
        >>> curve = risk_coverage([0.1, 0.2, 0.2, 0.9], [0, 0, 1, 1])
        >>> curve.coverage
        tensor([0.2500, 0.5000, 0.7500, 1.0000], dtype=torch.float64)
        >>> curve.risk
        tensor([0.0000, 0.2500, 0.3333, 0.5000], dtype=torch.float64)
    """
    values, losses = unsure_errors(uncertainty, errors)
    order, last = rank(values)
    before = last.new_full((1,), -1)
    sizes = last.diff(prepend=before)
    at_end = losses.index_select(0, order).cumsum(0).index_select(0, last)
    in_run = at_end.diff(prepend=at_end.new_zeros(1))

    accepted = torch.arange(1, len(values) + 1, device=values.device)
    run = torch.repeat_interleave(sizes)
    within = accepted - (last - sizes + 1)[run]
    # Multiplied before divided, so that a run of 0/1 errors ends on its exact count.
    total = (at_end - in_run)[run] + within * in_run[run] / sizes[run]
    return RiskCoverage(
        coverage=accepted.double() / len(values),
        risk=total / accepted,
        thresholds=values.index_select(0, order),
    )


def aurc(uncertainty: TensorLike, errors: TensorLike) -> Tensor:
    r"""Area under the risk-coverage curve, $\frac1N \sum_k r_k$: lower is better.

    Arguments are as for `risk_coverage`. The worst of it is set by the error rate itself; `excess_aurc` takes
    that out.

    Example:
        >>> from evidentia.evaluation import aurc
        >>> aurc([0.1, 0.2, 0.3, 0.9], [0, 0, 0, 1])
        tensor(0.0625, dtype=torch.float64)
    """
    return risk_coverage(uncertainty, errors).risk.mean()


def excess_aurc(uncertainty: TensorLike, errors: TensorLike) -> Tensor:
    r"""E-AURC: the AURC minus that of the best possible order, which accepts samples by their error.

    $$\mathrm{EAURC}(u, \ell) = \mathrm{AURC}(u, \ell) - \mathrm{AURC}(\ell, \ell) \ge 0$$

    (Geifman et al. 2019). It is 0 exactly when every right sample is more certain than every wrong one.
    Arguments are as for `risk_coverage`.

    Example:
        >>> from evidentia.evaluation import excess_aurc
        >>> excess_aurc([0.1, 0.2, 0.3, 0.9], [0, 0, 0, 1])
        tensor(0., dtype=torch.float64)
    """
    # Real-valued losses may leave a rounding error below the bound.
    return (aurc(uncertainty, errors) - aurc(errors, errors)).clamp(min=0)


def selective_risk(uncertainty: TensorLike, errors: TensorLike, coverage: float) -> Tensor:
    r"""The expected error of the most certain samples that make up a given coverage.

    $$r_k, \quad k = \lceil \mathtt{coverage} \cdot N \rceil$$

    Args:
        uncertainty: shape `(N,)`, any range, higher is less sure.
        errors: shape `(N,)`, 0 or 1, or any finite loss.
        coverage: the share of samples to accept, in (0, 1].

    Example:
        >>> from evidentia.evaluation import selective_risk
        >>> selective_risk([0.1, 0.2, 0.3, 0.9], [0, 0, 0, 1], coverage=0.75)
        tensor(0., dtype=torch.float64)
    """
    coverage = real_number(coverage, "coverage", 0, 1, open_low=True)
    curve = risk_coverage(uncertainty, errors)
    # Looked up among the rounded k / N rather than computed: ceil(0.07 * 100) is 8.
    return curve.risk[torch.searchsorted(curve.coverage, coverage)]
