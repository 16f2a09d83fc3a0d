from __future__ import annotations

import pytest
import torch

from evidentia._support.quantiles import quantiles


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_they_are_those_of_pytorch_to_the_bit(size: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(size)
    values = torch.randn(size, generator=generator, dtype=dtype).round(decimals=1)
    shares = torch.cat([torch.linspace(0, 1, 80), torch.rand(80, generator=generator)]).double()
    assert torch.equal(quantiles(values, shares), torch.quantile(values.double(), shares))


def test_values_that_are_not_finite_do_not_count() -> None:
    values = torch.tensor([torch.nan, 2.0, torch.inf, 1.0, -torch.inf])
    assert quantiles(values, torch.tensor([0.0, 1.0]).double()).tolist() == [1.0, 2.0]
    assert not len(quantiles(values[:1], torch.tensor([0.5]).double()))


def test_there_may_be_more_values_than_pytorch_takes() -> None:
    size = 2**24 + 1
    assert quantiles(torch.arange(size), torch.tensor([0.0, 0.5, 1.0]).double()).tolist() == [0, size // 2, size - 1]
