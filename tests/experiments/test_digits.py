"""The digits experiment: its protocol, and what it must show."""

from __future__ import annotations

import pytest
import torch

from evidentia.experiments.digits import (
    CALIBRATION_A_CLASS,
    GROUPS,
    HELD_OUT,
    TASKS,
    TRAIN_A_CLASS,
    DigitsRun,
    digits_split,
    run_digits,
    run_seed,
)
from evidentia.experiments.digits_summary import (
    UNCERTAINTIES,
    Claim,
    claims,
    score_rows,
    triage_rows,
    uncertainty_rows,
)
from evidentia.experiments.jobs.digits import digits_job
from evidentia.experiments.studies.digits import DIGITS

SEEDS = range(10)


@pytest.fixture(scope="module")
def runs() -> list[DigitsRun]:
    return run_digits(SEEDS)


@pytest.mark.parametrize("seed", [0, 7])
def test_split_keeps_the_parts_apart(seed: int) -> None:
    split = digits_split(seed)
    known = 10 - HELD_OUT
    assert len(split.digits) == known
    assert len(split.train[0]) == known * TRAIN_A_CLASS
    assert len(split.calibration[0]) == known * CALIBRATION_A_CLASS
    assert torch.bincount(split.train[1]).tolist() == [TRAIN_A_CLASS] * known
    total = sum(len(part[0]) for part in (split.train, split.calibration, split.test)) + len(split.unknown)
    assert total == 1797
    assert set(split.test[1].tolist()) == set(range(known))


def test_split_follows_the_seed() -> None:
    first, again, other = digits_split(3), digits_split(3), digits_split(4)
    assert torch.equal(first.train[0], again.train[0])
    assert first.digits != other.digits or not torch.equal(first.train[0], other.train[0])


def test_a_seed_gives_the_same_run_again(runs: list[DigitsRun]) -> None:
    assert run_seed(SEEDS[0]).scores == runs[0].scores


def test_the_study_counts_seeds_from_its_first_and_finds_all_its_metrics(
    runs: list[DigitsRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evidentia.experiments.jobs.digits.run_seed", lambda seed: runs[seed])
    found = digits_job({"first_seed": 2}, seed=3)
    assert found["unknown"]["vacuity"] == runs[5].scores["vacuity"]["out of distribution"]
    assert found["wrong"]["softmax-entropy"] == runs[5].scores["softmax entropy"]["misclassification"]
    flat = {f"{group}.{name}" for group, values in found.items() for name in values}
    assert flat == set(DIGITS.metrics)


def test_evidential_uncertainty_beats_the_softmax_entropy_trained_alike(runs: list[DigitsRun]) -> None:
    unknown, misclassification = claims(runs)[:2]
    assert (unknown.score, unknown.baseline, unknown.task) == ("vacuity", "softmax entropy", TASKS[1])
    assert (misclassification.score, misclassification.task) == ("dissonance", TASKS[0])
    assert unknown.mean > 0
    assert misclassification.mean > 0


def test_both_networks_learn(runs: list[DigitsRun]) -> None:
    for run in runs:
        assert min(run.accuracy.values()) > 0.85


def test_unknown_digits_lack_evidence(runs: list[DigitsRun]) -> None:
    for run in runs:
        right, wrong, unknown = (float(run.groups("vacuity")[group].mean()) for group in GROUPS)
        assert right < min(wrong, unknown)


def test_triage_holds_back_more_of_what_is_wrong_or_unknown(runs: list[DigitsRun]) -> None:
    accepted = {name: [float(cell.rstrip("%")) for cell in cells] for name, *cells in triage_rows(runs)}["accept"]
    right, wrong, unknown = accepted
    assert right > 80
    assert max(wrong, unknown) < right / 2


def test_rows_cover_every_score_and_uncertainty(runs: list[DigitsRun]) -> None:
    assert [row[0] for row in score_rows(runs)] == list(runs[0].scores)
    assert [row[0] for row in uncertainty_rows(runs)] == list(UNCERTAINTIES)


def test_a_claim_says_what_the_seeds_allow() -> None:
    def claim(*pairs: tuple[float, float]) -> Claim:
        return claims([_fake_run(vacuity, softmax) for vacuity, softmax in pairs])[0]

    assert claim((0.91, 0.80), (0.90, 0.80), (0.92, 0.80)).verdict == "above"
    assert claim((0.80, 0.91), (0.80, 0.90), (0.80, 0.92)).verdict == "below"
    unclear = claim((0.60, 0.90), (0.70, 0.60))
    assert unclear.verdict == "on par with"
    assert not unclear.holds
    assert "1 of 2 seeds" in str(unclear)


def _fake_run(vacuity: float, softmax: float) -> DigitsRun:
    run = object.__new__(DigitsRun)
    names = ("softmax entropy", "softmax entropy, density-scaled", "vacuity", "dissonance")
    scores = {name: dict.fromkeys(TASKS, softmax if "softmax" in name else vacuity) for name in names}
    object.__setattr__(run, "scores", scores)
    return run
