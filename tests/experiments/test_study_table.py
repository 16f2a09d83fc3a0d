"""The numbers of a table against ones worked by hand, and every format that it is written in."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from evidentia import EvidentiaError
from evidentia.experiments import (
    Beside,
    Comparison,
    Study,
    StudyStore,
    StudyTable,
    export_table,
    plan_study,
    study_table,
)
from evidentia.experiments.job import Outcome
from evidentia.experiments.paired import holm, paired_p_value
from evidentia.experiments.study_export import as_csv, as_latex, as_markdown, table_notes
from evidentia.experiments.study_results import as_json, read_results
from evidentia.experiments.study_row import TableRow, noise_width, study_row

VALUES = {
    # (data, method): the AUROC of entropy, a seed each
    ("cora", "s-bgcn-t-k"): [0.80, 0.82, 0.81, 0.83],
    ("cora", "dropedge"): [0.75, 0.76, 0.77, 0.78],
    ("citeseer", "s-bgcn-t-k"): [0.60, 0.60, 0.60, 0.60],
    ("citeseer", "dropedge"): [0.711],
}

STUDY = Study(
    name="few",
    title="A & B_1 at 100%",
    job="graph",
    unit="%",
    fixed={"task": "misclassification"},
    axes={"data": ["cora", "citeseer"], "method": ["s-bgcn-t-k", "dropedge"]},
    metrics=["auroc.entropy", "auroc.nothing"],
    seeds=4,
    beside=Beside(table="graph-dropedge", row="{data}/{method}", runs=10),
    compare=Comparison(axis="method", against="s-bgcn-t-k"),
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> StudyTable:
    plan = plan_study(STUDY)
    with StudyStore(tmp_path_factory.mktemp("store") / "results.sqlite") as store:
        store.add(plan.jobs.values())
        for cell in plan.cells:
            for seed in plan.seeds:
                values = VALUES[cell.labels["data"], cell.labels["method"]]
                key = plan.job(cell, seed).key
                assert store.claim(key)
                if seed < len(values):
                    store.finish(Outcome(key, {"auroc.entropy": values[seed]}, seconds=2.0, peak_memory_bytes=seed))
                else:
                    store.finish(Outcome(key, failure="Traceback: out of luck"))
        return study_table(plan, store)


def test_mean_spread_difference_and_noise(table: StudyTable) -> None:
    thesis, dropedge, constant, single = table.rows
    assert (dropedge.mean, dropedge.n) == (pytest.approx(76.5), 4)
    # Deviations of -1.5, -0.5, 0.5 and 1.5: a variance of 5 / 3.
    assert dropedge.std == pytest.approx((5 / 3) ** 0.5)
    assert dropedge.published.value == 76.6
    assert dropedge.difference == pytest.approx(-0.1)
    # The thesis prints no spread, so ours over its 10 runs; t of 3 degrees of freedom is 3.18245; half a digit is 0.05.
    assert dropedge.noise == pytest.approx(3.182446 * (5 / 12 + 5 / 30) ** 0.5 + 0.05, rel=1e-6)
    assert dropedge.verdict == "within noise"
    assert (thesis.published.value, thesis.mean, thesis.verdict) == (77.7, pytest.approx(81.5), "above")
    assert (constant.std, constant.noise, constant.verdict) == (0.0, pytest.approx(0.05), "below")
    assert (single.n, single.std, single.noise, single.verdict) == (1, None, None, None)
    assert single.difference == pytest.approx(0.0)


def test_noise_with_a_published_spread() -> None:
    # 6.6667 / 4 + 4 / 10 = 2.0667; its root is 1.4376.
    assert noise_width([80.0, 82.0, 84.0, 86.0], 2.0, 10) == pytest.approx(3.182446 * 1.437591, rel=1e-5)
    assert noise_width([1.0]) is None


def test_a_figure_printed_as_a_whole_number_is_known_to_half_of_one() -> None:
    study = Study(
        name="times", title="Times", job="semisup-time", axes={"method": ["l2rw"]}, metrics=["ratio"],
        fixed={"data": "mnist"}, beside=Beside(table="semisup-runtime", row="{method}"),
    )  # fmt: skip
    (cell,) = study.cells()
    # The thesis says "almost 3".
    row = study_row(study, cell, "ratio", {0: 2.6, 1: 2.6})
    assert row.verdict == "within noise"
    assert study_row(study, cell, "ratio", {0: 2.4, 1: 2.4}).verdict == "below"
    assert "| 2.600 ± 0.000 | 2 | 3 | -0.400 | within noise |" in as_markdown(
        StudyTable(
            *("times", "", "semisup-time", "full", "1", ("method",), (0, 1), ("",), "0", None),
            *(2, 2, (), (row,)),
        )
    )


def test_methods_are_compared_by_the_same_seeds(table: StudyTable) -> None:
    # The other graph has but one seed of both.
    (test,) = table.tests
    assert (dict(test.labels), test.metric, test.method, test.against) == (
        {"data": "cora"}, "auroc.entropy", "dropedge", "s-bgcn-t-k",
    )  # fmt: skip
    # Differences of -5, -6, -4 and -5: mean -5, spread 0.8165, t = -12.247.
    assert test.difference == pytest.approx(-5.0)
    assert test.p_value == pytest.approx(2 * stats.t.sf(12.24745, 3), rel=1e-4)
    assert test.corrected == test.p_value


def test_the_paired_test_is_that_of_scipy_and_holm_is_holm() -> None:
    draw = np.random.default_rng(0)
    first, second = draw.normal(size=(2, 9))
    assert paired_p_value(first, second) == pytest.approx(float(stats.ttest_rel(first, second).pvalue))
    assert paired_p_value([1.0, 2.0], [1.0, 2.0]) == 1.0
    assert paired_p_value([1.1, 2.1], [1.0, 2.0]) == 0.0
    with pytest.raises(EvidentiaError, match="at least two seeds"):
        paired_p_value([1.0], [2.0])
    with pytest.raises(EvidentiaError, match="the same length"):
        paired_p_value([1.0, 2.0], [2.0])
    # Sorted 0.005, 0.01, 0.03, 0.04: times 4, 3, 2 and 1, and never falling.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_markdown(table: StudyTable) -> None:
    text = as_markdown(table)
    assert "| cora | dropedge | auroc.entropy | 76.5 ± 1.3 | 4 | 76.6 | -0.1 | within noise |" in text
    assert "| citeseer | dropedge | auroc.entropy | 71.1 | 1 | 71.1 | +0.0 |  |" in text
    assert "| cora | auroc.entropy | dropedge | s-bgcn-t-k | -5.0 | 4 | 0.001 | 0.001 |" in text
    assert "- 3 of 16 jobs have no result, 3 of which failed" in text
    assert "auroc.nothing" not in text


def test_csv_has_all_digits(table: StudyTable) -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(table))))
    assert len(rows) == 4
    assert float(rows[1]["std"]) == table.rows[1].std
    assert (rows[1]["data"], rows[1]["verdict"], rows[3]["noise"]) == ("cora", "within noise", "")


def test_latex_is_escaped(table: StudyTable) -> None:
    asked = as_latex(replace(table, title="How wide?")).partition("\n")[0]
    assert asked.startswith("% How wide? Preset ")
    text = as_latex(table)
    assert r"data & method & metric & ours, \% & n & published & difference & verdict \\" in text
    assert r"76.5 $\pm$ 1.3" in text
    assert r"\begin{tabular}{lllrrrrr}" in text
    assert text.count(r"\\") == 5


def test_json_has_everything(table: StudyTable) -> None:
    content = json.loads(as_json(table))
    assert content["rows"][1]["values"] == {str(seed): 100 * VALUES["cora", "dropedge"][seed] for seed in range(4)}
    assert content["cells"][1]["configuration"] == {"task": "misclassification", "data": "cora", "method": "dropedge"}
    assert content["rows"][1]["published_cell"] == ["graph-dropedge", "cora/dropedge", "auroc.entropy"]
    assert (content["jobs"], content["done"], content["seconds"], content["peak_memory_bytes"]) == (16, 13, 26.0, 3)
    assert content["failures"][0] == {
        "job": "data citeseer, method dropedge, seed 1",
        "traceback": "Traceback: out of luck",
    }
    assert content["tests"][0]["method"] == "dropedge"
    assert content["code"] == table.code


def test_a_table_is_read_back_as_it_was_written(table: StudyTable, tmp_path: Path) -> None:
    export_table(table, tmp_path / "table.json")
    assert read_results(tmp_path / "table.json") == table


def test_the_ending_of_a_file_says_which_format(table: StudyTable, tmp_path: Path) -> None:
    for ending, start in ((".md", "## A & B"), (".csv", "data,method"), (".tex", "% A & B"), (".json", "{")):
        export_table(table, tmp_path / f"table{ending}")
        assert (tmp_path / f"table{ending}").read_text().startswith(start)
    with pytest.raises(EvidentiaError, match=r"ending in \.md, \.csv, \.tex, \.json"):
        export_table(table, tmp_path / "table.xlsx")


def test_misprints_are_marked_and_explained(tmp_path: Path) -> None:
    study = Study(
        name="misprint", title="Misprint", job="graph", unit="%", metrics=["accuracy"], seeds=2,
        axes={"data": ["photo"]}, fixed={"method": "s-gcn"},
        beside=Beside(table="graph-ablation-misclassification", row="{data}/s-gcn"),
    )  # fmt: skip
    plan = plan_study(study)
    with StudyStore(tmp_path / "results.sqlite") as store:
        store.add(plan.jobs.values())
        for key in plan.jobs:
            assert store.claim(key)
            store.finish(Outcome(key, {"accuracy": 0.9}))
        table = study_table(plan, store)
    assert "98.4*" in as_markdown(table)
    (note,) = table_notes(table)
    assert note.startswith("photo/s-gcn, accuracy (misprint: shifted by a column")


def test_small_figures_show_three_digits(table: StudyTable) -> None:
    rows = (TableRow(table.rows[0].cell, "seconds", {0: 0.00621, 1: 0.00625}, None, None),)
    text = as_markdown(replace(table, unit="", rows=rows, tests=()))
    assert "| seconds | 0.00623 ± 0.00003 | 2 |" in text
