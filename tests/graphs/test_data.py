"""Graphs by name: from folders as users have them, and from their home, checked; real ones have the known counts."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

import evidentia as ev
from evidentia.graphs import catalog, load_graph
from evidentia.graphs.catalog import CATALOG
from evidentia.graphs.npz import arrays_digest

NPZ = {"photo": "amazon_electronics_photo.npz", "physics": "ms_academic_phy.npz", "cora-full": "cora.npz"}


@pytest.mark.parametrize(
    "layout",
    ["Planetoid/Cora/raw", "Cora/raw", "cora/raw", "Planetoid/cora/raw", "Cora/Cora/raw", "raw", "."],
)
def test_planetoid_is_found_in_the_layouts_people_have(files: ModuleType, tmp_path: Path, layout: str) -> None:
    parts = files.write_planetoid(tmp_path / layout)
    data = load_graph("Cora", tmp_path)
    assert data.name == "cora"
    assert data.num_nodes == len(parts["graph"]) == len(data.y)
    assert data.num_classes == 3


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        *[("photo", layout) for layout in ("graphs/Amazon/Photo/raw", "Amazon/Photo/raw", "Photo/raw", "raw", ".")],
        *[
            ("Amazon_Photo", "photo/raw"),
            ("coauthor physics", "graphs/Coauthor/Physics/raw"),
            ("PHYSICS", "Physics/raw"),
        ],
        *[
            ("cora-full", "CitationFull/cora/raw"),
            ("Cora_Full", "graphs/CitationFull/cora/raw"),
            ("corafull", "cora/raw"),
        ],
    ],
)
def test_npz_is_found_in_the_layouts_people_have(files: ModuleType, tmp_path: Path, name: str, layout: str) -> None:
    folder = tmp_path / layout
    folder.mkdir(parents=True, exist_ok=True)
    entry = catalog.find_entry(name)
    (folder / NPZ[entry.name]).write_bytes(files.npz_payload(files.npz_arrays()))
    data = load_graph(name, str(tmp_path))
    assert data.name == entry.name
    assert data.num_nodes == (9 if entry.family in ("Amazon", "Coauthor") else 12)
    assert data.class_names == ["red", "green", "blue"]


def test_what_the_graph_is_made_of(files: ModuleType, tmp_path: Path) -> None:
    parts = files.write_planetoid(tmp_path / "Cora" / "raw")
    data = load_graph("cora", tmp_path)
    assert data.x.layout == torch.sparse_csr
    assert data.x.dtype == torch.float32
    np.testing.assert_array_equal(data.x.to_dense()[: len(parts["ally"])], parts["allx"].toarray())
    assert data.edge_index.dtype == data.y.dtype == torch.long
    assert data.is_undirected()
    assert data.is_coalesced()
    assert not data.has_self_loops()
    assert {data[mask].dtype for mask in ("train_mask", "val_mask", "test_mask")} == {torch.bool}
    assert "class_names" not in data  # Cora's seven names do not fit three classes
    assert data.validate()


def test_the_largest_component_is_an_option(files: ModuleType, tmp_path: Path) -> None:
    (tmp_path / NPZ["photo"]).write_bytes(files.npz_payload(files.npz_arrays(nodes=12)))
    whole, part = load_graph("photo", tmp_path, largest_component=False), load_graph("photo", tmp_path)
    assert (whole.num_nodes, part.num_nodes) == (12, 9)
    assert torch.equal(part.n_id, torch.arange(9))
    assert torch.equal(whole.y[part.n_id], part.y)
    assert torch.equal(whole.x.to_dense()[part.n_id], part.x.to_dense())
    files.write_planetoid(tmp_path)
    lonely = load_graph("cora", tmp_path)
    assert lonely.has_isolated_nodes()
    connected = load_graph("cora", tmp_path, largest_component=True)
    assert not connected.has_isolated_nodes()
    assert torch.equal(lonely.train_mask[connected.n_id], connected.train_mask)


def test_nothing_is_written_under_the_data_root(files: ModuleType, tmp_path: Path) -> None:
    files.write_planetoid(tmp_path / "Planetoid" / "Cora" / "raw")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for path in before:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        load_graph("cora", tmp_path)
        assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    finally:
        for path in before:
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_unknown_names_are_answered_with_the_known() -> None:
    with pytest.raises(
        ev.EvidentiaError, match=r"no graph named 'coral'; choose one of: cora, citeseer, .*pubmed-full"
    ):
        load_graph("coral")
    with pytest.raises(ev.EvidentiaError, match="no graph named 3"):
        load_graph(3)  # type: ignore[arg-type]


def test_missing_files_are_answered_with_where_was_looked(files: ModuleType, tmp_path: Path) -> None:
    files.write_planetoid(tmp_path / "Cora" / "raw")
    (tmp_path / "Cora" / "raw" / "ind.cora.graph").unlink()
    with pytest.raises(ev.EvidentiaError) as caught:
        load_graph("cora", tmp_path)
    for layout in ("Planetoid/Cora/raw", "Cora/raw (which lacks ind.cora.graph)", "raw"):
        assert f"\n  {tmp_path / layout}" in str(caught.value)
    with pytest.raises(ev.EvidentiaError, match="must be a folder"):
        load_graph("cora", tmp_path / "nowhere")


def test_hostile_files_are_refused_by_path(files: ModuleType, tmp_path: Path) -> None:
    files.write_planetoid(tmp_path)
    (tmp_path / "ind.cora.allx").write_bytes(b"\x80\x02cos\nsystem\nX\x01\x00\x00\x00x\x85R.")
    with pytest.raises(ev.FileFormatError, match=r"ind\.cora\.allx names os\.system"):
        load_graph("cora", tmp_path)


def test_the_extra_is_named_when_it_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch_geometric.data", None)
    with pytest.raises(ev.MissingExtraError, match=r"evidentia\[graphs\]"):
        load_graph("cora", tmp_path)
    with pytest.raises(ev.MissingExtraError, match=r"evidentia\[graphs\]"):
        ev.graphs.citation_graph()


@pytest.fixture
def home(files: ModuleType, serve: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder served on this machine as the home of all graphs; it holds a small Cora and a small Photo."""
    served = tmp_path / "home"
    files.write_planetoid(served)
    (served / NPZ["photo"]).write_bytes(files.npz_payload(files.npz_arrays()))
    digests = {file: hashlib.sha256((served / file).read_bytes()).hexdigest() for file in CATALOG["cora"].files}
    photo = arrays_digest((served / NPZ["photo"]).read_bytes(), Path())
    monkeypatch.setitem(CATALOG, "cora", replace(CATALOG["cora"], digests=digests))
    monkeypatch.setitem(CATALOG, "photo", replace(CATALOG["photo"], digests={NPZ["photo"]: photo}))
    monkeypatch.setenv("EVIDENTIA_CACHE", str(tmp_path / "cache"))
    address = serve(partial(SimpleHTTPRequestHandler, directory=str(served)))
    for name in catalog.HOMES:
        monkeypatch.setitem(catalog.HOMES, name, address)
    return served


