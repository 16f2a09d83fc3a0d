"""The state of a fusion head on a stream: the Beta parameters of the latest segments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor
from typing_extensions import Self

from evidentia._support.errors import EvidentiaError


class Windows(NamedTuple):
    """For each segment, the segments of its window: the oldest first, the present one last."""

    alpha: Tensor
    """Evidence for plus 1, shape `(..., K, M)`; of a sequence, one window after the other, `(..., t, K, M)`."""
    beta: Tensor
    """Evidence against plus 1, of the same shape."""
    present: Tensor | None
    """Which of them count: those in the class's window, after the stream's beginning. It broadcasts to that shape.
    None if all do. Alpha and beta of the others are 1, no evidence, unless a head skips segments that were heard."""

    def where_present(self, values: Tensor) -> Tensor:
        """Values of shape `(..., K, M)`, or that broadcast to it, with 0 in place of those that do not count."""
        return values if self.present is None else values * self.present

    def total(self, values: Tensor) -> Tensor:
        """The sum over each window of values of shape `(..., K, M)`, or that broadcast to it."""
        return self.where_present(values).sum(-1)

    def mean(self, values: Tensor) -> Tensor:
        """The mean over each window of values of shape `(..., K, M)`."""
        return values.mean(-1) if self.present is None else self.total(values) / self.present.sum(-1).clamp(min=1)

    def latest(self) -> tuple[Tensor, Tensor]:
        """Alpha and beta of the present segments, shape `(..., K)`."""
        return self.alpha[..., -1], self.beta[..., -1]


@dataclass(frozen=True, eq=False)
class FusionState:
    """What a head remembers of each stream; a value that no push changes.

    Attributes:
        alpha: the last segments' evidence for each class plus 1, shape `(..., M - 1, K)` for a window of M.
        beta: the same of the evidence against.
        seen: how many of the stream's segments have been seen, as far as it matters, shape `(...)`, int64; while they
            are fewer than M - 1, the others are yet to be filled.
    """

    alpha: Tensor
    beta: Tensor
    seen: Tensor
    _least: int | None = None  # the least of `seen`, where it is known already

    def __post_init__(self) -> None:
        if self.alpha.ndim < 2 or self.alpha.shape != self.beta.shape or self.seen.shape != self.alpha.shape[:-2]:
            raise EvidentiaError(
                "a fusion state needs alpha and beta of shape (..., segments, classes) and seen of shape (...), got "
                f"{tuple(self.alpha.shape)}, {tuple(self.beta.shape)} and {tuple(self.seen.shape)}"
            )

    @classmethod
    def empty(
        cls, shape: tuple[int, ...], dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> Self:
        """A state in which nothing has been seen, of shape `(..., M - 1, K)`."""
        nothing = torch.ones(shape, dtype=dtype, device=device)
        return cls(nothing, nothing.clone(), torch.zeros(shape[:-2], dtype=torch.int64, device=device))

    def check_fits(self, alpha: Tensor, length: int) -> None:
        """Require that this is the state of a head that looks back `length` segments, for streams shaped like alpha."""
        needed = (*alpha.shape[:-2], length, alpha.shape[-1])
        if self.alpha.shape != needed or self.alpha.dtype != alpha.dtype:
            raise EvidentiaError(
                f"these segments need a state of shape {tuple(needed)} and {alpha.dtype}, got "
                f"{tuple(self.alpha.shape)} and {self.alpha.dtype}; begin with initial_state of the same head, batch "
                "shape, number of classes and dtype"
            )

    def extended(
        self, alpha: Tensor, beta: Tensor, window: int | tuple[int, ...], skip: int = 0
    ) -> tuple[Windows, FusionState]:
        """The windows that end at each new segment, and the state after them.

        Args:
            alpha: the new segments, shape `(..., t, K)`.
            beta: the same of the evidence against.
            window: how many segments count, one number or one a class.
            skip: how many at the beginning of a stream do not.
        """
        length, new = self.alpha.shape[-2], alpha.shape[-2]
        if not length:
            return Windows(alpha.unsqueeze(-1), beta.unsqueeze(-1), None), self
        enough, least = length + skip, self._least
        if least is None:
            least = int(self.seen.min()) if self.seen.numel() else enough
        all_alpha, all_beta = (torch.cat(pair, -2) for pair in ((self.alpha, alpha), (self.beta, beta)))
        windows = windows_of(all_alpha, all_beta, length + 1, window, None if least >= enough else self.seen - skip)
        # Windows are views on the joined segments. What is kept must not hold a long chunk in memory, though.
        last_alpha, last_beta = all_alpha[..., new:, :], all_beta[..., new:, :]
        if new > length:
            last_alpha, last_beta = last_alpha.clone(), last_beta.clone()
        after = FusionState(last_alpha, last_beta, (self.seen + new).clamp(max=enough), min(least + new, enough))
        return windows, after


def windows_of(
    alpha: Tensor, beta: Tensor, size: int, window: int | tuple[int, ...], counted: Tensor | None
) -> Windows:
    """All runs of `size` segments, shape `(..., n, K)` with n at least `size`.

    Args:
        alpha: evidence for plus 1.
        beta: evidence against plus 1.
        size: the largest window.
        window: how many segments count, one number or one a class.
        counted: how many of the `size - 1` segments before the first run's last one count, shape `(...)`; None if all
            do.
    """
    begun = None if counted is None else _runs(_begun(alpha, size, counted), size)
    return _counting(_runs(alpha, size), _runs(beta, size), window, begun)


def last_window(alpha: Tensor, beta: Tensor, window: int | tuple[int, ...], counted: Tensor | None) -> Windows:
    """The one window that some segments are; arguments are as for `windows_of`, whose `size` is their number.

    It has no dimension of windows: engines for live streams take their time for every change of shape.
    """
    begun = None if counted is None else _begun(alpha, alpha.shape[-2], counted).transpose(-1, -2)
    return _counting(alpha.transpose(-1, -2), beta.transpose(-1, -2), window, begun)


def _begun(alpha: Tensor, size: int, counted: Tensor) -> Tensor:
    """Which segments the streams have had, shape `(..., n, 1)`; arguments are as for `windows_of`."""
    steps = torch.arange(alpha.shape[-2], device=alpha.device)
    return (steps >= size - 1 - counted.unsqueeze(-1)).unsqueeze(-1)


def _counting(alpha: Tensor, beta: Tensor, window: int | tuple[int, ...], begun: Tensor | None) -> Windows:
    """Windows in which the segments count that are in their class's window, and that the stream has had."""
    size = alpha.shape[-1]
    if window == size:
        return Windows(alpha, beta, begun)
    # What is out of a class's window is as if nothing had been heard.
    present = _in_window(window, size - 1, alpha.device)
    alpha, beta = (torch.where(present, part, 1.0) for part in (alpha, beta))
    return Windows(alpha, beta, present if begun is None else begun & present)


@lru_cache(maxsize=64)
def _in_window(window: int | tuple[int, ...], length: int, device: torch.device) -> Tensor:
    """Which segments are in each class's window, shape `(K, M)`, or `(1, M)` for one window."""
    with torch.inference_mode(False):
        age = torch.arange(length, -1, -1, device=device)
        return age < torch.tensor(window, device=device).reshape(-1, 1)


def _runs(values: Tensor, size: int) -> Tensor:
    """All runs of `size` entries along the last dimension but one, shape `(..., t, K, size)`."""
    if values.shape[-2] < size:
        return values.new_empty((*values.shape[:-2], 0, values.shape[-1], size))
    return values.unfold(-2, size, 1)
