"""README and documentation against the committed results: whatever stands there comes from a run."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from evidentia import EvidentiaError
from evidentia.experiments import STUDIES, StudyTable, published_figure, read_results
from evidentia.experiments.paired import holm, paired_p_value
from evidentia.experiments.result_tables import fill_page, load_tables, main
from evidentia.experiments.study import Cell
from evidentia.experiments.study_results import as_json
from evidentia.experiments.study_row import TableRow

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
FILES = sorted(RESULTS.glob("*/*.json"))
PAGES = (ROOT / "README.md", ROOT / "docs" / "results.md", ROOT / "docs" / "guides" / "semisup.md")
# What tables that answer one question are made of.
BEHIND = {
    "README.md": {"full/digits", "full/graph-ood", "full/graph-misclassification", "full/semisup-moons-controls"},
    "semisup.md": {"full/semisup-mnist-clean", "full/semisup-mnist-controls", "quick/semisup-found"},
    "results.md": {"full/events-delay"},
}


@pytest.fixture(scope="module")
def tables() -> dict[str, StudyTable]:
    return load_tables(RESULTS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_say_what_the_results_say(page: Path, tables: dict[str, StudyTable]) -> None:
    text = page.read_text()
    assert fill_page(text, tables) == text, f"{page.name} and results/ differ: run make readme"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_other_results_would_be_noticed(page: Path, tables: dict[str, StudyTable]) -> None:
    text = page.read_text()
    shown = tables.keys() & set(re.findall(r"<!-- results: ([\w/-]+) -->", text))
    for name in shown | BEHIND.get(page.name, set()):
        table = tables[name]
        other = replace(
            table,
            rows=tuple(replace(row, values={s: v + 1 for s, v in row.values.items()}) for row in table.rows),
        )
        assert fill_page(text, {**tables, name: other}) != text


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_file_of_results_is_whole_and_tells_where_it_comes_from(file: Path) -> None:
    text = file.read_text()
    table = read_results(file)
    # Means, differences and verdicts are those of the values, and published figures those of the thesis.
    assert as_json(table) == text
    assert table.study == file.stem
    assert table.study in STUDIES
    assert table.preset == file.parent.name
    assert table.commands
    assert not table.failures
    # Nothing tells whose machine it was.
    assert not re.search(r'"(/|[A-Za-z]:\\\\|~)', text)
    if table.code is not None:
        assert table.environments
        # What takes days may be run in parts, of which the page then speaks.
        assert table.missing == 0 or table.preset == "full"


def test_all_committed_results_are_in_the_documentation() -> None:
    shown = re.findall(r"<!-- results: ([\w/-]+) -->", (ROOT / "docs" / "results.md").read_text())
    assert {f"{file.parent.name}/{file.stem}" for file in FILES} <= set(shown)


def test_seeds_that_were_run_by_two_commands_gave_the_same(tables: dict[str, StudyTable]) -> None:
    compared = 0
    for name, full in tables.items():
        quick = tables.get(name.replace("full/", "quick/"))
        if quick is None or quick is full:
            continue
        # Other code may round differently, which training makes more of.
        tolerance = 0.05 if quick.code == full.code else 1.0
        known = {(json.dumps(row.cell.configuration, sort_keys=True), row.metric): row.values for row in full.rows}
        for row in quick.rows:
            values = known.get((json.dumps(row.cell.configuration, sort_keys=True), row.metric), {})
            for seed in row.values.keys() & values.keys():
                assert row.values[seed] == pytest.approx(values[seed], abs=tolerance)
                compared += 1
    assert compared > 100


def test_what_pages_say_in_words_is_so(tables: dict[str, StudyTable]) -> None:
    found = {
        row.cell.labels["data"]: row.verdict
        for row in tables["full/graph-misclassification"].rows
        if row.cell.labels["method"] == "s-bgcn-t-k" and row.metric == "auroc.dissonance"
    }
    assert all(found[name] in ("above", "within noise") for name in ("cora", "citeseer", "pubmed"))
    assert (found["photo"], found["computers"], found["physics"]) == ("within noise", "below", "below")
    ours = {
        row.cell.labels["data"]: row.mean
        for row in tables["full/graph-ood"].rows
        if row.cell.labels["method"] == "s-bgcn-t-kw" and row.metric == "auroc.vacuity"
    }
    best = {name: published_figure("graph-ood", f"{name}/s-bgcn-t-k", "auroc.vacuity").value for name in ours}
    assert [name for name in ours if ours[name] < best[name]] == ["citeseer"]


def test_ours_beside_a_prior_network_is_as_the_readme_has_it(tables: dict[str, StudyTable]) -> None:
    by_method = {
        method: {
            row.cell.labels["data"]: row
            for row in tables["full/graph-misclassification"].rows
            if row.cell.labels["method"] == method and row.metric == "auroc.dissonance"
        }
        for method in ("s-bgcn-t-k", "dpn-gcn")
    }
    pairs = {name: (row, by_method["dpn-gcn"][name]) for name, row in by_method["s-bgcn-t-k"].items()}
    assert all(list(row.values) == list(other.values) for row, other in pairs.values())
    found = [paired_p_value(list(row.values.values()), list(other.values.values())) for row, other in pairs.values()]
    sure = [name for name, p in zip(pairs, holm(found), strict=True) if p < 0.05]
    assert sure == ["cora", "citeseer"]
    assert [name for name, (row, other) in pairs.items() if row.mean < other.mean] == ["pubmed"]
    said = re.search(r"p = (\.\d+), but (\.\d+) after Holm's", (ROOT / "README.md").read_text())
    place = list(pairs).index("physics")
    assert said is not None
    assert [float(p) for p in said.groups()] == [round(found[place], 2), round(holm(found)[place], 2)]


def test_numbers_of_early_events_in_the_text_are_those_of_the_results(tables: dict[str, StudyTable]) -> None:
    text = (ROOT / "docs" / "results.md").read_text()

    def said(pattern: str) -> list[float]:
        found = re.search(pattern.replace(" ", r"\s+"), text)
        assert found is not None, pattern
        return [float(number) for number in found.groups()]

    test = tables["full/events-delay"].tests[0]
    assert dict(test.labels) == {"data": "domestic", "limit": "0.25 s"}
    assert said(r"p = (\.\d+), (\.\d+) after Holm") == [round(test.p_value, 4), round(test.corrected, 3)]
    ablation = {(row.cell.labels["method"], row.metric): row for row in tables["quick/events-ablation"].rows}
    late = [row.mean / row.published.value for (_, metric), row in ablation.items() if metric == "delay"]
    assert said(r"delays are ([\d.]+) to (\d+) times") == [round(min(late), 1), round(max(late))]
    lost = ablation["mtenn-phase1", "macro_f1"].mean - ablation["mtenn-umss", "macro_f1"].mean
    assert said(r"an F1 that is ([\d.]+) below that of phase I") == [round(lost, 2)]
    time = {row.cell.labels["method"]: row for row in tables["quick/events-inference"].rows}
    assert {row.verdict for row in time.values() if row.published} == {"below"}
    slower = (time["crnn-epistemic"].mean + time["crnn-aleatoric"].mean) / 2 / time["crnn"].mean
    assert said(r"dropout takes ([\d.]+) times as long") == [round(slower, 1)]


def test_only_what_stands_between_markers_is_written(tables: dict[str, StudyTable], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- results: wrong-labels -->\nold\n<!-- end -->\nafter\n")
    main([str(RESULTS), str(page)])
    lines = page.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    assert "old" not in lines
    assert any(line.startswith("| Cora (10 seeds) |") for line in lines)
    main([str(RESULTS), str(page)])
    assert page.read_text().splitlines() == lines


def test_a_table_of_which_a_part_was_run_says_so(tables: dict[str, StudyTable]) -> None:
    table = tables["full/semisup-impact"]
    part = {"full/semisup-impact": replace(table, jobs=table.done + 7)}
    page = fill_page("<!-- results: all -->\n<!-- end -->\n<!-- results: full/semisup-impact -->\n<!-- end -->", part)
    assert f"| 10 ({table.done} of {table.done + 7} jobs) |" in page
    assert f"{table.done} of {table.done + 7} jobs are done" in page


def test_figures_of_few_seeds_are_marked_in_the_table_of_early_alarms() -> None:
    cells = [Cell({"data": "domestic", "limit": "0.30 s", "method": name}, {}) for name in ("crnn", "early-pretrained")]
    rows = [
        TableRow(cell, f"at_delay.{metric}", dict.fromkeys(range(seeds), value), None, None)
        for cell, seeds in zip(cells, (5, 2), strict=True)
        for metric, value in (("macro_f1", 0.75), ("false_alarms_per_minute", 2.0))
    ]
    table = StudyTable(
        *("events-delay", "", "events", "full", "1", ("data", "limit", "method"), tuple(range(5)), ("",), "0", None),
        jobs=7,
        done=7,
        cells=(),
        rows=tuple(rows),
    )
    page = fill_page("<!-- results: early-alarms -->\n<!-- end -->", {"full/events-delay": table})
    row = "| domestic | 0.30 s | 0.750, 2.0 a minute | not run | 0.750, 2.0 a minute (n = 2) |"
    assert row in page


def test_bad_markers_are_told(tables: dict[str, StudyTable], tmp_path: Path) -> None:
    with pytest.raises(EvidentiaError, match="no results named 'none/such'; choose one of: digits, unknown-classes"):
        fill_page("<!-- results: none/such -->\n<!-- end -->", tables)
    # A study that was not run has no table, and the page says so.
    assert "No results of this" in fill_page("<!-- results: quick/semisup-cifar100 -->\n<!-- end -->", tables)
    with pytest.raises(EvidentiaError, match="needs the results full/graph-ood, got quick/graph-ood"):
        fill_page("<!-- results: unknown-classes -->\n<!-- end -->", {"quick/graph-ood": tables["quick/graph-ood"]})
    with pytest.raises(EvidentiaError, match="not closed"):
        fill_page("<!-- results: all -->\n", tables)
    with pytest.raises(EvidentiaError, match="there are no results in"):
        load_tables(tmp_path)


def test_a_file_that_is_no_table_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    with pytest.raises(EvidentiaError, match="there is no file"):
        read_results(file)
    for text, message in (
        ("{", "is no table of a study"),
        ('{"a": 1}', "is no table of a study"),
        ('{"format_version": 99}', "has format version 99, and this release reads version 1"),
        ('{"format_version": 1, "cells": []}', "is a damaged table of a study: evidentia_version: Field required"),
    ):
        file.write_text(text)
        with pytest.raises(EvidentiaError, match=message):
            read_results(file)
    file.write_text("[" * 100_000)
    with pytest.raises(EvidentiaError, match="is no table of a study"):
        read_results(file)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("cells",), [], "no cell has them"),
        (("cells", 0, "cpu_seconds"), "long", r"cells\.0\.cpu_seconds"),
        (("axes",), ["data", "colour"], "the axes are data, colour"),
        (("title",), None, "title: Input should be a valid string"),
        (("rows", 0, "values"), {}, r"rows\.0\.values"),
        (("rows", 0, "values", "0"), float("nan"), "finite number"),
        (("rows", 0, "values", "0"), 10**400, "finite number"),
        (("rows", 0, "noise"), "loud", r"rows\.0\.noise"),
        (("rows", 0, "published_cell"), ["none", "a", "b"], "no published table named 'none'"),
        (("tests", 0, "labels"), {"colour": "red"}, "a test has the labels"),
        (("environments",), ["a machine"], r"environments\.0"),
    ],
)
def test_a_table_that_is_not_whole_is_refused_when_it_is_read(
    tmp_path: Path, place: tuple[str | int, ...], value: object, message: str
) -> None:
    content = json.loads((RESULTS / "full" / "graph-ood.json").read_text())
    part = content
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value
    file = tmp_path / "table.json"
    file.write_text(json.dumps(content))
    with pytest.raises(EvidentiaError, match=f"is a damaged table of a study: .*{message}"):
        read_results(file)