def test_a_download_is_kept_and_used_again(home: Path, tmp_path: Path) -> None:
    first = load_graph("cora")
    folder = tmp_path / "cache" / "Planetoid" / "Cora" / "raw"
    assert sorted(path.name for path in folder.iterdir()) == sorted(CATALOG["cora"].files)
    for file in home.iterdir():
        file.unlink()
    again, by_root = load_graph("cora"), load_graph("cora", tmp_path / "cache")
    for data in (again, by_root):
        assert torch.equal(data.edge_index, first.edge_index)
        assert torch.equal(data.x.to_dense(), first.x.to_dense())


def test_npz_downloads_pass_in_either_compression(home: Path, files: ModuleType, tmp_path: Path) -> None:
    (home / NPZ["photo"]).write_bytes(files.npz_payload(files.npz_arrays(), compressed=True))
    assert load_graph("photo").num_nodes == 9
    assert (tmp_path / "cache" / "graphs" / "Amazon" / "Photo" / "raw" / NPZ["photo"]).is_file()


@pytest.mark.parametrize("name", ["cora", "photo"])
def test_a_download_that_is_not_what_it_should_be_is_not_kept(
    home: Path, files: ModuleType, tmp_path: Path, name: str
) -> None:
    file = CATALOG[name].files[0]
    other = files.npz_payload(files.npz_arrays(seed=1)) if name == "photo" else b"\x80\x02cos\nsystem\n."
    (home / file).write_bytes(other)
    with pytest.raises(ev.FileFormatError, match="does not match its checksum"):
        load_graph(name)
    (home / file).write_bytes((home / file).read_bytes()[:50])
    with pytest.raises(ev.FileFormatError):
        load_graph(name)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_a_damaged_cache_is_fetched_again(home: Path, tmp_path: Path) -> None:
    first = load_graph("cora")
    path = tmp_path / "cache" / "Planetoid" / "Cora" / "raw" / "ind.cora.y"
    whole = path.read_bytes()
    path.write_bytes(whole[:20])
    assert torch.equal(load_graph("cora").y, first.y)
    assert path.read_bytes() == whole


