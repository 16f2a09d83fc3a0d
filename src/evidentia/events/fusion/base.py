"""What a fusion head is: per-segment Beta parameters in, an opinion and a score for each class and segment out.

A head knows nothing of networks. It looks at the latest segments only, so that it can run on a live stream: `push`
takes a chunk of any length together with an explicit state, and `fuse` is one push over a whole sequence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar, NamedTuple, TypeAlias

import torch
from pydantic import Field
from torch import Tensor
from typing_extensions import Self

from evidentia._support.checks import check_finite, check_tensor, shape_or_kind, validation_enabled
from evidentia._support.errors import EvidentiaError
from evidentia._support.registry import Registry
from evidentia._support.scalars import real_number
from evidentia._support.settings import Settings
from evidentia.events.fusion.state import FusionState, Windows, last_window
from evidentia.opinions import BinomialOpinion

HEADS: Registry[type[FusionHead]] = Registry("fusion head")

PerClass: TypeAlias = float | Annotated[tuple[float, ...], Field(min_length=1)]
"""One number for all classes, or one for each."""

UnitPerClass: TypeAlias = (
    Annotated[float, Field(ge=0, le=1)]
    | Annotated[tuple[Annotated[float, Field(ge=0, le=1)], ...], Field(min_length=1)]
)
"""The same, in [0, 1]."""

WindowPerClass: TypeAlias = (
    Annotated[int, Field(ge=1, le=1024)]
    | Annotated[tuple[Annotated[int, Field(ge=1, le=1024)], ...], Field(min_length=1)]
)
"""A number of segments, or one for each class."""


class Fusion(NamedTuple):
    """What a head makes of a sequence."""

    opinion: BinomialOpinion
    """The opinion that each class is present, of shape `(..., T, K)`."""
    score: Tensor
    """What is compared with the threshold, shape `(..., T, K)`; minus infinity where the opinion is too uncertain."""


class FusionHead(Settings, ABC):
    r"""From the Beta parameters of each segment to a decision for each class and segment.

    The decision is `score > threshold`. For heads that fuse opinions the score is the log odds
    $\ln \frac{b + u/2}{d + u/2}$, which is above 0 exactly when belief outweighs disbelief, and minus infinity where
    the vacuity is not below its limit; so the default threshold 0 is the thesis' rule $b > d$ and $u < V$ (eq. 4.8).

    Args:
        threshold: what the score must exceed, one number or one a class.

    Example:
        >>> import torch
        >>> from evidentia.events import HEADS
        >>> head = HEADS["wbc"](window=4, decay=0.8, threshold=(0.0, 1.5))
        >>> alpha, beta = torch.tensor([[1.0, 1.2], [9.0, 4.0]]), torch.tensor([[30.0, 9.0], [2.0, 3.0]])
        >>> head.calls(head.fuse(alpha, beta))
        tensor([[False, False],
                [ True, False]])
    """

    name: ClassVar[str]
    in_onnx: ClassVar[bool] = True
    """Whether ONNX has all operations of the score; the engine "onnx" leaves other heads to PyTorch."""
    threshold: PerClass = 0.0

    @abstractmethod
    def _fuse(self, windows: Windows) -> Fusion:
        """The fusion of each window."""

    @property
    def span(self) -> int:
        """How many segments the head looks at: the present one, and those before it."""
        return 1

    @property
    def unsettled(self) -> int:
        """How many segments at the beginning of a stream the head leaves out of account."""
        return 0

    def outputs(self, num_classes: int) -> int:
        """The size of the score's last dimension."""
        return num_classes

    def initial_state(
        self,
        num_classes: int,
        batch_shape: tuple[int, ...] = (),
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> FusionState:
        """The state of streams of which nothing has been seen yet."""
        return FusionState.empty((*batch_shape, self.span - 1, num_classes), dtype=dtype, device=device)

    def push(self, state: FusionState, alpha: Tensor, beta: Tensor) -> tuple[Fusion, FusionState]:
        """Take the next segments of some streams, any number of them.

        Args:
            state: what `initial_state` or the last push gave; it is left as it is.
            alpha: evidence for each class plus 1, shape `(..., t, K)` with the batch shape of the state.
            beta: evidence against each class plus 1, of the same shape.

        Returns:
            The fusion at each of these segments, and the state to go on with.
        """
        check_beta(alpha, beta)
        state.check_fits(alpha, self.span - 1)
        if isinstance(self._windows, tuple):
            check_per_class(self._windows, alpha.shape[-1])
        windows, state = state.extended(alpha, beta, self._windows, self.unsettled)
        return self._fuse(windows), state

    def _score(self, windows: Windows) -> Tensor:
        """The score of each window alone; heads that need no opinion for it say so here."""
        return self._fuse(windows).score

    def score(self, alpha: Tensor, beta: Tensor, seen: Tensor | None) -> Tensor:
        """The score at the last of some segments, without checks: for hot loops that keep the segments themselves.

        Args:
            alpha: of the latest segments, at least `span` of them, shape `(..., n, K)`; 1 before a stream's beginning.
            beta: of the same.
            seen: how many segments the streams had before the last, shape `(...)`; None if so many that all count.

        Returns:
            Shape `(..., K)`.
        """
        return self._score(self._latest(alpha, beta, seen))

    def opinion(self, alpha: Tensor, beta: Tensor, seen: Tensor | None) -> BinomialOpinion:
        """The opinion at the last of some segments; arguments are as for `score`."""
        return self._fuse(self._latest(alpha, beta, seen)).opinion

    def _latest(self, alpha: Tensor, beta: Tensor, seen: Tensor | None) -> Windows:
        alpha, beta = alpha[..., -self.span :, :], beta[..., -self.span :, :]
        counted = None if seen is None else seen - self.unsettled
        return last_window(alpha, beta, self._windows, counted if self.span > 1 else None)

    def fuse(self, alpha: Tensor, beta: Tensor) -> Fusion:
        """The fusion at each segment of whole sequences, alpha and beta of shape `(..., T, K)`."""
        check_beta(alpha, beta)
        state = self.initial_state(alpha.shape[-1], tuple(alpha.shape[:-2]), alpha.dtype, alpha.device)
        return self.push(state, alpha, beta)[0]

    def calls(self, fusion: Fusion) -> Tensor:
        """Where the head calls an event: `score > threshold`, bool, shape `(..., T, K)`."""
        return self.called(fusion.score)

    def called(self, score: Tensor) -> Tensor:
        """Where a score exceeds the threshold."""
        return score > per_class(self.threshold, score.shape[-1], score)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some settings changed, which are checked as those of a new head are.

        Example:
            >>> make_head("phase1").model_copy(update={"threshold": [0.5, 1.0]})
            PhaseI(threshold=(0.5, 1.0), max_vacuity=0.9)
        """
        given = dict(update or {})
        checked = type(self)(**{name: getattr(self, name) for name in type(self).model_fields} | given)
        return super().model_copy(update={name: getattr(checked, name) for name in given}, deep=deep)

    def describe(self) -> dict[str, Any]:
        """Name and settings, ready for JSON; `make_head(**head.describe())` gives the head back."""
        return {"name": self.name, **self.model_dump(mode="json")}

    @property
    def _windows(self) -> int | tuple[int, ...]:
        """The window of each class; a head without one looks at the present segment only."""
        return 1


class WindowedHead(FusionHead):
    """A head over the latest `window` segments, one number or one a class; fewer where a stream has just begun."""

    window: WindowPerClass = 4

    @property
    def span(self) -> int:
        """How many segments the head looks at: the largest window of any class."""
        return self.window if isinstance(self.window, int) else max(self.window)

    @property
    def _windows(self) -> int | tuple[int, ...]:
        return self.window


def make_head(name: str, **settings: Any) -> FusionHead:
    """The head of that name, with its settings.

    Example:
        >>> make_head("phase1", max_vacuity=0.5)
        PhaseI(threshold=0.0, max_vacuity=0.5)
    """
    return HEADS[name](**settings)


def check_beta(alpha: Tensor, beta: Tensor) -> None:
    """Require Beta parameters of shape `(..., T, K)`, each at least 1."""
    for name, parameter in (("alpha", alpha), ("beta", beta)):
        if not isinstance(parameter, Tensor) or not parameter.is_floating_point() or parameter.ndim < 2:
            raise EvidentiaError(
                f"{name} must be a floating tensor of shape (..., segments, classes), got {shape_or_kind(parameter)}"
            )
    if alpha.shape != beta.shape or alpha.dtype != beta.dtype:
        raise EvidentiaError(
            f"alpha and beta must have one shape and dtype, got {tuple(alpha.shape)} of {alpha.dtype} and "
            f"{tuple(beta.shape)} of {beta.dtype}"
        )
    if alpha.shape[-1] == 0:
        raise EvidentiaError("alpha and beta must have at least one class, got none")
    if validation_enabled():
        check_finite(alpha + beta, "the sum of alpha and beta")
        for name, parameter in (("alpha", alpha), ("beta", beta)):
            if parameter.numel() and bool((parameter < 1).any()):
                least = float(parameter.detach().min())
                raise EvidentiaError(
                    f"every {name} must be at least 1, which is no evidence, got a smallest value of {least:.6g}; "
                    "add 1 to evidence, or turn probabilities into Beta parameters with beta_from_probability"
                )


def beta_from_probability(probability: Tensor, strength: float = 1e6) -> tuple[Tensor, Tensor]:
    r"""Beta parameters of a network that gives probabilities only, as one that is sure of them.

    $\alpha = p S$, $\beta = (1 - p) S$ for a large strength $S$, each at least 1: vacuity is $2 / S$, and log odds are
    kept as far as $\pm \ln S$. With these every head runs on a plain sigmoid network.

    Example:
        >>> alpha, beta = beta_from_probability(torch.tensor([0.25, 1.0]), strength=1000)
        >>> alpha, beta
        (tensor([ 250., 1000.]), tensor([750.,   1.]))
    """
    check_tensor(probability, "probability")
    strength = real_number(strength, "strength", 2)
    if validation_enabled():
        check_finite(probability, "probability")
        if probability.numel() and bool(((probability < 0) | (probability > 1)).any()):
            raise EvidentiaError("probability must lie in [0, 1]; apply a sigmoid to logits first")
    return (probability * strength).clamp(min=1), ((1 - probability) * strength).clamp(min=1)


def per_class(value: float | tuple[float, ...], num_classes: int, like: Tensor) -> Tensor:
    """A setting as a tensor that broadcasts over the class dimension."""
    if isinstance(value, tuple):
        check_per_class(value, num_classes)
    return _cached(value, like.dtype, like.device)


def check_per_class(value: tuple[float, ...], num_classes: int) -> None:
    """Require one value for each class."""
    if len(value) != num_classes:
        raise EvidentiaError(
            f"a setting for each class needs one value for each of {num_classes} classes, got {len(value)}: {value}"
        )


@lru_cache(maxsize=256)
def _cached(value: float | tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    # Made outside of inference mode, so that a cached tensor serves in training too.
    with torch.inference_mode(False):
        return torch.tensor(value, dtype=dtype, device=device)


def gated(score: Tensor, uncertainty: Tensor, limit: PerClass) -> Tensor:
    """The score where an uncertainty is below its limit, and minus infinity elsewhere."""
    most = per_class(limit, uncertainty.shape[-1], uncertainty)
    return torch.where(uncertainty < most, score, -torch.inf)
