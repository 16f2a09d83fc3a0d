"""Planetoid's eight files become the graph they describe."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import evidentia as ev
from evidentia.graphs.planetoid import read_planetoid
from evidentia.graphs.raw import RawGraph

FOLDER = Path("raw")


def read(files: ModuleType, parts: dict[str, Any]) -> RawGraph:
    return read_planetoid(files.planetoid_payloads(parts), FOLDER, "ind.cora")


@given(st.integers(0, 10_000))
def test_every_node_gets_its_own_row(files: ModuleType, seed: int) -> None:
    parts = files.planetoid_parts(seed)
    graph = read(files, parts)
    known = len(parts["ally"])
    index = np.array(parts["test.index"].split(), dtype=int)
    np.testing.assert_array_equal(graph.features[:known].toarray(), parts["allx"].toarray())
    np.testing.assert_array_equal(graph.features[index].toarray(), parts["tx"].toarray())
    np.testing.assert_array_equal(graph.labels[:known], parts["ally"].argmax(1))
    np.testing.assert_array_equal(graph.labels[index], parts["ty"].argmax(1))
    # The node that the index skips has neither features nor a label.
    assert graph.labels[known + 1] == -1
    assert graph.features[[known + 1]].nnz == 0
    assert graph.labels.shape == (known + 6,)


@given(st.integers(0, 10_000))
def test_edges_go_both_ways_once_and_never_to_the_node_itself(files: ModuleType, seed: int) -> None:
    parts = files.planetoid_parts(seed)
    adjacency = read(files, parts).adjacency.toarray()
    expected = np.zeros_like(adjacency)
    for node, ends in parts["graph"].items():
        for end in ends:
            if end != node:
                expected[node, end] = expected[end, node] = 1
    np.testing.assert_array_equal(adjacency, expected)


def test_the_public_split(files: ModuleType) -> None:
    parts = files.planetoid_parts(train=6, other=600, test=40)
    masks = read(files, parts).masks
    assert np.flatnonzero(masks["train_mask"]).tolist() == list(range(6))
    assert np.flatnonzero(masks["val_mask"]).tolist() == list(range(6, 506))
    assert sorted(np.flatnonzero(masks["test_mask"])) == sorted(map(int, parts["test.index"].split()))
    small = read(files, files.planetoid_parts(train=6, other=9)).masks
    assert np.flatnonzero(small["val_mask"]).tolist() == list(range(6, 15))


def test_rows_without_a_class_have_no_label(files: ModuleType) -> None:
    parts = files.planetoid_parts()
    parts["ally"] = parts["ally"].copy()
    parts["ally"][10] = 0
    assert read(files, parts).labels[10] == -1


def lacks_a_row(parts: dict[str, Any]) -> None:
    parts["allx"] = parts["allx"][:-1]


def lacks_a_test_node(parts: dict[str, Any]) -> None:
    parts["test.index"] = parts["test.index"].split(b"\n", 1)[1]


def lacks_a_feature(parts: dict[str, Any]) -> None:
    parts["tx"] = sparse.csr_matrix(parts["tx"][:, :-1])


def repeats_a_test_node(parts: dict[str, Any]) -> None:
    words = parts["test.index"].split()
    parts["test.index"] = b"\n".join([*words[1:], words[1]])


def has_a_training_node_to_test(parts: dict[str, Any]) -> None:
    parts["test.index"] = b"\n".join([*parts["test.index"].split()[1:], b"0"])


def has_a_node_far_away_to_test(parts: dict[str, Any]) -> None:
    parts["test.index"] = b"\n".join([*parts["test.index"].split()[1:], b"1000000000000"])


def has_words_for_numbers(parts: dict[str, Any]) -> None:
    parts["test.index"] = b"one two"


def has_numbers_past_64_bits(parts: dict[str, Any]) -> None:
    parts["test.index"] = b"9" * 40


def has_an_edge_to_nowhere(parts: dict[str, Any]) -> None:
    parts["graph"][0].append(10_000)


def has_a_negative_node(parts: dict[str, Any]) -> None:
    parts["graph"][0].append(-1)


def has_two_classes_a_node(parts: dict[str, Any]) -> None:
    parts["y"] = np.ones_like(parts["y"])


def has_flat_labels(parts: dict[str, Any]) -> None:
    parts["ty"] = parts["ty"].argmax(1)


def has_no_label(parts: dict[str, Any]) -> None:
    for part in ("y", "ally", "ty"):
        parts[part] = np.zeros_like(parts[part])


@pytest.mark.parametrize(
    "damage",
    [
        *(lacks_a_row, lacks_a_test_node, lacks_a_feature, repeats_a_test_node, has_a_training_node_to_test),
        *(has_a_node_far_away_to_test, has_words_for_numbers, has_numbers_past_64_bits, has_an_edge_to_nowhere),
        *(has_a_negative_node, has_two_classes_a_node, has_flat_labels, has_no_label),
    ],
)
def test_files_that_do_not_fit_each_other_are_refused(files: ModuleType, damage: Any) -> None:
    parts = files.planetoid_parts()
    damage(parts)
    with pytest.raises(ev.FileFormatError, match="raw"):
        read(files, parts)
