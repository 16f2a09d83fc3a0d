"""The study of AVA: end to end on a folder that is made up, and what it says without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from evidentia import EvidentiaError
from evidentia.cli import app
from evidentia.experiments import STUDIES, Preset, StudyStore, plan_study, run_plan, study_table

STUDY = STUDIES["events-video"]


def test_every_method_on_a_few_clips(made_up_ava: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVIDENTIA_CACHE", str(tmp_path))
    tiny = Preset(seeds=1, keep={"data": ["ava-0.3s"]}, fixed={"clips": 60, "held_out": 20, "epochs": 4})
    plan = plan_study(STUDY.model_copy(update={"presets": {"quick": tiny}}))
    with StudyStore(tmp_path / "results.sqlite") as store:
        run = run_plan(plan, store, data_root=made_up_ava, progress=False)
        table = study_table(plan, store)
    assert [failed.failure for failed in run.failures] == []
    assert run.now == 8
    found = {(row.cell.labels["method"], row.metric): row for row in table.rows}
    acar, wbc = (found[method, "macro_f1"] for method in ("acar", "acar-mtenn-wbc"))
    assert (acar.published.value, wbc.published.value) == (0.406, 0.708)
    assert acar.mean > 0.5
    assert found["acar", "common_ratio"].mean == 1
    # Slowfast, AIA, and ACAR with and without evidence.
    assert len(list((tmp_path / "event-networks").glob("*.detector"))) == 4


@pytest.mark.parametrize("given", [True, False])
def test_without_files_there_is_one_sentence_and_no_work(
    given: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = ["--data-root", str(tmp_path)] if given else []
    with pytest.raises(SystemExit) as ended:
        app(["study", "events-video", "--store", str(tmp_path / "results.sqlite"), *root])
    assert ended.value.code == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    # The terminal's width, which breaks lines, is not ours to set.
    told = "".join(shown.err.split())
    assert told.count("error:") == 1
    where = "pass data_root (--data-root)" if not given else f"{tmp_path}/AVA lacks ava_train_v2.2.csv"
    assert where.replace(" ", "") in told
    assert "features/ID.npy" in told


def test_what_was_done_before_needs_no_data(made_up_ava: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVIDENTIA_CACHE", str(tmp_path))
    tiny = Preset(
        seeds=1, keep={"data": ["ava-0.75s"], "method": ["acar"]}, fixed={"clips": 8, "held_out": 4, "epochs": 1}
    )
    plan = plan_study(STUDY.model_copy(update={"presets": {"quick": tiny}}))
    with StudyStore(tmp_path / "results.sqlite") as store:
        with pytest.raises(EvidentiaError, match="AVA lacks"):
            run_plan(plan, store, data_root=tmp_path, progress=False)
        assert run_plan(plan, store, data_root=made_up_ava, progress=False).now == 1
        assert run_plan(plan, store, data_root=tmp_path, progress=False).earlier == 1
