"""The record of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import evidentia
from evidentia.experiments.record import RunCost, RunRecord


def _record() -> RunRecord:
    record = RunRecord({"method": "gcn"})
    for seed, value in ((3, 0.5), (4, 0.7)):
        record.add(seed, {"accuracy": value, "auroc": {"vacuity": value / 2}})
    return record


def test_means_and_deviations_keep_the_shape_of_the_metrics() -> None:
    summary = _record().summary()
    assert summary["mean"] == {"accuracy": pytest.approx(0.6), "auroc": {"vacuity": pytest.approx(0.3)}}
    assert summary["std"]["accuracy"] == pytest.approx(0.02**0.5)
    assert summary["seeds"] == [3, 4]
    assert len(summary["metrics"]) == 2


def test_the_file_says_everything_that_is_needed_to_run_it_again(tmp_path: Path) -> None:
    _record().save(tmp_path / "run.json")
    saved = json.loads((tmp_path / "run.json").read_text())
    assert saved["evidentia_version"] == evidentia.__version__
    assert saved["configuration"] == {"method": "gcn"}
    assert saved["wall_seconds"] >= 0
    assert saved["cpu_seconds"] >= 0
    assert saved["peak_memory_bytes"] > 1_000_000


def test_one_seed_has_no_deviation() -> None:
    record = RunRecord({})
    record.add(0, {"accuracy": 0.5})
    assert record.summary()["std"] == {"accuracy": None}


def test_what_was_run_before_is_counted_with_what_is_run_now() -> None:
    record = RunRecord({})
    record.add(0, {"accuracy": 0.5}, before=RunCost(1000.0, 500.0, 1 << 50))
    record.add(1, {"accuracy": 0.5}, before=RunCost(1000.0, 500.0, 1))
    record.add(2, {"accuracy": 0.5})
    summary = record.summary()
    assert 2000 <= summary["wall_seconds"] < 2900
    assert 1000 <= summary["cpu_seconds"] < 1400
    assert summary["peak_memory_bytes"] == 1 << 50
