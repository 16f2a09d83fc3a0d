"""The evaluation functions as torchmetrics: fed batch by batch, and synchronised over processes.

`compute` gives what the function of the same name gives on all batches together. Batches need not make sense
alone, so feed them with `update`: calling the metric itself (`forward`) also computes on the single batch,
which for detection needs both labels in it: without them it fails, and what was gathered before is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from evidentia._support.checks import TensorLike
from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import whole_number
from evidentia.evaluation._inputs import scored_labels, unsure_errors
from evidentia.evaluation.calibration import bin_sums, brier_terms, diagram, expected_gap, nll_terms
from evidentia.evaluation.detection import aupr, auroc, check_label_to_find, checked_tpr, detection_scores, fpr_at
from evidentia.evaluation.selective import aurc


class _Pairs(Metric):
    """Keeps two aligned vectors: an order of samples cannot be known before all of them are."""

    is_differentiable = False
    full_state_update = False

    first: list[Tensor]
    second: list[Tensor]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.add_state("first", [], dist_reduce_fx="cat")
        self.add_state("second", [], dist_reduce_fx="cat")

    def update(self, scores: TensorLike, labels: TensorLike) -> None:
        """Add a batch of scores, any range, and their labels 0 or 1."""
        self._keep(*scored_labels(scores, labels))

    def _keep(self, first: Tensor, second: Tensor) -> None:
        self.first.append(first)
        self.second.append(second)

    def _pairs(self) -> tuple[Tensor, Tensor]:
        if not len(self.first):
            raise EvidentiaError(f"{type(self).__name__} has seen no samples; call update before compute")
        return dim_zero_cat(self.first), dim_zero_cat(self.second)


class AUROC(_Pairs):
    """`evidentia.evaluation.auroc` over batches. Unlike torchmetrics' own it never applies a sigmoid.

    Example:
        >>> from evidentia.evaluation import AUROC
        >>> metric = AUROC()
        >>> metric.update([10.0, 300.0], [0, 1])
        >>> metric.update([45.0, 50.0], [1, 0])
        >>> metric.compute()
        tensor(0.7500, dtype=torch.float64)
    """

    higher_is_better = True

    def compute(self) -> Tensor:
        """The value over all batches."""
        return auroc(*self._pairs())


class AUPR(_Pairs):
    """`evidentia.evaluation.aupr` over batches.

    Args:
        positive: the label to be found, 1 or 0.
        **kwargs: as every torchmetrics `Metric` takes them.

    Example:
        >>> from evidentia.evaluation import AUPR
        >>> metric = AUPR()
        >>> metric.update([1, 2, 3, 4], [0, 1, 0, 1])
        >>> metric.compute()
        tensor(0.8333, dtype=torch.float64)
    """

    higher_is_better = True

    def __init__(self, positive: Literal[0, 1] = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_label_to_find(positive)
        self.positive = positive

    def compute(self) -> Tensor:
        """The value over all batches."""
        return aupr(*self._pairs(), positive=self.positive)


class FPRAt(_Pairs):
    """`evidentia.evaluation.fpr_at` over batches.

    Args:
        tpr: the share of positives that must be found, in (0, 1].
        **kwargs: as every torchmetrics `Metric` takes them.

    Example:
        >>> from evidentia.evaluation import FPRAt
        >>> metric = FPRAt(tpr=0.95)
        >>> metric.update([1, 2, 3, 4], [0, 1, 0, 1])
        >>> metric.compute()
        tensor(0.5000, dtype=torch.float64)
    """

    higher_is_better = False

    def __init__(self, tpr: float = 0.95, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tpr = checked_tpr(tpr)

    def compute(self) -> Tensor:
        """The value over all batches."""
        return fpr_at(*self._pairs(), tpr=self.tpr)


class DetectionScores(_Pairs):
    """`evidentia.evaluation.detection_scores` over batches: a dict of four values from one sort.

    Example:
        >>> from evidentia.evaluation import DetectionScores
        >>> metric = DetectionScores()
        >>> metric.update([1, 2, 3, 4], [0, 1, 0, 1])
        >>> metric.compute()["auroc"]
        tensor(0.7500, dtype=torch.float64)
    """

    def compute(self) -> dict[str, Tensor]:
        """The values over all batches, by name."""
        return detection_scores(*self._pairs())


class AURC(_Pairs):
    """`evidentia.evaluation.aurc` over batches.

    Example:
        >>> from evidentia.evaluation import AURC
        >>> metric = AURC()
        >>> metric.update([0.1, 0.2], [0, 0])
        >>> metric.update([0.3, 0.9], [0, 1])
        >>> metric.compute()
        tensor(0.0625, dtype=torch.float64)
    """

    higher_is_better = False

    def update(self, uncertainty: TensorLike, errors: TensorLike) -> None:
        """Add a batch of uncertainties, higher is less sure, and the errors (0, 1 or a loss)."""
        self._keep(*unsure_errors(uncertainty, errors))

    def compute(self) -> Tensor:
        """The value over all batches."""
        return aurc(*self._pairs())


class ECE(Metric):
    """`evidentia.evaluation.ece` over batches; its memory does not grow with them.

    Args:
        bins: how many bins of equal width.
        **kwargs: as every torchmetrics `Metric` takes them.

    Example:
        >>> from evidentia.evaluation import ECE
        >>> metric = ECE()
        >>> metric.update([[0.8, 0.2], [0.8, 0.2]], [0, 0])
        >>> metric.update([[0.2, 0.8], [0.8, 0.2]], [1, 1])
        >>> metric.compute()
        tensor(0.0500, dtype=torch.float64)
    """

    is_differentiable = False
    full_state_update = False
    higher_is_better = False

    sums: Tensor

    def __init__(self, bins: int = 15, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.bins = whole_number(bins, "bins", 1)
        self.add_state("sums", torch.zeros(3, self.bins, dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, probs: TensorLike, labels: TensorLike) -> None:
        """Add a batch of probabilities and labels, as `evidentia.evaluation.ece` takes them."""
        self.sums = self.sums + bin_sums(probs, labels, self.bins).to(self.sums.device)

    def compute(self) -> Tensor:
        """The value over all batches."""
        if not bool(self.sums[0].any()):
            raise EvidentiaError("ECE has seen no samples; call update before compute")
        return expected_gap(diagram(self.sums))


class _Mean(Metric):
    """The mean of one term for each sample."""

    is_differentiable = False
    full_state_update = False
    higher_is_better = False

    _terms: Callable[[TensorLike, TensorLike], Tensor]
    total: Tensor
    count: Tensor

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.add_state("total", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("count", torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, probs: TensorLike, labels: TensorLike) -> None:
        """Add a batch of probabilities and labels, as the function of the same name takes them."""
        terms = self._terms(probs, labels)
        self.total = self.total + terms.sum().to(self.total.device)
        self.count = self.count + len(terms)

    def compute(self) -> Tensor:
        """The value over all batches."""
        if not bool(self.count):
            raise EvidentiaError(f"{type(self).__name__} has seen no samples; call update before compute")
        return self.total / self.count


class Brier(_Mean):
    """`evidentia.evaluation.brier` over batches.

    Example:
        >>> from evidentia.evaluation import Brier
        >>> metric = Brier()
        >>> metric.update([[0.8, 0.2], [0.4, 0.6]], [0, 0])
        >>> metric.compute()
        tensor(0.4000, dtype=torch.float64)
    """

    _terms = staticmethod(brier_terms)


class NLL(_Mean):
    """`evidentia.evaluation.nll` over batches.

    Example:
        >>> from evidentia.evaluation import NLL
        >>> metric = NLL()
        >>> metric.update([[0.8, 0.2], [0.4, 0.6]], [0, 1])
        >>> metric.compute()
        tensor(0.3670, dtype=torch.float64)
    """

    _terms = staticmethod(nll_terms)
