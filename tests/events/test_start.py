"""A detector that starts from another one's network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from evidentia import EvidentiaError
from evidentia.events import NETWORKS, Clip, EventDetector, make_network, synthetic_clips
from evidentia.events.training.first_weights import take_over

TINY: dict[str, Any] = {"epochs": 1, "seed": 0, "progress": False, "preset": None, "warnings_per_minute": 60.0}

pytestmark = [
    pytest.mark.filterwarnings("ignore:the clips to calibrate on have no event of"),
    pytest.mark.filterwarnings("ignore:no training clip has an event of"),
]


def sounds(*labels: str, seed: int = 0) -> list[Clip]:
    return synthetic_clips(6, seed=seed, labels=list(labels), duration=2.0)


def series(rate: float = 10.0, channels: int = 2, columns: tuple[str, ...] = (), label: str = "leak") -> list[Clip]:
    numbers = torch.randn(6, 60, channels, generator=torch.Generator().manual_seed(channels))
    return [Clip(each, rate, [(label, 1.0, 2.0)], columns=columns) for each in numbers]


@pytest.fixture(scope="module")
def learnt() -> EventDetector:
    return EventDetector(**TINY).fit(sounds("tone", "clicks", "siren"))


def test_it_starts_with_all_layers_but_the_last(learnt: EventDetector, monkeypatch: pytest.MonkeyPatch) -> None:
    from evidentia.events import estimator

    first: dict[str, torch.Tensor] = {}

    def keep(network: Any, *_: Any) -> list[dict[str, float]]:
        first.update({name: tensor.clone() for name, tensor in network.state_dict().items()})
        network.eval()
        return []

    monkeypatch.setattr(estimator, "train", keep)
    EventDetector(**TINY, start=learnt).fit(sounds("tone", "burst"))
    theirs = learnt.network_.state_dict()
    for name, tensor in first.items():
        if not name.startswith(("head.", "standardise.")):
            assert torch.equal(tensor, theirs[name]), name
    # Numbers are standardised anew, and the last layer knows how often the new classes are.
    assert first["standardise.num_batches_tracked"] == 0
    assert first["head.bias"].shape == (4,)
    assert first["head.bias"].abs().min() > 0


def test_a_file_is_as_good_as_the_detector(learnt: EventDetector, tmp_path: Path) -> None:
    learnt.save(tmp_path / "learnt.safetensors")
    clips = sounds("tone", "burst")
    by_file = EventDetector(**TINY, start=tmp_path / "learnt.safetensors").fit(clips)
    by_detector = EventDetector(**TINY, start=learnt).fit(clips)
    without = EventDetector(**TINY).fit(clips)
    given = by_file.network_.state_dict()
    assert all(torch.equal(tensor, given[name]) for name, tensor in by_detector.network_.state_dict().items())
    gru = "gru.gru.weight_hh_l0"
    assert not torch.equal(without.network_.state_dict()[gru], given[gru])


def test_the_detector_to_start_from_stays_as_it_was(learnt: EventDetector) -> None:
    before = {name: tensor.clone() for name, tensor in learnt.network_.state_dict().items()}
    EventDetector(**TINY, start=learnt).fit(sounds("tone"))
    assert all(torch.equal(tensor, before[name]) for name, tensor in learnt.network_.state_dict().items())


def test_a_run_does_not_go_on_from_another_start(learnt: EventDetector, tmp_path: Path) -> None:
    clips, checkpoint = sounds("tone"), tmp_path / "run.safetensors"
    EventDetector(**TINY, start=learnt, checkpoint=checkpoint).fit(clips)
    with pytest.raises(EvidentiaError, match="network"):
        EventDetector(**TINY, checkpoint=checkpoint).fit(clips)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_can_be_taken_over_for_other_classes(name: str) -> None:
    learnt, network = (make_network(name, features=128, num_classes=classes) for classes in (5, 2))
    take_over(network, learnt)
    theirs = learnt.state_dict()
    for part, tensor in network.state_dict().items():
        if part.partition(".")[0] not in {*network.of_classes, "standardise"}:
            assert torch.equal(tensor, theirs[part]), part
    assert network(torch.randn(2, 16, 128)).shape[2:] == (2, 2)


@pytest.mark.parametrize(
    ("settings", "clips", "message"),
    [
        ({"size": "dcase"}, sounds("tone"), "the same network, size and network_settings"),
        ({"network": "conformer"}, sounds("tone"), "has a CRNN of .* and this one a Conformer"),
        ({"network": "temporal"}, series(), "is for sound, and these clips are series of 2"),
    ],
)
def test_another_network_or_other_clips_are_refused(
    learnt: EventDetector, settings: dict[str, Any], clips: list[Clip], message: str
) -> None:
    with pytest.raises(EvidentiaError, match=message):
        EventDetector(**TINY, start=learnt, **settings).fit(clips)


def test_series_must_have_the_rate_and_the_channels_of_the_start() -> None:
    start = EventDetector("temporal", **TINY).fit(series(columns=("level", "flow")))
    for clips, message in (
        (series(20.0), "takes 10 samples a second, and these clips have 20"),
        (series(channels=3), "series of 2 channels, and these clips are series of 3"),
        (series(columns=("flow", "level")), "has the channels level, flow, and these clips have flow, level"),
    ):
        with pytest.raises(EvidentiaError, match=message):
            EventDetector("temporal", **TINY, start=start).fit(clips)
    EventDetector("temporal", **TINY, start=start).fit(series(columns=("level", "flow"), label="blocked"))


def test_a_start_that_is_no_detector_is_told(tmp_path: Path) -> None:
    with pytest.raises(EvidentiaError, match="not trained yet"):
        EventDetector(**TINY, start=EventDetector()).fit(sounds("tone"))
    with pytest.raises(FileNotFoundError):
        EventDetector(start=tmp_path / "nothing.safetensors")
