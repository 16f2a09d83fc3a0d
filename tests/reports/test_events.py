"""The picture of a clip: what is in it, for sound and for series."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from evidentia import EvidentiaError
from evidentia.events import (
    Clip,
    EventDetector,
    OnsetWarning,
    SeriesInputs,
    SoundInputs,
    make_head,
    make_network,
    synthetic_clips,
)
from evidentia.reports import clip_picture, save_figure

LABELS = ["clicks", "hiss", "siren"]


def make_detector(series: bool = False, head: str = "wbc", threshold: float = -1.0) -> EventDetector:
    """Random weights, which call something now and then."""
    torch.manual_seed(3)
    inputs = SeriesInputs(rate=10.0, channels=4) if series else SoundInputs()
    network = make_network("crnn" if not series else "temporal", inputs.features, 3, segment=inputs.segment).eval()
    chosen = make_head(head).model_copy(update={"threshold": threshold})
    return EventDetector.assemble(network, LABELS, inputs, chosen, OnsetWarning(threshold=0.0))


@pytest.fixture(scope="module")
def clip() -> Clip:
    return synthetic_clips(1, seed=5, duration=3.0, labels=["hiss", "siren"], events=(3, 4))[0]


def names(figure):
    return [ax.get_ylabel() for ax in figure.axes[2:]]


def test_sound_truth_and_opinions(clip, tmp_path: Path):
    detector = make_detector()
    figure = clip_picture(detector, clip)
    assert set(clip.labels) <= set(names(figure))
    sound, truth, opinion = figure.axes[:3]
    assert sound.images[0].get_array().shape[0] == 128
    assert sound.get_xlim() == (0, clip.duration)
    label = names(figure)[0]
    spans = truth.collections[0].get_paths()
    assert [(path.vertices[:, 0].min(), path.vertices[:, 0].max()) for path in spans] == [
        pytest.approx((event.onset, event.offset)) for event in clip.events if event.label == label
    ]
    assert len(opinion.collections) == 3
    heights = [area.get_paths()[0].vertices[:, 1].max() for area in opinion.collections]
    assert heights[-1] == pytest.approx(1.0, abs=1e-5)
    for name in ("a.png", "b.png"):
        save_figure(clip_picture(detector, clip, ["siren"]), tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_every_alarm_is_marked(clip):
    detector = make_detector()
    alarms = [call for call in detector.detect(clip) if call.level == "alarm"]
    assert alarms
    figure = clip_picture(detector, clip, LABELS)
    for ax, label in zip(figure.axes[2:], LABELS, strict=True):
        marked = sorted(time for line in ax.lines if line.get_marker() in ("v", "x") for time in line.get_xdata())
        assert marked == pytest.approx([call.time for call in alarms if call.label == label])


def test_the_classes_are_those_of_the_clip_and_of_the_calls(clip):
    quiet = make_detector(threshold=1e6)
    assert names(clip_picture(quiet, clip)) == list(clip.labels)
    assert names(clip_picture(quiet, clip, ["siren", "clicks"])) == ["siren", "clicks"]
    assert len(names(clip_picture(quiet, Clip(clip.samples, clip.rate)))) == 1


def test_a_series_and_a_head_of_no_class(clip, tmp_path: Path):
    generator = torch.Generator().manual_seed(0)
    series = Clip(torch.randn(40, 4, generator=generator), 10.0, [("hiss", 1.0, 2.0)])
    figure = clip_picture(make_detector(series=True), series)
    assert len([line for line in figure.axes[0].lines if len(line.get_xdata()) == 40]) == 4
    save_figure(figure, tmp_path / "series.png")
    save_figure(clip_picture(make_detector(head="umss-warning"), clip), tmp_path / "onset.png")


def test_alarms_are_those_of_the_trigger(clip):
    detector, rule = make_detector(), {"needed": 2, "of": 5, "refractory": 0.3}
    calls = detector.detect(clip, warnings=False, **rule)
    assert [call.time for call in calls] != [call.time for call in detector.detect(clip, warnings=False)]
    figure = clip_picture(detector, clip, LABELS, **rule)
    for ax, label in zip(figure.axes[2:], LABELS, strict=True):
        marked = sorted(time for line in ax.lines if line.get_marker() in ("v", "x") for time in line.get_xdata())
        assert marked == pytest.approx([call.time for call in calls if call.label == label])


def test_channels_have_their_names_and_the_detectors_order(tmp_path: Path):
    detector = make_detector(series=True)
    detector.columns_ = ("heat", "flow", "load", "wear")
    samples = torch.randn(40, 4, generator=torch.Generator().manual_seed(0))
    series = Clip(samples, 10.0, [("hiss", 1.0, 2.0)], columns=("wear", "heat", "flow", "load"))
    figure = clip_picture(detector, series)
    ax = figure.axes[0]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["heat", "flow", "load", "wear"]
    drawn = {line.get_label(): line.get_ydata() for line in ax.lines}
    assert drawn["wear"].tolist() == samples[:, 0].tolist()
    save_figure(figure, tmp_path / "series.png")
    torch.manual_seed(3)
    names = tuple(f"channel {n}" for n in range(12))
    network = make_network("temporal", 12, 3, segment=1).eval()
    many = EventDetector.assemble(network, LABELS, SeriesInputs(rate=10.0, channels=12), make_head("wbc"))
    legend = clip_picture(many, Clip(torch.randn(40, 12), 10.0, columns=names)).axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == list(names[:8])
    assert legend.get_title().get_text() == "4 more are not named"


def test_a_series_of_about_the_rate_is_drawn_by_the_detectors_clock():
    samples = torch.randn(600, 4, generator=torch.Generator().manual_seed(0))
    events = [("hiss", 10.0 * n + 5.0, 10.0 * n + 9.0) for n in range(5)]
    slow = [(label, onset * 10 / 10.08, offset * 10 / 10.08) for label, onset, offset in events]
    detector = make_detector(series=True)
    pictures = [clip_picture(detector, each) for each in (Clip(samples, 10.0, events), Clip(samples, 10.08, slow))]
    for usual, other in zip(*(figure.axes for figure in pictures), strict=True):
        assert usual.get_xlim() == other.get_xlim()
        for one, two in zip(usual.lines, other.lines, strict=True):
            assert list(one.get_xdata()) == pytest.approx(list(two.get_xdata()))
        for one, two in zip(usual.collections, other.collections, strict=True):
            for path, same in zip(one.get_paths(), two.get_paths(), strict=True):
                assert path.vertices == pytest.approx(same.vertices)
        assert [text.get_text() for text in usual.texts] == [text.get_text() for text in other.texts]


UNITS = torch.tensor([1e-6, 1.0, 1.0, 0.0])
LEVELS = torch.tensor([0.0, 0.0, 1000.0, 5.0])


@pytest.mark.parametrize(("units", "levels"), [(UNITS, 0 * LEVELS), (torch.ones(4), LEVELS), (UNITS, LEVELS)])
def test_channels_of_very_different_units_or_levels_have_lanes(units, levels, tmp_path: Path):
    samples = torch.randn(40, 4, generator=torch.Generator().manual_seed(0)) * units + levels
    samples[3, 0] = torch.nan
    detector = make_detector(series=True)
    figure = clip_picture(detector, Clip(samples, 10.0, columns=("strain", "_flow", "$load$", "valve")))
    (ax, *_) = figure.axes
    ranges = [(np.nanmin(line.get_ydata()), np.nanmax(line.get_ydata())) for line in ax.lines[:4]]
    # None touches another, and what moves at all is seen to.
    assert all(above[0] > below[1] for above, below in itertools.pairwise(ranges))
    moves = [float(high - low) for low, high in ranges]
    assert moves == pytest.approx([0.84 if unit else 0.0 for unit in units], abs=1e-6)
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert [label.partition("\n")[0] for label in labels] == ["strain", "_flow", "$load$", "valve"]
    assert labels[2].endswith(f"{samples[:, 2].min():.4g} to {samples[:, 2].max():.4g}")
    save_figure(figure, tmp_path / "lanes.png")


def test_alike_channels_share_an_axis_and_many_lanes_have_no_names():
    samples = torch.randn(40, 4, generator=torch.Generator().manual_seed(0))
    (ax, *_) = clip_picture(make_detector(series=True), Clip(samples, 10.0)).axes
    assert ax.get_ylabel() == "channels"
    torch.manual_seed(3)
    network = make_network("temporal", 12, 3, segment=1).eval()
    many = EventDetector.assemble(network, LABELS, SeriesInputs(rate=10.0, channels=12), make_head("wbc"))
    (ax, *_) = clip_picture(many, Clip(torch.randn(40, 12) * torch.logspace(0, 9, 12), 10.0)).axes
    assert ax.get_ylabel() == "12 channels, each over its own range"
    assert not ax.get_yticklabels()


def test_names_are_shown_as_they_are(tmp_path: Path):
    """A dollar is no mathematics, and a name with an underscore in front is in the legend as well."""
    samples = torch.randn(40, 4, generator=torch.Generator().manual_seed(0))
    detector, columns = make_detector(series=True), ("_heat", "p $\\q$", "$x$", "wear")
    detector.labels_ = ("p $\\q$", "_hiss", "$x$")
    series = Clip(samples, 10.0, [("p $\\q$", 1.0, 2.0)], "a $\\b$ clip", columns)
    figure = clip_picture(detector, series, detector.labels_)
    assert names(figure) == list(detector.labels_)
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == list(columns)
    for name in ("clip.png", "clip.svg"):
        save_figure(figure, tmp_path / name)


def test_bad_input(clip):
    detector = make_detector()
    for labels in (["cow"], "siren", []):
        with pytest.raises(EvidentiaError, match="labels must be a list of some of"):
            clip_picture(detector, clip, labels)
    with pytest.raises(EvidentiaError, match="shorter than a segment"):
        clip_picture(detector, Clip(clip.samples[:100], clip.rate))
    with pytest.raises(EvidentiaError, match="not trained yet"):
        clip_picture(EventDetector(), clip)
    with pytest.raises(EvidentiaError, match="is of a Clip"):
        clip_picture(detector, clip.samples)
