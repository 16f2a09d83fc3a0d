"""The studies on OOD in semi-supervised training: what their rows hold, and that they can show what they are for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from evidentia import EvidentiaError
from evidentia.experiments import StudyStore, find_study, plan_study, published, run_plan, study_table
from evidentia.experiments.jobs import JOBS
from evidentia.experiments.semisup_demo import METHODS, OURS, moons_demo, moons_steps
from evidentia.experiments.semisup_published import published_accuracy
from evidentia.experiments.semisup_runs import PoolRuns
from evidentia.experiments.semisup_uncertainty import (
    PoolUncertainty,
    dropout_epistemic,
    epistemic_of_pool,
    vacuity_by_kind,
)
from evidentia.experiments.study import Preset, Study
from evidentia.semisup import load_pool

TINY: dict[str, Any] = {"updates": 5, "progress": False}


def test_data_that_are_not_there_are_told_before_any_job(tmp_path: Path) -> None:
    plan = plan_study(find_study("semisup-cifar100"))
    with StudyStore(tmp_path / "results.sqlite") as store:
        with pytest.raises(EvidentiaError, match="cifar100 is not under"):
            run_plan(plan, store, data_root=tmp_path, progress=False)
        assert set(store.states(plan.jobs).values()) == {"waiting"}


@pytest.mark.parametrize("job", ["semisup", "semisup-time"])
@pytest.mark.parametrize("settings", [{}, {"objective": "vat", "objective_options": {"epsilon": 0.2}, "validation": 4}])
def test_what_plans_let_pass_jobs_train(job: str, settings: dict[str, Any]) -> None:
    fixed = {"data": "two-moons", "robust": "meta", "data_options": {"pool_size": 50}, "updates": 2, **settings}
    plan_study(Study(name="mine", title="Mine", job=job, metrics=["seconds"], fixed=fixed))
    assert JOBS[job](fixed, 0)["seconds"] > 0


def test_the_impact_study_has_the_published_beside_each_treatment_of_batch_norm(tmp_path: Path) -> None:
    shown = {"ood": ["faraway"], "method": ["no BN", "separate BN"], "ratio": ["50"]}
    tiny = Preset(seeds=1, keep=shown, fixed={"objective": "pi-model", "updates": 120})
    plan = plan_study(find_study("semisup-impact").model_copy(update={"presets": {"quick": tiny}}))
    with StudyStore(tmp_path / "results.sqlite") as store:
        run_plan(plan, store, progress=False)
        rows = {row.cell.labels["method"]: row for row in study_table(plan, store).rows}
    # Running statistics of a pool that is half far away are not those of the test; without batch norm it does no harm.
    assert rows["separate BN"].mean < 60
    assert rows["no BN"].mean > 75
    assert rows["separate BN"].published.value == 50
    assert rows["no BN"].published.value == 100


def test_every_published_accuracy_of_the_moons_stands_beside_a_run() -> None:
    cases = [
        *((robust, "weighted", None) for robust in ("meta", "ift")),
        *(("none", norm, "separate") for norm in ("none", "batch", "frozen")),
        ("supervised", "batch", None),
    ]
    found = {
        (figure.row, figure.column)
        for ood in ("faraway", "boundary")
        for ratio in (0.25, 0.5, 0.75)
        for robust, norm, passes in cases
        if (figure := published_accuracy("two-moons", "vat", robust, ood, ratio, norm, passes)) is not None
    }
    assert found == {(figure.row, figure.column) for figure in published("semisup-moons")}


def test_no_figure_stands_beside_what_the_thesis_has_not_run() -> None:
    for case in [
        ("two-moons", "fixmatch", "none", "faraway", 0.5, "none"),
        ("two-moons", "vat", "uncertainty", "faraway", 0.5, "batch"),
        ("two-moons", "vat", "meta", "faraway", 0.5, "batch"),
        ("two-moons", "vat", "meta", "random", 0.5, "weighted"),
        ("two-moons", "vat", "none", None, None, "none"),
        ("mnist", "vat", "meta", "fashion", 0.5, "weighted"),
        ("svhn", "vat", "oracle", "held-out", 0.5, "batch"),
    ]:
        assert published_accuracy(*case) is None
    assert published_accuracy("cifar100", "mean-teacher", "ds3l", "held-out", 0.75).value == 57.2


def test_vacuity_is_high_far_away() -> None:
    found = vacuity_by_kind("two-moons", "kernel", 0, kinds=["faraway", "boundary"], updates=100, progress=False)
    assert list(found) == ["faraway", "boundary"]
    assert found["faraway"].outside > found["faraway"].inside + 0.2
    assert found["faraway"].auroc > 0.95


def test_vacuity_of_digits_has_a_network_for_each_set_of_classes() -> None:
    found = vacuity_by_kind("digits", "evidential", 0, **TINY)
    assert list(found) == ["held-out", "letters", "mixed"]
    assert all(0 < mean < 1 for each in found.values() for mean in (each.inside, each.outside))


def test_a_pool_of_which_nothing_is_known_has_no_table() -> None:
    pool = replace(load_pool("two-moons", "faraway", 0.5), is_ood=None, y_unlabeled=None, ood_kind=None)
    with pytest.raises(EvidentiaError, match="known which samples of the pool"):
        PoolUncertainty.of(torch.rand(len(pool.x_unlabeled)), pool)


@pytest.mark.parametrize("training", ["supervised", "pseudo-label"])
def test_the_epistemic_uncertainty_of_a_pool(training: str) -> None:
    found, accuracy = epistemic_of_pool("digits", training, 0, passes=3, **TINY)
    assert all(0 <= figure <= 1 for figure in (*found, accuracy))


def test_epistemic_uncertainty_is_that_of_the_passes() -> None:
    network = nn.Sequential(nn.Linear(2, 20), nn.ReLU(), nn.Dropout(0.5), nn.Linear(20, 3))
    x = torch.randn(7, 2)
    found = dropout_epistemic(network, x, passes=50, seed=1)
    assert torch.equal(found, dropout_epistemic(network, x, passes=50, seed=1))
    network.eval()
    torch.manual_seed(1)
    network[2].train()
    probs = torch.stack([network(x).softmax(-1) for _ in range(50)])
    entropy = torch.special.entr(probs).sum(-1)
    expected = torch.special.entr(probs.mean(0)).sum(-1) - entropy.mean(0)
    assert torch.allclose(found, expected, atol=1e-5)
    assert bool((dropout_epistemic(network, x, passes=1) < 1e-6).all())
    maps = nn.Sequential(nn.Conv2d(1, 20, 3), nn.ReLU(), nn.Dropout2d(0.5), nn.Flatten(), nn.Linear(20, 3))
    assert bool((dropout_epistemic(maps, torch.randn(7, 1, 3, 3)) > 0).any())
    with pytest.raises(EvidentiaError, match="needs a network with dropout"):
        dropout_epistemic(nn.Linear(2, 3), x)


def test_the_controls_of_a_plain_run_have_none_for_its_time() -> None:
    runs = PoolRuns({"data": "two-moons", "robust": "none", "validation": 4}, seeds=[0])
    assert "compute-matched" not in runs.control_names
    assert "supervised, all" in runs.control_names
    assert runs.trainings == 1 + len(runs.control_names)


def test_the_compute_matched_control_has_the_time_of_the_method(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = PoolRuns({"data": "two-moons", "robust": "meta"}, seeds=[0])
    runs.method = {"mean": {"updates": 100, "seconds": 5.0}, "configuration": {"norm": "weighted"}}
    asked = {}

    def note(name: str, settings: dict[str, Any]) -> dict[str, Any]:
        asked[name] = settings
        return {"mean": {"seconds": 2.0}}

    monkeypatch.setattr(runs, "_run", note)
    runs.run_controls()
    assert asked["compute-matched"]["updates"] == 250
    # Weights are a part of the method, not of the plain objective.
    assert asked["compute-matched"]["norm"] == "batch"
    assert "updates" not in asked["concatenated BN"]


def test_the_demo_has_a_row_a_method_and_the_trainings_to_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evidentia.experiments.semisup_demo._TRAINING", {"updates": 2, "progress": False})
    monkeypatch.setattr(
        "evidentia.experiments.semisup_demo._settings",
        lambda method: {"robust": "oracle" if method in (OURS, "oracle") else "none"},
    )
    steps = []
    demo = moons_demo([0, 1], after_each=lambda: steps.append(1))
    assert len(steps) == moons_steps([0, 1]) == 8
    assert [row[0] for row in demo.rows] == list(METHODS)
    assert [row[2] for row in demo.rows] == ["", "", "1.00 / 0.00", "1.00 / 0.00"]
    assert list(demo.shown) == list(METHODS)
