"""Prior weights and base rates, as given or by default."""

from __future__ import annotations

from torch import Tensor

from evidentia._support.checks import TensorLike, as_float_tensor, check_adds_to_one, check_unit_interval
from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import real_number


def prior_weight_of(given: float | None, classes: int) -> float:
    """The prior weight; one for each class where none is given."""
    if given is None:
        return float(classes)
    return float(real_number(given, "prior_weight", 0, open_low=True))


def base_rate_of(given: TensorLike | None, like: Tensor) -> Tensor:
    """The base rate expanded to the shape of `like`; uniform where none is given."""
    if given is None:
        return like.new_tensor(1 / like.shape[-1]).expand(like.shape)
    rate = as_float_tensor(given, "base_rate", like=like)
    try:
        return rate.expand(like.shape)
    except RuntimeError as error:
        raise EvidentiaError(
            f"base_rate must broadcast to shape {tuple(like.shape)}, got shape {tuple(rate.shape)}"
        ) from error


def check_base_rate(base_rate: Tensor) -> None:
    """Require shares of the classes."""
    check_unit_interval(base_rate, "base_rate")
    check_adds_to_one(base_rate.sum(-1), base_rate.shape[-1], "base rates")
