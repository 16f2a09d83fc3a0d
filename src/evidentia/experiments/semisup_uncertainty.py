"""Which uncertainties tell OOD in a pool: vacuity by kind of OOD, and epistemic uncertainty after training on the pool.

Two tables of the thesis. "Uncertainty for different type OODs" (chapter 3): the vacuity of a network that has learnt
from the labels alone. "Epistemic uncertainty for semi-supervised image classification" (chapter 2, "Why is Epistemic
Uncertainty Less Effective than Vacuity?"): by dropout while predicting, of networks that have, or have not, been
trained on the very pool; 50 labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from evidentia._support.errors import EvidentiaError
from evidentia.evaluation import auroc
from evidentia.experiments.published_figures import published_figure
from evidentia.experiments.semisup_impact import spread
from evidentia.learning.modes import evaluating
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
from evidentia.semisup.passes import network_name

ESTIMATORS = ("evidential", "kernel")
TRAININGS = ("supervised", "vat", "mean-teacher", "pseudo-label")
LABELS, PASSES, DROPOUT = 50, 20, 0.5

IN = "in distribution"
# What the thesis calls the kinds of OOD, and the data in distribution.
_PUBLISHED_KINDS = {
    "mnist": {"fashion": "fashion-mnist", "emnist": "emnist", "mean": "mean-mnist", "mixed": "mixed", IN: "mnist"},
    "cifar10": {"svhn": "svhn", "held-out": "cifar-4", "mixed": "mixed", IN: "cifar10"},
}
_BATCH = 1024


def vacuity_rows(
    data: str,
    seeds: Sequence[int],
    *,
    kinds: Sequence[str] | None = None,
    estimators: Sequence[str] = ESTIMATORS,
    data_root: str | None = None,
    after_each: Callable[[], None] | None = None,
    **settings: Any,
) -> list[dict[str, Any]]:
    """The mean vacuity of each kind of OOD, by a network trained on the labels, ready for JSON.

    A row holds `data`, `estimator`, `kind` ("in distribution" for what belongs to classes), `mean` and `std` over
    seeds, `auroc` at telling the kind from what is in distribution (None for that itself) and `published`.

    Args:
        data: a data set of `evidentia.semisup.load_pool`.
        seeds: of data and training.
        kinds: of OOD; by default all.
        estimators: names of `evidentia.semisup.UNCERTAINTIES` that look at the network.
        data_root: a folder with the data sets.
        after_each: called after each seed.
        settings: further ones of `evidentia.semisup.train_task`.

    Example:
        >>> rows = vacuity_rows("two-moons", [0], kinds=["faraway"], estimators=["kernel"], updates=50, progress=False)
        >>> [row["kind"] for row in rows], bool(rows[0]["auroc"] > 0.9)
        (['faraway', 'in distribution'], True)
    """
    kinds = pool_kinds(data) if kinds is None else kinds
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for seed in seeds:
        clf = None
        for kind in kinds:
            pool = load_pool(data, kind, 0.5, seed, data_root=data_root)
            # A class that is held out for one kind is a class for another, as with digits: another network, then.
            if clf is None or pool.num_classes != clf.num_classes:
                clf = train_task(pool, robust="supervised", seed=seed, **settings).classifier
            for name in estimators:
                outside, inside, found_by = _vacuity(clf, pool, name)
                found.setdefault((name, kind), []).append((outside, found_by))
                if kind == kinds[0]:
                    found.setdefault((name, IN), []).append((inside, 0.5))
        if after_each is not None:
            after_each()
    rows = []
    for name in estimators:
        for kind in (*kinds, IN):
            values = [value for value, _ in found[name, kind]]
            area = None if kind == IN else float(np.mean([score for _, score in found[name, kind]]))
            rows.append(
                {
                    "data": data,
                    "estimator": name,
                    "kind": kind,
                    "mean": float(np.mean(values)),
                    "std": spread(values),
                    "auroc": area,
                    "published": _published_vacuity(data, kind),
                }
            )
    return rows


def epistemic_rows(
    data: str,
    seeds: Sequence[int],
    *,
    trainings: Sequence[str] = TRAININGS,
    ood: str | None = None,
    ratio: float = 0.5,
    labels: int = LABELS,
    pool_size: int | None = None,
    passes: int = PASSES,
    norm: str = "none",
    data_root: str | None = None,
    after_each: Callable[[], None] | None = None,
    **settings: Any,
) -> list[dict[str, Any]]:
    """Epistemic uncertainty of the pool after supervised and after semi-supervised training, ready for JSON.

    A row holds `data`, `training`, `id` and `ood` (mean epistemic uncertainty, by dropout, of the pool's samples in and
    out of distribution), each with its `std` over seeds, `auroc` at telling the two apart, `accuracy`, and `published`
    with the thesis' `id` and `ood`, or None.

    Args:
        data: a data set of `evidentia.semisup.load_pool`.
        seeds: of data and training.
        trainings: "supervised", or objectives.
        ood: kind of OOD; by default the data set's first.
        ratio: share of OOD in the pool.
        labels: labeled samples in all.
        pool_size: samples of the pool; by default the data set's own. The thesis has 49,950.
        passes: through the network with dropout on.
        norm: batch norm, of which the thesis does not speak.
        data_root: a folder with the data sets.
        after_each: called after each training.
        settings: further ones of `evidentia.semisup.train_task`.
    """
    ood = pool_kinds(data)[0] if ood is None else ood
    found: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in trainings}
    for seed in seeds:
        pool = _few_labels(data, ood, ratio, seed, labels, pool_size, data_root)
        for name in trainings:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                shape, classes = pool.sample_shape, pool.num_classes
                network = NETWORKS[network_name(None, shape)](
                    shape, classes, norm="none" if norm == "none" else "batch", dropout=DROPOUT
                )
            method = {"robust": "supervised"} if name == "supervised" else {"objective": name, "robust": "none"}
            task: dict[str, Any] = {"norm": norm, "network": network, "seed": seed, **method, **settings}
            trained = train_task(pool, **task)
            doubt = dropout_epistemic(trained.classifier.network_, pool.x_unlabeled, passes, seed)
            outside = _truth(pool)
            area = float(auroc(doubt, outside))
            figures = (float(doubt[~outside].mean()), float(doubt[outside].mean()), area, trained.result.accuracy)
            found[name].append(figures)
            if after_each is not None:
                after_each()
    rows = []
    for name, values in found.items():
        mean = np.mean(values, axis=0).tolist()
        inside, outside_of = ([value[index] for value in values] for index in (0, 1))
        rows.append(
            {
                "data": data,
                "training": name,
                "ood_kind": ood,
                "id": mean[0],
                "ood": mean[1],
                "id_std": spread(inside),
                "ood_std": spread(outside_of),
                "auroc": mean[2],
                "accuracy": mean[3],
                "published": _published_epistemic(data, ood, name),
            }
        )
    return rows


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
    dropouts = [layer for layer in network.modules() if isinstance(layer, nn.Dropout) and layer.p > 0]
    if not dropouts:
        raise EvidentiaError("epistemic uncertainty by dropout needs a network with dropout, and this one has none")
    with evaluating(network), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for layer in dropouts:
            layer.train()
        samples = [torch.stack([network(part).softmax(-1) for _ in range(passes)]) for part in x.split(_BATCH)]
    return torch.cat([epistemic(part, nats=True) for part in samples])


def _vacuity(clf: SemiSupervisedClassifier, pool: SemiSupervisedData, name: str) -> tuple[float, float, float]:
    """The mean vacuity out of and in distribution, and its AUROC at telling them apart."""
    augment = as_augmentation("none")
    labeled = (pool.x_labeled, pool.y_labeled)
    values = UNCERTAINTIES[name]().estimate(clf.network_, labeled, pool.x_unlabeled, pool.num_classes, augment)
    outside = _truth(pool)
    return float(values[outside].mean()), float(values[~outside].mean()), float(auroc(values, outside))


def _few_labels(
    data: str, ood: str, ratio: float, seed: int, labels: int, pool_size: int | None, data_root: str | None
) -> SemiSupervisedData:
    classes = load_pool(data, ood, ratio, seed, data_root=data_root).num_classes
    each = max(1, labels // classes)
    return load_pool(data, ood, ratio, seed, labels_per_class=each, pool_size=pool_size, data_root=data_root)


def _truth(pool: SemiSupervisedData) -> Tensor:
    if pool.is_ood is None:
        raise EvidentiaError("it has to be known which samples of the pool are out of distribution")
    return pool.is_ood


def _published_vacuity(data: str, kind: str) -> float | None:
    row = _PUBLISHED_KINDS.get(data, {}).get(kind)
    figure = None if row is None else published_figure(f"semisup-vacuity-{data}", row, "vacuity")
    return None if figure is None else figure.value


def _published_epistemic(data: str, ood: str, training: str) -> dict[str, float] | None:
    if (data, ood) != ("mnist", "fashion"):
        return None
    figures = {part: published_figure("epistemic-ssl", training, f"epistemic.{part}") for part in ("id", "ood")}
    return {part: figure.value for part, figure in figures.items() if figure is not None} or None
