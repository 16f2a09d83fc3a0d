"""Pickled data sets (Planetoid, CIFAR), read without running anything that is in them.

A pickle is a little program that may name any Python function and call it. Two locks keep it from that:

- before anything is read, every operation is compared with the few that these files are made of;
- every name that these files may mention stands for an inert class of this module, never for the numpy, scipy
  or Python object of that name. A file can thus fill in fields that are checked afterwards, and nothing else.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from evidentia._support.errors import FileFormatError

Array: TypeAlias = "npt.NDArray[Any]"

_OPERATIONS = (
    *("PROTO", "FRAME", "STOP", "MARK", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1"),
    *("BINSTRING", "SHORT_BINSTRING", "BINUNICODE", "SHORT_BINUNICODE", "BINBYTES", "SHORT_BINBYTES"),
    *("EMPTY_LIST", "APPEND", "APPENDS", "EMPTY_DICT", "SETITEM", "SETITEMS"),
    *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
    *("BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET", "MEMOIZE"),
    *("GLOBAL", "STACK_GLOBAL", "REDUCE", "NEWOBJ", "BUILD"),
)
_NUMBERS = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")


class _Inert:
    """Stands for a class that a file may name; takes its state as it is."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Dtype(_Inert):
    """`numpy.dtype("f4", ...)`, with a state whose second entry is the byte order."""


class _Array(_Inert):
    """`numpy.ndarray`, with the state (version, shape, dtype, is Fortran order, bytes)."""


class _Csr(_Inert):
    """`scipy.sparse.csr_matrix`, with a dictionary as its state."""


class _List(_Inert):
    """`list`, which the file names only as the default of a dictionary."""


class _Neighbours(dict[Any, Any]):
    """`collections.defaultdict(list)`, without the default."""

    def __init__(self, *_: Any) -> None:
        super().__init__()

    def __setstate__(self, state: Any) -> NoReturn:
        raise FileFormatError("a dictionary in it has a state, which no list of neighbours has")


_ARRAY_NAMES: dict[tuple[str, str], type] = {
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): _Array,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("scipy.sparse.csr", "csr_matrix"): _Csr,
    ("scipy.sparse._csr", "csr_matrix"): _Csr,
}
_GRAPH_NAMES: dict[tuple[str, str], type] = {
    ("collections", "defaultdict"): _Neighbours,
    ("__builtin__", "list"): _List,
    ("builtins", "list"): _List,
}


def read_array(payload: bytes, path: Path) -> Array:
    """The numeric array in a pickle; `path` is named in errors."""
    return _array(_unpickle(payload, path, _ARRAY_NAMES), path)


def read_csr_parts(payload: bytes, path: Path) -> tuple[Array, Array, Array, tuple[int, int]]:
    """Data, indices, row starts and shape of the sparse matrix in a pickle, not checked against each other."""
    found = _unpickle(payload, path, _ARRAY_NAMES)
    fields = found.state if isinstance(found, _Csr) else None
    if not isinstance(fields, dict):
        raise FileFormatError(f"{path} must hold a sparse CSR matrix, got {_kind(found)}")
    shape = fields.get("_shape", fields.get("shape"))
    if not (isinstance(shape, tuple) and len(shape) == 2 and all(type(size) is int for size in shape)):
        raise FileFormatError(f"the matrix in {path} has the shape {shape!r}, which is not one of a matrix")
    data, indices, indptr = (_array(fields.get(name), path) for name in ("data", "indices", "indptr"))
    return data, indices, indptr, shape


def read_edges(payload: bytes, path: Path) -> tuple[Array, Array, int]:
    """The edges in a pickled dictionary of neighbours, as both ends, and the number of nodes in the dictionary."""
    graph = _unpickle(payload, path, _GRAPH_NAMES)
    if not isinstance(graph, dict) or not all(isinstance(nodes, list) for nodes in graph.values()):
        raise FileFormatError(f"{path} must hold a dictionary of lists of neighbours, got {_kind(graph)}")
    # Lists that are mentioned many times could make a small file huge.
    if sum(map(len, graph.values())) > len(payload):
        raise FileFormatError(f"{path} names more neighbours than it has bytes: it is not an honest file")
    targets = [node for nodes in graph.values() for node in nodes]
    if not {type(node) for node in (*graph, *targets)} <= {int}:
        raise FileFormatError(f"the nodes in {path} must all be whole numbers")
    try:
        sources = np.repeat(np.array(list(graph), dtype=np.int64), [len(nodes) for nodes in graph.values()])
        return sources, np.array(targets, dtype=np.int64), len(graph)
    except OverflowError as error:
        raise FileFormatError(f"a node in {path} has a number too large for any graph") from error


