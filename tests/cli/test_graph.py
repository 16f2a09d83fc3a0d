"""`evidentia graph` on the built-in graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evidentia.cli import app
from evidentia.experiments import graph_runs
from evidentia.graphs import TaskResult, citation_graph
from evidentia.graphs import training as training_module

runner = CliRunner()
QUICK = ["--epochs", "4", "--hidden", "8", "--passes", "2"]


def run(*options: str, method: str = "s-gcn") -> Any:
    return runner.invoke(app, ["graph", "synthetic", *QUICK, "--method", method, *options])


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command says to input that it refuses, after which nothing may have been trained."""
    with pytest.raises(SystemExit) as stopped:
        app(["graph", *arguments])
    assert stopped.value.code == 1
    shown = " ".join(capsys.readouterr().err.split())
    assert "Traceback" not in shown
    return shown


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where anything is trained."""

    def no_training(*_: Any, **__: Any) -> None:
        raise AssertionError("nothing was to be trained")

    monkeypatch.setattr(training_module._Step, "loss", no_training)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph whose nodes are soon placed in the plane."""
    monkeypatch.setattr(graph_runs, "job_graph", lambda *_: citation_graph(nodes=200, classes=4, features=60))


@pytest.fixture
def invented(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures without training."""
    result = TaskResult(0.5, {"dissonance": 0.25, "vacuity": 0.75}, {"dissonance": 0.5, "vacuity": 0.5})
    monkeypatch.setattr(graph_runs, "job_graph", lambda *_: citation_graph(nodes=400, classes=4))
    monkeypatch.setattr(graph_runs, "train_task", lambda *_, **__: None)
    monkeypatch.setattr(graph_runs, "score_task", lambda _: result)


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


def test_the_record_has_all_settings_given_or_not(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    options = ["--dropout", "0.25", "--prior-weight", "0.5", "--batch-size", "20", "--cache", str(tmp_path / "cache")]
    result = run(*options, "--seeds", "1", "--json", str(file), method="s-bgcn-t")
    assert result.exit_code == 0, result.output
    settings = json.loads(file.read_text())["configuration"]
    given = {"epochs": 4, "hidden": 8, "passes": 2, "dropout": 0.25, "prior_weight": 0.5, "batch_size": 20}
    usual = {"patience": 100, "learning_rate": 0.01, "weight_decay": 5e-4, "sigma": 1.0, "backbone": "gcn"}
    usual |= {"propagation": "none", "members": 1, "task": "misclassification", "protocol": "clean"}
    assert {name: settings[name] for name in {**given, **usual}} == {**given, **usual}
    assert str(tmp_path) not in file.read_text()


def test_one_seed_has_no_deviation(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    result = run("--seeds", "1", "--json", str(file))
    assert result.exit_code == 0, result.output
    assert "one seed" in result.stdout
    assert "±" not in result.stdout
    std = json.loads(file.read_text())["std"]
    assert std["accuracy"] is None
    assert set(std["auroc"].values()) == {None}


@pytest.mark.usefixtures("invented")
def test_the_published_figure_stands_beside_ours() -> None:
    output = runner.invoke(app, ["graph", "cora", "--seeds", "1"]).stdout
    assert "published 82.0" in output
    assert any("dissonance" in line and "25.0" in line and "82.4" in line for line in output.splitlines())
    assert "builds" not in output
    # The thesis has no figure for a method of ours, but one for that on which ours builds.
    output = runner.invoke(app, ["graph", "cora", "--method", "s-bgcn-t-kw", "--seeds", "1"]).stdout
    assert "published: of s-bgcn-t-k, on which s-bgcn-t-kw builds" in output
    assert any("dissonance" in line and "25.0" in line and "82.4" in line for line in output.splitlines())
    assert "published" not in runner.invoke(app, ["graph", "cora", "--method", "gpn", "--seeds", "1"]).stdout


@pytest.mark.usefixtures("invented")
def test_published_figures_are_of_the_last_classes() -> None:
    command = ["graph", "cora", "--task", "ood", "--seeds", "1"]
    assert "published" in runner.invoke(app, command).stdout
    assert "published" in runner.invoke(app, [*command, "--ood-classes", "last"]).stdout
    assert "published" not in runner.invoke(app, [*command, "--ood-classes", "random"]).stdout


def test_unknown_classes_can_be_drawn_or_named(tmp_path: Path) -> None:
    file, found = tmp_path / "out.json", {}
    for classes in ("last", "3,4", "random"):
        result = run("--task", "ood", "--ood-classes", classes, "--seeds", "2", "--json", str(file))
        assert result.exit_code == 0, result.output
        found[classes] = json.loads(file.read_text())
    assert [found[classes]["configuration"]["classes"] for classes in found] == ["last", [3, 4], "random"]
    assert found["last"]["metrics"] == found["3,4"]["metrics"]
    assert found["last"]["metrics"] != found["random"]["metrics"]


def test_nodes_to_train_and_to_validate_on_can_be_counted(tmp_path: Path) -> None:
    file, found = tmp_path / "out.json", []
    for counted in ([], ["--per-class", "5", "--validation", "60"]):
        result = run(*counted, "--seeds", "1", "--json", str(file))
        assert result.exit_code == 0, result.output
        found.append(json.loads(file.read_text()))
    assert [found[1]["configuration"][name] for name in ("per_class", "validation")] == [5, 60]
    assert found[0]["metrics"] != found[1]["metrics"]


def test_a_killed_command_goes_on_to_the_same_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, resumed = tmp_path / "whole.json", tmp_path / "resumed.json"
    options = ["--epochs", "25", "--seeds", "2"]
    assert run(*options, "--json", str(whole), method="s-bgcn-t").exit_code == 0
    options += ["--checkpoint", str(tmp_path / "runs"), "--json", str(resumed)]
    steps, loss = 0, training_module._Step.loss

    def killed(self: Any, batch: Any, epoch: int) -> Any:
        nonlocal steps
        steps += 1
        # A teacher and a network of 25 epochs each, and then half of the second seed's network.
        if steps == 90:
            raise KeyboardInterrupt
        return loss(self, batch, epoch)

    monkeypatch.setattr(training_module._Step, "loss", killed)
    assert run(*options, method="s-bgcn-t").exit_code != 0
    assert not resumed.exists()
    result = run(*options, method="s-bgcn-t")
    assert result.exit_code == 0, result.output
    # The second seed's network went on from its checkpoint of epoch 10.
    assert steps == 90 + 15
    first, again = (json.loads(file.read_text()) for file in (whole, resumed))
    for part in ("configuration", "seeds", "metrics", "mean", "std"):
        assert again[part] == first[part]


def test_results_are_taken_up_by_the_same_settings_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, folder = tmp_path / "out.json", ["--checkpoint", str(tmp_path / "runs")]
    assert run("--seeds", "1", *folder, "--json", str(file)).exit_code == 0
    first = json.loads(file.read_text())
    assert run("--seeds", "1", *folder, "--hidden", "9", "--json", str(file)).exit_code == 0
    assert json.loads(file.read_text())["metrics"] != first["metrics"]
    trained = []
    train = graph_runs.train_task
    monkeypatch.setattr(
        graph_runs, "train_task", lambda *a, seed, **k: trained.append(seed) or train(*a, seed=seed, **k)
    )
    assert run("--seeds", "2", *folder, "--json", str(file)).exit_code == 0
    again = json.loads(file.read_text())
    assert trained == [1]
    assert again["metrics"][0] == first["metrics"][0]
    assert again["cpu_seconds"] > 0
    monkeypatch.setattr(graph_runs, "code_version", lambda _: "other")
    assert run("--seeds", "1", *folder).exit_code == 0
    assert trained == [1, 0]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_first_seed_is_drawn(suffix: str, tmp_path: Path) -> None:
    picture = tmp_path / "new" / f"nodes.{suffix}"
    result = run("--seeds", "1", "--picture", str(picture))
    assert result.exit_code == 0, result.output
    names = [f"nodes{part}.{suffix}" for part in ("", "-curves", "-uncertainties")]
    assert sorted(path.name for path in picture.parent.iterdir()) == sorted(names)
    assert all(name in result.stdout.replace("\n", "") for name in names)


@pytest.mark.usefixtures("small")
def test_a_picture_of_a_run_that_is_finished_needs_no_training(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    options = ["--seeds", "1", "--checkpoint", str(tmp_path / "runs")]
    assert run(*options).exit_code == 0
    request.getfixturevalue("untrained")
    result = run(*options, "--picture", str(tmp_path / "nodes.png"))
    assert result.exit_code == 0, result.output
    assert (tmp_path / "nodes.png").exists()


@pytest.mark.usefixtures("untrained")
def test_places_that_cannot_be_written_are_told_before_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()
    for options, message in (
        (("--json", str(tmp_path)), "is a folder"),
        (("--json", str(file / "out.json")), "cannot be written (Not a directory)"),
        (("--picture", str(tmp_path / "nodes.pdf")), ".png or .svg"),
        (("--picture", str(file / "nodes.png")), "cannot be written"),
        (("--checkpoint", str(file)), "is a file"),
    ):
        assert message in told(capsys, "synthetic", "--seeds", "1", *options)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["cora-3"], "there is no graph named 'cora-3'"),
        (["synthetic", "--method", "guess"], "'guess'"),
        (["synthetic", "--task", "ood", "--ood-classes", "first"], "last, random or numbers of classes such as 3,4"),
        (["synthetic", "--task", "ood", "--ood-classes", "3,7"], "must be some of 0 to"),
        (["synthetic", "--ood-classes", "random"], "choose the task 'ood'"),
        (["synthetic", "--validation", "100000"], "lower validation or per_class"),
    ],
)
def test_bad_input_is_told_in_a_sentence(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in told(capsys, *options)


@pytest.mark.parametrize("options", [["--task", "guess"], ["--epochs", "0"], ["--per-class", "0"], ["--dropout", "2"]])
def test_bad_options_are_refused(options: list[str]) -> None:
    assert runner.invoke(app, ["graph", "synthetic", *options]).exit_code == 2
