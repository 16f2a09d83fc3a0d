"""Records of `evidentia graph --json` as the table of a study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evidentia import EvidentiaError, FileFormatError
from evidentia.cli import app
from evidentia.experiments import STUDIES, Study, read_results
from evidentia.experiments.graph_configuration import graph_configuration
from evidentia.experiments.graph_records import records_table

STUDY = STUDIES["graph-ood"]


def record(path: Path, seeds: list[int], entropy: list[float], **options: Any) -> Path:
    content = {
        "evidentia_version": "0.1.0",
        "configuration": {**graph_configuration("cora", "ood", "gcn"), **options},
        "seeds": seeds,
        "metrics": [{"accuracy": 0.9, "auroc": {"entropy": value}} for value in entropy],
        "wall_seconds": 8.0,
        "cpu_seconds": 2.0 * len(seeds),
        "peak_memory_bytes": 7,
    }
    path.write_text(json.dumps(content))
    return path


def test_records_of_a_cell_are_taken_together(tmp_path: Path) -> None:
    files = [
        record(tmp_path / "b.json", [5, 6], [0.9, 0.9]),
        record(tmp_path / "a.json", [0, 1], [0.7, 0.8]),
        record(tmp_path / "c.json", [0], [0.5], task="misclassification"),
    ]
    table = records_table(STUDY, files)
    row, accuracy = table.rows
    assert (accuracy.metric, accuracy.mean) == ("accuracy", pytest.approx(90))
    assert list(row.values) == [0, 1, 5, 6]
    assert row.mean == pytest.approx(82.5)
    assert (row.cell.labels, row.metric) == ({"data": "cora", "method": "gcn"}, "auroc.entropy")
    assert row.published is not None
    assert (table.code, table.environments, table.version) == (None, (), "0.1.0")
    assert table.cells[0].cpu_seconds == 2.0
    assert table.commands == (
        "evidentia graph cora --task ood --method gcn --seeds 2 --first-seed 5",
        "evidentia graph cora --task ood --method gcn --seeds 2",
    )


def test_other_settings_and_seeds_that_come_twice_are_refused(tmp_path: Path) -> None:
    for options, message in (
        ({"members": 4}, "was run with members 4, and the study has 1"),
        ({"protocol": "author"}, "was run with protocol author"),
        ({"hidden": 7}, "was run with hidden 7"),
    ):
        file = record(tmp_path / "other.json", [0], [0.7], **options)
        with pytest.raises(EvidentiaError, match=message):
            records_table(STUDY, [file])
    file = record(tmp_path / "other.json", [0], [0.7])
    longer = Study(**{**dict(STUDY), "fixed": {"task": "ood", "epochs": 7}})
    with pytest.raises(EvidentiaError, match=r"was run with epochs \S+, and the study has 7"):
        records_table(longer, [file])
    with pytest.raises(EvidentiaError, match="two records of seed 0 for cora, gcn"):
        records_table(STUDY, [file, file])
    with pytest.raises(EvidentiaError, match="none of 0 files is a record of the study graph-ood"):
        records_table(STUDY, [])
    with pytest.raises(EvidentiaError, match="semisup-moons has the job semisup"):
        records_table(STUDIES["semisup-moons"], [file])
    record(file, [0, 1], [0.7])
    with pytest.raises(EvidentiaError, match="needs metrics for every seed"):
        records_table(STUDY, [file])
    file.write_text(file.read_text().replace('"configuration": {', '"configuration": 5, "x": {'))
    with pytest.raises(EvidentiaError, match="is no record of evidentia graph --json"):
        records_table(STUDY, [file])
    file.write_text("{}")
    with pytest.raises(EvidentiaError, match="is no record of evidentia graph --json: it lacks evidentia_version"):
        records_table(STUDY, [file])


def test_a_record_has_all_settings_of_the_study(tmp_path: Path) -> None:
    full = graph_configuration("cora", "ood", "gcn")
    file = record(tmp_path / "run.json", [1], [0.5])
    content = json.loads(file.read_text())
    # One seed has no deviation.
    content["std"] = {"auroc": {"entropy": None}}
    file.write_text(json.dumps(content))
    assert list(records_table(STUDY, [file]).rows[0].values) == [1]
    for name in full.keys() - {"data", "task", "method"}:
        content["configuration"] = {other: value for other, value in full.items() if other != name}
        file.write_text(json.dumps(content))
        with pytest.raises(FileFormatError, match=f"is no whole record: its configuration lacks {name}"):
            records_table(STUDY, [file])
    for other in ({"classes": "random"}, {"per_class": 5}, {"patience": 9}, {"dropout": 0.1}, {"backbone": "gat"}):
        ((name, value),) = other.items()
        content["configuration"] = json.loads(json.dumps(graph_configuration("cora", "ood", "gcn", **other)))
        file.write_text(json.dumps(content))
        with pytest.raises(EvidentiaError, match=f"was run with {name} {value}, and the study has {full[name]}"):
            records_table(STUDY, [file])


def test_the_command_runs_nothing_and_exports(tmp_path: Path) -> None:
    record(tmp_path / "a.json", [0, 1], [0.7, 0.8])
    out = tmp_path / "out" / "table.json"
    result = CliRunner().invoke(
        app, ["study", "graph-ood", "--records", str(tmp_path), "--export", str(out), "--report", f"{out}.html"]
    )
    assert result.exit_code == 0, result.output
    assert "75.0 ±" in result.stdout
    assert read_results(out).rows[0].mean == pytest.approx(75.0)
    assert Path(f"{out}.html").read_text().startswith("<!doctype html>")
