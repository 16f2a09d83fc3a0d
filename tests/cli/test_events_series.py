"""`evidentia events detect` on series: by the clock that comes with them, over pauses, from files and stdin alike."""

from __future__ import annotations

import io
import json
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from evidentia.cli import app
from evidentia.events import EventDetector

runner = CliRunner()


def run(*arguments: str | Path, stdin: bytes | None = None) -> Any:
    return runner.invoke(app, ["events", *map(str, arguments)], input=stdin)


def detect(pump: Path, file: str | Path, *options: str | Path, stdin: str | None = None) -> Any:
    given = None if stdin is None else stdin.encode()
    return run("detect", pump / "pump.safetensors", file, "--format", "json", *options, stdin=given)


def lines(result: Any) -> list[dict[str, Any]]:
    assert result.exit_code == 0, f"{result.output} {result.exception}"
    return [json.loads(line) for line in result.stdout.splitlines()]


def alarms(result: Any) -> list[float]:
    return [each["time"] for each in lines(result) if each["level"] == "alarm"]


def heard(pump: Path, state: Path) -> float:
    stream = EventDetector.load(pump / "pump.safetensors").stream()
    stream.load(state)
    return stream.time


def rows_of(pump: Path, number: int = 0, begin: float = 0.0) -> list[str]:
    """The lines of a recording, the names first, with times from another beginning."""
    header, *rows = (pump / f"{number}.csv").read_text().splitlines()
    split = [row.partition(",") for row in rows]
    return [header, *(f"{float(time) + begin:.1f},{rest}" for time, _, rest in split)]


def text(rows: list[str]) -> str:
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize("missing", [1, 3, 25])
def test_stdin_has_the_clock_and_the_gaps_of_the_file(pump: Path, tmp_path: Path, missing: int) -> None:
    rows = rows_of(pump, begin=1000.0)
    file = tmp_path / "gap.csv"
    file.write_text(text([*rows[:20], *rows[20 + missing :]]))
    expected = lines(detect(pump, file))
    result = detect(pump, "-", stdin=file.read_text())
    assert lines(result) == expected
    assert all(each["time"] > 1000 for each in expected)
    assert f"line 21 on stdin: {missing} samples ({missing / 10:g} s) are missing" in result.stderr
    assert f"{2 * missing} numbers missing or invalid" in result.stderr


def test_a_long_gap_lets_the_stream_begin_anew(pump: Path, tmp_path: Path) -> None:
    first, second = rows_of(pump), rows_of(pump, 1, begin=3600.0)
    result = detect(pump, "-", stdin=text([*first, *second[1:]]))
    alone = [alarms(detect(pump, "-", stdin=text(part))) for part in (first, second)]
    assert alone[1]
    assert alarms(result) == [*alone[0], *alone[1]]
    assert "35800 samples (3580 s) are missing; the detector begins anew" in result.stderr


def test_jitter_is_no_gap_and_a_clock_that_is_set_is_told(pump: Path) -> None:
    rows, draw = rows_of(pump), np.random.default_rng(0)
    shaken = [f"{n / 10 + draw.uniform(-0.03, 0.03):.3f},{row.partition(',')[2]}" for n, row in enumerate(rows[1:])]
    result = detect(pump, "-", stdin=text([rows[0], *shaken]))
    assert [each["segment"] for each in lines(result)] == [
        each["segment"] for each in lines(detect(pump, pump / "0.csv"))
    ]
    assert "missing" not in result.stderr
    back = detect(pump, "-", stdin=text([*rows_of(pump, begin=500.0), *rows[1:]]))
    assert "line 202 on stdin is at 0 s, after 520 s; its clock is taken to have been set" in back.stderr
    assert max(each["time"] for each in lines(back)[-1:]) < 25


@pytest.mark.parametrize(("factor", "told"), [(0.5, "20 Hz"), (2.0, "5 Hz"), (8.0, "1.25 Hz")])
def test_lines_of_another_rate_are_told(pump: Path, factor: float, told: str) -> None:
    header, *rows = rows_of(pump)[:30]
    other = [f"{n / 10 * factor:.2f},{row.partition(',')[2]}" for n, row in enumerate(rows)]
    result = detect(pump, "-", stdin=text([header, *other]))
    assert result.stderr.count(f"lines on stdin come at about {told} by their times, and the detector takes 10 Hz") == 1


def test_stdin_without_names_says_how_to_send_them(pump: Path) -> None:
    result = detect(pump, "-", stdin=text(rows_of(pump)[-10:]))
    assert result.exit_code == 1
    for part in (
        "line 1 on stdin has 3 channels and the detector takes 2 (flow, heat)",
        "no line of names",
        "tail -n +1 -f",
    ):
        assert part in str(result.exception)


