"""`evidentia graph` on the built-in graph."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from evidentia.cli import app

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


def test_a_task_that_is_not_there_is_refused() -> None:
    assert runner.invoke(app, ["graph", "synthetic", "--task", "guess"]).exit_code == 2
