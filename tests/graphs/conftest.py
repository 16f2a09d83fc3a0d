"""Small graphs in the file formats of Planetoid and of gnn-benchmark, and where the real ones are."""

from __future__ import annotations

import io
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from python2_pickles import python2_pickle
from scipy import sparse


@pytest.fixture(scope="session")
def files() -> ModuleType:
    """The functions of this module, which test modules cannot import."""
    return sys.modules[__name__]


def planetoid_parts(seed: int = 0, train: int = 6, other: int = 9, test: int = 5, classes: int = 3) -> dict[str, Any]:
    """The eight parts of a graph whose `test.index` skips a node, as Citeseer's does."""
    rng = np.random.default_rng(seed)
    known, features = train + other, 7

    def matrix(rows: int) -> sparse.csr_matrix:
        return sparse.csr_matrix((rng.random((rows, features)) < 0.5).astype(np.float32))

    def one_hot(rows: int) -> np.ndarray:
        return np.eye(classes, dtype=np.int32)[np.arange(rows) % classes]

    allx, ally = matrix(known), one_hot(known)
    # Node `known + 1` is in no list; rows of tx are in the order of the index, not of the nodes.
    index = rng.permutation(np.delete(np.arange(known, known + test + 1), 1))
    nodes = known + test + 1
    graph: defaultdict[int, list[int]] = defaultdict(list)
    for node in range(nodes):
        graph[node] = []
    for _ in range(3 * nodes):
        a, b = (int(end) for end in rng.integers(nodes, size=2))
        if known + 1 not in (a, b):
            graph[a].append(b)
            graph[b].append(a)
    graph[0] += [0, 1, 1]  # a self loop, and an edge twice and one way only
    return {
        "x": allx[:train],
        "y": ally[:train],
        "tx": matrix(test),
        "ty": one_hot(test),
        "allx": allx,
        "ally": ally,
        "graph": graph,
        "test.index": "".join(f"{node}\n" for node in index).encode(),
    }


def planetoid_payloads(parts: dict[str, Any]) -> dict[str, bytes]:
    return {part: value if part == "test.index" else python2_pickle(value) for part, value in parts.items()}


def write_planetoid(folder: Path, name: str = "cora", parts: dict[str, Any] | None = None) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    parts = planetoid_parts() if parts is None else parts
    for part, payload in planetoid_payloads(parts).items():
        (folder / f"ind.{name}.{part}").write_bytes(payload)
    return parts


def npz_arrays(seed: int = 0, nodes: int = 12) -> dict[str, np.ndarray]:
    """The arrays of a graph of two parts: a ring of all nodes but three, and a path of these three."""
    rng = np.random.default_rng(seed)
    ring = nodes - 3
    source = np.concatenate([np.arange(ring), [nodes - 3, nodes - 2, 0]])
    target = np.concatenate([(np.arange(ring) + 1) % ring, [nodes - 2, nodes - 1, 0]])
    adjacency = sparse.csr_matrix((np.ones(len(source), np.float32), (source, target)), shape=(nodes, nodes))
    attributes = sparse.csr_matrix(rng.integers(0, 3, (nodes, 5)).astype(np.float32))
    arrays = {}
    for name, matrix in (("adj", adjacency), ("attr", attributes)):
        for part in ("data", "indices", "indptr"):
            arrays[f"{name}_{part}"] = getattr(matrix, part)
        arrays[f"{name}_shape"] = np.array(matrix.shape)
    return {**arrays, "labels": np.arange(nodes) % 3, "class_names": np.array(["red", "green", "blue"])}


def npz_payload(arrays: dict[str, np.ndarray], compressed: bool = False) -> bytes:
    out = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(out, **arrays)
    return out.getvalue()
