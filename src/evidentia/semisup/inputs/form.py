"""Samples in the form a network is trained on: the same for what `fit` and what `predict` is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import whole_number
from evidentia.learning.data import device_of, dtype_of
from evidentia.semisup.inputs.arrays import input_of, size_of, stack
from evidentia.semisup.inputs.columns import check_numbers, column_names, places
from evidentia.semisup.inputs.conversion import as_numbers, to_float, to_tensor
from evidentia.semisup.inputs.scaling import Scale
from evidentia.semisup.networks.models import SMALLEST_IMAGE
from evidentia.semisup.pool import SemiSupervisedData, Values

# Bytes divided by 255 are at most 1, and a little more where a picture was resized with overshoot.
_BRIGHTEST = 2.0


@dataclass(frozen=True, eq=False)
class InputForm:
    """The shape of samples as they are given, and what is done to them before the network sees them.

    Attributes:
        sample_shape: of one sample, as given.
        adds_channel: whether samples are grey images without a channel, which they get.
        scale: what brings them to mean 0 and deviation 1; None if they keep their values.
        columns: names of the features, if they came from a table.
        values: "bytes" if samples were bytes, divided by 255, "numbers" if they were beyond [0, 1]; None if they were
            neither, so that bytes are of the same scale.

    Example:
        >>> InputForm.of((28, 28), None).network_shape, InputForm.of((28, 28), nn.Flatten()).network_shape
        ((1, 28, 28), (28, 28))
    """

    sample_shape: tuple[int, ...] = ()
    adds_channel: bool = False
    scale: Scale | None = None
    columns: tuple[str, ...] = ()
    values: Values | None = None

    @classmethod
    def of(
        cls,
        sample_shape: Sequence[int],
        network: nn.Module | str | None,
        columns: Sequence[str] = (),
        values: Values | None = None,
    ) -> InputForm:
        """The form for a network; a user's own module is shown what was given."""
        grey = len(sample_shape) == 2 and min(sample_shape) >= SMALLEST_IMAGE
        adds_channel = grey and not isinstance(network, nn.Module)
        return cls(tuple(sample_shape), adds_channel, columns=tuple(columns), values=values)

    @property
    def network_shape(self) -> tuple[int, ...]:
        """The shape of one sample as the network sees it."""
        return (1, *self.sample_shape) if self.adds_channel else self.sample_shape

    def standardising(self, data: SemiSupervisedData) -> InputForm:
        """The same form, with the scale of the labeled samples."""
        return replace(self, scale=Scale.of(self._seen(data.x_labeled), self._seen(data.x_unlabeled)))

    def shown(self, data: SemiSupervisedData) -> SemiSupervisedData:
        """The data as the network sees it; what is brought to another scale is a copy."""
        if not self.adds_channel and self.scale is None:
            return data
        return replace(
            data,
            x_labeled=self._seen(data.x_labeled),
            x_unlabeled=self._seen(data.x_unlabeled),
            x_validation=self._seen(data.x_validation),
            x_test=self._seen(data.x_test),
        )

    def batches(self, x: Any, batch_size: int, network: nn.Module) -> Iterator[Tensor]:
        """Inputs in order, converted as `from_arrays` does, part by part so that memory stays bounded.

        Every part is a copy, on the network's device and of its dtype.

        Args:
            x: inputs in any form that `fit` takes; pairs of a dataset are cut to their input, and columns of a table
                are put in the order of training.
            batch_size: samples of a part.
            network: what is to be given them.
        """
        batch_size = whole_number(batch_size, "batch_size", 1)
        order = places(column_names(x), self.columns, "the table to predict")
        for part in _parts(x, batch_size):
            given = part if order is None else part[:, order]
            if tuple(given.shape[1:]) != self.sample_shape:
                raise EvidentiaError(
                    f"the classifier was trained on samples of shape {self.sample_shape}, got inputs of shape "
                    f"{tuple(given.shape)}; give inputs of shape {_shape_of_many(self.sample_shape)}"
                )
            batch = to_float(given.to(device_of(network), copy=True), dtype_of(network))
            check_numbers(batch, self.columns, "inputs")
            self._check_values(given.dtype, batch)
            yield self._seen(batch)

    def _check_values(self, dtype: torch.dtype, batch: Tensor) -> None:
        """Refuse samples in another scale than those of training, as `from_arrays` does among these."""
        if self.values == "numbers" and dtype == torch.uint8:
            raise EvidentiaError(
                "the inputs are uint8, to be divided by 255, and the classifier was trained on numbers beyond 0 to 1; "
                "bring them to the scale of training first"
            )
        if self.values == "bytes" and dtype != torch.uint8 and float(batch.max()) > _BRIGHTEST:
            raise EvidentiaError(
                f"the inputs are {dtype} of up to {float(batch.max()):g}, and the classifier was trained on uint8, "
                "divided by 255; give uint8, or divide by 255"
            )

    def _seen(self, x: Tensor) -> Tensor:
        seen = x.unsqueeze(1) if self.adds_channel else x
        return seen if self.scale is None else self.scale.applied(seen)


def check_layout(sample_shape: Sequence[int]) -> None:
    """Refuse images with their channels last, which would be taken for as many channels as they have rows."""
    if len(sample_shape) != 3:
        return
    height, width, channels = sample_shape
    # Feature maps of 4 x 4 have a small last dimension as well, but no larger one before it.
    if channels in (1, 3, 4) and min(height, width) > channels:
        raise EvidentiaError(
            f"samples of shape {tuple(sample_shape)} look like images with their channels last, and images are taken "
            "with channels first; give (n, C, H, W): x.transpose(0, 3, 1, 2) of an array, x.permute(0, 3, 1, 2) of a "
            "tensor"
        )


def _parts(x: Any, size: int) -> Iterator[Tensor]:
    if isinstance(x, Dataset):
        count = size_of(x, "given")
        for start in range(0, count, size):
            rows = [x[row] for row in range(start, min(start + size, count))]
            yield stack([input_of(row) for row in rows], "given")
        return
    x = as_numbers(x, "the inputs")
    if x.ndim == 0 or len(x) == 0:
        raise EvidentiaError(f"there are no samples to predict: got inputs of shape {tuple(x.shape)}")
    for start in range(0, len(x), size):
        yield to_tensor(x[start : start + size], "the inputs")


def _shape_of_many(sample_shape: Sequence[int]) -> str:
    return f"({', '.join(['n', *map(str, sample_shape)])})"
