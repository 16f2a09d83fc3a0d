"""The command as a user meets it."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import evidentia
from evidentia._support.errors import EvidentiaError
from evidentia.cli import app
from evidentia.cli import demo as demo_module
from evidentia.graphs.catalog import CATALOG
from evidentia.graphs.methods import GRAPH_METHODS
from evidentia.semisup import OBJECTIVES, ROBUST
from evidentia.semisup.data.by_name import NAMES

runner = CliRunner()


def test_version() -> None:
    assert runner.invoke(app, ["--version"]).stdout.strip() == evidentia.__version__


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "evidentia", "--version"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip() == evidentia.__version__


def test_no_arguments_shows_help() -> None:
    result = runner.invoke(app, [])
    assert "demo" in result.stdout


@pytest.mark.parametrize(
    ("command", "argument", "known"),
    [
        ("graph", "data", ["synthetic", *CATALOG]),
        ("graph", "method", list(GRAPH_METHODS)),
        ("semisup", "data", list(NAMES)),
        ("semisup", "objective", list(OBJECTIVES)),
        ("semisup", "robust", list(ROBUST)),
    ],
)
def test_help_names_all_that_there_is(command: str, argument: str, known: list[str]) -> None:
    parameters = {each.name: each for each in get_command(app).commands[command].params}  # type: ignore[attr-defined]
    named = re.findall(r"[a-z0-9]+(?:-[a-z0-9]+)*", parameters[argument].help)
    assert [name for name in known if name not in named] == []


def test_bad_option_is_refused_before_any_work() -> None:
    result = runner.invoke(app, ["demo", "--seeds", "1"])
    assert result.exit_code == 2


def test_demo_prints_tables_and_writes_a_report_that_needs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_module, "EVENTS_SEEDS", range(2))
    result = runner.invoke(app, ["demo", "--seeds", "2", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    for word in ("vacuity", "dissonance", "out of distribution", "accept", "AUROC", "unknown classes", "w_in / w_ood"):
        assert word in result.stdout
    for word in ("fused", "false a minute", "  alarm ", "after its onset"):
        assert word in result.stdout
    assert result.stdout.count("95%") == 4
    written = {path.name for path in (tmp_path / "out").iterdir()}
    pictures = {"uncertainties.png", "roc.png", "gallery.png", "moons.png", "pool.png", "stream.png"}
    assert written == {"report.html", *pictures}
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("<img") == 6
    assert page.count("<table") == 7
    assert page.count('<table class="sorted"') == 6
    assert "evidentia demo --seeds 2 --first-seed 0" in page
    assert not re.findall(r'(?:src|href)="(?!data:)', page)


def test_errors_are_sentences_not_tracebacks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise EvidentiaError("the [data] is not there; get it")

    monkeypatch.setattr(demo_module, "run_demo", fail)
    with pytest.raises(SystemExit) as stopped:
        app(["demo"])
    assert stopped.value.code == 1
    shown = capsys.readouterr().err
    assert "error: the [data] is not there; get it" in shown
    assert "Traceback" not in shown


def test_files_that_cannot_be_used_are_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        (tmp_path / "none" / "report.html").write_text("")

    monkeypatch.setattr(demo_module, "run_demo", fail)
    with pytest.raises(SystemExit) as stopped:
        app(["demo"])
    assert stopped.value.code == 1
    shown = "".join(capsys.readouterr().err.split())
    assert "report.htmlcannotbeused:Nosuchfileordirectory" in shown
    assert "Traceback" not in shown


def test_what_a_terminal_has_no_sign_for_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_module, "run_demo", lambda *_: print("0.9 ± 0.1 in a\udcff.png"))
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding="ascii", write_through=True))
    with pytest.raises(SystemExit) as stopped:
        app(["demo"])
    assert stopped.value.code == 0
    assert shown.getvalue() == b"0.9 ? 0.1 in a?.png\n"


def test_where_the_report_of_the_demo_cannot_stand_is_told_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = runner.invoke(app, ["demo", "--out", str(tmp_path / "file")])
    assert isinstance(result.exception, EvidentiaError)
    assert "cannot be written" in str(result.exception)
    assert result.stdout == ""
