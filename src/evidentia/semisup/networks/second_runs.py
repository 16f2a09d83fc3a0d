"""Networks that run layers a second time in the backward pass, as `torch.utils.checkpoint` does to save memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from evidentia._support.errors import EvidentiaError


@contextmanager
def no_second_runs(layers: Iterable[nn.Module], harm: str) -> Iterator[None]:
    """Inside, refuse that a layer is run in a backward pass.

    What was so around its first run is over by then: other tensors in place of its own, weights of the samples, running
    statistics that are kept. Gradients would be those of another network, and nobody would be told.

    Args:
        layers: whose second run would do harm.
        harm: what that would be, and what to do other than to turn checkpointing off.

    Example:
        >>> from torch.utils.checkpoint import checkpoint
        >>> layer = nn.Linear(2, 3)
        >>> loss = checkpoint(layer, torch.ones(1, 2), use_reentrant=False).square().sum()
        >>> with no_second_runs([layer], "would be slow; train a smaller network"):
        ...     loss.backward()
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: the network runs a layer (Linear) again in the backward pass, as
        torch.utils.checkpoint does, which would be slow; train a smaller network, or turn checkpointing off
    """

    def refuse(layer: nn.Module, _: Any) -> None:
        if torch._C._current_graph_task_id() >= 0:
            raise EvidentiaError(
                f"the network runs a layer ({type(layer).__name__}) again in the backward pass, as "
                f"torch.utils.checkpoint does, which {harm}, or turn checkpointing off"
            )

    with ExitStack() as stack:
        for layer in layers:
            stack.callback(layer.register_forward_pre_hook(refuse).remove)
        yield