def renamed(pump: Path, folder: Path, columns: tuple[str, ...]) -> Path:
    """The detector of the pump with other names of its channels, or none."""
    detector, path = EventDetector.load(pump / "pump.safetensors"), folder / "renamed.safetensors"
    detector.columns_ = columns
    detector.save(path)
    return path


@pytest.mark.parametrize("names", ["heat,1", "time,1,heat", "1,Time,heat", "time,heat,1"])
def test_names_may_be_numbers_on_stdin_as_in_files(pump: Path, tmp_path: Path, names: str) -> None:
    model, file, header = renamed(pump, tmp_path, ("1", "heat")), tmp_path / "numbers.csv", names.split(",")
    rows = [dict(zip(("time", "1", "heat"), row.split(","), strict=True)) for row in rows_of(pump)[1:]]
    file.write_text(text([names, *(",".join(row[name.lower()] for name in header) for row in rows)]))
    expected = lines(run("detect", model, file, "--format", "json"))
    assert [each["label"] for each in expected if each["level"] == "alarm"] == ["jam"]
    result = run("detect", model, "-", "--format", "json", stdin=file.read_bytes())
    assert lines(result) == expected
    assert "missing" not in result.stderr
    assert "20.0 s heard" in result.stderr


@pytest.mark.parametrize(
    ("columns", "first", "told"),
    [
        (("1", "heat"), "load,1", "stdin has 2 channels, load, 1, and needs 1, heat"),
        (("1", "heat"), "heat,2", "stdin has 2 channels, heat, 2, and needs 1, heat"),
        (("0", "1"), "time,0,1", "0.3 s heard: 0 alarms"),
        ((), "1,heat", "0.3 s heard: 0 alarms"),
        (("1", "heat"), "12:00:01,1,2", "line 1 on stdin has 3 channels"),
        ((), "2024-05-01T12:00:00,1,2", "line 1 on stdin has 3 channels"),
        # What a sensor sends when it fails is a missing number.
        (("1", "heat"), "ERR,0.25", "1 number missing or invalid"),
        ((), "0.25,ERR", "1 number missing or invalid"),
    ],
)
def test_a_text_among_numbers_makes_a_line_of_names_only_if_it_is_one(
    pump: Path, tmp_path: Path, columns: tuple[str, ...], first: str, told: str
) -> None:
    model = renamed(pump, tmp_path, columns)
    rows = [f"{n / 10}{first.count(',') * ',0'}" for n in range(3)]
    result = run("detect", model, "-", "--no-warnings", stdin=text([first, *rows]).encode())
    assert told in f"{result.stderr} {result.exception}"


@pytest.mark.parametrize("source", ["file", "stdin"])
def test_a_state_keeps_the_clock(pump: Path, tmp_path: Path, source: str) -> None:
    """A pause between two files is a gap, and a file that has grown goes on where it was."""
    state, file = tmp_path / "state.safetensors", tmp_path / "grown.csv"

    def listen(rows: list[str]) -> Any:
        file.write_text(text(rows))
        if source == "file":
            return detect(pump, file, "--state", state)
        return detect(pump, "-", "--state", state, stdin=text(rows))

    first = rows_of(pump, begin=100.0)
    whole = lines(detect(pump, "-", stdin=text(first)))
    part = listen(first[:120])
    rest = listen(first)
    assert lines(part) + lines(rest) == whole
    told = "119 samples of grown.csv were heard" if source == "file" else "119 lines on stdin were heard before"
    assert told in rest.stderr
    assert heard(pump, state) == pytest.approx(20.0)
    again = listen(first)
    assert lines(again) == []
    assert "take another --state" in again.stderr
    second = rows_of(pump, 1, begin=3700.0)
    later = listen(second)
    assert "35800 samples (3580 s) are missing; the detector begins anew" in later.stderr
    assert alarms(later) == alarms(detect(pump, "-", stdin=text(second)))
    assert heard(pump, state) == pytest.approx(3620.0)


def test_what_is_told_at_the_end_is_of_this_command_alone(pump: Path, tmp_path: Path) -> None:
    rows = [row if n % 50 else f"{row.rpartition(',')[0]}," for n, row in enumerate(rows_of(pump), start=1)]
    state = tmp_path / "state.safetensors"
    first = detect(pump, "-", "--state", state, stdin=text(rows[:120]))
    assert first.stderr.rstrip().endswith("; 2 numbers missing or invalid")
    rest = detect(pump, "-", "--state", state, stdin=text(rows))
    assert rest.stderr.rstrip().endswith(f"; {len(rows) // 50 - 2} numbers missing or invalid")


