"""Beta parameters for tests of the events room."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor


@pytest.fixture(scope="session")
def evidence() -> Callable[..., tuple[Tensor, Tensor]]:
    """A function that draws alpha and beta, from no evidence to very much of it."""

    def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(seed)
        size = 10 ** (7 * torch.rand(2, *shape, generator=generator, dtype=torch.float64) - 3)
        some = torch.rand(2, *shape, generator=generator, dtype=torch.float64) < 0.9
        alpha, beta = (1 + size * some).to(dtype)
        return alpha, beta

    return draw
