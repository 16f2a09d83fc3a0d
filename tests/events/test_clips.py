"""Clips are checked when they are made; the built-in generator and the mixer repeat themselves and tell the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import evidentia as ev
from evidentia.events import (
    ESC50_BACKGROUND,
    ESC50_SUBSETS,
    WAVEFORMS,
    Clip,
    Event,
    Sound,
    bouts,
    clip_labels,
    esc50_soundscapes,
    event_truth,
    load_esc50,
    mix_soundscapes,
    synthetic_clips,
)

RATE = 8000


def test_a_clip_takes_arrays_lists_and_tensors():
    for samples in ([0.0, 0.5, -0.5, 0.0], np.array([0.0, 0.5, -0.5, 0.0]), torch.tensor([0.0, 0.5, -0.5, 0.0])):
        clip = Clip(samples, 2, [("b", 1.0, 2.05), ("a", 0.5, 1.0)], "x")
        assert clip.samples.dtype == torch.float32
        assert clip.duration == 2.0
        assert clip.events == (Event("a", 0.5, 1.0), Event("b", 1.0, 2.0))
        assert clip.labels == ("a", "b")
    measured = np.array([0.25, -0.5], dtype=">f4")
    assert Clip(measured, 10).samples.tolist() == [0.25, -0.5]
    assert Clip(measured.reshape(2, 1).astype(">f8"), 10).samples.dtype == torch.float32
    series = Clip(np.zeros((10, 3)), 5.0)
    assert (series.channels, series.duration) == (3, 2.0)
    assert repr(series) == "Clip('clip': 2 s at 5 Hz, 3 channels, 0 events)"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"samples": []}, "at least one sample"),
        ({"samples": np.zeros((2, 2, 2))}, "shape"),
        ({"samples": np.zeros(8, dtype=np.int16)}, "32768"),
        ({"samples": torch.zeros(8, dtype=torch.int16)}, "32768"),
        ({"samples": [0.0, math.nan]}, "NaN"),
        ({"samples": "sound"}, "samples"),
        ({"rate": 0}, "rate"),
        ({"rate": math.inf}, "rate"),
        ({"rate": "fast"}, "rate"),
        ({"rate": True}, "rate"),
        ({"rate": np.float32("nan")}, "rate"),
        ({"name": ""}, "name"),
        ({"events": None}, "events must be a list .* empty if there are none, got None"),
        ({"events": [("a", 0.5)]}, "onset and an offset"),
        ({"events": [("a", "x", 1.0)]}, "onset and an offset"),
        ({"events": [("", 0.0, 0.5)]}, "label"),
        ({"events": [("*", 0.0, 0.5)]}, r"no class may be named '\*', .* give the class another name"),
        ({"events": [(3, 0.0, 0.5)]}, "label"),
        ({"events": [("a", 0.5, 0.5)]}, "end after it begins"),
        ({"events": [("a", -0.5, 0.5)]}, "end after it begins"),
        ({"events": [("a", 0.5, 3.0)]}, "lasts 1 s"),
        ({"events": [("a", math.nan, 1.0)]}, "end after it begins"),
    ],
)
def test_bad_clips_are_refused(changes, message):
    with pytest.raises(ev.EvidentiaError, match=message):
        Clip(**{"samples": torch.zeros(8), "rate": 8, **changes})


@pytest.mark.parametrize("rate", [np.int64(8000), np.float32(8000), np.float64(8000), 8000, 8000.0])
def test_rates_of_numpy_are_numbers(rate):
    clip = Clip(torch.zeros(8000), rate, [("beep", 0.5, 0.75)])
    assert type(clip.rate) in (int, float)
    assert (clip.rate, clip.duration) == (8000, 1.0)


def test_the_truth_of_clips():
    clips = [
        Clip(torch.zeros(100), 100, [("b", 0.2, 0.45)]),
        Clip(torch.zeros(55), 100, [("a", 0.0, 0.1), ("c", 0.3, 0.5)]),
    ]
    assert clip_labels(clips) == ("a", "b", "c")
    truth = event_truth(clips, segment=0.1)
    assert truth.lengths.tolist() == [10, 5]
    assert truth.activity()[0, :, 1].nonzero().flatten().tolist() == [2, 3, 4]
    assert truth.activity()[1, :, 0].nonzero().flatten().tolist() == [0]
    some = event_truth(clips, ["c", "a"], segment=0.1, ignore_others=True)
    assert some.activity()[1, :, 0].nonzero().flatten().tolist() == [3, 4]
    with pytest.raises(ev.EvidentiaError, match="ignore_others"):
        event_truth(clips, ["c", "a"])
    with pytest.raises(ev.EvidentiaError, match="once"):
        event_truth(clips, ["a", "a"])
    for segment in (0, None, "0.1"):
        with pytest.raises(ev.EvidentiaError, match="segment, in seconds, must be a number, more than 0, got"):
            event_truth(clips, segment=segment)


def test_ten_seconds_are_156_segments():
    assert event_truth([Clip(torch.zeros(160_000), 16_000)], ["a"]).lengths.tolist() == [156]


def test_synthetic_clips_repeat_and_do_not_depend_on_their_number():
    few, many = synthetic_clips(2, seed=3, duration=2.0), synthetic_clips(4, seed=3, duration=2.0)
    for one, other in zip(few, many, strict=False):
        assert torch.equal(one.samples, other.samples)
        assert one.events == other.events
    assert not torch.equal(few[0].samples, synthetic_clips(1, seed=4, duration=2.0)[0].samples)
    assert synthetic_clips(0) == []


def test_synthetic_clips_are_multi_label_and_within_limits():
    clips = synthetic_clips(40, seed=0, duration=4.0, rate=RATE, events=(2, 4))
    assert clip_labels(clips) == tuple(sorted(WAVEFORMS))
    assert len(WAVEFORMS) == 10
    for clip in clips:
        assert clip.samples.abs().max() <= 1
        assert clip.duration == 4.0
    assert (event_truth(clips).activity().sum(-1) > 1).any()


@pytest.mark.parametrize("label", WAVEFORMS)
def test_events_are_louder_than_what_is_around_them(label):
    clips = synthetic_clips(6, seed=1, labels=[label], duration=4.0, events=(1, 1), snr=(10.0, 10.0))
    for clip in clips:
        (event,) = clip.events
        inside = torch.zeros(len(clip.samples), dtype=torch.bool)
        inside[round(event.onset * clip.rate) : round(event.offset * clip.rate)] = True
        loud, quiet = (clip.samples[part].double().square().mean() for part in (inside, ~inside))
        assert float(10 * torch.log10(loud / quiet - 1)) == pytest.approx(10.0, abs=1.5)


def test_classes_have_spectra_of_their_own():
    spectra = []
    for label in WAVEFORMS:
        wave = np.asarray(WAVEFORMS[label](16_000, 16_000, np.random.default_rng(0)), dtype=np.float64)
        frames = np.abs(np.fft.rfft(wave.reshape(-1, 500), axis=1)) ** 2
        shape = np.sqrt(frames / frames.sum()).ravel()
        spectra.append(shape)
    likeness = np.stack(spectra) @ np.stack(spectra).T
    assert (likeness - np.eye(len(spectra))).max() < 0.9


@pytest.mark.parametrize(
    "options",
    [
        {"count": -1},
        {"count": 1.5},
        {"seed": -1},
        {"labels": []},
        {"labels": ["tone", "tone"]},
        {"labels": ["yodel"]},
        {"duration": 0},
        {"rate": 10},
        {"events": (3, 1)},
        {"length": (0.0, 1.0)},
        {"snr": (10, -10)},
    ],
)
def test_bad_settings_of_the_generator_are_refused(options):
    with pytest.raises(ev.EvidentiaError):
        synthetic_clips(**{"count": 1, **options})


def knocks() -> Sound:
    """Two knocks of half a second, with silence before, between and after."""
    quiet, loud = np.zeros(RATE // 2), np.sin(np.arange(RATE // 2))
    return Sound(np.concatenate([quiet, loud, quiet, 0.5 * loud, quiet]), RATE, "knock")


def test_bouts_leave_out_silence():
    assert bouts(knocks()) == [(RATE // 2, RATE), (3 * RATE // 2, 2 * RATE)]
    assert bouts(knocks(), pause=1.0) == [(RATE // 2, 2 * RATE)]
    assert bouts(Sound(np.zeros(100), RATE, "nothing")) == []


def test_soundscapes_hold_their_sounds_where_they_say():
    hum = Sound(np.sin(np.arange(2 * RATE) * 0.3), RATE, "hum", "hum")
    clips = mix_soundscapes([knocks(), hum], 12, seed=2, duration=5.0, snr=(20.0, 20.0), events=(1, 3))
    again = mix_soundscapes([knocks(), hum], 3, seed=2, duration=5.0, snr=(20.0, 20.0), events=(1, 3))
    assert all(torch.equal(a.samples, b.samples) and a.events == b.events for a, b in zip(clips, again, strict=False))
    assert clip_labels(clips) == ("hum", "knock")
    for clip in clips:
        assert clip.samples.abs().max() <= 1
        busy = torch.zeros(len(clip.samples), dtype=torch.bool)
        for event in clip.events:
            assert event.offset - event.onset <= (0.5 if event.label == "knock" else 2.0) + 1e-9
            busy[round(event.onset * RATE) : round(event.offset * RATE)] = True
        steps = clip.samples.double().square().reshape(-1, 40).mean(-1)
        wholly, never = busy.reshape(-1, 40).all(-1), ~busy.reshape(-1, 40).any(-1)
        assert steps[wholly].min() > 3 * steps[never].mean()


def test_soundscapes_over_a_background():
    hum = Sound(np.sin(np.arange(2 * RATE) * 0.3), RATE, "hum")
    wind = Sound(np.sin(np.arange(RATE) * 2.0), RATE, "wind")
    (clip,) = mix_soundscapes([hum], 1, background=[wind], duration=3.0, events=(0, 0))
    assert clip.events == ()
    spectrum = torch.fft.rfft(clip.samples).abs()
    assert int(spectrum.argmax()) == pytest.approx(2.0 / (2 * math.pi) * len(clip.samples), abs=2)
    assert clip.labels == ()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mix_soundscapes([], 1), "no sounds"),
        (lambda: mix_soundscapes([knocks(), Sound(np.ones(9), 9000, "x")], 1), "one rate"),
        (lambda: mix_soundscapes([Sound(np.zeros(RATE), RATE, "x")], 1), "can be heard"),
        (lambda: mix_soundscapes([knocks()], -1), "count"),
        (lambda: mix_soundscapes([knocks()], 1, duration=None), "duration, in seconds, must be a number, .* got None"),
        (lambda: mix_soundscapes([knocks()], 1, events=3), "events must be the least and the largest .* got 3"),
        (lambda: mix_soundscapes([knocks()], 1, snr=("6", "30")), "snr must be the least and the largest"),
        (lambda: Sound(np.zeros((2, 2)), RATE, "x"), "one channel"),
        (lambda: Sound(np.array([np.nan]), RATE, "x"), "finite"),
        (lambda: Sound(np.zeros(3), RATE, ""), "label"),
        (lambda: esc50_soundscapes(".", "kitchen"), "subset"),
        (lambda: esc50_soundscapes(".", "alarm", "exam"), "part"),
    ],
)
def test_bad_sounds_are_refused(make, message):
    with pytest.raises(ev.EvidentiaError, match=message):
        make()


def test_real_soundscapes_from_esc_50(real_data):
    pytest.importorskip("soundfile")
    if not (real_data / "ESC-50" / "meta" / "esc50.csv").is_file():
        pytest.skip("ESC-50 is not here")
    known = {sound.label for sound in load_esc50(real_data, folds=(5,), labels=["dog", "siren"])}
    assert known == {"dog", "siren"}
    clips = esc50_soundscapes(real_data, "alarm", "test", count=20)
    assert set(clip_labels(clips)) <= set(ESC50_SUBSETS["alarm"])
    assert all(clip.rate == 16_000 and clip.duration == 10 for clip in clips)
    assert not set(ESC50_BACKGROUND) & {label for labels in ESC50_SUBSETS.values() for label in labels}
    every = set(clip_labels(esc50_soundscapes(real_data, "all", "test", count=60)))
    assert len(every) > 40
    assert not every & set(ESC50_BACKGROUND)
    with pytest.raises(ev.EvidentiaError, match="no class"):
        load_esc50(real_data, labels=["unicorn"])
