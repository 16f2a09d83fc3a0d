"""Which samples of the pool are unlike all labeled ones: a discriminator of labeled against unlabeled samples."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia._support.checks import check_finite
from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import real_number, whole_number
from evidentia.evaluation import auroc
from evidentia.opinions.special import as_double
from evidentia.semisup.augmentation import Change
from evidentia.semisup.networks.features import logits_in_parts
from evidentia.semisup.training.own_code import UNCOUNTED
from evidentia.semisup.uncertainty.base import UNCERTAINTIES, PoolUncertainty, PoolView, Progress
from evidentia.semisup.uncertainty.mixture import chance_in_distribution, share_in_distribution
from evidentia.semisup.uncertainty.networks import Limits, Standardise, default_discriminator

# A share of the pool this large is called unlike the labeled samples only if nearly all of it is OOD, or they are no
# random draw.
SUSPICIOUS = 0.9
ENOUGH = 40
# Of the labeled samples of a class. Where the pool has many that are much like them, about half may be called so.
MISJUDGED = 0.7
_FEWEST = 5
_WEIGHT_DECAY = 1e-4


@dataclass(frozen=True)
class PoolReport:
    r"""What a discriminator of labeled against unlabeled samples found in the pool.

    Attributes:
        unlike: share of the pool with u > 0.5, more probably of another kind than of the labeled samples'.
        ood_share: the share of OOD that the pool must at least have for its scores to differ so from the labeled
            samples' (`share_in_distribution`); what looks like a labeled sample is not in it.
        separation: AUROC of pool against labeled samples, both left out: 0.5 if they look alike. If a share r of the
            pool is OOD and the labels are a random draw of the rest, at most $(1 + r) / 2$ can be expected.
        own_unlike: share of the labeled samples of each class, judged as the pool is, that are called unlike. They are
            in distribution, so where it is most of them the class is commoner in the pool than among the labels.
    """

    unlike: float
    ood_share: float
    separation: float
    own_unlike: tuple[float, ...] = ()

    @property
    def suspicious(self) -> bool:
        """Whether nearly the whole pool is called unlike the labeled samples."""
        return self.unlike > SUSPICIOUS

    @property
    def misjudged(self) -> list[int]:
        """The classes most of whose own labeled samples are called unlike."""
        return [label for label, share in enumerate(self.own_unlike) if share > MISJUDGED]


@UNCERTAINTIES.register("pu")
@dataclass(kw_only=True, eq=False)
class LabeledAgainstUnlabeled(PoolUncertainty):
    r"""How much more a sample looks like the pool than like the labeled set, judged by networks that never saw it.

    Labeled and unlabeled samples are split into folds. For each fold, a small network learns to tell the labeled from
    the unlabeled samples of the other folds, on augmented inputs and batches of half and half. Its logits, on the scale
    of the pool's, then score the samples of the fold, which it has not seen; s is the mean over repeats with other
    folds. The labeled samples, each of them left out too, tell what scores are in distribution: with $f_L$ the density
    of theirs, $f_U$ that of the pool's and $\pi$ the share of the pool that can be like them,

    $$u = 1 - \min\Big(1, \pi\, \frac{f_L(s)}{f_U(s)}\Big)$$

    is the probability of not being of their kind (`chance_in_distribution`), and 1 for samples that are 20 times as far
    from the labeled samples' mean, in any entry, as these are. What is in distribution occurs on both
    sides and cannot be told apart; what occurs only in the pool can, and gets u near 1. This is learning from positive
    and unlabeled data (Elkan and Noto, KDD 2008).

    It assumes that **the labeled samples are a random draw of what is in distribution**. If they are all of one
    source, camera or day and the pool is not, everything in the pool is unlike them; `report_` and a warning say when
    nearly all of it is called so. It knows nothing of classes: a kind of sample that is in the pool and not among the
    labels is OOD to it, and one that is far commoner in the pool than among the labels, as the large classes of a pool
    are if each class has as many labels, is so in part; there is a warning of that, too.

    Args:
        folds: the number of parts, each scored by a network that has learnt from the others.
        repeats: how often it is done with other folds. By default so often that labeled samples are left out 40 times
            in all, once if there are as many: what a network learns from three or four labels is a matter of luck.
        steps: updates of each network.
        batch_size: labeled, and as many unlabeled, samples of a batch.
        learning_rate: of Adam.
        width: maps of the first layer for images, an eighth of the hidden units for anything else.
        view: which augmentation is used in training.
        network: makes a network with one output, or two, for samples of a given shape; by default a small
            convolutional network for images and a perceptron for anything else.
        progress: told the steps done and the steps in all.

    Attributes:
        report_: what was found, after `estimate`, or when a run was broken off and is taken up.

    Example:
        >>> from evidentia.semisup import AUGMENTATIONS
        >>> from evidentia.semisup.data.moons import two_moons
        >>> data, estimator = two_moons("faraway", 0.5, labels_per_class=10, unlabeled=200), LabeledAgainstUnlabeled()
        >>> labeled, augment = (data.x_labeled, data.y_labeled), AUGMENTATIONS["vectors"]()
        >>> u = estimator.estimate(nn.Identity(), labeled, data.x_unlabeled, 2, augment)
        >>> bool(u[data.is_ood].mean() > 0.9), bool(u[~data.is_ood].mean() < 0.5), estimator.report_.suspicious
        (True, True, False)
    """

    folds: int = 2
    repeats: int | None = None
    steps: int = 250
    batch_size: int = 64
    learning_rate: float = 2e-3
    width: int = 8
    view: Literal["weak", "strong"] = "strong"
    network: Callable[[tuple[int, ...]], nn.Module] | None = None
    progress: Progress | None = field(default=None, metadata=UNCOUNTED)
    # Not in the repr, by which a broken-off run is known: it must be the same before and after training.
    report_: PoolReport | None = field(default=None, init=False, repr=False)
    refresh: ClassVar[bool] = False
    is_probability: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Require settings in their range."""
        for name, low in (("folds", 2), ("repeats", 1), ("steps", 1), ("batch_size", 1), ("width", 1)):
            value = getattr(self, name)
            if not (value is None and name == "repeats"):
                setattr(self, name, whole_number(value, f"{name} of 'pu'", low))
        self.learning_rate = real_number(self.learning_rate, "the learning_rate of 'pu'", 0, open_low=True)
        if self.view not in ("weak", "strong"):
            raise EvidentiaError(f"view of 'pu' must be 'weak' or 'strong', got {self.view!r}")

    def uncertainty_of(self, pool: PoolView) -> Tensor:
        """By discriminators that are trained for it."""
        unlabeled, augment = pool.unlabeled, pool.augment
        known = pool.labeled[0].to(unlabeled)
        for name, part in (("labeled", known), ("unlabeled", unlabeled)):
            check_finite(part, f"the {name} samples")
        _check_enough(len(known), len(unlabeled), self.folds)
        repeats = max(1, math.ceil(ENOUGH / len(known))) if self.repeats is None else self.repeats
        change = augment.strong if self.view == "strong" else augment.weak
        limits = Limits.of(known)
        scores, known_scores = (as_double(x.new_zeros(len(x))) for x in (unlabeled, known))
        kinds = torch.zeros(len(unlabeled), dtype=torch.int64, device=unlabeled.device)
        total = repeats * self.folds
        for run in range(total):
            if run % self.folds == 0:
                known_fold, fold = _folds(pool.labeled[1].to(kinds), self.folds), _folds(kinds, self.folds)
            left_out, inside = known_fold == run % self.folds, fold == run % self.folds
            told = _counted(run * self.steps, total * self.steps, [self.progress, pool.progress])
            judge = self._train(known[~left_out], unlabeled[~inside], limits, change, told)
            found, marks = (_scores(judge, x, pool.batch_size) for x in (unlabeled[inside], known[left_out]))
            # The pool's folds are alike, so its scores tell the scale of each network's. Not their median, which lies
            # in the gap if half of the pool is OOD.
            centre, spread = found.mean(), found.std(correction=0)
            spread = torch.where(spread > 0, spread, torch.ones_like(spread))
            scores[inside] += (found - centre) / (spread * repeats)
            known_scores[left_out] += (marks - centre) / (spread * repeats)
        uncertainty = 1 - chance_in_distribution(scores, known_scores)
        uncertainty[limits.broken(unlabeled)] = 1
        self.report_ = _report(uncertainty, scores, known_scores, pool.labeled[1], pool.num_classes)
        _warn_if_suspicious(self.report_)
        return uncertainty

    def state_dict(self) -> dict[str, Tensor]:
        """The figures of the report, if there is one."""
        figures = {} if self.report_ is None else asdict(self.report_)
        return {name: torch.tensor(value, dtype=torch.float64) for name, value in figures.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up the report, and warn again if it is suspicious."""
        try:
            figures: dict[str, Any] = {name: value.tolist() for name, value in state.items()}
            own = tuple(map(float, figures.pop("own_unlike", ())))
            shares = {name: float(value) for name, value in figures.items()}
            self.report_ = PoolReport(**shares, own_unlike=own) if state else None
        except (TypeError, ValueError) as error:
            raise EvidentiaError(f"this state is no report of 'pu': {error}") from error
        if self.report_ is not None:
            _warn_if_suspicious(self.report_)

    def _train(
        self, known: Tensor, pool: Tensor, limits: Limits, change: Change, told: Callable[[int], None]
    ) -> nn.Module:
        shape = tuple(pool.shape[1:])
        body = default_discriminator(shape, self.width) if self.network is None else self.network(shape)
        judge = nn.Sequential(Standardise(pool, limits), body).to(pool)
        optimizer = torch.optim.Adam(judge.parameters(), self.learning_rate, weight_decay=_WEIGHT_DECAY)
        targets = torch.arange(2, device=pool.device).repeat_interleave(self.batch_size).to(pool)
        for step in range(self.steps):
            rows = [torch.randint(len(x), (self.batch_size,), device=x.device) for x in (known, pool)]
            with torch.no_grad():
                batch = change(torch.cat([known[rows[0]], pool[rows[1]]]))
            loss = F.binary_cross_entropy_with_logits(_one_logit(judge(batch)), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            told(step + 1)
        return judge


def _counted(before: int, total: int, listeners: Sequence[Progress | None]) -> Callable[[int], None]:
    """Tell of the steps of one network as of a part of all steps."""

    def tell(step: int) -> None:
        for listener in listeners:
            if listener is not None:
                listener(before + step, total)

    return tell


def _warn_if_suspicious(report: PoolReport) -> None:
    if report.suspicious:
        warnings.warn(
            f"{report.unlike:.0%} of the pool looks unlike the labeled samples: either nearly all of it is out of "
            "distribution, or the labeled samples are no random draw of what is in distribution, which 'pu' needs; "
            "look at some samples of the pool, and use another uncertainty if they do belong to classes",
            stacklevel=4,
        )
    elif report.misjudged:
        warnings.warn(
            f"most labeled samples of class {', '.join(map(str, report.misjudged))} would be thrown out, were they in "
            "the pool: it has more that looks like them than the labels let expect. The class may be commoner there "
            "than among the labels, which 'pu' takes for a random draw, or samples of no class may look like it; look "
            "at the pool, and label samples drawn at random, or use the method 'meta'",
            stacklevel=4,
        )


def _one_logit(outputs: Tensor) -> Tensor:
    if outputs.ndim == 2 and outputs.shape[1] == 2:
        return outputs[:, 1] - outputs[:, 0]
    if outputs.ndim != 2 or outputs.shape[1] != 1:
        raise EvidentiaError(f"a discriminator must give outputs of shape (n, 1) or (n, 2), got {tuple(outputs.shape)}")
    return outputs[:, 0]


def _scores(judge: nn.Module, x: Tensor, batch_size: int) -> Tensor:
    scores = as_double(_one_logit(logits_in_parts(judge, x, batch_size)))
    if not bool(torch.isfinite(scores).all()):
        raise EvidentiaError("the discriminator of 'pu' has diverged; lower its learning_rate")
    return scores


def _folds(groups: Tensor, count: int) -> Tensor:
    """Folds at random, of equal size up to 1, with an equal share of every group as far as that goes."""
    shuffled = torch.randperm(len(groups), device=groups.device)
    order = shuffled[torch.argsort(groups[shuffled], stable=True)]
    fold = torch.empty_like(order)
    # Dealt out through all groups in turn, so that groups of one sample do not all go to the first fold.
    fold[order] = torch.arange(len(order), device=order.device) % count
    return fold


def _check_enough(known: int, pool: int, folds: int) -> None:
    if known < 2 * folds:
        raise EvidentiaError(
            f"'pu' needs at least 2 labeled samples in each of {folds} folds, {2 * folds} in all, got {known}; label "
            "more, or use another uncertainty"
        )
    if pool < folds:
        raise EvidentiaError(f"'pu' needs at least {folds} samples in the pool, one a fold, got {pool}")


def _report(uncertainty: Tensor, scores: Tensor, known_scores: Tensor, labels: Tensor, classes: int) -> PoolReport:
    unlike = float((uncertainty > 0.5).double().mean())
    own = chance_in_distribution(scores, known_scores, known_scores) < 0.5
    counts, wrong = (torch.bincount(each, minlength=classes) for each in (labels, labels[own.to(labels.device)]))
    # Of a few labels, most are often called so by chance.
    shares = torch.where(counts < _FEWEST, 0, wrong / counts.clamp(min=1))
    from_pool = torch.cat([torch.ones_like(scores), torch.zeros_like(known_scores)]).bool()
    return PoolReport(
        unlike=unlike,
        ood_share=1 - share_in_distribution(scores, known_scores),
        separation=float(auroc(torch.cat([scores, known_scores]), from_pool)),
        own_unlike=tuple(shares.tolist()),
    )
