"""Presets, controls and one scored training."""

from __future__ import annotations

import inspect
import os
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from evidentia import EvidentiaError
from evidentia.semisup import CONTROLS, ROBUST, Meta, from_arrays, load_pool, run_task, train_task, usual_settings
from evidentia.semisup.data.by_name import NAMES, pool_kinds
from evidentia.semisup.objectives import OBJECTIVES, VAT
from evidentia.semisup.task_parts import robust_method, task_classifier
from evidentia.semisup.tasks import ALL_LABELS, COMPUTE_MATCHED, base_control, check_task, matched_updates
from evidentia.semisup.training import stopwatch as stopwatch_module
from evidentia.semisup.training.loop import SemiSupervisedTraining, Training

TINY: dict[str, Any] = {"updates": 6, "progress": False}


@pytest.fixture(scope="module")
def moons() -> Any:
    return load_pool("two-moons", "faraway", 0.5, unlabeled=100, validation=10)


@pytest.mark.parametrize("name", [*NAMES, "data"])
@pytest.mark.parametrize("objective", sorted(OBJECTIVES))
@pytest.mark.parametrize("preset", ["quick", "thesis", "author"])
def test_every_data_set_has_settings_for_every_objective(name: str, objective: str, preset: Any) -> None:
    settings = usual_settings(name, objective, preset)
    assert isinstance(settings.pop("objective"), OBJECTIVES[objective])
    for part in ("network", "augmentation"):
        settings.pop(part, None)
    SemiSupervisedTraining(**settings)


def test_the_thesis_preset_has_its_table() -> None:
    rates = {"pi-model": 3e-3, "mean-teacher": 4e-4, "vat": 3e-3, "pseudo-label": 3e-4}
    weights = {"pi-model": 20.0, "mean-teacher": 8.0, "vat": 0.3, "pseudo-label": 1.0}
    for objective, rate in rates.items():
        settings = usual_settings("mnist", objective, "thesis")
        assert settings["learning_rate"] == rate
        assert settings["objective"].weight == weights[objective]
        training = SemiSupervisedTraining(
            **{name: settings[name] for name in ("updates", "learning_rate", "schedule", "average")}
        )
        assert (training.updates, training.average) == (2000, None)
        assert training.rate_at(999) == pytest.approx(rate)
        assert training.rate_at(1000) == pytest.approx(0.2 * rate)
    assert usual_settings("mnist", "vat", "thesis")["objective"].epsilon == 3.0
    for objective in ("mean-teacher", "pseudo-label"):
        supervised = task_classifier("mnist", objective, "supervised", preset="thesis")
        assert supervised.settings.learning_rate == 3e-3


def test_the_author_preset_has_coefficient_1() -> None:
    settings = usual_settings("mnist", "pi-model", "author")
    assert settings["objective"].weight == 1
    assert (settings["updates"], settings["labeled_batch"], settings["unlabeled_batch"]) == (10_000, 64, 256)


def test_photographs_get_a_network_that_two_cores_can_train_unless_a_preset_says_otherwise() -> None:
    assert usual_settings("cifar10", "fixmatch")["network"] == "wrn-10-1"
    assert usual_settings("cifar10", "fixmatch", "thesis")["network"] == "wrn"
    assert usual_settings("mnist", "fixmatch")["network"] == "lenet"


def test_an_objective_of_ones_own_stays_as_it_is() -> None:
    own = VAT(epsilon=7.0)
    assert usual_settings("two-moons", own, "author")["objective"] is own


def test_a_preset_that_is_not_there() -> None:
    with pytest.raises(EvidentiaError, match="no preset named 'slow'; choose one of: quick, thesis, author"):
        usual_settings("mnist", "vat", "slow")  # type: ignore[arg-type]


def test_a_task_is_the_training_that_its_settings_say(moons: Any) -> None:
    trained = train_task(moons, "pi-model", "oracle", seed=3, **TINY)
    clf, result = trained.classifier, trained.result
    right = clf.predict(moons.x_test).labels == moons.y_test
    assert result.accuracy == pytest.approx(float(right.double().mean()))
    assert (result.w_in, result.w_ood, result.ood_auroc) == (1.0, 0.0, 1.0)
    assert (result.updates, clf.settings.seed, clf.norm_) == (6, 3, "batch")
    assert result.labels == 16
    assert result.seconds > 0
    again = run_task(moons, "pi-model", "oracle", seed=3, **TINY)
    assert again.accuracy == result.accuracy


