"""Tests of methods against each other, seed by seed, corrected for how many there are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from evidentia._support.checks import check_same_length
from evidentia._support.errors import EvidentiaError


def paired_p_value(first: Sequence[float], second: Sequence[float]) -> float:
    r"""Student's paired t-test, two-sided: $t = \bar d \sqrt n / s_d$ for differences $d$ of the same seeds.

    Args:
        first: a value a seed.
        second: likewise, for the same seeds.

    Raises:
        EvidentiaError: if there are fewer than two seeds.

    Example:
        >>> round(paired_p_value([3.0, 5.0, 7.0], [1.0, 2.0, 3.0]), 4)
        0.0351
    """
    check_same_length(first, second, "first and second")
    differences = np.subtract(first, second, dtype=np.float64)
    if len(differences) < 2:
        raise EvidentiaError(f"a paired test needs at least two seeds, got {len(differences)}")
    spread = float(differences.std(ddof=1))
    mean = float(differences.mean())
    # Differences that are equal but for rounding have no spread to test by.
    if spread <= 1e-12 * max(1.0, abs(mean)):
        return 1.0 if abs(mean) <= 1e-12 else 0.0
    t = mean * len(differences) ** 0.5 / spread
    return float(2 * stats.t.sf(abs(t), len(differences) - 1))


def holm(p_values: Sequence[float]) -> list[float]:
    r"""Holm's correction: of m sorted p-values, $\tilde p_{(i)} = \max_{j \le i} \min(1, (m - j + 1)\, p_{(j)})$.

    The chance of any false discovery among all tests is then at most the level that they are held against.

    Args:
        p_values: of all tests.

    Example:
        >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
        [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = highest
    return corrected
