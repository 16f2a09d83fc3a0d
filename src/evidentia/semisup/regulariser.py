r"""What keeps the weights of unlabeled samples in bounds: an uncertainty term and an L1 term.

Both are functions of each weight on its own, so their gradients are written out: no graph is needed for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias, get_args

from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import real_number

Form: TypeAlias = Literal["corrected", "thesis"]
FORMS: tuple[Form, ...] = get_args(Form)


def uncertainty_term(weights: Tensor, uncertainty: Tensor, form: Form = "corrected") -> Tensor:
    r"""How much a weight disagrees with the uncertainty of its sample, sample by sample.

    $$\mathrm{Un}(w, u) = u\, w^2 + (1 - u)(1 - w)^2 = (w - (1 - u))^2 + u (1 - u)$$

    is least at $w = 1 - u$: uncertain samples are to weigh little. The thesis (eq. 3.3, of $\mathcal{L}_V$) has
    $u (1 - w)^2$, which is least at $w = 1$ for every u > 0, and pulls there the harder the more uncertain a sample is:
    against its own aim. It is kept for comparison.

    Args:
        weights: w, in [0, 1].
        uncertainty: u, in [0, 1], of a shape that broadcasts with the weights'.
        form: "corrected" or "thesis".

    Example:
        >>> import torch
        >>> w, u = torch.tensor([0.0, 0.5, 1.0]), torch.tensor(0.9)
        >>> uncertainty_term(w, u)
        tensor([0.1000, 0.2500, 0.9000])
        >>> uncertainty_term(w, u, form="thesis")
        tensor([0.9000, 0.2250, 0.0000])
    """
    if _is_thesis(form):
        return uncertainty * (1 - weights).square()
    return uncertainty * weights.square() + (1 - uncertainty) * (1 - weights).square()


def uncertainty_gradient(weights: Tensor, uncertainty: Tensor, form: Form = "corrected") -> Tensor:
    r"""The derivative of `uncertainty_term` in w: $2 (w - (1 - u))$, or $-2 u (1 - w)$ in the form of the thesis.

    Example:
        >>> import torch
        >>> uncertainty_gradient(torch.tensor([0.0, 0.25, 1.0]), torch.tensor(0.75))
        tensor([-0.5000,  0.0000,  1.5000])
    """
    if _is_thesis(form):
        return -2 * uncertainty * (1 - weights)
    return 2 * (weights - (1 - uncertainty))


def l1_term(weights: Tensor) -> Tensor:
    r"""$|w|$, sample by sample: makes many weights exactly 0 (thesis 3.4, "Weight Sharing and Regularization").

    Example:
        >>> import torch
        >>> l1_term(torch.tensor([0.0, 0.5]))
        tensor([0.0000, 0.5000])
    """
    return weights.abs()


def l1_gradient(weights: Tensor) -> Tensor:
    """The derivative of `l1_term`: the sign of w, and 0 for a weight that is 0 already.

    Example:
        >>> import torch
        >>> l1_gradient(torch.tensor([0.0, 0.5]))
        tensor([0., 1.])
    """
    return weights.sign()


@dataclass(frozen=True)
class WeightRegulariser:
    r"""The sum $\lambda_u \mathrm{Un}(w, u) + \lambda_1 |w|$ that is added to the loss on the clean set.

    Args:
        uncertainty: $\lambda_u$; 0 for no such term.
        l1: $\lambda_1$, which in the thesis takes the place of clusters. `Meta` and `ImplicitDifferentiation` bring the
            gradient of the loss on the clean set to a mean size of 1 before they add that of the regulariser, and
            $\lambda_1$ is relative to it: the thesis' $10^{-7}$, for a gradient as it comes, does nothing here. On two
            moons with 50% faraway OOD (VAT, 300 updates, a weight for each sample, moved in every update), values up to
            0.03 hardly moved a weight, 0.3 took the mean weight of OOD samples from 0.99 to 0.76 and that of the others
            from 0.81 to 0.70, and 1 both to about 0.5; accuracy stayed within 0.01. So try 0.1 to 1, and do not
            expect it to part OOD samples from the others: that is what the uncertainty term is for.
        form: of the uncertainty term, "corrected" or "thesis".

    Example:
        >>> import torch
        >>> regulariser = WeightRegulariser(uncertainty=1.0, l1=0.1)
        >>> w, u = torch.tensor([1.0, 1.0]), torch.tensor([0.0, 1.0])
        >>> regulariser.value(w, u), regulariser.gradient(w, u)
        (tensor([0.1000, 1.1000]), tensor([0.1000, 2.1000]))
    """

    uncertainty: float = 1.0
    l1: float = 0.0
    form: Form = "corrected"

    def __post_init__(self) -> None:
        """Require coefficients of at least 0, and a form that there is."""
        _is_thesis(self.form)
        for name in ("uncertainty", "l1"):
            real_number(getattr(self, name), f"the coefficient {name}", 0)

    def value(self, weights: Tensor, uncertainty: Tensor | None = None) -> Tensor:
        """The term of every sample, of the shape of the weights; u may be left out where its coefficient is 0."""
        total = self.l1 * l1_term(weights)
        if not self.uncertainty:
            return total
        return total + self.uncertainty * uncertainty_term(weights, _given(uncertainty), self.form)

    def gradient(self, weights: Tensor, uncertainty: Tensor | None = None) -> Tensor:
        """Its derivative in every weight."""
        total = self.l1 * l1_gradient(weights)
        if not self.uncertainty:
            return total
        return total + self.uncertainty * uncertainty_gradient(weights, _given(uncertainty), self.form)


def as_regulariser(value: object) -> WeightRegulariser:
    """A regulariser from its settings by name, or as it is.

    Example:
        >>> as_regulariser({"l1": 1e-7})
        WeightRegulariser(uncertainty=1.0, l1=1e-07, form='corrected')
        >>> as_regulariser(0.1)
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: a regulariser is a WeightRegulariser, or its settings by name
        (uncertainty, l1, form), got 0.1; write WeightRegulariser(uncertainty=0.5), for example
    """
    names = [each.name for each in fields(WeightRegulariser)]
    if isinstance(value, WeightRegulariser):
        return value
    if isinstance(value, Mapping) and value.keys() <= set(names):
        return WeightRegulariser(**value)
    raise EvidentiaError(
        f"a regulariser is a WeightRegulariser, or its settings by name ({', '.join(names)}), got {value!r}; write "
        "WeightRegulariser(uncertainty=0.5), for example"
    )


def _given(uncertainty: Tensor | None) -> Tensor:
    if uncertainty is None:
        raise EvidentiaError(
            "the uncertainty term needs the uncertainty of the samples; give it, or a coefficient of 0"
        )
    return uncertainty


def _is_thesis(form: str) -> bool:
    if form not in FORMS:
        raise EvidentiaError(f"the form of the uncertainty term must be one of {', '.join(FORMS)}, got {form!r}")
    return form == "thesis"
