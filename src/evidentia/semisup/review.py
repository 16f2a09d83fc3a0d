"""What training made of the pool, sample by sample: what it kept, what it threw out, and whether that was right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from evidentia._support.checks import as_array, check_unit_interval, validation_enabled
from evidentia._support.errors import EvidentiaError
from evidentia._support.extras import from_extra
from evidentia._support.scalars import whole_number
from evidentia.evaluation import auroc
from evidentia.semisup.inputs.scaling import Scale
from evidentia.semisup.weights import KEPT_FROM

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class PoolReview:
    """The verdict on every sample of a pool; nothing in it is needed to predict, it is for people to look at.

    The tensors are kept on the CPU and without gradients, whatever was given.

    Attributes:
        weights: how much each sample counted at the end, in [0, 1], shape `(n,)`.
        labels: the class that is predicted for each, shape `(n,)`, int64.
        confidence: the probability of that class, shape `(n,)`.
        uncertainty: how unsure the method is of each sample, any range, shape `(n,)`; None if it does not say.
        clusters: the cluster of each sample, from 0 on, shape `(n,)`, int64; None if weights are not shared.
        is_ood: which samples belong to no class, shape `(n,)`, bool; for scoring only, None where nobody knows.
        class_names: names of the classes, or nothing.
        num_classes: K; by default as many as there are names or, without names, one more than the largest predicted
            class.
        used: whether the pool was trained on at all; if not, its weights, and what is kept by them, say nothing.
        scale: what brought features to one scale for training, as the picture is to; None if they kept their values.

    Example:
        >>> review = PoolReview(
        ...     weights=torch.tensor([0.9, 0.1, 0.8, 0.2]),
        ...     labels=torch.tensor([0, 0, 1, 1]),
        ...     confidence=torch.tensor([0.9, 0.7, 0.8, 0.6]),
        ...     is_ood=torch.tensor([False, True, False, True]),
        ...     class_names=("cat", "dog"),
        ... )
        >>> review
        PoolReview(4 samples: 2 kept, 2 thrown out; w_in 0.850, w_ood 0.150, AUROC 1.000)
        >>> review.kept.tolist(), review.least_trusted(2).tolist()
        ([True, False, True, False], [1, 3])
    """

    weights: Tensor
    labels: Tensor
    confidence: Tensor
    uncertainty: Tensor | None = None
    clusters: Tensor | None = None
    is_ood: Tensor | None = None
    class_names: tuple[str, ...] = ()
    num_classes: int = 0
    used: bool = True
    scale: Scale | None = None

    def __post_init__(self) -> None:
        size = len(self.weights) if isinstance(self.weights, Tensor) and self.weights.ndim else 0
        for name, kind in _COLUMNS.items():
            given = getattr(self, name)
            if given is not None or name in _REQUIRED:
                _check_column(given, name, kind, size)
                object.__setattr__(self, name, given.detach().cpu())
        if not size:
            raise EvidentiaError("weights has no entries: there is no pool to review")
        object.__setattr__(self, "class_names", tuple(str(name) for name in self.class_names))
        fewest = len(self.class_names) or int(self.labels.max()) + 1
        object.__setattr__(self, "num_classes", self.num_classes or fewest)
        if validation_enabled():
            _check_values(self)

    def __len__(self) -> int:
        """The number of samples in the pool."""
        return len(self.weights)

    def tensors(self) -> dict[str, Tensor]:
        """What is known of every sample, by name."""
        return {name: tensor for name in _COLUMNS if (tensor := getattr(self, name)) is not None}

    @property
    def kept(self) -> Tensor:
        """Which samples have a weight of at least 0.5, shape `(n,)`, bool."""
        return self.weights >= KEPT_FROM

    def class_name(self, label: int) -> str:
        """The name of a class, or its number if classes have no names."""
        return self.class_names[label] if self.class_names else str(label)

    def most_trusted(self, count: int) -> Tensor:
        """The rows of the samples with the largest weights, largest first; of equal ones the first rows come first.

        Args:
            count: how many, at least 1; of a smaller pool all are given.
        """
        return torch.argsort(self.weights, descending=True, stable=True)[: whole_number(count, "count", 1)]

    def least_trusted(self, count: int) -> Tensor:
        """The rows of the samples with the smallest weights, smallest first; of equal ones the first rows come first.

        Args:
            count: how many, at least 1; of a smaller pool all are given.
        """
        return torch.argsort(self.weights, stable=True)[: whole_number(count, "count", 1)]

    def summary(self) -> dict[str, Any]:
        """The pool in a few figures, ready for JSON.

        Always `samples`, `kept`, `thrown_out` and `mean_weight`. If it is known which samples are out of distribution,
        also their number `ood`, the mean weights `w_in` and `w_ood` of the others and of these, `auroc` of 1 - w at
        finding them, and the mistakes: `ood_kept` and `in_thrown_out`. What has no samples to be computed of is None.
        Of a pool that was not trained on, `used` is False: its weights are 1 because nothing has moved them.

        Example:
            >>> zeros = torch.zeros(2, dtype=torch.int64)
            >>> PoolReview(torch.tensor([1.0, 0.25]), zeros, torch.ones(2)).summary()
            {'samples': 2, 'kept': 1, 'thrown_out': 1, 'mean_weight': 0.625}
        """
        kept = self.kept
        figures: dict[str, Any] = {
            "samples": len(self),
            "kept": int(kept.sum()),
            "thrown_out": int((~kept).sum()),
            "mean_weight": _mean(self.weights),
            **({} if self.used else {"used": False}),
        }
        if self.is_ood is None:
            return figures
        both = bool(self.is_ood.any()) and not bool(self.is_ood.all())
        return figures | {
            "ood": int(self.is_ood.sum()),
            "w_in": _mean(self.weights[~self.is_ood]),
            "w_ood": _mean(self.weights[self.is_ood]),
            # The order of 1 - w is that of -w, which rounding does not tie.
            "auroc": float(auroc(-self.weights.double(), self.is_ood)) if both else None,
            "ood_kept": int((kept & self.is_ood).sum()),
            "in_thrown_out": int((~kept & ~self.is_ood).sum()),
        }

    def by_cluster(self) -> list[dict[str, Any]]:
        """What became of each cluster, the most trusted first, ready for JSON.

        A row holds `cluster`, its `size`, the mean `weight`, how many are `kept` and `thrown_out`, the most common
        predicted class (`label` and `class`; of equally common ones the first) and, where the truth is known, the share
        of OOD `ood_share`. Clusters without samples have no row.

        Raises:
            EvidentiaError: if the samples are not in clusters.
        """
        if self.clusters is None:
            raise EvidentiaError(
                "the samples of this pool are not in clusters; by_class groups them by predicted class"
            )
        rows = []
        for cluster in torch.unique(self.clusters).tolist():
            inside = self.clusters == cluster
            label = int(torch.bincount(self.labels[inside]).argmax())
            rows.append({"cluster": cluster, "label": label, "class": self.class_name(label)} | self._group(inside))
        return sorted(rows, key=lambda row: (-row["weight"], row["cluster"]))

    def by_class(self) -> list[dict[str, Any]]:
        """What became of the samples of each predicted class, in the order of the classes, ready for JSON.

        A row holds `label`, `class` (its name), the `size`, the mean `weight`, how many are `kept` and `thrown_out`
        and, where the truth is known, the share of OOD `ood_share`. A class that is never predicted has a row too:
        size 0 and None for weight and share.
        """
        return [
            {"label": label, "class": self.class_name(label)} | self._group(self.labels == label)
            for label in range(self.num_classes)
        ]

    def to_frame(self) -> pd.DataFrame:
        """A pandas table with a row a sample; uncertainty, cluster and truth are columns where they are known.

        Of a pool that was not trained on, a column `used` is False throughout.
        """
        with from_extra("pandas", "report", "a table of the pool"):
            import pandas as pd

        table: dict[str, Any] = {
            "weight": as_array(self.weights),
            "kept": as_array(self.kept),
            "label": [self.class_name(label) for label in self.labels.tolist()]
            if self.class_names
            else as_array(self.labels),
            "confidence": as_array(self.confidence),
        }
        others = {"uncertainty": self.uncertainty, "cluster": self.clusters, "is_ood": self.is_ood}
        table |= {name: as_array(values) for name, values in others.items() if values is not None}
        table |= {} if self.used else {"used": False}
        frame: pd.DataFrame = pd.DataFrame(table)
        return frame

    def _group(self, inside: Tensor) -> dict[str, Any]:
        size, kept = int(inside.sum()), int((self.kept & inside).sum())
        row = {"size": size, "weight": _mean(self.weights[inside]), "kept": kept, "thrown_out": size - kept}
        return row if self.is_ood is None else row | {"ood_share": _mean(self.is_ood[inside])}

    def __repr__(self) -> str:
        figures = self.summary()
        if not self.used:
            return f"PoolReview({len(self)} samples, none of which were used in training)"
        scores = {name: figures.get(name.lower()) for name in ("w_in", "w_ood", "AUROC")}
        known = ", ".join(f"{name} {value:.3f}" for name, value in scores.items() if value is not None)
        what = known or f"mean weight {figures['mean_weight']:.3f}"
        return f"PoolReview({len(self)} samples: {figures['kept']} kept, {figures['thrown_out']} thrown out; {what})"


_REQUIRED = ("weights", "labels", "confidence")
_COLUMNS = {
    "weights": "floating numbers",
    "labels": "int64",
    "confidence": "floating numbers",
    "uncertainty": "floating numbers",
    "clusters": "int64",
    "is_ood": "bool",
}


def _check_column(column: Any, name: str, kind: str, size: int) -> None:
    if not isinstance(column, Tensor):
        raise EvidentiaError(f"{name} must be a tensor of {kind}, one a sample, got {type(column).__name__}")
    fits = column.is_floating_point() if kind == "floating numbers" else column.dtype == getattr(torch, kind)
    if not fits or column.ndim != 1:
        raise EvidentiaError(
            f"{name} must be {kind} of shape (n,), one a sample of the pool, got {column.dtype} of shape "
            f"{tuple(column.shape)}"
        )
    if len(column) != size:
        raise EvidentiaError(f"weights has {size} entries and {name} has {len(column)}; both need one a sample")


def _check_values(review: PoolReview) -> None:
    check_unit_interval(review.weights, "weights")
    check_unit_interval(review.confidence, "confidence")
    if review.uncertainty is not None and bool(review.uncertainty.isnan().any()):
        raise EvidentiaError(f"uncertainty is NaN for {int(review.uncertainty.isnan().sum())} of {len(review)} samples")
    if int(review.labels.min()) < 0:
        raise EvidentiaError(f"labels must be classes from 0 on, got {int(review.labels.min())}")
    if review.class_names and int(review.labels.max()) >= len(review.class_names):
        raise EvidentiaError(
            f"there are {len(review.class_names)} class_names, and labels go up to {int(review.labels.max())}; classes "
            "are numbered from 0"
        )
    needed = len(review.class_names) or int(review.labels.max()) + 1
    if review.num_classes < needed or (review.class_names and review.num_classes != needed):
        raise EvidentiaError(
            f"num_classes is {review.num_classes}, and names or labels of the review are of {needed} classes"
        )
    if review.clusters is not None and int(review.clusters.min()) < 0:
        raise EvidentiaError(f"clusters must be numbered from 0 on, got {int(review.clusters.min())}")


def _mean(values: Tensor) -> float | None:
    """In float64; None if there are none."""
    return float(values.double().mean()) if len(values) else None
