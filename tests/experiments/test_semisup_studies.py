"""The studies on OOD in semi-supervised training: what their rows hold, and that they can show what they are for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from evidentia import EvidentiaError
from evidentia.experiments import StudyStore, find_study, plan_study, published, run_plan
from evidentia.experiments.semisup_demo import METHODS, OURS, moons_demo, moons_steps
from evidentia.experiments.semisup_impact import MODELS, impact_rows
from evidentia.experiments.semisup_published import published_accuracy
from evidentia.experiments.semisup_runs import PoolRuns
from evidentia.experiments.semisup_uncertainty import IN, dropout_epistemic, epistemic_rows, vacuity_rows

TINY: dict[str, Any] = {"updates": 5, "progress": False}


def test_data_that_are_not_there_are_told_before_any_job(tmp_path: Path) -> None:
    plan = plan_study(find_study("semisup-cifar100"))
    with StudyStore(tmp_path / "results.sqlite") as store:
        with pytest.raises(EvidentiaError, match="cifar100 is not under"):
            run_plan(plan, store, data_root=tmp_path, progress=False)
        assert set(store.states(plan.jobs).values()) == {"waiting"}


def test_the_impact_study_has_a_row_for_every_case() -> None:
    done = []
    rows = impact_rows(
        "two-moons", ["faraway", "boundary"], [0.25, 0.5], [0, 1], after_each=lambda: done.append(1), **TINY
    )
    assert len(done) == 2 * len(rows)
    assert [row["model"] for row in rows[:4]] == list(MODELS)
    assert {(row["ood"], row["ratio"]) for row in rows} == {
        (kind, ratio) for kind in ("faraway", "boundary") for ratio in (0.25, 0.5)
    }
    assert all(len(row["accuracies"]) == 2 for row in rows)
    figures = {(row["ood"], row["ratio"], row["model"]): row["published"] for row in rows}
    assert figures["faraway", 0.5, "separate BN"] == pytest.approx(0.5)
    assert figures["boundary", 0.25, "no BN"] == pytest.approx(0.873)
    assert figures["faraway", 0.5, "concatenated BN"] is None
    assert json.loads(json.dumps(rows)) == rows


def test_faraway_ood_makes_separate_batch_norm_collapse_and_no_batch_norm_does_not_mind() -> None:
    rows = impact_rows(
        "two-moons", ["faraway"], [0.5], [0], objective="pi-model", models=["no BN", "separate BN"], updates=120,
        progress=False,
    )  # fmt: skip
    accuracy = {row["model"]: row["mean"] for row in rows}
    assert accuracy["separate BN"] < 0.6
    assert accuracy["no BN"] > 0.75


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


def test_vacuity_is_high_far_away_and_its_table_has_the_published_beside() -> None:
    rows = vacuity_rows("two-moons", [0, 1], kinds=["faraway", "boundary"], updates=100, progress=False)
    table = {(row["estimator"], row["kind"]): row for row in rows}
    assert table["kernel", "faraway"]["mean"] > table["kernel", IN]["mean"] + 0.2
    assert table["kernel", "faraway"]["auroc"] > 0.95
    assert table["kernel", IN]["auroc"] is None
    assert all(row["published"] is None for row in rows)
    assert json.loads(json.dumps(rows)) == rows


def test_vacuity_of_digits_has_a_network_for_each_set_of_classes() -> None:
    rows = vacuity_rows("digits", [0], estimators=["evidential"], **TINY)
    assert [row["kind"] for row in rows] == ["held-out", "letters", "mixed", IN]
    assert all(0 < row["mean"] < 1 for row in rows)


def test_the_published_vacuity_goes_with_the_kind(real_data: Any) -> None:
    rows = vacuity_rows("mnist", [0], kinds=["fashion"], estimators=["evidential"], data_root=str(real_data), **TINY)
    assert {row["kind"]: row["published"] for row in rows} == {"fashion": 0.25, IN: 0.09}


def test_the_epistemic_table() -> None:
    rows = epistemic_rows("digits", [0], trainings=["supervised", "pseudo-label"], passes=3, **TINY)
    assert [row["training"] for row in rows] == ["supervised", "pseudo-label"]
    for row in rows:
        assert row["ood_kind"] == "held-out"
        assert 0 <= row["id"] < 1
        assert 0 <= row["ood"] < 1
        assert 0 <= row["auroc"] <= 1
        assert row["published"] is None
    assert json.loads(json.dumps(rows)) == rows


def test_the_published_epistemic_uncertainty_is_that_of_mnist_and_fashion(real_data: Any) -> None:
    rows = epistemic_rows(
        "mnist", [0], trainings=["supervised"], passes=2, pool_size=200, data_root=str(real_data), **TINY
    )
    assert rows[0]["published"] == {"id": 0.14, "ood": 0.249}


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
    with pytest.raises(EvidentiaError, match="needs a network with dropout"):
        dropout_epistemic(nn.Linear(2, 3), x)


def test_the_controls_of_a_plain_run_have_none_for_its_time() -> None:
    runs = PoolRuns({"data": "two-moons", "robust": "none", "validation": 4}, seeds=[0])
    assert "compute-matched" not in runs.control_names
    assert "supervised, all" in runs.control_names
    assert runs.trainings == 1 + len(runs.control_names)


def test_the_compute_matched_control_has_the_time_of_the_method(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = PoolRuns({"data": "two-moons", "robust": "meta"}, seeds=[0])
    runs.method = {"mean": {"updates": 100, "seconds": 5.0}}
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
