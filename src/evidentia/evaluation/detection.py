r"""How well a score tells positives from negatives: ROC, precision and recall, and areas under them.

Scores may have any range and any scale: only their order counts, and nothing is passed through a sigmoid or
any other function. Higher means more positive. Ties are exact: samples with equal scores enter together.

Everything derives from one structure, the counts of true and false positives at each distinct threshold,
which takes one sort. Counts are int64 and ratios float64; results are on the device of the scores.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from evidentia._support.checks import TensorLike
from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import real_number
from evidentia.evaluation._inputs import scored_labels
from evidentia.evaluation._ranking import rank


class RocCurve(NamedTuple):
    """The receiver operating characteristic, from the strictest threshold to the most lenient."""

    fpr: Tensor
    """False positive rate at each threshold, ascending from 0 to 1."""
    tpr: Tensor
    """True positive rate at each threshold, ascending from 0 to 1."""
    thresholds: Tensor
    """Scores at or above this are called positive; descending from infinity."""


class PrecisionRecallCurve(NamedTuple):
    """Precision and recall, from the most lenient threshold to the strictest, then the point (1, 0)."""

    precision: Tensor
    """Share of positives among those called positive; one entry more than `thresholds`, the last 1."""
    recall: Tensor
    """Share of the positives that are called so, descending to 0; one entry more than `thresholds`."""
    thresholds: Tensor
    """The distinct scores, ascending."""


def auroc(scores: TensorLike, labels: TensorLike) -> Tensor:
    r"""Area under the ROC curve.

    $$\mathrm{AUROC} = P(s^+ > s^-) + \tfrac12 P(s^+ = s^-)$$

    for a random positive and a random negative sample: 1 is a perfect order, 0.5 is chance.

    Args:
        scores: shape `(N,)`, any range, higher is more positive.
        labels: shape `(N,)`, 0 or 1, both present.

    Example:
        >>> from evidentia.evaluation import auroc
        >>> auroc([10.0, 300.0, 45.0, 1e30], [0, 1, 0, 1])
        tensor(1., dtype=torch.float64)
    """
    return _auroc(_count(scores, labels))


def aupr(scores: TensorLike, labels: TensorLike, positive: Literal[0, 1] = 1) -> Tensor:
    r"""Area under the precision-recall curve, as average precision.

    $$\mathrm{AUPR} = \sum_n (R_n - R_{n-1}) P_n$$

    over the distinct thresholds from high to low, without interpolation (which would be too optimistic).

    Args:
        scores: shape `(N,)`, any range, higher is more positive.
        labels: shape `(N,)`, 0 or 1, both present.
        positive: the label to be found. With 0 the low scores are to point out the samples labelled 0: labels
            are flipped and scores negated.

    Example:
        >>> from evidentia.evaluation import aupr
        >>> aupr([1, 2, 3, 4], [0, 1, 0, 1])
        tensor(0.8333, dtype=torch.float64)
        >>> aupr([1, 2, 3, 4], [0, 1, 0, 1], positive=0)
        tensor(0.8333, dtype=torch.float64)
    """
    check_label_to_find(positive)
    counts = _count(scores, labels)
    return _aupr(counts if positive else counts.opposite())


def fpr_at(scores: TensorLike, labels: TensorLike, tpr: float = 0.95) -> Tensor:
    r"""False positive rate at a true positive rate ("FPR95").

    $$\mathrm{FPR}(t^*), \quad t^* = \max\{t : \mathrm{TPR}(t) \ge \mathtt{tpr}\}$$

    with $t$ among the distinct scores: the strictest threshold that finds enough positives, not interpolated.

    Args:
        scores: shape `(N,)`, any range, higher is more positive.
        labels: shape `(N,)`, 0 or 1, both present.
        tpr: the share of positives that must be found, in (0, 1].

    Example:
        >>> from evidentia.evaluation import fpr_at
        >>> fpr_at([1, 2, 3, 4], [0, 1, 0, 1], tpr=0.95)
        tensor(0.5000, dtype=torch.float64)
    """
    return _fpr_at(_count(scores, labels), checked_tpr(tpr))


def check_label_to_find(positive: int) -> None:
    """Require a label to be found that is 0 or 1."""
    if positive not in (0, 1):
        raise EvidentiaError(f"positive must be one of the labels 0 and 1, got {positive!r}")


def checked_tpr(tpr: float) -> float:
    """The share of positives that must be found, in (0, 1]."""
    return real_number(tpr, "tpr", 0, 1, open_low=True)


def roc_curve(scores: TensorLike, labels: TensorLike) -> RocCurve:
    r"""The ROC curve: $\mathrm{FPR} = FP / N$ against $\mathrm{TPR} = TP / P$ at every distinct score.

    It starts at (0, 0) with an infinite threshold. Arguments are as for `auroc`.

    Example:
        >>> from evidentia.evaluation import roc_curve
        >>> curve = roc_curve([1, 2, 2, 4], [0, 1, 0, 1])
        >>> curve.fpr.tolist(), curve.tpr.tolist(), curve.thresholds.tolist()
        ([0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0], [inf, 4.0, 2.0, 1.0])
    """
    counts = _count(scores, labels)
    thresholds = counts.thresholds if counts.thresholds.is_floating_point() else counts.thresholds.double()
    return RocCurve(
        fpr=counts.fps.double() / counts.negatives,
        tpr=counts.tps.double() / counts.positives,
        thresholds=torch.cat([thresholds.new_full((1,), torch.inf), thresholds]),
    )


def precision_recall_curve(scores: TensorLike, labels: TensorLike) -> PrecisionRecallCurve:
    r"""The precision-recall curve: $P = TP / (TP + FP)$ against $R = TP / (TP + FN)$ at every distinct score.

    Arguments are as for `auroc`; the layout is that of scikit-learn's function of the same name.

    Example:
        >>> from evidentia.evaluation import precision_recall_curve
        >>> curve = precision_recall_curve([1, 2, 2, 4], [0, 1, 0, 1])
        >>> curve.precision
        tensor([0.5000, 0.6667, 1.0000, 1.0000], dtype=torch.float64)
        >>> curve.recall.tolist(), curve.thresholds.tolist()
        ([1.0, 1.0, 0.5, 0.0], [1, 2, 4])
    """
    counts = _count(scores, labels)
    precision = _precision(counts)
    return PrecisionRecallCurve(
        precision=torch.cat([precision.flip(0), precision.new_ones(1)]),
        recall=counts.tps.flip(0).double() / counts.positives,
        thresholds=counts.thresholds.flip(0),
    )


def detection_scores(scores: TensorLike, labels: TensorLike) -> dict[str, Tensor]:
    """All of `auroc`, `aupr`, `aupr` with `positive=0`, and `fpr_at` 0.95, from one sort.

    Arguments are as for `auroc`.

    Returns:
        The keys `auroc`, `aupr`, `aupr_negative` and `fpr_at_95`, each with a scalar tensor of float64.

    Example:
        >>> from evidentia.evaluation import detection_scores
        >>> found = detection_scores([1, 2, 3, 4], [0, 1, 0, 1])
        >>> {name: round(float(value), 4) for name, value in found.items()}
        {'auroc': 0.75, 'aupr': 0.8333, 'aupr_negative': 0.8333, 'fpr_at_95': 0.5}
    """
    counts = _count(scores, labels)
    return {
        "auroc": _auroc(counts),
        "aupr": _aupr(counts),
        "aupr_negative": _aupr(counts.opposite()),
        "fpr_at_95": _fpr_at(counts, 0.95),
    }


class _Counts(NamedTuple):
    """True and false positives when all scores at or above a threshold are called positive."""

    thresholds: Tensor
    """The T distinct scores, descending."""
    tps: Tensor
    """T + 1 counts, int64: 0 above the highest threshold, then one for each."""
    fps: Tensor
    positives: int
    negatives: int

    def opposite(self) -> _Counts:
        """The counts for flipped labels and negated scores, without sorting again."""
        return _Counts(
            thresholds=-self.thresholds.flip(0),
            tps=(self.negatives - self.fps).flip(0),
            fps=(self.positives - self.tps).flip(0),
            positives=self.negatives,
            negatives=self.positives,
        )


def _count(scores: TensorLike, labels: TensorLike) -> _Counts:
    values, positive = scored_labels(scores, labels)
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if not positives or not negatives:
        raise EvidentiaError(
            f"labels must hold both 0 and 1, got only {int(positives > 0)} ({len(positive)} samples); "
            "detection is not defined with one kind alone: pass more samples, or all batches together"
        )
    order, last = rank(values, descending=True)
    zero = last.new_zeros(1)
    tps = torch.cat([zero, positive.index_select(0, order).cumsum(0).index_select(0, last)])
    fps = torch.cat([zero, last + 1]) - tps
    return _Counts(values.index_select(0, order.index_select(0, last)), tps, fps, positives, negatives)


def _auroc(counts: _Counts) -> Tensor:
    # Twice the area under the staircase, in integers: exact up to four billion samples.
    area = ((counts.tps[1:] + counts.tps[:-1]) * counts.fps.diff()).sum()
    return area.double() / (2 * counts.positives * counts.negatives)


def _aupr(counts: _Counts) -> Tensor:
    return (counts.tps.diff() * _precision(counts)).sum() / counts.positives


def _fpr_at(counts: _Counts, tpr: float) -> Tensor:
    # Both sides are rounded once from the same real number, so that 19 of 20 does reach 0.95.
    reached = torch.searchsorted(counts.tps.double() / counts.positives, tpr)
    return counts.fps[reached].double() / counts.negatives


def _precision(counts: _Counts) -> Tensor:
    tps = counts.tps[1:]
    return tps.double() / (tps + counts.fps[1:])
