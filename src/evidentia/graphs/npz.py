"""Amazon, Coauthor and CitationFull graphs: npz files of the arrays of two CSR matrices, and labels.

They are read with `allow_pickle=False`: no array of objects is ever looked at, so no file can run code.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from evidentia._support.errors import FileFormatError
from evidentia.graphs.raw import Array, RawGraph, checked_csr, undirected

_NEEDED = (
    *(f"{matrix}_{part}" for matrix in ("adj", "attr") for part in ("data", "indices", "indptr", "shape")),
    "labels",
)


def read_npz(payload: bytes, path: Path, names: tuple[str, ...] = ()) -> RawGraph:
    """The graph in the bytes of an npz file.

    Args:
        payload: what the file holds.
        path: where it is, for errors.
        names: names of the classes, for files that have none that can be read.

    Raises:
        FileFormatError: if the file is damaged, lacks an array, or the arrays do not make a graph.
    """
    arrays = _load(payload, path)
    labels = arrays["labels"]
    whole = labels.ndim == 1 and labels.dtype.kind in "iu" and len(labels) > 0
    if not whole or labels.min() < -1 or not 0 <= labels.max() < len(labels):
        raise FileFormatError(
            f"the labels in {path} must be whole numbers, one a node, -1 for none and fewer classes than nodes; "
            "fetch it again"
        )
    adjacency, features = (_matrix(arrays, name, what, path) for name, what in (("adj", "edges"), ("attr", "features")))
    nodes = len(labels)
    if adjacency.shape != (nodes, nodes) or features.shape[0] != nodes:
        raise FileFormatError(
            f"{path} has {nodes} labels, edges of shape {adjacency.shape} and features of shape {features.shape}: "
            "they are not of one graph; fetch it again"
        )
    edges = adjacency.tocoo()
    return RawGraph(
        features=features,
        adjacency=undirected(edges.row, edges.col, nodes),
        labels=labels,
        class_names=tuple(map(str, arrays.get("class_names", names))),
    )


def arrays_digest(payload: bytes, path: Path) -> str:
    """SHA-256 over the names, types, shapes and bytes of the arrays that `read_npz` uses.

    Not over the file, because the same arrays may be compressed in more than one way: the copies that go round
    differ as files and agree in this.
    """
    digest = hashlib.sha256()
    for name, array in sorted(_load(payload, path).items()):
        digest.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _load(payload: bytes, path: Path) -> dict[str, Array]:
    try:
        with np.load(io.BytesIO(payload), allow_pickle=False) as file:
            if missing := [name for name in _NEEDED if name not in file]:
                raise FileFormatError(f"{path} is no graph: it lacks {', '.join(missing)}")
            arrays = {name: file[name] for name in _NEEDED}
            # In some files the names of the classes are Python objects, which are left unread.
            if "class_names" in file and (names := _readable(file, "class_names")) is not None:
                arrays["class_names"] = names
    except FileFormatError:
        raise
    except Exception as error:  # zipfile, zlib and numpy each have errors of their own for damaged files
        raise FileFormatError(f"{path} is not a readable npz file ({error}); fetch it again") from error
    return arrays


def _readable(file: Mapping[str, Any], name: str) -> Array | None:
    try:
        names: Array = file[name]
    except ValueError:
        return None
    return names if names.dtype.kind == "U" and names.ndim == 1 else None


def _matrix(arrays: Mapping[str, Array], name: str, what: str, path: Path) -> Any:
    shape = arrays[f"{name}_shape"]
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise FileFormatError(f"the shape of the {what} in {path} must be two whole numbers, got {shape!r}")
    data, indices, indptr = (arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    return checked_csr(data, indices, indptr, (int(shape[0]), int(shape[1])), what, path)
