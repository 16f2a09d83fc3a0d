"""The face: fit, predict, review, save and load, log and resume, and what it says to bad input."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from evidentia import EvidentiaError
from evidentia._support.errors import FileFormatError
from evidentia._support.files import load_tensors, save_tensors
from evidentia.semisup import (
    OBJECTIVES,
    ByUncertainty,
    ImplicitDifferentiation,
    LabeledAgainstUnlabeled,
    Meta,
    SemiSupervisedClassifier,
    SemiSupervisedData,
    WeightedBatchNorm1d,
    load_pool,
    two_moons,
)
from evidentia.semisup.uncertainty import PoolView

QUICK: dict[str, Any] = {"updates": 20, "block": 10, "unlabeled_batch": 40, "progress": False}


@pytest.fixture(scope="module")
def data() -> SemiSupervisedData:
    return two_moons("faraway", 0.5, seed=1, unlabeled=200)


def accuracy(clf: SemiSupervisedClassifier, data: SemiSupervisedData) -> float:
    return float((clf.predict(data.x_test).labels == data.y_test).double().mean())


def test_far_samples_of_no_class_ruin_batch_norm_in_separate_passes_and_not_ours() -> None:
    data = two_moons("faraway", 0.5, seed=0, unlabeled=500)
    settings: dict[str, Any] = {"updates": 300, "unlabeled_batch": 100, "progress": False}
    ruined = SemiSupervisedClassifier("pi-model", "none", norm="batch", passes="separate", **settings).fit(data)
    ours = SemiSupervisedClassifier("pi-model", "uncertainty", **settings).fit(data)
    assert accuracy(ruined, data) < 0.7
    assert accuracy(ours, data) > 0.95
    summary = ours.review().summary()
    assert summary["w_ood"] < 0.3
    assert summary["w_in"] > 0.7


def test_tensors_arrays_and_datasets_are_the_same(data: SemiSupervisedData) -> None:
    x, y, pool = data.x_labeled, data.y_labeled, data.x_unlabeled
    forms = [((x, y), pool), ((x.numpy(), y.numpy()), pool.numpy()), (TensorDataset(x, y), TensorDataset(pool))]
    found = [SemiSupervisedClassifier("vat", "meta", **QUICK).fit(labeled, unlabeled) for labeled, unlabeled in forms]
    for other in found[1:]:
        assert torch.equal(found[0].weights_, other.weights_)
    assert torch.equal(found[0].predict(x).probs, found[1].predict(x.numpy()).probs)


def test_the_truth_about_the_pool_changes_nothing_but_the_log(data: SemiSupervisedData) -> None:
    labeled = (data.x_labeled, data.y_labeled)
    without, told = (
        SemiSupervisedClassifier("vat", "ift", **QUICK).fit(labeled, data.x_unlabeled, is_ood=is_ood)
        for is_ood in (None, data.is_ood)
    )
    assert torch.equal(without.weights_, told.weights_)
    assert "w_ood" not in without.history_[-1]
    assert {"w_in", "w_ood"} <= told.history_[-1].keys()


def test_validation_labels_change_the_weights_and_are_measured() -> None:
    data = two_moons("boundary", 0.5, seed=1, unlabeled=200, validation=50)
    known = (data.x_labeled, data.y_labeled)
    without = SemiSupervisedClassifier("vat", "meta", **QUICK).fit(known, data.x_unlabeled)
    validated = SemiSupervisedClassifier("vat", "meta", **QUICK).fit(
        known, data.x_unlabeled, (data.x_validation, data.y_validation)
    )
    assert not torch.equal(without.weights_, validated.weights_)
    assert 0 <= validated.history_[-1]["validation_accuracy"] <= 1
    assert "validation_accuracy" not in without.history_[-1]


@pytest.mark.parametrize(
    ("norm", "passes"), [("none", "concat"), ("batch", "separate"), ("frozen", None), ("weighted", "separate")]
)
def test_every_norm_and_order_trains(norm: str, passes: str | None, data: SemiSupervisedData) -> None:
    clf = SemiSupervisedClassifier("fixmatch", "meta", norm=norm, passes=passes, **QUICK).fit(data)
    assert bool(clf.predict(data.x_test).probs.isfinite().all())


def test_images_get_a_lenet_and_image_augmentation() -> None:
    data = load_pool("digits", ood="letters", ratio=0.5, unlabeled=60)
    clf = SemiSupervisedClassifier("fixmatch", "none", updates=2, unlabeled_batch=20, progress=False).fit(data)
    assert clf.predict(data.x_test).probs.shape == (len(data.y_test), 10)
    assert clf.review().class_names == data.class_names


def test_the_log_holds_a_line_a_block_also_after_a_restart(data: SemiSupervisedData, tmp_path: Path) -> None:
    log, kept = tmp_path / "log.jsonl", tmp_path / "run.safetensors"
    clf = SemiSupervisedClassifier("vat", "meta", log=log, checkpoint=kept, **QUICK).fit(data)
    lines = log.read_text().splitlines()
    assert [json.loads(line) for line in lines] == clf.history_
    # As a crash would leave it: the last line cut off. The finished run is taken up again and tells nothing new.
    log.write_text("\n".join(lines)[:-7])
    again = SemiSupervisedClassifier("vat", "meta", log=log, checkpoint=kept, **QUICK).fit(data)
    assert log.read_text().splitlines() == lines
    assert torch.equal(again.weights_, clf.weights_)


def test_tensorboard_gets_the_same_figures(data: SemiSupervisedData, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    clf = SemiSupervisedClassifier("vat", "meta", tensorboard=tmp_path, **QUICK).fit(data)
    events = EventAccumulator(str(tmp_path)).Reload()
    assert [event.step for event in events.Scalars("w_in")] == [10, 20]
    assert [event.value for event in events.Scalars("loss")] == pytest.approx([r["loss"] for r in clf.history_])


def test_a_checkpoint_of_another_run_is_refused(data: SemiSupervisedData, tmp_path: Path) -> None:
    kept = tmp_path / "run.safetensors"
    SemiSupervisedClassifier("vat", "none", checkpoint=kept, **QUICK).fit(data)
    others = [
        (SemiSupervisedClassifier("vat", "none", seed=1, checkpoint=kept, **QUICK), data, "seed"),
        (SemiSupervisedClassifier("vat", "meta", checkpoint=kept, **QUICK), data, "robust"),
        (SemiSupervisedClassifier("pi-model", "none", checkpoint=kept, **QUICK), data, "objective"),
        (SemiSupervisedClassifier("vat", "none", checkpoint=kept, **QUICK), two_moons(seed=2, unlabeled=200), "data"),
    ]
    for clf, given, changed in others:
        with pytest.raises(EvidentiaError, match=rf"other settings \(.*{changed}"):
            clf.fit(given)


def test_a_run_does_not_go_on_with_other_frozen_parameters(data: SemiSupervisedData, tmp_path: Path) -> None:
    network = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
    network[0].requires_grad_(False)
    settings: dict[str, Any] = {"network": network, "norm": "batch", "checkpoint": tmp_path / "run", **QUICK}
    SemiSupervisedClassifier("vat", "none", **settings).fit(data)
    network.requires_grad_(True)
    with pytest.raises(EvidentiaError, match=r"other settings \(frozen\)"):
        SemiSupervisedClassifier("vat", "none", **settings).fit(data)


def test_saved_and_loaded_predicts_the_same(data: SemiSupervisedData, tmp_path: Path) -> None:
    path = tmp_path / "clf.safetensors"
    clf = SemiSupervisedClassifier("vat", "meta", norm="weighted", **QUICK).fit(data)
    clf.save(path)
    loaded = SemiSupervisedClassifier.load(path)
    assert torch.equal(loaded.predict(data.x_test).probs, clf.predict(data.x_test).probs)
    for name in ("weights_", "clusters_", "uncertainty_"):
        assert torch.equal(getattr(loaded, name), getattr(clf, name))
    for name in ("objective", "robust", "augmentation"):
        assert repr(getattr(loaded, name)) == repr(getattr(clf, name))
    loaded.save(path)
    assert SemiSupervisedClassifier.load(path).trained_by_ == clf.trained_by_
    with pytest.raises(EvidentiaError, match="is a folder"):
        clf.save(tmp_path)
    with pytest.raises(EvidentiaError, match="is there to predict"):
        loaded.fit(data)
    assert loaded.review().to_frame().equals(clf.review().to_frame())
    assert repr(loaded.review()) == repr(clf.review())


def test_methods_of_ones_own_are_loaded_in_words_only(data: SemiSupervisedData, tmp_path: Path) -> None:
    class Own(type(OBJECTIVES["vat"]())):  # type: ignore[misc]
        pass

    path = tmp_path / "clf.safetensors"
    clf = SemiSupervisedClassifier(Own(), "none", augmentation=(torch.clone, lambda x: x), **QUICK).fit(data)
    clf.save(path)
    loaded = SemiSupervisedClassifier.load(path)
    assert type(loaded.robust).__name__ == "NotRobust"
    assert "Own(weight=" in loaded.trained_by_["objective"]
    for name in ("objective", "augmentation"):
        with pytest.raises(AttributeError, match=rf"the {name} of this classifier is not evidentia's own.*trained_by_"):
            getattr(loaded, name)


def test_a_method_without_clusters_and_uncertainty_is_loaded_without(data: SemiSupervisedData, tmp_path: Path) -> None:
    path = tmp_path / "clf.safetensors"
    SemiSupervisedClassifier("vat", "none", **QUICK).fit(data).save(path)
    loaded = SemiSupervisedClassifier.load(path)
    assert loaded.clusters_ is None
    assert loaded.uncertainty_ is None


def test_a_file_that_lacks_a_part_is_refused(data: SemiSupervisedData, tmp_path: Path) -> None:
    path, kind = tmp_path / "clf.safetensors", "semi-supervised classifier"
    SemiSupervisedClassifier("vat", "none", **QUICK).fit(data).save(path)
    tensors, content = load_tensors(path, kind)
    for name in (*content, "weights", "labels", "confidence"):
        less = [{key: value for key, value in part.items() if key != name} for part in (tensors, content)]
        save_tensors(path, kind, *less)
        with pytest.raises(FileFormatError, match=f"does not hold a whole semi-supervised classifier.*{name}"):
            SemiSupervisedClassifier.load(path)


def test_a_network_of_ones_own_is_needed_again_to_load(data: SemiSupervisedData, tmp_path: Path) -> None:
    path = tmp_path / "clf.safetensors"
    network = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
    clf = SemiSupervisedClassifier("vat", "none", network, norm="none", **QUICK).fit(data)
    clf.save(path)
    assert torch.equal(
        SemiSupervisedClassifier.load(path, network).predict(data.x_test).probs, clf.predict(data.x_test).probs
    )
    with pytest.raises(EvidentiaError, match="needs the module it was built with"):
        SemiSupervisedClassifier.load(path)
    with pytest.raises(FileFormatError, match="does not hold a whole"):
        SemiSupervisedClassifier.load(path, nn.Linear(2, 3))


def test_predictions_are_in_evaluation_mode_whatever_was_done_to_the_network() -> None:
    data = load_pool("two-moons", ood="faraway", ratio=0.5, unlabeled=60)
    clf = SemiSupervisedClassifier("pi-model", "none", norm="batch", updates=5, progress=False).fit(data)
    before, statistics = clf.predict(data.x_test).probs, copy.deepcopy(clf.network_.state_dict())
    clf.network_.train()
    assert torch.equal(clf.predict(data.x_test).probs, before)
    assert all(torch.equal(clf.network_.state_dict()[name], value) for name, value in statistics.items())


def test_a_truncated_file_is_told(data: SemiSupervisedData, tmp_path: Path) -> None:
    path = tmp_path / "clf.safetensors"
    SemiSupervisedClassifier("vat", "none", **QUICK).fit(data).save(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FileFormatError):
        SemiSupervisedClassifier.load(path)


def test_what_cannot_be_trained_is_told_before_training(data: SemiSupervisedData) -> None:
    x, y, pool = data.x_labeled, data.y_labeled, data.x_unlabeled
    nan = pool.clone()
    nan[3, 0] = float("nan")
    cases: list[tuple[Any, Any, dict[str, Any], str]] = [
        ((x, y), torch.zeros(50, 3), {}, "shape"),
        ((x, torch.zeros_like(y)), pool, {"num_classes": 2}, "class"),
        ((x, y), nan, {}, "NaN|finite"),
        ((x, y), pool[:0], {}, "the pool is empty"),
        ((x, y), None, {}, "no unlabeled pool"),
    ]
    for labeled, unlabeled, options, message in cases:
        with pytest.raises(EvidentiaError, match=message):
            SemiSupervisedClassifier("vat", "none", progress=False).fit(labeled, unlabeled, **options)


def test_a_batch_larger_than_the_pool_is_told_and_the_default_fits() -> None:
    small = two_moons(unlabeled=30)
    with pytest.raises(EvidentiaError, match="unlabeled_batch is 31, but the pool has 30"):
        SemiSupervisedClassifier("vat", "none", updates=2, unlabeled_batch=31, progress=False).fit(small)
    SemiSupervisedClassifier("vat", "none", updates=2, progress=False).fit(small)


def test_a_network_with_other_classes_is_told(data: SemiSupervisedData) -> None:
    with pytest.raises(EvidentiaError, match="2 classes"):
        SemiSupervisedClassifier("vat", "none", nn.Linear(2, 5), norm="none", **QUICK).fit(data)


def test_an_oracle_has_to_be_told(data: SemiSupervisedData) -> None:
    with pytest.raises(EvidentiaError, match="has to be told"):
        SemiSupervisedClassifier("vat", "oracle", **QUICK).fit((data.x_labeled, data.y_labeled), data.x_unlabeled)


def test_data_that_brings_everything_takes_nothing_else(data: SemiSupervisedData) -> None:
    with pytest.raises(EvidentiaError, match="brings its own"):
        SemiSupervisedClassifier(**QUICK).fit(data, data.x_unlabeled)


def test_nothing_is_predicted_before_training(data: SemiSupervisedData) -> None:
    for call in (lambda c: c.predict(data.x_test), lambda c: c.review(), lambda c: c.save("x")):
        with pytest.raises(EvidentiaError, match="not trained yet"):
            call(SemiSupervisedClassifier())


def test_unknown_names_are_told() -> None:
    for arguments in (("vta", "none"), ("vat", "non")):
        with pytest.raises(EvidentiaError, match="there is no"):
            SemiSupervisedClassifier(*arguments)
    with pytest.raises(EvidentiaError, match="updates"):
        SemiSupervisedClassifier(updates=0)
    with pytest.raises(EvidentiaError, match=r"standardize: there is no such setting; .* standardise, updates"):
        SemiSupervisedClassifier(standardize=True)


def test_a_loss_that_diverges_is_told(data: SemiSupervisedData) -> None:
    with pytest.raises(EvidentiaError, match="lower the learning rate"):
        SemiSupervisedClassifier("pi-model", "none", norm="none", learning_rate=1e30, **QUICK).fit(data)


@pytest.mark.filterwarnings("ignore:the labeled samples have values of size")
@pytest.mark.parametrize("norm", ["batch", "weighted"])
def test_samples_that_are_too_large_are_told_in_the_first_block(
    norm: str, data: SemiSupervisedData, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    clf = SemiSupervisedClassifier("pi-model", "none", norm=norm, log=log, **QUICK)
    with pytest.raises(EvidentiaError, match=r"running statistics .* became infinite by update 10: .*standardise=True"):
        clf.fit((data.x_labeled * 1e30, data.y_labeled), data.x_unlabeled * 1e30)
    assert not log.read_text()


def test_a_buffer_that_is_infinite_on_purpose_is_left_alone(data: SemiSupervisedData) -> None:
    network = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    network.register_buffer("mask", torch.full((2,), -torch.inf))
    SemiSupervisedClassifier("pi-model", "none", network, **QUICK).fit(data)


def test_a_sample_of_the_pool_that_the_network_says_nothing_of_is_told(data: SemiSupervisedData) -> None:
    class Overflowing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(x**3)

    pool, is_ood = data.x_unlabeled.clone(), torch.zeros(len(data.x_unlabeled), dtype=torch.bool)
    pool[0], is_ood[0] = 1e30, True
    clf = SemiSupervisedClassifier("pi-model", "oracle", Overflowing(), norm="none", passes="separate", **QUICK)
    with pytest.raises(EvidentiaError, match=r"says of 1 of 400 samples of the pool is not finite.*too large"):
        clf.fit((data.x_labeled, data.y_labeled), pool, is_ood=is_ood)
    assert bool(clf.predict(data.x_test).probs.isfinite().all())


@pytest.mark.parametrize("norm", ["batch", "frozen", "none"])
@pytest.mark.parametrize("kind", [Meta, ImplicitDifferentiation])
def test_joint_without_weighted_batch_norm_is_told_before_the_pool_is_looked_at(
    kind: Any, norm: str, data: SemiSupervisedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind, "start", lambda *_: pytest.fail("it is too late to tell"))
    with pytest.raises(EvidentiaError, match=rf"{kind.__name__}\(joint=True\) .*norm='{norm}'.*take norm='weighted'"):
        SemiSupervisedClassifier("pi-model", kind(joint=True), norm=norm, **QUICK).fit(data)


def test_joint_goes_with_networks_whose_batch_norms_take_weights(data: SemiSupervisedData) -> None:
    weighing = nn.Sequential(nn.Linear(2, 8), WeightedBatchNorm1d(8), nn.Linear(8, 2))
    for network, norm in ((weighing, "batch"), (None, "weighted")):
        SemiSupervisedClassifier("pi-model", Meta(joint=True), network, norm=norm, **QUICK).fit(data)


def test_joint_does_nothing_without_batch_norm_and_is_refused(data: SemiSupervisedData) -> None:
    plain = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
    for norm in ("batch", "none"):
        with pytest.raises(EvidentiaError, match=rf"norm='{norm}' this network has none, .*or leave joint=True out"):
            SemiSupervisedClassifier("pi-model", Meta(joint=True), plain, norm=norm, **QUICK).fit(data)
        SemiSupervisedClassifier("pi-model", Meta(), plain, norm=norm, **QUICK).fit(data)
    frozen = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4).eval(), nn.ReLU(), nn.Linear(4, 2))
    with pytest.raises(EvidentiaError, match="frozen ones alone, so that it would do nothing"):
        SemiSupervisedClassifier("pi-model", Meta(joint=True), frozen, norm="weighted", **QUICK).fit(data)


def test_the_review_says_if_the_pool_was_not_used(data: SemiSupervisedData) -> None:
    used, unused = (
        SemiSupervisedClassifier("pi-model", robust, **QUICK).fit(data) for robust in ("none", "supervised")
    )
    assert "400 kept" in repr(used.review())
    assert "400 samples, none of which were used" in repr(unused.review())


def test_score_is_the_accuracy_by_number_or_by_name(data: SemiSupervisedData, tmp_path: Path) -> None:
    clf = SemiSupervisedClassifier("pi-model", "none", **QUICK).fit((data.x_labeled, data.y_labeled), data.x_unlabeled)
    assert clf.score(data.x_test, data.y_test) == accuracy(clf, data)
    assert clf.score(data.x_test.numpy(), data.y_test.tolist(), batch_size=7) == accuracy(clf, data)
    for pairs in (TensorDataset(data.x_test, data.y_test), (data.x_test, data.y_test)):
        assert clf.score(pairs) == accuracy(clf, data)
    with pytest.raises(EvidentiaError, match="test must be a pair of inputs and classes or a torch Dataset of pairs"):
        clf.score(data.x_test)
    names = [("moon", "sun")[label] for label in data.y_labeled.tolist()]
    named = SemiSupervisedClassifier("pi-model", "none", **QUICK).fit((data.x_labeled, names), data.x_unlabeled)
    true = [("moon", "sun")[label] for label in data.y_test.tolist()]
    named.save(tmp_path / "clf.safetensors")
    for each in (named, SemiSupervisedClassifier.load(tmp_path / "clf.safetensors")):
        assert each.score(data.x_test, true) == each.score(data.x_test, data.y_test) == accuracy(clf, data)
        # A part of the classes must not be numbered anew.
        suns = data.y_test == 1
        right = float((each.predict(data.x_test[suns]).labels == 1).double().mean())
        assert each.score(data.x_test[suns], ["sun"] * int(suns.sum())) == right
    cases: list[tuple[SemiSupervisedClassifier, Any, str]] = [
        (clf, true, "trained on classes by number"),
        (named, ["star"] * len(true), "hold 'star', which is none of the classes.*moon, sun"),
        (clf, data.y_test + 1, "hold 2, .* from 0 to 1"),
        (clf, data.y_test - 1, "hold -1, .* from 0 to 1"),
        (clf, data.y_test[:-1], "1000 samples and 999 true classes"),
        (SemiSupervisedClassifier(), data.y_test, "not trained yet"),
    ]
    for each, given, message in cases:
        with pytest.raises(EvidentiaError, match=message):
            each.score(data.x_test, given)


def test_it_shows_what_differs_from_the_defaults(data: SemiSupervisedData, tmp_path: Path) -> None:
    assert repr(SemiSupervisedClassifier()) == "SemiSupervisedClassifier(FixMatch(), robust=ByUncertainty())"
    clf = SemiSupervisedClassifier(
        "vat", Meta(scope="full"), nn.Linear(2, 2), device="cpu", standardise=True, norm="none", seed=3, log="a.jsonl"
    )
    assert repr(clf) == (
        "SemiSupervisedClassifier(VAT(), robust=Meta(scope='full'), network=Linear(...), device='cpu', "
        "standardise=True, norm='none', seed=3, log='a.jsonl')"
    )

    class Own(type(OBJECTIVES["vat"]())):  # type: ignore[misc]
        pass

    clf = SemiSupervisedClassifier(Own(), "none", augmentation=(torch.clone, torch.clone), **QUICK).fit(data)
    clf.save(tmp_path / "clf.safetensors")
    shown = repr(SemiSupervisedClassifier.load(tmp_path / "clf.safetensors"))
    assert "Own(weight=" in shown
    assert "robust=NotRobust(), network='mlp', augmentation=Augmentation(weak=" in shown


def test_a_pool_that_is_all_thrown_out_is_told(data: SemiSupervisedData) -> None:
    class Nothing(LabeledAgainstUnlabeled):
        def uncertainty_of(self, pool: PoolView) -> Tensor:
            return torch.ones(len(pool.unlabeled))

    with pytest.raises(EvidentiaError, match=r"all weights of the pool are below 0\.5"):
        SemiSupervisedClassifier("vat", ByUncertainty(uncertainty=Nothing()), **QUICK).fit(data)
    # As factors of the loss they leave the labeled samples to learn from, and running statistics to normalise by.
    weighing = ByUncertainty(uncertainty=Nothing(), apply="loss")
    clf = SemiSupervisedClassifier("vat", weighing, norm="weighted", passes="separate", **QUICK).fit(data)
    assert clf.history_[-1]["unlabeled_loss"] == 0
