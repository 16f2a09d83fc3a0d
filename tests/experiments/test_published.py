"""The published figures: complete, as printed, and with keys that our own results can be looked up by."""

from __future__ import annotations

import csv
import math
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import evidentia.experiments
from evidentia import EvidentiaError
from evidentia.experiments import PublishedFigure, published, published_figure
from evidentia.graphs.methods import GRAPH_METHODS

FOLDER = Path(evidentia.experiments.__file__).parent / "published_tables"

# Counted in the thesis: rows times columns, or the numbers of each row, times data sets.
COUNTS = {
    "graph-misclassification": 6 * (11 + 7 + 7 + 7 + 3),
    "graph-ood": 6 * (10 + 6 + 6 + 6 + 2),
    "graph-ablation-misclassification": 4 * (11 + 11 + 11 + 7) + 2 * (11 + 11 + 11 + 2),
    "graph-ablation-ood": 6 * (10 + 10 + 10 + 6),
    "graph-dropedge": 2 * (10 + 6),
    "graph-datasets": 7 * 6,
    "graph-ood-datasets": 4 * 6,
    "graph-settings": 6 * 6,
    "graph-settings-text": 16,
    "graph-complexity": 2 * 5,
    "epistemic-ssl": 2 * 4,
    "semisup-vacuity-mnist": 5,
    "semisup-vacuity-cifar10": 4,
    "semisup-moons": 2 * 6 * 3,
    "semisup-moons-p": 3 * 2,
    "semisup-settings": 3 + 1 + 2 + 3 + 4 + 3,
    "semisup-settings-text": 4 + 5 + 4 * 8,
    "semisup-datasets": 4 + 5 + 5 + 3,
    "semisup-svhn": 6 * 3,
    "semisup-cifar100": 6 * 3,
    "semisup-clusters": 2 * 4,
    "semisup-runtime": 6,
    "semisup-gains": 3,
    "events-datasets": 4 * 6,
    "events-audio": 9 * 5 * 2,
    "events-video": 8 * 6 * 2,
    "events-ablation": 5 * 2 * 2,
    "events-inference": 9 + 8,
    "events-settings-text": 11 + 6 * 5 + 1,
}

