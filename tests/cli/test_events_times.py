"""Times on stdin that are missing, or none: what files refuse is refused, and nothing is lost in silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evidentia.cli import app


def detect(pump: Path, file: str | Path, *options: str | Path, stdin: str | None = None) -> Any:
    arguments = ["events", "detect", str(pump / "pump.safetensors"), str(file), "--format", "json"]
    return CliRunner().invoke(app, [*arguments, *map(str, options)], input=stdin and stdin.encode())


def found(result: Any) -> list[dict[str, Any]]:
    assert result.exit_code == 0, f"{result.output} {result.exception}"
    return [json.loads(line) for line in result.stdout.splitlines()]


def table(pump: Path, times: dict[int, str] | None = None, rows: slice = slice(None)) -> str:
    """The first recording with other times in some of its rows, and only some of the rows."""
    header, *lines = (pump / "0.csv").read_text().splitlines()
    split = [line.partition(",") for line in lines]
    cells = [f"{(times or {}).get(n, time)},{rest}" for n, (time, _, rest) in enumerate(split)]
    return "\n".join([header, *cells[rows]]) + "\n"


@pytest.mark.parametrize("stamp", ["2024-05-01T12:00:00", "12:00:01", "1_0", "soon", "inf", "-inf"])
def test_a_time_that_is_no_number_is_an_error_as_in_a_file(pump: Path, tmp_path: Path, stamp: str) -> None:
    given, state = table(pump, {120: stamp}), tmp_path / "state.safetensors"
    (tmp_path / "stamped.csv").write_text(given)
    assert "line 122 of" in str(detect(pump, tmp_path / "stamped.csv").exception)
    result = detect(pump, "-", "--state", state, stdin=given)
    assert result.exit_code == 1
    assert f"line 122 on stdin has '{stamp}' in its column of times, where there must be a number of seconds" in str(
        result.exception
    )
    # What came before it was heard, and is not again.
    rest = detect(pump, "-", "--state", state, stdin=table(pump))
    assert "120 lines on stdin were heard before" in rest.stderr
    assert found_before(result) + found(rest) == found(detect(pump, "-", stdin=table(pump)))


def found_before(result: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_stamps_on_a_stream_that_goes_on_are_not_passed_over(pump: Path, tmp_path: Path) -> None:
    state = tmp_path / "state.safetensors"
    found(detect(pump, "-", "--state", state, stdin=table(pump, rows=slice(50))))
    stamps = {n: f"12:00:{n}" for n in range(200)}
    result = detect(pump, "-", "--state", state, stdin=table(pump, stamps, slice(50, None)))
    assert result.exit_code == 1
    assert "line 2 on stdin has '12:00:50'" in str(result.exception)


@pytest.mark.parametrize("cell", ["", "NaN", "NA"])
def test_a_missing_time_is_in_its_turn(pump: Path, cell: str) -> None:
    whole = found(detect(pump, "-", stdin=table(pump)))
    assert found(detect(pump, "-", stdin=table(pump, {30: cell, 90: cell, 91: cell}))) == whole


def test_lines_before_the_first_time_are_passed_over_and_told(pump: Path, tmp_path: Path) -> None:
    state = tmp_path / "state.safetensors"
    found(detect(pump, "-", "--state", state, stdin=table(pump, rows=slice(20))))
    result = detect(pump, "-", "--state", state, stdin=table(pump, {20: "", 21: ""}, slice(20, None)))
    assert found(result)
    assert "line 2 on stdin has no time, by which to tell whether it was heard before" in result.stderr
    assert "it and up to 99 more are passed over until one has" in result.stderr
    assert "line 4 on stdin: 2 samples (0.2 s) are missing" in result.stderr
    assert "2 lines on stdin without a time were passed over" in result.stderr
    assert "were heard before and" not in result.stderr


def test_a_stream_that_has_lost_its_times_goes_on_after_a_while(
    pump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evidentia.cli.events_stdin._TIMELESS", 3)
    state = tmp_path / "state.safetensors"
    found(detect(pump, "-", "--state", state, stdin=table(pump, rows=slice(10))))
    timeless = dict.fromkeys(range(200), "")
    result = detect(pump, "-", "--state", state, stdin=table(pump, timeless, slice(7, None)))
    alarms = [each for each in found(result) if each["level"] == "alarm"]
    whole = [each for each in found(detect(pump, "-", stdin=table(pump))) if each["level"] == "alarm"]
    # Three were passed over, which here were heard before, so that the rest is what it would have been.
    assert alarms == whole
    assert "line 5 on stdin has no time either; it is taken to follow at once" in result.stderr
    assert "3 lines on stdin without a time were passed over" in result.stderr


def test_a_missing_time_among_lines_that_were_heard_is_in_its_turn(pump: Path, tmp_path: Path) -> None:
    state = tmp_path / "state.safetensors"
    whole = found(detect(pump, "-", stdin=table(pump)))
    first = found(detect(pump, "-", "--state", state, stdin=table(pump, rows=slice(100))))
    # Times stop with the second line, long before what is new.
    result = detect(pump, "-", "--state", state, stdin=table(pump, dict.fromkeys(range(2, 200), "")))
    assert first + found(result) == whole
    assert "100 lines on stdin were heard before and were passed over" in result.stderr
    assert "without a time" not in result.stderr


def test_a_column_of_times_cannot_be_named_without_names(pump: Path) -> None:
    bare = "".join(line.partition(",")[2] for line in table(pump).splitlines(keepends=True)[1:])
    assert found(detect(pump, "-", stdin=bare))
    result = detect(pump, "-", "--time", "stamp", stdin=bare)
    assert result.exit_code == 1
    assert "line 1 on stdin has no names, so there is no column 'stamp'" in str(result.exception)
    assert result.stdout == ""
