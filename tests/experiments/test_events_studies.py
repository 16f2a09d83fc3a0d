"""The studies of chapter 4: what their jobs measure, that networks are trained once, and what they stand beside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from evidentia import EvidentiaError
from evidentia.evaluation import EventTruth
from evidentia.events import beta_from_probability
from evidentia.experiments import STUDIES, published
from evidentia.experiments.job import flat_metrics
from evidentia.experiments.jobs import events, events_networks, events_points
from evidentia.experiments.jobs.events import check_events_job, events_job
from evidentia.experiments.jobs.events_methods import BASELINE, DECAYS, METHODS
from evidentia.experiments.jobs.events_networks import Outputs, Training, trained_outputs

# Of a few clips, not every class is in those to train on, nor in those to calibrate on.
pytestmark = [
    pytest.mark.filterwarnings("ignore:no training clip has an event of"),
    pytest.mark.filterwarnings("ignore:the clips to calibrate on have no event of"),
]

TINY: dict[str, Any] = {"data": "synthetic", "clips": 4, "held_out": 3, "epochs": 1}
NAMES = tuple(f"events-{part}" for part in ("audio", "delay", "video", "ablation", "threshold", "window", "inference"))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVIDENTIA_CACHE", str(tmp_path))
    return tmp_path / "event-networks"


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let every network but the baseline be so many segments sooner than it, and otherwise alike."""

    def made(delay: int) -> dict[str, Outputs]:
        found = {}
        for number, part in enumerate(("validation", "test")):
            draw = torch.Generator().manual_seed(number)
            y = torch.zeros(40, 60, 2)
            score = torch.full_like(y, -4.0) + 0.1 * torch.randn(y.shape, generator=draw)
            for clip in range(40):
                first = int(torch.randint(5, 30, (1,), generator=draw))
                y[clip, first : first + 20, clip % 2] = 1
                score[clip, first + delay : first + 20, clip % 2] += 6
            found[part] = Outputs(1 + 50 * torch.sigmoid(score), 1 + 50 * torch.sigmoid(-score), _truth(y))
        return found

    def use(sooner: int) -> None:
        def instead(training: Training, sampled: bool = False) -> dict[str, Outputs]:
            baseline = training.settings["loss"] == "sigmoid"
            return made(6 if baseline else 6 - sooner)

        monkeypatch.setattr(events, "trained_outputs", instead)

    return use


def _truth(y: Tensor) -> EventTruth:
    return EventTruth.from_activity(y)


def test_a_detector_that_is_sooner_has_its_delay_and_ratio_and_no_other_gain(outputs: Callable[[int], None]) -> None:
    outputs(3)
    found = events_job({"data": "synthetic", "method": "mtenn-phase1"}, seed=0)
    assert found["macro_f1"] == pytest.approx(1)
    assert found["gain"] == pytest.approx(0)
    assert found["delay"] == pytest.approx(4 * 0.064, rel=0.02)
    assert found["common_delay"] == pytest.approx(found["delay"])
    assert found["common_ratio"] == pytest.approx(4 / 7, rel=0.02)
    assert found["at_f1"]["common_ratio"] == pytest.approx(4 / 7, rel=0.02)
    assert found["met"] == 1.0


def test_a_target_of_delay_that_one_network_meets_and_the_other_does_not(outputs: Callable[[int], None]) -> None:
    outputs(3)
    found = events_job({"data": "synthetic", "method": "mtenn-phase1"}, seed=0)
    assert found["at_delay"]["delay"] <= events.DELAY
    assert found["at_delay"]["gain"] > 0.1
    assert found["at_delay"]["met"] == 1.0


def test_the_limit_of_delay_is_the_configurations(outputs: Callable[[int], None]) -> None:
    outputs(3)
    job = {"data": "synthetic", "method": "mtenn-phase1"}
    short, long = (events_job({**job, "delay_limit": limit}, seed=0)["at_delay"] for limit in (0.3, 0.5))
    assert short["delay"] <= 0.3
    assert short["gain"] > 0.1
    assert long["gain"] == pytest.approx(0)