SPOT = [
    ("graph-misclassification", "cora/s-bgcn-t-k", "auroc.dissonance", 82.4),
    ("graph-misclassification", "cora/gcn", "auroc.entropy", 79.6),
    ("graph-misclassification", "pubmed/dpn-gcn", "auroc.aleatoric", 72.7),
    ("graph-misclassification", "photo/drop-gcn", "aupr.epistemic", 98.1),
    ("graph-misclassification", "computers/edl-gcn", "aupr.dissonance", 97.1),
    ("graph-misclassification", "physics/gcn", "accuracy", 92.8),
    ("graph-ood", "citeseer/s-bgcn-t-k", "aupr.vacuity", 86.8),
    ("graph-ood", "cora/edl-gcn", "auroc.vacuity", 84.5),
    ("graph-ood", "cora/edl-gcn", "auroc.entropy", 83.3),
    ("graph-ood", "photo/s-bgcn-t-k", "auroc.epistemic", 32.2),
    ("graph-ood", "computers/gcn", "aupr.entropy", 48.7),
    ("graph-ood", "physics/drop-gcn", "auroc.entropy", 89.3),
    ("graph-ablation-misclassification", "cora/s-bgcn-t", "accuracy", 82.2),
    ("graph-ablation-misclassification", "citeseer/s-gcn", "aupr.entropy", 82.5),
    ("graph-ablation-misclassification", "photo/s-bgcn", "auroc.dissonance", 93.6),
    ("graph-ablation-misclassification", "physics/s-gcn", "auroc.vacuity", 89.1),
    ("graph-ablation-ood", "citeseer/s-gcn", "auroc.vacuity", 72.0),
    ("graph-ablation-ood", "photo/s-bgcn-t", "aupr.aleatoric", 82.0),
    ("graph-ablation-ood", "physics/s-gcn", "aupr.vacuity", 66.2),
    ("graph-dropedge", "cora/dropedge", "auroc.epistemic", 56.1),
    ("graph-dropedge", "citeseer/dropedge", "aupr.entropy", 84.0),
    ("graph-datasets", "physics", "nodes", 34493),
    ("graph-datasets", "citeseer", "features", 3703),
    ("graph-datasets", "photo", "train", 160),
    ("graph-ood-datasets", "pubmed", "positive-ratio", 40.4),
    ("graph-ood-datasets", "computers", "train-classes", 5),
    ("graph-settings", "physics", "weight_decay", 0.001),
    ("graph-settings", "computers", "dropout", 0.2),
    ("graph-settings", "cora", "epochs", 200),
    ("graph-settings-text", "all", "prior_weight.ood", 0.1),
    ("graph-complexity", "s-bgcn-t", "train", 2),
    ("epistemic-ssl", "supervised", "epistemic.ood", 0.249),
    ("epistemic-ssl", "pseudo-label", "epistemic.id", 0.041),
    ("semisup-vacuity-mnist", "fashion-mnist", "vacuity", 0.25),
    ("semisup-vacuity-cifar10", "cifar10", "vacuity", 0.15),
    ("semisup-moons", "faraway/none/batch", "accuracy.25", 60.7),
    ("semisup-moons", "boundary/none/none", "accuracy.75", 82.4),
    ("semisup-moons-p", "boundary/ift/p-5", "accuracy.50", 93.9),
    ("semisup-settings", "vat", "xi", 1e-6),
    ("semisup-settings", "mean-teacher", "learning_rate", 0.0004),
    ("semisup-settings", "pseudo-label", "threshold", 0.95),
    ("semisup-settings-text", "mnist", "updates", 2000),
    ("semisup-settings-text", "svhn", "l1", 1e-7),
    ("semisup-datasets", "svhn", "extra", 531131),
    ("semisup-svhn", "vat/ours-crw", "accuracy.75", 94.9),
    ("semisup-svhn", "vat/l2rw", "accuracy.50", 93.5),
    ("semisup-cifar100", "pi-model/ds3l", "accuracy.75", 57.4),
    ("semisup-cifar100", "mean-teacher/ours-l1", "accuracy.25", 61.5),
    ("semisup-clusters", "vat/ours-crw/k-20", "accuracy.50", 96.3),
    ("semisup-clusters", "pseudo-label/ours-crw/k-30", "accuracy.50", 95.9),
    ("semisup-runtime", "ours/last/l-5", "ratio.high", 1.8),
    ("semisup-gains", "cifar10/meta-over-l2rw", "accuracy-gain.75", 4.5),
    ("events-datasets", "ava", "test", 23498),
    ("events-datasets", "alarm", "validation", 1355),
    ("events-audio", "desed/mtenn-wbc", "f1", 0.727),
    ("events-audio", "explosion/crnn-epistemic", "f1", 0.28),
    ("events-audio", "liquid/mtenn-umss", "delay", 0.026),
    ("events-video", "ava-0.2s/mtenn-umss", "delay", 0.081),
    ("events-video", "ava-0.375s/aia", "f1", 0.382),
    ("events-ablation", "liquid/mtenn-bce", "f1", 0.083),
    ("events-ablation", "engine/mtenn-phase1", "delay", 0.448),
    ("events-inference", "desed/conformer", "inference", 6.6),
    ("events-inference", "ava-0.3s/acar-epistemic", "inference", 564),
    ("events-settings-text", "ava-0.25s", "segments", 12),
]


def test_every_number_of_every_table_is_there() -> None:
    assert Counter(figure.table for figure in published()) == COUNTS


@pytest.mark.parametrize(("table", "row", "column", "value"), SPOT)
def test_figures_are_as_printed(table: str, row: str, column: str, value: float) -> None:
    figure = published_figure(table, row, column)
    assert figure is not None
    assert figure.value == value


def test_the_spot_checks_touch_every_table() -> None:
    assert {table for table, *_ in SPOT} == set(COUNTS)


