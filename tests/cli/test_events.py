"""`evidentia events` on synthetic clips, with a detector trained once."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from evidentia import EvidentiaError
from evidentia._version import __version__
from evidentia.cli import app
from evidentia.events import Clip, DetectorStream, EventDetector, load_clips, read_audio

soundfile = pytest.importorskip("soundfile")
runner = CliRunner()
KEYS = {"label", "time", "segment", "level", "belief", "disbelief", "vacuity", "base_rate", "probability", "delay"}


def run(*arguments: str | Path, stdin: bytes | None = None) -> Any:
    return runner.invoke(app, ["events", *map(str, arguments)], input=stdin)


def lines(result: Any) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sounds, a tsv file with their events, and the samples of the first as they are."""
    folder = tmp_path_factory.mktemp("sounds")
    rows = ["filename\tonset\toffset\tevent_label"]
    for number, clip in enumerate(load_clips("synthetic", count=6)):
        samples = (clip.samples.numpy() * 32767).astype("<i2")
        soundfile.write(folder / f"{number}.wav", samples, 16_000, subtype="PCM_16")
        rows += [f"{number}.wav\t{event.onset}\t{event.offset}\t{event.label}" for event in clip.events]
        if number == 0:
            (folder / "first.raw").write_bytes(samples.tobytes())
    (folder / "labels.tsv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A detector, and what was printed about it."""
    out = tmp_path_factory.mktemp("models") / "model.safetensors"
    result = run("train", "synthetic", "--out", out, "--epochs", "1", "--clips", "8", "--seed", "3")
    assert result.exit_code == 0, result.output
    return out, result.stdout


@pytest.fixture(scope="module")
def model(trained: tuple[Path, str]) -> Path:
    """The same detector with a threshold at which it calls now and then, however little it has learned."""
    detector = EventDetector.load(trained[0])
    found = detector.beta(load_clips("synthetic", count=2))
    for name in ("head_", "warning_"):
        head = getattr(detector, name)
        score = head.fuse(found.alpha, found.beta).score
        level = float(score[score.isfinite()].quantile(0.9))
        changes = {"threshold": level, "max_vacuity": 1.0} if name == "head_" else {"threshold": level}
        setattr(detector, name, head.model_copy(update=changes))
    path = trained[0].with_name("lively.safetensors")
    detector.save(path)
    return path


def test_training_prints_what_was_calibrated(trained: tuple[Path, str]) -> None:
    path, printed = trained
    for word in ("synthetic: 8 clips, ", "at most 2 false alarms a minute", "macro F1", "threshold", "window", "decay"):
        assert word in printed
    detector = EventDetector.load(path)
    assert detector.settings.seed == 3
    # Beneath the target is the figure that it counted, and which classes it knew nothing of.
    assert f"{detector.calibration_['scores']['false_alarms_per_minute']:.3f} false alarms a minute" in printed
    assert f"no event of {detector.calibration_['missing'][0]}" in printed
    # Seconds of clips do not tell how often a false alarm comes.
    assert 0 < detector.calibration_["minutes"] < 1.5
    assert "to be sure takes about 1.5" in printed


def test_rare_alarms_are_told_by_the_hour_and_long_times_without_an_exponent(tmp_path: Path) -> None:
    result = run(
        "train", "synthetic", "--clips", "6", "--epochs", "1", "--false-alarms", "0.01", "--out", tmp_path / "d"
    )
    printed = " ".join(result.stdout.split())
    assert "at most 0.01 false alarms a minute (0.6 an hour)" in printed
    assert "to be sure takes about 300: more may come" in printed


def test_evaluation_prints_and_writes_every_figure(model: Path, tmp_path: Path) -> None:
    file, picture = tmp_path / "out.json", tmp_path / "clip.png"
    result = run("evaluate", model, "synthetic", "--clips", "3", "--json", file, "--picture", picture)
    assert result.exit_code == 0, result.output
    for word in ("macro F1", "micro F1", "false alarms a minute", "delay", "miss", "siren", "precision"):
        assert word in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    saved = json.loads(file.read_text())
    assert saved["evidentia_version"] == __version__
    assert saved["configuration"]["network"] == "crnn"
    assert saved["configuration"]["head"]["name"] == "wbc"
    # Among the few clips that it was trained on there was no hiss.
    assert "warning: the detector does not know hiss" in result.stderr
    with pytest.warns(UserWarning, match="does not know hiss"):
        expected = EventDetector.load(model).evaluate(load_clips("synthetic", "test", count=3)).summary()
    assert "processor seconds a second of input" in result.stdout
    # No two runs take the same time.
    assert 0 < saved["mean"]["inference_time"] < float("inf")
    del expected["inference_time"]
    for name, value in expected.items():
        assert saved["mean"].get(name) == (None if value is None else pytest.approx(value))
    assert set(saved["mean"]["classes"]) == set(EventDetector.load(model).labels_)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(tmp_path) not in file.read_text()
    assert str(model.parent) not in file.read_text()


def test_a_file_and_stdin_give_the_same_detections_in_any_chunks(model: Path, folder: Path) -> None:
    raw = (folder / "first.raw").read_bytes()
    samples = np.frombuffer(raw, dtype="<i2").astype(np.float32) / 32_768
    expected = [each.to_dict() for each in EventDetector.load(model).stream().push(samples)]
    assert expected
    assert set(expected[0]) == KEYS
    sound = folder / "0.wav"
    assert lines(run("detect", model, sound, "--format", "json")) == expected
    assert lines(run("detect", model, sound, "--format", "json", "--chunk", "2.5")) == expected
    assert lines(run("detect", model, "-", "--format", "json", "--rate", "16000", stdin=raw)) == expected
    assert lines(run("detect", model, "-", "--format", "json", "--chunk", "0.01", stdin=raw)) == expected


def test_text_says_what_and_when(model: Path, folder: Path) -> None:
    sound = folder / "0.wav"
    found = lines(run("detect", model, sound, "--format", "json"))
    result = run("detect", model, sound)
    shown = result.stdout.splitlines()
    assert len(shown) == len(found)
    for line, detection in zip(shown, found, strict=True):
        assert f"{detection['time']:.3f} s" in line
        assert detection["level"] in line
        assert f"belief {detection['belief']:.2f}" in line
    assert "10.0 s heard" in result.stderr


def test_classes_and_warnings_can_be_left_out(model: Path, folder: Path) -> None:
    sound = folder / "0.wav"
    alarms = [each for each in lines(run("detect", model, sound, "--format", "json")) if each["level"] == "alarm"]
    assert lines(run("detect", model, sound, "--format", "json", "--no-warnings")) == alarms
    label = alarms[0]["label"]
    only = lines(run("detect", model, sound, "--format", "json", "--no-warnings", "--label", label))
    assert only == [each for each in alarms if each["label"] == label]


def test_a_stream_goes_on_from_its_state(model: Path, folder: Path, tmp_path: Path) -> None:
    raw, state = (folder / "first.raw").read_bytes(), tmp_path / "state.safetensors"
    whole = lines(run("detect", model, "-", "--format", "json", stdin=raw))
    parts = []
    for first, last in ((0, 100_002), (100_002, 100_100), (100_100, None)):
        parts += lines(run("detect", model, "-", "--format", "json", "--state", state, stdin=raw[first:last]))
    assert parts == whole


def test_a_stream_that_is_stopped_keeps_its_state(
    model: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw, state = (folder / "first.raw").read_bytes(), tmp_path / "state.safetensors"
    whole = lines(run("detect", model, "-", "--format", "json", stdin=raw))

    class Stopped(io.BytesIO):
        def read1(self, size: int | None = -1) -> bytes:
            if self.tell() >= 100_000:
                raise KeyboardInterrupt
            return super().read1(min(size or 0, 100_000 - self.tell()))

    with monkeypatch.context() as patch:
        patch.setattr("typer.get_binary_stream", lambda _: Stopped(raw))
        first = lines(run("detect", model, "-", "--format", "json", "--state", state))
    rest = lines(run("detect", model, "-", "--format", "json", "--state", state, stdin=raw[100_000:]))
    assert first + rest == whole


class Endless(io.BytesIO):
    """Samples of which each third reading does something: SIGTERM comes, or Ctrl-C."""

    def __init__(self, raw: bytes, happens: Callable[[], None]) -> None:
        super().__init__(raw)
        self.happens, self.readings = happens, 0

    def read1(self, size: int | None = -1) -> bytes:
        self.readings += 1
        if self.readings % 3 == 0:
            self.happens()
        return super().read1(40_000)


def left(state: Path, model: Path) -> float:
    """How much of a stream was heard by the time its state was written."""
    stream = EventDetector.load(model).stream()
    stream.load(state)
    return stream.time


def test_every_command_has_the_trigger_of_the_streams(
    model: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Options that the library has: x-out-of-y and refractory time, and what a score counts as too late or early."""
    file = tmp_path / "out.json"
    rule = {"needed": 2, "of": 5, "refractory": 0.5}
    options = [word for name, value in rule.items() for word in (f"--{name}", str(value))]
    found = lines(run("detect", model, folder / "0.wav", "--format", "json", *options))
    detector = EventDetector.load(model)
    stream = detector.stream(**rule)
    sound = np.frombuffer((folder / "first.raw").read_bytes(), dtype="<i2").copy()
    assert [(each["label"], each["time"]) for each in found] == [(d.label, d.time) for d in stream.push(sound)]
    assert found != lines(run("detect", model, folder / "0.wav", "--format", "json"))
    counted = ["--by", "event", "--max-delay", "0.4", "--early-collar", "0.2"]
    result = run("evaluate", model, "synthetic", "--clips", "3", "--json", file, *options, *counted)
    assert result.exit_code == 0, result.output
    clips = load_clips("synthetic", "test", count=3)
    with pytest.warns(UserWarning, match="does not know hiss"):
        expected = detector.evaluate(clips, by="event", max_delay=0.4, early_collar=0.2, **rule).summary()
    saved = json.loads(file.read_text())
    assert saved["mean"]["false_alarms_per_minute"] == pytest.approx(expected["false_alarms_per_minute"])
    assert saved["configuration"]["trigger"] == rule
    drawn: list[dict[str, Any]] = []
    figures = pytest.importorskip("matplotlib.figure")

    def draw(*_: Any, **given: Any) -> Any:
        drawn.append(given)
        return figures.Figure()

    monkeypatch.setattr("evidentia.reports.clip_picture", draw)
    result = run("evaluate", model, "synthetic", "--clips", "3", "--picture", tmp_path / "clip.png", *options)
    assert (result.exit_code, drawn) == (0, [rule])
    assert (saved["configuration"]["max_delay"], saved["configuration"]["early_collar"]) == (0.4, 0.2)


def test_training_takes_the_trigger_and_the_kind_of_clips(tmp_path: Path) -> None:
    """A microphone in a CSV file is sound, and what it was calibrated for stays with the detector."""
    for number, clip in enumerate(load_clips("synthetic", count=4)):
        rows = "\n".join(f"{value:.5f}" for value in clip.samples[:64_000].tolist())
        (tmp_path / f"{number}.csv").write_text(f"microphone\n{rows}\n")
        events = [event for event in clip.events if event.onset < 3.9]
        marks = "".join(f"{event.label},{event.onset},{min(event.offset, 4.0)}\n" for event in events)
        (tmp_path / f"{number}.events.csv").write_text(f"label,onset,offset\n{marks}")
    out = tmp_path / "model.safetensors"
    options = ["--sound", "--rate", "16000", "--epochs", "1", "--needed", "2", "--of", "3", "--refractory", "0.5"]
    result = run("train", tmp_path, "--out", out, *options, "--max-delay", "1.5", "--early-collar", "0.1")
    assert result.exit_code == 0, result.output
    assert "classes; crnn, " in result.stdout
    detector = EventDetector.load(out)
    assert detector.trigger.model_dump() == {"needed": 2, "of": 3, "refractory": 0.5}
    assert (detector.tuning.max_delay, detector.tuning.early_collar) == (1.5, 0.1)
    assert detector.inputs_.sample_shape == ()
    assert run("detect", out, tmp_path / "0.csv").exit_code == 0


def test_training_starts_from_another_detector(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--clips", "8", "--epochs", "1", "--seed", "3", "--start", str(model)]
    out = tmp_path / "started.safetensors"
    result = run("train", "synthetic", "--out", out, *options)
    assert result.exit_code == 0, result.output
    EventDetector.load(out)
    with pytest.raises(SystemExit):
        app(["events", "train", "synthetic", "--out", str(out), *options, "--size", "dcase"])
    assert "the same network, size and network_settings" in " ".join(capsys.readouterr().err.split())


def test_sound_files_are_read_in_blocks(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stereo at another rate, a block in memory at a time: the detections are those of the whole in one push."""
    draw = np.random.default_rng(0)
    clip = load_clips("synthetic", count=1)[0].samples.numpy()
    path = tmp_path / "long.flac"
    soundfile.write(path, 0.5 * np.stack([np.tile(clip, 3), 0.2 * draw.standard_normal(480_000)], 1), 22_050)
    whole, rate = read_audio(path, 16_000)
    expected = EventDetector.load(model).stream().push(whole, rate=rate)
    read, sizes, spoken = soundfile.SoundFile.read, [], []

    def watched(file: Any, frames: int = -1, *given: Any, **options: Any) -> Any:
        samples = read(file, frames, *given, **options)
        sizes.append(len(samples))
        return samples

    echo = typer.echo
    monkeypatch.setattr(soundfile.SoundFile, "read", watched)
    monkeypatch.setattr("evidentia.cli.events_listen.typer.echo", lambda *a, **k: (spoken.append(len(sizes)), echo(*a)))
    found = lines(run("detect", model, path, "--format", "json"))
    assert [each["time"] for each in found] == [each.time for each in expected]
    assert [each["label"] for each in found] == [each.label for each in expected]
    assert sum(sizes) == 480_000
    assert max(sizes) < 40_000
    # The first was told before the file was read to its end.
    assert spoken[0] < len(sizes)


def test_a_file_that_is_not_there_leaves_no_state(model: Path, tmp_path: Path) -> None:
    state = tmp_path / "state.safetensors"
    assert run("detect", model, tmp_path / "no.wav", "--state", state).exit_code != 0
    assert not state.exists()


def test_sigterm_keeps_the_state(model: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw, state = (folder / "first.raw").read_bytes(), tmp_path / "state.safetensors"
    ours = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        source = Endless(raw, lambda: signal.raise_signal(signal.SIGTERM))
        monkeypatch.setattr("typer.get_binary_stream", lambda _: source)
        assert run("detect", model, "-", "--state", state).exit_code == 128 + signal.SIGTERM
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, ours)
    assert left(state, model) == pytest.approx(2.5)


def test_ctrl_c_within_a_chunk_keeps_the_state(
    model: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    push, calls = DetectorStream.push, 0

    def stopped(stream: DetectorStream, *given: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return push(stream, *given, **options)

    monkeypatch.setattr(DetectorStream, "push", stopped)
    raw, state = (folder / "first.raw").read_bytes(), tmp_path / "state.safetensors"
    result = run("detect", model, "-", "--chunk", "0.5", "--state", state, stdin=raw)
    assert result.exit_code == 0
    assert "1.0 s heard" in result.stderr
    assert left(state, model) == pytest.approx(1.0)
    calls = 0
    state.unlink()
    result = run("detect", model, folder / "0.wav", "--chunk", "0.5", "--state", state)
    assert result.exit_code != 0
    assert left(state, model) == pytest.approx(1.0)


def test_what_a_reader_that_went_away_was_not_told_is_told_the_next_time(
    model: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the pipe breaks at the second detection: none is lost, and the first is not told again."""
    raw, state = (folder / "first.raw").read_bytes(), tmp_path / "state.safetensors"
    whole = lines(run("detect", model, "-", "--format", "json", stdin=raw))
    echo, spoken = typer.echo, []

    def once(told: str, **options: Any) -> None:
        if spoken:
            raise BrokenPipeError
        spoken.append(json.loads(told))
        echo(told, **options)

    with monkeypatch.context() as patch:
        patch.setattr("evidentia.cli.events_listen.typer.echo", once)
        assert run("detect", model, "-", "--format", "json", "--state", state, stdin=raw).exit_code != 0
    assert 0 < left(state, model) < 10
    rest = raw[2 * round(16_000 * left(state, model)) :]
    assert spoken + lines(run("detect", model, "-", "--format", "json", "--state", state, stdin=rest)) == whole


def test_a_sound_file_goes_on_where_it_was_heard(model: Path, folder: Path, tmp_path: Path) -> None:
    raw, state = (folder / "first.raw").read_bytes(), tmp_path / "state.safetensors"
    samples = np.frombuffer(raw, dtype="<i2")
    whole = lines(run("detect", model, folder / "0.wav", "--format", "json"))
    assert whole
    file, parts = tmp_path / "grown.wav", []
    for length in (50_001, len(samples)):
        soundfile.write(file, samples[:length], 16_000, subtype="PCM_16")
        result = run("detect", model, file, "--format", "json", "--state", state)
        parts += lines(result)
    assert parts == whole
    assert "50001 samples of grown.wav were heard before" in result.stderr
    again = run("detect", model, file, "--format", "json", "--state", state)
    assert lines(again) == []
    assert "nothing is new" in again.stderr
    assert "take another --state" in again.stderr
    assert left(state, model) == pytest.approx(10.0)


@pytest.mark.parametrize("chunk", ["1e5", "1e9", "1e308"])
def test_chunks_of_any_length_are_taken(model: Path, folder: Path, chunk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted(io.BytesIO):
        largest = 0

        def read1(self, size: int | None = -1) -> bytes:
            Counted.largest = max(Counted.largest, size or 0)
            return super().read1(size)

    raw = (folder / "first.raw").read_bytes()
    expected = lines(run("detect", model, "-", "--format", "json", stdin=raw))
    monkeypatch.setattr("typer.get_binary_stream", lambda _: Counted(raw))
    assert lines(run("detect", model, "-", "--format", "json", "--chunk", chunk)) == expected
    assert Counted.largest <= 2**17
    assert lines(run("detect", model, folder / "0.wav", "--format", "json", "--chunk", chunk)) == expected


def test_half_a_sample_at_the_end_is_told(model: Path) -> None:
    result = run("detect", model, "-", stdin=bytes(4001))
    assert result.exit_code == 0
    assert "in the middle of one" in result.stderr


def test_stdin_that_is_closed(model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(SystemExit):
        app(["events", "detect", str(model), "-"])
    assert "which is closed" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(("kind", "begin"), [("wav", b"RIFF"), ("flac", b"fLaC"), ("ogg", b"OggS")])
def test_a_sound_file_on_stdin_is_no_raw_samples(model: Path, kind: str, begin: bytes) -> None:
    result = run("detect", model, "-", stdin=begin + bytes(4000))
    assert f"stdin has a {kind} file, and raw samples are needed" in str(result.exception)
    assert "ffmpeg -i FILE -f s16le -ac 1 -ar 16000 -" in str(result.exception)


@pytest.mark.parametrize("data", ["", "labels.tsv"])
def test_sounds_with_a_tsv_file(model: Path, folder: Path, data: str, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    result = run("evaluate", model, folder / data, "--by", "event", "--clips", "4", "--json", file)
    assert result.exit_code == 0, result.output
    assert "4 clips, by event" in result.stdout
    assert str(folder) not in file.read_text()


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (["--macro-f1", "0.9"], "a macro F1 of at least 0.9: NOT met"),
        (["--delay", "9", "--false-alarms", "100"], "a mean delay of at most 9 s: met"),
    ],
)
def test_training_on_a_folder_of_sounds(target: list[str], told: str, folder: Path, tmp_path: Path) -> None:
    options = ["--epochs", "1", "--preset", "none", "--head", "phase1", *target]
    result = run("train", folder, "--out", tmp_path / "new" / "model.safetensors", *options)
    assert result.exit_code == 0, result.output
    assert told in " ".join(result.stdout.split())
    assert EventDetector.load(tmp_path / "new" / "model.safetensors").preset is None


def test_a_series_from_files_and_from_stdin(pump: Path, tmp_path: Path) -> None:
    model, file = pump / "pump.safetensors", tmp_path / "out.json"
    result = run("evaluate", model, pump, "--json", file, "--picture", tmp_path / "clip.png")
    assert result.exit_code == 0, result.output
    assert json.loads(file.read_text())["mean"]["macro_f1"] > 0.5
    found = lines(run("detect", model, pump / "0.csv", "--format", "json"))
    assert {each["label"] for each in found if each["level"] == "alarm"} == {"jam"}
    text = (pump / "0.csv").read_bytes()
    header, _, rows = text.partition(b"\n")
    bare = b"\n".join(row.partition(b",")[2] for row in rows.splitlines())
    for given in (text, b"\n" + bare + b"\n\n", b"flow,heat\n" + bare):
        # An empty line first is no line of names.
        assert lines(run("detect", model, "-", "--format", "json", stdin=given)) == found
    holes = header + b"\n" + rows.replace(b"\n0.1,", b"\n0.1,nan,\n", 1)
    assert run("detect", model, "-", stdin=holes).exit_code == 0
    (tmp_path / "plain.csv").write_bytes(b"flow,heat\n" + bare)
    assert lines(run("detect", model, tmp_path / "plain.csv", "--format", "json")) == found
    one = run("evaluate", model, pump / "0.csv")
    assert "0.csv, 1 clips" in one.stdout
    (tmp_path / "plain.events.csv").write_text("label,onset,offset\njam,1,2\n")
    assert run("evaluate", model, tmp_path / "plain.csv", "--rate", "10").exit_code == 0


def test_a_malformed_line_is_missing_numbers_unless_it_is_the_first(pump: Path, tmp_path: Path) -> None:
    model, state = pump / "pump.safetensors", tmp_path / "state.safetensors"
    rows = (pump / "0.csv").read_bytes().splitlines()
    torn, holes = ([*rows[:50], line, *rows[51:]] for line in (b"4.9,0.0", b"4.9,,"))
    result = run("detect", model, "-", "--format", "json", "--state", state, stdin=b"\n".join(torn))
    assert "line 51 on stdin has 1 channels and the detector takes 2; its numbers are taken for" in result.stderr
    assert lines(result) == lines(run("detect", model, "-", "--format", "json", stdin=b"\n".join(holes)))
    assert left(state, model) == pytest.approx(20.0)
    # A first line of missing numbers is no line of names.
    bare = b"\n".join(row.partition(b",")[2] for row in rows[1:])
    named = b"flow,heat\n,\n" + bare
    found, expected = (lines(run("detect", model, "-", "--format", "json", stdin=x)) for x in (b",\n" + bare, named))
    assert found == expected
    result = run("detect", model, "-", stdin=b"1,2,3,4\n" + b"\n".join(rows[1:]))
    assert "line 1 on stdin has 4 channels and the detector takes 2" in str(result.exception)


def test_columns_are_known_by_their_names(pump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In another order they are put right, in files as on stdin; others are told."""
    model = pump / "pump.safetensors"
    assert EventDetector.load(model).columns_ == ("flow", "heat")
    found = lines(run("detect", model, pump / "0.csv", "--format", "json"))
    rows = [line.split(",") for line in (pump / "0.csv").read_text().splitlines()]
    turned = tmp_path / "turned.csv"
    turned.write_text("\n".join(f"{heat},{time},{flow}" for time, flow, heat in rows) + "\n")
    assert lines(run("detect", model, turned, "--format", "json")) == found
    assert lines(run("detect", model, "-", "--format", "json", stdin=turned.read_bytes())) == found
    (tmp_path / "turned.events.csv").write_text((pump / "0.events.csv").read_text())
    for data, file in ((turned, "turned.json"), (pump / "0.csv", "straight.json")):
        assert run("evaluate", model, data, "--json", tmp_path / file).exit_code == 0
    straight, mine = (json.loads((tmp_path / f"{name}.json").read_text())["mean"] for name in ("straight", "turned"))
    assert straight["classes"] == mine["classes"]
    turned.write_text(turned.read_text().replace("heat", "speed", 1))
    for command in (["detect", model, turned], ["evaluate", model, turned]):
        assert "needs flow, heat: heat is missing; speed is unknown" in refused(command, capsys)
    result = run("detect", model, "-", stdin=turned.read_bytes())
    assert "stdin has 2 channels, speed, flow, and needs flow, heat" in str(result.exception)


def test_a_series_with_holes_by_its_own_clock(pump: Path, tmp_path: Path) -> None:
    """Empty cells and a gap in times are missing numbers, and alarms are told by the clock of the file."""
    model, state = pump / "pump.safetensors", tmp_path / "state.safetensors"
    rows = [line.split(",") for line in (pump / "0.csv").read_text().splitlines()[1:]]
    samples = np.array([[float(flow), float(heat)] for _, flow, heat in rows])
    samples[20:23, 0] = np.nan
    samples[25:28] = np.nan
    kept = [n for n in range(len(rows)) if not 25 <= n < 28]
    cells = [f"{100 + n / 10:.1f},{'' if 20 <= n < 23 else rows[n][1]},{rows[n][2]}" for n in kept]
    (tmp_path / "holes.csv").write_text("\n".join(["time,flow,heat", *cells]) + "\n")
    expected = EventDetector.load(model).stream().push(samples)
    found = lines(run("detect", model, tmp_path / "holes.csv", "--format", "json", "--state", state))
    assert [each["time"] for each in found] == [pytest.approx(100 + each.time) for each in expected]
    assert left(state, model) == pytest.approx(20.0)


def test_bad_series_are_told_in_a_sentence(pump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, slow = pump / "pump.safetensors", tmp_path / "slow.csv"
    slow.write_text("time,flow,heat\n0,1,1\n1,1,1\n2,1,1\n")
    (tmp_path / "wide.csv").write_text("time,a,b,c\n0,1,1,1\n0.1,1,1,1\n")
    for arguments, message in (
        (["detect", model, slow], "1 samples a second"),
        (["detect", model, tmp_path / "wide.csv"], "3 channels"),
        (["detect", model, tmp_path / "no.csv"], "there is no file"),
        (["evaluate", model, tmp_path], "has the columns"),
        (["train", slow, "--out", tmp_path / "x"], "no event in any clip"),
    ):
        assert message in refused(arguments, capsys)


def refused(arguments: list[Any], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stopped:
        app(["events", *map(str, arguments)])
    assert stopped.value.code == 1
    shown = " ".join(capsys.readouterr().err.split())
    assert "Traceback" not in shown
    return shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "sinthetic", "--out", "x"], "there is no data set of events named 'sinthetic'"),
        (["train", "synthetic", "--out", "."], "is a folder"),
        (["train", "synthetic", "--out", "x", "--network", "rnn"], "'rnn'"),
        (["train", "synthetic", "--out", "x", "--head", "wcb"], "'wcb'"),
        (["train", "synthetic", "--out", "x", "--delay", "1", "--macro-f1", "0.5"], "a macro F1 is a target by itself"),
        (["train", "esc50-alarm", "--out", "x"], "pass data_root (--data-root)"),
        (["evaluate", "nowhere.safetensors", "synthetic"], "there is no file nowhere.safetensors"),
        (["detect", "nowhere.safetensors", "-"], "there is no file nowhere.safetensors"),
    ],
)
def test_bad_input_is_told_in_a_sentence(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: Any, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in refused(arguments, capsys)


def test_bad_files_are_told_in_a_sentence(
    model: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.wav"
    broken.write_bytes((folder / "0.wav").read_bytes()[:5000])
    (tmp_path / "labels.tsv").write_text("filename\tonset\toffset\tevent_label\na.wav\t0\t1\tcow\n")
    soundfile.write(tmp_path / "a.wav", np.zeros(32_000), 16_000)
    (tmp_path / "empty").mkdir()
    for arguments, message in (
        (["detect", model, broken], "truncated"),
        (["detect", model, tmp_path / "no.wav"], "there is no file"),
        (["detect", broken, folder / "0.wav"], "not a readable safetensors file"),
        (["detect", model, folder / "0.wav", "--label", "cow"], "labels must be a list of some of"),
        (["detect", model, folder / "0.wav", "--state", model], "of another kind"),
        (["evaluate", model, tmp_path], "no event of a class that the detector knows"),
        (["evaluate", model, tmp_path / "empty"], "must hold one tsv file of events, got 0"),
        (["evaluate", model, "synthetic", "--clips", "1", "--picture", tmp_path / "a.gif"], "a figure is saved as"),
    ):
        assert message in refused(arguments, capsys)


def test_another_rate_is_an_error(model: Path) -> None:
    result = run("detect", model, "-", "--rate", "8000", stdin=bytes(4000))
    assert result.exit_code == 1
    assert "takes 16000 samples a second, got 8000" in str(result.exception)


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "synthetic"],
        ["train", "synthetic", "--out", "x", "--size", "huge"],
        ["train", "synthetic", "--out", "x", "--epochs", "0"],
        ["evaluate", "x"],
        ["detect", "x", "-", "--format", "xml"],
        ["detect", "x", "-", "--chunk", "0"],
        ["detect", "x", "a.wav", "--rate", "16000"],
    ],
)
def test_bad_options_are_refused_before_any_work(arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2


def test_sound_of_another_rate_is_resampled(model: Path, tmp_path: Path) -> None:
    clip: Clip = load_clips("synthetic", count=1)[0]
    soundfile.write(tmp_path / "a.flac", clip.samples[::2].numpy(), 8000)
    assert "10.0 s heard" in run("detect", model, tmp_path / "a.flac").stderr


@pytest.mark.parametrize("rate", [16_000, 22_050])
def test_a_sound_file_with_nan_is_heard_as_a_stream_is(model: Path, tmp_path: Path, rate: int) -> None:
    sound = load_clips("synthetic", count=1)[0].samples.numpy().copy()
    sound[50_000:50_010] = np.nan, *[np.inf] * 9
    soundfile.write(tmp_path / "a.wav", sound, rate, subtype="FLOAT")
    result = run("detect", model, tmp_path / "a.wav", "--format", "json")
    assert lines(result)
    assert "numbers missing or invalid" in result.stderr
    if rate == 16_000:
        assert "; 10 numbers missing or invalid" in result.stderr
        expected = EventDetector.load(model).stream().push(sound)
        assert [each["time"] for each in lines(result)] == [each.time for each in expected]
    with pytest.raises(EvidentiaError, match="NaN or infinite"):
        read_audio(tmp_path / "a.wav")


def test_a_picture_that_cannot_be_written_is_told_before_any_scoring(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EventDetector, "evaluate", lambda *_, **__: pytest.fail("scored"))
    result = run("evaluate", model, "synthetic", "--clips", "1", "--picture", tmp_path / "a.gif")
    assert "a figure is saved as" in str(result.exception)


def test_files_that_cannot_be_written_are_told_before_any_work(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("fit", "evaluate"):
        monkeypatch.setattr(EventDetector, name, lambda *_, **__: pytest.fail("worked in vain"))
    (tmp_path / "file").touch()
    bad, few = tmp_path / "file" / "x", ("--clips", "4")
    for arguments in (
        ("train", "synthetic", *few, "--out", bad),
        ("train", "synthetic", *few, "--out", tmp_path / "out", "--checkpoint", bad),
        ("evaluate", model, "synthetic", *few, "--json", bad),
    ):
        assert "cannot be written" in str(run(*arguments).exception)