def test_half_of_the_false_alarms_is_half_of_what_the_baseline_has_at_that_delay(
    outputs: Callable[[int], None],
) -> None:
    outputs(0)
    job = {"data": "synthetic", "method": "mtenn-phase1", "delay_limit": 0.4}
    found = events_job(job, seed=0)
    # The same network as the baseline's: it has fewer only where it takes its time.
    assert found["at_delay"]["false_alarms_ratio"] == 1
    assert found["at_half_alarms"]["false_alarms_ratio"] <= 0.6
    assert found["at_half_alarms"]["delay"] > 0.4
    assert found["at_half_alarms"]["met"] == 0
    outputs(3)
    sooner = events_job(job, seed=0)
    assert sooner["at_half_alarms"]["met"] == 1
    assert sooner["at_half_alarms"]["gain"] > 0.1
    assert sooner["at_half_alarms"]["false_alarms_ratio"] <= 0.5


@pytest.mark.parametrize(("rises", "least", "most"), [(True, 0.95, 1.0), (False, 0.0, 0.05)])
def test_a_warning_is_good_if_vacuity_rises_at_onsets(rises: bool, least: float, most: float) -> None:
    y = torch.zeros(4, 60, 2)
    strength = torch.full_like(y, 50.0 if rises else 5.0)
    for clip in range(4):
        first = 20 + clip
        y[clip, first : first + 10, clip % 2] = 1
        strength[clip, first : first + 10] = 5.0 if rises else 50.0
    outputs = dict.fromkeys(("validation", "test"), Outputs(strength, strength, _truth(y)))
    assert least <= events._warning_auc(outputs) <= most


def test_the_baseline_is_even_with_itself(outputs: Callable[[int], None]) -> None:
    outputs(3)
    found = flat_metrics(events_job({"data": "synthetic", "method": BASELINE}, seed=0))
    alike = [name for name in found if "half" not in name]
    assert {found[name] for name in alike if name.endswith("gain")} == {0.0}
    assert {found[name] for name in alike if name.endswith("ratio")} <= {1.0}
    assert "onset_auc" not in found


def test_a_head_as_it_is_has_no_operating_points(outputs: Callable[[int], None]) -> None:
    outputs(0)
    job = {"data": "synthetic", "method": "mtenn-wbc", "calibrated": False}
    loose, strict = (events_job({**job, "head": {"max_vacuity": limit}}, seed=0) for limit in (0.9, 0.001))
    assert loose["macro_f1"] > 0.9
    assert strict["macro_f1"] == 0
    assert "delay" not in strict
    assert "at_delay" not in loose