@pytest.mark.parametrize(
    ("table", "row", "column", "spread"),
    [
        ("semisup-moons", "faraway/none/frozen", "accuracy.50", 1.1),
        ("semisup-moons-p", "faraway/ift/p-5", "accuracy.50", 3.1),
        ("semisup-svhn", "vat/mwn", "accuracy.75", 1.3),
        ("semisup-cifar100", "mean-teacher/ds3l", "accuracy.75", 1.2),
        ("semisup-clusters", "vat/ours-crw/k-5", "accuracy.50", 0.7),
    ],
)
def test_spreads_are_as_printed(table: str, row: str, column: str, spread: float) -> None:
    figure = published_figure(table, row, column)
    assert figure is not None
    assert figure.spread == spread


def test_spreads_are_there_for_whole_tables_or_not_at_all() -> None:
    with_spread = {figure.table for figure in published() if figure.spread is not None}
    assert with_spread == {f"semisup-{name}" for name in ("moons", "moons-p", "svhn", "cifar100", "clusters")}
    assert all(figure.spread is not None for name in with_spread for figure in published(name))


def test_values_and_units_make_sense() -> None:
    for figure in published():
        assert math.isfinite(figure.value), figure
        assert figure.value > 0, figure
        assert figure.unit in {"%", "s", "ms", "Hz", "count", "1"}, figure
        if figure.unit == "%":
            assert figure.value <= 100, figure
        if figure.unit == "count":
            assert figure.value == int(figure.value), figure
        if figure.column == "f1" or figure.column.startswith(("vacuity", "epistemic.")):
            assert figure.value < 1, figure


@pytest.mark.parametrize("table", COUNTS)
def test_files_name_every_row_and_column_once(table: str) -> None:
    header, *lines = csv.reader((FOLDER / f"{table}.csv").read_text(encoding="utf-8").splitlines())
    assert len(set(header)) == len(header)
    assert len({line[0] for line in lines}) == len(lines)
    assert {len(line) for line in lines} == {len(header)}


def test_notes_are_of_figures_that_exist() -> None:
    with (FOLDER / "_notes.csv").open(encoding="utf-8", newline="") as file:
        notes = list(csv.DictReader(file))
    keys = [(note["table"], note["row"], note["column"]) for note in notes]
    assert len(set(keys)) == len(keys)
    for key, note in zip(keys, notes, strict=True):
        figure = published_figure(*key)
        assert figure is not None, key
        assert (figure.note, figure.misprint) == (note["note"], note["misprint"] == "yes")
        assert note["misprint"] in {"", "yes"}
        assert figure.note
    assert sum(bool(figure.note) for figure in published()) == len(notes)


def test_misprints_are_flagged() -> None:
    misprints = {(figure.table, figure.row, figure.column) for figure in published() if figure.misprint}
    uncertainties = ("vacuity", "dissonance", "aleatoric", "epistemic", "entropy")
    assert misprints == {
        *(("graph-ood-datasets", name, "positive-ratio") for name in ("cora", "computers", "physics")),
        *(("graph-ablation-misclassification", f"{name}/s-gcn", "accuracy") for name in ("photo", "computers")),
        *(("graph-ablation-misclassification", "pubmed/s-bgcn-t-k", f"auroc.{name}") for name in uncertainties),
        ("graph-ablation-ood", "physics/s-gcn", "aupr.vacuity"),
        ("graph-complexity", "s-bgcn", "train"),
        *(("events-ablation", "liquid/mtenn-wbc", column) for column in ("delay", "f1")),
        ("events-ablation", "liquid/mtenn-umss", "f1"),
        ("events-settings-text", "audio", "segment"),
    }


def test_where_two_tables_disagree_both_cells_say_so() -> None:
    pairs = [
        ("graph-misclassification", "graph-ablation-misclassification"),
        ("graph-misclassification", "graph-dropedge"),
        ("graph-ood", "graph-ablation-ood"),
        ("events-audio", "events-ablation"),
    ]
    shared = [
        (figure, other)
        for first, second in pairs
        for figure in published(first)
        if (other := published_figure(second, figure.row, figure.column)) is not None
    ]
    assert len(shared) == 6 * 11 + 2 * 10 + 6 * 10 + 2 * 2 * 2
    for figure, other in shared:
        assert (figure.value != other.value) == (other.misprint and "main table" in other.note), other
        assert (figure.value != other.value) == ("ablation table" in figure.note), figure


