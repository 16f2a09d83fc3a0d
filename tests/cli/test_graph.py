"""`evidentia graph` on the built-in graph."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evidentia.cli import app
from evidentia.graphs import TaskResult, citation_graph

runner = CliRunner()


def test_it_prints_a_table_and_writes_every_figure(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    options = ["--method", "s-gcn", "--task", "ood", "--propagation", "strength", "--seeds", "2", "--json", str(file)]
    result = runner.invoke(app, ["graph", "synthetic", *options])
    assert result.exit_code == 0, result.output
    for word in ("vacuity", "dissonance", "AUROC", "AUPR", "accuracy"):
        assert word in result.stdout
    saved = json.loads(file.read_text())
    assert saved["seeds"] == [0, 1]
    assert saved["configuration"]["method"] == "s-gcn"
    assert 0 < saved["mean"]["accuracy"] <= 1
    assert 0 < saved["mean"]["auroc"]["vacuity"] <= 1
    assert 0 < saved["mean"]["aupr"]["dissonance"] <= 1
    assert [entry["accuracy"] for entry in saved["metrics"]]


def test_the_published_figure_stands_beside_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evidentia.cli.graph.job_graph", lambda *_, **__: citation_graph(nodes=400, classes=4))
    monkeypatch.setattr(
        "evidentia.cli.graph.run_task",
        lambda *_, **__: TaskResult(0.5, {"dissonance": 0.25, "vacuity": 0.75}, {"dissonance": 0.5, "vacuity": 0.5}),
    )
    output = runner.invoke(app, ["graph", "cora", "--seeds", "1"]).stdout
    assert "published 82.0" in output
    assert any("dissonance" in line and "25.0" in line and "82.4" in line for line in output.splitlines())
    # The thesis has no figure for a method of ours.
    assert "published" not in runner.invoke(app, ["graph", "cora", "--method", "s-bgcn-t-kw", "--seeds", "1"]).stdout


def test_a_task_that_is_not_there_is_refused() -> None:
    assert runner.invoke(app, ["graph", "synthetic", "--task", "guess"]).exit_code == 2