@pytest.fixture
def asked(outputs: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> set[Any]:
    """What is chosen from on validation clips, by head."""
    outputs(0)
    found = set()
    kept = events_points.calibrate

    def note(head: Any, *rest: Any, **options: Any) -> Any:
        found.add((head.name, options["windows"], options["decays"]))
        return kept(head, *rest, **options)

    monkeypatch.setattr(events_points, "calibrate", note)
    return found


def test_settings_of_the_head_that_are_given_are_not_chosen(asked: set[Any]) -> None:
    events_job({"data": "synthetic", "method": "mtenn-wbc", "head": {"window": 3}}, seed=0)
    assert asked == {("phase1", (), ()), ("wbc", (), DECAYS)}


@pytest.mark.parametrize(
    ("method", "head", "windows"),
    [("mtenn-wbc", "wbc", (2, 3, 4, 6)), ("mtenn-bc", "bc", (2, 3, 4, 6)), ("mtenn-umss", "umss", (1, 2, 3, 4, 6))],
)
def test_a_fusion_is_of_more_than_one_segment(
    asked: set[Any], method: str, head: str, windows: tuple[int, ...]
) -> None:
    events_job({"data": "synthetic", "method": method}, seed=0)
    assert {tried for name, tried, _ in asked if name == head} == {windows}
    assert METHODS["early"].windows == (1, 2, 3, 4, 6)


def _sampled(misleading: bool) -> Outputs:
    """Calls of nothing that look surer than those of events; their uncertainty gives them away, or does not."""
    y = torch.zeros(8, 40, 1)
    probability, uncertainty = torch.full_like(y, 0.02), torch.full_like(y, 0.001)
    y[:, 20:30] = 1
    probability[:, 20:30] = torch.linspace(0.7, 0.9, 10).view(10, 1)
    probability[:4, 5:8] = 0.95
    uncertainty[:, 20:30] = torch.linspace(0.01, 0.03, 10).view(10, 1)
    uncertainty[:4, 5:8] = 0.005 if misleading else 0.08
    return Outputs(*beta_from_probability(probability), _truth(y), {"epistemic": uncertainty})


@pytest.mark.parametrize("target", [{}, {"delay": 0.4}, {"macro_f1": 0.9}])
def test_the_limit_of_a_filter_follows_the_validation_clips(target: dict[str, float]) -> None:
    """Whatever the test clips, on which the other choice would be the better one."""
    telling, misleading = _sampled(False), _sampled(True)
    method = METHODS["crnn-epistemic"]
    found = events_points.chosen_point(method, {"validation": telling, "test": misleading}, **target)
    assert 0.02 < found.max_uncertainty < 0.08
    assert found.validation.macro_f1 == 1
    assert found.validation.false_alarms_per_minute == 0
    assert found.test.false_alarms_per_minute > 0
    found = events_points.chosen_point(method, {"validation": misleading, "test": telling}, **target)
    assert found.max_uncertainty == float("inf")
    assert found.validation.macro_f1 < 1


def test_the_limit_of_a_filter_can_be_fixed_or_its_own() -> None:
    both = dict.fromkeys(("validation", "test"), _sampled(False))
    method = METHODS["crnn-epistemic"]
    assert events_points.chosen_point(method, both, {"max_uncertainty": 0.9}).validation.macro_f1 < 1
    strict = events_points.own_point(method, both, {"max_uncertainty": 0.05})
    assert (strict.validation.macro_f1, strict.max_uncertainty) == (1, 0.05)
    assert events_points.own_point(method, both, {}).max_uncertainty == 0.5


def test_what_is_kept_of_dropout_is_not_filtered(cache: Path) -> None:
    training = Training({**METHODS["crnn"].training, "epochs": 1}, "synthetic", 0, clips=3, held_out=2)
    found = trained_outputs(training, sampled=True)["test"]
    entropy = found.uncertainty("entropy")
    assert (found.uncertainty("epistemic") > 0).any()
    assert torch.allclose(found.uncertainty("epistemic") + found.uncertainty("aleatoric"), entropy, atol=1e-3)
    assert found.within("epistemic", float("inf"))[0] is found.alpha
    alpha, beta = found.within("entropy", 0.5)
    assert torch.equal(alpha[entropy < 0.5], found.alpha[entropy < 0.5])
    assert (alpha[entropy >= 0.5] < 1e-5 * beta[entropy >= 0.5]).all()


def test_methods_with_one_training_share_a_network(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainings = []
    fit = events_networks.EventDetector.fit

    def counted(self: Any, *clips: Any) -> Any:
        trainings.append(self.settings.loss)
        return fit(self, *clips)

    monkeypatch.setattr(events_networks.EventDetector, "fit", counted)
    for method in ("crnn", "crnn-entropy", "crnn-epistemic", "crnn-aleatoric"):
        found = flat_metrics(events_job({**TINY, "method": method}, seed=0))
        assert 0 <= found["macro_f1"] <= 1
    assert trainings == ["sigmoid"]
    assert not list(cache.glob("*.checkpoint"))
    events_job({**TINY, "method": "crnn"}, seed=1)
    assert trainings == ["sigmoid"] * 2


def test_a_training_that_is_stopped_goes_on_and_ends_the_same(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {**METHODS["mtenn-wbc"].training, "epochs": 2}
    training = Training(settings, "synthetic", 3, clips=3, held_out=2)
    whole = trained_outputs(training)
    for file in cache.iterdir():
        file.unlink()
    save = events_networks.EventDetector.save

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(events_networks.EventDetector, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        trained_outputs(training)
    assert len(list(cache.glob("*.checkpoint"))) == 1
    monkeypatch.setattr(events_networks.EventDetector, "save", save)
    again = trained_outputs(training)
    for part in ("validation", "test"):
        assert torch.equal(whole[part].alpha, again[part].alpha)
        assert torch.equal(whole[part].truth.onset, again[part].truth.onset)


def test_the_key_of_a_network_is_all_that_it_depends_on() -> None:
    one = Training({"loss": "beta"}, "synthetic", 0)
    others = [
        Training({"loss": "bce"}, "synthetic", 0),
        Training({"loss": "beta"}, "esc50-alarm", 0),
        Training({"loss": "beta"}, "synthetic", 1),
        Training({"loss": "beta"}, "synthetic", 0, clips=5),
        Training({"loss": "beta"}, "synthetic", 0, held_out=5),
    ]
    assert len({one.key, *(other.key for other in others)}) == 6
    assert one.key == Training({"loss": "beta"}, "synthetic", 0, data_root="elsewhere").key


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"method": "loud"}, "no method 'loud'"),
        ({"data": "esc50-zoo"}, "no data 'esc50-zoo'"),
        ({"epochs": 0}, "epochs"),
        ({"head": {"colour": 1}}, "colour"),
        ({"method": "crnn-epistemic", "head": {"max_uncertainty": (0.5, 0.6)}}, "one limit for all classes"),
    ],
)
def test_a_job_that_cannot_run_says_so_before(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(EvidentiaError, match=message):
        check_events_job({**TINY, "method": "crnn", **wrong})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("preset", ["quick", "full"])
def test_every_cell_can_be_run(name: str, preset: Any) -> None:
    STUDIES[name].check_options(preset)
    assert STUDIES[name].cells(preset)


@pytest.mark.parametrize("name", ["events-audio", "events-video", "events-ablation"])
def test_every_published_f1_of_data_that_we_have_stands_beside_a_cell(name: str) -> None:
    study = STUDIES[name]
    assert study.beside is not None
    figures = [study.beside.figure(cell, "macro_f1") for cell in study.cells()]
    found = {(figure.row, figure.column) for figure in figures if figure is not None}
    wanted = {(f.row, f.column) for f in published(name) if f.column == "f1" and not f.row.startswith("explosion")}
    assert found == wanted


def test_the_time_of_a_segment_is_measured_for_every_method() -> None:
    for cell in STUDIES["events-inference"].cells("quick"):
        found = STUDIES["events-inference"].function({**cell.configuration, "size": "small", "segments": 3}, 0)
        assert found["inference"] > 0


def test_a_pretrained_method_starts_from_a_network_that_others_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVIDENTIA_CACHE", str(tmp_path))
    crnn, early = (events.training_of(TINY, METHODS[f"{name}-pretrained"], 3) for name in ("crnn", "early"))
    assert crnn.start is not None
    assert early.start is not None
    assert crnn.start.key == early.start.key
    assert len({crnn.key, early.key, crnn.start.key}) == 3
    on_esc50 = events.training_of({**TINY, "data": "esc50-alarm"}, METHODS["crnn-pretrained"], 3)
    assert on_esc50.start is not None
    assert on_esc50.start.data == "esc50-all"
    starts = []

    class Watched(events_networks.EventDetector):
        def __init__(self, *args: Any, **settings: Any) -> None:
            starts.append(settings.get("start"))
            super().__init__(*args, **settings)

    monkeypatch.setattr(events_networks, "EventDetector", Watched)
    trained_outputs(crnn)
    trained_outputs(early)
    # The first was trained once, and both others started from it.
    assert [start is None for start in starts].count(False) == 2