def test_an_absent_file_is_told_with_its_address(home: Path) -> None:
    (home / "ind.cora.tx").unlink()
    with pytest.raises(ev.EvidentiaError, match=r"http.*ind\.cora\.tx could not be downloaded \(.*[Nn]ot found"):
        load_graph("cora")


def test_graphs_without_a_known_checksum_are_not_downloaded(home: Path, files: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(ev.EvidentiaError, match=r"knows no checksum .* fetch http.*ms_academic_cs\.npz yourself"):
        load_graph("cs")
    folder = tmp_path / "cache" / "graphs" / "Coauthor" / "CS" / "raw"
    folder.mkdir(parents=True)
    (folder / "ms_academic_cs.npz").write_bytes(files.npz_payload(files.npz_arrays()))
    assert load_graph("cs").num_nodes == 9


def test_every_entry_is_complete() -> None:
    for entry in CATALOG.values():
        assert all(entry.url(file).startswith("https://") for file in entry.files)
        assert set(entry.digests) in (set(entry.files), set())
        assert all(len(digest) == 64 for digest in entry.digests.values())


# Nodes, undirected edges, features, classes, labels a class.
REAL = {
    "cora": (2708, 5278, 1433, 7, [351, 217, 418, 818, 426, 298, 180]),
    "citeseer": (3327, 4552, 3703, 6, [249, 590, 668, 701, 596, 508]),
    "pubmed": (19717, 44324, 500, 3, [4103, 7739, 7875]),
    "photo": (7650, 119081, 745, 8, [369, 1686, 703, 915, 882, 823, 1941, 331]),
    "computers": (13752, 245861, 767, 10, [436, 2142, 1414, 542, 5158, 308, 487, 818, 2156, 291]),
    "physics": (34493, 247962, 8415, 5, [5750, 5045, 17426, 2753, 3519]),
}


@pytest.mark.parametrize("name", REAL)
def test_real_graphs_have_the_known_counts(real_data: Path, name: str) -> None:
    data = load_graph(name, real_data, largest_component=False)
    nodes, edges, features, classes, sizes = REAL[name]
    assert (data.num_nodes, data.edge_index.shape[1], data.num_features) == (nodes, 2 * edges, features)
    assert data.num_classes == classes == len(data.class_names)
    assert torch.bincount(data.y[data.y >= 0]).tolist() == sizes
    assert data.is_undirected()
    assert data.is_coalesced()
    assert not data.has_self_loops()
    assert bool(torch.isfinite(data.x.values()).all())


@pytest.mark.parametrize("name", REAL)
def test_real_files_have_the_checksums_of_the_catalog(real_data: Path, name: str) -> None:
    entry = CATALOG[name]
    folder = real_data / entry.layouts[0]
    for file in entry.files:
        payload = (folder / file).read_bytes()
        of_arrays = file.endswith(".npz")
        found = arrays_digest(payload, folder / file) if of_arrays else hashlib.sha256(payload).hexdigest()
        assert found == entry.digests[file]


@pytest.mark.parametrize(("name", "train"), [("cora", 140), ("citeseer", 120), ("pubmed", 60)])
def test_real_planetoid_graphs_have_the_public_split(real_data: Path, name: str, train: int) -> None:
    data = load_graph(name, real_data)
    assert [int(data[mask].sum()) for mask in ("train_mask", "val_mask", "test_mask")] == [train, 500, 1000]
    assert torch.bincount(data.y[data.train_mask]).tolist() == [20] * data.num_classes


def test_the_15_papers_that_citeseer_knows_nothing_of(real_data: Path) -> None:
    data = load_graph("citeseer", real_data)
    unknown = (data.y < 0).nonzero().flatten()
    assert len(unknown) == 15
    assert data.x.to_dense()[unknown].abs().sum() == 0
    # They are linked, though hardly; the 48 nodes without links are others.
    degree = torch.bincount(data.edge_index[0], minlength=data.num_nodes)
    assert degree[unknown].tolist() == [1] * 8 + [2] + [1] * 6
    assert int((degree == 0).sum()) == 48
    assert not data.test_mask[unknown].any()


@pytest.mark.parametrize(("name", "nodes"), [("photo", 7487), ("computers", 13381), ("physics", 34493)])
def test_real_largest_components_are_those_of_the_thesis(real_data: Path, name: str, nodes: int) -> None:
    data = load_graph(name, real_data)
    assert data.num_nodes == nodes
    assert not data.has_isolated_nodes()
