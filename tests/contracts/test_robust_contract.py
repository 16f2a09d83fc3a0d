"""What every robust method keeps: each registered one is put through the same tests."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch import nn

from evidentia.semisup import (
    OBJECTIVES,
    ROBUST,
    ByUncertainty,
    LabeledAgainstUnlabeled,
    SemiSupervisedClassifier,
    SemiSupervisedData,
    two_moons,
)
from evidentia.semisup.training.log import run_log
from evidentia.semisup.training.loop import Record, SemiSupervisedTraining


@pytest.fixture(scope="module")
def data() -> SemiSupervisedData:
    return two_moons("faraway", 0.5, seed=3, unlabeled=120)


def build(robust: str, **settings: object) -> SemiSupervisedClassifier:
    method = ROBUST[robust]()
    # So that a few updates are enough for everything to happen.
    if method.refresh_every:
        method.refresh_every = 6
    if isinstance(method, ByUncertainty):
        method.uncertainty = LabeledAgainstUnlabeled(steps=5)
    chosen = {"updates": 20, "block": 4, "unlabeled_batch": 30, "progress": False, **settings}
    return SemiSupervisedClassifier("pi-model", method, **chosen)


@pytest.mark.parametrize("robust", sorted(ROBUST))
def test_weights_are_one_a_sample_between_0_and_1(robust: str, data: SemiSupervisedData) -> None:
    clf = build(robust).fit(data)
    assert clf.weights_.shape == (len(data.x_unlabeled),)
    assert float(clf.weights_.min()) >= 0
    assert float(clf.weights_.max()) <= 1
    assert torch.equal(clf.review().weights, clf.weights_)


@pytest.mark.parametrize("robust", sorted(ROBUST))
def test_a_seed_repeats_and_leaves_the_global_random_state_alone(robust: str, data: SemiSupervisedData) -> None:
    before = torch.get_rng_state()
    first, second = (build(robust, seed=5).fit(data) for _ in range(2))
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(first.weights_, second.weights_)
    assert torch.equal(first.predict(data.x_test).probs, second.predict(data.x_test).probs)


@pytest.mark.parametrize("robust", sorted(ROBUST))
def test_another_seed_is_another_run(robust: str, data: SemiSupervisedData) -> None:
    first, second = (build(robust, seed=seed).fit(data) for seed in (0, 1))
    assert not torch.equal(first.predict(data.x_test).probs, second.predict(data.x_test).probs)


@pytest.mark.parametrize("norm", ["batch", "weighted"])
@pytest.mark.parametrize("robust", sorted(ROBUST))
def test_a_killed_run_resumes_bit_identically(
    robust: str, norm: str, data: SemiSupervisedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = build(robust, norm=norm).fit(data)
    kept = tmp_path / "run.safetensors"

    @contextmanager
    def killed_at_12(settings: SemiSupervisedTraining, before: Sequence[Record]) -> Iterator[Callable[[Record], None]]:
        with run_log(settings, before) as tell:

            def killing(record: Record) -> None:
                tell(record)
                if record["update"] == 12:
                    raise KeyboardInterrupt

            yield killing

    with monkeypatch.context() as patch:
        patch.setattr("evidentia.semisup.estimator.run_log", killed_at_12)
        with pytest.raises(KeyboardInterrupt):
            build(robust, norm=norm, checkpoint=kept).fit(data)
    resumed = build(robust, norm=norm, checkpoint=kept).fit(data)
    assert torch.equal(whole.weights_, resumed.weights_)
    assert torch.equal(whole.predict(data.x_test).probs, resumed.predict(data.x_test).probs)
    assert whole.history_ == resumed.history_


@pytest.mark.parametrize("robust", sorted(ROBUST))
def test_every_method_makes_equally_many_updates_and_no_others(
    robust: str, data: SemiSupervisedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []
    step = torch.optim.Adam.step
    network = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    sizes = {tuple(parameter.shape) for parameter in network.parameters()}

    def counted(self: torch.optim.Adam, *args: object, **kwargs: object) -> object:
        if {tuple(each.shape) for group in self.param_groups for each in group["params"]} == sizes:
            steps.append(self)
        return step(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(torch.optim.Adam, "step", counted)
    before = copy.deepcopy(network.state_dict())
    clf = SemiSupervisedClassifier("vat", robust, network, updates=20, unlabeled_batch=30, progress=False)
    clf.fit(data)
    assert len(steps) == 20
    assert all(torch.equal(before[name], tensor) for name, tensor in network.state_dict().items())


@pytest.mark.parametrize("objective", sorted(OBJECTIVES))
def test_every_objective_trains_with_weights(objective: str, data: SemiSupervisedData) -> None:
    clf = SemiSupervisedClassifier(
        objective, "meta", norm="weighted", updates=12, block=6, unlabeled_batch=30, progress=False
    ).fit(data)
    assert [record["update"] for record in clf.history_] == [6, 12]
    assert bool(clf.predict(data.x_test).probs.isfinite().all())
