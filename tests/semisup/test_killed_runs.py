"""Runs that are killed: what they take up again, and what they still know."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from evidentia import EvidentiaError, MissingExtraError
from evidentia.semisup import (
    OBJECTIVES,
    ByUncertainty,
    LabeledAgainstUnlabeled,
    Meta,
    SemiSupervisedClassifier,
    SemiSupervisedData,
    WeightRegulariser,
    from_arrays,
    two_moons,
)
from evidentia.semisup.training.log import run_log
from evidentia.semisup.training.loop import Record, SemiSupervisedTraining, Training
from evidentia.semisup.uncertainty import PoolReport

QUICK: dict[str, Any] = {"updates": 4, "block": 2, "unlabeled_batch": 10, "progress": False}
DATA = two_moons("faraway", 0.5, seed=1, unlabeled=20)


def by_discriminator() -> ByUncertainty:
    return ByUncertainty(uncertainty=LabeledAgainstUnlabeled(steps=5))


def unlike() -> SemiSupervisedData:
    """A pool that has nothing in common with the labels."""
    torch.manual_seed(0)
    labeled, classes = torch.randn(40, 3), torch.arange(40) % 2
    return from_arrays((labeled, classes), torch.randn(60, 3) + 9)


def killed(*_: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("robust", ["uncertainty", "meta", "mwn", "uasd"])
@pytest.mark.parametrize("objective", sorted(OBJECTIVES))
def test_a_run_that_is_killed_before_its_first_block_does_not_look_at_the_pool_again(
    objective: str, robust: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(**options: Any) -> SemiSupervisedClassifier:
        method = by_discriminator() if robust == "uncertainty" else robust
        return SemiSupervisedClassifier(objective, method, **QUICK, **options)

    kept = tmp_path / "run.safetensors"
    whole = build().fit(DATA)
    with monkeypatch.context() as patch:
        patch.setattr(Training, "run", killed)
        with pytest.raises(KeyboardInterrupt):
            build(checkpoint=kept).fit(DATA)
    monkeypatch.setattr(Training, "start", lambda *_: pytest.fail("the look at the pool was kept"))
    resumed = build(checkpoint=kept).fit(DATA)
    assert torch.equal(whole.weights_, resumed.weights_)
    assert torch.equal(whole.predict(DATA.x_test).probs, resumed.predict(DATA.x_test).probs)
    assert whole.history_ == resumed.history_


@pytest.mark.parametrize("kind", [ByUncertainty, Meta])
def test_the_report_and_its_warning_are_there_after_a_resume(kind: Any, tmp_path: Path) -> None:
    def build() -> SemiSupervisedClassifier:
        robust = kind(uncertainty=LabeledAgainstUnlabeled(), apply="loss")
        return SemiSupervisedClassifier("pi-model", robust, checkpoint=tmp_path / "run.safetensors", **QUICK)

    data, first, again = unlike(), build(), build()
    for clf in (first, again):
        with pytest.warns(UserWarning, match="no random draw"):
            clf.fit(data)
    reports = [clf.robust.estimator.report_ for clf in (first, again)]  # type: ignore[attr-defined]
    assert isinstance(reports[0], PoolReport)
    assert reports[0].suspicious
    assert reports[0] == reports[1]


@pytest.mark.parametrize(
    ("robust", "state"),
    [
        (ByUncertainty(), {"pool": torch.ones(1)}),
        (ByUncertainty(), {"estimator/likeness": torch.ones(())}),
        (ByUncertainty(uncertainty="kernel"), {"estimator/unlike": torch.ones(())}),
        (Meta(regulariser=WeightRegulariser(uncertainty=0.0)), {"estimator/unlike": torch.ones(())}),
    ],
)
def test_states_of_another_method_are_refused(robust: Any, state: dict[str, Tensor]) -> None:
    with pytest.raises(EvidentiaError, match=r"this state is|keeps no state"):
        robust.load_state_dict(state)


def steps_in(folder: Path) -> list[int]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    return [event.step for event in EventAccumulator(str(folder)).Reload().Scalars("loss")]


@pytest.mark.parametrize("told", [[], [2], [2, 4]])
def test_tensorboard_is_told_what_a_killed_run_has_saved_and_not_told(told: Sequence[int], tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    settings = SemiSupervisedTraining(tensorboard=tmp_path, progress=False)
    records: list[Record] = [{"update": update, "loss": 0.5, "unlabeled_loss": 0.1} for update in (2, 4, 6)]
    with run_log(settings, []) as tell:
        for record in records[: len(told)]:
            tell(record)
    if not told:
        # As if TensorBoard was asked for only when the run was taken up.
        for file in tmp_path.glob("events.*"):
            file.unlink()
    with run_log(settings, records[:2]) as tell:
        tell(records[2])
    assert steps_in(tmp_path) == [2, 4, 6]


def test_the_extra_is_named_when_tensorboard_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    settings = SemiSupervisedTraining(tensorboard=tmp_path, progress=False)
    with pytest.raises(MissingExtraError, match=r"evidentia\[tensorboard\]"), run_log(settings, []):
        pass


def test_a_look_at_the_pool_shows_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[str, int, int]] = []

    class Bar:
        def __init__(self, what: str, total: int, *, done: int = 0, shown: bool = True, stays: bool = False) -> None:
            self.what, self.total, self.shown = what, total, shown

        def __enter__(self) -> Any:
            return lambda done, figures: shown.append((self.what, done, self.total)) if self.shown else None

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr("evidentia.semisup.training.log.progress_bar", Bar)
    told: list[int] = []
    own = LabeledAgainstUnlabeled(steps=5, progress=lambda done, total: told.append(done))
    loud = {**QUICK, "progress": True}
    clf = SemiSupervisedClassifier("pi-model", ByUncertainty(uncertainty=own), **loud).fit(DATA)
    # Six labels: seven repeats of two folds, of five steps each.
    looking = [entry for entry in shown if entry[0] == "looking at the pool"]
    assert looking == [("looking at the pool", step, 70) for step in range(1, 71)]
    assert told == list(range(1, 71))
    assert [entry[1] for entry in shown[70:]] == [2, 4]
    shown.clear()
    quiet = SemiSupervisedClassifier("pi-model", by_discriminator(), **QUICK).fit(DATA)
    assert not shown
    assert torch.equal(clf.weights_, quiet.weights_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SemiSupervisedClassifier("pi-model", "meta", **loud).fit(DATA)
    assert {entry[0] for entry in shown} == {"training"}
    assert not capsys.readouterr().out
