"""Measures of uncertainty: how much of it there is, and of which kind.

Every measure takes an opinion, or the tensor that its formula is written in. Entropies are normalised to [0, 1] by
taking logarithms to base K; `nats=True` gives natural logarithms instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from evidentia._support.checks import (
    as_float_tensor,
    check_adds_to_one,
    check_class_dim,
    check_nonnegative,
    check_unit_interval,
    mass_tolerance,
    validation_enabled,
)
from evidentia._support.errors import EvidentiaError
from evidentia._support.registry import Registry
from evidentia.opinions._opinion import Opinion, evidence_of
from evidentia.opinions.binomial import BinomialOpinion
from evidentia.opinions.fast_dissonance import dissonance_of_belief
from evidentia.opinions.hyper import HyperOpinion
from evidentia.opinions.multinomial import MultinomialOpinion
from evidentia.opinions.special import as_double, dirichlet_entropy, quotient, scaled_digamma_gap

MEASURES: Registry[Callable[..., Tensor]] = Registry("measure")


@MEASURES.register("vacuity")
def vacuity(x: Opinion | Tensor) -> Tensor:
    r"""Lack of evidence: $u = W / S$, in $(0, 1]$ (0 for a dogmatic opinion).

    Args:
        x: an opinion, or Dirichlet parameters $\alpha$ of shape `(..., K)` with $W = K$.

    Example:
        >>> import torch, evidentia as ev
        >>> ev.vacuity(ev.MultinomialOpinion.from_evidence([0.0, 0.0, 0.0]))
        tensor(1.)
        >>> ev.vacuity(torch.tensor([5.0, 4.0, 1.0]))
        tensor(0.3000)
    """
    if isinstance(x, Opinion):
        return x.vacuity
    alpha = _dirichlet(x)
    classes, strength = alpha.shape[-1], alpha.sum(-1)
    if validation_enabled() and bool((strength < classes * (1 - mass_tolerance(alpha.dtype, classes))).any()):
        raise EvidentiaError(
            f"alpha must add up to at least {classes}, the prior weight of {classes} classes, got a sum of "
            f"{float(strength.min()):.6g}; use MultinomialOpinion.from_alpha with a smaller prior_weight"
        )
    return (classes / strength).clamp(max=1)


@MEASURES.register("dissonance")
def dissonance(x: Opinion | Tensor) -> Tensor:
    r"""Conflicting evidence, in $[0, 1]$ (thesis eq. 2.5).

    $\sum_i b_i \frac{\sum_{j \ne i} b_j \mathrm{Bal}(b_j, b_i)}{\sum_{j \ne i} b_j}$ with
    $\mathrm{Bal}(b_j, b_i) = 2 \min(b_i, b_j) / (b_i + b_j)$, and 0 where a sum is 0. In a hyper opinion two sets
    conflict when they share no class: the inner sum in the numerator then runs over the sets disjoint from set i.

    Args:
        x: an opinion, or belief masses $b$ of shape `(..., K)`.

    Example:
        >>> import torch, evidentia as ev
        >>> ev.dissonance(ev.MultinomialOpinion.from_evidence([9.0, 9.0, 0.0]))
        tensor(0.8571)
        >>> ev.dissonance(torch.tensor([0.25, 0.25, 0.25, 0.25]))
        tensor(1.)
    """
    if isinstance(x, HyperOpinion):
        return _pairwise_balance(x, disjoint=True).clamp(max=1)
    return dissonance_of_belief(_belief(x)).clamp(max=1)


@MEASURES.register("consonance")
def consonance(x: Opinion | Tensor) -> Tensor:
    r"""Evidence for different sets that agree in part, in $[0, 1]$; 0 unless the opinion is a hyper opinion.

    $\sum_i b_i \frac{\sum_{j \ne i,\, x_j \cap x_i \ne \emptyset} b_j \mathrm{Bal}(b_j, b_i)}{\sum_{j \ne i} b_j}$
    over the sets $x_i$: dissonance with "disjoint" replaced by "overlapping". (Our reading of Jøsang, Cho and Chen
    2018, chosen so that dissonance, consonance, monosonance and vacuity add up to 1.)

    Example:
        >>> import evidentia as ev
        >>> h = ev.HyperOpinion([0.4, 0.4], vacuity=0.2, sets=[{0}, {0, 1}], num_classes=3)
        >>> ev.consonance(h), ev.dissonance(h)
        (tensor(0.8000), tensor(0.))
    """
    if isinstance(x, HyperOpinion):
        return _pairwise_balance(x, disjoint=False).clamp(max=1)
    return torch.zeros_like(_belief(x)[..., 0])


@MEASURES.register("monosonance")
def monosonance(x: Opinion | Tensor) -> Tensor:
    r"""Evidence that speaks with one voice, in $[0, 1]$: the belief that neither conflicts nor overlaps.

    $\sum_i b_i - \mathrm{diss} - \mathrm{cons}$, so that dissonance, consonance, monosonance and vacuity add up to 1.

    Example:
        >>> import evidentia as ev
        >>> ev.monosonance(ev.BinomialOpinion(belief=0.6, disbelief=0.1, vacuity=0.3))
        tensor(0.5000)
    """
    belief = x.belief if isinstance(x, HyperOpinion) else _belief(x)
    return (belief.sum(-1) - dissonance(x) - consonance(x)).clamp(0, 1)


@MEASURES.register("vagueness")
def vagueness(x: Opinion) -> Tensor:
    r"""Evidence that cannot tell classes apart, in $[0, 1]$: the belief on sets of several classes.

    $\sum_k \sum_{|x_j| > 1} a(k \mid x_j)\, b(x_j) = \sum_{|x_j| > 1} b(x_j)$; 0 for binomial and multinomial opinions.

    Example:
        >>> import evidentia as ev
        >>> ev.vagueness(ev.HyperOpinion([0.3, 0.4], vacuity=0.3, sets=[{0}, {1, 2}], num_classes=3))
        tensor(0.4000)
    """
    if not isinstance(x, Opinion):
        raise EvidentiaError(f"vagueness is a property of opinions, got {type(x).__name__}; build a HyperOpinion")
    if isinstance(x, HyperOpinion):
        return x.belief[..., x.is_composite].sum(-1).clamp(max=1)
    return torch.zeros_like(x.vacuity)


@MEASURES.register("entropy")
def entropy(p: Opinion | Tensor, *, nats: bool = False) -> Tensor:
    r"""Total uncertainty of the prediction, $H[P] / \ln K$ in $[0, 1]$.

    Args:
        p: an opinion (its projected probability is used), or probabilities of shape `(..., K)`.
        nats: do not divide by $\ln K$.

    Example:
        >>> import torch, evidentia as ev
        >>> ev.entropy(torch.tensor([0.5, 0.5, 0.0, 0.0]))
        tensor(0.5000)
    """
    probability = _projected(p) if isinstance(p, Opinion) else _probabilities(p)
    return _scaled(_shannon(probability), probability, nats)


@MEASURES.register("aleatoric")
def aleatoric(x: Opinion | Tensor, *, nats: bool = False) -> Tensor:
    r"""Noise in the data: the entropy expected of the class probabilities, in $[0, 1]$.

    For a Dirichlet $\frac{1}{\ln K} \sum_k \frac{\alpha_k}{S} (\psi(S + 1) - \psi(\alpha_k + 1))$ (thesis
    appendix A.1); for M sampled predictions, the mean of their entropies.

    Args:
        x: an opinion, or sampled probabilities of shape `(M, ..., K)`, the samples first.
        nats: do not divide by $\ln K$.

    Example:
        >>> import torch, evidentia as ev
        >>> ev.aleatoric(ev.MultinomialOpinion.from_evidence([0.0, 0.0]))
        tensor(0.7213)
        >>> ev.aleatoric(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
        tensor(0.)
    """
    if isinstance(x, Opinion):
        probability = _projected(x)
        return _scaled(_shannon(probability) - _mutual_information(x), probability, nats)
    samples = _samples(x)
    return _scaled(_shannon(samples).mean(0), samples, nats)


@MEASURES.register("epistemic")
def epistemic(x: Opinion | Tensor, *, nats: bool = False) -> Tensor:
    r"""An unsettled model: the mutual information of class and class probabilities, in $[0, 1]$.

    Entropy minus aleatoric. For a Dirichlet it is $\frac{1}{S} (\sum_k h(\alpha_k) - h(S))$ with
    $h(x) = x (\psi(x + 1) - \ln x)$, which keeps its digits when S is large; for M sampled predictions, the entropy of
    their mean minus the mean of their entropies.

    Args:
        x: an opinion, or sampled probabilities of shape `(M, ..., K)`, the samples first.
        nats: do not divide by $\ln K$.

    Example:
        >>> import torch, evidentia as ev
        >>> ev.epistemic(ev.MultinomialOpinion.from_evidence([0.0, 0.0]))
        tensor(0.2787)
        >>> ev.epistemic(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
        tensor(1.)
    """
    if isinstance(x, Opinion):
        return _scaled(_mutual_information(x), _projected(x), nats)
    samples = _samples(x)
    return _scaled(_shannon(samples.mean(0)) - _shannon(samples).mean(0), samples, nats)


@MEASURES.register("differential_entropy")
def differential_entropy(x: Opinion | Tensor) -> Tensor:
    r"""Spread of the distribution over class probabilities: $h[\mathrm{Dir}(\alpha)]$ in nats, unbounded below.

    $\ln B(\alpha) + (S - K) \psi(S) - \sum_k (\alpha_k - 1) \psi(\alpha_k)$, evaluated in float64; of a hyper
    opinion, the entropy of its grouped Dirichlet. A dogmatic opinion has $-\infty$.

    Args:
        x: an opinion, or Dirichlet parameters $\alpha$ of shape `(..., K)`.

    Example:
        >>> import evidentia as ev
        >>> ev.differential_entropy(ev.MultinomialOpinion.from_evidence([0.0, 0.0, 0.0]))
        tensor(-0.6931)
    """
    if isinstance(x, HyperOpinion):
        spread = x.to(as_double(x.vacuity).dtype).grouped_dirichlet().entropy().to(x.dtype)
        return torch.where(x.vacuity > 0, spread, torch.full_like(spread, -math.inf))
    if isinstance(x, Opinion):
        return dirichlet_entropy(_alpha_in_double(x)).to(x.dtype)
    alpha = _dirichlet(x)
    return dirichlet_entropy(as_double(alpha)).to(alpha.dtype)


def uncertainties(x: Opinion | Tensor) -> dict[str, Tensor]:
    """All measures that apply to `x`, computed together.

    Args:
        x: an opinion, or sampled probabilities of shape `(M, ..., K)`, the samples first.

    Returns:
        For a binomial or multinomial opinion: vacuity, dissonance, entropy, aleatoric, epistemic and
        differential_entropy. For a hyper opinion: vacuity, vagueness, dissonance, consonance, monosonance, entropy.
        For samples: entropy, aleatoric, epistemic.

    Example:
        >>> import evidentia as ev
        >>> measures = ev.uncertainties(ev.MultinomialOpinion.from_evidence([8.0, 8.0, 1.0]))
        >>> {name: round(float(value), 2) for name, value in measures.items()}
        {'vacuity': 0.15, 'dissonance': 0.74, 'entropy': 0.86, 'aleatoric': 0.82, 'epistemic': 0.04,
         'differential_entropy': -2.3}
    """
    if isinstance(x, HyperOpinion):
        conflict, overlap = dissonance(x), consonance(x)
        return {
            "vacuity": x.vacuity,
            "vagueness": vagueness(x),
            "dissonance": conflict,
            "consonance": overlap,
            "monosonance": (x.belief.sum(-1) - conflict - overlap).clamp(0, 1),
            "entropy": entropy(x),
        }
    if isinstance(x, Opinion):
        probability = _projected(x)
        total, knowledge = _shannon(probability), _mutual_information(x)
        return {
            "vacuity": x.vacuity,
            "dissonance": dissonance(x),
            "entropy": _scaled(total, probability),
            "aleatoric": _scaled(total - knowledge, probability),
            "epistemic": _scaled(knowledge, probability),
            "differential_entropy": differential_entropy(x),
        }
    samples = _samples(x)
    total, noise = _shannon(samples.mean(0)), _shannon(samples).mean(0)
    return {
        "entropy": _scaled(total, samples),
        "aleatoric": _scaled(noise, samples),
        "epistemic": _scaled(total - noise, samples),
    }


def _shannon(probability: Tensor) -> Tensor:
    terms: Tensor = torch.special.entr(probability)
    return terms.sum(-1)


def _mutual_information(opinion: Opinion) -> Tensor:
    # In float64, because h(alpha) is the small difference of larger numbers; over W / u rather than the sum of alpha,
    # because its slope at a dogmatic opinion (u = 0) is finite.
    alpha = _alpha_in_double(opinion)
    gap = scaled_digamma_gap(alpha).sum(-1) - scaled_digamma_gap(alpha.sum(-1))
    return (gap * opinion.vacuity / opinion.prior_weight).clamp(min=0).to(opinion.dtype)


def _scaled(in_nats: Tensor, probability: Tensor, nats: bool = False) -> Tensor:
    """An entropy to base K, or left in nats; rounding may have taken it out of its range."""
    largest = math.log(probability.shape[-1])
    return in_nats.clamp(0, largest) if nats else (in_nats / largest).clamp(0, 1)


def _pairwise_balance(opinion: HyperOpinion, *, disjoint: bool) -> Tensor:
    """Sum over pairs of listed sets that are disjoint, or that overlap without being the same."""
    member = opinion.membership
    apart = (member @ member.T) == 0
    itself = torch.eye(len(opinion.sets), dtype=torch.bool, device=opinion.device)
    counted = apart if disjoint else ~apart & ~itself
    b = opinion.belief
    mine, other = b.unsqueeze(-1), b.unsqueeze(-2)
    total = mine + other
    balance = quotient(2 * torch.minimum(mine, other), total)
    weighted = (other * balance * counted).sum(-1)
    others = (other * ~itself).sum(-1)
    return (b * quotient(weighted, others)).sum(-1)


def _alpha_in_double(opinion: Opinion) -> Tensor:
    """The Dirichlet parameters e + a W, with the evidence in float64: in float32 its slope overflows for tiny u."""
    if isinstance(opinion, BinomialOpinion):
        opinion = opinion.to_multinomial()
    if not isinstance(opinion, MultinomialOpinion):
        raise EvidentiaError(
            f"a {type(opinion).__name__} has no Dirichlet parameters; project it with to_multinomial() first"
        )
    vacuity = as_double(opinion.vacuity).unsqueeze(-1)
    evidence = evidence_of(as_double(opinion.belief), vacuity, opinion.prior_weight)
    return evidence + opinion.base_rate * opinion.prior_weight


def _belief(x: Opinion | Tensor) -> Tensor:
    if isinstance(x, BinomialOpinion):
        return torch.stack([x.disbelief, x.belief], -1)
    if isinstance(x, MultinomialOpinion):
        return x.belief
    belief = as_float_tensor(x, "belief")  # type: ignore[arg-type]
    check_class_dim(belief, "belief")
    if validation_enabled():
        check_unit_interval(belief, "belief")
    return belief


def _projected(opinion: Opinion) -> Tensor:
    if isinstance(opinion, BinomialOpinion):
        return opinion.to_multinomial().projected
    return opinion.projected


def _probabilities(p: Tensor) -> Tensor:
    probability = as_float_tensor(p, "probabilities")
    check_class_dim(probability, "probabilities")
    if validation_enabled():
        check_unit_interval(probability, "probabilities")
        check_adds_to_one(probability.sum(-1), probability.shape[-1], "probabilities")
    return probability


def _samples(x: Tensor) -> Tensor:
    samples = _probabilities(x)
    if samples.ndim < 2 or samples.shape[0] == 0:
        raise EvidentiaError(
            "sampled probabilities need shape (samples, ..., classes) with at least one sample, "
            f"got {tuple(samples.shape)}"
        )
    return samples


def _dirichlet(x: Tensor) -> Tensor:
    alpha = as_float_tensor(x, "alpha")
    check_class_dim(alpha, "alpha")
    if validation_enabled():
        check_nonnegative(alpha, "alpha")
    return alpha
