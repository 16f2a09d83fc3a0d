"""MATLAB files: SciPy writes them, ours reads them the same, and nothing that is in one can hurt."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import loadmat, savemat

from evidentia.semisup.data.mat_files import read_mat

LIMIT = 1 << 24


def _written(arrays: dict[str, Any], *, compressed: bool = True) -> bytes:
    file = io.BytesIO()
    savemat(file, arrays, do_compression=compressed)
    return file.getvalue()


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("kind", ["u1", "i2", "i4", "f4", "f8", "u8"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (4, 3, 2, 5), (0, 3)])
def test_arrays_are_read_as_scipy_reads_them(shape: tuple[int, ...], kind: str, compressed: bool) -> None:
    array = np.random.default_rng(0).integers(0, 100, shape).astype(kind)
    file = _written({"X": array, "a_longer_name": array.reshape(-1, 1)}, compressed=compressed)
    found, expected = read_mat(file, LIMIT), loadmat(io.BytesIO(file))
    assert list(found) == ["X", "a_longer_name"]
    for name, values in found.items():
        assert values.dtype == expected[name].dtype
        np.testing.assert_array_equal(values, expected[name])


@settings(max_examples=300)
@given(st.data(), st.booleans())
def test_damaged_files_are_read_or_refused(data: st.DataObject, compressed: bool) -> None:
    payload = bytearray(_written({"X": np.arange(24).reshape(2, 3, 4), "y": np.ones((3, 1))}, compressed=compressed))
    for _ in range(data.draw(st.integers(1, 6))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ValueError):
        read_mat(bytes(payload[: data.draw(st.integers(0, len(payload)))]), LIMIT)


@pytest.mark.parametrize("content", [np.array(["text"]), np.array([1 + 2j]), {"field": 1.0}, [np.ones(2), "x"]])
def test_only_real_numbers_are_read(content: Any) -> None:
    with pytest.raises(ValueError, match="real numbers"):
        read_mat(_written({"X": np.array(content, dtype=object) if isinstance(content, list) else content}), LIMIT)


def test_a_part_that_unpacks_to_more_than_is_allowed_is_refused() -> None:
    with pytest.raises(ValueError, match="larger than"):
        read_mat(_written({"X": np.zeros((1000, 1000))}), 10_000)
