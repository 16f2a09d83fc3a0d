"""Sparse matrices times dense ones, with dropout on the values that are there.

Bag-of-words features are almost all zeros. Dropout of a zero is a zero, so only the stored values need to be dropped
and multiplied: this is where the time of a hundred passes goes, or does not.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia.learning.dropout import dropout

# Where more than this share of a matrix is stored, a dense product is faster than a sparse one.
_DENSE_FROM = 0.1

# PyTorch says once that its CSR tensors are in beta; once is here, where nobody needs to hear it.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)
    torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 1))


class SparseMatrix:
    """A constant matrix in CSR form that can be multiplied with dense ones through which gradients flow.

    Args:
        crow: where each row starts in `col` and `values`, shape `(rows + 1,)`.
        col: the column of each stored value.
        values: the stored values.
        shape: rows and columns.

    Example:
        >>> matrix = SparseMatrix.from_tensor(torch.tensor([[0.0, 2.0], [1.0, 0.0]]))
        >>> matrix @ torch.tensor([[1.0], [3.0]])
        tensor([[6.],
                [1.]])
    """

    def __init__(self, crow: Tensor, col: Tensor, values: Tensor, shape: tuple[int, int]) -> None:
        self.crow, self.col, self.values, self.shape = crow, col, values, shape

    @classmethod
    def from_tensor(cls, matrix: Tensor) -> SparseMatrix:
        """A dense or sparse tensor of two dimensions, its zeros left out."""
        if matrix.ndim != 2:
            raise EvidentiaError(f"a matrix has 2 dimensions, got shape {tuple(matrix.shape)}")
        if matrix.layout == torch.strided:
            matrix = matrix.to_sparse()
        if matrix.layout == torch.sparse_coo:
            matrix = matrix.coalesce().to_sparse_csr()
        if matrix.layout != torch.sparse_csr:
            raise EvidentiaError(f"a matrix must be dense, COO or CSR, got layout {matrix.layout}")
        rows, columns = matrix.shape
        return cls(matrix.crow_indices(), matrix.col_indices(), matrix.values(), (rows, columns))

    @classmethod
    def from_entries(cls, row: Tensor, col: Tensor, values: Tensor, shape: tuple[int, int]) -> SparseMatrix:
        """From entries in any order; entries at the same place are added up."""
        return cls.from_tensor(torch.sparse_coo_tensor(torch.stack([row, col]), values, shape))

    @property
    def num_values(self) -> int:
        """How many values are stored."""
        return self.values.numel()

    def to(self, *args: Any, **kwargs: Any) -> SparseMatrix:
        """Move to a device, or the values to a dtype."""
        values = self.values.to(*args, **kwargs)
        return SparseMatrix(self.crow.to(values.device), self.col.to(values.device), values, self.shape)

    def __matmul__(self, dense: Tensor) -> Tensor:
        """The product with a dense matrix of shape `(columns, width)`."""
        return self._times(self.values, dense)

    def dropped_matmul(self, dense: Tensor, rate: float, passes: int = 1) -> Tensor:
        """Products with a dense matrix after dropping stored values, anew in each pass.

        Args:
            dense: shape `(columns, width)`.
            rate: the probability with which a value is dropped; the others are scaled up by 1 / (1 - rate).
            passes: how many products to take, each with other values dropped.

        Returns:
            Shape `(passes, rows, width)`.
        """
        if rate == 0:
            return (self @ dense).expand(passes, -1, -1)
        if self._nearly_dense:
            return torch.stack([self._times(dropout(self.values, rate), dense) for _ in range(passes)])
        # All passes as one tall matrix: one product with it is faster than many with the parts.
        values = dropout(self.values.repeat(passes), rate)
        tall = self if passes == 1 else self._stacked(passes)
        return tall._times(values, dense).reshape(passes, self.shape[0], -1)

    def row_normalised(self) -> SparseMatrix:
        """Every row divided by its sum; rows of zeros stay."""
        return self._rows_divided(self._row_sums(self.values))

    def unit_rows(self) -> SparseMatrix:
        """Every row divided by its length; rows of zeros stay."""
        return self._rows_divided(self._row_sums(self.values.square()).sqrt())

    def rows(self, index: Tensor) -> SparseMatrix:
        """Some rows, in the order given."""
        counts = self.crow.diff()[index]
        crow = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        shift = torch.repeat_interleave(self.crow[:-1][index] - crow[:-1], counts)
        places = torch.arange(len(shift), device=shift.device) + shift
        return SparseMatrix(crow, self.col[places], self.values[places], (len(index), self.shape[1]))

    def to_dense(self) -> Tensor:
        """The matrix with its zeros."""
        return csr(self.crow, self.col, self.values, self.shape).to_dense()

    def _row_sums(self, values: Tensor) -> Tensor:
        return values.new_zeros(self.shape[0]).index_add(0, self._row_of_value(), values)

    def _rows_divided(self, divisors: Tensor) -> SparseMatrix:
        divisor = torch.where(divisors != 0, divisors, torch.ones_like(divisors))[self._row_of_value()]
        return SparseMatrix(self.crow, self.col, self.values / divisor, self.shape)

    def _row_of_value(self) -> Tensor:
        return torch.repeat_interleave(self.crow.diff())

    def _times(self, values: Tensor, dense: Tensor) -> Tensor:
        if dense.ndim != 2 or dense.shape[0] != self.shape[1]:
            raise EvidentiaError(
                f"a matrix of shape {self.shape} can be multiplied with one of {self.shape[1]} rows, "
                f"got shape {tuple(dense.shape)}"
            )
        result: Tensor = _SparseProduct.apply(self, values, dense)  # type: ignore[no-untyped-call]
        return result

    def _stacked(self, copies: int) -> SparseMatrix:
        if copies not in self._stacks:
            starts = torch.arange(copies, device=self.crow.device).unsqueeze(-1) * self.num_values
            crow = torch.cat([(self.crow[:-1] + starts).flatten(), starts[-1] + self.num_values])
            rows, columns = self.shape
            # Only the last size is kept: it is what the next call will want.
            self._stacks.clear()
            self._stacks[copies] = SparseMatrix(crow, self.col.repeat(copies), self.values, (copies * rows, columns))
        return self._stacks[copies]

    @property
    def _nearly_dense(self) -> bool:
        return self.num_values > _DENSE_FROM * self.shape[0] * self.shape[1]

    @cached_property
    def _places(self) -> Tensor:
        """Where each stored value stands in the matrix written out row after row."""
        return self._row_of_value() * self.shape[1] + self.col

    @contextmanager
    def _filled(self, values: Tensor) -> Iterator[Tensor]:
        """The matrix with its zeros, and other values in the places of those stored; for as long as it is looked at."""
        try:
            written = self._spare.pop()
        except IndexError:
            # A normal tensor wherever it is made, so that it can be written to everywhere.
            with torch.inference_mode(False):
                written = values.new_zeros(self.shape[0] * self.shape[1])
        try:
            yield written.index_copy_(0, self._places, values).view(self.shape)
        finally:
            self._spare.append(written)

    @cached_property
    def _spare(self) -> list[Tensor]:
        """Matrices that have been filled before, one for each thread: a new one takes longer than the product."""
        return []

    @cached_property
    def _stacks(self) -> dict[int, SparseMatrix]:
        return {}

    @cached_property
    def _transposed(self) -> tuple[Tensor, Tensor, Tensor]:
        """Row starts and columns of the transpose, and which value stands where in it."""
        order = torch.argsort(self.col, stable=True)
        counts = torch.bincount(self.col, minlength=self.shape[1])
        crow = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        return crow, self._row_of_value()[order], order


class _SparseProduct(torch.autograd.Function):
    """A sparse matrix times a dense one; the gradient is the transpose times the gradient of the product."""

    @staticmethod
    def forward(ctx: Any, matrix: SparseMatrix, values: Tensor, dense: Tensor) -> Tensor:
        ctx.matrix = matrix
        ctx.save_for_backward(values)
        if matrix._nearly_dense:
            with matrix._filled(values) as filled:
                return filled @ dense
        return csr(matrix.crow, matrix.col, values, matrix.shape) @ dense

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, Tensor]:
        (values,) = ctx.saved_tensors
        if ctx.matrix._nearly_dense:
            with ctx.matrix._filled(values) as filled:
                return None, None, filled.T @ gradients[0]
        crow, col, order = ctx.matrix._transposed
        rows, columns = ctx.matrix.shape
        return None, None, csr(crow, col, values[order], (columns, rows)) @ gradients[0]


def csr(crow: Tensor, col: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A sparse CSR tensor of PyTorch's, its invariants unchecked."""
    return torch.sparse_csr_tensor(crow, col, values, shape, check_invariants=False)
