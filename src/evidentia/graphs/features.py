"""Sparse matrices between scipy and torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from evidentia.graphs.sparse_matrix import csr


def csr_tensor(matrix: sparse.csr_matrix[Any], dtype: torch.dtype = torch.float32) -> Tensor:
    """A scipy CSR matrix as a torch sparse CSR tensor, its invariants checked.

    Example:
        >>> from scipy import sparse
        >>> csr_tensor(sparse.csr_matrix([[0.0, 2.0], [0.0, 0.0]])).to_dense()
        tensor([[0., 2.],
                [0., 0.]])
    """
    rows, columns = matrix.shape
    return csr(
        torch.from_numpy(matrix.indptr.astype(np.int64)),
        torch.from_numpy(matrix.indices.astype(np.int64)),
        torch.from_numpy(np.array(matrix.data)).to(dtype),
        (rows, columns),
        check=True,
    )
