"""Filters: a segment's prediction counts only where an uncertainty of it is small."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from evidentia._support.checks import check_unit_interval, validation_enabled
from evidentia._support.errors import EvidentiaError
from evidentia.events.fusion.base import HEADS, Fusion, FusionHead, UnitPerClass, beta_from_probability, gated
from evidentia.events.fusion.phase1 import segment_opinion
from evidentia.events.fusion.state import Windows
from evidentia.opinions import BinomialOpinion, aleatoric, entropy, epistemic


class UncertaintyFilter(FusionHead):
    """The probability of the present segment, where an uncertainty of it is below a limit (thesis section 4.7).

    Uncertainties are those of a binary outcome in bits: of the Beta distribution in closed form with `fuse` and `push`,
    of sampled predictions (MC dropout) with `fuse_samples`.

    Args:
        threshold: what the log odds must exceed; 0 is a probability of 1/2.
        max_uncertainty: the limit, one number or one a class.
    """

    max_uncertainty: UnitPerClass = 0.9

    def _fuse(self, windows: Windows) -> Fusion:
        alpha, beta = windows.latest()
        opinion = segment_opinion(alpha, beta)
        score = torch.log(alpha) - torch.log(beta)
        return Fusion(opinion, gated(score, self._of_opinion(opinion), self.max_uncertainty))

    def fuse_samples(self, probability: Tensor) -> Fusion:
        """The decision from M sampled predictions, shape `(M, ..., T, K)`; the opinion is that of their mean."""
        if probability.ndim < 3 or not len(probability):
            raise EvidentiaError(
                "sampled probabilities need shape (samples, ..., segments, classes) with at least one sample, got "
                f"{tuple(probability.shape)}"
            )
        if validation_enabled():
            check_unit_interval(probability, "sampled probabilities")
        mean = probability.mean(0)
        opinion = segment_opinion(*beta_from_probability(mean))
        uncertainty = self._of_samples(torch.stack([1 - probability, probability], -1))
        return Fusion(opinion, gated(torch.logit(mean, eps=1e-6), uncertainty, self.max_uncertainty))

    @abstractmethod
    def _of_opinion(self, opinion: BinomialOpinion) -> Tensor:
        """The uncertainty of opinions."""

    @abstractmethod
    def _of_samples(self, probability: Tensor) -> Tensor:
        """The uncertainty of sampled probabilities of no and yes, shape `(M, ..., 2)`."""


@HEADS.register("entropy")
class EntropyFilter(UncertaintyFilter):
    """Filter by the entropy of the probability, in bits.

    Example:
        >>> head = EntropyFilter(max_uncertainty=0.5)
        >>> head.calls(head.fuse(torch.tensor([[6.0], [90.0]]), torch.tensor([[4.0], [10.0]])))
        tensor([[False],
                [ True]])
    """

    name: ClassVar[str] = "entropy"

    def _of_opinion(self, opinion: BinomialOpinion) -> Tensor:
        return entropy(opinion)

    def _of_samples(self, probability: Tensor) -> Tensor:
        return entropy(probability.mean(0))


@HEADS.register("epistemic")
class EpistemicFilter(UncertaintyFilter):
    """Filter by the mutual information of label and probability, in bits: how unsettled the model is.

    Example:
        >>> head = EpistemicFilter(max_uncertainty=0.1)
        >>> head.calls(head.fuse(torch.tensor([[2.0], [90.0]]), torch.tensor([[1.0], [10.0]])))
        tensor([[False],
                [ True]])
    """

    name: ClassVar[str] = "epistemic"
    in_onnx: ClassVar[bool] = False  # which has no digamma
    max_uncertainty: UnitPerClass = 0.5

    def _of_opinion(self, opinion: BinomialOpinion) -> Tensor:
        return epistemic(opinion)

    def _of_samples(self, probability: Tensor) -> Tensor:
        return epistemic(probability)


@HEADS.register("aleatoric")
class AleatoricFilter(UncertaintyFilter):
    """Filter by the expected entropy of the label, in bits: how noisy the data are.

    Example:
        >>> head = AleatoricFilter(max_uncertainty=0.5)
        >>> head.calls(head.fuse(torch.tensor([[6.0], [90.0]]), torch.tensor([[4.0], [10.0]])))
        tensor([[False],
                [ True]])
    """

    name: ClassVar[str] = "aleatoric"
    in_onnx: ClassVar[bool] = False  # which has no digamma

    def _of_opinion(self, opinion: BinomialOpinion) -> Tensor:
        return aleatoric(opinion)

    def _of_samples(self, probability: Tensor) -> Tensor:
        return aleatoric(probability)
