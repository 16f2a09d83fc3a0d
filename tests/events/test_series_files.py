"""Series as people write them: rounded and wavering times, other separators and names; one parser for all tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import evidentia as ev
from evidentia._support.errors import FileFormatError
from evidentia.events import Clip, Event, EventDetector, SeriesInputs, SoundInputs, load_series, read_series
from evidentia.events.clip_kinds import in_step
from evidentia.events.data import tables as tables_module
from evidentia.events.data.series_times import even_rows
from evidentia.events.streams.clock import Clock


def write(path: Path, times: list[str], header: str = "time,flow") -> Path:
    values = np.random.default_rng(len(times)).normal(size=len(times))
    rows = [f"{time},{value:.3f}" for time, value in zip(times, values, strict=True)]
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


@pytest.mark.parametrize("rate", [7, 30, 44.1, 60, 400, 700])
@pytest.mark.parametrize("length", [60, 421, 5000])
def test_the_rate_is_the_round_one_that_rounded_times_come_from(tmp_path, rate, length):
    clip = read_series(write(tmp_path / "a.csv", [f"{n / rate:.3f}" for n in range(length)]))
    assert (clip.rate, len(clip.samples)) == (rate, length)


@pytest.mark.parametrize("period", [0.3, 0.007, 12.0])
def test_round_periods_are_kept(tmp_path, period):
    assert read_series(write(tmp_path / "a.csv", [f"{n * period:.3f}" for n in range(5)])).rate == 1 / period


def test_a_rate_that_is_not_round_is_not_made_so(tmp_path):
    rate = read_series(write(tmp_path / "a.csv", [f"{n / 99.8731:.6f}" for n in range(5000)])).rate
    assert rate == pytest.approx(99.8731, rel=1e-7)


def test_clocks_may_waver_by_less_than_half_a_step(tmp_path):
    jitter = np.random.default_rng(0).uniform(-0.3, 0.3, 2000)
    kept = [n for n in range(2000) if n not in (5, 100, 101, 102, 700)]
    clip = read_series(write(tmp_path / "a.csv", [f"{(n + jitter[n]) / 50:.6f}" for n in kept]))
    assert (clip.rate, len(clip.samples)) == (50, 2000)
    assert clip.samples.isnan().flatten().nonzero().flatten().tolist() == [5, 100, 101, 102, 700]
    every_seventh = [f"{n / 100 + (0.0002 if n % 7 == 0 else 0):.4f}" for n in range(60)]
    assert read_series(write(tmp_path / "b.csv", every_seventh)).rate == 100
    # Over half an hour the clock drifts by many samples, which no step shows.
    drifting = np.cumsum(0.01 * (1 + 2e-4 * np.sin(np.arange(180_000) / 30_000)))
    clip = read_series(write(tmp_path / "c.csv", [f"{time:.4f}" for time in drifting]))
    assert (clip.rate, len(clip.samples)) == (pytest.approx(100, rel=1e-3), 180_000)


@pytest.mark.parametrize("gone", [[20], [20, 50, 51, 90], list(range(5, 95, 9))])
def test_gaps_in_times_of_few_digits(tmp_path, gone):
    clip = read_series(write(tmp_path / "a.csv", [f"{n / 10:.1f}" for n in range(100) if n not in gone]))
    assert (clip.rate, len(clip.samples)) == (10, 100)
    assert clip.samples.isnan().flatten().nonzero().flatten().tolist() == gone


def test_a_folder_of_rounded_times_can_be_trained_on(tmp_path):
    for number, length in enumerate((420, 421, 423, 430)):
        write(tmp_path / f"{number}.csv", [f"{n / 7:.3f}" for n in range(length)])
        (tmp_path / f"{number}.events.csv").write_text("label,onset,offset\nleak,14.286,18.571\n")
    clips = load_series(tmp_path)
    EventDetector("temporal", preset=None, epochs=1, progress=False).fit(clips, clips)


def test_series_of_about_the_rate_fit_and_their_events_stay_at_their_samples():
    inputs = SeriesInputs(rate=10.0, channels=1)
    near = Clip(torch.zeros(1010, 1), 10.1, [("jam", 20.0, 100.0)], "near")
    (found,) = in_step([near], inputs)
    assert (found.rate, found.events) == (10.0, (Event("jam", 20.2, 101.0),))
    with pytest.raises(ev.EvidentiaError, match="takes 10, within 1%; resample the series") as refused:
        inputs.check_clip(Clip(torch.zeros(100, 1), 10.2, name="far"))
    assert "read_audio" not in str(refused.value)
    with pytest.raises(ev.EvidentiaError, match="read_audio"):
        SoundInputs().check_clip(Clip(torch.zeros(100), 16_001, name="far"))


def test_a_detector_takes_series_of_about_its_rate():
    clips = [Clip(torch.randn(300, 1), rate, [("jam", 5.0, 9.0)]) for rate in (10.0, 10.05, 9.95)]
    det = EventDetector("temporal", preset=None, epochs=1, progress=False).fit(clips, clips)
    assert det.inputs_.sample_rate == 10.0
    assert det.truth(clips[1:2]).onset.tolist() == [pytest.approx(5.0 * 1.005)]


@pytest.mark.parametrize("rate", [9.92, 10.0, 10.08])
def test_delays_of_a_series_of_about_the_rate_are_those_of_its_samples(rate, detector):
    det = detector("temporal", series=True)
    samples = torch.randn(3000, 4, generator=torch.Generator().manual_seed(0))
    events = [("class 0", 10.0 * n + 5.0, 10.0 * n + 9.0) for n in range(29)]
    usual = Clip(samples, 10.0, events)
    other = Clip(samples, rate, [(label, onset * 10 / rate, offset * 10 / rate) for label, onset, offset in events])
    expected = [(call.time, call.label, call.delay) for call in det.detect(usual)]
    assert sum(delay is not None for _, _, delay in expected) > 20
    assert [(call.time, call.label, call.delay) for call in det.detect(other)] == expected


@pytest.mark.parametrize("name", ["Time", "TIME", "time"])
def test_the_column_of_times_in_upper_or_lower_case(tmp_path, name):
    path = write(tmp_path / "a.csv", [f"{n / 10:.1f}" for n in range(30)], header=f"{name},flow")
    (clip,) = load_series(tmp_path)
    assert (clip.rate, clip.columns) == (10, ("flow",))
    path.write_text(path.read_text().replace(name, "stamp", 1))
    assert read_series(path, time="Stamp").columns == ("flow",)


def test_times_among_the_channels_are_warned_of(tmp_path):
    path = write(tmp_path / "a.csv", [f"{1.7e9 + n / 100:.2f}" for n in range(60)], header="timestamp,flow")
    with pytest.warns(UserWarning, match="has timestamp among its channels, which rises by equal steps"):
        read_series(path, rate=100)
    assert read_series(path, time="timestamp").columns == ("flow",)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ('"time","flow, l/s",heat\n0.0,1.5,2\n0.5,NA,3\n', ("flow, l/s", "heat")),
        ("time;flow;heat\n0,0;1,5;2\n0,5;;3\n", ("flow", "heat")),
        ("time\tflow\theat\n0.0\t1.5\t2\n\n0.5\tna\t3\n", ("flow", "heat")),
        ('time, "a;b", heat\n0.0, "1.5", 2\n0.5, nan, 3', ("a;b", "heat")),
    ],
)
def test_the_usual_kinds_of_csv(tmp_path, text, columns):
    (tmp_path / "a.csv").write_text(text)
    (clip,) = load_series(tmp_path)
    assert (clip.rate, clip.columns) == (2, columns)
    np.testing.assert_array_equal(clip.samples.numpy(), [[1.5, 2], [np.nan, 3]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (",time,flow\n0,0.0,1\n1,0.1,2\n", r"column 1 has no name: .*to_csv\(index=False\)"),
        ("time,flow,\n0.0,1,\n0.1,2,\n", "column 3 has no name: the first line ends with a separator"),
        ("time,,flow\n0.0,1,1\n", "column 2 has no name: name it"),
        ("time,flow\n0.0,1\n0.1,1_0\n", "line 3 .* has '1_0' in column 'flow'"),
        ("time,flow\n0.0,1\n0.1,1.0.0\n", "line 3 .* has '1.0.0' in column 'flow'"),
        ("time,flow\n2024-05-01T12:00:00,1\n", r"in column 'time', .* number of seconds, .*to_datetime.*total_seconds"),
        ("time,flow\n12:00:01,1\n", "in column 'time', .* times must be a number of seconds"),
        ('time,flow\n0.0,1\n0.1,"2\n', "line 3: unexpected end of data"),
    ],
)
def test_unusual_csv_is_refused_in_a_sentence(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(FileFormatError, match=message):
        read_series(tmp_path / "a.csv")


@pytest.mark.parametrize(
    "text",
    [
        "onset,offset,label\n0.5,1.5,hot\n",
        "comment,Label,onset,offset\nsure,hot,0.5,1.5\n",
        "label;onset;offset\nhot;0,5;1,5\n",
    ],
)
def test_events_are_found_by_the_names_of_their_columns(tmp_path, text):
    table = write(tmp_path / "a.csv", ["0.0", "0.5", "1.0", "1.5"])
    (tmp_path / "a.events.csv").write_text(text)
    assert read_series(table, tmp_path / "a.events.csv").events == (Event("hot", 0.5, 1.5),)
    (tmp_path / "a.events.csv").write_text("label,onset,label,offset\nhot,0.5,cold,1.5\n")
    with pytest.raises(FileFormatError, match="label, onset, offset among them, each once"):
        read_series(table, tmp_path / "a.events.csv")


def test_files_of_series_have_a_largest_size(tmp_path, monkeypatch):
    path = write(tmp_path / "a.csv", ["0.0", "0.5"])
    monkeypatch.setattr(tables_module, "_LARGEST", 10)
    with pytest.raises(FileFormatError, match="cut it in several files"):
        read_series(path)


def test_a_clock_follows_jitter_and_drift_and_sees_gaps():
    jitter = np.random.default_rng(0).uniform(-0.3, 0.3, 5000)
    clock = Clock(rate=10)
    for n in range(5000):
        time = 3.0 + (n + jitter[n]) / 10.05
        assert clock.ahead(time) == 0
        clock.step(time)
    assert clock.end == pytest.approx(3.0 + 5000 / 10.05, abs=0.05)
    assert clock.ahead(clock.end + 0.5) == 5
    clock.skip(5)
    assert clock.ahead(clock.end) == 0
    assert clock.ahead(clock.end - 3.0) == -30


def test_events_that_belong_to_no_series_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("time,flow\n0.0,1\n0.5,1\n")
    (tmp_path / "b.events.csv").write_text("label,onset,offset\nblocked,0.0,0.5\n")
    with pytest.raises(ev.EvidentiaError, match=r"b\.events\.csv holds the events of b\.csv, which is not there"):
        load_series(tmp_path)
    assert load_series(tmp_path / "a.csv")[0].events == ()
    (tmp_path / "b.events.csv").rename(tmp_path / "A.events.csv")
    for given in (tmp_path, tmp_path / "a.csv"):
        with pytest.raises(ev.EvidentiaError, match=r"A\.events\.csv .* name both alike"):
            load_series(given)
    (tmp_path / "A.events.csv").rename(tmp_path / "a.events.csv")
    assert len(load_series(tmp_path)[0].events) == 1


def test_events_are_on_a_clock_that_begins_below_0(tmp_path):
    series = write(tmp_path / "a.csv", [f"{-5 + n / 10:.1f}" for n in range(60)])
    (tmp_path / "a.events.csv").write_text("label,onset,offset\nx,-3,-2\ny,-6,-4.5\n")
    (clip,) = load_series(series)
    assert [(event.label, event.onset, event.offset) for event in clip.events] == [("y", 0.0, 0.5), ("x", 2.0, 3.0)]
    assert read_series(series, [Event("x", -3, -2)]).events[0] == Event("x", 2.0, 3.0)
    with pytest.raises(ev.EvidentiaError, match=r"before the first sample, which is at -5 s"):
        read_series(series, [Event("x", -8, -7)])
    (tmp_path / "a.events.csv").write_text("label,onset,offset\nx,-2,-3\n")
    with pytest.raises(FileFormatError, match=r"from -2 s to -3 s; it must end after it begins$"):
        load_series(series)


@pytest.mark.parametrize("begin", [-0.1, 0.0, 0.1])
def test_an_event_that_goes_on_when_the_clock_begins_is_cut_there(tmp_path, begin):
    series = write(tmp_path / "a.csv", [f"{begin + n / 10:.1f}" for n in range(60)])
    (tmp_path / "a.events.csv").write_text(f"label,onset,offset\nx,{begin - 2},{begin + 0.5}\n")
    (clip,) = load_series(series)
    assert clip.events == (Event("x", 0.0, pytest.approx(0.5)),)
    with pytest.raises(ev.EvidentiaError, match=f"before the first sample, which is at {begin:g} s"):
        read_series(series, [Event("x", begin - 2, begin)])
    # By a rate, events count from the first sample, so that there are none before it.
    with pytest.raises(ev.EvidentiaError, match="from -1 s to 2 s"):
        read_series(series, [Event("x", -1, 2)], rate=10, columns=["flow"])


@pytest.mark.parametrize(("waver", "lost"), [(0.05, 0.1), (0.15, 0.005), (0.15, 0.02), (0.2, 0.02)])
@pytest.mark.parametrize("begin", [0.0, 1.7e9])
def test_lost_samples_are_found_where_times_waver(waver, lost, begin):
    for seed in range(12):
        draw = np.random.default_rng(seed)
        kept = draw.random(800) > lost
        kept[0] = True
        times = begin + (np.arange(800) + draw.uniform(-waver, waver, 800)).round(3) / 10
        rate, places = even_rows(times[kept], list(range(800)), Path("a.csv"), "time")
        assert rate == pytest.approx(10, rel=1e-3)
        assert places.tolist() == np.flatnonzero(kept).tolist()


def test_times_at_random_are_not_even():
    for seed in range(12):
        times = np.random.default_rng(seed).exponential(0.1, 200).cumsum()
        with pytest.raises(FileFormatError, match="must rise evenly"):
            even_rows(times, list(range(200)), Path("a.csv"), "time")


def test_an_event_that_goes_on_when_the_recording_ends_is_cut_there(tmp_path):
    series = write(tmp_path / "a.csv", [f"{100 + n / 10:.1f}" for n in range(60)])
    (tmp_path / "a.events.csv").write_text("label,onset,offset\nx,104,150\n")
    (clip,) = load_series(series)
    assert clip.events == (Event("x", 4.0, 6.0),)
    assert read_series(series, [Event("x", 4, 50)], rate=10, columns=["flow"]).events == clip.events
    with pytest.raises(ev.EvidentiaError, match=r"column 'time': 'x' lasts from 106 s to 107 s, after the last sample"):
        read_series(series, [Event("x", 106, 107)])


def test_empty_lines_before_the_names_are_passed_over(tmp_path):
    (tmp_path / "a.csv").write_text("\n  \ntime;flow\n0,0;1,5\n0,1;2,5\n0,2;x\n")
    with pytest.raises(FileFormatError, match="line 6 of"):
        read_series(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("\n  \ntime;flow\n0,0;1,5\n0,1;2,5\n")
    (tmp_path / "a.events.csv").write_text("\n\nlabel;onset;offset\nx;0,0;0,1\n")
    (clip,) = load_series(tmp_path / "a.csv")
    assert (clip.samples.flatten().tolist(), clip.rate) == ([1.5, 2.5], 10)
    assert clip.events == (Event("x", 0.0, 0.1),)
