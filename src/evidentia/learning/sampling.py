"""Predictions from many networks at once: MC dropout and ensembles, behind one interface.

Each gives M outputs for every input. Probabilities are the mean of M predictions; aleatoric and epistemic uncertainty
come from how the M predictions differ (`aleatoric` and `epistemic` of sampled predictions); the opinion is one that
stands for all M.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from evidentia._support.checks import check_finite, check_tensor, validation_enabled
from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import whole_number
from evidentia.learning.classifier import EvidentialClassifier
from evidentia.learning.data import Samples, by_batch
from evidentia.learning.modes import dropout_layers, dropping, evaluating
from evidentia.opinions import BinomialOpinion, MultinomialOpinion, Opinion, uncertainties
from evidentia.opinions.special import as_double
from evidentia.prediction import Prediction


class SampledClassifier(ABC):
    """A classifier whose predictions are averaged over samples of its outputs."""

    def __init__(self, model: EvidentialClassifier) -> None:
        _check_classifier(model)
        self.model = model

    @abstractmethod
    def sample(self, x: Tensor) -> Tensor:
        """M sets of outputs for a batch of inputs, shape `(M, N, ...)`."""

    @abstractmethod
    def combine(self, outputs: Tensor) -> Opinion | None:
        """One opinion a sample that stands for all M outputs."""

    @torch.no_grad()
    def predict(self, x: Samples, batch_size: int = 1024) -> Prediction:
        """Predict batch by batch; takes a tensor, an array or a `Dataset`."""
        return Prediction.cat(by_batch(lambda batch: self._interpret(self.sample(batch)), x, batch_size, self.model))

    def _interpret(self, outputs: Tensor) -> Prediction:
        if validation_enabled():
            check_finite(outputs, "the network's outputs")
        probs = self.model.method.probs(outputs)
        return Prediction(
            self.model._task.probs(probs.mean(0)),
            self.combine(outputs),
            uncertainties(probs),
            self.model.task,
            self.model.class_names,
        )


class MCDropout(SampledClassifier):
    """Dropout left on while predicting, as an approximate sample of networks (Gal and Ghahramani 2016).

    The opinion is that of the mean output, as chapter 2 of the thesis has it.

    Args:
        model: a trained classifier with dropout somewhere in it.
        samples: how many predictions to average, M.
        seed: fixes which units are dropped; None leaves it to the global random state.

    Example:
        >>> import torch, evidentia as ev
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Dropout(0.5))
        >>> model = ev.EvidentialClassifier(net, num_classes=3)
        >>> pred = ev.learning.MCDropout(model, samples=10).predict(torch.randn(5, 4))
        >>> bool((pred["epistemic"] > 0).all())
        True
    """

    def __init__(self, model: EvidentialClassifier, samples: int = 20, seed: int | None = 0) -> None:
        super().__init__(model)
        self.samples = whole_number(samples, "samples", 1)
        dropout_layers(model)  # told now, if there are none
        self.seed = None if seed is None else whole_number(seed, "seed", 0)

    def sample(self, x: Tensor) -> Tensor:
        """M passes with dropout on and everything else in evaluation mode."""
        devices = [x.device] if x.device.type == "cuda" else []
        with dropping(self.model), torch.random.fork_rng(devices, enabled=self.seed is not None):
            if self.seed is not None:
                torch.manual_seed(self.seed)
            return torch.stack([self.model._adjusted(x) for _ in range(self.samples)])

    def combine(self, outputs: Tensor) -> Opinion | None:
        """The opinion of the mean output."""
        return self.model._opinion(outputs.mean(0))


class Ensemble(SampledClassifier):
    """Several networks trained apart (Lakshminarayanan et al. 2017).

    The opinion is that of the Dirichlet with the mean and the total variance of the members' mixture (moment matching).

    Args:
        models: trained classifiers for the same task and classes, by the same method with the same options.

    Example:
        >>> import torch, evidentia as ev
        >>> members = [ev.EvidentialClassifier(torch.nn.Linear(4, 8), num_classes=3) for _ in range(3)]
        >>> ev.learning.Ensemble(members).predict(torch.randn(5, 4)).probs.shape
        torch.Size([5, 3])
    """

    def __init__(self, models: Sequence[EvidentialClassifier]) -> None:
        members = list(models)
        if not members:
            raise EvidentiaError("an ensemble needs at least one model")
        super().__init__(members[0])
        for model in members[1:]:
            _check_classifier(model)
            for setting, mine in members[0].settings().items():
                if (other := model.settings()[setting]) != mine:
                    raise EvidentiaError(
                        f"the members of an ensemble must share their {setting}, got {mine} and {other}"
                    )
        self.models = members

    def sample(self, x: Tensor) -> Tensor:
        """The outputs of every member, in evaluation mode."""
        with evaluating(*self.models):
            return torch.stack([model._adjusted(x) for model in self.models])

    def combine(self, outputs: Tensor) -> Opinion | None:
        """The moment-matched opinion."""
        opinion = self.model._opinion(outputs)
        if opinion is None:
            return None
        if not isinstance(opinion, BinomialOpinion | MultinomialOpinion):
            raise EvidentiaError("an ensemble of hyper-evidential networks has no single opinion; use its members")
        members = opinion.to_multinomial() if isinstance(opinion, BinomialOpinion) else opinion
        matched = match_moments(members.alpha)
        # Members that disagree may leave less than the prior of a class; that is no evidence for it.
        prior = opinion.prior_weight / matched.shape[-1]
        evidence = (matched - prior).clamp(min=0)
        fused = MultinomialOpinion.from_evidence(evidence, prior_weight=opinion.prior_weight, validate=False)
        return BinomialOpinion.from_multinomial(fused) if isinstance(opinion, BinomialOpinion) else fused


def _check_classifier(model: object) -> None:
    if not isinstance(model, EvidentialClassifier):
        raise EvidentiaError(
            f"predictions are sampled from EvidentialClassifiers, got {type(model).__name__}; wrap a network of "
            "your own in one"
        )


def match_moments(alpha: Tensor) -> Tensor:
    r"""The Dirichlet with the mean and the total variance of a mixture of Dirichlets.

    A Dirichlet of mean $m$ and strength $S$ has $\sum_k \mathrm{Var}(p_k) = D(m) / (S + 1)$ and
    $\sum_k \mathbb{E}[p_k (1 - p_k)] = D(m) S / (S + 1)$ with $D(m) = 1 - \sum_k m_k^2$, so the strength is the second
    divided by the first. The mixture has the members' average of the second, and the first is the members' average
    plus the variance of their means. A single Dirichlet is its own match.

    Args:
        alpha: parameters of the M members, shape `(M, ..., K)`.

    Example:
        >>> match_moments(torch.tensor([[3.0, 1.0], [3.0, 1.0]]))
        tensor([3., 1.])
    """
    check_tensor(alpha, "alpha")
    exact = as_double(alpha)
    strength = exact.sum(-1, keepdim=True)
    mean = exact / strength
    centre = mean.mean(0)
    diversity = _diversity(mean) / (strength + 1)
    variance = diversity.mean(0) + (mean - centre).square().sum(-1, keepdim=True).mean(0)
    return (centre * (diversity * strength).mean(0) / variance).to(alpha.dtype)


def _diversity(mean: Tensor) -> Tensor:
    """One minus the sum of squares, without losing the little that is left when one class has nearly everything."""
    ascending = mean.sort(-1).values
    others, largest = ascending[..., :-1], ascending[..., -1:]
    rest = others.sum(-1, keepdim=True)
    return 2 * largest * rest + rest.square() - others.square().sum(-1, keepdim=True)
