"""Which uncertainties tell OOD in a pool: vacuity by kind of OOD, and epistemic uncertainty after training on the pool.

Two tables of the thesis. "Uncertainty for different type OODs" (chapter 3): the vacuity of a network that has learnt
from the labels alone. "Epistemic uncertainty for semi-supervised image classification" (chapter 2, "Why is Epistemic
Uncertainty Less Effective than Vacuity?"): by dropout while predicting, of networks that have, or have not, been
trained on the very pool; 50 labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from evidentia._support.errors import EvidentiaError
from evidentia.evaluation import auroc
from evidentia.learning.modes import dropping
from evidentia.opinions import epistemic
from evidentia.semisup import (
    NETWORKS,
    UNCERTAINTIES,
    SemiSupervisedClassifier,
    SemiSupervisedData,
    as_augmentation,
    load_pool,
    pool_kinds,
    train_task,
)
from evidentia.semisup.networks.passes import network_name

LABELS, PASSES, DROPOUT = 50, 20, 0.5

_BATCH = 1024


class PoolUncertainty(NamedTuple):
    """How unsure a network is of a pool."""

    inside: float
    """The mean of samples that belong to a class."""
    outside: float
    """The mean of those that do not."""
    auroc: float
    """How well it tells them apart, as area under the ROC curve."""

    @classmethod
    def of(cls, values: Tensor, pool: SemiSupervisedData) -> PoolUncertainty:
        """From the uncertainty of every sample of the pool."""
        if pool.is_ood is None:
            raise EvidentiaError("it has to be known which samples of the pool are out of distribution")
        inside, outside = values[~pool.is_ood].mean(), values[pool.is_ood].mean()
        return cls(float(inside), float(outside), float(auroc(values, pool.is_ood)))


def vacuity_by_kind(
    data: str,
    estimator: str,
    seed: int,
    *,
    kinds: Sequence[str] | None = None,
    data_root: str | None = None,
    **settings: Any,
) -> dict[str, PoolUncertainty]:
    """The vacuity of pools with each kind of OOD, by a network that has learnt from the labels alone.

    Args:
        data: a data set of `evidentia.semisup.load_pool`.
        estimator: a name of `evidentia.semisup.UNCERTAINTIES` that looks at the network.
        seed: of data and training.
        kinds: of OOD; by default all.
        data_root: a folder with the data sets.
        settings: further ones of `evidentia.semisup.train_task`.

    Example:
        >>> found = vacuity_by_kind("two-moons", "kernel", 0, kinds=["faraway"], updates=50, progress=False)
        >>> bool(found["faraway"].auroc > 0.9)
        True
    """
    found: dict[str, PoolUncertainty] = {}
    clf: SemiSupervisedClassifier | None = None
    for kind in pool_kinds(data) if kinds is None else kinds:
        pool = load_pool(data, kind, 0.5, seed, data_root=data_root)
        # A class that is held out for one kind is a class for another, as with digits: another network, then.
        if clf is None or pool.num_classes != clf.num_classes:
            clf = train_task(pool, robust="supervised", seed=seed, **settings).classifier
        labeled, augment = (pool.x_labeled, pool.y_labeled), as_augmentation("none")
        looks = UNCERTAINTIES[estimator]()
        vacuity = looks.estimate(clf.network_, labeled, pool.x_unlabeled, pool.num_classes, augment)
        found[kind] = PoolUncertainty.of(vacuity, pool)
    return found


def epistemic_of_pool(
    data: str,
    training: str,
    seed: int,
    *,
    ood: str | None = None,
    ratio: float = 0.5,
    labels: int = LABELS,
    pool_size: int | None = None,
    passes: int = PASSES,
    norm: str = "none",
    data_root: str | None = None,
    **settings: Any,
) -> tuple[PoolUncertainty, float]:
    """The epistemic uncertainty of a pool, by dropout, after supervised or semi-supervised training; and its accuracy.

    Args:
        data: a data set of `evidentia.semisup.load_pool`.
        training: "supervised", or an objective.
        seed: of data and training.
        ood: kind of OOD; by default the data set's first.
        ratio: share of OOD in the pool.
        labels: labeled samples in all.
        pool_size: samples of the pool; by default the data set's own. The thesis has 49,950.
        passes: through the network with dropout on.
        norm: batch norm, of which the thesis does not speak.
        data_root: a folder with the data sets.
        settings: further ones of `evidentia.semisup.train_task`.
    """
    ood = pool_kinds(data)[0] if ood is None else ood
    pool = _few_labels(data, ood, ratio, seed, labels, pool_size, data_root)
    shape, classes = pool.sample_shape, pool.num_classes
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = NETWORKS[network_name(None, shape)](
            shape, classes, norm="none" if norm == "none" else "batch", dropout=DROPOUT
        )
    method = {"robust": "supervised"} if training == "supervised" else {"objective": training, "robust": "none"}
    task: dict[str, Any] = {"norm": norm, "network": network, "seed": seed, **method, **settings}
    trained = train_task(pool, **task)
    doubt = dropout_epistemic(trained.classifier.network_, pool.x_unlabeled, passes, seed)
    return PoolUncertainty.of(doubt, pool), trained.result.accuracy


@torch.no_grad()
def dropout_epistemic(network: nn.Module, x: Tensor, passes: int = PASSES, seed: int = 0) -> Tensor:
    r"""Epistemic uncertainty by dropout (Gal and Ghahramani 2016): $H(\bar p) - \overline{H(p)}$ over passes, in nats.

    Args:
        network: with dropout, which stays on; all else is in evaluation mode.
        x: samples, shape `(n, ...)`.
        passes: how many, at least 1.
        seed: fixes what is dropped.

    Example:
        >>> network = nn.Sequential(nn.Linear(2, 50), nn.ReLU(), nn.Dropout(0.5), nn.Linear(50, 3))
        >>> bool((dropout_epistemic(network, torch.randn(5, 2)) > 0).all())
        True
    """
    with dropping(network), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        samples = [torch.stack([network(part).softmax(-1) for _ in range(passes)]) for part in x.split(_BATCH)]
    return torch.cat([epistemic(part, nats=True) for part in samples])


def _few_labels(
    data: str, ood: str, ratio: float, seed: int, labels: int, pool_size: int | None, data_root: str | None
) -> SemiSupervisedData:
    classes = load_pool(data, ood, ratio, seed, data_root=data_root).num_classes
    each = max(1, labels // classes)
    return load_pool(data, ood, ratio, seed, labels_per_class=each, pool_size=pool_size, data_root=data_root)