def test_a_named_data_set_is_drawn_by_the_seed() -> None:
    trained = train_task("two-moons", "pi-model", "none", ood="boundary", ratio=0.25, seed=5, **TINY)
    same = load_pool("two-moons", "boundary", 0.25, seed=5)
    assert torch.equal(trained.data.x_unlabeled, same.x_unlabeled)


def test_a_clean_pool_and_a_supervised_run_leave_out_what_cannot_be_known() -> None:
    clean = run_task("two-moons", "pi-model", "none", **TINY).metrics()
    assert clean["w_in"] == 1.0
    assert "w_ood" not in clean
    assert "ood_auroc" not in clean
    supervised = run_task("two-moons", "pi-model", "supervised", ood="faraway", **TINY).metrics()
    assert set(supervised) == {"accuracy", "labels", "updates", "seconds"}


@pytest.mark.parametrize(("use", "labeled", "total"), [("clean", 6, 16), ("labeled", 16, 16), ("none", 6, 6)])
def test_validation_labels_are_counted_where_they_are_used(moons: Any, use: Any, labeled: int, total: int) -> None:
    trained = train_task(moons, "pi-model", "none", validation_use=use, **TINY)
    assert len(trained.data.y_labeled) == labeled
    assert trained.result.labels == total
    assert torch.equal(trained.data.x_unlabeled, moons.x_unlabeled)


@pytest.mark.parametrize("control", sorted(CONTROLS))
def test_every_control_is_a_training(control: str, moons: Any) -> None:
    method = {"robust": "meta", "robust_options": {"scope": "last"}, "norm": "batch", "passes": None}
    trained = train_task(moons, "pi-model", **{**method, **CONTROLS[control]}, **TINY)
    assert trained.result.labels == (16 if control == ALL_LABELS else 6)
    assert 0 <= trained.result.accuracy <= 1


def test_the_controls_are_what_they_are_called() -> None:
    assert {name: (entry["norm"], entry["passes"]) for name, entry in CONTROLS.items() if "norm" in entry} == {
        "no BN": ("none", None),
        "concatenated BN": ("batch", "concat"),
        "separate BN": ("batch", "separate"),
        "frozen BN": ("frozen", "separate"),
    }
    assert all(entry["robust"] in ROBUST for entry in CONTROLS.values())
    assert COMPUTE_MATCHED in CONTROLS


def test_the_thesis_methods_have_weighted_batch_norm(moons: Any) -> None:
    assert train_task(moons, "pi-model", "ift", **TINY).classifier.norm_ == "weighted"
    assert train_task(moons, "pi-model", Meta(), **TINY).classifier.norm_ == "weighted"
    assert train_task(moons, "pi-model", "meta", norm="batch", **TINY).classifier.norm_ == "batch"


def test_the_plain_objective_of_a_method_has_its_batch_norm() -> None:
    for norm in ("none", "frozen", "batch"):
        assert CONTROLS[base_control(norm)]["norm"] == norm
    assert base_control("weighted", "separate") == "separate BN"


def test_matched_updates_are_rounded_up_and_never_fewer() -> None:
    assert matched_updates(100, 1.701, 1.0) == 171
    assert matched_updates(100, 0.5, 1.0) == 100


def test_a_batch_of_a_preset_is_no_larger_than_the_pool() -> None:
    data = load_pool("two-moons", "faraway", 0.5, unlabeled=20)
    trained = train_task(data, "pi-model", "none", preset="author", **TINY)
    assert trained.classifier.settings.unlabeled_batch == 40
    with pytest.raises(EvidentiaError, match="unlabeled_batch is 50, but the pool has 40"):
        train_task(data, "pi-model", "none", unlabeled_batch=50, **TINY)


