"""The grouped Dirichlet distribution, the closed form of a hyper opinion whose composite sets are disjoint."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Dirichlet, Distribution, constraints

from evidentia._support.checks import validation_enabled
from evidentia._support.errors import EvidentiaError
from evidentia.opinions.special import dirichlet_entropy, log_beta

_ONE = torch.Size()


class GroupedDirichlet(Distribution):
    r"""Density $\propto \prod_k p_k^{\alpha_k - 1} \prod_j \big(\sum_{k \in x_j} p_k\big)^{e_j}$ on the simplex.

    The groups $x_j$ are disjoint; classes in no group form groups of their own with $e = 0$. Then the group
    totals are $\mathrm{Dir}(\gamma)$ with $\gamma_j = \sum_{k \in x_j} \alpha_k + e_j$, the shares inside a
    group are $\mathrm{Dir}(\alpha_{x_j})$, and all of them are independent: everything has a closed form.

    Args:
        alpha: positive class parameters, shape `(..., K)`.
        group_evidence: evidence for each group as a whole, at least 0, shape `(..., number of groups)`.
        groups: disjoint collections of class indices.
        validate_args: whether to check values; by default as the surrounding `evidentia.validation` says.

    Example:
        >>> import torch
        >>> d = GroupedDirichlet(torch.ones(3), torch.tensor([5.0]), groups=[(1, 2)])
        >>> d.mean
        tensor([0.1250, 0.4375, 0.4375])
    """

    # Entry by entry, because constraints.independent fails on empty batches.
    arg_constraints = {"alpha": constraints.positive, "group_evidence": constraints.nonnegative}  # noqa: RUF012
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self,
        alpha: Tensor,
        group_evidence: Tensor,
        groups: Iterable[Iterable[int]],
        validate_args: bool | None = None,
    ) -> None:
        classes = alpha.shape[-1]
        listed = [tuple(sorted(set(group))) for group in groups]
        grouped = [k for group in listed for k in group]
        if len(set(grouped)) < len(grouped):
            raise EvidentiaError(
                f"a grouped Dirichlet needs sets that do not overlap, got {listed}; project the opinion with "
                "to_multinomial() instead"
            )
        if any(not group for group in listed) or any(k < 0 or k >= classes for k in grouped):
            raise EvidentiaError(f"a group needs one or more of the classes 0..{classes - 1}, got the groups {listed}")
        if group_evidence.shape[-1] != len(listed):
            raise EvidentiaError(
                f"group_evidence needs one entry for each of the {len(listed)} groups, "
                f"got shape {tuple(group_evidence.shape)}"
            )
        batch = torch.broadcast_shapes(alpha.shape[:-1], group_evidence.shape[:-1])
        self.alpha = alpha.expand(*batch, classes)
        self.group_evidence = group_evidence.expand(*batch, len(listed))
        # Every class belongs to exactly one group from here on.
        self.groups = listed + [(k,) for k in range(classes) if k not in set(grouped)]
        # Not PyTorch's default, which `torch.compile` switches off for the whole process.
        super().__init__(batch, alpha.shape[-1:], validate_args=validation_enabled(validate_args))

    @property
    def group_alpha(self) -> Tensor:
        """The class parameters summed over each group, shape `(..., groups)`."""
        return self._group_sum(self.alpha)

    @property
    def gamma(self) -> Tensor:
        """The Dirichlet parameters of the group totals, shape `(..., groups)`."""
        group_alpha = self.group_alpha
        extra = group_alpha.shape[-1] - self.group_evidence.shape[-1]
        return group_alpha + torch.nn.functional.pad(self.group_evidence, (0, extra))

    @property
    def mean(self) -> Tensor:
        """E[p_k] = (gamma_j / sum gamma) (alpha_k / alpha of the group)."""
        gamma = self.gamma
        total = gamma / gamma.sum(-1, keepdim=True)
        return self._spread(total / self.group_alpha) * self.alpha

    def expected_log_prob(self) -> Tensor:
        """E[ln p_k] of each class."""
        within = torch.digamma(self.alpha) - self._spread(torch.digamma(self.group_alpha))
        return self._spread(self.expected_log_total()) + within

    def expected_log_total(self) -> Tensor:
        """E[ln of the total probability] of each group; the listed groups come first."""
        gamma = self.gamma
        return torch.digamma(gamma) - torch.digamma(gamma.sum(-1, keepdim=True))

    def log_prob(self, value: Tensor) -> Tensor:
        """The log density at points of the simplex, shape `(..., K)`."""
        if self._validate_args:
            self._validate_sample(value)
        totals = self._group_sum(value)[..., : self.group_evidence.shape[-1]]
        return (
            torch.xlogy(self.alpha - 1, value).sum(-1)
            + torch.xlogy(self.group_evidence, totals).sum(-1)
            - self._log_normaliser()
        )

    def rsample(self, sample_shape: Any = _ONE) -> Tensor:
        """Draw samples through which gradients flow."""
        totals = Dirichlet(self.gamma).rsample(sample_shape)
        sample = torch.empty(self._extended_shape(sample_shape), dtype=self.alpha.dtype, device=self.alpha.device)
        parts = []
        order = []
        for j, group in enumerate(self.groups):
            members = list(group)
            order += members
            share = (
                Dirichlet(self.alpha[..., members]).rsample(sample_shape)
                if len(members) > 1
                else torch.ones_like(sample[..., :1])
            )
            parts.append(share * totals[..., [j]])
        position = torch.argsort(torch.tensor(order, device=self.alpha.device))
        return torch.cat(parts, -1)[..., position]

    def entropy(self) -> Tensor:
        r"""The differential entropy, in closed form.

        That of the group totals, plus that of the shares inside each group, plus $(|x_j| - 1)\,E[\ln R_j]$ for each
        group, because a share of a total $R_j$ is spread over an area that shrinks with it.
        """
        entropy = dirichlet_entropy(self.gamma)
        log_total = self.expected_log_total()
        for j, group in enumerate(self.groups):
            if len(group) > 1:
                within = dirichlet_entropy(self.alpha[..., list(group)])
                entropy = entropy + within + (len(group) - 1) * log_total[..., j]
        return entropy

    def _log_normaliser(self) -> Tensor:
        within = torch.lgamma(self.alpha).sum(-1) - torch.lgamma(self.group_alpha).sum(-1)
        return within + log_beta(self.gamma)

    def _group_sum(self, per_class: Tensor) -> Tensor:
        return torch.stack([per_class[..., list(group)].sum(-1) for group in self.groups], -1)

    def _spread(self, per_group: Tensor) -> Tensor:
        """Give each class the value of its group."""
        group_of = torch.empty(self.event_shape[0], dtype=torch.long)
        for j, group in enumerate(self.groups):
            group_of[list(group)] = j
        return per_group[..., group_of.to(per_group.device)]
