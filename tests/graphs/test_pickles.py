"""Planetoid's pickles are read to the last bit, and no file can make the reader run anything."""

from __future__ import annotations

import contextlib
import copyreg
import functools
import operator
import os
import pickle
import pickletools
import re
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import evidentia as ev
from evidentia._support.pickles import read_array, read_edges
from evidentia.graphs.planetoid import read_csr

PATH = Path("ind.cora.x")
READERS: list[Callable[[bytes, Path], Any]] = [read_array, read_csr, read_edges]


class Calls:
    """Pickles to a call of `function`."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


def by_name(module: str, name: str, argument: str) -> bytes:
    """A pickle that calls a function by its name, which need not exist here."""
    text = len(argument).to_bytes(4, "little") + argument.encode()
    return b"\x80\x02" + f"c{module}\n{name}\nX".encode() + text + b"\x85R."


@pytest.mark.parametrize("protocol", ["python2", 3, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64", ">f4", "int32", ">i8", "uint8", "bool"])
def test_arrays_are_read_as_they_were_written(files: ModuleType, protocol: Any, dtype: str) -> None:
    for values in (np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3).T, np.arange(0), np.array(3)):
        array = values.astype(dtype)
        payload = files.python2_pickle(array) if protocol == "python2" else pickle.dumps(array, protocol)
        found = read_array(payload, PATH)
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("protocol", ["python2", 3, 4])
def test_sparse_matrices_are_read_as_they_were_written(files: ModuleType, protocol: Any) -> None:
    matrix = sparse.random(9, 5, 0.4, "csr", dtype=np.float32, rng=np.random.default_rng(0))
    matrix = sparse.csr_matrix(matrix)
    payload = files.python2_pickle(matrix) if protocol == "python2" else pickle.dumps(matrix, protocol)
    found = read_csr(payload, PATH)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.toarray(), matrix.toarray())


@given(st.dictionaries(st.integers(0, 99), st.lists(st.integers(0, 99), max_size=5), max_size=20))
def test_neighbours_are_read_as_they_were_written(files: ModuleType, neighbours: dict[int, list[int]]) -> None:
    graph = defaultdict(list, neighbours)
    for payload in (files.python2_pickle(graph), pickle.dumps(graph, 4), pickle.dumps(dict(graph), 2)):
        sources, targets, count = read_edges(payload, PATH)
        assert count == len(graph)
        assert list(zip(sources, targets, strict=True)) == [(a, b) for a, ends in graph.items() for b in ends]


def hostile(sentinel: Path) -> dict[str, bytes]:
    """Pickles that make the file `sentinel` when they are loaded."""
    code = f"open({str(sentinel)!r}, 'w').close()"
    touch = f"touch {sentinel}"
    calls = {
        "os.system": Calls(os.system, touch),
        "eval": Calls(eval, code),
        "exec": Calls(exec, code),
        "in a list": [1, [Calls(eval, code)]],
        "in an object array": np.array([1, Calls(eval, code)], dtype=object),
        "in the list of a graph": defaultdict(list, {0: [Calls(eval, code)]}),
        "list of a map": Calls(list, Calls(map, exec, [code])),
        "partial": Calls(functools.partial(eval, code)),
        "methodcaller": Calls(operator.methodcaller("touch"), sentinel),
        "a pickle in a pickle": Calls(pickle.loads, pickle.dumps(Calls(eval, code), 2)),
        "numpy's loader": Calls(np.lib.format.open_memmap, str(sentinel), "w+", "u1", (1,)),
    }
    # getattr(os, "system")(touch), where os is found as a name of another module.
    argument = b"X" + len(touch).to_bytes(4, "little") + touch.encode()
    by_getattr = b"\x80\x02c__builtin__\ngetattr\ncposixpath\nos\nX\x06\x00\x00\x00system\x86R" + argument + b"\x85R."
    return {"getattr": by_getattr, **{name: pickle.dumps(call, 2) for name, call in calls.items()}}


@pytest.mark.parametrize("kind", hostile(Path("x")))
def test_hostile_pickles_are_refused_and_run_nothing(kind: str, tmp_path: Path) -> None:
    sentinel = tmp_path / "ran"
    payload = hostile(sentinel)[kind]
    names = {
        str(argument).replace(" ", ".") for step, argument, _ in pickletools.genops(payload) if step.name == "GLOBAL"
    }
    for read in READERS:
        with pytest.raises(ev.FileFormatError, match="nothing in it was run") as caught:
            read(payload, PATH)
        told = re.search(r"names (\S+), which has no place in it", str(caught.value))
        assert told is not None
        assert told[1] in names
        assert not sentinel.exists()
    # The same bytes do run with Python's own reader: otherwise this test would prove nothing.
    pickle.loads(payload)
    assert sentinel.exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        *[("os", "system"), ("posix", "system"), ("nt", "system"), ("subprocess", "Popen"), ("sys", "exit")],
        *[
            ("builtins", name)
            for name in ("eval", "exec", "getattr", "setattr", "__import__", "open", "object", "dict")
        ],
        *[("__builtin__", name) for name in ("eval", "getattr", "apply", "file", "int")],
        *[("numpy", name) for name in ("load", "fromfile", "memmap", "frompyfunc", "vectorize", "ndarray.tofile")],
        *[("numpy.testing", "runstring"), ("numpy.testing._private.utils", "runstring"), ("numpy.f2py", "compile")],
        *[("numpy.core.multiarray", name) for name in ("scalar", "fromfile", "array", "_reconstruct.__globals__")],
        *[("numpy._core.multiarray", "scalar"), ("numpy._core.numeric", "_frombuffer"), ("numpy.lib.npyio", "load")],
        *[("scipy.sparse", "load_npz"), ("scipy.sparse._csr", "csr_array"), ("scipy.sparse.csr", "np.load")],
        *[("copyreg", "_reconstructor"), ("copy_reg", "_reconstructor"), ("_codecs", "encode"), ("torch", "load")],
        *[("collections", "OrderedDict"), ("collections", "_sys.exit"), ("evidentia._support.pickles", "_Array")],
    ],
)
def test_every_other_name_is_refused_and_told(module: str, name: str) -> None:
    before = set(sys.modules)
    words = (pickle.SHORT_BINUNICODE + bytes([len(word)]) + word.encode() for word in (module, name))
    stacked = b"\x80\x04" + b"".join(words)
    for payload in (by_name(module, name, "1"), stacked + pickle.STACK_GLOBAL + pickle.EMPTY_TUPLE + b"R."):
        for read in READERS:
            with pytest.raises(ev.FileFormatError) as caught:
                read(payload, PATH)
            assert f"names {module}.{name}, which has no place in it" in str(caught.value)
            assert str(PATH) in str(caught.value)
    assert set(sys.modules) == before


def test_arrays_and_neighbours_have_no_names_in_common(files: ModuleType) -> None:
    with pytest.raises(ev.FileFormatError, match=r"names collections\.defaultdict"):
        read_array(files.python2_pickle(defaultdict(list)), PATH)
    with pytest.raises(ev.FileFormatError, match=r"names numpy\.core\.multiarray\._reconstruct"):
        read_edges(files.python2_pickle(np.arange(3)), PATH)


@pytest.mark.parametrize(
    ("payload", "operation"),
    [
        (b"(S'echo'\nios\nsystem\n.", "STRING"),
        (b"(ios\nsystem\n.", "INST"),
        (b"(cnumpy\nndarray\no.", "OBJ"),
        (b"\x80\x02\x82\x01.", "EXT1"),
        (b"\x80\x02X\x01\x00\x00\x00aQ.", "BINPERSID"),
        (b"Pname\n.", "PERSID"),
        (b"\x80\x04cnumpy\nndarray\n)}\x92.", "NEWOBJ_EX"),
        (b"\x80\x05\x97.", "NEXT_BUFFER"),
    ],
)
def test_operations_that_these_files_do_not_need_are_refused(payload: bytes, operation: str) -> None:
    with pytest.raises(ev.FileFormatError, match=rf"pickle operation {operation}\b"):
        read_array(payload, PATH)


def test_extension_codes_cannot_smuggle_a_function_in() -> None:
    copyreg.add_extension("builtins", "eval", 240)
    try:
        with pytest.raises(ev.FileFormatError, match="EXT1"):
            read_array(b"\x80\x02\x82\xf0X\x01\x00\x00\x001\x85R.", PATH)
    finally:
        copyreg.remove_extension("builtins", "eval", 240)


@pytest.mark.parametrize("state", [b"}X\x01\x00\x00\x00aK\x01s", b"N}X\x08\x00\x00\x00__code__K\x01s\x86"])
@pytest.mark.parametrize(
    "name", [b"numpy\nndarray", b"numpy.core.multiarray\n_reconstruct", b"scipy.sparse.csr\ncsr_matrix"]
)
def test_a_file_cannot_change_the_reader(name: bytes, state: bytes, files: ModuleType) -> None:
    with pytest.raises(ev.FileFormatError):
        read_array(b"\x80\x02c" + name + b"\n" + state + b"b.", PATH)
    np.testing.assert_array_equal(read_array(files.python2_pickle(np.arange(3)), PATH), np.arange(3))


def test_a_dictionary_of_neighbours_has_no_state() -> None:
    with pytest.raises(ev.FileFormatError, match="has a state"):
        read_edges(b"\x80\x02ccollections\ndefaultdict\n)R}X\x01\x00\x00\x00aK\x01sb.", PATH)


def test_objects_in_arrays_are_refused(files: ModuleType) -> None:
    nested = np.empty(2, dtype=object)
    nested[0], nested[1] = np.arange(2), [np.array([None, 1], dtype=object)]
    structured = np.zeros(2, dtype=[("a", "i4"), ("b", "O")])
    for array in (np.array([None, 1], dtype=object), nested, structured, np.array(["text"]), np.array([1j])):
        with pytest.raises(ev.FileFormatError, match="objects never"):
            read_array(pickle.dumps(array, 4), PATH)
    matrix = sparse.csr_matrix(np.eye(2))
    matrix.data = np.array([1, None], dtype=object)
    with pytest.raises(ev.FileFormatError, match="objects never"):
        read_csr(files.python2_pickle(matrix), PATH)


@pytest.mark.parametrize(
    "value", [3, "text", None, [1, 2], (), {}, {"a": 1}, {1: 2}, {1: [[2]]}, {1: ["a"]}, {1: [True]}]
)
def test_other_content_is_refused(value: Any) -> None:
    payload = pickle.dumps(value, 2)
    for read in (read_array, read_csr):
        with pytest.raises(ev.FileFormatError, match="must hold"):
            read(payload, PATH)
    if value != {}:
        with pytest.raises(ev.FileFormatError, match="must"):
            read_edges(payload, PATH)


def test_numbers_that_no_graph_has_are_refused() -> None:
    with pytest.raises(ev.FileFormatError, match="too large"):
        read_edges(pickle.dumps({0: [2**80]}, 2), PATH)
    shared = [1] * 1000
    with pytest.raises(ev.FileFormatError, match="more neighbours than it has bytes"):
        read_edges(pickle.dumps(dict.fromkeys(range(1000), shared), 2), PATH)
    with pytest.raises(ev.FileFormatError, match="more than it has bytes"):
        read_array(b"\x80\x02Nr\xff\xff\xff\xff.", PATH)


@pytest.mark.parametrize(
    "change",
    [
        {"_shape": (4, 3)},
        {"_shape": (3, 2)},
        {"_shape": (3, -3)},
        {"_shape": "text"},
        {"_shape": (3, 3, 3)},
        {"indptr": np.array([0, 1, 2, 4], np.int32)},
        {"indptr": np.array([0, 2, 1, 3], np.int32)},
        {"indptr": np.array([1, 1, 2, 3], np.int32)},
        {"indices": np.array([0, 1, -1], np.int32)},
        {"indices": np.array([0.0, 1.0, 2.0])},
        {"data": np.ones((3, 1))},
        {"data": np.ones(2)},
        {"data": np.array([1.0, np.nan, 1.0])},
    ],
)
def test_matrices_that_are_none_are_refused(files: ModuleType, change: dict[str, Any]) -> None:
    matrix = sparse.csr_matrix(np.eye(3, dtype=np.float32))
    matrix.__dict__.update(change)
    with pytest.raises(ev.FileFormatError):
        read_csr(files.python2_pickle(matrix), PATH)


def test_arrays_whose_shape_does_not_fit_are_refused(files: ModuleType) -> None:
    payload = files.python2_pickle(np.arange(3, dtype=np.int8))
    assert payload.count(b"K\x03\x85") == 1
    for shape in (
        b"K\x04\x85",
        b"J\xff\xff\xff\xff\x85",
        b"K\x03K\x02\x86",
        b"]",
        b"G?\xf0\x00\x00\x00\x00\x00\x00\x85",
    ):
        with pytest.raises(ev.FileFormatError):
            read_array(payload.replace(b"K\x03\x85", shape), PATH)


@given(st.data())
def test_truncated_files_are_refused(files: ModuleType, data: st.DataObject) -> None:
    parts = files.planetoid_payloads(files.planetoid_parts())
    part, read = data.draw(st.sampled_from([("x", read_csr), ("y", read_array), ("graph", read_edges)]))
    cut = data.draw(st.integers(0, len(parts[part]) - 1))
    with pytest.raises(ev.FileFormatError, match=str(PATH)):
        read(parts[part][:cut], PATH)


@given(st.data())
def test_damaged_files_are_read_or_refused_but_never_fail_otherwise(files: ModuleType, data: st.DataObject) -> None:
    parts = files.planetoid_payloads(files.planetoid_parts())
    part, read = data.draw(st.sampled_from([("x", read_csr), ("y", read_array), ("graph", read_edges)]))
    payload = bytearray(parts[part])
    for _ in range(data.draw(st.integers(1, 8))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ev.FileFormatError):
        read(bytes(payload), PATH)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(payload: bytes) -> None:
    for read in READERS:
        with contextlib.suppress(ev.FileFormatError):
            read(payload, PATH)
