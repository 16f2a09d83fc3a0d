"""Hyper-evidential networks: evidence for sets of classes, for labels that are themselves vague (Li et al. 2024)."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import real_number
from evidentia.learning.activations import ACTIVATIONS
from evidentia.learning.annealing import annealed_weight
from evidentia.learning.losses import check_indices, misleading_evidence
from evidentia.learning.methods.base import METHODS, Method
from evidentia.opinions import GroupedDirichlet, HyperOpinion, Opinion
from evidentia.opinions.hyper import class_sets
from evidentia.opinions.special import as_double


@METHODS.register("hyper")
class HyperEDL(Method):
    r"""Cross entropy under a grouped Dirichlet, with labels that may name a set of classes.

    A label below K is a class; label K + j is the set `sets[j]`, "one of these". The loss is
    $-\mathbb{E}[\ln p_k]$ for a class and $-\mathbb{E}[\ln \sum_{k \in x_j} p_k]$ for a set, under the grouped
    Dirichlet of the evidence, plus the penalty on misleading evidence. Predictions are hyper opinions, with vagueness.

    To the penalty all evidence is misleading but that for the label itself: where the label is a set, that for its
    member classes too, because the first term knows only the sum of both, and without the penalty nothing would say
    that a vague label speaks for the set and for none of its members.

    Args:
        num_classes: K.
        sets: sets of two or more classes that labels may name; they must not overlap.
        activation: how outputs become evidence.
        kl_weight: full weight of the penalty, before division by K.
        kl_ramp: epochs over which that weight rises from 0.
    """

    def __init__(
        self,
        num_classes: int,
        sets: Iterable[Iterable[int]],
        activation: str = "softplus",
        kl_weight: float = 1.0,
        kl_ramp: float = 10.0,
    ) -> None:
        super().__init__(num_classes)
        self.sets = class_sets(sets, num_classes)
        if any(len(members) < 2 for members in self.sets):
            raise EvidentiaError(f"sets need at least two classes each, got {list(self.sets)}")
        members = [k for group in self.sets for k in group]
        if len(set(members)) < len(members):
            raise EvidentiaError(f"sets must not overlap, got {list(self.sets)}")
        self.kl_weight = real_number(kl_weight, "kl_weight", 0)
        self.kl_ramp = real_number(kl_ramp, "kl_ramp", 0)
        self._activate = ACTIVATIONS[activation]

    @property
    def num_outputs(self) -> int:
        """K and one for each set."""
        return self.num_classes + len(self.sets)

    @property
    def num_targets(self) -> int:
        """Every class and every set is a possible label."""
        return self.num_outputs

    def opinion(self, outputs: Tensor) -> Opinion:
        """The hyper opinion of the evidence for classes and sets."""
        listed = [(k,) for k in range(self.num_classes)] + list(self.sets)
        return HyperOpinion.from_evidence(self._activate(outputs), listed, self.num_classes, validate=False)

    def loss(self, outputs: Tensor, target: Tensor, epoch: float) -> Tensor:
        """The partial cross entropy plus the annealed penalty on misleading evidence."""
        evidence = self._activate(outputs)
        if target.shape != outputs.shape[:-1]:
            raise EvidentiaError(f"labels need shape {tuple(outputs.shape[:-1])}, got {tuple(target.shape)}")
        self._check_indices(target)
        singles, groups = as_double(evidence).split([self.num_classes, len(self.sets)], dim=-1)
        grouped = GroupedDirichlet(singles + 1, groups, self.sets, validate_args=False)
        expected_log = torch.cat([grouped.expected_log_prob(), grouped.expected_log_total()[..., : len(self.sets)]], -1)
        loss = -expected_log.gather(-1, target.long().unsqueeze(-1)).squeeze(-1).to(evidence.dtype)
        weight = annealed_weight(epoch, self.num_outputs, self.kl_weight, self.kl_ramp)
        return loss + weight * misleading_evidence(evidence, target) if weight > 0 else loss

    def check_labels(self, labels: Tensor) -> None:
        """Labels are indices of classes and sets, one a sample."""
        if labels.ndim != 1:
            raise EvidentiaError(f"labels need shape ({len(labels)},), got {tuple(labels.shape)}")
        self._check_indices(labels)

    def _check_indices(self, target: Tensor) -> None:
        if target.is_floating_point():
            raise EvidentiaError(
                f"hyper-evidential learning needs integer labels ({self.num_classes} classes, then {len(self.sets)} "
                f"sets), got {target.dtype}"
            )
        check_indices(target, self.num_targets)
