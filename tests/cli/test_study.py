"""`evidentia study`: run, taken up again, printed and exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evidentia import EvidentiaError
from evidentia.cli import app
from evidentia.experiments import STUDIES
from evidentia.reports import graphs
from evidentia.reports.pictures.graph import GraphPictures

runner = CliRunner()

STUDY = """
name = "tiny"
title = "Tiny"
job = "graph"
metrics = ["accuracy", "auroc.entropy"]
unit = "%"
seeds = 2
fixed = { data = "synthetic", epochs = 3 }
axes.method = ["gcn", "s-gcn"]
"""


def test_a_study_of_ones_own_is_run_once_and_exported(tmp_path: Path) -> None:
    file, store, table = tmp_path / "tiny.toml", tmp_path / "results.sqlite", tmp_path / "tiny.json"
    file.write_text(STUDY)
    command = ["study", str(file), "--store", str(store), "--export", str(table), "--export", str(tmp_path / "t.md")]
    first = runner.invoke(app, command)
    assert first.exit_code == 0, first.output
    assert "accuracy" in first.stdout
    assert "4 of 4 jobs" in first.stderr
    saved = json.loads(table.read_text())
    assert [row["n"] for row in saved["rows"]] == [2, 2, 2, 2]
    assert (tmp_path / "t.md").read_text().startswith("## Tiny")
    again = runner.invoke(app, command)
    assert "0 of 4 jobs" in again.stderr
    assert "4 done before" in again.stderr
    assert again.stdout == first.stdout
    assert json.loads(table.read_text()) == saved
    more = runner.invoke(app, [*command, "--seeds", "3"])
    assert "2 of 6 jobs" in more.stderr


def test_titles_and_labels_with_square_brackets_are_printed_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "tiny.toml"
    axes = 'axes.method = { "[/gcn]" = { method = "gcn" }, ":bell:" = { method = "s-gcn" } }'
    file.write_text(
        STUDY.replace('"Tiny"', '"Tiny [red]"').replace("seeds = 2", "seeds = 1").replace(STUDY.splitlines()[-1], axes)
    )
    result = runner.invoke(app, ["study", str(file), "--store", str(tmp_path / "results.sqlite")])
    assert result.exit_code == 0, f"{result.output} {result.exception}"
    for word in ("Tiny [red] (", "[/gcn]", ":bell:"):
        assert word in result.stdout


def test_a_report_of_one_study_and_of_several(tmp_path: Path) -> None:
    file, table = tmp_path / "tiny.toml", tmp_path / "tiny.json"
    file.write_text(STUDY)
    command = ["study", str(file), "--store", str(tmp_path / "results.sqlite"), "--export", str(table)]
    result = runner.invoke(app, [*command, "--report", str(tmp_path / "one.html")])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "one.html").read_text()
    assert "<h1>Tiny</h1>" in page
    assert f"evidentia study {file} --preset quick" in page
    several = runner.invoke(
        app, ["report", str(table), str(table), "--out", str(tmp_path / "two.html"), "--title", "Two"]
    )
    assert several.exit_code == 0, several.output
    assert "<h1>Two</h1>" in (tmp_path / "two.html").read_text()
    file.write_text("{}")
    broken = runner.invoke(app, ["report", str(file), "--out", str(tmp_path / "none.html")])
    assert broken.exit_code == 1
    assert "is no table of a study" in str(broken.exception)
    assert not (tmp_path / "none.html").exists()


PICTURES = """
[pictures]
keep = { method = ["gcn", "s-gcn"] }
"""


def test_networks_are_drawn_unless_they_are_not_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = GraphPictures.train

    def no_evidence(self: GraphPictures, configuration: dict[str, Any], seed: int) -> Any:
        if configuration["method"] == "s-gcn":
            raise EvidentiaError("the evidence was lost")
        return train(self, configuration, seed)

    monkeypatch.setattr(GraphPictures, "train", no_evidence)
    monkeypatch.setattr(graphs, "_in_the_plane", lambda tsne, hidden, seed: hidden[:, :2].numpy())
    file, html = tmp_path / "tiny.toml", tmp_path / "tiny.html"
    file.write_text(STUDY + PICTURES)
    command = ["study", str(file), "--store", str(tmp_path / "results.sqlite"), "--seeds", "1", "--report", str(html)]
    result = runner.invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "no picture of s-gcn: the evidence was lost." in result.stderr
    page = html.read_text()
    assert "There is no picture of s-gcn: the evidence was lost." in page
    assert "Nodes in the plane: gcn" in page
    assert runner.invoke(app, [*command, "--no-pictures"]).exit_code == 0
    assert "Nodes in the plane" not in html.read_text()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(GraphPictures, "train", interrupted)
    html.unlink()
    stopped = runner.invoke(app, command)
    assert "the report is written without pictures of networks" in stopped.stderr
    assert "<h1>Tiny</h1>" in html.read_text()


def test_pictures_that_cannot_be_are_told_before_any_work(tmp_path: Path) -> None:
    file, store = tmp_path / "tiny.toml", tmp_path / "results.sqlite"
    file.write_text(STUDY + PICTURES + "fixed = { hiden = 3 }\n")
    command = ["study", str(file), "--store", str(store), "--report", str(tmp_path / "tiny.html")]
    assert "hiden" in str(runner.invoke(app, command).exception)
    assert not store.exists()


def test_the_list_has_every_study() -> None:
    result = runner.invoke(app, ["study", "--list"])
    assert result.exit_code == 0
    assert all(name in result.stdout for name in STUDIES)
    assert runner.invoke(app, ["study"]).exit_code == 2


def test_failures_are_shown_and_the_command_fails(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text(
        "from evidentia.experiments.study import Study\n"
        "def job(configuration, seed):\n"
        "    return {'score': 1 / (configuration['size'] - 1)}\n"
        "study = Study(name='broken', title='Broken', job=job, metrics=['score'], axes={'size': [1, 2]}, seeds=1)\n"
    )
    result = runner.invoke(app, ["study", str(file), "--store", str(tmp_path / "results.sqlite")])
    assert result.exit_code == 1
    assert "failed: size 1, seed 0" in result.stderr
    assert "ZeroDivisionError" in result.stderr
    assert "1 of 2 jobs have no result" in result.stdout


def test_an_interrupted_study_says_how_to_go_on(tmp_path: Path) -> None:
    file = tmp_path / "stopped.py"
    file.write_text(
        "from evidentia.experiments.study import Study\n"
        "def job(configuration, seed):\n"
        "    if seed == 1:\n"
        "        raise KeyboardInterrupt\n"
        "    return {'score': 1.0}\n"
        "study = Study(name='stopped', title='Stopped', job=job, metrics=['score'], seeds=3)\n"
    )
    result = runner.invoke(app, ["study", str(file), "--store", str(tmp_path / "results.sqlite")])
    assert result.exit_code == 130
    assert "stopped: 1 of 3 jobs are done; the same command goes on from there" in " ".join(result.stderr.split())


def test_what_is_wrong_is_told_before_any_work(tmp_path: Path) -> None:
    store, file = tmp_path / "results.sqlite", tmp_path / "file"
    file.touch()
    for arguments, problem in (
        (["graph-ood", "--export", f"{file}/table.md"], "table.md cannot be written"),
        (["graph-ood", "--report", f"{file}/report.html"], "report.html cannot be written"),
        (["graph-odd"], "there is no study named 'graph-odd'"),
        (["graph-ood", "--export", "table.xlsx"], "ending in .md"),
        (["graph-ood", "--address", "auto"], "an address goes with the engine ray"),
        (["graph-ood", "--workers", "3"], "use pool for 3 workers"),
    ):
        result = runner.invoke(app, ["study", *arguments, "--store", str(store)])
        assert result.exit_code == 1
        with pytest.raises(ValueError, match=problem):
            raise result.exception
    assert not store.exists()


def test_a_damaged_store_is_never_used(tmp_path: Path) -> None:
    store = tmp_path / "results.sqlite"
    store.write_bytes(b"SQLite format 3\0 and no more")
    result = runner.invoke(app, ["study", "graph-ood", "--store", str(store)])
    assert "damaged" in str(result.exception)


def test_a_table_is_put_together_from_parts(tmp_path: Path) -> None:
    file, part = tmp_path / "tiny.toml", tmp_path / "part.json"
    file.write_text(STUDY)
    first = ["study", str(file), "--store", str(tmp_path / "first.sqlite")]
    result = runner.invoke(app, [*first, "--only", "method=gcn", "--export", str(part)])
    assert "2 of 2 jobs" in result.stderr
    other = ["study", str(file), "--store", str(tmp_path / "other.sqlite"), "--known", str(part)]
    result = runner.invoke(app, [*other, "--minutes", "0"])
    assert result.exit_code == 0, result.output
    assert "2 results taken up" in result.stderr
    assert "2 left, with which the same command goes on" in " ".join(result.stderr.split())
    assert "2 of 4 jobs have no result" in result.stdout
    result = runner.invoke(app, other)
    assert "2 of 4 jobs" in result.stderr
    assert runner.invoke(app, [*first, "--only", "gcn"]).exit_code == 2
    assert "no method=gat" in str(runner.invoke(app, [*first, "--only", "method=gat"]).exception)
