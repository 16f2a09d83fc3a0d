"""The npz files of Amazon, Coauthor and CitationFull become the graph they describe, and run no code."""

from __future__ import annotations

import contextlib
import io
import os
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import evidentia as ev
from evidentia.graphs.npz import arrays_digest, read_npz

PATH = Path("graph.npz")


class Touches:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


def test_the_graph_is_what_the_arrays_say(files: ModuleType) -> None:
    arrays = files.npz_arrays()
    graph = read_npz(files.npz_payload(arrays), PATH)
    features, adjacency = (
        sparse.csr_matrix(tuple(arrays[f"{m}_{part}"] for part in ("data", "indices", "indptr")), arrays[f"{m}_shape"])
        for m in ("attr", "adj")
    )
    np.testing.assert_array_equal(graph.features.toarray(), features.toarray())
    both = np.maximum(adjacency.toarray(), adjacency.toarray().T)
    np.fill_diagonal(both, 0)
    np.testing.assert_array_equal(graph.adjacency.toarray(), both)
    np.testing.assert_array_equal(graph.labels, arrays["labels"])
    assert graph.class_names == ("red", "green", "blue")
    assert graph.masks == {}


def test_the_largest_component(files: ModuleType) -> None:
    graph = read_npz(files.npz_payload(files.npz_arrays(nodes=12)), PATH)
    part = graph.largest_component()
    assert part.index is not None
    assert part.index.tolist() == list(range(9))
    assert part.adjacency.nnz == 18
    np.testing.assert_array_equal(part.features.toarray(), graph.features[:9].toarray())
    np.testing.assert_array_equal(part.labels, graph.labels[:9])


def test_objects_are_never_read(files: ModuleType, tmp_path: Path) -> None:
    sentinel = tmp_path / "ran"
    arrays = files.npz_arrays()
    hostile = np.array([Touches(sentinel)], dtype=object)
    # Names of classes that are objects are left out, as in Coauthor's files; anything needed is refused.
    graph = read_npz(files.npz_payload({**arrays, "class_names": hostile}), PATH, ("a", "b", "c"))
    assert graph.class_names == ("a", "b", "c")
    read_npz(files.npz_payload({**arrays, "idx_to_node": hostile}), PATH)
    for name in set(arrays) - {"class_names"}:
        with pytest.raises(ev.FileFormatError, match="allow_pickle"):
            read_npz(files.npz_payload({**arrays, name: hostile}), PATH)
    assert not sentinel.exists()
    np.load(io.BytesIO(files.npz_payload({"a": hostile})), allow_pickle=True)["a"]
    assert sentinel.exists()


def test_the_digest_is_of_the_arrays_not_of_the_file(files: ModuleType) -> None:
    arrays = files.npz_arrays()
    plain, compressed = files.npz_payload(arrays), files.npz_payload(arrays, compressed=True)
    assert plain != compressed
    assert arrays_digest(plain, PATH) == arrays_digest(compressed, PATH)
    reordered = dict(reversed(arrays.items()))
    assert arrays_digest(files.npz_payload(reordered), PATH) == arrays_digest(plain, PATH)
    for name, array in arrays.items():
        changed = array.copy()
        changed[0] = changed[-1] if name == "class_names" else changed[0] + 1
        assert arrays_digest(files.npz_payload({**arrays, name: changed}), PATH) != arrays_digest(plain, PATH), name
    assert arrays_digest(
        files.npz_payload({**arrays, "labels": arrays["labels"].astype(np.int32)}), PATH
    ) != arrays_digest(plain, PATH)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("labels", np.zeros(11, int)),
        ("labels", np.zeros((12, 2), int)),
        ("labels", np.zeros(12)),
        ("labels", np.full(12, -1)),
        ("labels", np.full(12, -2)),
        ("labels", np.full(12, 10**9)),
        ("labels", np.zeros(0, int)),
        ("adj_shape", np.array([12, 13])),
        ("adj_shape", np.array([12])),
        ("attr_shape", np.array([12.0, 5.0])),
        ("attr_shape", np.array([12, 2])),
        ("adj_indices", np.zeros(3, int)),
        ("adj_indptr", np.zeros(13, int)),
        ("attr_indptr", np.zeros(3, int)),
        ("attr_data", np.array(["a"])),
    ],
)
def test_arrays_that_make_no_graph_are_refused(files: ModuleType, name: str, value: np.ndarray) -> None:
    with pytest.raises(ev.FileFormatError, match=r"graph\.npz"):
        read_npz(files.npz_payload({**files.npz_arrays(), name: value}), PATH)


def test_nan_features_are_refused(files: ModuleType) -> None:
    arrays = files.npz_arrays()
    arrays["attr_data"] = np.where(np.arange(len(arrays["attr_data"])) == 1, np.nan, 1.0)
    with pytest.raises(ev.FileFormatError, match="NaN"):
        read_npz(files.npz_payload(arrays), PATH)


@pytest.mark.parametrize("name", ["adj_data", "attr_shape", "labels"])
def test_missing_arrays_are_told(files: ModuleType, name: str) -> None:
    arrays = files.npz_arrays()
    del arrays[name]
    with pytest.raises(ev.FileFormatError, match=f"lacks {name}"):
        read_npz(files.npz_payload(arrays), PATH)


def test_other_files_are_refused() -> None:
    array, archive = io.BytesIO(), io.BytesIO()
    np.save(array, np.arange(3))
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("labels.npy", b"no array")
    for payload in (b"", b"text", array.getvalue(), archive.getvalue()):
        with pytest.raises(ev.FileFormatError, match=r"graph\.npz"):
            read_npz(payload, PATH)


@given(st.data())
def test_damaged_files_are_read_or_refused(files: ModuleType, data: st.DataObject) -> None:
    payload = bytearray(files.npz_payload(files.npz_arrays(), compressed=data.draw(st.booleans())))
    with pytest.raises(ev.FileFormatError):
        read_npz(bytes(payload[: data.draw(st.integers(0, len(payload) - 1))]), PATH)
    payload[data.draw(st.integers(0, len(payload) - 1))] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(ev.FileFormatError):
        read_npz(bytes(payload), PATH)
