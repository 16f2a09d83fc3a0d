"""Studies as they are declared, and files of one's own that are not quite right."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evidentia import EvidentiaError
from evidentia.experiments import (
    JOBS,
    STUDIES,
    Beside,
    Comparison,
    Pictures,
    Study,
    find_study,
    load_study,
    plan_study,
    published,
)
from evidentia.experiments.code_version import code_version
from evidentia.experiments.jobs.graph import graph_job
from evidentia.experiments.jobs.semisup_uncertainty import epistemic_job

GOOD: dict[str, Any] = {"name": "mine", "title": "Mine", "job": "graph", "metrics": ["accuracy"]}

TOML = """
name = "mine"
title = "Which width?"
job = "graph"
metrics = ["accuracy", "auroc.vacuity"]
unit = "%"
seeds = 3

[fixed]
data = "synthetic"
task = "ood"

[axes]
hidden = [8, 16]

[axes.method]
plain = { method = "gcn" }
sure = { method = "s-gcn", propagation = "strength" }

[compare]
axis = "method"
against = "plain"

[presets.quick]
seeds = 1
keep = { hidden = ["8"] }
fixed = { epochs = 5 }

[pictures]
keep = { method = ["sure"] }
fixed = { dropout = 0.1 }
"""


def test_a_study_is_a_toml_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(TOML)
    study = find_study(str(tmp_path / "mine.toml"))
    assert len(study.cells("full")) == 4
    quick = study.cells("quick")
    assert [dict(cell.labels) for cell in quick] == [
        {"hidden": "8", "method": "plain"},
        {"hidden": "8", "method": "sure"},
    ]
    options = {"data": "synthetic", "task": "ood", "epochs": 5, "hidden": 8}
    assert quick[1].configuration == {**options, "method": "s-gcn", "propagation": "strength"}
    assert plan_study(study, "quick").seeds == (0,)
    assert plan_study(study, "full").seeds == (0, 1, 2)
    assert plan_study(study, "quick", seeds=2).seeds == (0, 1)


def test_networks_for_pictures_are_of_any_cell_with_the_options_of_the_preset(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(TOML)
    study = load_study(tmp_path / "mine.toml")
    # The quick preset runs a width of 8 only.
    for preset, epochs in (("quick", {"epochs": 5}), ("full", {})):
        shown = study.shown(preset)
        assert [dict(cell.labels) for cell in shown] == [{"hidden": width, "method": "sure"} for width in ("8", "16")]
        options = {"data": "synthetic", "task": "ood", "dropout": 0.1, **epochs, "method": "s-gcn"}
        assert shown[0].configuration == {**options, "hidden": 8, "propagation": "strength"}
    assert Study(**GOOD).shown() == []
    study.check_shown()
    wrong = Study(**GOOD, fixed={"data": "cora"}, pictures=Pictures(fixed={"epochs": -1}))
    plan_study(wrong)
    with pytest.raises(EvidentiaError, match=r"the study mine cannot run its only cell: .*epochs"):
        wrong.check_shown()


def test_pictures_cannot_fix_what_an_axis_sets_for_them() -> None:
    axes = {"epochs": [5, 10], "method": {"gcn": {}, "wide": {"hidden": 64}}}
    with pytest.raises(EvidentiaError, match="pictures fixes epochs, which the axis epochs sets for 5"):
        Study(**GOOD, axes=axes, pictures=Pictures(fixed={"epochs": 2}))
    with pytest.raises(EvidentiaError, match="pictures fixes hidden, which the axis method sets for wide"):
        Study(**GOOD, axes=axes, pictures=Pictures(fixed={"hidden": 8}))
    Study(**GOOD, axes=axes, pictures=Pictures(keep={"method": ["gcn"]}, fixed={"hidden": 8}))


def test_the_command_of_a_file_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "my studies" / "mine.toml"
    path.parent.mkdir()
    path.write_text(TOML)
    words = shlex.split(plan_study(find_study(str(path))).command)
    assert words == ["evidentia", "study", str(path), "--preset", "quick"]
    assert find_study(words[2]) == find_study(str(path))
    assert plan_study(STUDIES["graph-ood"], seeds=1).command == "evidentia study graph-ood --preset quick --seeds 1"


def test_the_pictures_of_the_thesis_studies_can_be_trained() -> None:
    shown = {name: study for name, study in STUDIES.items() if study.pictures is not None}
    assert {"graph-misclassification", "graph-ood", "semisup-moons", "semisup-mnist"} <= set(shown)
    for study in shown.values():
        study.check_shown("quick")
        study.check_shown("full")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name = \n", "is no TOML: .*line 1"),
        (
            TOML.replace('job = "graph"', 'job = "grpah"'),
            "there is no job named 'grpah'; choose one of: .*graph",
        ),
        (TOML.replace('title = "Which width?"', ""), "title: Field required"),
        (TOML.replace("seeds = 3", "seeds = 0"), "seeds: Input should be greater than or equal to 1"),
        (TOML.replace("seeds = 3", "sedes = 3"), "sedes: there is no such setting"),
        (TOML.replace("[8, 16]", "[]"), "the axis hidden has no values"),
        (TOML.replace("[8, 16]", "8"), "axes.hidden: Input should be a valid dictionary"),
        (TOML.replace('["8"]', '["9"]'), "the preset quick finds no '9' on the axis hidden; there are: 16, 8"),
        (TOML.replace('["8"]', "[]"), "the preset quick finds nothing to keep on the axis hidden"),
        (TOML.replace("keep = { hidden", "keep = { width"), "keeps some of 'width', which is no axis"),
        (
            TOML.replace('against = "plain"', 'against = "fancy"'),
            "all are compared with 'fancy', which is not on the axis",
        ),
        (TOML.replace('axis = "method"', 'axis = "way"'), "compared along 'way', which is no axis"),
        (TOML.replace("epochs = 5", "seed = 5"), "seed is no option of a study"),
        (TOML.replace('task = "ood"', "weight_decay = nan"), "options must be plain numbers"),
        (TOML.replace('"mine"', '"My study"'), "of small letters, digits and dashes"),
        (TOML + "\n[presets.slow]\nseeds = 1\n", "presets.slow"),
        ('source = "x"\n' + TOML, "no setting 'source'"),
        ('file = "x"\n' + TOML, "no setting 'file'"),
        (TOML.replace('["sure"]', '["surer"]'), "the choice for pictures finds no 'surer' on the axis method"),
        (TOML.replace("dropout = 0.1", "seed = 1"), "seed is no option of a study"),
        ("name = " + "[" * 100_000, "is no TOML"),
    ],
)
def test_a_file_that_is_wrong_is_told_before_any_work(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(EvidentiaError, match=f"(?s)mine.toml.*{problem}"):
        load_study(tmp_path / "mine.toml")


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"mehtod": "gcn"}, "mehtod"),
        ({"method": "gnc"}, "gnc"),
        ({"data": "coral"}, "coral"),
        ({"data": None}, "needs data"),
        ({"task": "guess"}, "there is no task 'guess'"),
        ({"protocol": "x"}, "there is no protocol 'x'"),
        ({"classes": "random"}, "choose the task 'ood'"),
        ({"task": "ood", "classes": "some"}, "got 'some'"),
        ({"per_class": 0}, "per_class must be a whole number of at least 1, got 0"),
        ({"epochs": -1}, "epochs"),
    ],
)
def test_options_that_a_job_does_not_know_are_told_before_any_work(wrong: dict[str, Any], problem: str) -> None:
    study = Study(**GOOD, fixed={"data": "cora", **wrong}, axes={"hidden": [8]})
    with pytest.raises(EvidentiaError, match=f"the study mine cannot run hidden 8: .*{problem}"):
        plan_study(study)


def test_a_study_may_draw_unknown_classes_and_nodes() -> None:
    drawn = {"task": "ood", "classes": "random", "per_class": 5, "validation": 40}
    study = Study(**GOOD, fixed={"data": "synthetic", "method": "gcn", "epochs": 2, **drawn}, axes={"hidden": [8]})
    (job, *_) = plan_study(study).jobs.values()
    assert graph_job(job.configuration, 0) != graph_job({**job.configuration, "classes": "last"}, 0)


@pytest.mark.parametrize("missing", ["method", "nodes"])
def test_what_a_job_on_time_needs_is_told_before_any_work(missing: str) -> None:
    fixed = {name: value for name, value in {"method": "gcn", "nodes": 300}.items() if name != missing}
    with pytest.raises(EvidentiaError, match=f"cannot run its only cell: .*{missing} is not given"):
        plan_study(Study(name="mine", title="Mine", job="graph-time", metrics=["train"], fixed=fixed))


@pytest.mark.parametrize("job", ["semisup", "semisup-time"])
@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"objective": "vta"}, "vta"),
        ({"ood": "nearby"}, "no OOD named 'nearby'"),
        ({"ratio": 7}, "at least 0 and less than 1, got 7"),
        ({"norm": "frozen", "passes": "concat"}, "which needs passes 'separate'"),
        ({"validation_use": "nonsense"}, "validation_use must be 'clean', 'labeled' or 'none'"),
        ({"objective": "vat", "objective_options": {"epsilonn": 1}}, "VAT has no setting 'epsilonn'"),
        ({"data_options": {"labels": 3}}, "data have no setting 'labels'"),
        ({"robust": "meta", "robust_options": {"clutsers": 3}}, "clutsers"),
        ({"udpates": 3}, "udpates"),
        ({"data": 3}, "needs data"),
    ],
)
def test_options_of_pools_are_looked_at_too(job: str, wrong: dict[str, Any], problem: str) -> None:
    fixed = {"data": "two-moons", "ood": "faraway", **wrong}
    study = Study(name="mine", title="Mine", job=job, metrics=["accuracy"], fixed=fixed)
    with pytest.raises(EvidentiaError, match=f"cannot run its only cell: .*{problem}"):
        plan_study(study)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"beside": Beside(table="graph-ood", row="{way}")}, "names 'way', which is neither an axis nor 'metric'"),
        ({"beside": Beside(table="graph-odd", row="x")}, "no published table named 'graph-odd'"),
        ({"beside": Beside(table="graph-{metric}", row="x")}, "cannot depend on the metric"),
        ({"beside": Beside(table="graph-ood", row="x", names={"way": {}})}, "names are given for 'way'"),
        (
            {"beside": Beside(table="graph-misclassification", row="cora/gcn")},
            "it is in '1', and the published table in '%'",
        ),
        ({"axes": {"a": {"x": {"data": "cora"}}, "b": {"y": {"data": "citeseer"}}}}, "the axes a and b both set data"),
        ({"compare": Comparison(axis="way", against="x")}, "which is no axis"),
        ({"fixed": {"path": Path()}}, "options must be plain"),
    ],
)
def test_parts_that_do_not_fit_together_are_told(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(EvidentiaError, match=problem):
        Study(**GOOD, **settings)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("study = 3", "`study` in .* must be a Study, got int"),
        ("x = 3", "sets no `study`"),
        ("x = 3\nimport nothing_of_the_kind", "line 2, does not run: ModuleNotFoundError"),
        ("x = 3\nstudy = (", "line 2, does not run: SyntaxError"),
    ],
)
def test_a_python_file_that_is_wrong_is_told(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(EvidentiaError, match=problem):
        load_study(tmp_path / "mine.py")


def test_what_is_no_study_at_all_is_told(tmp_path: Path) -> None:
    with pytest.raises(EvidentiaError, match=r"there is no study named 'graph-odd'; .*graph-ood"):
        find_study("graph-odd")
    with pytest.raises(EvidentiaError, match="there is no file"):
        find_study(str(tmp_path / "none.toml"))
    with pytest.raises(EvidentiaError, match=r"a \.toml or a \.py file"):
        load_study(tmp_path / "study.yaml")
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(EvidentiaError, match="no text in UTF-8"):
        load_study(tmp_path / "latin.toml")
    with pytest.raises(EvidentiaError, match="no preset named 'slow'"):
        STUDIES["graph-ood"].preset("slow")
    with pytest.raises(EvidentiaError, match="seeds must be a whole number of at least 1, got 0"):
        plan_study(STUDIES["graph-ood"], seeds=0)


def test_changing_a_file_changes_the_keys_of_its_jobs(write_study: Callable[..., Path]) -> None:
    path = write_study()
    first = plan_study(load_study(path))
    path.write_text(path.read_text() + "\nTHOUGHT = 2\n")
    assert not set(first.jobs) & set(plan_study(load_study(path)).jobs)


def test_comments_and_docstrings_are_no_other_code() -> None:
    code = 'from evidentia.opinions import vacuity\n\ndef job(c, seed):\n    {}return {{"u": {}}}\n'
    plain, told, changed = (
        code_version(len, source=source)
        for source in (code.format("", 1), "# Why.\n" + code.format('"""What."""\n    ', 1), code.format("", 2))
    )
    assert plain == told
    assert plain != changed


def test_code_is_that_which_a_job_imports(tmp_path: Path) -> None:
    graph, pool = code_version(JOBS["graph"]), code_version(JOBS["semisup"])
    assert graph == code_version(JOBS["graph"])
    assert graph != pool
    with pytest.raises(EvidentiaError, match="the source of the job len is not to be had"):
        code_version(len)


def test_every_study_can_be_run_as_far_as_its_options_go() -> None:
    for study in STUDIES.values():
        for preset in ("quick", "full"):
            plan = plan_study(study, preset)
            assert len(plan.jobs) == len(plan.cells) * len(plan.seeds)
        assert set(study.presets) == {"quick", "full"}


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("graph-misclassification", ["graph-misclassification"]),
        ("graph-ood", ["graph-ood"]),
        ("graph-ablation", ["graph-ablation-misclassification", "graph-ablation-ood"]),
        ("graph-dropedge", ["graph-dropedge"]),
        ("semisup-moons", ["semisup-moons"]),
        ("semisup-moons-p", ["semisup-moons-p"]),
        ("semisup-cifar100", ["semisup-cifar100"]),
        ("semisup-svhn", ["semisup-svhn"]),
        ("semisup-clusters", ["semisup-clusters"]),
        ("semisup-vacuity", ["semisup-vacuity-mnist", "semisup-vacuity-cifar10"]),
        ("epistemic-ssl", ["epistemic-ssl"]),
    ],
)
def test_every_published_figure_stands_beside_a_cell(name: str, tables: list[str]) -> None:
    study = STUDIES[name]
    found = {
        (figure.table, figure.row, figure.column)
        for cell in study.cells("full")
        for metric in study.metrics
        if (figure := study.beside.figure(cell, metric)) is not None
    }
    assert found == {(figure.table, figure.row, figure.column) for table in tables for figure in published(table)}


def test_the_epistemic_job() -> None:
    options = {"data": "digits", "training": "supervised", "passes": 3, "updates": 5}
    found = epistemic_job(options, seed=0)
    assert set(found) == {"epistemic", "auroc", "accuracy"}
    assert set(found["epistemic"]) == {"id", "ood"}
