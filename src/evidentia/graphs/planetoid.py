"""Planetoid's citation graphs: eight files each, with the split that everyone uses (Yang, Cohen, Salakhutdinov 2016).

`x`, `y` are the labelled training nodes, `allx`, `ally` all nodes but the test nodes (training first), `tx`, `ty` the
test nodes in the order of `test.index`, and `graph` lists neighbours. Citeseer's `test.index` skips 15 nodes: papers
that others link to and of which nothing else is known; they get features of 0 and the label -1.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from evidentia._support.errors import FileFormatError
from evidentia._support.pickles import read_array, read_csr_parts, read_edges
from evidentia.graphs.raw import Array, RawGraph, checked_csr, undirected

PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")
PUBLIC_VALIDATION = 500


def read_planetoid(payloads: Mapping[str, bytes], folder: Path, prefix: str, names: tuple[str, ...] = ()) -> RawGraph:
    """The graph in the bytes of the eight files.

    Args:
        payloads: what each of `PARTS` holds.
        folder: where the files are, for errors.
        prefix: what the files' names begin with, for errors.
        names: names of the classes.

    Raises:
        FileFormatError: if a file is damaged or hostile, or the files do not fit each other.
    """
    paths = {part: folder / f"{prefix}.{part}" for part in PARTS}
    x, tx, allx = (read_csr(payloads[part], paths[part]) for part in ("x", "tx", "allx"))
    y, ty, ally = (_one_hot(read_array(payloads[part], paths[part]), paths[part]) for part in ("y", "ty", "ally"))
    sources, targets, listed = read_edges(payloads["graph"], paths["graph"])
    test = _numbers(payloads["test.index"], paths["test.index"])

    rows = {"x": x.shape[0], "y": len(y), "tx": tx.shape[0], "ty": len(ty), "allx": allx.shape[0], "ally": len(ally)}
    one_graph = (
        rows["x"] == rows["y"] <= rows["allx"] == rows["ally"]
        and rows["tx"] == rows["ty"] == len(test)
        and x.shape[1] == tx.shape[1] == allx.shape[1]
    )
    if not one_graph:
        raise FileFormatError(
            f"the files {prefix}.* in {folder} are not of one graph: they have {rows} rows, {len(test)} test nodes "
            f"and {x.shape[1]}, {tx.shape[1]} and {allx.shape[1]} features; fetch them again"
        )
    first, nodes = rows["allx"], max(listed, rows["allx"] + rows["tx"])
    if len(np.unique(test)) != len(test) or (len(test) and (test.min() < first or test.max() >= nodes)):
        raise FileFormatError(f"{paths['test.index']} must name nodes from {first} to {nodes - 1}, each once")
    if len(sources) and not 0 <= min(sources.min(), targets.min()) <= max(sources.max(), targets.max()) < nodes:
        raise FileFormatError(f"{paths['graph']} has an edge to a node that is not one of the {nodes}")

    place = np.concatenate([np.arange(first), test])
    labels = np.full(nodes, -1, dtype=np.int64)
    labels[place] = np.concatenate([ally, ty])
    if labels.max(initial=-1) < 0:
        raise FileFormatError(f"no node of {prefix}.* in {folder} has a label; fetch the files again")
    number = np.arange(nodes)
    return RawGraph(
        features=_placed(sparse.vstack([allx, tx]), place, nodes),
        adjacency=undirected(sources, targets, nodes),
        labels=labels,
        class_names=names,
        masks={
            "train_mask": number < len(y),
            "val_mask": (number >= len(y)) & (number < min(len(y) + PUBLIC_VALIDATION, first)),
            "test_mask": np.isin(number, test),
        },
    )


def _placed(matrix: Any, place: Array, nodes: int) -> sparse.csr_matrix[Any]:
    """A matrix whose row `place[i]` is row i of the given one."""
    entries = matrix.tocoo()
    shape = (nodes, matrix.shape[1])
    return sparse.csr_matrix((entries.data, (place[entries.row], entries.col)), shape=shape, dtype=np.float32)


def read_csr(payload: bytes, path: Path) -> sparse.csr_matrix[Any]:
    """The sparse matrix in a pickle, as float32; `path` is named in errors."""
    return checked_csr(*read_csr_parts(payload, path), "features", path)


def _one_hot(rows: Array, path: Path) -> Array:
    """The class of every row, -1 for a row of zeros."""
    if rows.ndim != 2 or rows.shape[1] == 0 or not np.isin(rows, (0, 1)).all() or (rows.sum(1) > 1).any():
        raise FileFormatError(
            f"{path} must hold a row of zeros with at most a single one for each node; fetch it again"
        )
    return np.where(rows.any(1), rows.argmax(1), -1)


def _numbers(payload: bytes, path: Path) -> Array:
    try:
        return np.array([int(word) for word in payload.split()], dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise FileFormatError(f"{path} must list whole numbers, one a line ({error}); fetch it again") from error
