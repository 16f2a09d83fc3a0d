"""Graphs by name, from a user's folder or from their own home on the web."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from evidentia._support.download import cache_folder, kept_or_fetched, sha256
from evidentia._support.errors import EvidentiaError
from evidentia.graphs._pyg import data_class
from evidentia.graphs.catalog import Entry, find_entry
from evidentia.graphs.npz import arrays_digest, read_npz
from evidentia.graphs.planetoid import PARTS, read_planetoid
from evidentia.graphs.raw import RawGraph

if TYPE_CHECKING:
    from torch_geometric.data import Data


def load_graph(
    name: str, data_root: str | os.PathLike[str] | None = None, *, largest_component: bool | None = None
) -> Data:
    """Load a graph by name.

    The result is a PyG `Data` with

    - `x`: node features as a `torch.sparse_csr` tensor of float32, just as the files have them (models normalise);
    - `edge_index`: every undirected edge in both directions, once each, sorted, without self loops;
    - `y`: the class of every node, -1 for nodes without one (15 in Citeseer);
    - `train_mask`, `val_mask`, `test_mask`: Planetoid's public split; the other graphs have none (see
      `misclassification_split` and `ood_split`);
    - `num_classes`, `name`, `class_names` where known, and with the largest component alone `n_id`, the nodes'
      numbers in the whole graph.

    The files are read by evidentia itself: nothing is ever written under `data_root`, no pickle can run code, and no
    array of Python objects is read.

    Args:
        name: cora, citeseer or pubmed (Planetoid); photo or computers (Amazon); physics or cs (Coauthor); cora-full,
            cora-ml, citeseer-full, dblp or pubmed-full (CitationFull); in upper or lower case.
        data_root: a folder that holds the graph in the layout of PyG's data sets, such as `Cora/raw` or
            `Amazon/Photo/raw`. Without it, the graph is looked for in the cache folder (`$EVIDENTIA_CACHE`, else
            `~/.cache/evidentia`) and fetched from its own home if it is not there, each time checked by SHA-256.
        largest_component: keep only the largest connected component; by default that is done for Amazon and Coauthor,
            as the thesis does, and not for the others.

    Raises:
        EvidentiaError: if there is no graph of that name, or its files are neither found nor to be had.
        FileFormatError: if a file is damaged or hostile.
        MissingExtraError: if torch_geometric is not installed.

    Example:
        >>> load_graph("cora", data_root="datasets")  # doctest: +SKIP
        Data(x=[2708, 1433], edge_index=[2, 10556], y=[2708], train_mask=[2708], val_mask=[2708], ...)
        >>> load_graph("coral")
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: there is no graph named 'coral'; choose one of: cora, citeseer, ...
    """
    entry = find_entry(name)
    data_class()  # before any download, if it is missing
    if data_root is None:
        folder, payloads = _cached(entry)
    else:
        folder = _find(entry, Path(data_root))
        payloads = {file: (folder / file).read_bytes() for file in entry.files}
    graph = _read(entry, folder, payloads)
    if entry.largest_component if largest_component is None else largest_component:
        graph = graph.largest_component()
    return graph.to_data(entry.name)


def _read(entry: Entry, folder: Path, payloads: dict[str, bytes]) -> RawGraph:
    if entry.family == "Planetoid":
        parts = {part: payloads[file] for part, file in zip(PARTS, entry.files, strict=True)}
        return read_planetoid(parts, folder, entry.prefix, entry.class_names)
    (file,) = entry.files
    return read_npz(payloads[file], folder / file, entry.class_names)


def _find(entry: Entry, root: Path) -> Path:
    """The first of the folders under `root` that holds all files."""
    if not root.is_dir():
        raise EvidentiaError(f"data_root must be a folder, and {root} is none")
    folders = [root / layout for layout in entry.layouts]
    missing = [[file for file in entry.files if not (folder / file).is_file()] for folder in folders]
    for folder, lacks in zip(folders, missing, strict=True):
        if not lacks:
            return folder
    looked = "".join(
        f"\n  {folder}" + (f" (which lacks {', '.join(lacks)})" if len(lacks) < len(entry.files) else "")
        for folder, lacks in zip(folders, missing, strict=True)
    )
    raise EvidentiaError(
        f"{entry.name} is not under {root}: there is no {', '.join(entry.files)} in any of{looked}\n"
        f"Put what {entry.url(entry.files[0])} and its like hold into the first, or leave data_root out to have it "
        "downloaded"
    )


def _cached(entry: Entry) -> tuple[Path, dict[str, bytes]]:
    """The files of a graph from the cache, each fetched first if it is missing or damaged."""
    folder = cache_folder() / entry.layouts[0]
    return folder, {file: _cached_file(entry, folder / file) for file in entry.files}


def _cached_file(entry: Entry, path: Path) -> bytes:
    if path.name not in entry.digests:
        if path.is_file():
            return path.read_bytes()
        raise EvidentiaError(
            f"{entry.name} is not downloaded, because evidentia knows no checksum to hold {path.name} against; "
            f"fetch {entry.url(path.name)} yourself and put it into {path.parent}, or give its folder as data_root"
        )

    digest_of = partial(arrays_digest, path=path) if path.suffix == ".npz" else sha256
    return kept_or_fetched(entry.url(path.name), path, entry.digests[path.name], digest_of)
