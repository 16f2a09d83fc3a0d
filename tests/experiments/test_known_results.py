"""Results of an exported table: they stand for jobs that need not be run, and the table says where they come from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evidentia import EvidentiaError
from evidentia.experiments import (
    Study,
    StudyStore,
    StudyTable,
    plan_study,
    read_results,
    run_plan,
    study_table,
    take_up,
)
from evidentia.experiments.job import Outcome
from evidentia.experiments.study_export import export_table

STUDY = Study(
    name="tiny",
    title="Tiny",
    job="graph",
    metrics=["accuracy"],
    unit="%",
    fixed={"data": "synthetic", "epochs": 2},
    axes={"method": ["gcn", "s-gcn"]},
)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> StudyTable:
    folder = tmp_path_factory.mktemp("exported")
    plan = plan_study(STUDY, seeds=2, only={"method": ["s-gcn"]})
    with StudyStore(folder / "results.sqlite") as store:
        run_plan(plan, store, progress=False)
        export_table(study_table(plan, store), folder / "tiny.json")
    return read_results(folder / "tiny.json")


def test_what_is_known_is_not_run_again_and_is_the_same_to_the_digit(exported: StudyTable, tmp_path: Path) -> None:
    plan = plan_study(STUDY, seeds=2)
    with StudyStore(tmp_path / "own.sqlite") as own, StudyStore(tmp_path / "other.sqlite") as other:
        assert take_up(plan, own, exported) == 2
        assert take_up(plan, own, exported) == 0
        run = run_plan(plan, own, progress=False)
        assert (run.earlier, run.now) == (2, 2)
        run_plan(plan, other, progress=False)
        ours, theirs = study_table(plan, own), study_table(plan, other)
    assert [row.values for row in ours.rows] == [pytest.approx(row.values, rel=1e-12) for row in theirs.rows]
    assert {(row.metric, *row.values.items()) for row in ours.further} == {
        (row.metric, *row.values.items()) for row in theirs.further
    }
    assert ours.code == theirs.code == plan.code
    assert ours.environments == theirs.environments


def test_results_of_other_code_are_named_by_it(exported: StudyTable, tmp_path: Path) -> None:
    plan = plan_study(STUDY, seeds=1)
    with StudyStore(tmp_path / "results.sqlite") as store:
        assert take_up(plan, store, replace(exported, code="0.0.9+older")) == 1
        assert study_table(plan, store).code == "0.0.9+older"
        run_plan(plan, store, progress=False)
        table = study_table(plan, store)
    assert table.code is not None
    assert set(table.code.split(", ")) == {"0.0.9+older", plan.code}
    assert len(table.environments) == 1
    with StudyStore(tmp_path / "again.sqlite") as store:
        assert take_up(plan, store, table) == 2
        assert study_table(plan, store).code == table.code


def test_a_result_stands_for_a_job_that_failed(exported: StudyTable, tmp_path: Path) -> None:
    plan = plan_study(STUDY, seeds=1, only={"method": ["s-gcn"]})
    with StudyStore(tmp_path / "results.sqlite") as store:
        store.add(plan.jobs.values())
        for key in plan.jobs:
            assert store.claim(key)
            assert store.finish(Outcome(key, failure="no data"))
        assert take_up(plan, store, exported) == 1
        assert not study_table(plan, store).failures


def test_results_of_another_kind_of_job_or_configuration_are_left(exported: StudyTable, tmp_path: Path) -> None:
    longer = Study(**{**STUDY.model_dump(), "fixed": {"data": "synthetic", "epochs": 3}})
    with StudyStore(tmp_path / "results.sqlite") as store:
        assert take_up(plan_study(longer, seeds=1), store, exported) == 0
        assert take_up(plan_study(STUDY, seeds=1), store, replace(exported, job="semisup")) == 0


def test_some_cells_only_and_a_command_that_says_so() -> None:
    plan = plan_study(STUDY, only={"method": ["s-gcn"]})
    assert [cell.labels["method"] for cell in plan.cells] == ["s-gcn"]
    assert plan.command == "evidentia study tiny --preset quick --only method=s-gcn"
    with pytest.raises(EvidentiaError, match=r"no method=gat; it has method: gcn, s-gcn"):
        plan_study(STUDY, only={"method": ["gat"]})
    with pytest.raises(EvidentiaError, match=r"no methods=gcn; it has the axes method"):
        plan_study(STUDY, only={"methods": ["gcn"]})


def test_when_the_time_is_up_no_job_is_begun(tmp_path: Path) -> None:
    plan = plan_study(STUDY, seeds=1)
    with StudyStore(tmp_path / "results.sqlite") as store:
        run = run_plan(plan, store, minutes=0, progress=False)
        assert (run.now, run.elsewhere, run.left) == (0, 0, 2)
        assert study_table(plan, store).missing == 2
        # A job that has begun is waited for.
        assert run_plan(plan, store, minutes=1e-9, progress=False).now <= 1
        run = run_plan(plan, store, progress=False)
        assert (run.earlier + run.now, run.left) == (2, 0)
        with pytest.raises(EvidentiaError, match="minutes must be at least 0"):
            run_plan(plan, store, minutes=-1, progress=False)