def test_what_a_state_does_not_know_is_told(pump: Path, tmp_path: Path) -> None:
    state, rows = tmp_path / "state.safetensors", rows_of(pump)
    bare = text([row.partition(",")[2] for row in rows])
    detect(pump, "-", "--state", state, stdin=bare)
    assert "has no clock" in detect(pump, "-", "--state", state, stdin=text(rows)).stderr
    (tmp_path / "bare.csv").write_text(bare)
    for result in (
        detect(pump, "-", "--state", state, stdin=bare),
        detect(pump, tmp_path / "bare.csv", "--state", state),
    ):
        assert "has no column of times and is taken to follow at once" in result.stderr
    # The clock has gone on meanwhile: two recordings of 20 s without one.
    late = detect(pump, "-", "--state", state, stdin=text(rows_of(pump, 1, begin=60.0)))
    assert "missing" not in late.stderr
    assert "heard before" not in late.stderr


def test_the_column_of_times_has_any_name(pump: Path, tmp_path: Path) -> None:
    folder = tmp_path / "stamped"
    folder.mkdir()
    for file in pump.glob("*.csv"):
        (folder / file.name).write_text(file.read_text().replace("time,", "stamp,", 1))
    expected = lines(detect(pump, pump / "0.csv"))
    stamped = folder / "0.csv"
    assert lines(detect(pump, stamped, "--time", "stamp")) == expected
    assert lines(detect(pump, "-", "--time", "stamp", stdin=stamped.read_text())) == expected
    upper = stamped.read_text().replace("stamp,", "TIME,", 1)
    assert lines(detect(pump, "-", stdin=upper)) == expected
    model = tmp_path / "new.safetensors"
    result = run("train", folder, "--out", model, "--time", "stamp", "--epochs", "1", "--macro-f1", "0.9")
    assert result.exit_code == 0, result.output
    assert EventDetector.load(model).columns_ == ("flow", "heat")
    assert run("evaluate", model, folder, "--time", "stamp").exit_code == 0
    for result in (
        run("train", folder, "--out", model),
        run("evaluate", model, folder),
        detect(pump, stamped, "--time", "watch"),
    ):
        assert "pass --rate, or --time with the name" in str(result.exception)
    assert "--time must name one" in str(detect(pump, "-", "--time", "watch", stdin=stamped.read_text()).exception)
    # With a rate instead, the times become a channel, which is told.
    result = run("train", folder, "--out", model, "--rate", "10", "--epochs", "1", "--macro-f1", "0.9")
    assert "0.csv has stamp among its channels" in result.stderr
    assert "(--time)" in result.stderr
    assert lines(detect(pump, pump / "0.csv", "--rate", "10")) == expected


def test_samples_that_share_a_decision(pump: Path, tmp_path: Path) -> None:
    model = tmp_path / "pump.safetensors"
    result = run("train", pump, "--out", model, "--segment", "5", "--epochs", "1", "--macro-f1", "0.5")
    assert result.exit_code == 0, result.output
    assert EventDetector.load(model).inputs_.seconds == 0.5
    found = lines(run("detect", model, pump / "0.csv", "--format", "json"))
    assert found
    assert all(each["time"] % 0.5 == 0 for each in found)
    assert lines(run("detect", model, "-", "--format", "json", stdin=(pump / "0.csv").read_bytes())) == found


def test_a_sensor_that_is_too_fast_for_a_decision_a_sample_is_told(tmp_path: Path) -> None:
    samples = np.random.default_rng(0).normal(size=2000)
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("hum\n" + "\n".join(f"{sample:.3f}" for sample in samples))
        (tmp_path / f"{name}.events.csv").write_text("label,onset,offset\nknock,0.1,0.2\n")
    result = run("train", tmp_path, "--out", tmp_path / "model", "--rate", "8000", "--epochs", "1")
    assert result.exit_code == 0, result.output
    assert "warning: there are 8,000 segments a second" in result.stderr
    assert "share one: --segment 64" in result.stderr


def test_semicolons_and_decimal_commas_on_stdin(pump: Path) -> None:
    rows = text(rows_of(pump)).replace(",", ";").replace(".", ",")
    assert lines(detect(pump, "-", stdin=rows)) == lines(detect(pump, pump / "0.csv"))
    bare = "".join(f"{row.partition(';')[2]}\n" for row in rows.splitlines()[1:])
    assert lines(detect(pump, "-", stdin=bare)) == lines(detect(pump, pump / "0.csv"))


def test_numbers_that_do_not_come_are_told(pump: Path) -> None:
    rows = [row if n < 50 else f"{row.rpartition(',')[0]},ERR" for n, row in enumerate(rows_of(pump))]
    result = detect(pump, "-", stdin=text(rows))
    assert "151 numbers missing or invalid" in result.stderr
    assert result.stderr.count("channel heat has had no number in the last 100 lines, up to line 150") == 1
    assert result.stderr.count("has had no number") == 1


