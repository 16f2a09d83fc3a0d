"""The face: fit, predict, detect, evaluate, calibrate, save and load, on sound and on series."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evidentia import EvidentiaError, Prediction
from evidentia._support.errors import FileFormatError
from evidentia._support.files import load_tensors, save_tensors
from evidentia.evaluation import EventTruth
from evidentia.events import (
    HEADS,
    NETWORKS,
    Clip,
    Event,
    EventDetector,
    FusionHead,
    PhaseI,
    SeriesInputs,
    SoundInputs,
)
from evidentia.events.training.fitting import SegmentBeta, cut_in_quiet, tune

# Few clips are held out of few, and not every class is in them.
pytestmark = pytest.mark.filterwarnings("ignore:the clips to calibrate on have no event of")

QUICK: dict[str, Any] = {"preset": None, "progress": False, "epochs": 1, "batch_size": 4}


@pytest.fixture(scope="module")
def clips() -> list[Clip]:
    from evidentia.events import synthetic_clips

    return synthetic_clips(10, seed=1, labels=["siren", "hiss", "clicks"], duration=2.0)


@pytest.fixture(scope="module")
def fitted(clips: list[Clip]) -> EventDetector:
    return EventDetector(**QUICK).fit(clips)


def sensor(seed: int, seconds: int = 40) -> Clip:
    """Three channels at 10 Hz; `jam` lifts the first, `leak` makes the second noisy."""
    torch.manual_seed(seed)
    samples = 0.3 * torch.randn(10 * seconds, 3)
    events = []
    for number, first in enumerate(range(5, seconds - 5, 8)):
        label = ("jam", "leak")[number % 2]
        rows = slice(10 * first, 10 * first + 30)
        samples[rows, 0] += 2.0 * (label == "jam")
        samples[rows, 1] += 2.0 * torch.randn(30) * (label == "leak")
        events.append(Event(label, first, first + 3.0))
    return Clip(samples, 10.0, events, f"sensor {seed}")


def stereo(clips: list[Clip]) -> list[Clip]:
    return [replace(clip, samples=torch.stack([clip.samples, clip.samples], 1)) for clip in clips]


def test_predictions_are_of_segments(fitted: EventDetector, clips: list[Clip]) -> None:
    one = fitted.predict(clips[0])
    assert isinstance(one, Prediction)
    assert one.probs.shape == (31, 3)
    assert one.class_names == ("clicks", "hiss", "siren") == fitted.labels_
    short = Clip(clips[1].samples[:20_000], 16_000)
    several = fitted.predict([clips[0], short])
    assert torch.equal(several[0].probs, one.probs)
    assert len(several[1]) == 19
    found = fitted.beta([clips[0], short])
    assert torch.allclose(found.alpha[0] / (found.alpha[0] + found.beta[0]), one.probs)
    assert found.lengths.tolist() == [31, 19]
    assert bool((found.alpha[1, 19:] == 1).all())


def test_long_clips_are_the_same_in_stretches(
    fitted: EventDetector, clips: list[Clip], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fitted.beta(clips[:2])
    monkeypatch.setattr("evidentia.events.training.fitting._STRETCH", 7)
    assert torch.allclose(fitted.beta(clips[:2]).alpha, whole.alpha, rtol=1e-4)


@pytest.mark.parametrize(
    "target",
    [{}, {"false_alarms_per_minute": 0.0}, {"delay": 0.5}, {"macro_f1": 0.9}],
    ids=lambda t: str(*t) or "usual",
)
def test_calibration_targets(clips: list[Clip], target: dict[str, float]) -> None:
    det = EventDetector(**QUICK, **target, windows=(1, 2)).fit(clips)
    assert det.calibration_["target"] == (target or {"false_alarms_per_minute": 2.0})
    scores = det.calibration_["scores"]
    if "false_alarms_per_minute" in target:
        assert scores["false_alarms_per_minute"] == 0
    head = det.head_
    det.calibrate(clips)
    assert type(det.head_) is type(head)


@pytest.mark.parametrize("head", list(HEADS))
def test_every_head_is_calibrated_saved_and_loaded(
    fitted: EventDetector, clips: list[Clip], head: str, tmp_path: Path
) -> None:
    det = EventDetector(head=head, **{**QUICK, "preset": "early", "augmentation": False})
    vars(det).update({name: getattr(fitted, name) for name in det.learnt})
    det.calibrate(clips)
    assert 0 <= det.evaluate(clips).macro_f1 <= 1
    det.save(tmp_path / "detector")
    again = EventDetector.load(tmp_path / "detector")
    assert (again.head, again.head_, again.warning_) == (det.head, det.head_, det.warning_)
    mine, its = (each.stream(refractory=0.0).push(clips[0].samples) for each in (det, again))
    assert [each.to_dict() for each in mine] == [each.to_dict() for each in its]


def test_what_is_shown_is_short(fitted: EventDetector, clips: list[Clip]) -> None:
    assert repr(EventDetector("temporal", head="phase1")) == "EventDetector(temporal, phase1: not trained)"
    assert repr(fitted) == "EventDetector(crnn, wbc: 3 classes)"
    stream = fitted.stream()
    stream.push(clips[0].samples[:8000])
    assert repr(stream) == "DetectorStream(3 classes at 16000 Hz, 0.500 s heard)"
    scores = fitted.evaluate(clips)
    told = f"macro F1 {scores.macro_f1:.3f}, delay {scores.delay:.3f} s, {scores.false_alarms_per_minute:.2f} false"
    assert repr(scores) == f"DetectorScores({told} alarms a minute)"


def test_save_and_load(fitted: EventDetector, clips: list[Clip], tmp_path: Path) -> None:
    file = tmp_path / "detector.safetensors"
    with pytest.raises(EvidentiaError, match="not trained"):
        EventDetector().save(file)
    fitted.save(file)
    again = EventDetector.load(file)
    assert torch.equal(again.predict(clips[0]).probs, fitted.predict(clips[0]).probs)
    assert again.settings == fitted.settings
    assert again.tuning == fitted.tuning
    assert (again.history_, again.calibration_) == (fitted.history_, fitted.calibration_)
    with pytest.raises(EvidentiaError, match="needs no network"):
        EventDetector.load(file, network=fitted.network_)
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)
    with pytest.raises(FileFormatError, match="checksum"):
        EventDetector.load(file)


def test_a_file_says_nothing_of_what_is_written_to_where(clips: list[Clip], tmp_path: Path) -> None:
    file, checkpoint = tmp_path / "detector.safetensors", tmp_path / "run.safetensors"
    EventDetector(**QUICK, checkpoint=checkpoint).fit(clips).save(file)
    tensors, content = load_tensors(file, "event detector")
    assert "checkpoint" not in content["settings"]
    content["settings"]["checkpoint"] = str(tmp_path / "elsewhere")
    save_tensors(file, "event detector", tensors, content)
    EventDetector.load(file).fit(clips)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("inputs", {"window": 2**31}, "window: Input should be less"),
        ("inputs", {"frame_hop": 2**40}, "frame_hop must be at most the window, 2048"),
        ("inputs", {"segment": 2**40}, "segment: Input should be less"),
        ("head.bias", torch.nan, r"weights that are NaN or infinite, head\.bias"),
        ("head.bias", torch.inf, r"weights that are NaN or infinite, head\.bias"),
    ],
)
def test_numbers_that_no_detector_has_are_refused(
    fitted: EventDetector, tmp_path: Path, part: str, change: Any, message: str
) -> None:
    fitted.save(tmp_path / "detector")
    tensors, content = load_tensors(tmp_path / "detector", "event detector")
    if part in content:
        content[part] |= change
    else:
        tensors[f"network/{part}"][0] = change
    save_tensors(tmp_path / "detector", "event detector", tensors, content)
    with pytest.raises(EvidentiaError, match=message):
        EventDetector.load(tmp_path / "detector")


def test_a_file_that_lacks_a_part_is_refused(fitted: EventDetector, tmp_path: Path) -> None:
    file = tmp_path / "detector"
    fitted.save(file)
    tensors, content = load_tensors(file, "event detector")
    for name in content:
        save_tensors(file, "event detector", tensors, {key: part for key, part in content.items() if key != name})
        with pytest.raises(FileFormatError, match=f"does not hold a whole event detector: '{name}'"):
            EventDetector.load(file)


@pytest.mark.parametrize("network", list(NETWORKS))
def test_every_network_trains(clips: list[Clip], network: str) -> None:
    series = network in ("temporal", "slowfast", "aia", "acar")
    data = [sensor(0), sensor(1)] if series else clips[:5]
    det = EventDetector(network, **{**QUICK, "augmentation": True, "piece": 100 if series else None}).fit(data)
    assert isinstance(det.inputs_, SoundInputs) != series
    assert det.predict(data[0]).probs.shape[1] == len(det.labels_)
    assert det.detect(data[0]) is not None


def test_a_detector_learns_a_series() -> None:
    det = EventDetector("temporal", head="phase1", **{**QUICK, "epochs": 8, "piece": 100, "learning_rate": 1e-2})
    det.fit([sensor(seed) for seed in range(6)])
    assert det.labels_ == ("jam", "leak")
    assert det.inputs_.seconds == pytest.approx(0.1)
    scores = det.evaluate([sensor(seed) for seed in range(20, 24)], by="event")
    assert scores.macro_f1 > 0.6
    clip = sensor(30)
    found = det.stream(events=clip.events, warnings=False).push(clip.samples)
    assert sum(each.delay is not None for each in found) > len(found) / 2


def test_one_long_clip_is_enough() -> None:
    det = EventDetector("temporal", **{**QUICK, "piece": 50}).fit(sensor(0, seconds=60))
    assert det.labels_ == ("jam", "leak")
    with pytest.raises(EvidentiaError, match="at least 2"):
        EventDetector("temporal", **QUICK).fit(sensor(0))


def test_labels_that_no_clip_has_are_told_before_training(clips: list[Clip]) -> None:
    with pytest.raises(EvidentiaError, match=r"no training clip has an event of 'Siren'.*clicks, hiss, siren"):
        EventDetector(labels=["hiss", "Siren"], **QUICK).fit(clips)
    with pytest.raises(EvidentiaError, match="no training clip has an event of 'jam'"):
        EventDetector("temporal", labels=["jam"], **QUICK).fit(
            [Clip(torch.zeros(50, 3), 10.0, [("leak", 1, 2)])], sensor(0)
        )


def test_sound_beyond_full_scale_is_told(clips: list[Clip], fitted: EventDetector) -> None:
    loud = Clip(clips[0].samples * 32_768, 16_000, clips[0].events, "loud")
    for use in (
        lambda: EventDetector(**QUICK).fit([*clips, loud]),
        lambda: EventDetector(**QUICK).fit(clips, [loud]),
        lambda: fitted.predict(loud),
        lambda: fitted.evaluate([loud]),
        lambda: fitted.detect(loud),
    ):
        with pytest.raises(EvidentiaError, match=r"loud is taken for sound.* divide 16-bit samples by 32768"):
            use()
    samples = clips[0].samples.clone()
    samples[:200] = 1.5
    assert fitted.predict(Clip(samples, 16_000)) is not None
    # Pieces of one clip are held out; a loud one is told before training, not by the calibration after it.
    joined = torch.cat([clip.samples for clip in clips])
    joined[:1500] = 1.5
    det = EventDetector(**QUICK, piece=31)
    with pytest.raises(EvidentiaError, match="long from 0 s is taken for sound"):
        det.fit(Clip(joined, 16_000, clips[0].events, "long"))
    assert not hasattr(det, "history_")


def test_a_fast_sensor_is_no_sound(tmp_path: Path) -> None:
    torch.manual_seed(0)
    clips = [Clip(100 * torch.randn(4000), 8000, [("knock", 0.1, 0.2)], f"sensor {k}") for k in range(2)]
    with pytest.raises(EvidentiaError, match="sound=False"):
        EventDetector("temporal", **QUICK).fit(clips)
    with pytest.warns(UserWarning, match=r"8,000 segments a second.*\{\"segment\": 64\}"):
        det = EventDetector("temporal", sound=False, **QUICK).fit(clips)
    assert isinstance(det.inputs_, SeriesInputs)
    det = EventDetector("temporal", sound=False, network_settings={"segment": 20}, **QUICK).fit(clips)
    det.save(tmp_path / "detector")
    again = EventDetector.load(tmp_path / "detector")
    assert again.sound is False
    assert isinstance(again.fit(clips).inputs_, SeriesInputs)


def test_stereo_that_is_taken_for_a_series_is_told() -> None:
    stereo = [Clip(torch.randn(4000, 2), 8000, [("knock", 0.1, 0.2)], f"stereo {k}") for k in range(2)]
    with pytest.warns(UserWarning, match=r"If this is sound, average its channels: samples\.mean\(1\)"):
        EventDetector("dual-dnn", **QUICK).fit(stereo)


def test_whole_clips_are_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[Clip] = []
    calibrate = EventDetector.calibrate

    def noted(self: EventDetector, clips: list[Clip]) -> EventDetector:
        held.extend(clips)
        return calibrate(self, clips)

    monkeypatch.setattr(EventDetector, "calibrate", noted)
    EventDetector("temporal", **{**QUICK, "piece": 50}).fit([sensor(seed) for seed in range(6)])
    assert [len(clip.samples) for clip in held] == [400, 400]
    assert len({clip.name for clip in held}) == 2


def test_long_clips_are_calibrated_on_in_pieces() -> None:
    det = EventDetector("temporal", **{**QUICK, "piece": 50}).fit([sensor(0), sensor(1)])
    long = sensor(2, seconds=200)
    chosen = [det.calibrate(clips).calibration_ for clips in ([long], cut_in_quiet([long], 50))]
    assert chosen[0] == chosen[1]


def test_an_event_that_is_longer_than_a_piece_is_calibrated_on_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[EventTruth] = []

    def noted(head: FusionHead, parameters: SegmentBeta, truth: EventTruth, *rest: Any) -> Any:
        seen.append(truth)
        return tune(head, parameters, truth, *rest)

    monkeypatch.setattr("evidentia.events.estimator.tune", noted)
    det = EventDetector("temporal", **{**QUICK, "piece": 50}).fit([sensor(0), sensor(1)])
    det.calibrate([Clip(sensor(2, seconds=200).samples, 10.0, [("jam", 81.0, 180.0), ("leak", 100.0, 183.0)])])
    assert len(seen[-1].label) == 2
    assert (seen[-1].offset - seen[-1].onset).tolist() == pytest.approx([99.0, 83.0])
    assert seen[-1].lengths.max() == 1030


@given(
    events=st.lists(st.tuples(st.floats(0, 90), st.floats(0.1, 40)), max_size=6),
    samples=st.integers(10, 400),
    step=st.sampled_from([1, 4]),
)
def test_no_event_is_cut_in_quiet(events: list[tuple[float, float]], samples: int, step: int) -> None:
    whole = Clip(torch.arange(1000.0), 10.0, [("x", on, min(on + length, 100.0)) for on, length in events])
    parts = cut_in_quiet([whole], samples, step)
    assert torch.equal(torch.cat([part.samples for part in parts]), whole.samples)
    assert all(len(part.samples) >= samples for part in parts[:-1])
    begins = [float(part.samples[0]) / 10 for part in parts]
    found = [begin + each.onset for begin, part in zip(begins, parts, strict=True) for each in part.events]
    assert sorted(found) == pytest.approx(sorted(event.onset for event in whole.events))


def test_nothing_can_be_calibrated_on_less_than_a_segment(fitted: EventDetector) -> None:
    with pytest.raises(EvidentiaError, match="none of 1 clips is as long as a segment"):
        fitted.calibrate([Clip([0.1] * 100, 16_000)])


def test_labels_may_be_chosen(clips: list[Clip]) -> None:
    det = EventDetector(labels=["siren", "clicks"], **QUICK).fit(clips)
    assert det.labels_ == ("siren", "clicks")
    assert det.truth(clips).num_classes == 2


@pytest.mark.parametrize("stops", ["train", "tune"])
def test_a_training_that_is_interrupted_leaves_the_detector_as_it_was(
    clips: list[Clip], stops: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    det = EventDetector(**QUICK).fit(clips)
    before = dict(vars(det))

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"evidentia.events.estimator.{stops}", interrupted)
    others = [replace(clip, events=[("rattle", 0.5, 1.0)]) for clip in clips]
    with pytest.raises(KeyboardInterrupt):
        det.fit(others)
    assert vars(det) == before
    assert len(det.predict(clips[0]).class_names) == 3


def test_a_head_that_is_set_by_hand_decides_in_scores_clips_and_streams(clips: list[Clip]) -> None:
    det = EventDetector(**QUICK).fit(clips)
    det.stream().push(clips[0].samples)
    for threshold in (-1e6, 1e6):
        det.head_ = det.head_.model_copy(update={"threshold": threshold, "max_vacuity": 1.0})
        streamed = det.stream(warnings=False).push(clips[0].samples)
        called = threshold < 0
        assert bool(streamed) == called
        assert bool(det.detect(clips[0], warnings=False)) == called
        assert bool(det.evaluate([clips[0]]).true_positives.sum()) == called
    first = det.stream()
    assert det.stream().runner is first.runner


def test_classes_that_the_detector_does_not_know_are_told_when_it_is_scored(
    fitted: EventDetector, clips: list[Clip]
) -> None:
    others = [replace(clip, events=[("Siren", *event[1:]) for event in clip.events]) for clip in clips]
    with pytest.warns(UserWarning, match="does not know Siren, .* it knows clicks, hiss, siren"):
        fitted.evaluate(others)


def test_a_network_of_ones_own(clips: list[Clip], fitted: EventDetector, tmp_path: Path) -> None:
    own = NETWORKS["crnn"](128, 3, dropout=0.0)
    before = own.head.weight.clone()
    det = EventDetector(own, **QUICK).fit(clips)
    assert torch.equal(own.head.weight, before)
    det.save(tmp_path / "own")
    with pytest.raises(EvidentiaError, match="needs the network it was built with"):
        EventDetector.load(tmp_path / "own")
    again = EventDetector.load(tmp_path / "own", network=own)
    assert torch.equal(again.predict(clips[0]).probs, det.predict(clips[0]).probs)
    with pytest.raises(EvidentiaError, match="2 classes"):
        EventDetector(own, labels=["siren", "hiss"], **QUICK).fit(clips)
    with pytest.raises(EvidentiaError, match="frames a segment"):
        EventDetector.assemble(own, ["a", "b", "c"], SoundInputs(segment=2), PhaseI())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda clips: EventDetector(preset="late"), "no preset"),
        (lambda clips: EventDetector("lstm"), "no event network"),
        (lambda clips: EventDetector(head="or"), "no fusion head"),
        (lambda clips: EventDetector(3), "must be a name or an EventNetwork"),
        (lambda clips: EventDetector(labels="siren"), "labels must be a list"),
        (lambda clips: EventDetector(epoch=3), "epoch: there is no such setting; choose one of: network, .*epochs"),
        (lambda clips: EventDetector(false_alarms=1), "choose one of: .*epochs.*false_alarms_per_minute.*refractory"),
        (lambda clips: EventDetector(delay=0.4, macro_f1=0.5), "by itself"),
        (lambda clips: EventDetector(windows=(2, 0)), "windows.1"),
        (lambda clips: EventDetector(decays=(1.5,)), "decays.0"),
        (lambda clips: EventDetector().fit([]), "at least one Clip"),
        (lambda clips: EventDetector().fit(None), "must be a Clip or a list of them, got NoneType"),
        (lambda clips: EventDetector().fit("rec"), r"got the path rec; load_series\(path\) reads CSV"),
        (lambda clips: EventDetector().fit(pd.DataFrame({"heat": [1.0]})), r"got DataFrame; Clip\(samples, rate,"),
        (lambda clips: EventDetector(network_settings={"foo": 1}).fit(clips), r"network 'crnn'.*'foo'.*dropout"),
        (lambda clips: EventDetector(sound="yes"), "sound must be True, False or None, got 'yes'"),
        (lambda clips: EventDetector().fit([clips[0].samples]), "at least one Clip, got Tensor"),
        (lambda clips: EventDetector().fit([Clip([0.0] * 16_000, 16_000)]), "no event in any clip"),
        (lambda clips: EventDetector().fit([*clips, Clip([0.0] * 8000, 8000)]), "8000 samples a second"),
        (lambda clips: EventDetector().fit([*clips, Clip(torch.zeros(8000, 2), 16_000)]), "2 channels"),
        (lambda clips: EventDetector().fit([sensor(0), sensor(1)]), "'temporal' takes any series"),
        (lambda clips: EventDetector().fit(stereo(clips)), r"Average several channels of sound to one, samples\.mean"),
        (lambda clips: EventDetector().stream(), "not trained"),
        (lambda clips: EventDetector().predict(clips), "not trained"),
    ],
)
def test_bad_input_is_a_sentence(clips: list[Clip], make: Callable[[list[Clip]], Any], message: str) -> None:
    with pytest.raises(EvidentiaError, match=message):
        make(clips)


def test_other_rates_are_refused_after_training_too(fitted: EventDetector) -> None:
    with pytest.raises(EvidentiaError, match="resample"):
        fitted.predict(Clip([0.0] * 8000, 8000))
    with pytest.raises(EvidentiaError, match="engine must be"):
        fitted.stream(engine="tensorrt")  # type: ignore[arg-type]