def _reachable(positive: float, auroc: PublishedFigure, aupr: PublishedFigure) -> bool:
    # With n_k negatives before the k-th of P positives, AUPR is the mean of k / (k + n_k) and AUROC fixes the sum of
    # n_k. The least such mean, by a Lagrange multiplier, has n_k + k in proportion to the square root of k.
    least = 4 / 9 * positive / ((1 - auroc.value / 100) * (1 - positive) + positive / 2)
    return aupr.value / 100 > least - 0.005


def _pairs(table: str, data: str) -> list[tuple[PublishedFigure, PublishedFigure]]:
    return [
        (figure, other)
        for figure in published(table)
        if figure.row.startswith(f"{data}/") and figure.column.startswith("auroc.")
        if (other := published_figure(table, figure.row, figure.column.replace("auroc", "aupr"))) is not None
    ]


@pytest.mark.parametrize("data", ["cora", "citeseer", "pubmed", "photo", "computers", "physics"])
def test_areas_are_out_of_reach_exactly_where_the_positive_ratio_is_a_misprint(data: str) -> None:
    ratio = published_figure("graph-ood-datasets", data, "positive-ratio")
    assert ratio is not None
    pairs = [*_pairs("graph-ood", data), *_pairs("graph-ablation-ood", data)]
    assert len(pairs) == 15 + 18
    assert all(_reachable(ratio.value / 100, *pair) for pair in pairs) == (not ratio.misprint)
    real = {"cora": 0.329, "computers": 0.296, "physics": 0.182}.get(data, ratio.value / 100)
    assert all(_reachable(real, *pair) for pair in pairs)


@pytest.mark.parametrize("data", ["cora", "citeseer", "pubmed", "photo", "computers", "physics"])
@pytest.mark.parametrize("table", ["graph-misclassification", "graph-ablation-misclassification"])
def test_areas_are_within_reach_of_the_accuracy(table: str, data: str) -> None:
    for auroc, aupr in _pairs(table, data):
        accuracy = published_figure(table, auroc.row, "accuracy")
        assert accuracy is not None
        assert _reachable(accuracy.value / 100, auroc, aupr), auroc


@pytest.mark.parametrize(
    "table", ["graph-misclassification", "graph-ood", "graph-dropedge", *(t for t in COUNTS if "graph-ablation" in t)]
)
def test_graph_rows_are_data_sets_and_methods_known_here(table: str) -> None:
    for figure in published(table):
        data, method = figure.row.split("/")
        assert data in {"cora", "citeseer", "pubmed", "photo", "computers", "physics"}
        assert method in GRAPH_METHODS


def test_keys_are_plain() -> None:
    for figure in published():
        for key in (figure.table, figure.row, figure.column):
            assert key == key.lower().strip()
            assert not set(key) - set("abcdefghijklmnopqrstuvwxyz0123456789-_./"), key


def test_a_cell_without_a_number_is_none() -> None:
    assert published_figure("graph-ood", "cora/gcn", "auroc.vacuity") is None
    assert published_figure("graph-ood", "cora/unheard-of", "auroc.vacuity") is None


def test_an_unknown_table_is_an_error_that_names_the_known_ones() -> None:
    for ask in (lambda: published("graph-odd"), lambda: published_figure("graph-odd", "cora/gcn", "accuracy")):
        with pytest.raises(EvidentiaError, match=r"no published table named 'graph-odd'; choose one of: .*graph-ood"):
            ask()


def test_importing_the_figures_brings_in_no_optional_package() -> None:
    code = """
import sys
import evidentia
before = set(sys.modules)
from evidentia.experiments import published
published()
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(new & {"torch_geometric", "matplotlib", "pandas", "sklearn"}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
