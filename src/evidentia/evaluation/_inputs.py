"""What is given to a metric, brought into one form and checked: tensors, arrays and lists alike."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from evidentia._support.checks import (
    TensorLike,
    check_adds_to_one,
    check_class_dim,
    check_dense,
    check_finite,
    check_same_length,
    check_unmasked,
    in_native_order,
    kind_of,
    mass_tolerance,
    validation_enabled,
)
from evidentia._support.errors import EvidentiaError


def as_values(value: TensorLike, name: str) -> Tensor:
    """A tensor of float32, float64 or int64 that holds every number given exactly; the device is kept."""
    if isinstance(value, Tensor):
        check_dense(value, name)
        tensor = value.detach()
    else:
        check_unmasked(value, name)
        try:
            # A copy, because torch takes neither reversed nor read-only arrays as they are.
            tensor = torch.from_numpy(in_native_order(np.array(value, order="C")))
        except (TypeError, ValueError, RuntimeError) as error:
            raise EvidentiaError(
                f"{name} must be a tensor, an array or a list of numbers, got {kind_of(value)}"
            ) from error
    if tensor.is_complex():
        raise EvidentiaError(f"{name} must be real, got a tensor of {tensor.dtype}")
    if tensor.numel() == 0:
        raise EvidentiaError(f"{name} must hold at least one sample, got shape {tuple(tensor.shape)}")
    if not tensor.is_floating_point():
        return tensor.to(torch.int64)
    return tensor.float() if tensor.itemsize < 4 else tensor


def as_scores(value: TensorLike, name: str) -> Tensor:
    """A vector of values that can be put in order: anything but NaN."""
    scores = as_values(value, name)
    if scores.ndim != 1:
        raise EvidentiaError(
            f"{name} must be a vector with one entry for each sample, got shape {tuple(scores.shape)}; "
            "flatten it or pick a column"
        )
    if validation_enabled() and scores.is_floating_point() and bool(scores.isnan().any()):
        raise EvidentiaError(
            f"{name} must not be NaN, got {int(scores.isnan().sum())} NaN among {len(scores)} entries; "
            "drop those samples or check the network's outputs"
        )
    return scores


def as_binary(value: TensorLike, name: str) -> Tensor:
    """A boolean tensor from labels that are all 0 or 1."""
    labels = as_values(value, name)
    positive = labels == 1
    if validation_enabled():
        stray = ~positive & (labels != 0)
        if bool(stray.any()):
            raise EvidentiaError(
                f"{name} must be 0 or 1 (or False or True), got {labels[stray][0].item():g}; "
                "compare with the positive class first, as in `labels == k`"
            )
    return positive


def scored_labels(scores: TensorLike, labels: TensorLike) -> tuple[Tensor, Tensor]:
    """Scores and their binary labels, aligned and on the device of the scores."""
    values = as_scores(scores, "scores")
    positive = as_binary(labels, "labels").to(values.device)
    _check_aligned(values, positive, "scores and labels")
    return values, positive


def unsure_errors(uncertainty: TensorLike, errors: TensorLike) -> tuple[Tensor, Tensor]:
    """Uncertainties and the error (or loss) of each sample, aligned and on the device of the first."""
    values = as_scores(uncertainty, "uncertainty")
    losses = as_values(errors, "errors").to(values.device, torch.float64)
    _check_aligned(values, losses, "uncertainty and errors")
    if validation_enabled():
        check_finite(losses, "errors")
    return values, losses


def probs_labels(probs: TensorLike, labels: TensorLike) -> tuple[Tensor, Tensor]:
    """Probabilities and the truth, as one of two problems told apart by the dimensions of the first.

    * `(N, K)` probabilities and `(N,)` class indices: multi-class, returned as they are.
    * anything else of equal shapes, `(N,)` or `(N, K)`: binary problems, one for each entry, returned flat.
    """
    given = as_values(probs, "probs")
    if not given.is_floating_point():
        given = given.double()
    rounded = _rounding_of(probs)
    truth = as_values(labels, "labels").to(given.device)
    if given.ndim == 2 and truth.ndim == 1:
        check_class_dim(given, "probs")
        check_same_length(given, truth, "probs and labels")
        if truth.is_floating_point():
            raise EvidentiaError(f"labels must be integer class indices, got a tensor of {truth.dtype}")
        if validation_enabled():
            _check_classes(truth, given.shape[-1])
            check_adds_to_one(given.sum(-1).to(rounded), given.shape[-1], "the probabilities of each sample")
        return _unit(given, rounded), truth
    if given.shape != truth.shape or given.ndim not in {1, 2}:
        raise EvidentiaError(
            "probs of shape (N, K) need labels of shape (N,) with class indices, or (N, K) with 0 and 1; "
            f"probs of shape (N,) need labels of shape (N,) with 0 and 1; got probs of shape "
            f"{tuple(given.shape)} and labels of shape {tuple(truth.shape)}"
        )
    return _unit(given, rounded).flatten(), as_binary(truth, "labels").flatten()


def _check_aligned(first: Tensor, second: Tensor, names: str) -> None:
    if second.ndim != 1:
        raise EvidentiaError(f"{names} must both be vectors, got shapes {tuple(first.shape)}, {tuple(second.shape)}")
    check_same_length(first, second, names)


def _check_classes(labels: Tensor, classes: int) -> None:
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise EvidentiaError(
            f"labels must lie in 0..{classes - 1} for probabilities of {classes} classes, "
            f"got values from {low} to {high}; drop unlabelled samples first"
        )


def _rounding_of(probs: TensorLike) -> torch.dtype:
    """The dtype whose rounding probabilities have: float32 even in float64, where float32 results are often kept."""
    dtype = probs.dtype if isinstance(probs, Tensor) else getattr(probs, "dtype", None)
    if dtype == np.float16:
        return torch.float16
    return dtype if dtype in {torch.float16, torch.bfloat16} else torch.float32


def _unit(probs: Tensor, rounded: torch.dtype) -> Tensor:
    """Probabilities in [0, 1] exactly; a rounding error outside is forgiven, anything more is not."""
    if validation_enabled():
        check_finite(probs, "probs")
        slack = mass_tolerance(rounded, 1)
        low, high = float(probs.min()), float(probs.max())
        if low < -slack or high > 1 + slack:
            raise EvidentiaError(
                f"probs must lie in [0, 1], got values from {low:.6g} to {high:.6g}; "
                "apply softmax or sigmoid to logits first"
            )
    return probs.clamp(0, 1)
