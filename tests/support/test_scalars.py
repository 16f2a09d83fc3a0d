"""Single numbers as people give them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from evidentia import EvidentiaError
from evidentia._support.scalars import real_number


@pytest.mark.parametrize("value", [1, 0.5, np.float32(0.5), np.int64(1), np.array(0.5), torch.tensor(0.5)])
def test_a_number_of_any_make_is_that_of_python(value: object) -> None:
    number = real_number(value, "rate", 0, 1)
    assert number == float(value)  # type: ignore[arg-type]
    assert type(number) in (int, float)


@pytest.mark.parametrize(
    "value", [None, "0.5", True, float("nan"), 1j, [0.5], np.array([0.5]), torch.ones(1), torch.tensor(True), object()]
)
def test_anything_else_is_none(value: object) -> None:
    with pytest.raises(EvidentiaError, match="rate must be a number, at least 0 and at most 1, got"):
        real_number(value, "rate", 0, 1)
