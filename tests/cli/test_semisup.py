"""`evidentia semisup` on built-in data."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evidentia import EvidentiaError
from evidentia.cli import app
from evidentia.cli.semisup import given_settings
from evidentia.experiments import semisup_runs
from evidentia.semisup import CONTROLS
from evidentia.semisup.task_parts import robust_method

runner = CliRunner()
TINY = ["two-moons", "--objective", "pi-model", "--updates", "4"]


def run(*options: str, robust: str = "none") -> Any:
    return runner.invoke(app, ["semisup", *TINY, "--robust", robust, *options])


def test_it_prints_method_and_controls_and_writes_every_figure(tmp_path: Path) -> None:
    file, picture = tmp_path / "out.json", tmp_path / "pool.png"
    result = run("--seeds", "2", "--first-seed", "3", "--json", str(file), "--picture", str(picture), robust="oracle")
    assert result.exit_code == 0, result.output
    shown = ("supervised", "no BN", "concatenated BN", "separate BN", "frozen BN", "oracle", "compute-matched")
    for word in (*shown, "w_in / w_ood", "AUROC", "seconds", "labels: 6 to train on, none for validation"):
        assert word in result.stdout
    assert "two-moons, 50% faraway, pi-model" in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    saved = json.loads(file.read_text())
    assert saved["seeds"] == [3, 4]
    assert saved["configuration"]["robust"] == "oracle"
    assert saved["configuration"]["ratio"] == 0.5
    assert 0 < saved["mean"]["accuracy"] <= 1
    assert saved["mean"]["w_ood"] == 0
    assert len(saved["metrics"]) == 2
    assert {"std", "wall_seconds", "cpu_seconds", "peak_memory_bytes", "evidentia_version"} <= set(saved)
    assert list(saved["controls"]) == list(shown)
    for name in shown:
        assert saved["controls"][name]["mean"]["accuracy"] > 0
    assert saved["controls"]["compute-matched"]["mean"]["updates"] >= 4
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(tmp_path) not in file.read_text()


def test_the_methods_figures_are_written_before_the_controls_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "out.json"

    def stop(runs: semisup_runs.PoolRuns) -> None:
        assert "controls" not in json.loads(file.read_text())
        raise KeyboardInterrupt

    monkeypatch.setattr(semisup_runs.PoolRuns, "run_controls", stop)
    stopped = run("--seeds", "1", "--json", str(file))
    assert "stopped: trainings are kept with --checkpoint only" in stopped.stderr
    assert json.loads(file.read_text())["mean"]["accuracy"] > 0
    stopped = run("--seeds", "1", "--checkpoint", str(tmp_path / "kept"), "--json", str(file))
    assert "stopped: the same command goes on from here" in stopped.stderr
    # As a disk that was full leaves it.
    (seconds,) = (tmp_path / "kept").glob("*.seconds")
    seconds.write_text("")
    assert run("--seeds", "1", "--checkpoint", str(tmp_path / "kept"), "--no-controls").exit_code == 0


def test_no_controls(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    result = run("--seeds", "1", "--no-controls", "--json", str(file))
    assert result.exit_code == 0
    assert "frozen BN" not in result.stdout
    assert "controls" not in json.loads(file.read_text())


def test_validation_labels_are_counted_and_have_a_control_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    options = ["--ood", "boundary", "--validation", "12", "--scope", "full", "--seeds", "1", "--json", str(file)]
    result = run(*options, robust="meta")
    assert result.exit_code == 0, result.output
    assert "labels: 6 to train on, 12 for validation" in result.stdout
    saved = json.loads(file.read_text())
    assert saved["configuration"]["norm"] == "weighted"
    assert saved["configuration"]["robust_options"] == {"scope": "full"}
    assert saved["mean"]["labels"] == 18
    labels = {name: entry["mean"]["labels"] for name, entry in saved["controls"].items()}
    assert labels == {name: 18 if name == "supervised, all" else 6 for name in CONTROLS}


def test_the_published_figure_stands_beside_ours() -> None:
    output = runner.invoke(app, ["semisup", "two-moons", "--objective", "vat", "--robust", "none", "--updates", "2",
                                 "--ratio", "0.25", "--seeds", "1"]).stdout  # fmt: skip
    published = dict(re.findall(r"│ ([a-zBN ]+?) +│ +[\d.]+ │ +(\S+) │", output))
    assert published == {"supervised": "84.4", "no BN": "100.0", "separate BN": "60.7", "frozen BN": "89.7"}
    assert "published" not in run("--seeds", "1").stdout


def test_a_killed_command_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, file = tmp_path / "runs", tmp_path / "out.json"
    options = ("--seeds", "1", "--checkpoint", str(folder), "--json", str(file))
    assert run(*options, robust="oracle").exit_code == 0
    first = json.loads(file.read_text())
    assert (folder / "method-0.safetensors").exists()
    assert (folder / "separate-bn-0.jsonl").exists()

    def no_update(*_: Any) -> None:
        raise AssertionError("everything was trained before")

    monkeypatch.setattr("evidentia.semisup.training.loop.Training._update", no_update)
    assert run(*options, robust="oracle").exit_code == 0
    again = json.loads(file.read_text())
    for part in ("accuracy", "w_in", "updates"):
        assert again["mean"][part] == first["mean"][part]
        for name, entry in first["controls"].items():
            assert again["controls"][name]["mean"].get(part) == entry["mean"].get(part)


def test_a_clean_pool() -> None:
    for options in (("--ood", "none"), ("--ratio", "0")):
        result = run(*options, "--seeds", "1", "--no-controls")
        assert result.exit_code == 0, result.output
        assert "two-moons, a clean pool" in result.stdout


def test_a_share_of_none_is_the_same_task_as_any_other(tmp_path: Path) -> None:
    for ratio in ("0", "0.5"):
        options = ["--ratio", ratio, "--robust", "none", "--seeds", "1", "--no-controls"]
        file = str(tmp_path / f"{ratio}.json")
        result = runner.invoke(app, ["semisup", "digits", *options, "--updates", "2", "--json", file])
        assert result.exit_code == 0, result.output
    labels = [json.loads((tmp_path / f"{ratio}.json").read_text())["mean"]["labels"] for ratio in ("0", "0.5")]
    assert labels == [50, 50]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["two-moon"], "there is no data set named 'two-moon'"),
        (["two-moons", "--ood", "cats"], "has no OOD named 'cats'"),
        (["two-moons", "--ratio", "1"], "must be a number, at least 0 and less than 1, got 1.0"),
        (["mnist", "--ratio", "1.5"], "must be a number, at least 0 and less than 1, got 1.5"),
        (["mnist", "--ratio", "-0.1"], "must be a number, at least 0 and less than 1, got -0.1"),
        (["mnist", "--ratio", "nan"], "must be a number, at least 0 and less than 1, got nan"),
        (["mnist", "--ood", "held-out"], "mnist has no OOD named 'held-out'"),
        (["mnist", "--robust", "meta", "--set", "clusters=0"], "clusters of Meta must be a whole number of at least 1"),
        (["mnist", "--first-seed", "4294967296"], "seed"),
        (["two-moons", "--ood", "none", "--ratio", "0.5"], "needs a kind of OOD"),
        (["two-moons", "--objective", "vatt"], "no semi-supervised objective named 'vatt'"),
        (["two-moons", "--robust", "metta"], "no robust method named 'metta'"),
        (["two-moons", "--robust", "none", "--scope", "full"], "NotRobust has no setting 'scope'"),
        (["two-moons", "--uncertainty", "guess"], "no uncertainty of the pool named 'guess'"),
        (["two-moons", "--norm", "frozen", "--passes", "concat"], "needs passes 'separate'"),
        (["mnist", "--robust", "meta", "--norm", "batch", "--set", "joint=true"], "take norm='weighted'"),
        (["mnist", "--robust", "ift", "--norm", "frozen", "--set", "joint=true"], "take norm='weighted'"),
    ],
)
def test_bad_input_is_told_in_a_sentence_before_anything_is_read(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_late(*_: Any, **__: Any) -> None:
        raise AssertionError("data are read, or training begins")

    monkeypatch.setattr(semisup_runs, "train_task", too_late)
    _assert_told(arguments, message, capsys)


def test_a_missing_folder_is_told_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    _assert_told(["mnist", "--data-root", "nowhere"], "data_root must be a folder", capsys)


def _assert_told(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        app(["semisup", *arguments, "--seeds", "1", "--updates", "1"])
    assert stopped.value.code == 1
    shown = " ".join(capsys.readouterr().err.split())
    assert message in shown
    assert "Traceback" not in shown


def test_places_that_cannot_be_written_are_told_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(semisup_runs, "train_task", lambda **_: pytest.fail("nothing was to be trained"))
    for option, place in (("--json", tmp_path), ("--picture", tmp_path / "pool.pdf")):
        assert isinstance(run("--seeds", "1", option, str(place)).exception, EvidentiaError)


@pytest.mark.parametrize(
    "options", [["--norm", "layer"], ["--seeds", "0"], ["--preset", "slow"], ["--validation", "-1"]]
)
def test_bad_options_are_refused_before_any_work(options: list[str]) -> None:
    assert runner.invoke(app, ["semisup", "two-moons", *options]).exit_code == 2


def test_any_setting_can_be_given() -> None:
    robust = ["clusters=None", "scope=full", "joint=False", 'regulariser={"uncertainty": 0}']
    others = ["objective.epsilon=0.5", "training.learning_rate=1e-3", "training.network=mlp", "data.pool_size=50"]
    found = given_settings([*robust, *others])
    method = robust_method("meta", found["robust_options"])
    assert (method.clusters, method.scope, method.joint, method.regulariser.uncertainty) == (None, "full", False, 0)
    assert found["objective_options"] == {"epsilon": 0.5}
    assert found["data_options"] == {"pool_size": 50}
    assert (found["learning_rate"], found["network"]) == (0.001, "mlp")
    for wrong in ("clusters", "=3", "", "objective.=3", "nothing.else=3"):
        with pytest.raises(EvidentiaError, match="name=value"):
            given_settings([wrong])
    with pytest.raises(EvidentiaError, match=r"training\.seed is given by --first-seed and --seeds"):
        given_settings(["training.seed=3"])
    with pytest.raises(EvidentiaError, match="training has no setting 'epochs'; choose one of: labeled_batch"):
        given_settings(["training.epochs=3"])


def test_settings_of_objective_training_and_data_are_trained_with_and_recorded(tmp_path: Path) -> None:
    given = ["objective.epsilon=0.5", "training.learning_rate=0.02", "data.unlabeled=150", "data.labels_per_class=4"]
    board = tmp_path / "board"
    options = [part for each in [*given, f"training.tensorboard={board}"] for part in ("--set", each)]
    file = tmp_path / "out.json"
    result = run("--objective", "vat", "--seeds", "1", "--no-controls", *options, "--json", str(file))
    assert result.exit_code == 0, result.output
    configuration = json.loads(file.read_text())["configuration"]
    assert "epsilon=0.5" in configuration["trained"]["objective"]
    assert configuration["trained"]["learning_rate"] == 0.02
    assert configuration["trained"]["passes"] == "concat"
    assert configuration["trained"]["network"] == "mlp"
    assert "8 to train on" in result.output
    assert any((board / "method-0").iterdir())


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("objective.epsilonn=1", "VAT has no setting 'epsilonn'; it has these: weight"),
        ("training.learning_rate=fast", "learning_rate: Input should be a valid number"),
        ("data.labels=3", "data have no setting 'labels'; choose one of: labels_per_class"),
    ],
)
def test_wrong_settings_are_told_before_any_work(
    setting: str, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(semisup_runs, "train_task", lambda **_: pytest.fail("nothing was to be trained"))
    _assert_told(["two-moons", "--objective", "vat", "--set", setting], message, capsys)