def test_a_broken_off_run_goes_on_and_knows_its_time(
    moons: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run_task(moons, "pi-model", "none", block=2, **TINY)
    path = tmp_path / "deep" / "run.safetensors"
    run = partial(run_task, moons, "pi-model", "none", block=2, checkpoint=path, **TINY)
    save = Training.save

    def save_and_die(*arguments: Any) -> None:
        save(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(stopwatch_module, "time", SimpleNamespace(time=lambda: 1000.0))
    with monkeypatch.context() as dying:
        dying.setattr(Training, "save", save_and_die)
        with pytest.raises(KeyboardInterrupt):
            run()
    # Half a minute went by up to the last checkpoint; how long the machine stood still afterwards does not count.
    os.utime(path, (1030.0, 1030.0))
    monkeypatch.setattr(stopwatch_module, "time", SimpleNamespace(time=lambda: 9000.0))
    resumed = run()
    assert resumed.accuracy == whole.accuracy
    assert resumed.seconds == pytest.approx(30.0)
    # A sitting that finds nothing left to do takes no time.
    os.utime(path, (9020.0, 9020.0))
    monkeypatch.setattr(stopwatch_module, "time", SimpleNamespace(time=lambda: 12_000.0))
    assert run().seconds == pytest.approx(50.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda data: run_task(data, ood="faraway"), "brings its OOD and validation"),
        (lambda _: run_task("two-moon"), "no data set named 'two-moon'"),
        (lambda _: run_task("two-moons", ood="cats"), "two-moons has no OOD named 'cats'"),
        (lambda data: run_task(data, "vatt"), "no semi-supervised objective named 'vatt'"),
        (lambda data: run_task(data, robust="metta"), "no robust method named 'metta'"),
        (lambda data: run_task(data, validation_use="all"), "validation_use must be"),
        (
            lambda _: robust_method("meta", {"scopes": "full"}),
            "Meta has no setting 'scopes'; it has these: apply, refresh_every, every,",
        ),
        (lambda data: run_task(data, updatse=3), "the settings do not fit: updatse"),
        (
            lambda data: run_task(from_arrays((data.x_labeled, data.y_labeled), data.x_unlabeled)),
            "scored on a test, and the data has none",
        ),
    ],
)
def test_bad_input_is_told_in_a_sentence(call: Any, message: str, moons: Any) -> None:
    with pytest.raises(EvidentiaError, match=message):
        call(moons)


BASE: dict[str, Any] = {
    "data": "two-moons",
    "objective": "pi-model",
    "robust": "meta",
    "ood": "faraway",
    "ratio": 0.5,
    "data_options": {"unlabeled": 40},
    "updates": 2,
    "progress": False,
}
# Of each argument of a task what can be trained with, and what cannot.
ARGUMENTS: dict[str, tuple[Any, Any]] = {
    "data": ("moons", "suns"),
    "objective": ("vat", "vatt"),
    "robust": ("none", "metta"),
    "ood": (["boundary", "faraway"], 3),
    "ratio": (0.25, 7),
    "seed": (3, -1),
    "preset": ("author", "slow"),
    "norm": ("frozen", "layer"),
    "passes": ("separate", "apart"),
    "validation": (4, -1),
    "validation_use": ("labeled", "nonsense"),
    "objective_options": ({"weight": 2.0}, {"wait": 2.0}),
    "robust_options": ({"every": 2}, {"evry": 2}),
    "data_options": ({"pool_size": 60}, {"labels": 3}),
    "data_root": (None, None),
    "checkpoint": (None, 3),
    "labeled_batch": (4, 0),
    "network": ("mlp", "nmlp"),
}


def test_every_argument_of_a_task_is_checked() -> None:
    assert inspect.signature(train_task).parameters.keys() - {"options"} <= ARGUMENTS.keys()


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_is_checked_of_a_task_is_what_can_be_trained(name: str) -> None:
    good, bad = ARGUMENTS[name]
    check_task(**{**BASE, name: good})
    train_task(**{**BASE, name: good})
    if name == "data_root":
        return  # whether it has the data is seen when they are read
    _assert_refused({**BASE, name: bad})


@pytest.mark.parametrize(
    "settings",
    [
        {"norm": "frozen", "passes": "concat"},
        {"norm": "batch", "robust_options": {"joint": True}},
        {"ood": None},
        {"data_options": {"unlabeled": 40, "pool_size": 80}},
        {"data_options": {"labels_per_class": 0}},
    ],
)
def test_what_does_not_go_together_is_told_before_data_are_read(settings: dict[str, Any]) -> None:
    _assert_refused({**BASE, **settings})


def _assert_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(EvidentiaError) as before:
        check_task(**arguments)
    with pytest.raises(EvidentiaError) as training:
        train_task(**arguments)
    assert str(before.value) == str(training.value)


def test_data_that_are_there_can_be_checked(moons: Any) -> None:
    check_task(moons, "pi-model", "oracle")
    with pytest.raises(EvidentiaError, match="brings its OOD and validation"):
        check_task(moons, ood="faraway")


def test_kinds_of_ood_come_with_the_usual_one_first() -> None:
    for name in NAMES:
        assert pool_kinds(name)
    assert pool_kinds("MNIST")[0] == "fashion"
    assert pool_kinds("cifar-10")[0] == "held-out"