def test_a_state_is_tried_at_the_beginning(pump: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place, told in ((tmp_path, "is a folder"), (tmp_path / "file" / "state", "cannot be written")):
        result = detect(pump, "-", "--state", place, stdin=text(rows_of(pump)))
        assert told in str(result.exception)
        assert result.stdout == ""


class Watched(io.BytesIO):
    """Lines, at the last of which something happens."""

    def __init__(self, rows: str, happens: Any) -> None:
        super().__init__(rows.encode())
        self.happens = happens

    def readline(self, size: int | None = -1) -> bytes:
        line = super().readline(size)
        if not line:
            self.happens()
        return line


def test_a_state_is_written_while_the_stream_waits(pump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line comes any more, and yet all that was heard is in the file after a while."""
    state, times = tmp_path / "state.safetensors", [0.0]

    def wait() -> None:
        deadline = time.monotonic() + 60
        while times[-1] < 19.95 and time.monotonic() < deadline:
            times.append(heard(pump, state) if state.exists() else 0.0)

    monkeypatch.setattr("evidentia.cli.events_state._EVERY", 0.01)
    source = Watched(text(rows_of(pump)), wait)
    monkeypatch.setattr("typer.get_binary_stream", lambda _: source)
    lines(detect(pump, "-", "--state", state))
    assert times[-1] == pytest.approx(20.0)


def test_a_state_that_cannot_be_written_any_more_ends_the_stream(
    pump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Endless(io.BytesIO):
        deadline = time.monotonic() + 60

        def readline(self, size: int | None = -1) -> bytes:
            return b"0.1,0.1\n" if time.monotonic() < self.deadline else b""

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evidentia.cli.events_state._EVERY", 0.01)
    monkeypatch.setattr("evidentia.cli.events_state.save_tensors", full)
    source = Endless()
    monkeypatch.setattr("typer.get_binary_stream", lambda _: source)
    result = detect(pump, "-", "--state", tmp_path / "state.safetensors")
    assert "No space left" in str(result.exception)
    assert time.monotonic() < source.deadline


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has no SIGHUP")
def test_a_terminal_that_is_closed_leaves_the_state(
    pump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state.safetensors"
    source = Watched(text(rows_of(pump)), lambda: signal.raise_signal(signal.SIGHUP))
    monkeypatch.setattr("typer.get_binary_stream", lambda _: source)
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        # Should the command not take it, the tests are to go on.
        signal.signal(signal.SIGHUP, lambda *_: None)
        assert detect(pump, "-", "--state", state).exit_code == 128 + signal.SIGHUP
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        source.seek(0)
        assert detect(pump, "-").exit_code == 0, "nohup is to go on"
    finally:
        signal.signal(signal.SIGHUP, before)
    assert heard(pump, state) == pytest.approx(20.0)


def test_sound_is_refused_by_a_detector_of_a_series(pump: Path, tmp_path: Path) -> None:
    for name in ("a.wav", "a.FLAC"):
        result = detect(pump, tmp_path / name)
        assert f"{name} is a sound file, and the detector takes a series of 2 channels at 10 Hz" in str(
            result.exception
        )


def test_names_with_square_brackets_are_printed_as_they_are(pump: Path, tmp_path: Path) -> None:
    """Where they are in tables, titles and sentences; they are no markup, and words between colons no emoji."""
    folder = tmp_path / "[red]pump"
    folder.mkdir()
    for number in range(8):
        (folder / f"{number}.csv").write_text((pump / f"{number}.csv").read_text())
        jam = (pump / f"{number}.events.csv").read_text().replace("jam", "dog [bark]")
        (folder / f"{number}.events.csv").write_text(jam + "[/valve],1,2\n:bell:,2,3\n" * (number < 4))
    model = tmp_path / "model.safetensors"
    (tmp_path / "held").mkdir()
    for name in ("7.csv", "7.events.csv"):
        (tmp_path / "held" / name).write_text((folder / name).read_text())
    options = ["--epochs", "1", "--macro-f1", "0.5", "--validation", tmp_path / "held"]
    trained = run("train", folder, "--out", model, *options)
    assert trained.exit_code == 0, f"{trained.output} {trained.exception}"
    assert "[red]pump: 8 clips, 3 classes" in trained.stdout
    # Of [/valve] and of :bell: there is nothing among the clips held out.
    assert "they have no event of :bell:, [/valve]: nothing is known" in trained.stdout
    scored = run("evaluate", model, folder)
    assert scored.exit_code == 0, f"{scored.output} {scored.exception}"
    assert "[red]pump, 8 clips, by clip" in scored.stdout
    # A narrow table breaks names at their spaces.
    for name in ("[bark]", "[/valve]", ":bell:"):
        assert name in scored.stdout
