"""Sparse products, against dense ones."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evidentia import EvidentiaError
from evidentia.graphs.sparse_matrix import SparseMatrix


def _matrix(seed: int, rows: int, columns: int, share: float = 0.3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(rows, columns, dtype=torch.float64, generator=generator)
    return values * (torch.rand(rows, columns, generator=generator) < share)


# Few and many stored values: the two are multiplied in different ways.
@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 12), st.integers(1, 5), st.sampled_from([0.05, 0.3]))
def test_product_and_gradient_equal_the_dense_ones(
    seed: int, rows: int, columns: int, width: int, share: float
) -> None:
    dense = _matrix(seed, rows, columns, share)
    weight = _matrix(seed + 1, columns, width, 1.0).requires_grad_()
    product = SparseMatrix.from_tensor(dense) @ weight
    torch.testing.assert_close(product, dense @ weight)
    upstream = _matrix(seed + 2, rows, width, 1.0)
    (gradient,) = torch.autograd.grad(product, weight, upstream)
    torch.testing.assert_close(gradient, dense.T @ upstream)


@pytest.mark.parametrize("layout", ["strided", "coo", "csr"])
def test_all_layouts_give_the_same_matrix(layout: str) -> None:
    dense = _matrix(0, 6, 4)
    given_as = {"strided": dense, "coo": dense.to_sparse(), "csr": dense.to_sparse_csr()}[layout]
    torch.testing.assert_close(SparseMatrix.from_tensor(given_as).to_dense(), dense)


def test_entries_at_the_same_place_add_up() -> None:
    matrix = SparseMatrix.from_entries(torch.tensor([0, 0, 1]), torch.tensor([1, 1, 0]), torch.ones(3), (2, 2))
    assert matrix.to_dense().tolist() == [[0.0, 2.0], [1.0, 0.0]]


@pytest.mark.parametrize("share", [0.08, 0.3])
def test_dropout_drops_stored_values_only_and_keeps_the_mean(share: float) -> None:
    dense = _matrix(3, 5, 7, share).float()
    matrix = SparseMatrix.from_tensor(dense)
    products = matrix.dropped_matmul(torch.eye(7), rate=0.4, passes=4000)
    assert products.shape == (4000, 5, 7)
    assert bool((products[:, dense == 0] == 0).all())
    stored = products[:, dense != 0] / dense[dense != 0]
    kept = stored[stored != 0]
    # The rate is rounded to 16 bits.
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / 0.6), rtol=1e-4, atol=0)
    assert len(kept) < stored.numel()
    # Each mean is of 4,000 draws with standard deviation sqrt(0.4 / 0.6).
    assert float((stored.mean(0) - 1).abs().max()) < 5 * (0.4 / 0.6 / 4000) ** 0.5


def test_passes_drop_other_values_and_gradients_flow_through_all() -> None:
    dense = _matrix(4, 6, 5)
    weight = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    matrix = SparseMatrix.from_tensor(dense)
    torch.manual_seed(0)
    products = matrix.dropped_matmul(weight, rate=0.5, passes=3)
    assert not torch.equal(products[0], products[1])
    torch.manual_seed(0)
    dropped = matrix.dropped_matmul(torch.eye(5, dtype=torch.float64), rate=0.5, passes=3)
    torch.testing.assert_close(products, dropped @ weight)
    (gradient,) = torch.autograd.grad(products.sum(), weight)
    torch.testing.assert_close(gradient, dropped.sum((0, 1)).unsqueeze(-1).expand(-1, 2))


def test_a_product_that_waits_for_its_gradient_is_not_disturbed_by_others() -> None:
    matrix, weight = SparseMatrix.from_tensor(_matrix(4, 6, 5)), torch.eye(5, dtype=torch.float64, requires_grad=True)
    with torch.inference_mode():
        first = matrix @ weight
    torch.manual_seed(0)
    products = [matrix.dropped_matmul(weight, rate=0.5)[0] for _ in range(3)]
    assert not torch.equal(products[0], products[1])
    upstream = torch.ones(6, 5, dtype=torch.float64)
    # A product with the identity is the matrix itself.
    for product in products:
        (gradient,) = torch.autograd.grad(product, weight, upstream)
        torch.testing.assert_close(gradient, product.detach().T @ upstream)
    torch.testing.assert_close(matrix @ weight, first)


def test_no_dropout_is_the_plain_product() -> None:
    dense, weight = _matrix(5, 4, 3), _matrix(6, 3, 2, 1.0)
    products = SparseMatrix.from_tensor(dense).dropped_matmul(weight, rate=0.0, passes=2)
    torch.testing.assert_close(products, (dense @ weight).expand(2, -1, -1))


def test_rows_are_normalised_and_empty_ones_stay() -> None:
    dense = torch.tensor([[1.0, 3.0], [0.0, 0.0], [0.0, 5.0]])
    normalised = SparseMatrix.from_tensor(dense).row_normalised().to_dense()
    assert normalised.tolist() == [[0.25, 0.75], [0.0, 0.0], [0.0, 1.0]]


def test_rows_get_length_one_and_empty_ones_stay() -> None:
    dense = torch.tensor([[3.0, 4.0], [0.0, 0.0], [0.0, -5.0]])
    unit = SparseMatrix.from_tensor(dense).unit_rows().to_dense()
    torch.testing.assert_close(unit, torch.tensor([[0.6, 0.8], [0.0, 0.0], [0.0, -1.0]]))


def test_shapes_that_do_not_fit_are_refused() -> None:
    matrix = SparseMatrix.from_tensor(torch.eye(3))
    with pytest.raises(EvidentiaError, match="3 rows"):
        matrix @ torch.ones(2, 2)
    with pytest.raises(EvidentiaError, match="2 dimensions"):
        SparseMatrix.from_tensor(torch.ones(3))


def test_dtype_moves() -> None:
    assert (SparseMatrix.from_tensor(torch.eye(2)).to(torch.float64) @ torch.eye(2).double()).dtype == torch.float64


def test_rows_in_any_order() -> None:
    dense = _matrix(4, 6, 5)
    index = torch.tensor([4, 0, 0, 5])
    torch.testing.assert_close(SparseMatrix.from_tensor(dense).rows(index).to_dense(), dense[index])