def read_record(payload: bytes, path: Path) -> dict[str, Any]:
    """The dictionary in a pickle, such as a batch of CIFAR: its arrays as arrays, all other values as they are."""
    found = _unpickle(payload, path, _ARRAY_NAMES)
    if not isinstance(found, dict) or not all(isinstance(name, str | bytes) for name in found):
        raise FileFormatError(f"{path} must hold a dictionary of named values, got {_kind(found)}")
    named = {name.decode("latin1") if isinstance(name, bytes) else name: value for name, value in found.items()}
    return {name: _array(value, path) if isinstance(value, _Inert) else value for name, value in named.items()}


class _Unpickler(pickle.Unpickler):
    def __init__(self, payload: bytes, path: Path, names: dict[tuple[str, str], type]) -> None:
        # Python 2 wrote these files; latin1 keeps the bytes of its strings.
        super().__init__(io.BytesIO(payload), encoding="latin1")
        self._path = path
        self._names = names

    def find_class(self, module: str, name: str) -> type:
        if (module, name) not in self._names:
            raise _forbidden(self._path, f"{module}.{name}", self._names)
        return self._names[module, name]


def _unpickle(payload: bytes, path: Path, names: dict[tuple[str, str], type]) -> Any:
    try:
        _check_operations(payload, path, names)
        return _Unpickler(payload, path, names).load()
    except FileFormatError:
        raise
    except Exception as error:  # bytes in any order can fail in any way
        raise FileFormatError(
            f"{path} is not a readable pickle ({error}); it may be truncated: fetch it again"
        ) from error


def _check_operations(payload: bytes, path: Path, names: dict[tuple[str, str], type]) -> None:
    for operation, argument, _ in pickletools.genops(payload):
        if operation.name == "GLOBAL" and tuple(str(argument).split(" ", 1)) not in names:
            raise _forbidden(path, str(argument).replace(" ", "."), names)
        if operation.name not in _OPERATIONS:
            raise FileFormatError(
                f"{path} uses the pickle operation {operation.name}, which no file of this kind needs: "
                "it was not read, and nothing in it was run; fetch it from a source you trust"
            )
        # The memo is a table as long as its largest number.
        if operation.name == "LONG_BINPUT" and int(argument or 0) > len(payload):
            raise FileFormatError(f"{path} numbers an object {argument}, more than it has bytes: it is damaged")


def _forbidden(path: Path, name: str, names: dict[tuple[str, str], type]) -> FileFormatError:
    known = ", ".join(sorted({".".join(known) for known in names}))
    return FileFormatError(
        f"{path} names {name}, which has no place in it: it was not read, and nothing in it was run; a file of this "
        f"kind may name only {known}. Fetch it from a source you trust"
    )


def _array(found: Any, path: Path) -> Array:
    state = found.state if isinstance(found, _Array) else None
    if not (isinstance(state, tuple) and len(state) == 5):
        raise FileFormatError(f"{path} must hold a numeric array, got {_kind(found)}")
    _, shape, kind, fortran, content = state
    dtype = _dtype(kind, path)
    if isinstance(content, str):
        content = content.encode("latin1")
    sizes_fit = isinstance(shape, tuple) and all(type(size) is int and size >= 0 for size in shape)
    if not sizes_fit or not isinstance(content, bytes) or math.prod(shape) * dtype.itemsize != len(content):
        raise FileFormatError(f"an array in {path} has the shape {shape!r}, which its content does not fill")
    array: Array = np.frombuffer(content, dtype).reshape(shape, order="F" if fortran else "C")
    return array


def _dtype(found: Any, path: Path) -> np.dtype[Any]:
    code = found.arguments[0] if isinstance(found, _Dtype) and found.arguments else None
    order = found.state[1] if isinstance(found, _Dtype) and isinstance(found.state, tuple) and found.state[1:] else "="
    if code not in _NUMBERS or order not in ("<", ">", "|", "="):
        raise FileFormatError(
            f"an array in {path} is of type {code!r}; only whole and real numbers are read, objects never"
        )
    return np.dtype(f"{order}{code}")


def _kind(found: Any) -> str:
    return type(found).__name__.strip("_").lower()
