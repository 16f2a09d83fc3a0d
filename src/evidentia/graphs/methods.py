"""The methods of chapter 2, each a combination of few parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from evidentia._support.registry import Registry
from evidentia.learning import ACTIVATIONS, cross_entropy_risk, dirichlet_kl, squared_error_risk
from evidentia.learning.losses import as_probabilities
from evidentia.opinions.special import as_double, dirichlet_entropy

Sampling = Literal["none", "dropout", "dropedge"]
Prior = Literal["hops", "walk"]
Propagation = Literal["none", "strength", "evidence", "gated"]

# A prior network's target for its training nodes: evidence 50 for the right class over a base of 1.1. Its loss is
# divided by the 50: it is then about as large as the other risks, beside which weight decay was chosen.
_DPN_PRECISION, _DPN_BASE = 50.0, 1.1

# A posterior network is drawn so much towards a spread-out Dirichlet.
_ENTROPY_WEIGHT = 1e-4

# What a posterior network says is far below this; the bound is for what no network says.
_LOG_COUNT_LIMIT = 60.0

# The teacher counts for more and more over so many epochs.
_TEACHER_RAMP = 200.0


@dataclass(frozen=True)
class GraphMethod:
    """Which parts a method is made of.

    Attributes:
        summary: what it is, in a line.
        evidence: how outputs become evidence: an activation's name, or "log-counts" if they are its logarithms; None
            for a softmax.
        risk: what a training node costs.
        sampling: whether predictions are averaged over passes with dropout, or with dropout and dropped edges.
        teacher: whether the class probabilities are drawn towards those of a plain network trained before.
        prior: what the Dirichlet is drawn to: the kernel prior by hops, the prior by random walks, or nothing.
        strength_prior: what a second network is drawn to, strongly: the first alone says for which classes there is
            evidence, both say how much, by their geometric mean; None if there is one network only.
        energy: whether a softmax network's propagated energy is given as an uncertainty.
        backbone: the network that the method is meant for.
        propagation: how evidence is spread along edges when predicting, unless the user says otherwise.
    """

    summary: str
    evidence: str | None = None
    risk: Literal["cross-entropy", "squared-error", "prior-network", "expected-cross-entropy"] = "cross-entropy"
    sampling: Sampling = "none"
    teacher: bool = False
    prior: Prior | None = None
    strength_prior: Prior | None = None
    energy: bool = False
    backbone: str = "gcn"
    propagation: Propagation = "none"

    def alpha(self, logits: Tensor) -> Tensor:
        """Dirichlet parameters, evidence + 1."""
        if self.evidence == "log-counts":
            # The exp of the activations bends from 10 on, and the ratios of two large counts would go with it.
            return torch.exp(logits.clamp(max=_LOG_COUNT_LIMIT)) + 1
        if self.evidence == "relu":
            # A class whose logits begin below 0 at all of its nodes would never learn: from here they begin alive.
            logits = logits + 1
        return ACTIVATIONS[self.evidence or "exp"](logits) + 1

    def probs(self, logits: Tensor) -> Tensor:
        """Class probabilities: a softmax, or the mean of the Dirichlet."""
        if self.evidence is None:
            return logits.softmax(-1)
        alpha = self.alpha(logits)
        return alpha / alpha.sum(-1, keepdim=True)

    def node_risk(self, logits: Tensor, target: Tensor) -> Tensor:
        """What each labelled node costs."""
        return self._risk(logits if self.evidence is None else self.alpha(logits), target)

    def loss(
        self,
        logits: Tensor,
        target: Tensor,
        train: Tensor,
        epoch: int,
        divergence: Callable[[Tensor], Tensor] | None,
        prior_weight: float,
        teacher: Tensor | None,
    ) -> Tensor:
        """The mean risk of the training nodes, and what draws all nodes to the prior and to the teacher.

        Args:
            logits: what the network says of all nodes.
            target: their classes.
            train: which of them are training nodes.
            epoch: counted from 0.
            divergence: how far Dirichlets are from the prior.
            prior_weight: how strongly that draws.
            teacher: log probabilities of the classes.
        """
        outputs = logits if self.evidence is None else self.alpha(logits)
        total = self._risk(outputs[train], target[train]).mean()
        if divergence is not None:
            total = total + prior_weight * divergence(outputs).mean()
        if teacher is not None:
            # Clamped, because the slope of p ln p is infinite at 0; parameters of a Dirichlet are at least 1.
            shares = outputs.softmax(-1).clamp(min=1e-12) if self.evidence is None else outputs
            whole = shares.sum(-1)
            gap = (shares * (shares.log() - teacher)).sum(-1) / whole - whole.log()
            total = total + min(1.0, epoch / _TEACHER_RAMP) * gap.mean()
        return total

    def _risk(self, outputs: Tensor, target: Tensor) -> Tensor:
        """The risk of logits, or of Dirichlet parameters where there is evidence."""
        if self.risk == "cross-entropy":
            return torch.nn.functional.cross_entropy(outputs, target, reduction="none")
        if self.risk == "squared-error":
            return squared_error_risk(outputs, target)
        if self.risk == "expected-cross-entropy":
            spread = dirichlet_entropy(as_double(outputs)).to(outputs.dtype)
            return cross_entropy_risk(outputs, target) - _ENTROPY_WEIGHT * spread
        wanted = _DPN_BASE + _DPN_PRECISION * as_probabilities(target, outputs)
        return dirichlet_kl(outputs, wanted) / _DPN_PRECISION


GRAPH_METHODS: Registry[GraphMethod] = Registry("graph method")

for _name, _method in {
    "gcn": GraphMethod("softmax"),
    "drop-gcn": GraphMethod("softmax, MC dropout", sampling="dropout"),
    "dropedge": GraphMethod("softmax, DropEdge and dropout sampled", sampling="dropedge"),
    "gnnsafe-energy": GraphMethod("softmax, energy propagated along edges", energy=True),
    "edl-gcn": GraphMethod("evidence by relu, squared-error risk", evidence="relu", risk="squared-error"),
    "dpn-gcn": GraphMethod("prior network, in-distribution loss", evidence="exp", risk="prior-network"),
    "s-gcn": GraphMethod("evidence by exp, squared-error risk", evidence="exp", risk="squared-error"),
    "s-bgcn": GraphMethod("s-gcn, MC dropout", "exp", "squared-error", "dropout"),
    "s-bgcn-t": GraphMethod("s-bgcn, teacher", "exp", "squared-error", "dropout", teacher=True),
    "s-bgcn-t-k": GraphMethod(
        "s-bgcn, teacher, kernel prior", "exp", "squared-error", "dropout", teacher=True, prior="hops"
    ),
    "s-bgcn-t-kw": GraphMethod(
        "s-bgcn-t-k, strength of evidence by a second network with a random-walk prior, spread along edges",
        *("exp", "squared-error", "dropout"),
        teacher=True,
        prior="hops",
        strength_prior="walk",
        propagation="strength",
    ),
    "gpn": GraphMethod(
        "posterior network: density of the latent, spread by PageRank",
        *("log-counts", "expected-cross-entropy"),
        backbone="gpn",
    ),
}.items():
    GRAPH_METHODS.register(_name)(_method)
